"""Whitespace outside ASCII: characters that some engines treat as whitespace and others as letters."""

from __future__ import annotations

import unicodedata
from typing import Final

ASCII: Final = " \t\n\r\f\v"
FOREIGN: Final = "\xa0\u2000-\u200b\u202f\u205f\u2060\u3000\ufeff"
"""Characters outside ASCII that DuckDB treats as whitespace, as a character class of a regular expression."""

_FOREIGN: Final = frozenset("\xa0\u202f\u205f\u2060\u3000\ufeff") | {chr(code) for code in range(0x2000, 0x200C)}
BLANKS: Final = frozenset(ASCII) | _FOREIGN


def ambiguous_characters(text: str) -> frozenset[str]:
    """The characters of a text that engines may treat differently: control and invisible characters, whitespace unknown
    to DuckDB, and unassigned code points.
    """
    return frozenset(char for char in set(text) - BLANKS if unicodedata.category(char)[0] in "CZ")


def has_unicode_blanks(text: str) -> bool:
    """Whether a text contains whitespace outside ASCII."""
    return not text.isascii() and not _FOREIGN.isdisjoint(text)
