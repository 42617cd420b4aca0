"""CSV and TSV, lossless: NULL and the empty string differ, and every character is preserved.

Columns are processed as a whole, not value by value: most columns of a batch contain no NULLs, empty strings or special
characters, and are not changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from sqlshell.errors import UsageError
from sqlshell.output.writer import Values, Writer, WriterOptions, encode
from sqlshell.output.writers.column_names import distinct_names
from sqlshell.output.writers.csv_from_json import csv_from_json
from sqlshell.result import Batch, Column, Rows, StoredColumn

_QUOTED = re.compile('[",\r\n]')
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\r": "\\r", "\n": "\\n"}
COPY_END = "\\."
"""Alone on a line it ends PostgreSQL's COPY, unless it is quoted."""


class CsvWriter(Writer):
    """RFC 4180 with `\\n` between rows. NULL is an empty field, '' is `""`; a value equal to the text for NULL is
    quoted.
    """

    by_sql = "lines"

    def __init__(self, options: WriterOptions) -> None:
        self._null = options.null or ""
        if _QUOTED.search(self._null):
            raise UsageError(
                f"csv cannot represent NULL as {self._null!r}", "the text must not contain a comma, quote or line break"
            )
        self._header = options.header
        self._single = False

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        self._single = len(columns) == 1
        if self._header and columns:
            names = distinct_names(columns)
            return [encode(",".join(self.quote(name) for name in names) + "\n")]
        return []

    def line(self, columns: Sequence[StoredColumn]) -> str | None:
        from sqlshell.output.writers.line_sql import csv_line

        return csv_line(columns, self._null, COPY_END if self._single else "")

    def write(self, batch: Batch) -> Iterable[bytes]:
        if (lines := batch.lines(self.line)) is not None:
            return [lines]
        if batch.announced and not self._single and not self._null:
            raw = csv_from_json(batch.body, batch.width, batch.announced, self._line)
            if raw is not None:
                return [raw]
        rows = batch.rows
        if not rows or not batch.width:
            return []
        plain = self._plain(rows, batch.width)
        if plain is not None:
            return [encode(plain)]
        columns = [self._column(values) for values in zip(*rows, strict=True)]
        return [encode("\n".join(map(",".join, zip(*columns, strict=True))) + "\n")]

    def _plain(self, rows: Rows, width: int) -> str | None:
        """The batch as text if no value needs care, else None."""
        if self._null or width == 1:
            return None
        try:
            text = "\n".join(map(",".join, rows))  # type: ignore[arg-type]
        except TypeError:
            return None
        if '"' in text or "\r" in text or ",," in text or "\n," in text or ",\n" in text:
            return None
        if text.count(",") != len(rows) * (width - 1) or text.count("\n") != len(rows) - 1:
            return None
        return None if text[0] == "," or text[-1] == "," else text + "\n"

    def _line(self, row: Values) -> str:
        return ",".join("" if value is None else self.quote(value) for value in row)

    def _column(self, values: Values) -> Sequence[str]:
        present = [value for value in values if value is not None] if None in values else values
        joined = "\n".join(present)  # type: ignore[arg-type]
        care = (
            len(present) != len(values)
            or '"' in joined
            or "," in joined
            or "\r" in joined
            or joined.count("\n") != len(present) - 1
            or "" in present
            or (self._null and self._null in present)
            or (self._single and COPY_END in present)
        )
        if not care:
            return values  # type: ignore[return-value]
        null, quote = self._null, self.quote
        return [null if value is None else quote(value) for value in values]

    def quote(self, value: str) -> str:
        if not value or value == self._null or _QUOTED.search(value) or (self._single and value == COPY_END):
            return '"' + value.replace('"', '""') + '"'
        return value


class CsvRecordWriter(Writer):
    """CSV with a line for each value, its column's name before it, as psql writes it with `\\x`."""

    def __init__(self, options: WriterOptions) -> None:
        self._csv = CsvWriter(options)
        self._null = options.null or ""
        self._names: list[str] = []

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        self._names = [self._csv.quote(name) for name in distinct_names(columns)]
        return []

    def write(self, batch: Batch) -> Iterable[bytes]:
        lines = (
            f"{name},{self._null if value is None else self._csv.quote(value)}\n"
            for row in batch.rows
            for name, value in zip(self._names, row, strict=True)
        )
        return map(encode, lines)


class TsvWriter(Writer):
    """Tab-separated, the text format of PostgreSQL's COPY: `\\t \\n \\r \\\\` for those characters, `\\N` for NULL."""

    by_sql = "lines"

    def __init__(self, options: WriterOptions, delimiter: str = "\t", escapes: Mapping[str, str] = _ESCAPES) -> None:
        """`escapes` are the escape sequences of characters, that of the backslash first."""
        self._null = "\\N" if options.null is None else options.null
        self._header = options.header
        self._delimiter = delimiter
        self._escapes = escapes
        self._escaped = re.compile(f"[{re.escape(''.join(escapes))}]")

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        if self._header and columns:
            return [encode(self._delimiter.join(map(self._escape, distinct_names(columns))) + "\n")]
        return []

    def line(self, columns: Sequence[StoredColumn]) -> str | None:
        from sqlshell.output.writers.line_sql import tsv_line

        return tsv_line(columns, self._null, self._escape(self._null), self._delimiter, self._escapes)

    def write(self, batch: Batch) -> Iterable[bytes]:
        if (lines := batch.lines(self.line)) is not None:
            return [lines]
        if not batch.rows or not batch.width:
            return []
        columns = [self._column(values) for values in zip(*batch.rows, strict=True)]
        return [encode("\n".join(map(self._delimiter.join, zip(*columns, strict=True))) + "\n")]

    def _column(self, values: Values) -> Sequence[str]:
        if None not in values and self._null not in values and not self._escaped.search("".join(values)):  # type: ignore[arg-type]
            return values  # type: ignore[return-value]
        null, escape = self._null, self._escape
        return [null if value is None else escape(value) for value in values]

    def _escape(self, value: str) -> str:
        if value == self._null and value and value[0] not in self._escapes:
            # A text that looks like NULL gets an unnecessary escape of its first character.
            value, prefix = value[1:], "\\" + value[0]
            return prefix + self._escape(value) if value else prefix
        return self._escaped.sub(lambda match: self._escapes[match[0]], value)
