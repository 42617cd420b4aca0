"""Truncates long texts, between words if possible."""

from __future__ import annotations

import re
from typing import Final

from sqlshell.output.text.cells import cells

_PAINT: Final = re.compile(r"(\x1b\[[0-9;]*m)")


class Shortened(str):
    """A value of which a part was left out, so that it is counted once even if a table leaves out more of it."""

    __slots__ = ()


def cut(text: str, width: int, ellipsis: str = "…") -> str:
    """A text whose lines have at most `width` cells; the same object if nothing was cut."""
    lines = text.split("\n")
    if all(len(line) * 2 <= width or cells(line) <= width for line in lines):
        return text
    return "\n".join(_cut_line(line, width, ellipsis) for line in lines)


def cut_line(line: str, width: int) -> str:
    """A line of at most `width` cells that ends wherever there is no more room."""
    if len(line) * 2 <= width or cells(line) <= width:
        return line
    return f"{_first_cells(line, width - 1)}…"


def cut_painted(line: str, width: int, ellipsis: str = "…") -> str:
    """A line with colors, cut to `width` cells; the same object if it fits."""
    parts = _PAINT.split(line)
    # Every second part is a color.
    if cells("".join(parts[::2])) <= width:
        return line
    left = width - len(ellipsis)
    for at in range(0, len(parts), 2):
        kept = _first_cells(parts[at], left)
        if kept != parts[at]:
            return "".join([*parts[:at], kept, "\x1b[0m" if at else "", ellipsis])
        left -= cells(kept)
    return line


def first_lines(text: str, most: int, ellipsis: str) -> str:
    """A text of at most `most` lines; the same object if it has no more."""
    if text.count("\n") < most:
        return text
    return "\n".join([*text.split("\n", most - 1)[: most - 1], ellipsis])


def _cut_line(line: str, width: int, ellipsis: str) -> str:
    if len(line) * 2 <= width or cells(line) <= width:
        return line
    kept = _first_cells(line, width - len(ellipsis))
    # In the middle of a word, that word is left out, unless this would waste much of the room.
    if line[len(kept)] != " ":
        at = kept.rfind(" ")
        if at > len(kept) * 0.6:
            kept = kept[:at]
    return kept.rstrip(" ") + ellipsis


def _first_cells(line: str, width: int) -> str:
    kept = line[: max(0, width)]
    while kept and cells(kept) > width:
        kept = kept[:-1]
    return kept
