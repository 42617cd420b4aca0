"""Records for a terminal: a line per column, values in the colors of the theme."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlshell.output.text.cells import cells, printable
from sqlshell.output.text.nesting import is_nested, over_lines
from sqlshell.output.text.value_colors import ValueColors, role_of
from sqlshell.output.writer import Role, Screen, Summary, Unbuffered, WriterOptions
from sqlshell.output.writers.column_text import column_text
from sqlshell.output.writers.delimited import Values
from sqlshell.output.writers.table import NULL
from sqlshell.result import Batch, Column


class ScreenRecordWriter(Unbuffered):
    """Holds no rows back. Without `header`, blank lines separate records."""

    def __init__(self, options: WriterOptions, screen: Screen) -> None:
        self._null = NULL if options.null is None else printable(options.null)
        self._line, self._bar, self._tee = "─│┬" if screen.unicode else "-|+"
        self._colors = ValueColors(options.paint, self._bar)
        self._numbered = options.header
        self._changed = options.changed
        self._most = screen.width - 1
        self._columns: Sequence[Column] = ()
        self._roles: list[Role | None] = []
        self._names: list[str] = []
        self._width = 0
        self._rule = 0
        self._count = 0

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        names = [printable(column.name) for column in columns]
        self._columns = columns
        self._width = max(map(cells, names), default=0)
        self._names = [self._colors.painted(name + " " * (self._width - cells(name)), "header") for name in names]
        return []

    def write(self, batch: Batch) -> Iterable[bytes]:
        if not batch.rows or not self._names:
            return
        columns = list(zip(*batch.rows, strict=True))
        room = self._most - self._width - 2
        for number, column in enumerate(self._columns):
            if is_nested(column):
                columns[number] = tuple(value and over_lines(value, room) for value in columns[number])
        texts = [column_text(values, self._null) for values in columns]
        if not self._count:
            self._roles = [role_of(column, values) for column, values in zip(self._columns, columns, strict=True)]
            # The rules are as wide as the values of the first rows, within the screen.
            self._rule = min(max(24, self._width + 4 + max(text.width for text in texts)), self._most)
        drawn = [
            self._column(number, values, text.texts)
            for number, (values, text) in enumerate(zip(columns, texts, strict=True))
        ]
        first = self._count + 1
        self._count += len(batch.rows)
        if self._numbered:
            heads = map(self._head, range(first, self._count + 1))
            text = "\n".join(map("\n".join, zip(heads, *drawn, strict=True)))
        else:
            text = ("\n" if first > 1 else "") + "\n\n".join(map("\n".join, zip(*drawn, strict=True)))
        yield self._colors.encoded(text + "\n")

    def end(self, summary: Summary) -> Iterable[bytes]:
        return []

    def _head(self, number: int) -> str:
        """The line above a record."""
        before = f"{self._line}[ RECORD {number} ]"
        if len(before) <= self._width + 1:
            before = before.ljust(self._width + 1, self._line) + self._tee
        return self._colors.painted(before.ljust(self._rule, self._line), "border")

    def _column(self, number: int, values: Values, texts: Sequence[str]) -> list[str]:
        name, column, role = self._names[number], self._columns[number], self._roles[number]
        bar = self._colors.painted(self._bar, "border")
        blank = f"\n{' ' * self._width} {bar} "
        lines = [
            f"{name} {bar} {blank.join(self._colors.value(line, value, column, role) for line in text.split(chr(10)))}"
            for text, value in zip(texts, values, strict=True)
        ]
        for row in [row for row, at in self._changed if at == number and row < len(lines)]:
            marked = (self._colors.painted(line, "changed") for line in texts[row].split("\n"))
            lines[row] = f"{name} {bar} {blank.join(marked)}"
        return lines
