"""How values change before they are written: bytes as in psql, formulas made harmless, and all that is for people.

The interface writes bytes as base64, which only the JSON formats keep.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from sqlshell.interface.types import Kind
from sqlshell.output.writer import Change, DisplayFormat, Look, Summary, Values, Writer, each
from sqlshell.result import Batch, Column, Rows, StoredColumn

_FORMULA: Final = frozenset("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
_NUMBER: Final = re.compile(r"[-+]?+(?:\d++\.?+\d*+|\.\d++)(?:[eE][-+]?+\d++)?+", re.ASCII)


class ChangedWriter(Writer):
    """A writer that receives changed values."""

    def __init__(self, writer: Writer, display: DisplayFormat | None, *, safe: bool) -> None:
        """`display` are the changes for people, and `safe` makes formulas harmless, also in the names of columns."""
        self._writer = writer
        self._display = display
        self._safe = safe
        # In SQL nothing is made harmless.
        self.by_sql = "" if safe else writer.by_sql
        self._changes: list[list[Change]] = []
        self._changing = False
        self._shortened = 0

    @property
    def buffering(self) -> bool:
        return self._writer.buffering

    @property
    def look(self) -> Look:
        look = self._writer.look
        return replace(look, shortened=look.shortened + self._shortened) if self._shortened else look

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        self._changes = [self._changes_of(column) for column in columns]
        self._changing = any(self._changes)
        if self._safe:
            columns = [replace(column, name=_harmless(column.name)) for column in columns]
        return self._writer.begin(columns)

    def write(self, batch: Batch) -> Iterable[bytes]:
        if (lines := batch.lines(self.line)) is not None:
            return [lines]
        if not self._changing or not batch.rows:
            return self._writer.write(batch)
        columns: list[Values] = list(zip(*batch.rows, strict=True))
        changed = list(map(_changed, columns, self._changes))
        if all(map(lambda one, other: one is other, columns, changed)):
            return self._writer.write(batch)
        return self._writer.write(Batch(batch.width, rows=[list(row) for row in zip(*changed, strict=True)]))

    def settle(self) -> Iterable[bytes]:
        return self._writer.settle()

    def end(self, summary: Summary) -> Iterable[bytes]:
        return self._writer.end(summary)

    def line(self, columns: Sequence[StoredColumn]) -> str | None:
        shown: list[StoredColumn] = []
        for column in columns:
            stored: StoredColumn | None = column
            for change in self._changes_of(column.column):
                stored = change.stored(stored) if stored is not None else None
            if stored is None:
                return None
            shown.append(stored)
        return self._writer.line(shown)

    def _changes_of(self, column: Column) -> list[Change]:
        changes = [_BYTES] if column.kind is Kind.BYTES else []
        if self._display is not None:
            from sqlshell.output.text.display import display_changes

            changes += display_changes(column, self._display, self._count)
        return [*changes, _HARMLESS] if self._safe else changes

    def _count(self, number: int) -> None:
        self._shortened += number


def _changed(values: Values, changes: Sequence[Change]) -> Values:
    for change in changes:
        values = change.values(values)
    return values


# Bytes.


def hexadecimal(text: str) -> str:
    """Convert base64 to `\\x…`; other text is not changed."""
    try:
        return "\\x" + base64.b64decode(text, validate=True).hex()
    except (binascii.Error, ValueError):
        return text


def _stored_hexadecimal(column: StoredColumn) -> StoredColumn | None:
    from sqlshell.output.writers.line_sql import hexadecimal as in_sql

    return in_sql(column)


_BYTES: Final = Change(each(hexadecimal), _stored_hexadecimal)


def with_hex(rows: Rows, columns: Sequence[Column]) -> Rows:
    """Return the rows with bytes as hexadecimal digits; the same rows if there are none."""
    binary = [number for number, column in enumerate(columns) if column.kind is Kind.BYTES]
    if not binary:
        return rows
    converted = [list(row) for row in rows]
    for row in converted:
        for number in binary:
            text = row[number]
            row[number] = None if text is None else hexadecimal(text)
    return converted


# Spreadsheets: no value is read as a formula.


def _harmless(text: str) -> str:
    """Write `'` before a text that begins like a formula, unless it is a number."""
    return f"'{text}" if text[:1] in _FORMULA and not _NUMBER.fullmatch(text) else text


def _all_harmless(values: Values) -> Values:
    if _FORMULA.isdisjoint({value[:1] for value in values if value}):
        return values
    # A call for each value would take most of the time.
    return [value if value is None or value[:1] not in _FORMULA else _harmless(value) for value in values]


_HARMLESS: Final = Change(_all_harmless)
