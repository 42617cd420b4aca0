"""A record per row, a line per column, as psql's `\\x` shows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlshell.output.cells import cells, printable
from sqlshell.output.delimited import encode
from sqlshell.output.formats import Summary, WriterOptions
from sqlshell.output.table import NULL
from sqlshell.result import Batch, Column


class VerticalWriter:
    """Nothing is held: the width of the names is known from the columns."""

    holding = False

    def __init__(self, options: WriterOptions) -> None:
        self._null = NULL if options.null is None else printable(options.null)
        self._names: list[str] = []
        self._width = 0
        self._count = 0

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        names = [printable(column.name) for column in columns]
        self._width = max(map(cells, names), default=0)
        self._names = [name + " " * (self._width - cells(name)) for name in names]
        return []

    def write(self, batch: Batch) -> Iterable[bytes]:
        return [encode("".join(map(self._record, batch.rows)))] if batch.rows else []

    def settle(self) -> Iterable[bytes]:
        return []

    def end(self, summary: Summary) -> Iterable[bytes]:
        return []

    def _record(self, row: Sequence[str | None]) -> str:
        self._count += 1
        lines = [f"-[ RECORD {self._count} ]".ljust(self._width + 1, "-") + "+" + "-" * 10]
        for name, value in zip(self._names, row, strict=True):
            first, *more = (self._null if value is None else printable(value, "\n")).split("\n")
            lines.append(f"{name} | {first}".rstrip())
            lines += [f"{' ' * self._width} | {line}".rstrip() for line in more]
        return "\n".join(lines) + "\n"
