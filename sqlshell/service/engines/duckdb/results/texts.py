"""Rows of an executed statement as text: fetched in pieces of about the same size, and written by Python if it can.

For a single row, planning the SQL that renders it takes DuckDB several times as long as the statement itself. The
output equals that of the SQL in render.py; tests compare the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import duckdb
import msgspec

from sqlshell.service.engines.duckdb.results.render import finished, type_id

FIRST: Final = 4
GROWTH: Final = 8
"""The number of rows that are fetched while their width is unknown, and how much it grows at most with each fetch."""

MOST: Final = 10_000
FETCHED: Final = 1 << 20
"""The maximum number of rows and characters that are fetched at once."""

Write = Callable[[Any], str]

_INTEGERS: Final = (
    *("tinyint", "smallint", "integer", "bigint", "hugeint"),
    *("utinyint", "usmallint", "uinteger", "ubigint", "uhugeint"),
)
_encode = msgspec.json.Encoder().encode


def fetch_rows(connection: duckdb.DuckDBPyConnection, writes: Sequence[Write] | None = None) -> Iterator[list[str]]:
    """Yields the rows of the executed statement as text, by `writes` or as render.row() made them.

    Raises the errors of fetching.
    """
    count = FIRST
    while rows := connection.fetchmany(count):
        texts = [finished(text) for (text,) in rows] if writes is None else [line(row, writes) for row in rows]
        del rows
        yield texts
        count = min(MOST, GROWTH * count, max(1, FETCHED * len(texts) // max(1, sum(map(len, texts)))))


def writers(kinds: Sequence[Any]) -> list[Write] | None:
    """Functions that render the values of these DuckDBPyTypes; None if only DuckDB can render them."""
    writes = [_write(kind) for kind in kinds]
    return None if None in writes else [write for write in writes if write is not None]


def line(row: Sequence[Any], writes: Sequence[Write]) -> str:
    """A row as the text of a JSON array of strings and nulls."""
    texts = [None if value is None else write(value) for value, write in zip(row, writes, strict=True)]
    return _encode(texts).decode()


def _write(kind: Any) -> Write | None:
    known = type_id(kind)
    if known == "decimal":
        size = dict(kind.children)
        return _fraction if size["precision"] == size["scale"] else _fixed
    return _WRITES.get(known)


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _fixed(value: Any) -> str:
    return format(value, "f")


def _fraction(value: Any) -> str:
    """Decimals whose type has no digit before the point: DuckDB does not write one either."""
    return format(value, "f").replace("0.", ".", 1)


_WRITES: Final[dict[str, Write]] = {
    "boolean": _truth,
    "varchar": str,
    "null": str,
    **dict.fromkeys(_INTEGERS, str),
}
