"""Aligned tables that stream: measured by a sample, laid out, and drawn, for a file or a terminal.

The widths are fixed after the sample; a wider value later widens only its own row. For a terminal, the types stand
under the names, numbers are aligned at their decimal points, and values have the colors of the theme.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from sqlshell.interface.types import Kind
from sqlshell.output.text.cells import cells, distinct_from_null, is_single_width, is_unsafe, lines_of, printable
from sqlshell.output.text.lines import Shortened, cut, first_lines, wrapped
from sqlshell.output.text.nesting import TALLEST, is_nested, over_lines
from sqlshell.output.text.type_names import line_widths, short_type, type_lines, whole_types
from sqlshell.output.text.value_colors import RESET, UNGROUPED, ValueColors, is_quantity, role_of, whole_digits
from sqlshell.output.writer import Look, Role, Summary, Values, Writer, WriterOptions
from sqlshell.output.writers.styles import AUTO, BARE, Edge, Lines, screen_style, table_style
from sqlshell.result import Batch, Column, Rows, StoredColumn

SAMPLE = 1_000
SAMPLE_SIZE = 4 << 20
"""Rows, or characters, to collect before the widths are fixed; the rest of their partition counts too."""

PIECE = 1 << 20
"""Characters that are encoded at once: a line may be as long as the widest value."""

NULL = "NULL"
MOST_SPREAD = 4
"""The cells by which aligned decimal points may widen a column of numbers."""

Align = Literal["left", "right"]


class ColumnText(Struct, frozen=True):
    """Printable texts, one per row; `even` if each character takes one cell; `multiline` are the numbers of those with
    line breaks.
    """

    texts: Sequence[str]
    even: bool
    multiline: Sequence[int] = ()

    @property
    def width(self) -> int:
        """The width of the widest line in cells."""
        if self.multiline:
            return max(cells(line) for text in self.texts for line in lines_of(text))
        return max(map(len if self.even else cells, self.texts), default=0)

    def justified(self, width: int, align: Align) -> list[str]:
        """The texts padded to `width` cells; wider ones are not changed."""
        if not self.even:
            return [justify(text, width, align) for text in self.texts]
        if align == "left":
            return [text.ljust(width) for text in self.texts]
        return [text.rjust(width) for text in self.texts]


def column_text(values: Sequence[str | None], null: str) -> ColumnText:
    """The values of one column as drawn; `null` is printable and represents None."""
    present = [value for value in values if value is not None] if None in values else values
    joined = "".join(present)  # type: ignore[arg-type]
    if null and null in joined:
        values = [value if value is None else distinct_from_null(value, null) for value in values]
    texts: Sequence[str]
    if present is values:
        texts = values  # type: ignore[assignment]
    else:
        texts = [null if value is None else value for value in values]
    level = is_single_width(joined) and is_single_width(null)
    if level or not is_unsafe(joined):
        return ColumnText(texts, level)
    texts = [printable(text, "\n") for text in texts]
    multiline = [number for number, text in enumerate(texts) if "\n" in text] if "\n" in joined else []
    return ColumnText(texts, not multiline and is_single_width("".join(texts)), multiline)


def justify(text: str, width: int, align: Align) -> str:
    """One line padded to `width` cells."""
    pad = " " * (width - cells(text))
    return text + pad if align == "left" else pad + text


class SampledWriter(Writer):
    """Collects rows until there are enough to decide by."""

    def __init__(self) -> None:
        self._columns: Sequence[Column] = ()
        self._sample: Rows = []

    @property
    def buffering(self) -> bool:
        return bool(self._sample)

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        self._columns = columns
        return []

    def write(self, batch: Batch) -> Iterable[bytes]:
        self._sample += batch.rows
        enough = len(self._sample) >= SAMPLE or _size(self._sample) >= SAMPLE_SIZE
        return self.settle() if enough else []


def _size(rows: Rows) -> int:
    return sum(len(value) for row in rows for value in row if value)


class _Drawn(Struct):
    """The values of a column, and their texts."""

    values: Values
    text: ColumnText


class _Layout(Struct):
    """How a column is drawn.

    `fraction` are the cells from the decimal point to the end, `digits` those before it, 0 if they are not grouped.
    """

    align: Align
    role: Role | None = None
    width: int = 0
    fraction: int = 0
    digits: int = 0


class TableWriter(SampledWriter):
    """Draws a table: in a file like tabulate (`disable_numparse`, `preserve_whitespace`), numbers right-aligned.

    `caps` are the widths in cells of some columns of the screen: nested values get more lines, and texts are cut unless
    the table `wraps` them; its look counts what is not seen in full. Raises UsageError for an unknown table style.
    """

    def __init__(self, options: WriterOptions, caps: Mapping[int, int] = {}, *, wraps: bool = False) -> None:
        super().__init__()
        screen = self._screen = options.screen
        if screen is not None:
            self._style = screen_style(unicode=screen.unicode)
        else:
            bare = options.table_style == AUTO and not options.header
            self._style = BARE if bare else table_style(options.table_style)
        self.by_sql = "lines" if screen is None else ""
        self._null = NULL if options.null is None else printable(options.null)
        self._header = options.header
        self._types = options.header and screen is not None and screen.types
        self._colors = ValueColors(options.paint, self._style.bar)
        self._plain = options.paint is None and not options.changed
        self._changed = options.changed
        self._caps = caps
        self._wraps = wraps
        self._layouts: list[_Layout] = []
        self._lines = Lines()
        self._drawn = self._any = False
        self._tall_last: bool | None = None
        self._shortened = 0
        self._frozen = (0, 0)

    @property
    def look(self) -> Look:
        return Look(self._shortened, frozen=self._frozen)

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        self._drawn = not columns
        return super().begin(columns)

    def line(self, columns: Sequence[StoredColumn]) -> str | None:
        """Return the text of a row after the sample, which decides the widths."""
        start, between, stop = self._style.row
        if not (self._any and stop and self._plain):
            return None
        from sqlshell.output.writers.line_sql import table_line

        widths = [layout.width for layout in self._layouts]
        rights = [layout.align == "right" for layout in self._layouts]
        return table_line(columns, widths, rights, (self._lines.between + start, between, stop), self._null)

    def write(self, batch: Batch) -> Iterable[bytes]:
        if (lines := batch.lines(self.line)) is not None:
            return [lines]
        if not self._drawn:
            return super().write(batch)
        return self._draw(self._prepared(batch.rows)) if batch.rows and self._columns else []

    def settle(self) -> Iterable[bytes]:
        sample, self._sample = self._sample, []
        if self._drawn:
            return []
        self._drawn = True
        columns = self._prepared(sample)
        self._measure(columns)
        if self._types:
            self._make_room_for_types()
        self._lines = self._style.lines(self.widths, [layout.align for layout in self._layouts], self._header)
        return itertools.chain(self._head(rows=bool(sample)), self._draw(columns))

    def end(self, summary: Summary) -> Iterable[bytes]:
        yield from self.settle()
        yield from self._encoded(self._rule(self._lines.below))

    # Measured.

    def measured(self, columns: Sequence[Column], rows: Rows) -> list[int]:
        """Return the widths of the columns of a table with these rows."""
        self._columns = columns
        self._measure(self._prepared(rows))
        return self.widths

    @property
    def widths(self) -> list[int]:
        """The widths of the columns in cells."""
        return [layout.width for layout in self._layouts]

    @property
    def edges(self) -> tuple[int, int]:
        """The cells at both ends of a row together, and those between two columns."""
        start, between, stop = map(cells, self._style.row)
        return start + stop, between

    def _prepared(self, rows: Rows) -> list[_Drawn]:
        drawn: list[_Drawn] = []
        for number, values in enumerate(zip(*rows, strict=True)):
            cap = self._caps.get(number, 0)
            nested = cap > 0 and is_nested(self._columns[number])
            shown = self._cut(values, cap, nested=nested) if cap else values
            drawn.append(_Drawn(values, column_text(shown, self._null)))
        return drawn

    def _cut(self, values: Values, cap: int, *, nested: bool) -> Values:
        ellipsis = self._screen.ellipsis if self._screen is not None else "…"
        if nested:
            values = [value if value is None else over_lines(value, cap) for value in values]
        if self._wraps:
            return [value and wrapped(printable(value, "\n"), cap) for value in values]
        short = [value if value is None or len(value) * 2 <= cap else cut(value, cap, ellipsis) for value in values]
        if nested:
            short = [value and first_lines(value, TALLEST, ellipsis) for value in short]
        self._shortened += sum(
            one is not other and not isinstance(other, Shortened) for one, other in zip(short, values, strict=True)
        )
        return short

    def _measure(self, drawn: Sequence[_Drawn]) -> None:
        self._layouts = []
        for column, one in zip(
            self._columns, drawn or [_Drawn((), ColumnText((), True))] * len(self._columns), strict=True
        ):
            layout = _Layout("right" if column.kind.numeric else "left", width=one.text.width)
            if self._screen is not None:
                _align_values(layout, column, one)
            if self._header:
                name = max(map(cells, lines_of(self._name(column))))
                layout.width = max(layout.width, name + self._style.minimum)
            if self._types:
                layout.width = max(layout.width, cells(short_type(column.exact_type)))
            self._layouts.append(layout)

    def _name(self, column: Column) -> str:
        return printable(column.name, "" if self._screen is not None else "\n")

    # Laid out.

    def _make_room_for_types(self) -> None:
        """Widen columns for their exact types while the table fits the screen, those first that need the least."""
        assert self._screen is not None
        room = self._screen.width - 1 - sum(width + 3 for width in self.widths)
        wanted = []
        for column, layout in zip(self._columns, self._layouts, strict=True):
            names = map(cells, whole_types(column.exact_type, self._screen.ellipsis))
            needs = [*line_widths(column.exact_type, layout.width + room), *names]
            wanted.append(([need - layout.width for need in needs], layout))
        for needs, layout in sorted(wanted, key=lambda each: max(each[0], default=0)):
            need = max(0, next((need for need in needs if need <= room), 0))
            layout.width += need
            room -= need

    def _head(self, *, rows: bool) -> Iterator[bytes]:
        lines = [self._rule(self._lines.above)]
        if self._header:
            names = [lines_of(self._name(column)) for column in self._columns]
            lines.append(self._tall(names, self._style.header, "header") + "\n")
            if self._types and self._screen is not None:
                types = [
                    type_lines(column.exact_type, width, self._screen.ellipsis)
                    for column, width in zip(self._columns, self.widths, strict=True)
                ]
                lines.append(self._tall(types, self._style.header, "dim") + "\n")
            if rows or self._screen is None:
                lines.append(self._rule(self._lines.below_header))
        if self._screen is not None:
            self._frozen = (sum(line.count("\n") for line in lines), self._layouts[0].width + 4)
        for line in lines:
            yield from self._encoded(line)

    def _rule(self, rule: str) -> str:
        """A horizontal line in its color."""
        return rule and self._colors.painted(rule[:-1], "border") + "\n" if self._screen is not None else rule

    # Drawn.

    def _encoded(self, text: str) -> Iterator[bytes]:
        for start in range(0, len(text), PIECE):
            yield self._colors.encoded(text[start : start + PIECE])

    def _draw(self, columns: Sequence[_Drawn]) -> Iterator[bytes]:
        if not columns:
            return
        start, between, stop = self._style.row
        forms, drawn = [], []
        for number, (one, layout) in enumerate(zip(columns, self._layouts, strict=True)):
            form, texts = self._column(number, one, layout)
            forms.append(form)
            drawn.append(texts)
        row_format = _escaped(start) + _escaped(between).join(forms) + _escaped(stop)
        lines = list(map(row_format.__mod__, zip(*drawn, strict=True)))
        if not stop:
            lines = [line.rstrip() for line in lines]
        tall = {number for one in columns for number in one.text.multiline}
        for number in tall:
            lines[number] = self._tall_row(number, columns, [texts[number] for texts in drawn], forms)
        if self._screen is not None:
            if tall or self._tall_last:
                self._set_apart(lines, tall)
            self._tall_last = len(lines) - 1 in tall
        elif self._any:
            yield from self._encoded(self._lines.between)
        self._any = True
        yield from self._encoded(f"\n{self._lines.between}".join(lines))
        yield b"\n"

    def _set_apart(self, lines: list[str], tall: Collection[int]) -> None:
        """Put a rule above and below each row of several lines."""
        rule = self._rule(self._lines.below_header)
        before = self._tall_last
        for number, line in enumerate(lines):
            here = number in tall
            # Below the header is a rule already.
            if (before or here) and before is not None:
                lines[number] = f"{rule}{line}"
            before = here

    def _column(self, number: int, drawn: _Drawn, layout: _Layout) -> tuple[str, Sequence[str]]:
        """The format string of a column's cells, and its arguments."""
        colors, values, text, width = self._colors, drawn.values, drawn.text, layout.width
        form, whole = "%s", None not in values and not self._changed
        rich = self._screen is not None
        if rich and layout.align == "right":
            form, column = self._numbers(text, layout, whole=whole)
        elif rich and colors.code("dim") and is_nested(self._columns[number]):
            column = [colors.names(each) for each in text.justified(width, "left")]
        elif whole and text.even:
            column, form = text.texts, f"%{'-' if layout.align == 'left' else ''}{width}s"
        else:
            column = text.justified(width, layout.align)
        if layout.role is not None and (code := colors.code(layout.role)):
            form = f"{code}{form}{RESET}"
        if whole:
            return form, column
        column = list(column)
        if None in values:
            null = colors.painted(justify(self._null, width, layout.align), "null")
            column = [null if value is None else cell for value, cell in zip(values, column, strict=True)]
        for row in [row for row, at in self._changed if at == number and row < len(column)]:
            column[row] = colors.painted(justify(text.texts[row], width, layout.align), "changed")
        return form, column

    def _numbers(self, text: ColumnText, layout: _Layout, *, whole: bool) -> tuple[str, Sequence[str]]:
        width, fraction, texts = layout.width, layout.fraction, text.texts
        if not text.even:
            return "%s", text.justified(width, "right")
        if fraction and {each[-fraction:][:1] for each in texts} != {"."}:
            blank = " " * fraction
            texts = [
                each
                if "e" in each
                else each + " " * (fraction - len(each) + at)
                if (at := each.find(".")) >= 0
                else each + blank
                for each in texts
            ]
        if whole and layout.digits <= UNGROUPED and "-" not in "".join(texts):
            return f"%{width}s", texts
        return "%s", self._colors.numbers([each.rjust(width) for each in texts], fraction, layout.digits)

    def _tall_row(self, number: int, columns: Sequence[_Drawn], drawn: Sequence[str], forms: Sequence[str]) -> str:
        """A row in which a value has several lines, without its last line break."""
        parts = []
        for at, (one, layout, cell, form) in enumerate(zip(columns, self._layouts, drawn, forms, strict=True)):
            if number not in one.text.multiline:
                parts.append([form % cell])
                continue
            lines = [justify(line, layout.width, layout.align) for line in lines_of(one.text.texts[number])]
            if (number, at) in self._changed:
                lines = [self._colors.painted(line, "changed") for line in lines]
            elif self._screen is not None and is_nested(self._columns[at]):
                lines = list(map(self._colors.names, lines))
            parts.append([form % line for line in lines])
        return self._joined(parts, self._style.row)

    def _tall(self, texts: Sequence[Sequence[str]], edge: Edge, role: Role) -> str:
        """The lines of the head."""
        parts = []
        for lines, layout in zip(texts, self._layouts, strict=True):
            padded = [*lines, *[""] * (max(map(len, texts)) - len(lines))]
            parts.append([self._colors.painted(justify(line, layout.width, layout.align), role) for line in padded])
        return self._joined(parts, edge)

    def _joined(self, parts: Sequence[Sequence[str]], edge: Edge) -> str:
        """Cells side by side, each with its lines."""
        start, between, stop = edge
        height = max(map(len, parts))
        filled = [
            [*cell, *[" " * width] * (height - len(cell))] for cell, width in zip(parts, self.widths, strict=True)
        ]
        return "\n".join((start + between.join(line) + stop).rstrip() for line in zip(*filled, strict=True))


def _escaped(text: str) -> str:
    return text.replace("%", "%%")


def _align_values(layout: _Layout, column: Column, drawn: _Drawn) -> None:
    """Find out the color of a column, and where the decimal points of its numbers are."""
    layout.role = role_of(column, drawn.values)
    if not column.kind.numeric:
        return
    known = [text for text, value in zip(drawn.text.texts, drawn.values, strict=True) if value is not None]
    layout.fraction = max(map(_fraction, known), default=0) if column.kind is not Kind.INTEGER else 0
    layout.digits = max(map(whole_digits, known), default=0) if is_quantity(column) else 0
    whole = max((len(text) - _fraction(text) for text in known if "e" not in text), default=0)
    if whole + layout.fraction > layout.width + MOST_SPREAD:
        # A number with many digits behind its point would move all others away from the edge.
        layout.fraction = layout.digits = 0
    layout.width = max(layout.width, whole + layout.fraction)


def _fraction(text: str) -> int:
    """The number of characters from the decimal point of a number to its end; 0 for one with an exponent."""
    at = text.find(".")
    return len(text) - at if at >= 0 and "e" not in text else 0
