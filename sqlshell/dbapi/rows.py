"""Rows of the interface, which are strings and nulls, as tuples of Python objects; the type objects of PEP 249.

| type | Python |
|---|---|
| BOOLEAN | bool |
| TINYINT … BIGINT, UBIGINT, HUGEINT, UHUGEINT, BIGNUM | int |
| DECIMAL | Decimal |
| FLOAT, DOUBLE | float |
| DATE, TIME, TIMETZ | date, time, time with its offset |
| TIMESTAMP | datetime without a zone |
| TIMESTAMP_LTZ, TIMESTAMP_TZ | datetime with the offset of the answer |
| BYTES, VARBINARY | bytes |
| ARRAY, MAP, STRUCT | list, dict, dict; a tuple where the fields have no names |
| UUID | UUID |
| JSON, JSONB | what json.loads() makes of it |
| INTERVAL | timedelta |
| any other | str |

A valid value that Python's type cannot hold, such as the date `infinity`, is its text, a str.

There are two ways, which give the same values. msgspec decodes a partition's JSON straight into typed tuples where
Python's type can hold every value. Where it cannot (digits beyond microseconds, integers with an exponent, nested
values) columns are converted from their strings.
"""

from __future__ import annotations

import base64
import datetime
import functools
import json
import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Context, Decimal
from typing import Any, Final

import msgspec

from sqlshell.dbapi.exceptions import DataError
from sqlshell.interface.types import Kind, base, field_of, is_named, kind, parts_of, size_of
from sqlshell.result import Batch, Column

Row = tuple[Any, ...]
Convert = Callable[[Any], Any]

_BOOLEANS: Final = {"true": True, "false": False, "TRUE": True, "FALSE": False, "t": True, "f": False}
_FLAWS: Final = (ValueError, ArithmeticError, LookupError, TypeError, AttributeError, RecursionError)
"""The errors of conversions for a text that is not a value of the type. msgspec's errors are ValueErrors."""

FINEST: Final = 6
"""The digits of a second that Python keeps."""

DEEPEST: Final = 50
"""Values of types that are nested more deeply remain text."""


class RowDecoder:
    """Decodes the batches of one result."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        types = tuple(column.exact_type for column in columns)
        self._fast, self._left = _decoder(types)

    def rows(self, batch: Batch) -> list[Row]:
        """The rows of a batch. Raises DataError for a text that is not of its column's type, and ProtocolError."""
        if not self._columns:
            return []
        if batch.body:
            try:
                rows = self._fast.decode(batch.body).data or []
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                return self.converted(batch)
            return self._with(rows, self._left) if self._left and rows else rows
        return self.converted(batch)

    def converted(self, batch: Batch) -> list[Row]:
        """As rows(), column by column from the strings."""
        return self._with(batch.rows, range(len(self._columns)))

    def _with(self, rows: Sequence[Sequence[Any]], chosen: Iterable[int]) -> list[Row]:
        if not rows:
            return []
        columns: list[Sequence[Any]] = list(zip(*rows, strict=True))
        for number in chosen:
            columns[number] = _column(self._columns[number], columns[number])
        return list(zip(*columns, strict=True))


def _converted(convert: Convert, values: Sequence[Any]) -> Sequence[Any]:
    if None in values:
        return [None if value is None else convert(value) for value in values]
    return list(map(convert, values))


def _column(column: Column, values: Sequence[Any]) -> Sequence[Any]:
    convert = converter(column.exact_type)
    if convert is None:
        return values
    try:
        return _converted(convert, values)
    except _FLAWS:
        return [_value(column, convert, value) for value in values]


def _value(column: Column, convert: Convert, value: Any) -> Any:
    if value is None:
        return None
    try:
        return convert(value)
    except _FLAWS:
        if _exceeds(column.exact_type, value):
            return value
        shown = value if len(value) <= 80 else f"{value[:79]}…"
        raise DataError(
            f'column "{column.name}": {shown!r} is not a valid {column.exact_type}',
            sqlstate="22000",
            hint="cast the column to VARCHAR",
        ) from None


