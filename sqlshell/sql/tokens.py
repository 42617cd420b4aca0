"""A statement as its tokens that count: words, strings, quoted names and single signs, without blanks and comments."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Final, Literal

from msgspec import Struct

from sqlshell.sql.patterns import IN_TAG, IN_WORD, LETTER

Kind = Literal["word", "string", "name", "number", "sign"]


class Token(Struct, frozen=True):
    """`text` as written, from `start` to `end` (characters in the statement)."""

    kind: Kind
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """A bare word in capitals, "" for anything else."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def value(self) -> str:
        """What a string or a quoted name says; of a word its text."""
        match self.kind:
            case "name":
                quote = self.text[0]
                return self.text[1:-1].replace(quote * 2, quote)
            case "string" if self.text[0] == "'":
                return self.text[1:-1].replace("''", "'")
            case "string" if self.text[0] == "$":
                tag = self.text.index("$", 1) + 1
                return self.text[tag:-tag]
            case "string":
                return self.text[2:-1].replace("''", "'").replace("\\'", "'").replace("\\\\", "\\")
        return self.text


_TAG: Final = rf"\$(?:{LETTER}{IN_TAG}*+)?\$"
_TOKEN: Final = (
    r"(?P<blank>[ \t\n\r\f\v]++|--[^\r\n]*+)"
    r"|(?P<comment>/\*)"
    r"|(?P<escape>[eE]'(?:[^'\\]++|\\.|'')*+(?:'|\\?\Z))"
    r"|(?P<string>'[^']*+(?:''[^']*+)*+(?:'|\Z))"
    r"""|(?P<name>"[^"]*+(?:""[^"]*+)*+(?:"|\Z)|`[^`]*+(?:``[^`]*+)*+(?:`|\Z))"""
    rf"|(?P<tag>{_TAG})"
    r"|(?P<number>[0-9][0-9_]*+(?:\.[0-9_]*+)?(?:[eE][+-]?[0-9]++)?)"
    rf"|(?P<word>{LETTER}{IN_WORD}*+)"
    r"|(?P<sign>.)"
)
_MARK: Final = re.compile(r"/\*|\*/")


@functools.cache
def _compiled() -> re.Pattern[str]:
    """Made when it is first needed: many a shell only sends what it is given."""
    return re.compile(_TOKEN, re.DOTALL)


def tokens(sql: str) -> Iterator[Token]:
    """The tokens in order, by the scanner's lexical rules. Raises nothing, whatever the text."""
    position, match = 0, _compiled().match
    while position < len(sql):
        found = match(sql, position)
        assert found is not None
        position = found.end()
        kind = found.lastgroup
        start = found.start()
        match kind:
            case "blank":
                continue
            case "comment":
                position = _comment_end(sql, position)
            case "tag":
                closing = sql.find(found.group(), position)
                position = len(sql) if closing < 0 else closing + len(found.group())
                yield Token("string", sql[start:position], start, position)
            case "escape" | "string":
                yield Token("string", found.group(), start, position)
            case "name" | "number" | "word":
                yield Token(kind, found.group(), start, position)
            case _:
                yield Token("sign", found.group(), start, position)


def _comment_end(sql: str, position: int) -> int:
    depth = 1
    for mark in _MARK.finditer(sql, position):
        depth += 1 if mark.group() == "/*" else -1
        if not depth:
            return mark.end()
    return len(sql)
