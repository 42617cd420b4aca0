"""CSV and TSV, lossless: NULL and the empty string differ, and every character comes back.

Columns are looked at whole, not value by value: a column of a batch without NULLs, empty strings and special characters
goes through untouched, which most do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from sqlshell.errors import UsageError
from sqlshell.output.writer import Summary, WriterOptions
from sqlshell.output.writers.column_names import distinct_names
from sqlshell.output.writers.csv_from_json import csv_from_json
from sqlshell.result import Batch, Column, Rows

Values = Sequence[str | None]

_QUOTED = re.compile('[",\r\n]')
_ESCAPED = re.compile("[\\\\\t\r\n]")
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\r": "\\r", "\n": "\\n"}
PIECE = 1 << 20
"""Characters that are encoded at once."""
COPY_END = "\\."
"""Alone on a line it ends PostgreSQL's COPY, unless it is quoted."""


def encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def encoded(text: str) -> Iterator[bytes]:
    """A text that may be enormous, in pieces."""
    for start in range(0, len(text), PIECE):
        yield encode(text[start : start + PIECE])


class CsvWriter:
    """RFC 4180 with `\\n` between rows. NULL is an empty field, '' is `""`; what equals NULL's text is quoted."""

    buffering = False

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
            return [encode(",".join(self._quote(name) for name in names) + "\n")]
        return []

    def write(self, batch: Batch) -> Iterable[bytes]:
        if batch.announced and not self._single and not self._null:
            raw = csv_from_json(batch.body, batch.width, batch.announced, self._line)
            if raw is not None:
                return [raw.encode()]
        rows = batch.rows
        if not rows or not batch.width:
            return []
        plain = self._plain(rows, batch.width)
        if plain is not None:
            return [encode(plain)]
        columns = [self._column(values) for values in zip(*rows, strict=True)]
        return [encode("\n".join(map(",".join, zip(*columns, strict=True))) + "\n")]

    def settle(self) -> Iterable[bytes]:
        return []

    def end(self, summary: Summary) -> Iterable[bytes]:
        return []

    def _plain(self, rows: Rows, width: int) -> str | None:
        """The batch as text if nothing in it needs care, else None."""
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
        return ",".join("" if value is None else self._quote(value) for value in row)

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
        null, quote = self._null, self._quote
        return [null if value is None else quote(value) for value in values]

    def _quote(self, value: str) -> str:
        if not value or value == self._null or _QUOTED.search(value) or (self._single and value == COPY_END):
            return '"' + value.replace('"', '""') + '"'
        return value


class TsvWriter:
    """Tab-separated as PostgreSQL's COPY writes text: `\\t \\n \\r \\\\` for those characters, `\\N` for NULL."""

    buffering = False

    def __init__(self, options: WriterOptions) -> None:
        self._null = "\\N" if options.null is None else options.null
        self._header = options.header

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        if self._header and columns:
            return [encode("\t".join(map(self._escape, distinct_names(columns))) + "\n")]
        return []

    def write(self, batch: Batch) -> Iterable[bytes]:
        if not batch.rows or not batch.width:
            return []
        columns = [self._column(values) for values in zip(*batch.rows, strict=True)]
        return [encode("\n".join(map("\t".join, zip(*columns, strict=True))) + "\n")]

    def settle(self) -> Iterable[bytes]:
        return []

    def end(self, summary: Summary) -> Iterable[bytes]:
        return []

    def _column(self, values: Values) -> Sequence[str]:
        if None not in values and self._null not in values and not _ESCAPED.search("".join(values)):  # type: ignore[arg-type]
            return values  # type: ignore[return-value]
        null, escape = self._null, self._escape
        return [null if value is None else escape(value) for value in values]

    def _escape(self, value: str) -> str:
        if value == self._null and value and value[0] not in _ESCAPES:
            # A text that looks like NULL: a needless escape of its first character tells them apart.
            value, prefix = value[1:], "\\" + value[0]
            return prefix + self._escape(value) if value else prefix
        return _ESCAPED.sub(lambda found: _ESCAPES[found[0]], value)
