"""Python objects as SQL literals: the interface has no parameters, so that values are written into the statement.

A string becomes '…' with each quote doubled, whatever is in it. No other literal contains text of the caller, and none
merges with what stands beside it: negative numbers are in parentheses, because `-` before `-1` would begin a comment.

`Literals` writes DuckDB's literals, which are also the default for an unknown service; its subclasses write those of
other engines.
"""

from __future__ import annotations

import datetime
import math
import numbers
import uuid
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec

from sqlshell.dbapi.exceptions import DataError, ProgrammingError
from sqlshell.sql.identifiers import literal

DIGITS: Final = 38
"""The most digits of a DECIMAL."""

DEEPEST: Final = 100
"""The most lists and dicts inside each other."""


class Literals:
    """Makes the literals that DuckDB understands."""

    def of(self, value: object, depth: int = 0) -> str:
        """The SQL literal of a value. Raises DataError for a value without one, ProgrammingError for such a type."""
        make = _OF_TYPE.get(type(value)) or _of_library(type(value))
        if make is not None:
            return make(self, value)
        if (plain := plain_value(value)) is not value:
            return _OF_TYPE[type(plain)](self, plain)
        if depth >= DEEPEST:
            raise DataError(f"a parameter is nested more than {DEEPEST} levels deep")
        if isinstance(value, list | tuple):
            return self.array(value, depth)
        if isinstance(value, Mapping):
            return self.mapping(value, depth)
        raise ProgrammingError(
            f"cannot use a value of type {_name_of(type(value))} as a parameter",
            hint="pass None, a bool, int, float, Decimal, str, bytes, date, time, datetime, timedelta, UUID, list or "
            "dict",
        )

    def string(self, value: str) -> str:
        return literal(value)

    def binary(self, value: bytes | bytearray | memoryview) -> str:
        return f"X'{value.hex()}'"

    def integer(self, value: Any) -> str:
        try:
            return str(int(value)) if value >= 0 else f"({int(value)})"
        except ValueError:
            raise DataError("an integer has too many digits") from None

    def double(self, value: Any) -> str:
        value = float(value)
        if not math.isfinite(value):
            return f"CAST('{not_finite(value)}' AS DOUBLE)"
        # Without an exponent it would be a DECIMAL.
        text = repr(value)
        text = text if "e" in text else f"{text}e0"
        return f"({text})" if text[0] == "-" else text

    def decimal(self, value: Decimal) -> str:
        if not value.is_finite():
            raise DataError(f"DECIMAL cannot represent {value}", hint="pass float(value) for a DOUBLE")
        if value.adjusted() > 2 * DIGITS or int(value.as_tuple().exponent) < -DIGITS:
            raise DataError(f"a DECIMAL has at most {DIGITS} digits")
        text = f"{value:f}"
        whole, _, places = text.lstrip("-").partition(".")
        digits = len(whole.lstrip("0")) + len(places)
        if digits > DIGITS:
            # Integers of more digits have types of their own.
            if places:
                raise DataError(f"a DECIMAL has at most {DIGITS} digits, not {digits}")
            return f"({text})" if text[0] == "-" else text
        return f"CAST('{text}' AS DECIMAL({max(digits, 1)},{len(places)}))"

    def date(self, value: datetime.date) -> str:
        return f"DATE '{value.isoformat()}'"

    def time(self, value: datetime.time) -> str:
        if value.tzinfo is None:
            return f"TIME '{value.isoformat()}'"
        if value.utcoffset() is None:
            raise DataError(
                "the UTC offset in this time zone depends on the date", hint="pass a time with a fixed offset"
            )
        return f"TIMETZ '{value.isoformat()}'"

    def timestamp(self, value: str) -> str:
        """Of a datetime without a zone, as text."""
        return f"TIMESTAMP '{value}'"

    def instant(self, value: str) -> str:
        """Of a datetime with a zone, as text in UTC with +00:00."""
        return f"CAST('{value}' AS TIMESTAMP_LTZ(6))"

    def interval(self, value: datetime.timedelta) -> str:
        return f"INTERVAL '{value.days} days {value.seconds * 1_000_000 + value.microseconds} microseconds'"

    def unique_id(self, value: uuid.UUID) -> str:
        # A string is cast to UUID where one is expected, and services without the type keep it as text.
        return f"'{value}'"

    def array(self, value: Sequence[Any], depth: int) -> str:
        return f"ARRAY[{', '.join(self.of(item, depth + 1) for item in value)}]"

    def mapping(self, value: Mapping[Any, Any], depth: int) -> str:
        """A struct where the keys can be names of fields, a map where they cannot; a struct is cast to a map as
        needed."""
        given = list(value.items())
        names = {str.__str__(key).lower() for key, _ in given if issubclass(type(key), str)}
        named = bool(given) and "" not in names and len(names) == len(given)
        items = ", ".join(f"{self.of(key, depth + 1)}: {self.of(item, depth + 1)}" for key, item in given)
        return f"{{{items}}}" if named else f"MAP {{{items}}}"


