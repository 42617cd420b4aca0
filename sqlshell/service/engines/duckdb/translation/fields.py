"""`s->field` of a struct, in a syntax in which DuckDB's arrow belongs to JSON and lambdas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlshell.service.engines.duckdb.translation.text import BracketedTokens, Edits
from sqlshell.sql.identifiers import literal

_CLOSING: Final = frozenset(")]}")
_NOT_VALUES: Final = frozenset(
    {
        "ALL", "AND", "AS", "BETWEEN", "BY", "CASE", "DISTINCT", "ELSE", "FROM", "HAVING", "IN", "IS", "LIKE", "LIMIT",
        "NOT", "ON", "OR", "RETURNING", "SELECT", "SET", "THEN", "UNION", "USING", "VALUES", "WHEN", "WHERE",
    }
)  # fmt: skip
"""Words that cannot end a value."""

_NOT_FIELDS: Final = frozenset(
    {
        "ANY", "ARRAY", "CASE", "CAST", "DATE", "EXISTS", "FALSE", "INTERVAL", "LAMBDA", "MAP", "NOT", "NULL", "ROW",
        "SELECT", "TIMESTAMP", "TRUE", "TRY_CAST",
    }
)  # fmt: skip
"""Words that begin an expression, such as the body of a lambda after its arrow."""

_TAKES_LAMBDA: Final = frozenset(
    {
        "apply", "array_apply", "array_filter", "array_reduce", "array_transform", "filter", "list_apply",
        "list_filter", "list_reduce", "list_transform", "reduce",
    }
)  # fmt: skip
"""Functions with a list and a lambda as arguments."""

_BEGINS_WITH_LAMBDA: Final = frozenset({"columns", "invoke"})
"""Functions whose first argument is a lambda."""


def is_lambda(text: BracketedTokens, at: int, opening: int) -> bool:
    """Whether the arrow at a token is that of a lambda, whatever its names mean; `opening` is the parenthesis around
    it.
    """
    start = at - 1
    if text.sign(start) == ")":
        start = text.opening.get(start, -1)
        if not all(behind == name + 1 and text.is_name(name) for name, behind in text.arguments(start)):
            return False
    elif not text.is_name(start):
        return False
    call = text.word(opening - 1).lower()
    if start == opening + 1:
        is_method = text.sign(opening - 2) == "."
        return call in _BEGINS_WITH_LAMBDA or (is_method and call in _TAKES_LAMBDA)
    return call in _TAKES_LAMBDA and text.commas[opening][:1] == [start - 1]


def arrow(text: BracketedTokens, at: int, known: Mapping[int, int]) -> tuple[int, int] | None:
    """The value before an arrow and the field after it, each by its first token; None for other arrows, as far as the
    position shows. `known` has the values of earlier arrows by their fields.
    """
    if not text.joined(at, "->") or text.joined(at, "->>") or not text.is_name(at + 2):
        return None
    if text.sign(at + 3) in {"(", "."} or text.word(at + 2) in _NOT_FIELDS:
        return None
    start = _value(text, at - 1, known)
    return (start, at + 2) if start >= 0 else None


def write(text: BracketedTokens, start: int, field: int, edits: Edits) -> None:
    """The text of the field name that begins at a token."""
    edits.insert(start, "struct_extract(")
    edits.drop(field - 2, field)
    edits.replace(field, f", {literal(text.tokens[field].value)})")


def _value(text: BracketedTokens, last: int, known: Mapping[int, int]) -> int:
    """The first token of the value that ends at a token: a column, a call, an expression in parentheses, each followed
    by any subscripts, fields and arrows; -1 if there is none.
    """
    at = last
    while at not in known:
        if text.sign(at) in _CLOSING:
            opening = text.opening.get(at, -1)
            if opening < 0:
                return -1
            before = opening - 1
            is_call = text.sign(at) == ")" and text.is_name(before) and text.word(before) not in _NOT_VALUES
            if text.sign(at) == "]" and (text.is_name(before) or text.sign(before) in _CLOSING):
                at = before
                continue
            at = before if is_call else opening
            if not is_call:
                return at
        elif not text.is_name(at) or text.word(at) in _NOT_VALUES:
            return -1
        if text.sign(at - 1) == "." and (text.is_name(at - 2) or text.sign(at - 2) in _CLOSING):
            at -= 2
        elif text.joined(at - 2, "->") and (text.is_name(at - 3) or text.sign(at - 3) in _CLOSING):
            at -= 3
        else:
            return at
    return known[at]