def _exceeds(text: str, value: str) -> bool:
    """Whether a value that Python's type cannot hold may be one of its type: infinity, years BC and above 9999, the
    time 24:00, dates of another DateStyle, intervals with months, arrays with bounds of their own."""
    if kind(text) in _MOMENTS and not text.endswith("[]"):
        return _MOMENT.search(value) is not None
    return base(text) == "INTERVAL" or text.endswith("[]")


_MOMENTS: Final = frozenset({Kind.DATE, Kind.TIME, Kind.TIMESTAMP})
_MOMENT: Final = re.compile(r"\d+([-/.:])\w+\1|infinity")


@functools.lru_cache(maxsize=64)
def _decoder(types: tuple[str, ...]) -> tuple[msgspec.json.Decoder[Any], tuple[int, ...]]:
    """The decoder for the rows of a response, and the numbers of the columns that it leaves as strings."""
    fast = [_fast_type(text) for text in types]
    row: Any = tuple.__class_getitem__(tuple((given or str) | None for given in fast))
    answer = msgspec.defstruct("Answer", [("data", list[row] | None, None)])
    left = tuple(number for number, given in enumerate(fast) if given is None)
    # Values are strings: strict would take none of them for a number.
    return msgspec.json.Decoder(answer, strict=False), left


def _fast_type(text: str) -> type | None:
    """The Python type that msgspec decodes values into; None if its values could differ from those of converter()."""
    if text.endswith("[]"):
        return None
    kind_ = kind(text)
    if kind_ in {Kind.TIME, Kind.TIMESTAMP} and (size_of(text) or [FINEST + 1])[0] > FINEST:
        return None
    # Base64 may spell `null`, which msgspec takes for None.
    if kind_ in {Kind.NESTED, Kind.BYTES}:
        return None
    if kind_ is Kind.TEXT:
        return {"UUID": uuid.UUID, "JSON": None, "JSONB": None, "INTERVAL": None}.get(base(text), str)
    return _TYPES[kind_]


_TYPES: Final[dict[Kind, type]] = {
    Kind.BOOLEAN: bool,
    Kind.INTEGER: int,
    Kind.DECIMAL: Decimal,
    Kind.FLOAT: float,
    Kind.DATE: datetime.date,
    Kind.TIME: datetime.time,
    Kind.TIMESTAMP: datetime.datetime,
}


@functools.lru_cache(maxsize=256)
def converter(text: str) -> Convert | None:
    """Turns the strings of a type into Python objects; None if they remain strings."""
    if text.endswith("[]"):
        return _array_of(text.removesuffix("[]"))
    if kind(text) is not Kind.NESTED:
        return _scalar(text)
    if _deep(text) > DEEPEST:
        return None
    inner = _nested(text)
    # A float would have lost digits of a decimal.
    decode = msgspec.json.Decoder(float_hook=Decimal if "DEC" in text.upper() or "NUM" in text.upper() else None).decode
    return decode if inner is None else lambda value: inner(decode(value))


def _deep(text: str) -> int:
    deepest = depth = 0
    for char in text:
        depth += (char == "<") - (char == ">")
        deepest = max(deepest, depth)
    return deepest


def _scalar(text: str) -> Convert | None:
    kind_ = kind(text)
    if kind_ is Kind.TEXT:
        return _TEXTS.get(base(text))
    return _SCALARS[kind_]


_INTERVAL: Final = re.compile(
    r"(?:0 (?:year|month)s? ?)*(?:(?P<days>-?\d+) days? ?)?"
    r"(?:(?P<sign>[-+]?)(?P<hours>\d+):(?P<minutes>\d\d):(?P<seconds>\d\d)(?:\.(?P<fraction>\d{1,6}))?)?"
)


def _interval(text: str) -> datetime.timedelta:
    """Raises ValueError for an interval with months, which have no fixed length."""
    match = _INTERVAL.fullmatch(text)
    if match is None or not text:
        raise ValueError(text)
    part = {name: int(value) for name, value in match.groupdict("0").items() if name in _PARTS}
    micros = int((match["fraction"] or "").ljust(6, "0"))
    time = datetime.timedelta(
        hours=part["hours"], minutes=part["minutes"], seconds=part["seconds"], microseconds=micros
    )
    return datetime.timedelta(part["days"]) + (-time if match["sign"] == "-" else time)


_PARTS: Final = frozenset({"days", "hours", "minutes", "seconds"})

