"""A record per row, a line per column, as in psql's `\\x`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlshell.output.text.cells import cells, printable
from sqlshell.output.writer import Role, Summary, Unbuffered, WriterOptions
from sqlshell.output.writers.column_text import column_text
from sqlshell.output.writers.delimited import Values, encode
from sqlshell.output.writers.table import NULL
from sqlshell.result import Batch, Column

RULE = "+" + "-" * 10
"""The end of the line above a record."""


class VerticalWriter(Unbuffered):
    """Holds no rows back: the width of the names is known from the columns. Without `header`, blank lines separate
    records. A result without rows is `(0 rows)`, as in psql.
    """

    def __init__(self, options: WriterOptions) -> None:
        self._null = NULL if options.null is None else printable(options.null)
        self._paint = options.paint
        self._numbered = options.header
        self._footer = options.header and options.footer
        self._names: list[str] = []
        self._width = 0
        self._count = 0

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        names = [printable(column.name) for column in columns]
        self._width = max(map(cells, names), default=0)
        self._names = [self._painted(name + " " * (self._width - cells(name)), "header") for name in names]
        return []

    def write(self, batch: Batch) -> Iterable[bytes]:
        if not batch.rows or not self._names:
            return []
        columns = [
            self._column(name, values) for name, values in zip(self._names, zip(*batch.rows, strict=True), strict=True)
        ]
        first = self._count + 1
        self._count += len(batch.rows)
        if not self._numbered:
            records = "\n\n".join(map("\n".join, zip(*columns, strict=True)))
            return [encode(("\n" if first > 1 else "") + records + "\n")]
        heads = (f"-[ RECORD {number} ]".ljust(self._width + 1, "-") + RULE for number in range(first, self._count + 1))
        return [encode("\n".join(map("\n".join, zip(heads, *columns, strict=True))) + "\n")]

    def end(self, summary: Summary) -> Iterable[bytes]:
        return [b"(0 rows)\n"] if self._footer and self._names and not self._count else []

    def _column(self, name: str, values: Values) -> list[str]:
        """The lines of one column; those of a value with line breaks are joined."""
        column = column_text(values, self._null)
        head, blank = f"{name} | ", "\n" + " " * self._width + " | "
        texts = column.texts
        if self._paint is not None and None in values:
            null = self._paint(self._null, "null")
            texts = [null if value is None else text for text, value in zip(texts, values, strict=True)]
        drawn = [head + text for text in texts]
        for number in column.multiline:
            drawn[number] = head + blank.join(texts[number].split("\n"))
        return drawn

    def _painted(self, text: str, role: Role) -> str:
        return self._paint(text, role) if self._paint else text