def plain_value(value: object) -> object:
    """A value of a subclass as one of the type itself, such as str; a value of any other type as it is."""
    if type(value) in _OF_TYPE:
        return value
    return next((plain(value) for kind, plain in _OF_BASE if issubclass(type(value), kind)), value)


def not_finite(value: float) -> str:
    """The name of a float that is not a number, or infinite."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _of_library(kind: type) -> _Make | None:
    """How a scalar of NumPy or pandas becomes a literal; None for other types. Neither is imported for this."""
    module = kind.__module__.partition(".")[0]
    return _OF_LIBRARY.get((module, kind.__name__)) if module in {"numpy", "pandas"} else None


def _name_of(kind: type) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _of_numpy_time(literals: Literals, value: Any) -> str:
    """Of datetime64 and timedelta64. Raises DataError for a value that Python's types cannot hold."""
    item, (name, _, unit) = value.item(), value.dtype.name.partition("[")
    if isinstance(item, int) and unit in {"ns]", "ps]", "fs]", "as]"}:
        rounded = value.astype(f"{name}[us]")
        item = rounded.item() if rounded == value else item
    if isinstance(item, int):
        raise _inexact(value)
    return literals.of(item)


def _of_pandas_time(make: _Make) -> _Make:
    """As `make`, for Timestamp and Timedelta. They are a datetime and a timedelta that have nanoseconds too."""

    def literal_of(literals: Literals, value: Any) -> str:
        if getattr(value, "nanosecond", 0) or getattr(value, "nanoseconds", 0):
            raise _inexact(value)
        return make(literals, value)

    return literal_of


def _inexact(value: object) -> DataError:
    message = f"Python's datetime types cannot represent {value!r} exactly"
    return DataError(message, hint="pass a str, and cast it in the statement")


def _datetime(literals: Literals, value: datetime.datetime) -> str:
    if value.tzinfo is None or value.utcoffset() is None:
        return literals.timestamp(value.replace(tzinfo=None).isoformat(" "))
    try:
        return literals.instant(value.astimezone(datetime.UTC).isoformat(" "))
    except OverflowError:
        raise DataError(f"{value} is outside of the years 1 to 9999 in UTC") from None


def _plain_datetime(value: datetime.datetime) -> datetime.datetime:
    return datetime.datetime.combine(datetime.datetime.date(value), datetime.datetime.timetz(value))


def _all_of(kind: Any) -> _Plain:
    """How all bytes of a subclass are copied to `kind` itself."""
    return lambda value: kind.__getitem__(value, slice(None))


def _boolean(literals: Literals, value: Any) -> str:
    return "TRUE" if value else "FALSE"


def _null(literals: Literals, value: object) -> str:
    return "NULL"


_Make = Callable[[Literals, Any], str]

_OF_TYPE: Final[dict[type, _Make]] = {
    type(None): _null,
    bool: _boolean,
    int: lambda literals, value: literals.integer(value),
    float: lambda literals, value: literals.double(value),
    Decimal: lambda literals, value: literals.decimal(value),
    str: lambda literals, value: literals.string(value),
    bytes: lambda literals, value: literals.binary(value),
    bytearray: lambda literals, value: literals.binary(value),
    memoryview: lambda literals, value: literals.binary(value),
    datetime.datetime: _datetime,
    datetime.date: lambda literals, value: literals.date(value),
    datetime.time: lambda literals, value: literals.time(value),
    datetime.timedelta: lambda literals, value: literals.interval(value),
    uuid.UUID: lambda literals, value: literals.unique_id(value),
}
_OF_LIBRARY: Final[dict[tuple[str, str], _Make]] = {
    ("numpy", "bool"): _boolean,
    ("numpy", "bool_"): _boolean,
    ("numpy", "float16"): _OF_TYPE[float],
    ("numpy", "float32"): _OF_TYPE[float],
    ("numpy", "datetime64"): _of_numpy_time,
    ("numpy", "timedelta64"): _of_numpy_time,
    ("pandas", "Timestamp"): _of_pandas_time(_datetime),
    ("pandas", "Timedelta"): _of_pandas_time(_OF_TYPE[datetime.timedelta]),
    ("pandas", "NaTType"): _null,
    ("pandas", "NAType"): _null,
}
_Plain = Callable[[Any], object]

