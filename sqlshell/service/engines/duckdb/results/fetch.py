"""Fetches the rows of a statement from DuckDB in pieces of about the same size, however wide the rows are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import duckdb

FIRST = 4
GROWTH = 8
"""The number of rows that are fetched while their width is unknown, and how much it grows at most with each fetch."""

MOST = 10_000
FETCHED = 1 << 20
"""The maximum number of rows and characters that are fetched at once."""


def fetch_rows(connection: duckdb.DuckDBPyConnection, turn: Callable[[Any], str]) -> Iterator[list[str]]:
    """Yields the rows of the executed statement, each converted to text. Raises the errors of fetching."""
    count = FIRST
    while rows := connection.fetchmany(count):
        texts = [turn(row) for row in rows]
        del rows
        yield texts
        count = min(MOST, GROWTH * count, max(1, FETCHED * len(texts) // max(1, sum(map(len, texts)))))
