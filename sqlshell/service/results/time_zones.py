"""Converts the instants in stored rows from UTC to a requested time zone."""

from __future__ import annotations

import json
import re
import zoneinfo
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from sqlshell.interface.models import Rows

_ROWS = msgspec.json.Decoder(Rows)
_INSTANT = re.compile(r"(\d{4,})-(\d\d-\d\d)( \(BC\))? (\d\d:\d\d:\d\d)(\.\d+)?Z", re.ASCII)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s"\[\]{},:]+')
_ERA = 400
"""Years after which the calendar repeats, and with it the last rule of each time zone."""


def in_zone(body: bytes, zoned: Sequence[tuple[int, Any]], timezone: str) -> bytes:
    """Rows with their instants converted from UTC to another time zone.

    `zoned` are the columns that contain instants, and the positions inside nested values, as the engine reported them.
    """
    if not zoned or timezone == "UTC" or not body:
        return body
    zone = zoneinfo.ZoneInfo(timezone)
    rows = _ROWS.decode(b"[" + body + b"]")
    for row in rows:
        for number, where in zoned:
            text = row[number]
            if text is not None:
                row[number] = _moved(text, where, zone)
    return msgspec.json.encode(rows)[1:-1]


def _moved(text: str, where: Any, zone: zoneinfo.ZoneInfo) -> str:
    return _instant(text, zone) if where is True else _Nested(text, zone).moved(where)


def _instant(text: str, zone: zoneinfo.ZoneInfo) -> str:
    """An instant in a time zone, with its offset; other values, such as infinity, unchanged."""
    if text[4:5] == "-" and text[13:14] == ":" and text[-1] == "Z" and "0001" < text[:4] < "9999":
        # The common case: a year of four digits AD.
        plain = str(datetime.fromisoformat(text[:19] + "+00:00").astimezone(zone))
        return plain[:19] + text[19:-1] + plain[19:]
    match = _INSTANT.fullmatch(text)
    if match is None:
        return text
    written, day, before_christ, clock, fraction = match.groups()
    year = 1 - int(written) if before_christ else int(written)
    # Years that Python does not support are shifted by whole eras, where the same rule applies.
    stand_in = year if 1 < year < 9999 else year % _ERA + (_ERA if year <= 1 else 9200)
    moment = datetime.fromisoformat(f"{stand_in:04}-{day} {clock}").replace(tzinfo=UTC).astimezone(zone)
    year += moment.year - stand_in
    shown = f"{1 - year:04}" if year < 1 else f"{year:04}"
    era = " (BC)" if year < 1 else ""
    rest = str(moment)[10:]
    return f"{shown}-{moment:%m-%d}{era}{rest[:9]}{fraction or ''}{rest[9:]}"


class _Nested:
    """Converts the instants in one nested value and leaves the rest of its text unchanged."""

    def __init__(self, text: str, zone: zoneinfo.ZoneInfo) -> None:
        self._tokens = _TOKEN.findall(text)
        self._zone = zone
        self._at = 0

    def moved(self, where: Any) -> str:
        token = self._next()
        if token == "[":
            return "[" + self._items(where, "]") + "]"
        if token == "{":
            return "{" + self._items(where, "}") + "}"
        return self._text(token, where)

    def _items(self, where: Any, end: str) -> str:
        """The items between brackets; `where` has one position for each, one for all, or one for keys and values."""
        items: list[str] = []
        while self._tokens[self._at] != end:
            token = self._tokens[self._at]
            if token == ",":
                self._at += 1
                continue
            number = len(items)
            if end == "]":
                items.append(self.moved(_place(where, number)))
                continue
            key = self._text(self._next(), where["key"] if isinstance(where, dict) and "key" in where else False)
            self._at += 1
            items.append(f"{key}:{self.moved(_place(where, number))}")
        self._at += 1
        return ",".join(items)

    def _text(self, token: str, where: Any) -> str:
        if not where or not token.startswith('"'):
            return token
        return json.dumps(_moved(json.loads(token), where, self._zone), ensure_ascii=False)

    def _next(self) -> str:
        self._at += 1
        return str(self._tokens[self._at - 1])


def _place(where: Any, number: int) -> Any:
    match where:
        case {"parts": parts}:
            return parts[number]
        case {"each": each}:
            return each
    return False
