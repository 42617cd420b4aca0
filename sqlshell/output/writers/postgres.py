"""CSV and text with the options of PostgreSQL's COPY."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from sqlshell.output.writer import Summary, Unbuffered, WriterOptions
from sqlshell.output.writers.column_names import distinct_names
from sqlshell.output.writers.delimited import COPY_END, TsvWriter, Values, encode
from sqlshell.result import Batch, Column

_ESCAPES: Final = {"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


def text_writer(options: WriterOptions, delimiter: str) -> TsvWriter:
    """The text format: control characters and the delimiter are escaped."""
    return TsvWriter(options, delimiter, _ESCAPES if delimiter == "\t" else {**_ESCAPES, delimiter: f"\\{delimiter}"})


class CopyCsvWriter(Unbuffered):
    """CSV with any delimiter, quote and escape character. `force_quote` are names of columns whose values are always
    quoted; None is all columns.
    """

    def __init__(
        self, options: WriterOptions, delimiter: str, quote: str, escape: str, force_quote: frozenset[str] | None
    ) -> None:
        self._null = options.null or ""
        self._header = options.header
        self._delimiter = delimiter
        self._quote = quote
        self._escape = escape
        self._force = force_quote
        self._forced: list[bool] = []
        self._single = False
        self._special = re.compile(f"[{re.escape(delimiter + quote)}\r\n]")

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        self._single = len(columns) == 1
        self._forced = [self._force is None or column.name in self._force for column in columns]
        if self._header and columns:
            return [encode(self._delimiter.join(map(self._if_needed, distinct_names(columns))) + "\n")]
        return []

    def write(self, batch: Batch) -> Iterable[bytes]:
        if not batch.rows or not batch.width:
            return []
        columns = map(self._column, zip(*batch.rows, strict=True), self._forced)
        return [encode("\n".join(map(self._delimiter.join, zip(*columns, strict=True))) + "\n")]

    def end(self, summary: Summary) -> Iterable[bytes]:
        return []

    def _column(self, values: Values, forced: bool) -> Sequence[str]:
        text_of = self._quoted if forced else self._if_needed
        return [self._null if value is None else text_of(value) for value in values]

    def _if_needed(self, value: str) -> str:
        needed = value == self._null or self._special.search(value) or (self._single and value == COPY_END)
        return self._quoted(value) if needed else value

    def _quoted(self, value: str) -> str:
        if self._escape != self._quote:
            value = value.replace(self._escape, self._escape * 2)
        return f"{self._quote}{value.replace(self._quote, self._escape + self._quote)}{self._quote}"
