"""Lines of text for a terminal: long ones truncated, between words if possible, and prose wrapped."""

from __future__ import annotations

import re
from collections.abc import Iterator
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


def cut_line(line: str, width: int, ellipsis: str = "…") -> str:
    """A line of at most `width` cells that ends wherever there is no more room."""
    if len(line) * 2 <= width or cells(line) <= width:
        return line
    return f"{_first_cells(line, width - len(ellipsis))}{ellipsis}"[: max(width, 0)]


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
    return _first_words(line, width - len(ellipsis)).rstrip(" ") + ellipsis


def wrapped(text: str, width: int) -> str:
    """A text in lines of at most `width` cells, without the space at which a line was broken; the same object if it
    fits.
    """
    if all(len(line) * 2 <= width or cells(line) <= width for line in text.split("\n")):
        return text
    return "\n".join(part for line in text.split("\n") for part in _parts(line, width))


def _parts(line: str, width: int) -> Iterator[str]:
    at = 0
    # A character has at most two cells.
    while len(line) - at > width or cells(line[at:]) > width:
        part = _whole_words(line[at : at + 2 * width + 1], width) or line[at]
        yield part
        at += len(part) + (line[at + len(part) : at + len(part) + 1] == " ")
    yield line[at:]


def _whole_words(line: str, width: int) -> str:
    """The beginning of a line that is longer than `width` cells. A word is broken only if it has no room in a line."""
    kept = _first_cells(line, width)
    at = kept.rfind(" ")
    breaks = line[len(kept)] != " " and kept[: max(at, 0)].strip() and cells(line[at + 1 :].partition(" ")[0]) <= width
    return kept[:at] if breaks else kept


def _first_words(line: str, width: int) -> str:
    """The beginning of a line that is longer than `width` cells.

    A word that would be broken is left out, unless this would waste much of the room.
    """
    kept = _first_cells(line, width)
    if line[len(kept)] != " ":
        at = kept.rfind(" ")
        if at > len(kept) * 0.6:
            kept = kept[:at]
    return kept


def _first_cells(line: str, width: int) -> str:
    kept = line[: max(0, width)]
    while kept and cells(kept) > width:
        kept = kept[:-1]
    return kept


_INVISIBLE = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;[^\x1b]*\x1b\\")
"""Colors, and the two ends of a link."""
_WORD = re.compile(r"( *)([^ ]+)")
_COLUMN = re.compile(r"\S( {2,})(?=\S)")


def folded(text: str, width: int) -> str:
    """`text` with lines of at most `width` cells, except for longer words; with 0 as it is.

    A line that is too long goes on below its last column, if that begins in the left half, and otherwise below its
    first word. Lines with tabs keep their layout.
    """
    if width <= 0:
        return text
    return "\n".join(_folded(line, width) for line in text.split("\n"))


def _folded(line: str, width: int) -> str:
    shown = _INVISIBLE.sub("", line)
    if "\t" in line or cells(shown) <= width:
        return line
    columns = [len(shown) - len(shown.lstrip(" ")), *(cells(shown[: at.end()]) for at in _COLUMN.finditer(shown))]
    indent = max((column for column in columns if column <= width // 2), default=0)
    done, used = "", 0
    for blanks, word in _WORD.findall(line):
        size = cells(_INVISIBLE.sub("", word))
        if used > indent and used + len(blanks) + size > width:
            done += "\n" + " " * indent + word
            used = indent + size
        else:
            done += blanks + word
            used += len(blanks) + size
    return done
