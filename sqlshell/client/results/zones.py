"""Instants in a time zone, in SQL: with the offsets of Python's zone, for DuckDB's may be of another year."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime, timedelta
from itertools import pairwise

EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
MOST = 500
"""The maximum number of changes of the offset that SQL distinguishes."""

_DAY = 86_400
_SECOND = 1_000_000


def in_zone(name: str, zone: str, least: int, most: int) -> str | None:
    """SQL for the interface's string of the instant `name` in a time zone. All instants are between `least` and `most`,
    in microseconds since 1970. None if SQL cannot express that."""
    first, last = least // _SECOND, most // _SECOND
    if first < EARLIEST.timestamp() or last > LATEST.timestamp():
        return None
    try:
        changes = _changes(zoneinfo.ZoneInfo(zone), first, last)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        return None
    if len(changes) > MOST:
        return None
    micros = f"epoch_us({name})"
    whens = [f"WHEN NOT isfinite({name}) THEN {name}::VARCHAR"]
    for (_, offset), (until, _) in pairwise(changes):
        whens.append(f"WHEN {micros} < {until * _SECOND} THEN {_written(micros, offset)}")
    return f"CASE {' '.join(whens)} ELSE {_written(micros, changes[-1][1])} END"


def _changes(zone: zoneinfo.ZoneInfo, first: int, last: int) -> list[tuple[int, timedelta]]:
    """The offset at the second `first`, and each later one with the second at which it begins."""

    def offset(second: int) -> timedelta:
        return datetime.fromtimestamp(second, zone).utcoffset() or timedelta(0)

    changes = [(first, offset(first))]
    at = first
    while at < last:
        then = min(at + _DAY, last)
        if offset(then) != changes[-1][1]:
            low, high = at, then
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(middle) == changes[-1][1] else (low, middle)
            changes.append((high, offset(high)))
            then = high
        at = then
    return changes


def _written(micros: str, offset: timedelta) -> str:
    seconds = int(offset.total_seconds())
    sign, rest = ("-", -seconds) if seconds < 0 else ("+", seconds)
    text = f"{sign}{rest // 3600:02}:{rest // 60 % 60:02}" + (f":{rest % 60:02}" if rest % 60 else "")
    return f"make_timestamp({micros} + {seconds * _SECOND})::VARCHAR || '{text}'"
