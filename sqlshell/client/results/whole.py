"""The batches of a large result, from its partitions or from its file."""

from __future__ import annotations

import asyncio
import shutil
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sqlshell.client.results.file_reader import READERS, FileReader
from sqlshell.client.results.partitions import PartitionReader
from sqlshell.client.results.result_file import ResultFile
from sqlshell.client.results.result_table import ResultTable
from sqlshell.result import Batch, FileUnavailable, LineSql, Rows, StoredColumn
from sqlshell.runtime.download_file import DownloadFile
from sqlshell.runtime.scratch import scratch

FileRows = bytes | list[list[Any]] | None
"""Rows of a file in the form that was asked for: their text, or their values by column."""


class FileBatch(Batch):
    """Rows of a file, in the form that was asked for."""

    __slots__ = ("_content", "_of", "_read")

    def __init__(self, width: int, count: int, of: LineSql, content: FileRows, read: Callable[[], Rows]) -> None:
        super().__init__(width, count=count)
        self.size = len(content) if isinstance(content, bytes) else 0
        self._of = of
        self._content = content
        self._read = read

    def lines(self, of: LineSql) -> bytes | None:
        return self._content if of == self._of and isinstance(self._content, bytes) else None

    def values(self) -> list[list[Any]] | None:
        return self._content if isinstance(self._content, list) else None

    @property
    def rows(self) -> Rows:
        if self._rows is None:
            self._rows = self._read()
        return self._rows