_TEXTS: Final[dict[str, Convert]] = {
    "UUID": uuid.UUID,
    "JSON": json.loads,
    "JSONB": json.loads,
    "INTERVAL": _interval,
}

_SIZE: Final = re.compile(r"\([^)]*\)")

_ELEMENTS: Final[Mapping[str, Convert]] = {
    **dict.fromkeys(("smallint", "integer", "bigint"), int),
    **dict.fromkeys(("real", "double precision"), float),
    "numeric": Decimal,
    "boolean": lambda text: text == "t",
    "uuid": uuid.UUID,
    "bytea": lambda text: bytes.fromhex(text.removeprefix("\\x")) if text.startswith("\\x") else text,
    "date": datetime.date.fromisoformat,
    **dict.fromkeys(("time without time zone", "time with time zone"), datetime.time.fromisoformat),
    **dict.fromkeys(("timestamp without time zone", "timestamp with time zone"), datetime.datetime.fromisoformat),
    "interval": _interval,
    **dict.fromkeys(("json", "jsonb"), json.loads),
}
"""By PostgreSQL's names of types, how their values in arrays are read; those of other types remain strings."""


_Items = list["str | _Items | None"]

_ITEM: Final = re.compile(r'\s*+(?:"((?:[^"\\]|\\.)*+)"|([{},])|((?:[^{},"\\\s]|\\.|\s++(?![{},]|\Z))++))\s*+', re.S)


def _read_array(text: str) -> _Items | None:
    """The items of PostgreSQL's text of an array, None for any other text."""
    items: _Items = []
    open_: list[_Items] = []
    at, needs_item = 0, False
    while at < len(text):
        part = _ITEM.match(text, at)
        if part is None or (at and not open_):
            return None
        at = part.end()
        quoted, sign, bare = part.groups()
        follows = text[at : at + 1] in {",", "}"}
        if sign == "{":
            inner: _Items = []
            if open_:
                open_[-1].append(inner)
            else:
                items = inner
            open_.append(inner)
            needs_item = False
        elif not open_:
            return None
        elif sign == "}":
            open_.pop()
            if needs_item or (open_ and not follows):
                return None
        elif sign == ",":
            if needs_item or not open_[-1]:
                return None
            needs_item = True
            continue
        elif not follows:
            return None
        elif quoted is not None:
            open_[-1].append(re.sub(r"\\(.)", r"\1", quoted, flags=re.S))
        else:
            open_[-1].append(None if bare.upper() == "NULL" else re.sub(r"\\(.)", r"\1", bare, flags=re.S))
        needs_item = False
    return None if open_ or not text else items


def _array_of(element: str) -> Convert:
    """Turns PostgreSQL's texts of arrays, such as {1,NULL}, into lists; those with other bounds raise ValueError."""
    convert = _ELEMENTS.get(_SIZE.sub("", element), str)

    def one(text: str) -> Any:
        try:
            return convert(text)
        except _FLAWS:
            # As in columns, a value that Python's type cannot hold is its text.
            return text

    def items(values: Sequence[Any]) -> list[Any]:
        return [None if item is None else items(item) if isinstance(item, list) else one(item) for item in values]

    def array(text: str) -> list[Any]:
        values = _read_array(text)
        if values is None:
            raise ValueError(text)
        return items(values)

    return array


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        # 9.223372036854775807E+18 is exact, but not by way of a float.
        value = Decimal(text)
        if not value.is_finite() or value.adjusted() > 400 or value != value.to_integral_value():
            raise
        return int(value)


_SCALARS: Final[dict[Kind, Convert]] = {
    Kind.BOOLEAN: _BOOLEANS.__getitem__,
    Kind.INTEGER: _integer,
    Kind.DECIMAL: Decimal,
    Kind.FLOAT: float,
    Kind.BYTES: functools.partial(base64.b64decode, validate=True),
    Kind.DATE: datetime.date.fromisoformat,
    Kind.TIME: datetime.time.fromisoformat,
    Kind.TIMESTAMP: datetime.datetime.fromisoformat,
}


