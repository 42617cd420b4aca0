"""Translates date formats from Java's letters, which the dialect uses, to those of strftime()."""

from __future__ import annotations

import re
from typing import Final

from sqlshell.interface import sqlstate
from sqlshell.service.failure import Failure

SECONDS: Final = "%Y-%m-%d %H:%M:%S"
"""yyyy-MM-dd HH:mm:ss."""

_PART: Final = re.compile(r"([A-Za-z])\1*+|'((?:[^']|'')*+)'|(.)", re.S)
_PARTS: Final = {
    **{"y": "%Y", "yy": "%y", "yyy": "%Y", "yyyy": "%Y", "uuuu": "%Y"},
    **{"M": "%-m", "MM": "%m", "MMM": "%b", "MMMM": "%B", "d": "%-d", "dd": "%d", "D": "%-j", "DDD": "%j"},
    **{"H": "%-H", "HH": "%H", "h": "%-I", "hh": "%I", "m": "%-M", "mm": "%M", "s": "%-S", "ss": "%S"},
    **{"SSS": "%g", "SSSSSS": "%f", "SSSSSSSSS": "%n", "a": "%p"},
    **{"E": "%a", "EE": "%a", "EEE": "%a", "EEEE": "%A"},
}


def strftime(pattern: str) -> str:
    """The equivalent format for strftime(). Raises Failure (0A000) for a letter without an equivalent."""
    parts = []
    for match in _PART.finditer(pattern):
        if match[1]:
            part = _PARTS.get(match[0])
        else:
            quoted = match[2]
            part = match[3] if quoted is None else quoted.replace("''", "'") or "'"
            part = None if (part in {"'", "%"} and quoted is None) or "%" in (part or "") else part
        if part is None:
            message = f"{match[0]} is not supported in a date format: DuckDB has no equivalent"
            raise Failure(sqlstate.UNSUPPORTED, message)
        parts.append(part)
    return "".join(parts)