class WholeReader:
    """The batches of a result: its first partition, then either the others or, after choose(), those of its file.

    Partitions are read as PartitionReader does, also those after the rows at which the file cannot be used. After an
    error the next step tries the same rows again. `counts` are the rows of each partition, `first` those of the first
    one, 0 if it has to be fetched.
    """

    def __init__(
        self, partitions: PartitionReader, file: ResultFile, counts: Sequence[int], first: int, *, large: bool = True
    ) -> None:
        self._partitions = partitions
        self._file = file
        self._counts = counts
        self._first = first
        self._row_count = first
        """The rows of the first partition and those that have been read from the file."""
        self._large = large
        self._of: LineSql | None = None
        self._by_column = False
        self._batch_count = 0
        self._reader: FileReader | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._pending: deque[asyncio.Future[FileRows]] = deque()
        self._folder: Path | None = None
        self._next = 0
        self._left_out = 0
        """The rows at the beginning of the next partition that are left out."""

    @property
    def own(self) -> bool:
        return self._file.transport().in_process

    def choose(self, of: LineSql) -> None:
        if not self._batch_count and self._large:
            self._of, self._by_column = of, False

    def choose_values(self) -> None:
        if not self._batch_count and self._large:
            self._of, self._by_column = _no_line, True

    async def fetch(self, place: Path) -> list[StoredColumn] | None:
        if _is_pattern(place):
            return None
        try:
            await self._file.fetch(place)
            # The instants keep their type; no string of them is needed.
            return await asyncio.to_thread(self._checked, place, replace(self._file, zone="UTC"))
        except (FileUnavailable, OSError):
            return None

    async def skip(self, rows: int) -> None:
        number = 0
        while number < len(self._counts) and rows >= self._counts[number]:
            rows -= self._counts[number]
            number += 1
        await self._partitions.skip_to(number)
        self._left_out = rows

    async def keep(self, opened: Callable[[], DownloadFile]) -> bool:
        if not self._large:
            return False
        with opened() as file:
            try:
                await self._file.keep(file)
            except FileUnavailable:
                return False
        return True

    async def table(self) -> ResultTable | None:
        folder: Path | None = None
        table: ResultTable | None = None
        try:
            folder = scratch().folder("result")
            place = folder / "result.parquet"
            if not _is_pattern(place):
                await self._file.fetch(place)
                columns = await asyncio.to_thread(self._columns, place, self._file)
                table = ResultTable(folder, place, columns, self._redacted)
        except (FileUnavailable, OSError):
            pass
        finally:
            if table is None and folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
        return table

    def _redacted(self, body: bytes) -> bytes:
        return bytes(self._file.transport().redacted(body))

    @staticmethod
    def _checked(place: Path, file: ResultFile) -> list[StoredColumn]:
        """As _columns(). Raises FileUnavailable for a file with a secret, which is removed only from partitions."""
        reader = FileReader(place, file, _no_line, 0)
        try:
            if reader.contains(file.transport().secrets_in_rows()):
                raise FileUnavailable
        finally:
            reader.close()
        return reader.stored

    @staticmethod
    def _columns(place: Path, file: ResultFile) -> list[StoredColumn]:
        reader = FileReader(place, file, _no_line, 0)
        reader.close()
        return reader.stored

    def __aiter__(self) -> WholeReader:
        return self

    async def __anext__(self) -> Batch:
        self._batch_count += 1
        if self._batch_count == 1 and self._of is not None and self._first:
            return self._partitions.take_first()
        if self._of is not None:
            try:
                if self._reader is None:
                    await self._open(self._of)
                if self._reader is not None:
                    return await self._next_stretch(self._reader, self._of)
            except FileUnavailable:
                self._of = None
                await self._discard_file()
                await self.skip(self._row_count)
        batch = await anext(self._partitions)
        if self._left_out:
            batch, self._left_out = Batch(batch.width, rows=batch.rows[self._left_out :]), 0
        return batch

    async def aclose(self) -> None:
        self._of = None
        await self._partitions.aclose()
        await self._discard_file()

    async def _open(self, of: LineSql) -> None:
        try:
            folder = self._folder = scratch().folder("result")
        except OSError as error:
            raise FileUnavailable from error
        # For a reader that is dropped without aclose().
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        place = folder / "result.parquet"
        if _is_pattern(place):
            raise FileUnavailable
        self._threads = ThreadPoolExecutor(READERS, "result")
        # Takes as long as fetching the file.
        self._threads.submit(import_module, "duckdb")
        await self._file.fetch(place)
        opening = self._threads.submit(FileReader, place, self._file, of, self._first)
        self._reader = await asyncio.shield(asyncio.wrap_future(opening))

    async def _next_stretch(self, reader: FileReader, of: LineSql) -> Batch:
        if self._next >= len(reader.stretches):
            raise StopAsyncIteration
        start, count = reader.stretches[self._next]
        self._read_ahead(reader, 1 if self._by_column else READERS + 1)
        coming = self._pending[0]
        rows: Rows | None = None
        try:
            content = await asyncio.shield(coming)
            if content is None:
                assert self._threads is not None
                rows = await asyncio.wrap_future(self._threads.submit(reader.rows, start, count))
        except BaseException:
            if coming.done():
                self._forget_pending()
            raise
        self._pending.popleft()
        self._next += 1
        self._row_count += count
        # Making Python objects ahead would only compete with the reader for the GIL.
        self._read_ahead(reader, 0 if self._by_column else READERS + 1)
        if content is None:
            return Batch(len(self._file.columns), rows=rows)
        return FileBatch(len(self._file.columns), count, of, content, lambda: self._rows(reader, start, count))

    def _read_ahead(self, reader: FileReader, most: int) -> None:
        """Begin to read the next stretches, `most` at once."""
        assert self._threads is not None
        read: Callable[[int, int], FileRows] = reader.values if self._by_column else reader.text
        for start, count in reader.stretches[self._next + len(self._pending) : self._next + most]:
            self._pending.append(asyncio.wrap_future(self._threads.submit(read, start, count)))

    def _forget_pending(self) -> None:
        """The next step reads the same stretch again."""
        for future in self._pending:
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._pending.clear()

    def _rows(self, reader: FileReader, start: int, count: int) -> Rows:
        assert self._threads is not None
        try:
            return self._threads.submit(reader.rows, start, count).result()
        except FileUnavailable as error:
            raise reader.wrong("can no longer be read") from error

    async def _discard_file(self) -> None:
        """Remove the file."""
        reader, self._reader = self._reader, None
        threads, self._threads = self._threads, None
        coming, self._pending = [*self._pending], deque()
        folder, self._folder = self._folder, None
        if reader is not None:
            reader.interrupt()
        if coming:
            await asyncio.wait(coming)
            for future in coming:
                future.cancelled() or future.exception()
        if threads is not None:
            threads.shutdown()
        if reader is not None:
            # Not in a thread: none can be started any more while the interpreter ends.
            reader.close()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _no_line(columns: Sequence[StoredColumn]) -> str:
    return "''"


def _is_pattern(place: Path) -> bool:
    """Whether DuckDB would take a path for a pattern."""
    return any(char in str(place) for char in "*?[")
