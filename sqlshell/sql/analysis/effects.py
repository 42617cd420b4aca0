"""Effects of a statement, for a policy: whether it writes, and the names by which a policy can refer to it.

The verb decides, by tokens and never by substrings; of WITH it is the last one, and a statement in parentheses counts
too. A function or a view may still write: only the engine can refuse that. Unknown statements count as writing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from sqlshell.sql.analysis.kinds import (
    QUERIES,
    READS,
    SHOWING,
    VERBS,
    explained_statement,
    inner_statements,
    verb_of,
    without_parentheses,
    words_outside,
)
from sqlshell.sql.analysis.lexed import Lexed, once_per_statement
from sqlshell.sql.analysis.tokens import Token, with_depth
from sqlshell.sql.keywords import DROP_OBJECTS, UPDATE_OBJECTS
from sqlshell.text import nearest


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FILLERS: Final = frozenset(
    {"OR", "REPLACE", "TEMP", "TEMPORARY", "IF", "NOT", "EXISTS", "RECURSIVE", "UNLOGGED", "ONLY"}
)
_OBJECTS: Final = frozenset(
    {"CREATE", "DROP", "ALTER", "TRUNCATE", "GRANT", "REVOKE", "START", "STOP", "TERMINATE", "RESTART", "RESUME"}
)
_TWO_WORDS: Final = frozenset({"MATERIALIZED", "METRICS", "SECURITY", "FOREIGN"})

_KINDS: Final = frozenset(DROP_OBJECTS) | {"CONNECTION", "MACRO", "SEQUENCE", "TYPE", "VIEW", "FOREIGN TABLE"}
_FORMS: Final = frozenset(
    {
        *("DELETE WITHOUT WHERE", "UPDATE WITHOUT WHERE", "COPY TO", "COPY FROM", "SELECT INTO", "EXPLAIN ANALYZE"),
        *("TRUNCATE TABLE", "CREATE OR REPLACE", "START COMPUTE_POOL", "STOP COMPUTE_POOL", "WRITE"),
        *("TRUNCATE RELATION", "TRUNCATE STREAM", "TRUNCATE CHANGELOG", *(f"UPDATE {kind}" for kind in UPDATE_OBJECTS)),
        *("TERMINATE QUERY", "TERMINATE SESSION", "RESTART QUERY", "RESUME QUERY"),
        *(f"{verb} {kind}" for verb in ("ALTER", "CREATE", "CREATE OR REPLACE", "DROP") for kind in _KINDS),
    }
)
_RETURNING: Final = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})

_TRANSACTION: Final = frozenset({"BEGIN", "COMMIT", "ROLLBACK", "END", "ABORT"})
_IN_TRANSACTION: Final = _words(
    "TRANSACTION WORK DEFERRED IMMEDIATE EXCLUSIVE ISOLATION LEVEL SERIALIZABLE REPEATABLE READ COMMITTED UNCOMMITTED"
    " ONLY WRITE SNAPSHOT NOT DEFERRABLE AND NO CHAIN RELEASE TO CONSISTENT WITH"
)
"""Words of statements that begin and end transactions."""

_SETTABLE: Final = _words(
    "ALL ARITHABORT ANSI_NULLS BYTEA_OUTPUT CALENDAR CATALOG CLIENT_ENCODING CLIENT_MIN_MESSAGES COLLATION"
    " DATABASE DATEFORMAT DATESTYLE DEFAULT_COLLATION DEFAULT_NULL_ORDER DEFAULT_ORDER ENABLE_OPTIMIZER"
    " ENABLE_PROGRESS_BAR ENABLE_PROGRESS_BAR_PRINT ERRORS_AS_JSON EXPLAIN_OUTPUT EXTRA_FLOAT_DIGITS"
    " IEEE_FLOATING_POINT_OPS INTEGER_DIVISION INTERVALSTYLE LANGUAGE LC_MESSAGES LC_MONETARY LC_NUMERIC LC_TIME"
    " LOCK_TIMEOUT MAX_EXECUTION_TIME MAX_EXPRESSION_DEPTH MAX_MEMORY MEMORY_LIMIT NAMES NULL_ORDER"
    " ORDER_BY_NON_INTEGER_LITERAL PIVOT_LIMIT PRESERVE_IDENTIFIER_CASE PRESERVE_INSERTION_ORDER PROGRESS_BAR_TIME"
    " QUERY_TAG ROLE SCALAR_SUBQUERY_ERROR_ON_MULTIPLE_ROWS SCHEMA SEARCH_PATH SESSION_ID STATEMENT_TIMEOUT STORE"
    " STREAMING_BUFFER_SIZE THREADS TIMEZONE TIME_ZONE TIME TRANSACTION WAREHOUSE WORKER_THREADS WORK_MEM"
    " COMPUTE_POOL ORGANIZATION VARIABLE APPLICATION_NAME"
)
"""Settings that change how the session reads, and do not write files."""

_SERVER_SCOPES: Final = frozenset({"GLOBAL", "PERSIST", "PERSIST_ONLY"})
_SHOWING_PRAGMA: Final = re.compile(
    r"show\w*|\w+_(info|list|size)|collations|functions|platform|user_agent|version", re.I
)


def is_pattern(pattern: str) -> bool:
    """Return whether a policy's pattern matches any statement."""
    wanted = " ".join(pattern.upper().split())
    # GRANT is followed by privileges, and services have their own.
    granted = wanted.removeprefix("GRANT ").removeprefix("REVOKE ")
    return wanted in VERBS or wanted in _FORMS or (granted != wanted and granted.isidentifier())


