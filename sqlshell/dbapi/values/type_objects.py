"""The type objects and constructors of PEP 249.

A type code in `description` is the interface's name of the type, such as `DECIMAL(10,2)`; it equals one of the type
objects: `cursor.description[0].type_code == NUMBER`.
"""

from __future__ import annotations

import datetime
from typing import Final

from sqlshell.interface.types import Kind, kind


class TypeObject:
    """Equals the type codes of some kinds of types."""

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
