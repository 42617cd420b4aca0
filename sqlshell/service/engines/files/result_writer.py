"""The rows of one result of a server on their way to a sink: as text if they are few, otherwise in a Parquet file."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from sqlshell.interface.models import COLUMNS_KEY, INSTANTS_KEY, ColumnInfo
from sqlshell.service.engines.engine import RunOptions, Sink
from sqlshell.service.engines.files.parquet import LARGE, ROW_GROUP, ROW_GROUP_BYTES, WIDTH
from sqlshell.service.engines.files.result_files import ResultFiles

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
        """Return each row as the text of a JSON array of strings and nulls."""

    def table(self, pieces: Sequence[Piece_contra]) -> Any:
        """Return a table of Arrow with the columns c0, c1, … and perhaps WIDTH."""


class ResultFile:
    """Writes the file that DuckDB's results are written to too. Each method is called in a thread, one after another.

    Between two calls it holds no thread, so that a server that is slow to send rows takes nothing from others. `zoned`
    are the numbers of the columns with instants.
    """

    def __init__(self, path: Path, columns: Sequence[ColumnInfo], zoned: Sequence[int]) -> None:
        self.path = path
        self.rows = 0
        metadata = {COLUMNS_KEY: list(columns), INSTANTS_KEY: list(zoned)}
        self._metadata = {key: msgspec.json.encode(value) for key, value in metadata.items()}
        self._writer: Any = None

    def write(self, table: Any) -> int:
        """Add the rows of a table of Arrow, whose columns are c0, c1, … and perhaps WIDTH. Returns the bytes that the
        file has now. Raises OSError.
        """
        if self._writer is None:
            # Importing them takes as long as a thousand small statements.
            import pyarrow as pa
            from pyarrow.parquet import ParquetWriter

            fields = [pa.field(field.name, field.type) for field in table.schema]
            self._writer = ParquetWriter(
                self.path,
                pa.schema(fields),
                compression="snappy",
                version="2.6",
                data_page_version="2.0",
                # Dictionaries of strings take time to build, and readers then have to measure the strings.
                use_dictionary=[WIDTH],
                write_statistics=False,
                store_schema=False,
            )
            self._writer.add_key_value_metadata(self._metadata)
        self._writer.write_table(table.cast(self._writer.schema), row_group_size=max(1, table.num_rows))
        self.rows += table.num_rows
        return self.path.stat().st_size

    def close(self) -> None:
        """End the file, which may be incomplete. Raises OSError."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None


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
        self._file: ResultFile | None = None
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
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._partitions, self._file)

    async def aclose(self) -> None:
        """End the file, which is incomplete after an error."""
        if self._writing is not None:
            await asyncio.wait([self._writing])
        if self._file is not None:
            await asyncio.get_running_loop().run_in_executor(self._threads, self._file.close)

    def _begin(self) -> None:
        """Write the rows from now on: to a file, if the sink has one."""
        # Rows of no columns are only text.
        path = self._sink.file() if self._pieces.columns else None
        if path is None:
            self._is_text = True
            return
        self._file = ResultFile(path, self._pieces.columns, self._pieces.zoned)

    async def _pass_on(self) -> None:
        """Start writing the rows that are held, after those before them are written."""
        held, self._held, self._rows, self._bytes = self._held, [], 0, 0
        await self._wait()
        write = self._keep if self._file is None else partial(self._write, self._file)
        self._writing = asyncio.get_running_loop().run_in_executor(self._threads, write, held)

    def _keep(self, held: Sequence[T]) -> None:
        self._sink.keep(self._pieces.texts(held))

    def _write(self, file: ResultFile, held: Sequence[T]) -> None:
        self._sink.grown(file.write(self._pieces.table(held)))

    async def _wait(self) -> None:
        if self._writing is not None:
            writing, self._writing = self._writing, None
            await writing

    def _partitions(self, file: ResultFile) -> list[tuple[int, int]]:
        file.close()
        return self._reader.partitions(file.path, file.rows, self._options)
