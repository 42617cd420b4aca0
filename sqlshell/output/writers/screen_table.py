"""Tables for a terminal: a thin frame, the types under the names, values in the colors of the theme."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from sqlshell.interface.types import Kind
from sqlshell.output.text.cells import cells, lines_of, printable
from sqlshell.output.text.nesting import TALLEST, is_nested, over_lines
from sqlshell.output.text.shortening import Shortened, cut, first_lines
from sqlshell.output.text.type_names import line_widths, short_type, type_lines, whole_types
from sqlshell.output.text.value_colors import BAR, RESET, UNGROUPED, ValueColors, is_quantity, role_of, whole_digits
from sqlshell.output.writer import Role, Screen, Summary, WriterOptions
from sqlshell.output.writers.column_text import Align, ColumnText, column_text, justify
from sqlshell.output.writers.delimited import Values
from sqlshell.output.writers.table import NULL, Drawn, SampledTable
from sqlshell.result import Column, Rows


class Frame(Struct, frozen=True):
    """The characters of a frame: a line, a bar, and the left, middle and right end of each horizontal line."""

    line: str
    bar: str
    top: tuple[str, str, str]
    middle: tuple[str, str, str]
    bottom: tuple[str, str, str]

    def rule(self, ends: tuple[str, str, str], widths: Sequence[int]) -> str:
        return ends[0] + ends[1].join(self.line * (width + 2) for width in widths) + ends[2]


ROUNDED = Frame("─", "│", ("╭", "┬", "╮"), ("├", "┼", "┤"), ("╰", "┴", "╯"))
ASCII = Frame("-", "|", ("+", "+", "+"), ("|", "+", "|"), ("+", "+", "+"))


class _Layout(Struct):
    """How a column is drawn.

    `fraction` are the cells from the decimal point to the end, `digits` those before it, 0 if they are not grouped.
    """

    align: Align
    role: Role | None
    width: int
    fraction: int = 0
    digits: int = 0


class ScreenTableWriter(SampledTable):
    """Draws a table whose widths are fixed after a sample; a wider value later widens only its own row.

    `caps` are the widths in cells of some columns: nested values get more lines, texts are cut; `shortened` counts what
    is not seen in full.
    """

    def __init__(self, options: WriterOptions, screen: Screen, caps: Mapping[int, int] = {}) -> None:
        super().__init__()
        self._null = NULL if options.null is None else printable(options.null)
        self._header = options.header
        self._types = options.header and screen.types
        self._width = screen.width
        self._frame = ROUNDED if screen.unicode else ASCII
        self._ellipsis = "…" if screen.unicode else "..."
        self._colors = ValueColors(options.paint, self._frame.bar)
        self._changed = options.changed
        self._caps = caps
        self._columns: Sequence[Column] = ()
        self._layouts: list[_Layout] = []
        self._tall_last: bool | None = None
        self.shortened = 0
        self.frozen = (0, 0)
        """The lines of the header, and the cells of the first column with its frame, once they are drawn."""

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        self._columns = columns
        self._drawn = not columns
        return []

    def _start(self, sample: Rows) -> Iterable[bytes]:
        columns = self._prepared(sample)
        self._layouts = self._measured(columns)
        if self._types:
            self._make_room_for_types()
        return itertools.chain(self._head(bool(sample)), self._draw(columns))

    def end(self, summary: Summary) -> Iterable[bytes]:
        yield from self.settle()
        if self._layouts:
            yield self._rule(self._frame.bottom)

    def widths(self, columns: Sequence[Column], rows: Rows) -> list[int]:
        """The widths of the columns of a table with these rows."""
        self._columns = columns
        return [layout.width for layout in self._measured(self._prepared(rows))]

    def _prepared(self, rows: Rows) -> list[Drawn]:
        drawn: list[Drawn] = []
        for number, values in enumerate(zip(*rows, strict=True)):
            cap = self._caps.get(number, 0)
            nested = cap > 0 and is_nested(self._columns[number])
            drawn.append((values, column_text(self._cut(values, cap, nested=nested) if cap else values, self._null)))
        return drawn

    def _cut(self, values: Values, cap: int, *, nested: bool) -> list[str | None]:
        if nested:
            values = [value if value is None else over_lines(value, cap) for value in values]
        short = [
            value if value is None or len(value) * 2 <= cap else cut(value, cap, self._ellipsis) for value in values
        ]
        if nested:
            short = [value and first_lines(value, TALLEST, self._ellipsis) for value in short]
        self.shortened += sum(
            one is not other and not isinstance(other, Shortened) for one, other in zip(short, values, strict=True)
        )
        return short

    def _measured(self, columns: Sequence[Drawn]) -> list[_Layout]:
        layouts = []
        none: list[Drawn] = [((), ColumnText((), True))] * len(self._columns)
        for column, (values, text) in zip(self._columns, columns or none, strict=True):
            numeric = column.kind.numeric
            layout = _Layout("right" if numeric else "left", role_of(column, values), text.width)
            if numeric:
                known = [text for text, value in zip(text.texts, values, strict=True) if value is not None]
                layout.fraction = max(map(_fraction, known), default=0) if column.kind is not Kind.INTEGER else 0
                layout.digits = max(map(whole_digits, known), default=0) if is_quantity(column) else 0
                whole = max((len(text) - _fraction(text) for text in known), default=0)
                layout.width = max(layout.width, whole + layout.fraction)
            if self._header:
                layout.width = max(layout.width, cells(printable(column.name)))
            if self._types:
                layout.width = max(layout.width, cells(short_type(column.exact_type)))
            layouts.append(layout)
        return layouts

    def _make_room_for_types(self) -> None:
        """Widen columns for their exact types while the table fits the screen, those first that need the least."""
        room = self._width - 1 - sum(layout.width + 3 for layout in self._layouts)
        wanted = []
        for column, layout in zip(self._columns, self._layouts, strict=True):
            names = map(cells, whole_types(column.exact_type, self._ellipsis))
            needs = [*line_widths(column.exact_type, layout.width + room), *names]
            wanted.append(([need - layout.width for need in needs], layout))
        for needs, layout in sorted(wanted, key=lambda each: max(each[0], default=0)):
            need = max(0, next((need for need in needs if need <= room), 0))
            layout.width += need
            room -= need

    def _head(self, rows: bool) -> Iterator[bytes]:
        frame = self._frame
        yield self._rule(frame.top)
        lines = 1
        if self._header:
            yield self._line([printable(column.name) for column in self._columns], "header")
            lines += 1
            if self._types:
                types = [
                    type_lines(column.exact_type, layout.width, self._ellipsis)
                    for column, layout in zip(self._columns, self._layouts, strict=True)
                ]
                for texts in itertools.zip_longest(*types, fillvalue=""):
                    yield self._line(texts, "dim")
                    lines += 1
            if rows:
                yield self._rule(frame.middle)
                lines += 1
        self.frozen = (lines, self._layouts[0].width + 4)

    def _rule(self, ends: tuple[str, str, str]) -> bytes:
        return self._colors.encoded(self._painted_rule(ends) + "\n")

    def _painted_rule(self, ends: tuple[str, str, str]) -> str:
        return self._colors.painted(self._frame.rule(ends, [layout.width for layout in self._layouts]), "border")

    def _line(self, texts: Sequence[str], role: Role) -> bytes:
        parts = [
            self._colors.painted(justify(text, layout.width, layout.align), role)
            for text, layout in zip(texts, self._layouts, strict=True)
        ]
        return self._colors.encoded(self._joined(["%s"] * len(parts)) % tuple(parts) + "\n")

    def _joined(self, parts: Sequence[str]) -> str:
        """The format of a row of cells."""
        return f"{BAR} {f' {BAR} '.join(parts)} {BAR}"

    def _rows(self, rows: Rows) -> Iterable[bytes]:
        return self._draw(self._prepared(rows)) if rows and self._columns else []

    def _draw(self, columns: Sequence[Drawn]) -> Iterator[bytes]:
        if not columns:
            return
        formats, drawn = [], []
        for number, ((values, text), layout) in enumerate(zip(columns, self._layouts, strict=True)):
            form, column = self._column(number, values, text, layout)
            formats.append(form)
            drawn.append(column)
        row_format = self._joined(formats)
        lines = list(map(row_format.__mod__, zip(*drawn, strict=True)))
        texts = [text for _, text in columns]
        tall = {number for text in texts for number in text.multiline}
        for number in tall:
            lines[number] = self._tall(number, texts, [column[number] for column in drawn], formats)
        if tall or self._tall_last:
            self._set_apart(lines, tall)
        self._tall_last = len(lines) - 1 in tall
        yield self._colors.encoded("\n".join(lines) + "\n")

    def _set_apart(self, lines: list[str], tall: Collection[int]) -> None:
        """Put a rule above and below each row of several lines."""
        rule = self._painted_rule(self._frame.middle)
        before = self._tall_last
        for number, line in enumerate(lines):
            here = number in tall
            # Below the header is a rule already.
            if (before or here) and before is not None:
                lines[number] = f"{rule}\n{line}"
            before = here

    def _column(self, number: int, values: Values, text: ColumnText, layout: _Layout) -> tuple[str, Sequence[str]]:
        """The format string of a column's cells, and its arguments."""
        colors = self._colors
        form, plain = "%s", None not in values and not self._changed
        if self._columns[number].kind.numeric:
            form, column = self._numbers(text, layout, plain=plain)
        elif layout.role == "boolean":
            looks = {each: self._boolean(each, layout.width) for each in set(text.texts)}
            column = [looks[each] for each in text.texts]
        elif is_nested(self._columns[number]) and colors.code("dim"):
            column = [colors.names(each) for each in text.justified(layout.width, "left")]
        elif plain and text.even:
            column, form = text.texts, f"%-{layout.width}s"
        else:
            column = text.justified(layout.width, "left")
        if layout.role is not None and layout.role != "boolean" and (code := colors.code(layout.role)):
            form = f"{code}{form}{RESET}"
        if plain:
            return form, column
        column = list(column)
        if None in values:
            null = colors.painted(justify(self._null, layout.width, layout.align), "null")
            column = [null if value is None else cell for value, cell in zip(values, column, strict=True)]
        for row in [row for row, at in self._changed if at == number and row < len(column)]:
            column[row] = colors.painted(justify(text.texts[row], layout.width, layout.align), "changed")
        return form, column

    def _numbers(self, text: ColumnText, layout: _Layout, *, plain: bool) -> tuple[str, Sequence[str]]:
        width, fraction, texts = layout.width, layout.fraction, text.texts
        if not text.even:
            return "%s", text.justified(width, "right")
        if fraction and {each[-fraction:][:1] for each in texts} != {"."}:
            blank = " " * fraction
            texts = [
                each + " " * (fraction - len(each) + at) if (at := each.find(".")) >= 0 else each + blank
                for each in texts
            ]
        if plain and layout.digits <= UNGROUPED and "-" not in "".join(texts):
            return f"%{width}s", texts
        return "%s", self._colors.numbers([each.rjust(width) for each in texts], fraction, layout.digits)

    def _boolean(self, text: str, width: int) -> str:
        role: Role = "dim" if text.lower() in {"false", "f", "0"} else "boolean"
        return self._colors.painted(justify(text, width, "left"), role)

    def _tall(self, number: int, texts: Sequence[ColumnText], drawn: Sequence[str], forms: Sequence[str]) -> str:
        """A row in which a value has several lines, without its last line break."""
        columns = []
        for at, (text, layout, cell, form) in enumerate(zip(texts, self._layouts, drawn, forms, strict=True)):
            lines = lines_of(text.texts[number]) if number in text.multiline else []
            marked = (number, at) in self._changed
            paint = self._colors.names if is_nested(self._columns[at]) else str
            columns.append(
                [
                    form % self._colors.painted(line, "changed") if marked else form % paint(line)
                    for line in (justify(line, layout.width, layout.align) for line in lines)
                ]
                or [form % cell]
            )
        height = max(map(len, columns))
        blank = [" " * layout.width for layout in self._layouts]
        row_format = self._joined(["%s"] * len(columns))
        return "\n".join(
            row_format
            % tuple(lines[at] if at < len(lines) else space for lines, space in zip(columns, blank, strict=True))
            for at in range(height)
        )


def _fraction(text: str) -> int:
    """The number of characters from the decimal point of a number to its end."""
    at = text.find(".")
    return len(text) - at if at >= 0 else 0
