"""Effects of a statement, for a policy: whether it writes, and the names by which a policy can refer to it.

Decides by tokens, never by substrings. Unknown statements count as writing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from sqlshell.spelling import nearest
from sqlshell.sql.analysis.kinds import VERBS, are_repeatable, explained_statement, verb_of, without_parentheses
from sqlshell.sql.analysis.lexed import Lexed, once_per_statement
from sqlshell.sql.analysis.read_only_forms import is_read_only_form
from sqlshell.sql.analysis.tokens import Token
from sqlshell.sql.analysis.writes import (
    QUERIES,
    SHOWING,
    Call,
    ambiguity,
    changes_session_only,
    in_transaction,
    write_reasons,
)
from sqlshell.sql.keywords import DROP_OBJECTS, UPDATE_OBJECTS

_SESSION: Final = frozenset({"USE", "RESET", "BEGIN", "COMMIT", "ROLLBACK", "END", "ABORT", "START"})
"""Verbs that change only the session; some have other forms, which are checked below."""

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
_DESCRIBED: Final = frozenset({"CREATE", "INSERT"})
_INNER: Final = frozenset({"COPY", "DELETE", "INSERT", "MERGE", "TRUNCATE", "UPDATE", "DROP", "CREATE", "ALTER"})


def is_pattern(pattern: str) -> bool:
    """Whether a policy's pattern matches any statement."""
    wanted = " ".join(pattern.upper().split())
    # GRANT is followed by privileges, and services have their own.
    granted = wanted.removeprefix("GRANT ").removeprefix("REVOKE ")
    return wanted in VERBS or wanted in _FORMS or (granted != wanted and granted.isidentifier())


def nearest_pattern(pattern: str) -> str:
    """The known pattern most similar to this one; "" if none is similar."""
    return "".join(nearest(" ".join(pattern.split()), sorted(VERBS | _FORMS)))


class Effects(Struct, frozen=True):
    """The effects of one statement. `names` are its names from the general to the specific: `DROP`, `DROP TABLE`."""

    writes: bool
    names: tuple[str, ...]
    reason: str = ""
    """The part of the statement that may write, if the statement's name does not show it."""

    @property
    def name(self) -> str:
        return self.names[-1] if self.names else "nothing"

    def matches(self, pattern: str) -> bool:
        """Whether a policy's pattern, such as `DROP` or `DELETE WITHOUT WHERE`, matches this statement."""
        wanted = " ".join(pattern.upper().split())
        return wanted in self.names or (wanted == "WRITE" and self.writes)


@once_per_statement
def effects(statement: Lexed) -> list[Effects]:
    """The effects of each statement in a text: usually one; the statements of an application, or separated by `;`, are
    separate.

    If engines read the text differently, the effects of all readings are returned.
    """
    listed: list[Effects] = []
    for given in statement.readings:
        listed += [item for part in _parts(given) if (item := _effects(part)) not in listed]
    if listed and (reason := ambiguity(statement)):
        listed[0] = Effects(True, listed[0].names, reason)
    return listed


