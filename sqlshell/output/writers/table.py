"""Aligned tables that stream: the widths are fixed after a sample; a wider value later widens only its own row."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence

from sqlshell.output.text.cells import lines_of, printable
from sqlshell.output.writer import Role, Summary, WriterOptions, written
from sqlshell.output.writers.column_text import Align, ColumnText, column_text, justify
from sqlshell.output.writers.delimited import Values, encode_pieces
from sqlshell.output.writers.styles import Edge, Lines, Style, table_style
from sqlshell.result import Batch, Column, Rows, StoredColumn

SAMPLE = 1_000
SAMPLE_SIZE = 4 << 20
"""Rows, or characters, to collect before the widths are fixed; the rest of their partition counts too."""

NULL = "NULL"

Drawn = tuple[Values, ColumnText]
"""The values of a column and their drawn form."""


class SampledTable(ABC):
    """Collects rows until the widths of the columns can be fixed, then draws them, and the next ones as they arrive."""

    def __init__(self) -> None:
        self._sample: Rows = []
        self._drawn = False

    @property
    def buffering(self) -> bool:
        return bool(self._sample)

    def write(self, batch: Batch) -> Iterable[bytes]:
        if self._drawn:
            return self._rows(batch.rows)
        self._sample += batch.rows
        return self.settle() if sample_complete(self._sample) else []

    def settle(self) -> Iterable[bytes]:
        sample, self._sample = self._sample, []
        if self._drawn:
            return []
        self._drawn = True
        return self._start(sample)

    @abstractmethod
    def _start(self, sample: Rows) -> Iterable[bytes]:
        """Fix the widths, and draw the head and the first rows."""

    @abstractmethod
    def _rows(self, rows: Rows) -> Iterable[bytes]:
        """Draw rows after the first ones."""


class TableWriter(SampledTable):
    """Draws like tabulate (`disable_numparse`, `preserve_whitespace`), numbers right-aligned, row by row.

    Raises UsageError for an unknown table style.
    """

    def __init__(self, options: WriterOptions) -> None:
        super().__init__()
        self._style: Style = table_style(options.table_style)
        self._null = NULL if options.null is None else printable(options.null)
        self._paint = options.paint
        self._changed = options.changed
        self._show_header = options.header
        self._names: list[str] = []
        self._aligns: list[Align] = []
        self._widths: list[int] = []
        self._lines = Lines()
        self._any = False

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        self._names = [printable(column.name, "\n") for column in columns]
        self._aligns = ["right" if column.kind.numeric else "left" for column in columns]
        self._drawn = not columns
        return []

    def line(self, columns: Sequence[StoredColumn]) -> str | None:
        """The text of a row after the sample, which decides the widths."""
        start, between, stop = self._style.row
        if not (self._any and stop) or self._paint is not None or self._changed:
            return None
        from sqlshell.output.writers.line_sql import table_line

        rights = [align == "right" for align in self._aligns]
        return table_line(columns, self._widths, rights, (self._lines.between + start, between, stop), self._null)

    def write(self, batch: Batch) -> Iterable[bytes]:
        return written(self, batch, super().write)

    def _start(self, sample: Rows) -> Iterable[bytes]:
        columns = self._prepared(sample)
        self._measure(columns)
        return itertools.chain(self._head(), self._draw(columns))

    def end(self, summary: Summary) -> Iterable[bytes]:
        yield from self.settle()
        yield from encode_pieces(self._lines.below)

    def _prepared(self, rows: Rows) -> list[Drawn]:
        return [(values, column_text(values, self._null)) for values in zip(*rows, strict=True)]

    def _rows(self, rows: Rows) -> Iterable[bytes]:
        return self._draw(self._prepared(rows)) if rows and self._names else []

    def _measure(self, columns: Sequence[Drawn]) -> None:
        names = [ColumnText([name], False, [0]) for name in self._names]
        self._widths = [name.width + self._style.minimum if self._show_header else 0 for name in names]
        for number, (_, column) in enumerate(columns):
            self._widths[number] = max(self._widths[number], column.width)
        self._lines = self._style.lines(self._widths, self._aligns, self._show_header)

    def _head(self) -> Iterator[bytes]:
        yield from encode_pieces(self._lines.above)
        if self._show_header:
            names = [lines_of(name) for name in self._names]
            yield from encode_pieces(self._tall(names, self._style.header, ["header"] * len(names)))
            yield b"\n"
            yield from encode_pieces(self._lines.below_header)

    def _draw(self, columns: Sequence[Drawn]) -> Iterator[bytes]:
        if not columns:
            return
        start, between, stop = self._style.row
        justified = [
            self._painted(number, values, column.justified(width, align))
            for number, ((values, column), width, align) in enumerate(
                zip(columns, self._widths, self._aligns, strict=True)
            )
        ]
        drawn = [start + body + stop for body in map(between.join, zip(*justified, strict=True))]
        if not stop:
            drawn = [line.rstrip() for line in drawn]
        for number in {number for _, column in columns for number in column.multiline}:
            lines = [lines_of(column.texts[number]) for _, column in columns]
            roles: list[Role | None] = ["null" if values[number] is None else None for values, _ in columns]
            drawn[number] = self._tall(lines, self._style.row, roles)
        if self._any:
            yield from encode_pieces(self._lines.between)
        self._any = True
        yield from encode_pieces(f"\n{self._lines.between}".join(drawn))
        yield b"\n"

    def _painted(self, column: int, values: Values, texts: list[str]) -> list[str]:
        paint = self._paint
        if paint is None or (None not in values and not self._changed):
            return texts
        if self._changed:
            marked = {row for row, at in self._changed if at == column}
            texts = [paint(text, "changed") if row in marked else text for row, text in enumerate(texts)]
        return [paint(text, "null") if value is None else text for text, value in zip(texts, values, strict=True)]

    def _tall(self, texts: Sequence[Sequence[str]], edge: Edge, roles: Sequence[Role | None]) -> str:
        """One row of cells that may have several lines, without its last line break."""
        start, between, stop = edge
        drawn = []
        for number in range(max(map(len, texts))):
            parts = []
            for lines, width, align, role in zip(texts, self._widths, self._aligns, roles, strict=True):
                text = justify(lines[number] if number < len(lines) else "", width, align)
                parts.append(self._paint(text, role) if self._paint and role else text)
            drawn.append((start + between.join(parts) + stop).rstrip())
        return "\n".join(drawn)


def sample_complete(sample: Rows) -> bool:
    """Whether enough rows have been collected."""
    return len(sample) >= SAMPLE or sum(len(value) for row in sample for value in row if value) >= SAMPLE_SIZE
