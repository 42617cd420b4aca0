"""The kind of a statement: its verb, and whether it may be sent twice. Decides by tokens, never by substrings."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Final

from sqlshell.context import BELONGING
from sqlshell.sql import keywords
from sqlshell.sql.analysis.lexed import Lexed, once_per_statement
from sqlshell.sql.analysis.tokens import Token, with_depth

QUERIES: Final = frozenset({"SELECT", "VALUES", "FROM", "TABLE", "PIVOT", "UNPIVOT", "PIVOT_WIDER", "PIVOT_LONGER"})
SHOWING: Final = frozenset({"SHOW", "LIST", "DESCRIBE", "DESC", "PRINT", "SUMMARIZE", "CAN", "TEST"})
READS: Final = QUERIES | SHOWING
"""Verbs of statements that read."""

_INNER: Final = frozenset({"COPY", "DELETE", "INSERT", "MERGE", "TRUNCATE", "UPDATE", "DROP", "CREATE", "ALTER"})
"""Verbs of statements that write, and may be in parentheses."""

_IN_WITH: Final = frozenset({"AS", "NOT", "MATERIALIZED", "SEARCH", "CYCLE", "USING"})

VERBS: Final = frozenset(words.split()[0] for words in (*keywords.STATEMENTS, *keywords.LOCAL_STATEMENTS)) | {
    *("ABORT", "COMMENT", "DEALLOCATE", "EXECUTE", "IMPORT", "PREPARE", "START", "STOP"),
}
"""First words of statements."""
_EXPLAINED: Final = VERBS | {"SELECT", "FROM", "VALUES", "WITH", "TABLE", "SHOW", "MERGE", "REPLACE", "INSERT"}

_MAY_USE: Final = re.compile(r"\s*(?:USE\b|--|/\*)", re.IGNORECASE)


@once_per_statement
def replaced_parts(statement: Lexed) -> tuple[str, ...]:
    """Return the parts of the context that a USE replaces; without a kind the name is that of a database, a schema, or
    both.
    """
    if not _MAY_USE.match(statement.text):
        return ()
    words = [token.word for token in statement.first(3)[:3]]
    if not words or words[0] != "USE":
        return ()
    part = words[1].lower() if len(words) == 3 and words[1] in keywords.CONTEXT_PARTS else "database"
    return part, *BELONGING.get(part, ())


@once_per_statement
def verb(statement: Lexed) -> str:
    """Return the first word of a statement in capitals; for WITH … that of the statement after it; "" if there is
    none."""
    first = statement.first(1)
    return (
        first[0].word if first and first[0].word not in {"", "WITH"} else verb_of(without_parentheses(statement.tokens))
    )


def verb_of(given: Sequence[Token]) -> str:
    """Return the verb of a statement's tokens."""
    if not given:
        return ""
    if given[0].word == "WITH":
        return _after_with(given)
    return given[0].word


@once_per_statement
def is_repeatable(statement: Lexed) -> bool:
    """Return whether running it twice has the same effect as running it once, as far as its text shows: one statement
    that reads, and calls only functions that completion knows by itself.
    """
    first = statement.first(1)
    if not first or (first[0].text != "(" and first[0].word not in READS | {"EXPLAIN", "WITH"}):
        # Nothing behind it makes it read.
        return False
    return all(_repeats(without_parentheses(given)) for given in statement.readings)


def _repeats(given: Sequence[Token]) -> bool:
    if given and given[0].word == "EXPLAIN":
        inner, runs = explained_statement(given)
        return bool(inner) and (_repeats(inner) if runs else True)
    verb = verb_of(given)
    if verb not in READS or inner_statements(given) or (verb == "SELECT" and "INTO" in words_outside(given)):
        return False
    if any(token.text == ";" and token.kind == "sign" for token in given[:-1]):
        return False
    return not any(calls_unknown(given, number) for number, token in enumerate(given) if token.text == "(")


@functools.cache
def _known() -> frozenset[str]:
    functions = (name.upper() for name in (*keywords.FUNCTIONS, *keywords.SIGNATURES))
    return keywords.KEYWORDS | frozenset(keywords.TYPES) | frozenset(functions)


def calls_unknown(given: Sequence[Token], number: int) -> bool:
    """Return whether the parenthesis at `number` may hold the arguments of a function that is not known to only read:
    the name before it is not a word of keywords.py."""
    before = given[number - 1] if number else None
    return before is not None and before.kind in {"word", "name"} and before.value.upper() not in _known()


def inner_statements(part: Sequence[Token]) -> list[tuple[str, list[str]]]:
    """Return the statements that write in parentheses, as common table expressions do: their verbs, and their words
    outside of further parentheses."""
    found: list[tuple[str, list[str]]] = []
    opened: list[tuple[str, list[str]]] = []
    for number, token in enumerate(part):
        if token.kind == "sign" and token.text == "(":
            word = part[number + 1].word if number + 1 < len(part) else ""
            opened.append((word if number and word in _INNER else "", []))
        elif token.kind == "sign" and token.text == ")" and opened:
            found.append(opened.pop())
        elif opened and token.word:
            opened[-1][1].append(token.word)
    return [each for each in (*found, *opened) if each[0]]


def words_outside(part: Sequence[Token]) -> list[str]:
    """Return the words outside of parentheses."""
    return [token.word for token, depth in with_depth(part) if not depth and token.word]


def explained_statement(part: Sequence[Token]) -> tuple[Sequence[Token], bool]:
    """Return the statement after EXPLAIN and its options, and whether the options run it (ANALYZE).

    Unknown options count as running it. The statement is empty if none is found.
    """
    runs = False
    for number, (token, depth) in enumerate(with_depth(part[1:]), 1):
        if token.text in {"(", ")"}:
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
    """Return the tokens without the opening parentheses of a query."""
    start = 0
    while start < len(given) and given[start].text == "(":
        start += 1
    return given[start:]


def _after_with(given: Sequence[Token]) -> str:
    """Return the verb after the common table expressions: the first one at their level that is not inside `AS (`."""
    for (token, depth), follows in zip(with_depth(given), given[1:], strict=False):
        if token.text == ")" and not depth:
            if follows.kind == "word" and follows.word not in _IN_WITH:
                return follows.word
            if follows.text == "(":
                return "SELECT"
    return ""
