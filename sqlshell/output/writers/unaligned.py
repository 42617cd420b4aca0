"""Rows between separators, as psql's unaligned format writes them: nothing is escaped, and NULL is an empty field."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlshell.output.writer import Summary, Values, Writer, WriterOptions, encode
from sqlshell.result import Batch, Column


class UnalignedWriter(Writer):
    """Column names, rows, and psql's footer `(2 rows)`. The last record ends with a line break whatever separates
    records, or with a zero byte where that separates them."""

    def __init__(self, options: WriterOptions) -> None:
        self._null = options.null or ""
        self._between = options.field_separator
        self._after = options.record_separator
        self._header = options.header
        self._footer = options.header and options.footer and not options.expanded
        self._expanded = options.expanded
        self._names: list[str] = []
        self._columns = False
        self._begun = False

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        self._columns = bool(columns)
        self._names = [column.name for column in columns]
        if not self._header or self._expanded or not columns:
            return []
        self._begun = True
        return [encode(self._between.join(column.name for column in columns))]

    def write(self, batch: Batch) -> Iterable[bytes]:
        if not batch.rows or not batch.width:
            return []
        between_rows = self._after * 2 if self._expanded else self._after
        rows = [self._record(row) if self._expanded else self._between.join(self._fields(row)) for row in batch.rows]
        before = between_rows if self._begun else ""
        self._begun = True
        return [encode(before + between_rows.join(rows))]

    def end(self, summary: Summary) -> Iterable[bytes]:
        if not self._columns:
            return []
        footer = ""
        if self._footer:
            footer = f"({summary.rows} {'row' if summary.rows == 1 else 'rows'})"
            footer = self._after + footer if self._begun else footer
        if not (self._begun or footer):
            return []
        return [encode(footer + ("\0" if self._after == "\0" else "\n"))]

    def _record(self, row: Values) -> str:
        """A row with a line for each value, as with psql's expanded display."""
        fields = zip(self._names, self._fields(row), strict=True)
        return self._after.join(f"{name}{self._between}{field}" for name, field in fields)

    def _fields(self, row: Values) -> Iterable[str]:
        null = self._null
        return (null if value is None else value for value in row)
