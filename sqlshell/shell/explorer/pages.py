"""The rows of a result by number: partitions are fetched when needed, and few of them are kept in memory."""

from __future__ import annotations

import contextlib
import itertools
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator

from sqlshell.output.changes import with_hex
from sqlshell.output.typed.text_table import text_table
from sqlshell.result import Batch, Column, HeldBatches, Result, Table
from sqlshell.text import format_count

MOST_ROWS = 25_000
MOST_BYTES = 24 << 20
"""Maximum rows in memory, and bytes of their responses, if there are more than two partitions."""
MOST_SEQUENTIAL = 200_000
MOST_SEQUENTIAL_BYTES = 64 << 20
"""Maximum rows and bytes of a result that can only be read from its beginning."""

Row = list[str | None]


class Pages:
    """Rows by number, from 0. A row that is not in memory is None until its partition is loaded."""

    def __init__(self, result: Result) -> None:
        self.columns = result.columns
        self._partition = result.partition
        self._result = result
        self._loaded: OrderedDict[int, list[Row]] = OrderedDict()
        self._sizes: dict[int, int] = {}
        self._starts: list[int] = [0]
        self._table: Table | None = None
        self.total = 0
        self.truncated = False
        """Whether the result has more rows than can be shown."""

    @property
    def limited(self) -> bool:
        """Whether the service stopped at a row limit, so that these are only the first rows."""
        return self._result.limited

    @property
    def extent(self) -> str:
        """Which rows of the statement these are."""
        return f"only the first {format_count(self.total, 'row')}" if self.limited else "all rows"

    async def open(self) -> None:
        """Read the first rows. Raises the errors of reading them."""
        result = self._result
        counts = result.row_counts
        first = await anext(result.batches, None)
        if counts is not None and self._partition is not None and result.endless is None:
            await result.batches.aclose()
        else:
            counts = [await self._read_all(first)]
        self._starts = [0, *itertools.accumulate(counts)]
        self.total = self._starts[-1]
        if first is not None and 0 not in self._loaded:
            self._store(0, first)

    async def _read_all(self, first: Batch | None) -> int:
        """Read all rows of a result whose partitions cannot be requested."""
        rows: list[Row] = list(first.rows) if first is not None else []
        if first is not None:
            size = first.size
            async for batch in self._result.batches:
                rows += batch.rows
                size += batch.size
                if len(rows) >= MOST_SEQUENTIAL or size >= MOST_SEQUENTIAL_BYTES:
                    self.truncated = True
                    break
            await self._result.batches.aclose()
        self._loaded[0] = rows
        self._partition = None
        return len(rows)

    @property
    def complete(self) -> bool:
        """Whether table() has all rows, as far as is known."""
        return self.whole or self._result.whole is not None

    @contextlib.asynccontextmanager
    async def table(self) -> AsyncIterator[Table]:
        """The rows as a table for queries: all of them if they are in memory, or if the service has a file of them;
        otherwise those that are in memory. Raises the errors of reading them.
        """
        if not self.whole and (table := await self._file()) is not None:
            yield table
            return
        rows = [
            [*row, str(at)]
            for number in sorted(self._loaded)
            for at, row in enumerate(self._loaded[number], self._starts[number])
        ]
        columns = [*self.columns, Column("number")]
        held = await text_table(Result(columns, HeldBatches(Batch(len(columns), rows=rows))), numbered=True)
        try:
            yield held
        finally:
            held.close()

    async def _file(self) -> Table | None:
        """The table of the service's file, which close() closes; None if there is none."""
        if self._table is None and self._result.whole is not None:
            self._table = await self._result.whole.table()
            if self._table is None:
                self._result.whole = None
        return self._table

    async def close(self) -> None:
        if self._table is not None:
            self._table.close()

    @property
    def whole(self) -> bool:
        """Whether all rows are in memory."""
        return not self.truncated and sum(map(len, self._loaded.values())) >= self.total

    def partition_of(self, at: int) -> int:
        """The partition that contains a row."""
        return min(bisect_right(self._starts, at) - 1, len(self._starts) - 2)

    def row(self, at: int) -> Row | None:
        """A row as shown, if it is in memory."""
        row = self.original(at)
        return row if row is None else with_hex([row], self.columns)[0]

    def original(self, at: int) -> Row | None:
        """A row as received, if it is in memory."""
        number = self.partition_of(at)
        rows = self._loaded.get(number)
        if rows is None:
            return None
        self._loaded.move_to_end(number)
        inside = at - self._starts[number]
        return rows[inside] if inside < len(rows) else None

    async def load(self, number: int) -> None:
        """Fetch the rows of a partition. Raises the errors of fetching."""
        if number in self._loaded or self._partition is None:
            return
        self._store(number, await self._partition(number))

    async def load_row(self, at: int) -> Row | None:
        await self.load(self.partition_of(at))
        return self.row(at)

    def loaded_rows(self) -> Iterator[tuple[int, Row]]:
        """The rows in memory, with their numbers, in order."""
        for number in sorted(self._loaded):
            yield from enumerate(with_hex(self._loaded[number], self.columns), self._starts[number])

    def partitions(self) -> range:
        """The numbers of all partitions."""
        return range(len(self._starts) - 1)

    def rows_of(self, number: int) -> range:
        """The row numbers of a partition."""
        return range(self._starts[number], self._starts[number + 1])

    def _store(self, number: int, batch: Batch) -> None:
        self._loaded[number] = batch.rows
        self._loaded.move_to_end(number)
        self._sizes[number] = batch.size
        while len(self._loaded) > 2 and (
            sum(map(len, self._loaded.values())) > MOST_ROWS or sum(self._sizes.values()) > MOST_BYTES
        ):
            gone, _ = self._loaded.popitem(last=False)
            del self._sizes[gone]