def first_without_rows(statement: Lexed) -> str:
    """The name of the first statement in a text that is neither a query, nor one that shows something, nor INSERT,
    UPDATE, DELETE or MERGE … RETURNING; "" if there is none.

    A query may call unknown functions. If engines read the text differently, each reading counts.
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
    if first in SHOWING:
        return True
    verb = verb_of(part)
    if verb in _RETURNING:
        return "RETURNING" in _outside(part)
    if verb in QUERIES:
        returning = any(token.word == "RETURNING" for token in part)
        return "INTO" not in set(write_reasons(part)) and (returning or _INNER.isdisjoint(_inside(part)))
    return first != "ATTACH" and is_read_only_form(part)


def _parts(given: Sequence[Token]) -> Iterator[list[Token]]:
    part: list[Token] = []
    depth = 0
    for token in given:
        if token.kind == "sign" and token.text in "()":
            depth = max(0, depth + (1 if token.text == "(" else -1))
        if token.kind == "sign" and token.text == ";" and not depth:
            yield from _unwrapped(part)
            part = []
        else:
            part.append(token)
    yield from _unwrapped(part)


def _unwrapped(part: list[Token]) -> Iterator[list[Token]]:
    """The tokens without the beginning and end of an application."""
    words = [token.word for token in part[:2]]
    if words == ["BEGIN", "APPLICATION"]:
        part = part[3:]
    elif words == ["END", "APPLICATION"]:
        return
    if part:
        yield part


def _effects(part: Sequence[Token]) -> Effects:
    part = without_parentheses(part)
    if part and part[0].word == "EXPLAIN":
        rest, runs = explained_statement(part)
        if not runs:
            return _planned("EXPLAIN", rest)
        # The statement runs, so a pattern for it must match this one.
        ran = _plain_effects(rest) if rest else Effects(True, ())
        return Effects(not are_repeatable(part), (*ran.names, "EXPLAIN", "EXPLAIN ANALYZE"), ran.reason)
    if part and part[0].word == "PREPARE" and (rest := _prepared(part)):
        # EXECUTE does not show which statement runs, so a pattern for PREPARE must match it.
        effect = _plain_effects(part)
        within = dict.fromkeys([*_plain_effects(rest).names, *effect.names])
        names = (*(name for name in within if name != "PREPARE"), "PREPARE")
        return Effects(not are_repeatable(rest), names, next(write_reasons(rest), ""))
    return _plain_effects(part)


def _plain_effects(part: Sequence[Token]) -> Effects:
    words = [token.word for token in part]
    first = words[0] if words else ""
    verb = verb_of(part)
    if first in {"BEGIN", "START", "SET"} and ("READ", "WRITE") in pairwise(words):
        return Effects(True, (first,), "READ WRITE")
    if first in _SESSION and _session_alone(words, part):
        return Effects(False, (first,))
    if first == "SET" and len(words) > 1 and words[1] != "DEFAULT" and changes_session_only(words, part):
        return Effects(False, ("SET",))
    if is_read_only_form(part):
        return Effects(False, ("COPY", "COPY TO") if first == "COPY" else (first,))
    if first in {"DESCRIBE", "DESC"} and words[1:2] and words[1] in _DESCRIBED:
        # DESCRIBE CREATE and DESCRIBE INSERT show what the statement would do, and change nothing.
        return _planned(first, part)
    inside = _inside(part)
    if verb == "UPDATE" and words[1:2] and words[1] in UPDATE_OBJECTS and "SET" not in _outside(part):
        return Effects(True, (*inside, verb, f"{verb} {words[1]}"))
    if verb in {"DELETE", "UPDATE"}:
        whole = "WHERE" not in _outside(part)
        return Effects(True, (*inside, verb, f"{verb} WITHOUT WHERE") if whole else (*inside, verb))
    if verb == "COPY":
        out = "TO" in _outside(part)
        return Effects(True, (*inside, "COPY", "COPY TO" if out else "COPY FROM"))
    if first == "CREATE" and words[1:3] == ["OR", "REPLACE"]:
        # The previous object of that name is gone, as after DROP.
        verbs = ("DROP", "CREATE", "CREATE OR REPLACE")
        return Effects(True, tuple(name for verb in verbs for name in _named(verb, words[1:])))
    if first == "TRUNCATE":
        return Effects(True, ("DELETE", "DELETE WITHOUT WHERE", *_named(first, words[1:])))
    if first in _OBJECTS:
        return Effects(True, _named(first, words[1:]))
    if are_repeatable(part):
        return Effects(False, (verb or first,))
    reason = next(write_reasons(part), "")
    if verb == "SELECT" and "INTO" in _outside(part):
        return Effects(True, (*inside, "SELECT", "SELECT INTO"))
    return Effects(True, (verb or first or "UNKNOWN", *inside), reason)


def _planned(name: str, part: Sequence[Token]) -> Effects:
    """What a statement does whose plan alone is asked for: its functions may be called for that."""
    called = next((item for item in write_reasons(part) if isinstance(item, Call)), "")
    return Effects(bool(called), (name,), called)


def _prepared(part: Sequence[Token]) -> Sequence[Token]:
    """The statement of a PREPARE."""
    start = next((number for number, token in enumerate(part) if token.word == "AS"), len(part))
    return part[start + 1 :]


def _inside(part: Sequence[Token]) -> tuple[str, ...]:
    """The effects of common table expressions and of statements in other parentheses."""
    names: dict[str, None] = {}
    opened: list[tuple[str, list[str]]] = []
    for number, token in enumerate(part):
        if token.kind == "sign" and token.text == "(":
            word = part[number + 1].word if number + 1 < len(part) else ""
            opened.append((word if number and word in _INNER else "", []))
        elif token.kind == "sign" and token.text == ")" and opened:
            names |= dict.fromkeys(_inner(*opened.pop()))
        elif opened and token.word:
            opened[-1][1].append(token.word)
    for verb, words in opened:
        names |= dict.fromkeys(_inner(verb, words))
    return tuple(names)


def _inner(verb: str, words: Sequence[str]) -> tuple[str, ...]:
    """The names of the statement in a parenthesis, by the words directly in it."""
    match verb:
        case "UPDATE" | "DELETE":
            return (verb,) if "WHERE" in words else (verb, f"{verb} WITHOUT WHERE")
        case "TRUNCATE":
            return "DELETE", "DELETE WITHOUT WHERE", *_named(verb, words[1:])
        case "COPY":
            return verb, "COPY TO" if "TO" in words else "COPY FROM"
        case "INSERT" | "MERGE":
            return (verb,)
        case "":
            return ()
    return _named(verb, words[1:])


def _session_alone(words: Sequence[str], part: Sequence[Token]) -> bool:
    match words[0]:
        case "USE":
            return all(token.kind != "sign" or token.text in ".:-" for token in part)
        case "RESET":
            return changes_session_only(words, part)
        case "START":
            return words[1:2] == ["TRANSACTION"] and in_transaction(words)
    return in_transaction(words)


def _outside(part: Sequence[Token]) -> list[str]:
    """The words outside of brackets."""
    depth = 0
    words = []
    for token in part:
        if token.kind == "sign" and token.text in "()":
            depth = max(0, depth + (1 if token.text == "(" else -1))
        elif not depth and token.word:
            words.append(token.word)
    return words


def _named(first: str, rest: Sequence[str]) -> tuple[str, ...]:
    words = [word for word in rest[:8] if word and word not in _FILLERS]
    if not words:
        return (first,)
    kind = " ".join(words[:2]) if words[0] in _TWO_WORDS else words[0]
    return first, f"{first} {kind}"
