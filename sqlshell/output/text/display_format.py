"""How formats for people change values: long ones truncated, digits grouped, times in the session's zone.

Formats for programs do not use this: their values are those of the service.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from msgspec import Struct

from sqlshell.interface.types import base
from sqlshell.output.text.nesting import is_nested, over_lines, spaced
from sqlshell.output.text.shortening import Shortened, cut, cut_line
from sqlshell.output.writer import LineWriter, Summary, Writer, has_lines, written
from sqlshell.result import Batch, Column, StoredColumn

NESTED_CELLS = 40
"""A nested value up to this width stays on its line."""
_NUMBER: Final = re.compile(r"([+-]?)(\d*)(?:(\.)(\d*))?((?:[eE][+-]?\d+)?)")
_INSTANT: Final = re.compile(r"(\d{4}-\d\d-\d\d)([ T])(\d\d:\d\d(?::\d\d)?)(\.\d+)?(Z|[+-]\d\d(?::?\d\d)?)")

Change = Callable[[str], str]


class DisplayFormat(Struct, frozen=True):
    """`width` is the maximum width of a value in cells, 0 for no limit; `grouping` the separators of thousands and
    fractions.

    `zone` is the IANA name of a time zone, "" to leave times unchanged; `indent` formats nested values on several
    lines. `screen` says that a person reads a table at a terminal: values are cut between words, nested ones get
    spaces.
    """

    width: int = 0
    grouping: tuple[str, str] | None = None
    zone: str = ""
    indent: bool = False
    screen: bool = False
    ellipsis: str = "…"


class DisplayWriter:
    """A writer that changes values for display; `shortened` counts truncated values."""

    def __init__(self, writer: Writer, shape: DisplayFormat) -> None:
        self._writer = writer
        self._shape = shape
        self._changes: list[Change | None] = []
        self.shortened = 0

    @property
    def buffering(self) -> bool:
        return self._writer.buffering

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        self._changes = [self._change(column) for column in columns]
        return self._writer.begin(columns)

    def write(self, batch: Batch) -> Iterable[bytes]:
        if not any(self._changes):
            return self._writer.write(batch)
        columns = list(zip(*batch.rows, strict=True))
        changing = {number for number, values in enumerate(columns) if self._may_change(number, values)}
        if not changing:
            return self._writer.write(batch)
        changed: list[Sequence[str | None]] = []
        for number, (values, change) in enumerate(zip(columns, self._changes, strict=True)):
            if number in changing and change is not None:
                changed.append([value if value is None else change(value) for value in values])
            else:
                changed.append(values)
        return self._writer.write(Batch(batch.width, rows=[list(row) for row in zip(*changed, strict=True)]))

    def _may_change(self, number: int, values: Sequence[str | None]) -> bool:
        """Whether the values of a column may be changed: most columns have no long value to cut."""
        if self._changes[number] != self._shorten:
            return self._changes[number] is not None
        return max(map(len, filter(None, values)), default=0) * 2 > self._shape.width

    def settle(self) -> Iterable[bytes]:
        return self._writer.settle()

    def end(self, summary: Summary) -> Iterable[bytes]:
        return self._writer.end(summary)

    def _change(self, column: Column) -> Change | None:
        """The conversion of the values of a column; None if there is none."""
        shape = self._shape
        steps: list[Change] = []
        if column.kind.numeric and shape.grouping is not None:
            thousands, point = shape.grouping
            steps.append(lambda value: with_digit_groups(value, thousands, point))
        if shape.zone and base(column.type) in {"TIMESTAMP_LTZ", "TIMESTAMP_TZ", "TIMESTAMP"}:
            zone = _zone(shape.zone)
            if zone is not None:
                steps.append(lambda value: in_time_zone(value, zone))
        nested = is_nested(column)
        if shape.indent and nested:
            steps.append(indented)
        if shape.screen and nested:
            steps.append(lambda value: spaced(value, column.type))
            if shape.width:
                steps.append(lambda value: over_lines(value, shape.width))
        if shape.width and not column.kind.numeric and column.display_hint != "nowrap":
            steps.append(self._shorten)
        if not steps:
            return None

        if len(steps) == 1:
            return steps[0]

        def change(value: str) -> str:
            for step in steps:
                value = step(value)
            return value

        return change

    def _shorten(self, value: str) -> str:
        width = self._shape.width
        if len(value) * 2 <= width:
            return value
        text = (
            cut(value, width, self._shape.ellipsis)
            if self._shape.screen
            else "\n".join(cut_line(line, width) for line in value.split("\n"))
        )
        if text == value:
            return value
        self.shortened += 1
        return Shortened(text)


class DisplayLineWriter(DisplayWriter):
    """A DisplayWriter of a format whose rows DuckDB can write, too, where no value changes."""

    def __init__(self, writer: LineWriter, shape: DisplayFormat) -> None:
        super().__init__(writer, shape)
        self._lines = writer

    def line(self, columns: Sequence[StoredColumn]) -> str | None:
        shape = self._shape
        # A timestamp without an offset is the same in each time zone.
        same = shape.width == 0 and not shape.indent
        changing = [
            column
            for column, change in zip(columns, self._changes, strict=True)
            if change is not None and not (same and column.type_id == "timestamp")
        ]
        return self._lines.line(columns) if not changing else None

    def write(self, batch: Batch) -> Iterable[bytes]:
        return written(self, batch, super().write)


def displayed(writer: Writer, shape: DisplayFormat) -> DisplayWriter:
    """A writer that changes values for display."""
    return DisplayLineWriter(writer, shape) if has_lines(writer) else DisplayWriter(writer, shape)


def with_digit_groups(value: str, thousands: str, point: str) -> str:
    """A number with its digits in groups of three."""
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
    """The separators of the user's locale; `,` and `.` if it has none."""
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


def in_time_zone(value: str, zone: ZoneInfo) -> str:
    """A time with an offset converted to a time zone, with the same digits otherwise; one without an offset is not
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


def _zone(name: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None
