"""Results that the shell itself has: what \\jobs shows is a result like any other, in every format."""

from __future__ import annotations

from collections.abc import Sequence

from sqlshell.output.formats import Summary
from sqlshell.result import Batch, Column, Partitions, Result, Rows


class _Known:
    """Batches that are there: one."""

    def __init__(self, batch: Batch) -> None:
        self._left: list[Batch] = [batch]

    def __aiter__(self) -> _Known:
        return self

    async def __anext__(self) -> Batch:
        if not self._left:
            raise StopAsyncIteration
        return self._left.pop()

    async def aclose(self) -> None:
        self._left.clear()


def table_of(columns: Sequence[tuple[str, str]], rows: Rows) -> Result:
    """A result of `columns`, each a name and a type, with `rows`."""
    return Result(
        [Column(name, type_) for name, type_ in columns],
        _Known(Batch(len(columns), rows=rows)),
        row_counts=[len(rows)],
    )


async def collect(result: Result, most: int) -> tuple[Summary, Rows]:
    """The rows of a result, `most` of them; the summary says whether that is all. Raises what reading them raises."""
    rows: Rows = []
    complete = True
    try:
        async for batch in result.batches:
            rows += batch.rows
            if len(rows) > most or (result.endless is not None and len(rows) == most):
                del rows[most:]
                complete = False
                break
    finally:
        await result.batches.aclose()
    return Summary(len(rows), complete), rows


class Kept:
    """Batches whose rows stay, `most` of them, when they have been read."""

    def __init__(self, batches: Partitions, most: int) -> None:
        self._batches = batches
        self._most = most
        self.rows: Rows = []
        self.whole = True

    def __aiter__(self) -> Kept:
        return self

    async def __anext__(self) -> Batch:
        batch = await anext(self._batches)
        left = self._most - len(self.rows)
        self.rows += batch.rows[:left]
        self.whole = self.whole and len(batch.rows) <= left
        return batch

    async def aclose(self) -> None:
        await self._batches.aclose()
