"""JSON and JSON lines: numbers keep their digits, nested values stay JSON, everything else is a string.

NaN and the infinities are strings, because JSON has no such numbers. Columns are converted to JSON as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from json.encoder import encode_basestring

import msgspec

from sqlshell.interface.types import Kind
from sqlshell.output.writer import Summary, Values, Writer, WriterOptions, encode
from sqlshell.output.writers.column_names import distinct_names
from sqlshell.result import Batch, Column, StoredColumn

_DIGITS = r"-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+"
_NUMBER = re.compile(_DIGITS)
_NUMBERS = re.compile(rf"(?:{_DIGITS}\n)*+")
_INTEGER = re.compile(r"-?+(?:0|[1-9][0-9]*+)")
_INTEGERS = re.compile(r"(?:-?+(?:0|[1-9][0-9]*+)\n)*+")
_LOOSE = re.compile(r"([+-]?)0*+([0-9]*)(\.[0-9]*)?(?:[eE]([+-]?[0-9]{1,4}))?")
_BOOLEANS = {"true": "true", "false": "false", "TRUE": "true", "FALSE": "false", "t": "true", "f": "false"}
LONGEST_INTEGER = 400
BETWEEN = ",\n "
"""The separator of two objects of an array."""


Convert = Callable[[str], str]


class _Objects(Writer):
    """Rows as JSON objects, one text per row."""

    by_sql = "lines"

    def __init__(self, options: WriterOptions) -> None:
        self._template = "{}"
        self._names: list[str] = []
        self._columns: list[tuple[re.Pattern[str] | None, Convert]] = []

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        self._names = distinct_names(columns)
        names = (encode_basestring(name).replace("%", "%%") for name in self._names)
        self._template = "{" + ",".join(f"{name}:%s" for name in names) + "}"
        self._columns = [_CONVERSIONS.get(column.kind, (None, encode_basestring)) for column in columns]
        return []

    def objects(self, batch: Batch) -> list[str]:
        if not batch.rows or not batch.width:
            return []
        turned = [
            _encode_column(values, ready, convert)
            for values, (ready, convert) in zip(zip(*batch.rows, strict=True), self._columns, strict=True)
        ]
        template = self._template
        return [template % values for values in zip(*turned, strict=True)]


class JsonlWriter(_Objects):
    """One object per line."""

    def line(self, columns: Sequence[StoredColumn]) -> str | None:
        from sqlshell.output.writers.line_sql import json_line

        return json_line(columns, self._names, "", "\n")

    def write(self, batch: Batch) -> Iterable[bytes]:
        if (lines := batch.lines(self.line)) is not None:
            return [lines]
        objects = self.objects(batch)
        return [encode("\n".join(objects) + "\n")] if objects else []


class JsonWriter(_Objects):
    """One array with one object per line."""

    def __init__(self, options: WriterOptions) -> None:
        super().__init__(options)
        self._open = "["

    def line(self, columns: Sequence[StoredColumn]) -> str | None:
        from sqlshell.output.writers.line_sql import json_line

        return json_line(columns, self._names, BETWEEN, "")

    def write(self, batch: Batch) -> Iterable[bytes]:
        lines = batch.lines(self.line)
        objects = self.objects(batch) if lines is None else []
        if not (lines or objects):
            return []
        opened, self._open = self._open, BETWEEN
        if lines is not None:
            return [lines] if opened == BETWEEN else [opened.encode(), lines[len(BETWEEN) :]]
        return [encode(opened + BETWEEN.join(objects))]

    def end(self, summary: Summary) -> Iterable[bytes]:
        return [b"[]\n" if self._open == "[" else b"]\n"]


def _encode_column(values: Values, ready: re.Pattern[str] | None, convert: Convert) -> Iterable[str]:
    if None not in values:
        joined = "\n".join(values) + "\n"  # type: ignore[arg-type]
        # A value with a line break, which no number has, would be counted as two values.
        if ready is not None and ready.fullmatch(joined) and joined.count("\n") == len(values):
            return values  # type: ignore[return-value]
        return map(convert, values)  # type: ignore[arg-type]
    return ["null" if value is None else convert(value) for value in values]


def number(text: str) -> str:
    """A JSON number with the same value and digits, or a JSON string if the text is not a finite number."""
    if _NUMBER.fullmatch(text):
        return text
    match = _LOOSE.fullmatch(text)
    if match is None or not re.search("[0-9]", re.split("[eE]", text)[0]):
        return encode_basestring(text)
    whole = match[2] or "0"
    fraction = "" if match[3] in {None, "."} else match[3]
    exponent = f"e{match[4]}" if match[4] else ""
    return f"{'-' if match[1] == '-' else ''}{whole}{fraction}{exponent}"


def integer(text: str) -> str:
    """Like number(), but `9.223372036854775807E+18` becomes the integer."""
    if _INTEGER.fullmatch(text):
        return text
    turned = number(text)
    if turned[:1] != '"' and ("." in turned or "e" in turned.lower()):
        value = Decimal(turned)
        if value.adjusted() < LONGEST_INTEGER and value == value.to_integral_value():
            return f"{value.to_integral_value():f}"
    return turned


def boolean(text: str) -> str:
    return _BOOLEANS.get(text) or encode_basestring(text)


def nested(text: str) -> str:
    """JSON text unchanged, on one line; a text that is not JSON becomes a string."""
    try:
        msgspec.json.decode(text)
        return msgspec.json.format(text, indent=-1) if "\n" in text or "\r" in text else text
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return encode_basestring(text)


_CONVERSIONS: dict[Kind, tuple[re.Pattern[str] | None, Convert]] = {
    Kind.INTEGER: (_INTEGERS, integer),
    Kind.DECIMAL: (_NUMBERS, number),
    Kind.FLOAT: (_NUMBERS, number),
    Kind.BOOLEAN: (None, boolean),
    Kind.NESTED: (None, nested),
}
