"""Makes text from a service safe to print, and measures its width in terminal cells."""

from __future__ import annotations

import re
from functools import cache

# Characters that control a terminal or hide text: C0, DEL, C1, line and paragraph separators, bidirectional controls,
# zero-width marks, invisible fillers, surrogates, non-characters, tags. Joiners and variation selectors are allowed,
# because scripts and emoji need them.
_HOSTILE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufdd0-\ufdef\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]"
)
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

NARROW = (
    " -~\u00a0-\u00ac\u00ae-\u02ff\u0370-\u0482\u048a-\u055f\u1e00-\u1fff"
    "\u2010-\u2027\u2030-\u205e\u20a0-\u20bf\u2100-\u2319\u2500-\u25fc"
)
WIDE = "\u3000-\u3029\u3041-\u3096\u309b-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff60"
# Ranges of single-width characters, so that most text needs no Unicode tables; a test compares them with wcwidth, which
# handles the rest.
# DuckDB's regular expressions read the classes, too.


@cache
def _all(characters: str) -> re.Pattern[str]:
    """Text of these characters alone. It is compiled when it is first needed: most text is ASCII."""
    return re.compile(f"[{characters}]*+")


@cache
def _double() -> re.Pattern[str]:
    return re.compile(f"[{WIDE}]")


def printable(text: str, keep: str = "") -> str:
    """`text` with visible escapes (`\\x1b`, `\\u202e`) for characters that could control a terminal, except those in
    `keep`.
    """
    if text.isascii() and text.isprintable():
        return text

    def visible(match: re.Match[str]) -> str:
        char = match[0]
        if char in keep:
            return char
        code = ord(char)
        if char in _NAMED:
            return _NAMED[char]
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

    return _HOSTILE.sub(visible, text)


def is_unsafe(text: str) -> bool:
    """Whether printable() would change `text`."""
    return _HOSTILE.search(text) is not None


def is_single_width(text: str) -> bool:
    """Whether every character of `text` is known to take one cell and not to affect its neighbors."""
    return (text.isascii() and text.isprintable()) or _all(NARROW).fullmatch(text) is not None


def cells(text: str) -> int:
    """The width of one printable line in terminal cells."""
    if text.isascii():
        return len(text)
    if _all(NARROW + WIDE).fullmatch(text):
        return len(_double().sub("xx", text))
    from wcwidth import wcswidth

    width = int(wcswidth(text))
    return width if width >= 0 else len(text)


def lines_of(text: str) -> list[str]:
    """The lines of a value, counted as in tabulate: a final line break does not begin a line."""
    lines = text.split("\n")
    return lines[:-1] if len(lines) > 1 and not lines[-1] else lines


def distinct_from_null(text: str, null: str) -> str:
    """`text`, in an additional pair of single quotes if it would look like `null`: the text NULL is `'NULL'`."""
    return f"'{text}'" if null and text.strip("'") == null else text
