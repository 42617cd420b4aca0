"""Delimited files for spreadsheets: no value is read as a formula."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from sqlshell.output.writer import Summary, Writer
from sqlshell.result import Batch, Column

_FORMULA = frozenset("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
_NUMBER = re.compile(r"[-+]?+(?:\d++\.?+\d*+|\.\d++)(?:[eE][-+]?+\d++)?+", re.ASCII)


class SpreadsheetWriter:
    """Writes `'` before every value and column name that begins like a formula, except numbers."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    @property
    def buffering(self) -> bool:
        return self._writer.buffering

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        return self._writer.begin([replace(column, name=_safe(column.name)) for column in columns])

    def write(self, batch: Batch) -> Iterable[bytes]:
        # A call for each value would take most of the time.
        rows = [
            [value if value is None or value[:1] not in _FORMULA else _safe(value) for value in row]
            for row in batch.rows
        ]
        return self._writer.write(Batch(batch.width, rows=rows))

    def settle(self) -> Iterable[bytes]:
        return self._writer.settle()

    def end(self, summary: Summary) -> Iterable[bytes]:
        return self._writer.end(summary)


def _safe(text: str) -> str:
    return f"'{text}" if text[:1] in _FORMULA and not _NUMBER.fullmatch(text) else text