def nearest_pattern(pattern: str) -> str:
    """Return the known pattern most similar to this one; "" if none is similar."""
    return "".join(nearest(" ".join(pattern.split()), sorted(VERBS | _FORMS)))


class Effects(Struct, frozen=True):
    """The effects of one statement. `names` are its names from the general to the specific: `DROP`, `DROP TABLE`."""

    writes: bool
    names: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.names[-1] if self.names else "nothing"

    def matches(self, pattern: str) -> bool:
        """Return whether a policy's pattern, such as `DROP` or `DELETE WITHOUT WHERE`, matches this statement."""
        wanted = " ".join(pattern.upper().split())
        return wanted in self.names or (wanted == "WRITE" and self.writes)


@once_per_statement
def effects(statement: Lexed) -> list[Effects]:
    """Return the effects of each statement in a text: usually one; the statements of an application, or separated by
    `;`, are separate.

    If engines read the text differently, the effects of all readings are returned.
    """
    listed: list[Effects] = []
    for given in statement.readings:
        listed += [item for part in _parts(given) if (item := _effects(part)) not in listed]
    return listed


def first_without_rows(statement: Lexed) -> str:
    """Return the name of the first statement in a text that is neither a query, nor one that shows something, nor
    INSERT, UPDATE, DELETE or MERGE … RETURNING; "" if there is none.

    If engines read the text differently, each reading counts.
    """
    parts = (part for given in statement.readings for part in _parts(given) if not _gives_rows(part))
    part = next(parts, None)
    return "" if part is None else _effects(part).name


def _gives_rows(part: Sequence[Token]) -> bool:
    part = without_parentheses(part)
    first = part[0].word if part else ""
    if first == "EXPLAIN":
        rest, runs = explained_statement(part)
        return not runs or _gives_rows(rest)
    verb = verb_of(part)
    if verb in _RETURNING:
        return "RETURNING" in words_outside(part)
    if verb in QUERIES:
        returning = any(token.word == "RETURNING" for token in part)
        return not _selects_into(verb, part) and (returning or not inner_statements(part))
    return verb in SHOWING or (first in {"PRAGMA", "COPY"} and not _effects(part).writes)


