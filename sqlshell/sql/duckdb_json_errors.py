"""DuckDB's messages about records of JSON that it cannot read: where they are, and what is wrong."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

_KIND: Final = r"(?:[A-Z]\w+ )+Error: "
_MALFORMED: Final = (
    rf'{_KIND}Malformed JSON in file "(?P<file>.+?)", at byte (?P<byte>\d+)'
    r" in (?P<unit>line|record/value) (?P<number>\d+): (?P<cause>[^\n]+)"
)
_KEY: Final = (
    rf'{_KIND}JSON transform error in file "(?P<file>.+?)", in (?P<unit>line|record/value) (?P<number>\d+): '
    r"Object .* has (?P<what>unknown|duplicate) key (?P<key>\".*\")(?:\n|\Z)"
)


class JsonError(Struct, frozen=True):
    """`place` is the line or the record, from 1, and for malformed JSON the byte in it."""

    file: str
    place: str
    cause: str
    unknown_key: bool = False

    @property
    def not_utf8(self) -> bool:
        return "UTF-8" in self.cause


def json_error(message: str) -> JsonError | None:
    """The parts of a message; None for one about something else."""
    if match := re.match(_MALFORMED, message):
        # In these messages the count begins at two.
        place = f"{_unit(match)} {max(1, int(match['number']) - 1)}, byte {match['byte']}"
        return JsonError(match["file"], place, match["cause"].strip().rstrip("."))
    if match := re.match(_KEY, message, re.DOTALL):
        place = f"{_unit(match)} {match['number']}"
        if match["what"] == "duplicate":
            return JsonError(match["file"], place, f"the key {match['key']} appears twice in an object")
        cause = f"the key {match['key']} is not in the first records, from which the columns were detected"
        return JsonError(match["file"], place, cause, unknown_key=True)
    return None


def _unit(match: re.Match[str]) -> str:
    lines = match["unit"] == "line" or match["file"].lower().endswith((".jsonl", ".ndjson"))
    return "line" if lines else "record"
