"""Renders rows of integers, booleans, decimals and texts in Python, and recognizes small statements.

For a single row, planning the SQL that renders it takes DuckDB several times as long as the statement itself.

The output equals that of the SQL in render.py; tests compare the two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from sqlshell.service.engines.duckdb.results.render import type_id

SMALL = 1_000
"""A result of up to this many rows, by DuckDB's estimate, is small."""

_SELECT = re.compile(r"\s*select(?!\w)", re.I)
_MORE = re.compile(r"""(?<!\w)(?:from|union|values|except|intersect)(?!\w)|[\w"`]\s*\(|--|/\*""", re.I)
_INSERT = re.compile(r"\s*(?:insert|select)(?!\w)", re.I)
_READS = re.compile(r"(?<!\w)(?:from|table|unnest|using|recursive|range|generate_series)(?!\w)", re.I)

Write = Callable[[Any], str]


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _fixed(value: Any) -> str:
    return format(value, "f")


def _fraction(value: Any) -> str:
    """Decimals whose type has no digit before the point: DuckDB does not write one either."""
    return format(value, "f").replace("0.", ".", 1)


_INTEGERS = (
    *("tinyint", "smallint", "integer", "bigint", "hugeint"),
    *("utinyint", "usmallint", "uinteger", "ubigint", "uhugeint"),
)
_WRITES: dict[str, Write] = {
    "boolean": _truth,
    "varchar": str,
    "null": str,
    **dict.fromkeys(_INTEGERS, str),
}
_encode = msgspec.json.Encoder().encode


def one_row(sql: str) -> bool:
    """Whether a SELECT is a row of constants and operators, which may be run twice: as far as its words show, it reads
    nothing and calls no function.
    """
    return _SELECT.match(sql) is not None and _MORE.search(sql) is None


def brief(sql: str) -> bool:
    """Whether a statement reads nothing, judging by its text, so that it finishes at once."""
    return _INSERT.match(sql) is not None and _READS.search(sql) is None


def writers(kinds: Sequence[Any]) -> list[Write] | None:
    """Functions that render the values of these DuckDBPyTypes; None if only DuckDB can render them."""
    writes = [_write(kind) for kind in kinds]
    return None if None in writes else [write for write in writes if write is not None]


def _write(kind: Any) -> Write | None:
    known = type_id(kind)
    if known == "decimal":
        size = dict(kind.children)
        return _fraction if size["precision"] == size["scale"] else _fixed
    return _WRITES.get(known)


def line(row: Sequence[Any], writes: Sequence[Write]) -> str:
    """A row as the text of a JSON array of strings and nulls."""
    texts = [None if value is None else write(value) for value, write in zip(row, writes, strict=True)]
    return _encode(texts).decode()
