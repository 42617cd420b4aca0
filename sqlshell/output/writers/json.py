"""JSON and JSON lines: numbers keep their digits, nested values stay JSON, everything else is a string.

NaN and the infinities are strings, for JSON has no such numbers. Columns are turned into JSON texts whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from json.encoder import encode_basestring

import msgspec

from sqlshell.interface.types import Kind
from sqlshell.output.writer import Summary, WriterOptions
from sqlshell.output.writers.column_names import distinct_names
from sqlshell.output.writers.delimited import Values, encode
from sqlshell.result import Batch, Column

_DIGITS = r"-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+"
_NUMBER = re.compile(_DIGITS)
_NUMBERS = re.compile(rf"(?:{_DIGITS}\n)*+")
_INTEGER = re.compile(r"-?+(?:0|[1-9][0-9]*+)")
_INTEGERS = re.compile(r"(?:-?+(?:0|[1-9][0-9]*+)\n)*+")
_LOOSE = re.compile(r"([+-]?)0*+([0-9]*)(\.[0-9]*)?(?:[eE]([+-]?[0-9]{1,4}))?")
_BOOLEANS = {"true": "true", "false": "false", "TRUE": "true", "FALSE": "false", "t": "true", "f": "false"}
LONGEST_INTEGER = 400

Convert = Callable[[str], str]


class _Objects:
    """Rows as JSON objects, one text each."""

    buffering = False

    def __init__(self, options: WriterOptions) -> None:
        self._template = "{}"
        self._columns: list[tuple[re.Pattern[str] | None, Convert]] = []

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        names = (encode_basestring(name).replace("%", "%%") for name in distinct_names(columns))
        self._template = "{" + ",".join(f"{name}:%s" for name in names) + "}"
        self._columns = [_HOW.get(column.kind, (None, encode_basestring)) for column in columns]
        return []

    def objects(self, batch: Batch) -> list[str]:
        if not batch.rows or not batch.width:
            return []
        turned = [
            _turn(values, ready, convert)
            for values, (ready, convert) in zip(zip(*batch.rows, strict=True), self._columns, strict=True)
        ]
        template = self._template
        return [template % values for values in zip(*turned, strict=True)]

    def settle(self) -> Iterable[bytes]:
        return []


class JsonlWriter(_Objects):
    """An object per line."""

    def write(self, batch: Batch) -> Iterable[bytes]:
        found = self.objects(batch)
        return [encode("\n".join(found) + "\n")] if found else []

    def end(self, summary: Summary) -> Iterable[bytes]:
        return []


class JsonWriter(_Objects):
    """One array with an object per line."""

    def __init__(self, options: WriterOptions) -> None:
        super().__init__(options)
        self._open = "["

    def write(self, batch: Batch) -> Iterable[bytes]:
        found = self.objects(batch)
        if not found:
            return []
        opened, self._open = self._open, ",\n "
        return [encode(opened + ",\n ".join(found))]

    def end(self, summary: Summary) -> Iterable[bytes]:
        return [b"[]\n" if self._open == "[" else b"]\n"]


def _turn(values: Values, ready: re.Pattern[str] | None, convert: Convert) -> Iterable[str]:
    if None not in values:
        if ready is not None and ready.fullmatch("\n".join(values) + "\n"):  # type: ignore[arg-type]
            return values  # type: ignore[return-value]
        return map(convert, values)  # type: ignore[arg-type]
    return ["null" if value is None else convert(value) for value in values]


def number(text: str) -> str:
    """A JSON number with the same value and digits, or a JSON string where the text is no finite number."""
    if _NUMBER.fullmatch(text):
        return text
    found = _LOOSE.fullmatch(text)
    if found is None or not re.search("[0-9]", re.split("[eE]", text)[0]):
        return encode_basestring(text)
    whole = found[2] or "0"
    fraction = "" if found[3] in {None, "."} else found[3]
    exponent = f"e{found[4]}" if found[4] else ""
    return f"{'-' if found[1] == '-' else ''}{whole}{fraction}{exponent}"


def integer(text: str) -> str:
    """As number(), but `9.223372036854775807E+18` comes out as the integer that it is."""
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
    """JSON text as it is, on one line; what is not JSON is a string."""
    try:
        msgspec.json.decode(text)
        return msgspec.json.format(text, indent=-1) if "\n" in text or "\r" in text else text
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return encode_basestring(text)


_HOW: dict[Kind, tuple[re.Pattern[str] | None, Convert]] = {
    Kind.INTEGER: (_INTEGERS, integer),
    Kind.DECIMAL: (_NUMBERS, number),
    Kind.FLOAT: (_NUMBERS, number),
    Kind.BOOLEAN: (None, boolean),
    Kind.NESTED: (None, nested),
}