def _nested(text: str) -> Convert | None:
    """Turns what JSON makes of a value of a type into Python objects; None where it is that already."""
    kind_, name, parts = kind(text), base(text), parts_of(text)
    if kind_ is not Kind.NESTED:
        return _inside(text)
    if name == "ARRAY" and len(parts) == 1:
        item = _nested(parts[0])
        return None if item is None else lambda values: values and [None if v is None else item(v) for v in values]
    if name == "MAP" and len(parts) == 2:
        return _map(parts[0], parts[1])
    if name in {"STRUCT", "ROW"} and not any(map(is_named, parts)):
        return _tuple([_nested(part) for part in parts])
    if name in {"STRUCT", "ROW"}:
        return _struct(dict(field_of(part) for part in parts))
    return None


def _inside(text: str) -> Convert | None:
    """Converts a scalar inside of JSON, where it may be a number or a boolean too."""
    kind_, convert = kind(text), _scalar(text)
    if convert is None or kind_ is Kind.BOOLEAN:
        return None
    if kind_ is Kind.FLOAT:
        return float
    if kind_ is Kind.DECIMAL:
        return _scaled(text)

    return _or_text(text, convert)


def _or_text(text: str, convert: Convert) -> Convert:
    """Converts strings inside of JSON; as in columns, a value that Python's type cannot hold is its text."""

    def inside(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return convert(value)
        except _FLAWS:
            if _exceeds(text, value):
                return value
            raise

    return inside


def _scaled(text: str) -> Convert:
    """Restores the scale of decimals, which JSON's numbers do not keep."""
    sizes = size_of(text)
    unit = Decimal(1).scaleb(-sizes[1]) if len(sizes) > 1 else None

    def convert(value: Any) -> Decimal:
        number = Decimal(value)
        if unit is None or not number.is_finite():
            return number
        scaled = number.quantize(unit, context=_EXACT)
        return scaled if scaled == number else number

    return convert


_EXACT: Final = Context(prec=100)
"""Holds more digits than any DECIMAL."""


def _map(key: str, item: str) -> Convert | None:
    """A key of a nested type stays JSON: lists and dicts cannot be keys."""
    convert = None if kind(key) is Kind.NESTED else _scalar(key)
    of_key = convert and _or_text(key, convert)
    of_item = _nested(item)
    if of_key is None and of_item is None:
        return None
    take = of_key or _same
    give = of_item or _same
    return lambda pairs: pairs and {take(k): None if v is None else give(v) for k, v in pairs.items()}


def _tuple(parts: Sequence[Convert | None]) -> Convert:
    each = [part or _same for part in parts]

    def convert(values: Any) -> Any:
        if not isinstance(values, list) or len(values) != len(each):
            return values
        return tuple([None if v is None else part(v) for part, v in zip(each, values, strict=True)])

    return convert


def _struct(fields: dict[str, str]) -> Convert | None:
    of_field = {name: part for name, text in fields.items() if (part := _nested(text)) is not None}
    if not of_field:
        return None

    def convert(value: Any) -> Any:
        if isinstance(value, dict):
            for name, part in of_field.items():
                if value.get(name) is not None:
                    value[name] = part(value[name])
        return value

    return convert


def _same(value: Any) -> Any:
    return value


class TypeObject:
    """A type object of PEP 249: it equals the type codes of some kinds of types.

    A type code in `description` is the interface's name of the type, such as `DECIMAL(10,2)`:
    `cursor.description[0].type_code == NUMBER`.
    """

    def __init__(self, name: str, *kinds: Kind) -> None:
        self._name = name
        self._kinds = frozenset(kinds)

    def __eq__(self, other: object) -> bool:
        return kind(other) in self._kinds if isinstance(other, str) else self is other

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return self._name


STRING: Final = TypeObject("STRING", Kind.TEXT)
BINARY: Final = TypeObject("BINARY", Kind.BYTES)
NUMBER: Final = TypeObject("NUMBER", Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT)
DATETIME: Final = TypeObject("DATETIME", Kind.DATE, Kind.TIME, Kind.TIMESTAMP)
ROWID: Final = TypeObject("ROWID")

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:
    """The local date of a POSIX timestamp, in seconds."""
    return datetime.date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> datetime.time:
    """The local time of day of a POSIX timestamp, in seconds."""
    return datetime.datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """The local time of a POSIX timestamp, in seconds, without a zone."""
    return datetime.datetime.fromtimestamp(ticks)
