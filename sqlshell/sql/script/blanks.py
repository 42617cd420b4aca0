"""Whitespace outside ASCII, which some engines treat as whitespace and others as letters, and the first word behind
whitespace and comments.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

ASCII: Final = " \t\n\r\f\v"
FOREIGN: Final = "\xa0\u2000-\u200b\u202f\u205f\u2060\u3000\ufeff"
"""Characters outside ASCII that DuckDB treats as whitespace, as a character class of a regular expression."""

_FOREIGN: Final = frozenset("\xa0\u202f\u205f\u2060\u3000\ufeff") | {chr(code) for code in range(0x2000, 0x200C)}
BLANKS: Final = frozenset(ASCII) | _FOREIGN

_SKIPPED: Final = re.compile(r"(?:\s++|--[^\n]*+(?:\n|$)|/\*(?:[^*/]|\*(?!/)|/(?!\*)|/\*(?:[^*]|\*(?!/))*+\*/)*+\*/)*+")
_WORD: Final = re.compile(r"\w+|\(")


def first_word(sql: str) -> str:
    """The first word of a statement for an engine in lower case, "(" for a parenthesis, "" for neither.

    For messages and the way to run it, never for what it may do.
    """
    skipped = _SKIPPED.match(sql)
    match = _WORD.match(sql, skipped.end() if skipped else 0)
    return match[0].lower() if match else ""


def ambiguous_characters(text: str) -> frozenset[str]:
    """The characters of a text that engines may treat differently: control and invisible characters, whitespace unknown
    to DuckDB, and unassigned code points.
    """
    return frozenset(char for char in set(text) - BLANKS if unicodedata.category(char)[0] in "CZ")


def has_unicode_blanks(text: str) -> bool:
    """Whether a text contains whitespace outside ASCII."""
    return not text.isascii() and not _FOREIGN.isdisjoint(text)