_OF_BASE: Final[tuple[tuple[type, _Plain], ...]] = (
    (int, int.__index__),
    (float, float.__float__),
    (Decimal, Decimal),
    (str, str.__str__),
    (bytes, _all_of(bytes)),
    (bytearray, _all_of(bytearray)),
    (datetime.datetime, _plain_datetime),
    (datetime.date, lambda value: datetime.date.fromordinal(datetime.date.toordinal(value))),
    (datetime.time, lambda value: datetime.datetime.timetz(datetime.datetime.combine(datetime.date.max, value))),
    (datetime.timedelta, datetime.timedelta.__pos__),
    (uuid.UUID, lambda value: uuid.UUID(int=uuid.UUID.__dict__["int"].__get__(value))),
    (numbers.Integral, int),
)
"""How a value of a subclass becomes one of the type itself. No method of the subclass is called, because it may do
something else: markupsafe.Markup escapes the text that is joined to it, also the quotes of a literal.
"""


class PostgresqlLiterals(Literals):
    """A literal with a backslash is E'…', which standard_conforming_strings does not affect."""

    def string(self, value: str) -> str:
        escaped = value.replace("\\", "\\\\")
        return f"E{literal(escaped)}" if "\\" in value else literal(value)

    def binary(self, value: bytes | bytearray | memoryview) -> str:
        return f"CAST(E'\\\\x{value.hex()}' AS bytea)"

    def double(self, value: Any) -> str:
        value = float(value)
        return f"CAST('{value if math.isfinite(value) else not_finite(value)}' AS float8)"

    def decimal(self, value: Decimal) -> str:
        return f"CAST('{'NaN' if value.is_nan() else value}' AS numeric)"

    def instant(self, value: str) -> str:
        return f"TIMESTAMPTZ '{value}'"

    def interval(self, value: datetime.timedelta) -> str:
        # With IntervalStyle sql_standard, a sign at the beginning alone would apply to both parts.
        return f"INTERVAL '{value.days:+d} days {value.seconds * 1_000_000 + value.microseconds:+d} microseconds'"

    def unique_id(self, value: uuid.UUID) -> str:
        return f"CAST('{value}' AS uuid)"

    def array(self, value: Sequence[Any], depth: int) -> str:
        if all(item is None for item in value):
            # ARRAY[…] would have no type, or the type text[].
            return f"'{{{','.join('NULL' for _ in value)}}}'"
        return super().array(value, depth)

    def mapping(self, value: Mapping[Any, Any], depth: int) -> str:
        return f"CAST({self.string(_json(value, depth))} AS jsonb)"


class SparkLiterals(Literals):
    """In strings of Spark, a backslash begins an escape, and two quotes end one string and begin the next."""

    def string(self, value: str) -> str:
        escaped = value.replace("\\", "\\\\").replace("'", "\\u0027")
        return f"'{escaped}'"

    def time(self, value: datetime.time) -> str:
        if value.tzinfo is not None:
            raise DataError("Spark has no type for a time with a time zone", hint="pass a time without tzinfo")
        return super().time(value)

    def timestamp(self, value: str) -> str:
        return f"TIMESTAMP_NTZ '{value}'"

    def instant(self, value: str) -> str:
        return f"TIMESTAMP '{value}'"

    def interval(self, value: datetime.timedelta) -> str:
        sign, value = ("-", -value) if value.days < 0 else ("", value)
        minutes, seconds = divmod(value.seconds, 60)
        time = f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}.{value.microseconds:06}"
        return f"INTERVAL '{sign}{value.days} {time}' DAY TO SECOND"

    def array(self, value: Sequence[Any], depth: int) -> str:
        return f"array({', '.join(self.of(item, depth + 1) for item in value)})"

    def mapping(self, value: Mapping[Any, Any], depth: int) -> str:
        return f"map({', '.join(self.of(part, depth + 1) for item in value.items() for part in item)})"


def literals_for(engine: str) -> Literals:
    """The literals for an engine; "" for one that no name was announced of."""
    return _BY_ENGINE.get(engine, _DEFAULT)


_DEFAULT: Final = Literals()
_BY_ENGINE: Final[Mapping[str, Literals]] = {"postgresql": PostgresqlLiterals(), "spark": SparkLiterals()}


def _json(value: Mapping[Any, Any], depth: int) -> str:
    _check_json(value, depth)
    try:
        return msgspec.json.Encoder(decimal_format="number", enc_hook=_plain).encode(value).decode()
    except (TypeError, ValueError, OverflowError) as error:
        raise ProgrammingError(f"cannot write a dict as JSON: {error}") from None


def _plain(value: object) -> object:
    """What the encoder takes for a value that it does not know. Raises TypeError."""
    if (plain := plain_value(value)) is value:
        raise TypeError(f"JSON has no {type(value).__name__}")
    return plain


def _check_json(value: object, depth: int) -> None:
    if depth >= DEEPEST:
        raise DataError(f"a parameter is nested more than {DEEPEST} levels deep")
    finite = value.is_finite() if isinstance(value, Decimal) else not isinstance(value, float) or math.isfinite(value)
    if not finite:
        raise DataError(f"JSON cannot represent {value}")
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    for item in items:
        _check_json(item, depth + 1)
