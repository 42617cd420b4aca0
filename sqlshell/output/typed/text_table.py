"""The rows of a result whose service has no file of them as a table for queries: columns of their strings."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from sqlshell.errors import OutputError
from sqlshell.output.sinks.sink import write_error
from sqlshell.output.typed.rows import CsvRows
from sqlshell.result import Result, StoredColumn
from sqlshell.runtime.isolated_duckdb import isolated_duckdb
from sqlshell.runtime.parquet_table import ParquetTable
from sqlshell.runtime.scratch import scratch
from sqlshell.sql.duckdb_types import TEXT, select_from_csv
from sqlshell.sql.identifiers import literal

DISK_BYTES = 16 << 30
"""The maximum size of a result as text."""

MEMORY = "1GB"


class TextTable(ParquetTable):
    """The rows of a result as strings, for which `columns` say what they are."""

    def __init__(self, place: Path, columns: list[StoredColumn]) -> None:
        super().__init__(place, MEMORY)
        self.columns = columns


async def text_table(result: Result, *, numbered: bool = False) -> TextTable:
    """All rows of a result as a table, which the caller closes. If they are `numbered`, the last column of the result
    is their `file_row_number`, and no column of the table.

    Raises OutputError, and what reading the result raises.
    """
    folder = scratch().folder("rows")
    try:
        rows = folder / "rows.csv"
        await _write_csv(result, rows)
        return await asyncio.to_thread(_loaded, rows, result, numbered)
    except BaseException:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        raise


async def _write_csv(result: Result, place: Path) -> None:
    rows = CsvRows(result.columns)
    try:
        with place.open("wb") as file:
            async for batch in result.batches:
                file.writelines(rows.write(batch))
                if file.tell() > DISK_BYTES:
                    raise OutputError(
                        f"the result is larger than {DISK_BYTES >> 30} GiB", "select fewer rows or columns first"
                    )
    except OSError as error:
        raise write_error(str(place), error) from error
    finally:
        await result.batches.aclose()


def _loaded(rows: Path, result: Result, numbered: bool) -> TextTable:
    place = rows.with_suffix(".parquet")
    names = [f"c{number}" for number in range(len(result.columns))]
    strings = select_from_csv(str(rows), names, [TEXT] * len(names))
    with isolated_duckdb(MEMORY, files=[rows, place], spilled=rows.with_name("spilled")) as connection:
        connection.execute(f"COPY ({strings}) TO {literal(str(place))} (FORMAT parquet)")
    rows.unlink()
    stored = [StoredColumn(column, name, "varchar", name) for column, name in zip(result.columns, names, strict=True)]
    table = TextTable(place, stored[:-1] if numbered else stored)
    if numbered:
        table.source = f"(SELECT *, {names[-1]}::BIGINT AS file_row_number FROM read_parquet({literal(str(place))}))"
    return table
