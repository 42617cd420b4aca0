"""Which literals an engine understands, by the name that the service announces."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import msgspec

from sqlshell.dbapi.exceptions import DataError, ProgrammingError
from sqlshell.dbapi.values.literals import DEEPEST, Literals, not_finite, plain_value
from sqlshell.sql.identifiers import literal


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

    def unique_id(self, value: UUID) -> str:
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
