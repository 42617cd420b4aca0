"""The kind of a statement, and whether it only reads. Decides by tokens, never by substrings.

Anything unknown counts as writing; writes.py examines statements that begin like those that read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sqlshell.sql.analysis.lexed import Lexed, once_per_statement
from sqlshell.sql.analysis.tokens import Token
from sqlshell.sql.analysis.writes import READS, ambiguity, write_reasons
from sqlshell.sql.keywords import LOCAL_STATEMENTS, STATEMENTS

_IN_WITH: Final = frozenset({"AS", "NOT", "MATERIALIZED", "SEARCH", "CYCLE", "USING"})

VERBS: Final = frozenset(words.split()[0] for words in (*STATEMENTS, *LOCAL_STATEMENTS)) | {
    *("ABORT", "COMMENT", "DEALLOCATE", "EXECUTE", "IMPORT", "PREPARE", "START", "STOP"),
}
"""First words of statements."""
_EXPLAINED: Final = VERBS | {"SELECT", "FROM", "VALUES", "WITH", "TABLE", "SHOW", "MERGE", "REPLACE", "INSERT"}

_MAY_READ: Final = READS | {"EXPLAIN", "WITH"}
"""First words of statements that may read."""

_MAY_USE: Final = re.compile(r"\s*(?:USE\b|--|/\*)", re.IGNORECASE)
_LEAVES: Final = {
    "ORGANIZATION": ("organization", "database", "schema", "store", "compute_pool"),
    "ROLE": ("role",),
    "DATABASE": ("database", "schema"),
    "SCHEMA": ("schema",),
    "STORE": ("store",),
    "COMPUTE_POOL": ("compute_pool",),
}


@once_per_statement
def replaced_parts(statement: Lexed) -> tuple[str, ...]:
    """The parts of the context that a USE replaces; without a kind the name is that of a database,
    a schema, or both.
    """
    if not _MAY_USE.match(statement.text):
        return ()
    words = [token.word for token in statement.first(3)[:3]]
    if not words or words[0] != "USE":
        return ()
    return _LEAVES.get(words[1] if len(words) == 3 else "", _LEAVES["DATABASE"])


@once_per_statement
def verb(statement: Lexed) -> str:
    """The first word of a statement in capitals; for WITH … that of the statement after it; "" if there is none."""
    first = statement.first(1)
    return (
        first[0].word if first and first[0].word not in {"", "WITH"} else verb_of(without_parentheses(statement.tokens))
    )


def verb_of(given: Sequence[Token]) -> str:
    """The verb of a statement's tokens."""
    if not given:
        return ""
    if given[0].word == "WITH":
        return _after_with(given)
    return given[0].word


@once_per_statement
def is_repeatable(statement: Lexed) -> bool:
    """Whether running it twice has the same effect as running it once, as far as its text shows."""
    first = statement.first(1)
    if not first or (first[0].text != "(" and first[0].word not in _MAY_READ):
        # Nothing behind it makes it read.
        return False
    return not ambiguity(statement) and all(are_repeatable(without_parentheses(given)) for given in statement.readings)


def are_repeatable(given: Sequence[Token]) -> bool:
    """is_repeatable() of a statement's tokens."""
    if not given:
        return False
    first = given[0].word
    if first == "EXPLAIN":
        inner, runs = explained_statement(given)
        return bool(inner) and are_repeatable(inner) if runs else not any(write_reasons(given))
    verb = _after_with(given) if first == "WITH" else first
    return verb in READS and not any(write_reasons(given))


def explained_statement(part: Sequence[Token]) -> tuple[Sequence[Token], bool]:
    """The statement after EXPLAIN and its options, and whether the options run it (ANALYZE).

    Unknown options count as running it. The statement is empty if none is found.
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


def without_parentheses(given: Sequence[Token]) -> Sequence[Token]:
    """The tokens without the opening parentheses of a query."""
    start = 0
    while start < len(given) and given[start].text == "(":
        start += 1
    return given[start:]


def _after_with(given: Sequence[Token]) -> str:
    """The verb after the common table expressions: the first verb at their level that is not inside `AS (`."""
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
