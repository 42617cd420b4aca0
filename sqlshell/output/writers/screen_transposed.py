"""Records side by side for a terminal: a line per column of the result, for a few rows that make a table too wide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sqlshell.output.text.cells import cells, lines_of, printable
from sqlshell.output.text.type_names import fitting_type, short_type
from sqlshell.output.text.value_colors import BAR, ValueColors, role_of
from sqlshell.output.writer import Screen, Summary, Unbuffered, WriterOptions
from sqlshell.output.writers.column_text import column_text, justify
from sqlshell.output.writers.screen_table import ASCII, ROUNDED
from sqlshell.output.writers.table import NULL
from sqlshell.result import Batch, Column, Rows

MOST_ROWS = 20
WIDEST_TYPE = 32
"""Cells of a type next to its column, if there is room."""


class TransposedWriter(Unbuffered):
    """Draws all rows of one batch."""

    def __init__(self, options: WriterOptions, screen: Screen, columns: Sequence[Column], rows: Rows) -> None:
        self._frame = ROUNDED if screen.unicode else ASCII
        self._colors = ValueColors(options.paint, self._frame.bar)
        null = NULL if options.null is None else printable(options.null)
        self._names = [[printable(column.name) for column in columns]]
        if screen.types:
            self._names.append([short_type(column.exact_type) for column in columns])
        heads = ["column", "type"][: len(self._names)]
        self._titles = [*heads, *(f"row {number}" for number in range(1, len(rows) + 1))]
        self._columns, self._rows = columns, rows
        self._changed = options.changed
        texts = [column_text(values, null).texts for values in zip(*rows, strict=True)]
        lines = [[lines_of(text) for text in column] for column in texts]
        values = [max((cells(line) for column in lines for line in column[row]), default=0) for row in range(len(rows))]
        names = [max(map(cells, each), default=0) for each in self._names]
        self._widths = [max(width, len(title)) for width, title in zip(names + values, self._titles, strict=True)]
        self._lines = lines
        if screen.types and (room := min(screen.width - self.width, WIDEST_TYPE - self._widths[1])) > 0:
            ellipsis = "…" if screen.unicode else "..."
            self._names[1] = [fitting_type(column.exact_type, self._widths[1] + room, ellipsis) for column in columns]
            self._widths[1] = max(self._widths[1], *map(cells, self._names[1]))

    @property
    def width(self) -> int:
        return sum(width + 3 for width in self._widths) + 1

    @property
    def frozen(self) -> tuple[int, int]:
        """The lines of the header, and the cells of the names with their frame."""
        return 3, self._widths[0] + 4

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        return []

    def write(self, batch: Batch) -> Iterable[bytes]:
        frame = self._frame
        titles = [justify(title, width, "left") for title, width in zip(self._titles, self._widths, strict=True)]
        yield self._rule(frame.top)
        yield self._encoded([self._colors.painted(title, "header") for title in titles])
        yield self._rule(frame.middle)
        for number in range(len(self._columns)):
            for line in self._line(number):
                yield self._encoded(line)

    def end(self, summary: Summary) -> Iterable[bytes]:
        return [self._rule(self._frame.bottom)]

    def _rule(self, ends: tuple[str, str, str]) -> bytes:
        return self._colors.encoded(self._colors.painted(self._frame.rule(ends, self._widths), "border") + "\n")

    def _encoded(self, parts: Sequence[str]) -> bytes:
        return self._colors.encoded(f"{BAR} {f' {BAR} '.join(parts)} {BAR}\n")

    def _line(self, number: int) -> Iterator[list[str]]:
        """The lines of one column of the result."""
        column, lines = self._columns[number], self._lines[number]
        values = [row[number] for row in self._rows]
        role = role_of(column, values)
        heads = [each[number] for each in self._names]
        for at in range(max(map(len, lines))):
            parts = []
            for head, width, kind in zip(heads, self._widths, ("header", "dim"), strict=False):
                text = justify(head if at == 0 else "", width, "left")
                parts.append(self._colors.painted(text, "header" if kind == "header" else "dim"))
            for row, (value, drawn, width) in enumerate(zip(values, lines, self._widths[len(heads) :], strict=True)):
                text = justify(drawn[at] if at < len(drawn) else "", width, "left")
                marked = (row, number) in self._changed
                parts.append(
                    self._colors.painted(text, "changed") if marked else self._colors.value(text, value, column, role)
                )
            yield parts
