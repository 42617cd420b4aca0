"""Converts the instants in stored rows from UTC to a requested time zone."""

from __future__ import annotations

import json
import re
import zoneinfo
from collections.abc import Iterator, Sequence
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
    if where is True:
        return _instant(text, zone)
    tokens = iter(_TOKEN.findall(text))
    return _nested(next(tokens), tokens, where, zone)


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


def _nested(first: str, tokens: Iterator[str], where: Any, zone: zoneinfo.ZoneInfo) -> str:
    """The value that begins with the token `first`, with its instants converted and the rest of its text unchanged."""
    if first not in {"[", "{"}:
        is_moved = where and first.startswith('"')
        return json.dumps(_moved(json.loads(first), where, zone), ensure_ascii=False) if is_moved else first
    end = "]" if first == "[" else "}"
    items: list[str] = []
    for token in tokens:
        if token == end:
            break
        if token == ",":
            continue
        inner = _place(where, len(items))
        if end == "}":
            in_key = where["key"] if isinstance(where, dict) and "key" in where else False
            key = _nested(token, tokens, in_key, zone) + next(tokens)
            items.append(key + _nested(next(tokens), tokens, inner, zone))
        else:
            items.append(_nested(token, tokens, inner, zone))
    return f"{first}{','.join(items)}{end}"


def _place(where: Any, number: int) -> Any:
    match where:
        case {"parts": parts}:
            return parts[number]
        case {"each": each}:
            return each
    return False
