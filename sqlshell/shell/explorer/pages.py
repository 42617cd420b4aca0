"""The rows of a result by their numbers: partitions are fetched when they are looked at, and few of them are kept."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator

from sqlshell.output.text.binary import binary_columns, with_hex
from sqlshell.result import Batch, Result

MOST_ROWS = 25_000
MOST_BYTES = 24 << 20
"""Rows that are kept, and bytes of the answers that they came in, where more than two partitions make so many."""
MOST_SEQUENTIAL = 200_000
MOST_SEQUENTIAL_BYTES = 64 << 20
"""Rows and bytes of a result that can only be read from its beginning."""

Row = list[str | None]


class Pages:
    """Rows by number, from 0. A row that is not here is None, and its partition is `wanted`."""

    def __init__(self, result: Result) -> None:
        self.columns = result.columns
        self._partition = result.partition
        self._result = result
        self._binary = binary_columns(result.columns)
        self._kept: OrderedDict[int, list[Row]] = OrderedDict()
        self._sizes: dict[int, int] = {}
        self._starts: list[int] = [0]
        self.total = 0
        self.cut = False
        """Whether the result has more rows than can be looked at."""

    async def open(self) -> None:
        """Read the first rows. Raises what reading them raises."""
        result = self._result
        counts = result.row_counts
        first = await anext(result.batches, None)
        if counts is not None and self._partition is not None and result.endless is None:
            await result.batches.aclose()
        else:
            counts = [await self._read_all(first)]
        self._starts = [0, *itertools.accumulate(counts)]
        self.total = self._starts[-1]
        if first is not None and 0 not in self._kept:
            self._keep(0, first)

    async def _read_all(self, first: Batch | None) -> int:
        """All rows of a result without partitions that could be asked for."""
        rows: list[Row] = list(first.rows) if first is not None else []
        if first is not None:
            size = first.size
            async for batch in self._result.batches:
                rows += batch.rows
                size += batch.size
                if len(rows) >= MOST_SEQUENTIAL or size >= MOST_SEQUENTIAL_BYTES:
                    self.cut = True
                    break
            await self._result.batches.aclose()
        self._kept[0] = rows
        self._partition = None
        return len(rows)

    @property
    def whole(self) -> bool:
        """Whether all rows are here."""
        return not self.cut and sum(map(len, self._kept.values())) >= self.total

    def number(self, at: int) -> int:
        """The partition that a row is in."""
        return min(bisect_right(self._starts, at) - 1, len(self._starts) - 2)

    def row(self, at: int) -> Row | None:
        """A row as it is shown, where it is here."""
        row = self.original(at)
        return row if row is None else with_hex([row], self._binary)[0]

    def original(self, at: int) -> Row | None:
        """A row as it came, where it is here."""
        number = self.number(at)
        rows = self._kept.get(number)
        if rows is None:
            return None
        self._kept.move_to_end(number)
        inside = at - self._starts[number]
        return rows[inside] if inside < len(rows) else None

    async def load(self, number: int) -> None:
        """Have the rows of a partition here. Raises what fetching raises."""
        if number in self._kept or self._partition is None:
            return
        self._keep(number, await self._partition(number))

    async def load_row(self, at: int) -> Row | None:
        await self.load(self.number(at))
        return self.row(at)

    def local(self) -> Iterator[tuple[int, Row]]:
        """The rows that are here, with their numbers, in order."""
        for number in sorted(self._kept):
            yield from enumerate(with_hex(self._kept[number], self._binary), self._starts[number])

    def partitions(self) -> range:
        """The numbers of all partitions."""
        return range(len(self._starts) - 1)

    def span(self, number: int) -> range:
        """The rows of a partition."""
        return range(self._starts[number], self._starts[number + 1])

    def _keep(self, number: int, batch: Batch) -> None:
        self._kept[number] = batch.rows
        self._kept.move_to_end(number)
        self._sizes[number] = batch.size
        while len(self._kept) > 2 and (
            sum(map(len, self._kept.values())) > MOST_ROWS or sum(self._sizes.values()) > MOST_BYTES
        ):
            gone, _ = self._kept.popitem(last=False)
            del self._sizes[gone]
