"""How formats for people change values: long ones truncated, digits grouped, times in the session's zone.

Formats for programs do not use this: their values are those of the service.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from sqlshell.interface.types import base
from sqlshell.output.text.lines import Shortened, cut, cut_line
from sqlshell.output.text.nesting import is_nested, over_lines, spaced
from sqlshell.output.writer import Change, DisplayFormat, Values, each
from sqlshell.result import Column, StoredColumn

NESTED_CELLS = 40
"""A nested value up to this width stays on its line."""
_NUMBER: Final = re.compile(r"([+-]?)(\d*)(?:(\.)(\d*))?((?:[eE][+-]?\d+)?)")
_INSTANT: Final = re.compile(r"(\d{4}-\d\d-\d\d)([ T])(\d\d:\d\d(?::\d\d)?)(\.\d+)?(Z|[+-]\d\d(?::?\d\d)?)")


def display_changes(column: Column, shape: DisplayFormat, count: Callable[[int], None]) -> list[Change]:
    """Return what changes the values of a column for people; `count` is told how many values were cut."""
    changes: list[Change] = []
    numeric, nested = column.kind.numeric, is_nested(column)
    if numeric and shape.grouping is not None:
        thousands, point = shape.grouping
        changes.append(Change(each(lambda value: with_digit_groups(value, thousands, point))))
    if shape.zone and base(column.type) in {"TIMESTAMP_LTZ", "TIMESTAMP_TZ", "TIMESTAMP"}:
        zone = _zone(shape.zone)
        if zone is not None:
            changes.append(Change(each(lambda value: in_time_zone(value, zone)), _without_offset))
    if shape.indent and nested:
        changes.append(Change(each(indented)))
    if shape.screen and nested:
        changes.append(Change(each(spaced)))
        if shape.width:
            changes.append(Change(each(lambda value: over_lines(value, shape.width))))
    if shape.width and not numeric and column.display_hint != "nowrap":
        changes.append(Change(lambda values: _shortened(values, shape, count)))
    return changes


def _without_offset(column: StoredColumn) -> StoredColumn | None:
    """A timestamp without an offset is the same in each time zone."""
    return column if column.type_id == "timestamp" else None


def _shortened(values: Values, shape: DisplayFormat, count: Callable[[int], None]) -> Values:
    """Most columns have no long value to cut."""
    width = shape.width
    if max(map(len, filter(None, values)), default=0) * 2 <= width:
        return values
    short = [value and _cut(value, shape) for value in values]
    count(sum(one is not other for one, other in zip(short, values, strict=True)))
    return short


def _cut(value: str, shape: DisplayFormat) -> str:
    width = shape.width
    if shape.screen:
        text = cut(value, width, shape.ellipsis)
    else:
        text = "\n".join(cut_line(line, width) for line in value.split("\n"))
    return value if text == value else Shortened(text)


def with_digit_groups(value: str, thousands: str, point: str) -> str:
    """Write a number with its digits in groups of three."""
    match = _NUMBER.fullmatch(value)
    if match is None:
        return value
    sign, whole, dot, fraction, exponent = match.groups()
    # int() refuses more than 4,300 digits.
    first = len(whole) % 3
    groups = [whole[:first]] if first else []
    text = thousands.join(groups + [whole[at : at + 3] for at in range(first, len(whole), 3)])
    return f"{sign}{text}{point if dot else ''}{fraction or ''}{exponent}"


def locale_grouping() -> tuple[str, str]:
    """Return the separators of the user's locale; `,` and `.` if it has none."""
    import locale

    try:
        before = locale.setlocale(locale.LC_NUMERIC)
        locale.setlocale(locale.LC_NUMERIC, "")
        known = locale.localeconv()
        locale.setlocale(locale.LC_NUMERIC, before)
    except locale.Error:
        return ",", "."
    thousands = str(known["thousands_sep"])
    return (thousands, str(known["decimal_point"])) if thousands else (",", ".")


def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


def in_time_zone(value: str, zone: ZoneInfo) -> str:
    """Convert a time with an offset to a time zone, with the same digits otherwise; one without an offset is not
    changed.
    """
    match = _INSTANT.fullmatch(value)
    if match is None:
        return value
    day, between, clock, fraction, offset = match.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}{'+00:00' if offset == 'Z' else offset}").astimezone(zone)
    except (ValueError, OverflowError):
        return value
    shift = moment.strftime("%z")
    offset_text = f"{shift[:3]}:{shift[3:5]}" if shift[3:5] != "00" or len(offset) != 3 else shift[:3]
    time = moment.strftime("%H:%M:%S" if clock.count(":") == 2 else "%H:%M")
    return f"{moment.date().isoformat()}{between}{time}{fraction or ''}{offset_text}"


def indented(value: str) -> str:
    """A nested value on several lines, if it is JSON and long."""
    if len(value) <= NESTED_CELLS or value.lstrip()[:1] not in {"{", "["}:
        return value
    try:
        # Numbers keep their digits: only whitespace may change.
        parsed = json.loads(value, parse_float=_Number, parse_int=_Number)
        return _laid_out(parsed, "")
    except (ValueError, RecursionError):
        return value


class _Number(str):
    """A number with its original digits."""

    __slots__ = ()


def _laid_out(value: object, margin: str) -> str:
    inner = margin + "  "
    match value:
        case _Number():
            return str(value)
        case dict() if value:
            parts = [f"{inner}{_text(key)}: {_laid_out(item, inner)}" for key, item in value.items()]
            return "{\n" + ",\n".join(parts) + f"\n{margin}}}"
        case list() if any(isinstance(item, dict | list) for item in value) or len(str(value)) > NESTED_CELLS:
            return "[\n" + ",\n".join(inner + _laid_out(item, inner) for item in value) + f"\n{margin}]"
        case list():
            return "[" + ", ".join(_laid_out(item, inner) for item in value) + "]"
    return _text(value)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
