"""What kind of statement a text is, and whether it only reads: by its tokens, never by a substring.

What is not known is taken to write, and so are the forms of reading statements that write: SELECT … INTO, EXPLAIN
ANALYZE, a common table expression with INSERT, UPDATE, DELETE or MERGE in it.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from sqlshell.sql.tokens import Token, tokens

READS: Final = frozenset(
    {"SELECT", "VALUES", "FROM", "TABLE", "SHOW", "LIST", "DESCRIBE", "DESC", "PRINT", "SUMMARIZE"}
    | {"PIVOT", "UNPIVOT", "PIVOT_WIDER", "PIVOT_LONGER"}
)
_WRITES: Final = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "INTO"})
_IN_WITH: Final = frozenset({"AS", "NOT", "MATERIALIZED", "SEARCH", "CYCLE", "USING"})
_STEPS: Final = frozenset({"NEXTVAL", "SETVAL"})

_MAY_USE: Final = re.compile(r"\s*(?:USE\b|--|/\*)", re.IGNORECASE)
_LEAVES: Final = {
    "ORGANIZATION": ("organization", "database", "schema", "store", "compute_pool"),
    "ROLE": ("role",),
    "DATABASE": ("database", "schema"),
    "SCHEMA": ("schema",),
    "STORE": ("store",),
    "COMPUTE_POOL": ("compute_pool",),
}


def leaves(sql: str) -> tuple[str, ...]:
    """The parts of the context that a USE replaces; without a kind it names a database, a schema, or both."""
    if not _MAY_USE.match(sql):
        return ()
    said = [token.word for token in islice(tokens(sql), 3)]
    if not said or said[0] != "USE":
        return ()
    return _LEAVES.get(said[1] if len(said) == 3 else "", _LEAVES["DATABASE"])


def verb(sql: str) -> str:
    """The statement's first word in capitals; of WITH … that of the statement behind it; "" where there is none."""
    return verb_of(_bare(sql))


def verb_of(given: list[Token]) -> str:
    """The verb of a statement's tokens."""
    if not given:
        return ""
    if given[0].word == "WITH":
        return _after_with(given)
    return given[0].word


def reads_only(sql: str) -> bool:
    """Whether running it twice does no more than running it once, as far as its text tells."""
    return reads(_bare(sql))


def reads(given: list[Token]) -> bool:
    """reads_only() of a statement's tokens."""
    if not given:
        return False
    first = given[0].word
    if first == "EXPLAIN":
        return not any(token.word == "ANALYZE" for token in islice(given, 1, 6)) and not _writes(given)
    if first == "WITH":
        return _after_with(given) in READS and not _writes(given)
    if first in {"LIST", "SHOW", "DESCRIBE", "DESC", "PRINT"}:
        return True
    return first in READS and not _writes(given)


def _bare(sql: str) -> list[Token]:
    """The tokens without the parentheses that a query may begin with."""
    given = list(tokens(sql))
    start = 0
    while start < len(given) and given[start].text == "(":
        start += 1
    return given[start:]


def _writes(given: list[Token]) -> bool:
    for number, token in enumerate(given):
        word = token.word
        before = given[number - 1] if number else None
        follows = given[number + 1].text if number + 1 < len(given) else ""
        if word in _STEPS and follows == "(":
            return True
        if token.text == ";" and follows:
            return True
        if (
            word in _WRITES
            and not (before is not None and before.text in {".", "AS", "as"})
            and follows not in {"(", "."}
            and not (word == "INTO" and _names_columns(given, number))
        ):
            return True
    return False


def _names_columns(given: list[Token], number: int) -> bool:
    """Whether an INTO is that of UNPIVOT … INTO NAME a VALUE b."""
    words = [token.word for token in given[number + 1 : number + 4]]
    return len(words) == 3 and words[0] == "NAME" and words[1] != "FROM" and words[2] == "VALUE"


def _after_with(given: list[Token]) -> str:
    """The verb behind the common table expressions: the first one at their own level that no `AS (` is around."""
    depth = 0
    for number, token in enumerate(given):
        if token.text == "(":
            depth += 1
        elif token.text == ")":
            depth = max(0, depth - 1)
            follows = given[number + 1] if number + 1 < len(given) else None
            if not depth and follows is not None and follows.kind == "word" and follows.word not in _IN_WITH:
                return follows.word
            if not depth and follows is not None and follows.text == "(":
                return "SELECT"
    return ""
