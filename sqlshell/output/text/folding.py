"""Wraps prose between words for a terminal, which would break words at its edge."""

from __future__ import annotations

import re

from sqlshell.output.text.cells import cells

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
