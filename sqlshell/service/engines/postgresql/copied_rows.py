"""The rows of a COPY on their way to a sink: as text if they are few, otherwise in a file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any, Final, TypeVar

from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.duckdb.results.parquet import LARGE, ROW_GROUP, ROW_GROUP_BYTES
from sqlshell.service.engines.duckdb.results.result_files import Reader
from sqlshell.service.engines.engine import RunOptions, Sink
from sqlshell.service.engines.postgresql.rows import rows_of_copy

SMALL_BYTES: Final = 1 << 20
"""Results of more than these bytes, or of LARGE rows, are written to a file, if the sink has one."""

T = TypeVar("T")


class CopiedRows:
    """Passes the rows of one result to a sink. Waiting for the file, it takes no further rows. Close it."""

    def __init__(
        self, sink: Sink, options: RunOptions, threads: Executor, reader: Reader, columns: Sequence[ColumnInfo]
    ) -> None:
        self._sink = sink
        self._columns = columns
        self._options = options
        self._threads = threads
        self._reader = reader
        self._held: list[bytes] = []
        self._rows = self._bytes = 0
        """The number of rows that are held, and their bytes."""
        self._file: Any = None
        self._is_text = False
        self._writing: asyncio.Future[None] | None = None

    async def add(self, lines: bytes, rows: int) -> None:
        """Take whole lines of COPY's text format. Raises Failure and OSError."""
        if self._is_text:
            self._sink.keep(rows_of_copy(lines))
            return
        self._held.append(lines)
        self._rows += rows
        self._bytes += len(lines)
        if self._file is None and (self._rows >= LARGE or self._bytes >= SMALL_BYTES):
            self._begin()
        if self._file is not None and (self._rows >= ROW_GROUP or self._bytes >= ROW_GROUP_BYTES):
            await self._write()

    async def finish(self) -> list[tuple[int, int]] | None:
        """Pass on the rest; returns the partitions of the file as in Outcome. Raises Failure, duckdb.Error, OSError."""
        if self._file is None:
            self._keep_held()
            return None
        if self._held:
            await self._write()
        await self._wait()
        await self._in_thread(self._file.close)
        return await self._in_thread(partial(self._reader.partitions, self._file.path, self._file.rows, self._options))

    async def aclose(self) -> None:
        """End the file, which is incomplete after an error. Raises OSError."""
        if self._writing is not None:
            await asyncio.wait([self._writing])
        if self._file is not None:
            await self._in_thread(self._file.close)

    def _begin(self) -> None:
        """Write the rows from now on: to a file, if the sink has one."""
        path = self._sink.file()
        if path is None:
            self._is_text = True
            self._keep_held()
            return
        # Importing this module is slow: it takes as long as a thousand small statements.
        from sqlshell.service.engines.server.result_file import ResultFile

        self._file = ResultFile(path, self._columns, [])

    def _keep_held(self) -> None:
        for lines in self._held:
            self._sink.keep(rows_of_copy(lines))
        self._held = []

    async def _write(self) -> None:
        """Start writing the rows that are held, after those before them are written."""
        held, self._held, self._rows, self._bytes = self._held, [], 0, 0
        await self._wait()
        self._writing = asyncio.get_running_loop().run_in_executor(self._threads, self._write_group, held)

    def _write_group(self, held: list[bytes]) -> None:
        from sqlshell.service.engines.postgresql.copied_table import table_of

        self._sink.grown(self._file.write(table_of(held, self._columns)))

    async def _wait(self) -> None:
        if self._writing is not None:
            writing, self._writing = self._writing, None
            await writing

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)
