"""What kind of statement a text is, and whether it only reads: by its tokens, never by a substring.

Anything unknown counts as writing; writes.py examines statements that begin like those that read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Final

from sqlshell.sql.analysis.tokens import Token, tokens
from sqlshell.sql.analysis.writes import READS, ambiguity, tokenizations, write_reasons
from sqlshell.sql.keywords import LOCAL_STATEMENTS, STATEMENTS

_IN_WITH: Final = frozenset({"AS", "NOT", "MATERIALIZED", "SEARCH", "CYCLE", "USING"})

VERBS: Final = frozenset(words.split()[0] for words in (*STATEMENTS, *LOCAL_STATEMENTS)) | {
    *("ABORT", "COMMENT", "DEALLOCATE", "EXECUTE", "IMPORT", "PREPARE", "START", "STOP"),
}
"""First words of statements."""
_EXPLAINED: Final = VERBS | {"SELECT", "FROM", "VALUES", "WITH", "TABLE", "SHOW", "MERGE", "REPLACE", "INSERT"}

_MAY_USE: Final = re.compile(r"\s*(?:USE\b|--|/\*)", re.IGNORECASE)
_LEAVES: Final = {
    "ORGANIZATION": ("organization", "database", "schema", "store", "compute_pool"),
    "ROLE": ("role",),
    "DATABASE": ("database", "schema"),
    "SCHEMA": ("schema",),
    "STORE": ("store",),
    "COMPUTE_POOL": ("compute_pool",),
}


def replaced_parts(sql: str) -> tuple[str, ...]:
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


def verb_of(given: Sequence[Token]) -> str:
    """The verb of a statement's tokens."""
    if not given:
        return ""
    if given[0].word == "WITH":
        return _after_with(given)
    return given[0].word


def reads_only(sql: str) -> bool:
    """Whether running it twice does no more than running it once, as far as its text tells."""
    found = tokenizations(sql)
    return not ambiguity(sql, found[0]) and all(reads(_unwrapped(given)) for given in found)


def reads(given: Sequence[Token]) -> bool:
    """reads_only() of a statement's tokens."""
    if not given:
        return False
    first = given[0].word
    if first == "EXPLAIN":
        inner, runs = explained(given)
        return bool(inner) and reads(inner) if runs else not any(write_reasons(given))
    verb = _after_with(given) if first == "WITH" else first
    return verb in READS and not any(write_reasons(given))


def explained(part: Sequence[Token]) -> tuple[Sequence[Token], bool]:
    """The statement behind EXPLAIN and its options, and whether these have it run (ANALYZE).

    Unknown options may have it run. The statement is empty where none is found.
    """
    depth = 0
    runs = False
    for number, token in enumerate(part[1:], 1):
        if token.kind == "sign" and token.text in "()":
            depth = max(0, depth + (1 if token.text == "(" else -1))
            if depth and _starts(part, number + 1):
                return part[number + 1 :], runs
        elif not depth and _starts(part, number):
            return part[number:], runs
        elif token.word in {"ANALYZE", "ANALYSE"}:
            runs = True
    return part[len(part) :], runs or len(part) > 1


def _starts(part: Sequence[Token], number: int) -> bool:
    word = part[number].word if number < len(part) else ""
    return word in _EXPLAINED and word not in {"ANALYZE", "EXPLAIN"}


def _bare(sql: str) -> Sequence[Token]:
    return _unwrapped(list(tokens(sql)))


def _unwrapped(given: Sequence[Token]) -> Sequence[Token]:
    """The tokens without the parentheses that a query may begin with."""
    start = 0
    while start < len(given) and given[start].text == "(":
        start += 1
    return given[start:]


def _after_with(given: Sequence[Token]) -> str:
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
