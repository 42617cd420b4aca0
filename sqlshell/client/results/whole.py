"""The batches of a large result, from its partitions or from its file."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from sqlshell.client.results.partitions import PartitionReader
from sqlshell.client.results.result_file import QUERY_MEMORY, ResultFile, ResultTable, open_table
from sqlshell.result import Batch, FileUnavailable, LineSql, Rows

AHEAD = 2
"""Batches of lines that are read before the reader requests them."""

Lines = tuple[int, bytes | None]
"""The number of some rows, and their lines; None for lines of which SQL cannot write one."""


class FileBatch(Batch):
    """Rows of a file, as lines."""

    __slots__ = ("_lines", "_of", "_read")

    def __init__(self, width: int, count: int, of: LineSql, lines: bytes, read: Callable[[], Rows]) -> None:
        super().__init__(width, count=count)
        self.size = len(lines)
        self._of = of
        self._lines = lines
        self._read = read

    def lines(self, of: LineSql) -> bytes | None:
        return self._lines if of == self._of else None

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
        self._large = large
        self._of: LineSql | None = None
        self._begun = False
        self._table: ResultTable | None = None
        self._lines: Iterator[Lines] | None = None
        self._pending: deque[asyncio.Future[Lines | None]] = deque()
        self._next = first
        """The next row of the file."""
        self._left_out = 0
        """The rows at the beginning of the next partition that are left out."""

    def choose(self, of: LineSql) -> None:
        if not self._begun and self._large:
            self._of = of

    async def skip(self, rows: int) -> None:
        number = 0
        while number < len(self._counts) and rows >= self._counts[number]:
            rows -= self._counts[number]
            number += 1
        await self._partitions.skip_to(number)
        self._left_out = rows

    async def table(self, *, typed: bool = False) -> ResultTable | None:
        try:
            return await (open_table(self._file, typed=True) if typed else open_table(self._file, memory=QUERY_MEMORY))
        except FileUnavailable:
            return None

    def __aiter__(self) -> WholeReader:
        return self

    async def __anext__(self) -> Batch:
        begun, self._begun = self._begun, True
        if self._of is not None:
            if not begun and self._first:
                return self._partitions.take_first()
            try:
                return await self._next_of_file(self._of)
            except FileUnavailable:
                self._of = None
                await self._close_table()
                await self.skip(self._next)
        batch = await anext(self._partitions)
        if self._left_out:
            batch, self._left_out = Batch(batch.width, rows=batch.rows[self._left_out :]), 0
        return batch

    async def aclose(self) -> None:
        self._of = None
        await self._partitions.aclose()
        await self._close_table()

    async def _next_of_file(self, of: LineSql) -> Batch:
        """The next rows of the file. Raises FileUnavailable and ProtocolError."""
        table = self._table
        if table is None:
            table = self._table = await open_table(self._file)
        if self._lines is None:
            line = of(table.columns)
            if line is None:
                raise FileUnavailable
            self._lines = table.lines(line, self._next)
        self._read_ahead(table, self._lines, 1)
        coming, start, rows = self._pending[0], self._next, None
        try:
            found = await asyncio.shield(coming)
            if found is None:
                raise StopAsyncIteration
            count, lines = found
            if lines is None:
                rows = await asyncio.wrap_future(table.submit(table.rows, start, count))
        except BaseException:
            if coming.done():
                # The next step reads the same rows again.
                await self._forget_pending()
            raise
        self._pending.popleft()
        self._next += count
        self._read_ahead(table, self._lines, AHEAD)
        width = len(self._file.columns)
        if lines is None:
            return Batch(width, rows=rows)
        return FileBatch(width, count, of, lines, lambda: _rows(table, start, count))

    def _read_ahead(self, table: ResultTable, lines: Iterator[Lines], most: int) -> None:
        while len(self._pending) < most:
            self._pending.append(asyncio.wrap_future(table.submit(next, lines, None)))

    async def _forget_pending(self) -> None:
        coming, self._pending, self._lines = [*self._pending], deque(), None
        if coming:
            await asyncio.wait(coming)
            for future in coming:
                future.cancelled() or future.exception()

    async def _close_table(self) -> None:
        """Remove the file."""
        table, self._table = self._table, None
        if table is not None:
            table.interrupt()
            await self._forget_pending()
            # Not in a thread: none can be started any more while the interpreter ends.
            table.close()


def _rows(table: ResultTable, start: int, count: int) -> Rows:
    try:
        return table.rows(start, count)
    except FileUnavailable as error:
        raise table.wrong("can no longer be read") from error
