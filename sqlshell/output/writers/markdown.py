"""Tables in GitHub's Markdown; characters that would be markup are escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sqlshell.output.text.cells import distinct_from_null, printable
from sqlshell.output.writer import Summary, Values, Writer, WriterOptions, encode
from sqlshell.output.writers.table import NULL
from sqlshell.result import Batch, Column

_BLANK = r"[^\S\n]"
_MARKUP = re.compile(
    rf"[\\`*|<>&\[\]~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|\A{_BLANK}|{_BLANK}\Z|(?<=\s){_BLANK}|{_BLANK}(?=\n)"
)
_LINE_BREAK = "<br>"


class MarkdownWriter(Writer):
    """A row for each row, nothing held back; a line break in a value is `<br>`. Always with column names: without
    them it would not be a table."""

    def __init__(self, options: WriterOptions) -> None:
        self._null = NULL if options.null is None else options.null
        self._columns = False

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        self._columns = bool(columns)
        if not columns:
            return []
        names = " | ".join(_escaped(column.name) for column in columns)
        rules = " | ".join("---:" if column.kind.numeric else "---" for column in columns)
        return [encode(f"| {names} |\n| {rules} |\n")]

    def write(self, batch: Batch) -> Iterable[bytes]:
        if not batch.rows or not batch.width:
            return []
        columns = [self._column(values) for values in zip(*batch.rows, strict=True)]
        return [encode("".join(f"| {' | '.join(row)} |\n" for row in zip(*columns, strict=True)))]

    def end(self, summary: Summary) -> Iterable[bytes]:
        # A table ends at a blank line: without it the next result would be its rows.
        return [b"\n"] if self._columns else []

    def _column(self, values: Values) -> Sequence[str]:
        null = _escaped(self._null)
        return [null if value is None else _escaped(distinct_from_null(value, self._null)) for value in values]


def _escaped(text: str) -> str:
    if text.isalnum() and text.isascii():
        return text
    safe = _MARKUP.sub(_without_meaning, printable(text, "\n"))
    return safe.replace("\n", _LINE_BREAK)


def _without_meaning(match: re.Match[str]) -> str:
    char = match[0]
    # Blanks at the edges and after blanks would be dropped, and a backslash works before punctuation only.
    return f"&#{ord(char)};" if char.isspace() else f"\\{char}"
