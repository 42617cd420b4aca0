"""Bytes for display and for delimited files: `\\x` and hexadecimal digits, as in psql.

The interface transfers them as base64, which only the JSON formats keep.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence

from sqlshell.interface.types import Kind
from sqlshell.output.writer import LineWriter, Summary, Writer, written
from sqlshell.result import Batch, Column, Rows, StoredColumn


def hexadecimal(text: str) -> str:
    """Convert base64 to `\\x…`; other text is not changed."""
    try:
        return "\\x" + base64.b64decode(text, validate=True).hex()
    except (binascii.Error, ValueError):
        return text


def binary_columns(columns: Sequence[Column]) -> list[int]:
    """The numbers of the columns that contain bytes."""
    return [number for number, column in enumerate(columns) if column.kind is Kind.BYTES]


def with_hex(rows: Rows, columns: Sequence[int]) -> Rows:
    """The rows with these columns as hexadecimal digits; the same rows if there are none."""
    if not columns:
        return rows
    converted = []
    for row in rows:
        new = list(row)
        for number in columns:
            text = new[number]
            new[number] = None if text is None else hexadecimal(text)
        converted.append(new)
    return converted


class HexWriter:
    """A writer that receives bytes as hexadecimal digits."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._columns: list[int] = []

    @property
    def buffering(self) -> bool:
        return self._writer.buffering

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        self._columns = binary_columns(columns)
        return self._writer.begin(columns)

    def write(self, batch: Batch) -> Iterable[bytes]:
        if not self._columns:
            return self._writer.write(batch)
        return self._writer.write(Batch(batch.width, rows=with_hex(batch.rows, self._columns)))

    @property
    def shortened(self) -> int:
        return getattr(self._writer, "shortened", 0)

    @property
    def turned(self) -> bool:
        return getattr(self._writer, "turned", False)

    @property
    def frozen(self) -> tuple[int, int]:
        return getattr(self._writer, "frozen", (0, 0))

    @property
    def wraps(self) -> bool:
        return getattr(self._writer, "wraps", False)

    def settle(self) -> Iterable[bytes]:
        return self._writer.settle()

    def end(self, summary: Summary) -> Iterable[bytes]:
        return self._writer.end(summary)


class HexLineWriter(HexWriter):
    """A HexWriter of a format whose rows DuckDB can write, too."""

    def __init__(self, writer: LineWriter) -> None:
        super().__init__(writer)
        self._lines = writer

    def line(self, columns: Sequence[StoredColumn]) -> str | None:
        from sqlshell.output.writers.line_sql import hexadecimal

        shown = [hexadecimal(column) if column.column.kind is Kind.BYTES else column for column in columns]
        whole = [column for column in shown if column is not None]
        return self._lines.line(whole) if len(whole) == len(shown) else None

    def write(self, batch: Batch) -> Iterable[bytes]:
        return written(self, batch, super().write)
