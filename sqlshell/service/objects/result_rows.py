"""Results that the service creates itself: strings, booleans, integers and instants."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence

from msgspec import Struct

from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.engine import Listing, Outcome, Sink

TEXT, BOOLEAN, NUMBER = "VARCHAR", "BOOLEAN", "INTEGER"
INSTANT = "TIMESTAMP_LTZ(6)"

_json = json.JSONEncoder(ensure_ascii=False).encode
"""Like json.dumps(), which creates an encoder for each call with options."""

Facts = Mapping[str, object]
"""The facts about an object, by key. Instants are seconds since 1970."""


class ShownColumn(Struct, frozen=True):
    """A column: its name, its interface type, and the key of the fact that it shows."""

    name: str
    key: str
    type: str = TEXT


def columns(*names: str, **types: str) -> tuple[ShownColumn, ...]:
    """Columns from `Name=key`, or from a name whose lower-case form is the key; `types` are the types by key."""
    shown = []
    for item in names:
        name, _, key = item.partition("=")
        key = key or name.lower()
        shown.append(ShownColumn(name, key, types.get(key, TYPES.get(key, TEXT))))
    return tuple(shown)


TIMES = ("CreatedAt=created", "UpdatedAt=updated")
OWNED = ("owner", "created_at=created", "updated_at=updated")
"""The columns for the owner and the times of an object, in LIST and in the system relations."""

TYPES = {"default": BOOLEAN, "leaf": BOOLEAN, "created": INSTANT, "updated": INSTANT, "modified": INSTANT}
"""The types of facts that are not strings."""


def text(value: object) -> str:
    """A value as a string; "" for None, because some clients lose rows with NULLs."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return instant(value)
    if isinstance(value, list | dict):
        return _json(value)
    return "" if value is None else str(value)


def instant(seconds: float) -> str:
    """An instant in UTC, with as many fractional digits as the engine writes."""
    whole, fraction = divmod(round(seconds * 1_000_000), 1_000_000)
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(whole)) + f".{fraction:06d}".rstrip("0").rstrip(".") + "Z"


def keep(shown: Sequence[ShownColumn], facts: Sequence[Facts], sink: Sink) -> Outcome:
    """A result with these columns and a row for each object."""
    zoned = tuple((number, True) for number, item in enumerate(shown) if item.type == INSTANT)
    outcome = rows_of(listed(shown, facts), sink, nullable=False)
    return Outcome(outcome.columns, zoned)


def listed(shown: Sequence[ShownColumn], facts: Sequence[Facts]) -> Listing:
    """A relation for the engine with these columns and a row for each object."""
    return Listing(
        [(item.name, item.type) for item in shown], [[text(item.get(column.key)) for column in shown] for item in facts]
    )


def properties(shown: Sequence[ShownColumn], item: Facts, sink: Sink) -> Outcome:
    """A result that describes one object: a row for each property.

    An instant is followed by a blank and its offset, which is how clients parse it in a string.
    """
    rows = []
    for column in shown:
        value = text(item.get(column.key))
        rows.append((column.name, value.replace("Z", " +0000") if column.type == INSTANT else value))
    return table(sink, ("property", "value"), rows)


def table(sink: Sink, names: Sequence[str], rows: Sequence[Sequence[str]]) -> Outcome:
    """A result with string columns."""
    return rows_of(Listing([(name, TEXT) for name in names], [list(row) for row in rows]), sink, nullable=False)


def rows_of(listing: Listing, sink: Sink, *, nullable: bool) -> Outcome:
    """A result with the columns and rows of a listing."""
    if listing.rows:
        sink.keep([_json(row) for row in listing.rows])
    return Outcome([ColumnInfo(name, kind, nullable) for name, kind in listing.columns])


def stamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"
