"""The significant tokens of a statement: words, strings, quoted names and single characters, without whitespace and
comments.

The rules are those of the scanner, except that whitespace is what DuckDB treats as whitespace: DuckDB runs what it
reads.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from typing import Final, Literal

from msgspec import Struct

from sqlshell.sql.script.lexical_rules import COMMENT_MARK, ESCAPE_STRING, IN_TAG, IN_WORD, LETTER, QUOTED_NAME, STRING

FOREIGN: Final = "\xa0\u2000-\u200b\u202f\u205f\u2060\u3000\ufeff"
"""Characters outside ASCII that DuckDB treats as whitespace and other engines as letters, as a character class of a
regular expression."""

Kind = Literal["word", "string", "name", "number", "sign"]


class Token(Struct, frozen=True):
    """`text` as written, from `start` to `end` (characters in the statement)."""

    kind: Kind
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """A bare word in capitals, "" for any other token."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def value(self) -> str:
        """The value of a string or quoted name; the text of a word."""
        match self.kind:
            case "name":
                quote = self.text[0]
                return _inner(self.text, 1).replace(quote * 2, quote)
            case "string" if self.text[0] == "'":
                return _inner(self.text, 1).replace("''", "'")
            case "string" if self.text[0] == "$":
                tag = self.text.index("$", 1) + 1
                closed = len(self.text) >= 2 * tag and self.text.endswith(self.text[:tag])
                return self.text[tag:-tag] if closed else self.text[tag:]
            case "string":
                return _inner(self.text, 2).replace("''", "'").replace("\\'", "'").replace("\\\\", "\\")
        return self.text


def _inner(text: str, start: int) -> str:
    """The text between quotes, of which the second is after `start`. An unfinished string or name has no second one."""
    inside = text[start:]
    # An even number of quotes at the end is quotes in the text.
    quotes = len(inside) - len(inside.rstrip(text[start - 1]))
    return inside[:-1] if quotes % 2 else inside


_LETTER: Final = f"{LETTER[:-1]}{FOREIGN}]"
_IN_WORD: Final = f"{IN_WORD[:-1]}{FOREIGN}]"
_TAG: Final = rf"\$(?:{_LETTER}{IN_TAG[:-1]}{FOREIGN}]*+)?\$"
_STRING: Final = rf"|(?P<string>{STRING})|(?P<name>{QUOTED_NAME})"
_ESCAPED: Final = (
    r"|(?P<string>'(?:[^'\\]++|\\.|'')*+(?:'|\\?\Z))"
    r"""|(?P<name>"(?:[^"\\]++|\\.|"")*+(?:"|\\?\Z)|`[^`]*+(?:``[^`]*+)*+(?:`|\Z))"""
)
"""Strings as they are read by engines in which a backslash escapes a quote."""


def _token(strings: str) -> str:
    return (
        rf"(?P<blank>[ \t\n\r\f\v{FOREIGN}]++|--[^\r\n]*+)"
        r"|(?P<comment>/\*)"
        rf"|(?P<escape>{ESCAPE_STRING})"
        rf"{strings}"
        rf"|(?P<tag>{_TAG})"
        r"|(?P<number>[0-9][0-9_]*+(?:\.[0-9_]*+)?(?:[eE][+-]?[0-9]++)?)"
        rf"|(?P<word>{_LETTER}{_IN_WORD}*+)"
        r"|(?P<sign>.)"
    )


@functools.cache
def _compiled(backslash: bool) -> re.Pattern[str]:
    """Compiled on first use: many shells only send what they are given."""
    return re.compile(_token(_ESCAPED if backslash else _STRING), re.DOTALL)


def tokens(sql: str, *, backslash: bool = False, nested: bool = True) -> Iterator[Token]:
    """The tokens in order. Raises nothing for any text.

    With `backslash`, a backslash escapes a quote in any string; without `nested`, the first `*/` ends a comment. Some
    engines read statements in this way.
    """
    position, next_token = 0, _compiled(backslash).match
    while position < len(sql):
        match = next_token(sql, position)
        assert match is not None
        position = match.end()
        kind = match.lastgroup
        start = match.start()
        match kind:
            case "blank":
                continue
            case "comment":
                position = _comment_end(sql, position) if nested else _first_end(sql, position)
            case "tag":
                closing = sql.find(match.group(), position)
                position = len(sql) if closing < 0 else closing + len(match.group())
                yield Token("string", sql[start:position], start, position)
            case "escape" | "string":
                yield Token("string", match.group(), start, position)
            case "name" | "number" | "word":
                yield Token(kind, match.group(), start, position)
            case _:
                yield Token("sign", match.group(), start, position)


def first_word(sql: str) -> str:
    """Return the first word of a statement for an engine in lower case, "(" for a parenthesis, "" for neither.

    For messages and the way to run it, never for what it may do.
    """
    first = next(tokens(sql), None)
    return first.text.lower() if first is not None and (first.kind == "word" or first.text == "(") else ""


def with_depth(given: Iterable[Token]) -> Iterator[tuple[Token, int]]:
    """Each token, and the number of parentheses that are open behind it."""
    depth = 0
    for token in given:
        if token.text == "(":
            depth += 1
        elif token.text == ")":
            depth = max(0, depth - 1)
        yield token, depth


def _first_end(sql: str, position: int) -> int:
    end = sql.find("*/", position)
    return end + 2 if end >= 0 else len(sql)


def _comment_end(sql: str, position: int) -> int:
    depth = 1
    for mark in COMMENT_MARK.finditer(sql, position):
        depth += 1 if mark.group() == "/*" else -1
        if not depth:
            return mark.end()
    return len(sql)
