"""Results that the shell itself has: what \\jobs shows is a result like any other, in every format."""

from __future__ import annotations

from collections.abc import Sequence

from sqlshell.result import Batch, Column, Result, Rows


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