def _parts(given: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield the tokens of each statement, without the beginning and end of an application."""
    part: list[Token] = []
    for token, depth in with_depth(given):
        if token.text == ";" and not depth:
            yield from _unwrapped(part)
            part = []
        else:
            part.append(token)
    yield from _unwrapped(part)


def _unwrapped(part: list[Token]) -> Iterator[list[Token]]:
    words = [token.word for token in part[:2]]
    if words == ["BEGIN", "APPLICATION"]:
        part = part[3:]
    elif words == ["END", "APPLICATION"]:
        return
    if part:
        yield part


def _effects(part: Sequence[Token]) -> Effects:
    part = without_parentheses(part)
    first = part[0].word if part else ""
    if first == "EXPLAIN":
        rest, runs = explained_statement(part)
        if not runs:
            return Effects(False, ("EXPLAIN",))
        # The statement runs, so a pattern for it must match this one.
        ran = _effects(rest) if rest else Effects(True, ())
        return Effects(ran.writes, (*ran.names, "EXPLAIN", "EXPLAIN ANALYZE"))
    if first == "PREPARE":
        # EXECUTE does not show which statement runs, so a pattern for PREPARE must match it.
        start = next((number for number, token in enumerate(part) if token.word == "AS"), len(part))
        prepared = _effects(part[start + 1 :])
        return Effects(prepared.writes, (*prepared.names, "PREPARE"))
    inside = tuple(dict.fromkeys(name for verb, words in inner_statements(part) for name in _named(verb, words)))
    verb = verb_of(part)
    if _selects_into(verb, part):
        return Effects(True, (*inside, "SELECT", "SELECT INTO"))
    names = _named(verb or "UNKNOWN", words_outside(part))
    if verb in READS:
        return Effects(bool(inside), (*names, *inside))
    return Effects(bool(inside) or not _reads(verb, part), (*inside, *names))


def _reads(verb: str, part: Sequence[Token]) -> bool:
    """Return whether a statement that is no query reads, or changes only the session."""
    words = [token.word for token in part]
    if verb == "USE":
        return True
    if verb in _TRANSACTION or words[:2] == ["START", "TRANSACTION"]:
        named = "SAVEPOINT" in words or (verb == "ROLLBACK" and "TO" in words)
        options = [word for word in words[1 : -1 if named else None] if word != "SAVEPOINT"]
        return _IN_TRANSACTION.issuperset(options) and ("READ", "WRITE") not in pairwise(words)
    if verb in {"SET", "RESET"}:
        rest = [token for token in part[1:] if token.word not in {"SESSION", "LOCAL"}]
        setting = rest[0].value.upper() if rest else ""
        return setting in _SETTABLE and _SERVER_SCOPES.isdisjoint(words) and ("READ", "WRITE") not in pairwise(words)
    if verb == "PRAGMA":
        pragma = part[1].value if len(part) > 1 else ""
        return re.fullmatch(_SHOWING_PRAGMA, pragma) is not None and all(token.text != "=" for token in part)
    if verb == "ATTACH":
        following = [after.value.upper() for token, after in pairwise(part) if token.word == "READ_ONLY"]
        return bool(following) and {",", ")", "TRUE", "1"}.issuperset(following)
    return verb == "COPY" and ("TO", "STDOUT") in pairwise(words_outside(part))


def _selects_into(verb: str, part: Sequence[Token]) -> bool:
    return verb == "SELECT" and "INTO" in words_outside(part)


def _named(verb: str, words: Sequence[str]) -> tuple[str, ...]:
    """Return the names of a statement, by its words outside of parentheses."""
    second = words[1] if len(words) > 1 else ""
    if verb == "UPDATE" and second in UPDATE_OBJECTS and "SET" not in words:
        return verb, f"{verb} {second}"
    match verb:
        case "UPDATE" | "DELETE":
            return (verb,) if "WHERE" in words else (verb, f"{verb} WITHOUT WHERE")
        case "COPY":
            return verb, "COPY TO" if "TO" in words else "COPY FROM"
        case "CREATE" if tuple(words[1:3]) == ("OR", "REPLACE"):
            # The previous object of that name is gone, as after DROP.
            verbs = ("DROP", "CREATE", "CREATE OR REPLACE")
            return tuple(name for each in verbs for name in _with_object(each, words[1:]))
        case "TRUNCATE":
            return "DELETE", "DELETE WITHOUT WHERE", *_with_object(verb, words[1:])
        case "START" if second == "TRANSACTION":
            return (verb,)
    return _with_object(verb, words[1:]) if verb in _OBJECTS else (verb,)


def _with_object(verb: str, rest: Sequence[str]) -> tuple[str, ...]:
    words = [word for word in rest[:8] if word and word not in _FILLERS]
    if not words:
        return (verb,)
    kind = " ".join(words[:2]) if words[0] in _TWO_WORDS else words[0]
    return verb, f"{verb} {kind}"
