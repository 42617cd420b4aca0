"""Whether a statement's text may write. Policies, retries and batches all use this decision.

Anything unknown may write: functions, common table expressions, settings, characters that are whitespace to one engine
and letters to another. If engines read a text differently (a backslash before a quote, a comment in a comment), it is
read in each of these ways, and may write if one of them does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from sqlshell.sql.analysis.lexed import Lexed, once_per_statement
from sqlshell.sql.analysis.read_only_functions import is_read_only_function
from sqlshell.sql.analysis.tokens import Token
from sqlshell.sql.keywords import DROP_OBJECTS, TYPES
from sqlshell.sql.script.blanks import ambiguous_characters, has_unicode_blanks


def _each(words: str) -> frozenset[str]:
    return frozenset(words.split())


QUERIES: Final = frozenset({"SELECT", "VALUES", "FROM", "TABLE", "PIVOT", "UNPIVOT", "PIVOT_WIDER", "PIVOT_LONGER"})
SHOWING: Final = frozenset({"SHOW", "LIST", "DESCRIBE", "DESC", "PRINT", "SUMMARIZE"})
READS: Final = QUERIES | SHOWING
CHANGES: Final = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "INTO"})
_STATEMENTS: Final = _each(
    "ABORT ALTER ANALYZE ATTACH BEGIN CALL CHECKPOINT CLUSTER COMMENT COMMIT COPY CREATE DEALLOCATE DELETE DETACH"
    " DISCARD DO DROP EXEC EXECUTE EXPLAIN EXPORT GRANT IMPORT INSERT INSTALL LOAD LOCK MERGE NOTIFY PRAGMA PREPARE"
    " REFRESH REINDEX RELEASE RENAME REPLACE RESET RESTART REVOKE ROLLBACK SAVEPOINT SET START STOP TERMINATE"
    " TRUNCATE UNLOAD UNLOCK UPDATE UPSERT USE VACUUM"
)
"""Words that begin a statement in parentheses that does not only read."""

_BODIES: Final = READS | {"WITH", "PARTITION", "ORDER", "ROWS", "RANGE", "GROUPS"}
"""Words that may follow `AS (` in a query: a common table expression, or a window."""

_CONTINUATION_WORDS: Final = _each(
    "AND AS ASC BETWEEN COLLATE DESC EXCEPT FILTER FROM GLOB GROUP HAVING ILIKE IN INTERSECT IS ISNULL LIKE LIMIT NOT"
    " NOTNULL NULLS OR ORDER OVER SIMILAR UNION WHERE"
)
"""Tokens that follow a column that is named like a statement."""

_WORDS_BEFORE_PARENTHESIS: Final = _each(
    "ALL ANALYSE ANALYZE AND ANTI ANY ARRAY AS ASC ASOF BETWEEN BY CASE COLUMNS CUBE CYCLE DESC DESCRIBE DISTINCT ELSE"
    " END ESCAPE EXCEPT EXCLUDE EXISTS EXPLAIN FILTER FROM GLOB GROUP GROUPING HAVING IGNORE ILIKE IN INNER INTERSECT"
    " INTERVAL INTO IS JOIN KEY LATERAL LIKE LIMIT MATCH_RECOGNIZE MATERIALIZED MEASURES MINUS NOT OF OFFSET ON OR"
    " ORDER ORDINALITY OVER OVERLAPS PARTITION PATTERN PIVOT POSITIONAL QUALIFY RECURSIVE RENAME REPLACE RESPECT"
    " RETURNING ROLLUP SELECT SETS SHOW SIMILAR SOME SUMMARIZE TABLE TABLESAMPLE THEN TO UNION UNPIVOT USING VALUES"
    " VERBOSE WHEN WHERE WINDOW WITH WITHIN WITHOUT"
)
"""Words that may precede a parenthesis that is not a call."""

_TAKES_NUMBERS: Final = frozenset(TYPES) | _each(
    "BIT CHARACTER DEC DATETIME ENUM FLOAT4 FLOAT8 LIST NCHAR NVARCHAR BPCHAR PRECISION UNION VARYING VECTOR VARIANT"
    " BINARY GEOMETRY"
)
_EXPRESSION_NEXT: Final = _WORDS_BEFORE_PARENTHESIS | _each(
    "AT BOTH CAST COLLATE CROSS CURRENT DIV ESCAPE FETCH FIRST FOLLOWING FOR FULL LAST LEADING LEFT MEMBER MOD NATURAL"
    " NEXT OPERATOR OUTER PRECEDING PRIOR QUALIFY RANGE REGEXP RIGHT RLIKE ROWS SEMI SET TRAILING VARIADIC XOR ZONE"
    " ROW START SOUNDS BINARY LAMBDA SAMPLE ONLY CALL"
)
"""Words after which a function may be called: a name after any other word is an alias and its columns."""

_SETTABLE: Final = _each(
    "ARITHABORT ANSI_NULLS BYTEA_OUTPUT CALENDAR CATALOG CLIENT_ENCODING CLIENT_MIN_MESSAGES COLLATION"
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
_IN_TRANSACTION: Final = _each(
    "TRANSACTION WORK DEFERRED IMMEDIATE EXCLUSIVE ISOLATION LEVEL SERIALIZABLE REPEATABLE READ COMMITTED UNCOMMITTED"
    " ONLY WRITE SNAPSHOT NOT DEFERRABLE AND NO CHAIN RELEASE TO SAVEPOINT CONSISTENT WITH"
)
_MADE: Final = frozenset(DROP_OBJECTS) | {"VIEW", "SEQUENCE", "TYPE", "MACRO", "MATERIALIZED", "OR", "TEMP", "UNIQUE"}
SESSION_FUNCTIONS: Final = frozenset({"setseed"})
"""Functions that change only the session."""

_OPENING: Final = re.compile(r"['\"`$]|/\*|--")


@once_per_statement
def ambiguity(statement: Lexed) -> str:
    """Why engines may read a text differently: a character that may end a word, line or comment; ""
    if there is none.
    """
    sql = statement.text
    unknown = ambiguous_characters(sql)
    executed = "/*!" in sql
    mixed = has_unicode_blanks(sql)
    hashes = "#" in sql and "\n" in sql
    looked = -1
    if not (unknown or executed or mixed or hashes):
        return ""
    end = 0
    for token in statement:
        between = sql[end : token.start]
        if executed and "/*!" in between:
            return "ambiguous: contains a comment that some engines execute"
        written = token.text if token.kind in {"word", "sign", "number"} else ""
        for char in (*between, *written) if unknown else ():
            if char in unknown:
                return f"an ambiguous character (U+{ord(char):04X})"
        if (
            mixed
            and between
            and between[-1] not in " \t\n\r"
            and token.text[0] in "$eEuU"
            and has_unicode_blanks(between[-1])
        ):
            follows = sql[token.end : token.end + 1]
            if token.kind == "string" or follows in {"'", "&", "$"}:
                return "ambiguous: contains a string after a space that some engines treat as a letter"
        if hashes and token.text == "#" and token.start > looked:
            # For some engines the rest of the line is a comment, so that brackets in it do not count.
            looked = sql.find("\n", token.end)
            if looked >= 0 and _OPENING.search(sql, token.end, looked):
                return "ambiguous: contains a # that some engines treat as a comment"
        end = token.end
    rest = sql[end:]
    if executed and "/*!" in rest:
        return "ambiguous: contains a comment that some engines execute"
    for char in rest if unknown else "":
        if char in unknown:
            return f"an ambiguous character (U+{ord(char):04X})"
    return ""


class Call(str):
    """A reason that is a function call."""

    __slots__ = ()


def write_reasons(given: Sequence[Token]) -> Iterator[str]:
    """The parts of a query that may write, described in words, in order."""
    count = len(given)
    unpivots = any(token.word.startswith("UNPIVOT") or token.word == "PIVOT_LONGER" for token in given)
    closing = _closing(given)
    for number, token in enumerate(given):
        before = given[number - 1] if number else None
        after = given[number + 1] if number + 1 < count else None
        follows = after.text if after is not None else ""
        word = token.word
        if word:
            named = before is not None and (before.text == "." or before.word == "AS")
            if word in {"NEXTVAL", "SETVAL"} and not (before is not None and before.word == "AS"):
                yield Call(word.lower())
            elif named:
                pass
            elif word in CHANGES and follows not in {"(", "."}:
                if not (word == "INTO" and unpivots and _names_columns(given, number)):
                    yield word
            elif (word == "NEXT" and _words(given, number, 3) == ["NEXT", "VALUE", "FOR"]) or (
                word == "FOR" and after is not None and after.word in {"SHARE", "NO", "KEY"}
            ):
                yield " ".join(_words(given, number, 2))
            elif word in {"DROP", "CREATE", "ALTER", "TRUNCATE"} and before and after and after.word in _MADE:
                if before.word == "SHOW":
                    continue
                yield f"{word} {after.word}"
        if token.text == ";" and token.kind == "sign" and after is not None:
            yield "a second statement"
        if token.kind == "sign" and token.text == "(":
            if after is not None and (wrong := _begins(given, number, after)):
                yield wrong
            name = _called(given, number, closing) if before is not None else ""
            if name and not is_read_only_function(name) and name.lower() not in SESSION_FUNCTIONS:
                yield Call(f"the function {name}")


def changes_session_only(statement_words: Sequence[str], given: Sequence[Token]) -> bool:
    """Whether SET or RESET changes only settings of the session that affect how it reads."""
    words = list(statement_words[1:])
    while words and words[0] in {"SESSION", "LOCAL"}:
        words = words[1:]
    if given[0].word == "RESET" and words == ["ALL"]:
        return True
    if words and not words[0] and given[-1 if len(given) < 2 else 1].kind == "name":
        words = [given[1].value.upper()]
    name = words[0] if words else ""
    return name in _SETTABLE and _SERVER_SCOPES.isdisjoint(words) and not any(write_reasons(given))


def in_transaction(words: Sequence[str]) -> bool:
    """Whether BEGIN, COMMIT or a similar statement contains nothing but its options."""
    rest = list(words[1:])
    if "SAVEPOINT" in rest or (words[0] == "ROLLBACK" and "TO" in rest):
        rest = rest[:-1]
    return all(word in _IN_TRANSACTION or word == "" for word in rest) and not (words[0] != "START" and "" in rest)


def _begins(given: Sequence[Token], number: int, first: Token) -> str:
    """The first word in the parenthesis at `number`, if it writes or is unknown."""
    before = given[number - 1] if number else None
    word = first.word
    if before is not None and before.word in {"AS", "MATERIALIZED"}:
        if word in _BODIES or first.text in {"(", ")"}:
            return ""
        return word or "an unknown clause of WITH"
    if word not in _STATEMENTS:
        return ""
    after = given[number + 2] if number + 2 < len(given) else None
    if after is None or after.kind == "sign" or after.word in _CONTINUATION_WORDS:
        return ""
    return word


def _called(given: Sequence[Token], number: int, closing: dict[int, int]) -> str:
    """The function whose arguments are in the parenthesis at `number`, "" if it is not a call."""
    name = given[number - 1]
    before = given[number - 2] if number > 1 else None
    if name.kind not in {"word", "name"}:
        return ""
    if name.kind == "word" and (name.word in _WORDS_BEFORE_PARENTHESIS or name.word in _TAKES_NUMBERS):
        return ""
    if before is None:
        # `LIST (` and similar: words that begin a statement are checked as such.
        return "" if name.word in READS else name.value
    if before.text == ".":
        return name.value
    if before.kind == "number" or before.word in {"AS", "TABLESAMPLE", "SAMPLE", "WITH", "RECURSIVE"}:
        return ""
    if before.text == "," and _is_defined(given, number, closing):
        return ""
    if _plain_list(given, number) and (
        before.text in {")", "]"}
        or before.kind in {"name", "string"}
        or (before.kind == "word" and before.word not in _EXPRESSION_NEXT)
    ):
        return ""
    return name.value


def _plain_list(given: Sequence[Token], number: int) -> bool:
    """Whether a parenthesis contains only names, such as the columns of an alias."""
    wanted = True
    for token in given[number + 1 : number + 500]:
        if token.text == ")":
            return not wanted
        if wanted != (token.kind in {"word", "name"}) or (not wanted and token.text != ","):
            return False
        wanted = not wanted
    return False


def _is_defined(given: Sequence[Token], number: int, closing: dict[int, int]) -> bool:
    """Whether the names at `number` are the columns of another common table expression."""
    end = closing.get(number)
    if end is None or not _plain_list(given, number):
        return False
    words = [token.word or token.text for token in given[end + 1 : end + 6]]
    for wanted in (["AS"], ["AS", "MATERIALIZED"], ["AS", "NOT", "MATERIALIZED"]):
        size = len(wanted)
        if words[:size] == wanted and words[size : size + 1] == ["("]:
            body = words[size + 1 : size + 2]
            return body in (["SELECT"], ["WITH"], ["FROM"], ["TABLE"], ["("]) or words[size + 1 : size + 3] == [
                "VALUES",
                "(",
            ]
    return False


def _closing(given: Sequence[Token]) -> dict[int, int]:
    """The position at which each parenthesis is closed."""
    closing: dict[int, int] = {}
    opened: list[int] = []
    for number, token in enumerate(given):
        if token.kind == "sign":
            if token.text == "(":
                opened.append(number)
            elif token.text == ")" and opened:
                closing[opened.pop()] = number
    return closing


def _words(given: Sequence[Token], number: int, most: int) -> list[str]:
    return [token.word for token in given[number : number + most]]


def _names_columns(given: Sequence[Token], number: int) -> bool:
    """Whether an INTO belongs to UNPIVOT … INTO NAME a VALUE b."""
    words = _words(given, number + 1, 3)
    return len(words) == 3 and words[0] == "NAME" and words[1] != "FROM" and words[2] == "VALUE"
