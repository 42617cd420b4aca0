"""The rows of a statement as they come from DuckDB: about so many bytes at a time, however wide they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import duckdb

FIRST = 32
"""Rows that are fetched before their width is known."""

MOST = 10_000
FETCHED = 1 << 20
"""Rows and characters that are fetched at once."""


def fetched(connection: duckdb.DuckDBPyConnection, turn: Callable[[Any], str]) -> Iterator[list[str]]:
    """The rows of what `connection` executed, each turned into its text. Raises what fetching raises."""
    count = FIRST
    while rows := connection.fetchmany(count):
        texts = [turn(row) for row in rows]
        del rows
        yield texts
        count = min(MOST, max(1, FETCHED * len(texts) // max(1, sum(map(len, texts)))))
