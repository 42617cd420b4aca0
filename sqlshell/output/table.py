"""Aligned tables that stream: widths settle after a sample, later values that do not fit widen their own row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlshell.output.cells import cells, printable
from sqlshell.output.delimited import Values, encode
from sqlshell.output.formats import Summary, WriterOptions
from sqlshell.output.styles import Line, Style, style_named
from sqlshell.result import Batch, Column, Rows

SAMPLE = 1_000
"""Rows that decide the widths."""

NULL = "NULL"


class TableWriter:
    """Draws what tabulate draws (`disable_numparse`, `preserve_whitespace`), numbers to the right, row by row."""

    def __init__(self, options: WriterOptions) -> None:
        self._style: Style = style_named(options.table_style)
        self._null = NULL if options.null is None else printable(options.null)
        self._show_header = options.header
        self._names: list[str] = []
        self._aligns: list[str] = []
        self._widths: list[int] = []
        self._sample: Rows = []
        self._drawn = False
        self._any = False

    @property
    def holding(self) -> bool:
        return bool(self._sample)

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        self._names = [printable(column.name, "\n") for column in columns]
        if self._style.centered:
            self._aligns = ["center"] * len(columns)
        else:
            self._aligns = ["right" if column.kind.numeric else "left" for column in columns]
        return []

    def write(self, batch: Batch) -> Iterable[bytes]:
        if self._drawn:
            return self._rows(batch.rows)
        self._sample += batch.rows
        return self.settle() if len(self._sample) >= SAMPLE else []

    def settle(self) -> Iterable[bytes]:
        sample, self._sample = self._sample, []
        return [*self._head(sample[:SAMPLE]), *self._rows(sample)]

    def end(self, summary: Summary) -> Iterable[bytes]:
        chunks = list(self.settle() if self._sample or not self._drawn else [])
        below = self._line(self._style.below)
        return [*chunks, encode(below)] if below else chunks

    def _head(self, sample: Rows) -> Iterable[bytes]:
        if self._drawn:
            return []
        self._drawn = True
        minimum = self._style.minimum if self._show_header else 0
        names = [name.split("\n") for name in self._names]
        self._widths = [max(map(cells, lines)) + minimum if self._show_header else 0 for lines in names]
        for number, values in enumerate(zip(*sample, strict=True)):
            _, width, _ = self._texts(values)
            self._widths[number] = max(self._widths[number], width)
        text = self._line(self._style.above)
        if self._show_header:
            text += self._tall(names, self._style.header) + self._line(self._style.below_header)
        return [encode(text)] if text else []

    def _rows(self, rows: Rows) -> Iterable[bytes]:
        if not rows:
            return []
        style = self._style
        pad = " " * style.padding
        columns: list[list[str]] = []
        tall = style.between is not None
        for values, width, align in zip(zip(*rows, strict=True), self._widths, self._aligns, strict=True):
            texts, widest, lines = self._texts(values)
            tall = tall or lines
            columns.append(texts if lines else _justify(texts, width, align, ascii_only=widest >= 0))
        if tall:
            return [encode("".join(self._tall_rows(columns)))]
        begin, separator, end = style.row
        start, between, stop = begin + pad, pad + separator + pad, pad + end
        drawn = [start + body + stop for body in map(between.join, zip(*columns, strict=True))]
        if not end.strip():
            drawn = [line.rstrip() for line in drawn]
        return [encode("\n".join(drawn) + "\n")]

    def _texts(self, values: Values) -> tuple[list[str], int, bool]:
        """Printable texts of a column, their widest in cells, and whether one has several lines."""
        null = self._null
        texts = [null if value is None else value for value in values] if None in values else list(values)
        joined = "".join(texts)  # type: ignore[arg-type]
        if joined.isascii() and joined.isprintable():
            return texts, max(map(len, texts)), False  # type: ignore[arg-type, return-value]
        safe = [printable(text, "\n") for text in texts]  # type: ignore[arg-type]
        lines = any("\n" in text for text in safe)
        if lines:
            return safe, max(cells(line) for text in safe for line in text.split("\n")), True
        return safe, max(map(cells, safe)), False

    def _tall_rows(self, columns: list[list[str]]) -> Iterable[str]:
        line = self._line(self._style.between)
        for row in zip(*columns, strict=True):
            if line and self._any:
                yield line
            self._any = True
            yield self._tall([text.split("\n") for text in row], self._style.row)

    def _tall(self, texts: list[list[str]], edge: tuple[str, str, str]) -> str:
        """One row of cells that may have several lines."""
        begin, separator, end = edge
        pad = " " * self._style.padding
        height = max(map(len, texts), default=1)
        drawn = []
        for number in range(height):
            parts = [
                pad + _justify([lines[number] if number < len(lines) else ""], width, align, ascii_only=False)[0] + pad
                for lines, width, align in zip(texts, self._widths, self._aligns, strict=True)
            ]
            drawn.append((begin + separator.join(parts) + end).rstrip() + "\n")
        return "".join(drawn)

    def _line(self, line: Line) -> str:
        if line is None or not self._names:
            return ""
        widths = [width + 2 * self._style.padding for width in self._widths]
        if callable(line):
            return line(widths, self._aligns) + "\n"
        begin, fill, separator, end = line
        return (begin + separator.join(fill * width for width in widths) + end).rstrip() + "\n"


def _justify(texts: list[str], width: int, align: str, *, ascii_only: bool) -> list[str]:
    if ascii_only and "".join(texts).isascii():
        match align:
            case "left":
                return [text.ljust(width) for text in texts]
            case "right":
                return [text.rjust(width) for text in texts]
    padded = []
    for text in texts:
        missing = max(0, width - cells(text))
        match align:
            case "left":
                padded.append(text + " " * missing)
            case "right":
                padded.append(" " * missing + text)
            case _:
                padded.append(" " * (missing // 2) + text + " " * (missing - missing // 2))
    return padded
