"""The rows of one result of a server on their way to a sink: as text if they are few, otherwise in a Parquet file."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.duckdb.results.parquet import LARGE, ROW_GROUP, ROW_GROUP_BYTES
from sqlshell.service.engines.duckdb.results.result_files import ResultFiles
from sqlshell.service.engines.engine import RunOptions, Sink

SMALL_BYTES: Final = 1 << 20
"""Results of more than these bytes, or of LARGE rows, are written to a file, if the sink has one."""

FEW: Final = 1000
"""Up to this many rows are made text in the event loop."""

T = TypeVar("T")
Piece_contra = TypeVar("Piece_contra", contravariant=True)


class Pieces(Protocol[Piece_contra]):
    """Makes rows of the pieces in which a server sends them. Called in any thread, by one at a time."""

    columns: Sequence[ColumnInfo]
    zoned: Sequence[int]
    """The numbers of the columns with instants."""

    def texts(self, pieces: Sequence[Piece_contra]) -> list[str]:
        """Each row as the text of a JSON array of strings and nulls."""

    def table(self, pieces: Sequence[Piece_contra]) -> Any:
        """A table of Arrow with the columns c0, c1, … and perhaps WIDTH."""


class ResultWriter(Generic[T]):
    """Passes pieces to a sink. Waiting for the file, it takes no further ones. Close it.

    `threads` write what `reader` reads. Methods raise Failure, OSError, and the errors of `pieces`.
    """

    def __init__(
        self, sink: Sink, options: RunOptions, threads: Executor, reader: ResultFiles, pieces: Pieces[T]
    ) -> None:
        self._sink = sink
        self._options = options
        self._threads = threads
        self._reader = reader
        self._pieces = pieces
        self._held: list[T] = []
        self._rows = self._bytes = 0
        """The number of rows that are held, and their bytes."""
        self._file: Any = None
        self._is_text = False
        self._writing: asyncio.Future[None] | None = None

    async def add(self, piece: T, rows: int, size: int) -> None:
        """Take a piece with this many rows and bytes."""
        self._held.append(piece)
        self._rows += rows
        self._bytes += size
        if self._file is None and not self._is_text:
            if self._rows < LARGE and self._bytes < SMALL_BYTES:
                return
            self._begin()
        if self._is_text or self._rows >= ROW_GROUP or self._bytes >= ROW_GROUP_BYTES:
            await self._pass_on()

    async def finish(self) -> list[tuple[int, int]] | None:
        """Pass on the rest. Returns the partitions of the file as in Outcome, None if there is no file."""
        if self._file is None and self._rows <= FEW:
            await self._wait()
            if self._rows:
                self._keep(self._held)
            return None
        if self._rows:
            await self._pass_on()
        await self._wait()
        if self._file is None:
            return None
        await self._close_file()
        look = partial(self._reader.partitions, self._file.path, self._file.rows, self._options)
        return await asyncio.get_running_loop().run_in_executor(self._threads, look)

    async def aclose(self) -> None:
        """End the file, which is incomplete after an error."""
        if self._writing is not None:
            await asyncio.wait([self._writing])
        if self._file is not None:
            await self._close_file()

    def _begin(self) -> None:
        """Write the rows from now on: to a file, if the sink has one."""
        path = self._sink.file()
        if path is None:
            self._is_text = True
            return
        # Importing this module is slow: it takes as long as a thousand small statements.
        from sqlshell.service.engines.server.result_file import ResultFile

        self._file = ResultFile(path, self._pieces.columns, self._pieces.zoned)

    async def _pass_on(self) -> None:
        """Start writing the rows that are held, after those before them are written."""
        held, self._held, self._rows, self._bytes = self._held, [], 0, 0
        await self._wait()
        write = self._keep if self._file is None else self._write
        self._writing = asyncio.get_running_loop().run_in_executor(self._threads, write, held)

    def _keep(self, held: Sequence[T]) -> None:
        self._sink.keep(self._pieces.texts(held))

    def _write(self, held: Sequence[T]) -> None:
        self._sink.grown(self._file.write(self._pieces.table(held)))

    async def _wait(self) -> None:
        if self._writing is not None:
            writing, self._writing = self._writing, None
            await writing

    async def _close_file(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._threads, self._file.close)
