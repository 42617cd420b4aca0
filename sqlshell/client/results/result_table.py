"""A result's file as a table for queries, in an instance of DuckDB of its own."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from sqlshell.errors import OutputError
from sqlshell.interface.models import Rows
from sqlshell.interface.strings import literal
from sqlshell.result import StoredColumn
from sqlshell.runtime.isolated_duckdb import isolated_duckdb

if TYPE_CHECKING:
    import duckdb

MEMORY = "384MB"
TEXT_MEMORY = "1200MB"
"""The most memory for queries, and for turning rows into text: a single value of 200 MB takes all of it."""

SPILLED = "16GB"
"""The most that queries may write to temporary files."""


class ResultTable:
    """The rows of a result. `source` is SQL for them: a relation with `columns`, and `file_row_number` from 0.

    The file is in `folder`, which aclose() removes with all that queries wrote to it. Queries run one after another; a
    canceled one is interrupted.
    """

    def __init__(self, folder: Path, place: Path, columns: Sequence[StoredColumn], redact: Callable[[bytes], bytes]):
        self.columns = columns
        self.source = f"read_parquet({literal(str(place))}, file_row_number = true)"
        self._redact = redact
        self._folder = folder
        self._root = open_duckdb(place, spilled=folder / "spilled")
        self._threads = ThreadPoolExecutor(1, "table")

    async def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query. Raises OutputError, for example if the disk is full."""
        running = self._threads.submit(self._run, sql)
        try:
            return await asyncio.wrap_future(running)
        except asyncio.CancelledError:
            if not running.done():
                self._root.interrupt()
            raise

    async def texts(self, sql: str) -> Rows:
        """The rows of a query with one column, a list of strings. Raises OutputError."""
        body = msgspec.json.encode([row for (row,) in await self.query(sql)])
        return msgspec.json.decode(self._redact(body), type=Rows)

    async def aclose(self) -> None:
        self._root.interrupt()
        self._threads.submit(self._root.close)
        await asyncio.to_thread(self._threads.shutdown)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, sql: str) -> list[tuple[Any, ...]]:
        import duckdb

        try:
            return self._root.execute(sql).fetchall()
        except duckdb.Error as error:
            raise OutputError(f"cannot read the result: {str(error).splitlines()[0]}") from error


def open_duckdb(place: Path, *, large: bool = False, spilled: Path | None = None) -> duckdb.DuckDBPyConnection:
    """An instance of DuckDB that may read one file, and write temporary files in the folder `spilled` if given; `large`
    gives strings in Arrow streams offsets of 64 bits.
    """
    settings = {"parquet_metadata_cache": "true", "arrow_large_buffer_size": str(large)}
    if spilled is not None:
        settings["max_temp_directory_size"] = literal(SPILLED)
    return isolated_duckdb(
        TEXT_MEMORY if spilled is None else MEMORY, files=[place], spilled=spilled, settings=settings
    )
