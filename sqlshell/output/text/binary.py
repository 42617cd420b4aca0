"""Bytes for display and for delimited files: `\\x` and hexadecimal digits, as psql writes them.

On the wire they are base64, which only the JSON formats keep.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence

from sqlshell.interface.types import Kind
from sqlshell.output.writer import Summary, Writer
from sqlshell.result import Batch, Column, Rows


def hexadecimal(text: str) -> str:
    """Base64 as `\\x…`; a text that is no base64 as it is."""
    try:
        return "\\x" + base64.b64decode(text, validate=True).hex()
    except (binascii.Error, ValueError):
        return text


def binary_columns(columns: Sequence[Column]) -> list[int]:
    """The numbers of the columns that hold bytes."""
    return [number for number, column in enumerate(columns) if column.kind is Kind.BYTES]


def with_hex(rows: Rows, columns: Sequence[int]) -> Rows:
    """The rows with the values of these columns as hexadecimal digits; the same rows where there are none."""
    if not columns:
        return rows
    made = []
    for row in rows:
        new = list(row)
        for number in columns:
            text = new[number]
            new[number] = None if text is None else hexadecimal(text)
        made.append(new)
    return made


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

    def settle(self) -> Iterable[bytes]:
        return self._writer.settle()

    def end(self, summary: Summary) -> Iterable[bytes]:
        return self._writer.end(summary)
