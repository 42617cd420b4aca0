"""The rows of a result, filtered and sorted by DuckDB."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from sqlshell.interface.strings import literal
from sqlshell.interface.types import Kind
from sqlshell.result import Batch, Column, HeldBatches, Result, StoredColumn, Table

SHOWN = "shown"
"""The table of the rows that are shown."""


class Arrangement(Struct, frozen=True):
    """Which rows are shown, and in which order: those whose value in a column matches, sorted by a column."""

    keep: tuple[int, re.Pattern[str]] | None = None
    order: tuple[int, bool] | None = None
    """The column, and whether the order is descending."""


async def arranged(table: Table, columns: Sequence[Column], arrangement: Arrangement, window: int) -> Result:
    """The rows as a result whose rows have one more value: their number in `table`. `window` is the number of rows that
    are read together. Raises OutputError.
    """
    where = ""
    if arrangement.keep is not None:
        at, pattern = arrangement.keep
        flags = "i" if pattern.flags & re.IGNORECASE else "c"
        where = f"WHERE regexp_matches({shown_text(table.columns[at])}, {literal(pattern.pattern)}, '{flags}')"
        where += f" OR {table.columns[at].name} IS NULL" if pattern.pattern == "NULL" else ""
    order = "file_row_number"
    if arrangement.order is not None:
        at, down = arrangement.order
        keys = _keys(table.columns[at])
        order = ", ".join(f"{key} {'DESC NULLS FIRST' if down else 'ASC NULLS LAST'}" for key in keys) + f", {order}"
    names = ", ".join(column.name for column in table.columns)
    await table.query(
        f"CREATE OR REPLACE TEMP TABLE {SHOWN} AS SELECT {names}, file_row_number AS n FROM {table.source} {where} "
        f"ORDER BY {order}"
    )
    ((count,),) = await table.query(f"SELECT count(*) FROM {SHOWN}")
    counts = [min(window, count - start) for start in range(0, count, window)] or [0]
    strings = ", ".join(column.string for column in table.columns)

    async def fetch(number: int) -> Batch:
        start = number * window
        rows = await table.texts(
            f"SELECT [{strings}, n::VARCHAR] FROM {SHOWN} "
            f"WHERE rowid BETWEEN {start} AND {start + window - 1} ORDER BY rowid"
        )
        size = sum(len(value) for row in rows for value in row if value)
        batch = Batch(len(columns) + 1, rows=rows, number=number)
        batch.size = size
        return batch

    return Result(list(columns), HeldBatches(await fetch(0)), row_counts=counts, partition=fetch)


def shown_text(column: StoredColumn) -> str:
    """SQL for a value as it is shown."""
    if column.column.kind is not Kind.BYTES:
        return column.string
    # A text that is not base64 is shown as it is.
    value = f"TRY(from_base64({column.name}))" if column.is_text else column.name
    return f"coalesce('\\x' || lower(hex({value})), {column.string})"


def _keys(column: StoredColumn) -> list[str]:
    """SQL for what the rows are sorted by: numbers and times by value, everything else as text."""
    if not column.is_text:
        return [column.name]
    return [f"TRY_CAST({column.name} AS DOUBLE)", column.string] if column.column.kind.numeric else [shown_text(column)]
