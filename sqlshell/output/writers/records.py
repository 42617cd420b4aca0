"""Records: a line per column, as in psql's `\\x`; for a terminal in the colors of the theme, or side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from sqlshell.output.text.cells import cells, lines_of, printable
from sqlshell.output.text.lines import wrapped
from sqlshell.output.text.nesting import is_nested, over_lines
from sqlshell.output.text.type_names import fitting_type, short_type
from sqlshell.output.text.value_colors import ValueColors, role_of
from sqlshell.output.writer import Look, Role, Screen, Summary, Values, Writer, WriterOptions
from sqlshell.output.writers.styles import ASCII, ROUNDED, SCREEN_EDGE
from sqlshell.output.writers.table import NULL, Align, column_text, justify
from sqlshell.result import Batch, Column, Rows

RULE = "+" + "-" * 10
"""The end of the line above a record in a file."""

MOST_ROWS = 20
"""Records that may be side by side."""
NARROWEST = 16
"""Cells of a value next to names that are too wide for the screen."""
WIDEST_TYPE = 32
"""Cells of a type next to its column, if there is room."""


class RecordWriter(Writer):
    """Holds no rows back: the width of the names is known from the columns. Without `header`, blank lines separate
    records. In a file, a result without rows is `(0 rows)`, as in psql.
    """

    def __init__(self, options: WriterOptions) -> None:
        self._screen = options.screen
        self._null = NULL if options.null is None else printable(options.null)
        self._line, self._bar, self._tee = "─│┬" if self._screen is not None and self._screen.unicode else "-|+"
        self._colors = ValueColors(options.paint, self._bar)
        self._painting = options.paint is not None
        self._numbered = options.header
        self._footer = options.header and options.footer and self._screen is None
        self._changed = options.changed if self._screen is not None else frozenset[tuple[int, int]]()
        self._columns: Sequence[Column] = ()
        self._roles: list[Role | None] = []
        self._names: list[str] = []
        self._width = self._rule = self._count = 0

    @property
    def look(self) -> Look:
        return Look(wraps=True)

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        names = [printable(column.name) for column in columns]
        self._columns = columns
        self._width = max(map(cells, names), default=0)
        self._names = [self._colors.painted(name + " " * (self._width - cells(name)), "header") for name in names]
        return []

    def write(self, batch: Batch) -> Iterable[bytes]:
        if not batch.rows or not self._names:
            return
        columns: list[Values] = list(zip(*batch.rows, strict=True))
        if self._screen is not None:
            columns = self._on_screen(columns, self._screen)
        drawn = [self._column(number, values) for number, values in enumerate(columns)]
        first = self._count + 1
        self._count += len(batch.rows)
        if self._numbered:
            heads = map(self._head, range(first, self._count + 1))
            text = "\n".join(map("\n".join, zip(heads, *drawn, strict=True)))
        else:
            text = ("\n" if first > 1 else "") + "\n\n".join(map("\n".join, zip(*drawn, strict=True)))
        yield self._colors.encoded(text + "\n")

    def end(self, summary: Summary) -> Iterable[bytes]:
        return [b"(0 rows)\n"] if self._footer and self._names and not self._count else []

    def _on_screen(self, columns: list[Values], screen: Screen) -> list[Values]:
        """The values, nested ones over lines; the first ones decide about colors and how wide the rules are."""
        for number, column in enumerate(self._columns):
            if is_nested(column):
                columns[number] = [value and over_lines(value, self._room(screen)) for value in columns[number]]
        if not self._count:
            self._roles = [role_of(column, values) for column, values in zip(self._columns, columns, strict=True)]
            widest = max(column_text(values, self._null).width for values in columns)
            self._rule = min(max(24, self._width + 4 + widest), screen.width - 1)
        return columns

    def _room(self, screen: Screen) -> int:
        """The cells of a line of a value, which goes on below itself and not below its name."""
        return max(NARROWEST, screen.width - self._width - 3)

    def _head(self, number: int) -> str:
        """The line above a record."""
        before = f"{self._line}[ RECORD {number} ]"
        if self._screen is None:
            return before.ljust(self._width + 1, "-") + RULE
        if len(before) <= self._width + 1:
            before = before.ljust(self._width + 1, self._line) + self._tee
        return self._colors.painted(before.ljust(self._rule, self._line), "dim")

    def _column(self, number: int, values: Values) -> list[str]:
        """The lines of one column; those of a value with line breaks are joined."""
        texts = column_text(values, self._null).texts
        if self._screen is not None:
            texts = [wrapped(text, self._room(self._screen)) for text in texts]
        bar = self._colors.painted(self._bar, "border") if self._screen is not None else self._bar
        head, blank = f"{self._names[number]} {bar} ", f"\n{' ' * self._width} {bar} "
        if not self._painting:
            return [head + text.replace("\n", blank) for text in texts]
        paint = self._painter(number)
        drawn = [
            head + blank.join(paint(line, value) for line in text.split("\n"))
            for text, value in zip(texts, values, strict=True)
        ]
        for row in [row for row, at in self._changed if at == number and row < len(drawn)]:
            drawn[row] = head + blank.join(self._colors.painted(line, "changed") for line in texts[row].split("\n"))
        return drawn

    def _painter(self, number: int) -> Callable[[str, str | None], str]:
        """What colors a line of a value."""
        colors = self._colors
        if self._screen is None:
            return lambda line, value: colors.painted(line, "null") if value is None else line
        column, role = self._columns[number], self._roles[number]
        return lambda line, value: colors.value(line, value, column, role)


class TransposedWriter(Writer):
    """Draws a few records side by side: all rows of one batch, a line per column of the result."""

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
            width = self._widths[1] + room
            self._names[1] = [fitting_type(column.exact_type, width, screen.ellipsis) for column in columns]
            self._widths[1] = max(self._widths[1], *map(cells, self._names[1]))

    @property
    def width(self) -> int:
        """The width of the table in cells."""
        return sum(width + 3 for width in self._widths) + 1

    @property
    def look(self) -> Look:
        return Look(frozen=(3, self._widths[0] + 4))

    def write(self, batch: Batch) -> Iterable[bytes]:
        frame = self._frame
        titles = [justify(title, width, "left") for title, width in zip(self._titles, self._widths, strict=True)]
        yield self._rule(frame.top)
        yield self._encoded([self._colors.painted(title, "header") for title in titles])
        yield self._rule(frame.middle)
        for number in range(len(self._columns)):
            yield from map(self._encoded, self._column(number))

    def end(self, summary: Summary) -> Iterable[bytes]:
        return [self._rule(self._frame.bottom)]

    def _rule(self, ends: tuple[str, str, str]) -> bytes:
        return self._colors.encoded(self._colors.painted(self._frame.rule(ends, self._widths)[:-1], "border") + "\n")

    def _encoded(self, parts: Sequence[str]) -> bytes:
        start, between, stop = SCREEN_EDGE
        return self._colors.encoded(f"{start}{between.join(parts)}{stop}\n")

    def _column(self, number: int) -> Iterator[list[str]]:
        """The lines of one column of the result."""
        column, lines = self._columns[number], self._lines[number]
        align: Align = "right" if column.kind.numeric else "left"
        values = [row[number] for row in self._rows]
        role = role_of(column, values)
        heads = [each[number] for each in self._names]
        roles: tuple[Role, Role] = ("header", "dim")
        for at in range(max(map(len, lines))):
            parts = [
                self._colors.painted(justify(head if at == 0 else "", width, "left"), kind)
                for head, width, kind in zip(heads, self._widths, roles, strict=False)
            ]
            for row, (value, drawn, width) in enumerate(zip(values, lines, self._widths[len(heads) :], strict=True)):
                text = justify(drawn[at] if at < len(drawn) else "", width, align)
                marked = (row, number) in self._changed
                parts.append(
                    self._colors.painted(text, "changed") if marked else self._colors.value(text, value, column, role)
                )
            yield parts
