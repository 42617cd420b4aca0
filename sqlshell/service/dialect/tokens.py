"""A lazy lexer of statements: words, quoted names, strings, numbers and signs."""

from __future__ import annotations

import re

from msgspec import Struct

from sqlshell.service.dialect.names import COMMENT, Names

_BLANK = re.compile(rf"(?:\s++|{COMMENT})*+")
_TOKEN = re.compile(
    r"""(?P<word>[^\W\d](?:[\w$]++|-(?!-))*+)"""
    r"""|(?P<name>"(?:[^"]++|"")*+(?:"|\Z)|`(?:[^`]++|``)*+(?:`|\Z))"""
    r"""|(?P<text>'(?:[^']++|'')*+(?:'|\Z))"""
    r"""|(?P<number>[+-]?\d(?:[\w.$]++|(?<=[eE])[+-](?=\d)|-(?=\w))*+)"""
    r"""|(?P<sign>.)""",
    re.S,
)
"""Possessive throughout, so that it never backtracks. A number may continue as a word, such as 30s or an ID."""

WORD, NAME, TEXT, NUMBER, SIGN, END = "word", "name", "text", "number", "sign", "end"


MOST = 50_000
"""The maximum number of tokens that are read."""


class TooMany(Exception):
    """A statement has more than MOST tokens."""


class Token(Struct):
    """A word, quoted name, string, number or sign in the range [start, end); `value` is without quotes, `upper` is the
    word in upper case."""

    kind: str
    value: str
    upper: str
    start: int
    end: int


class Tokens:
    """The tokens of a text by number; each is read on first access. Raises TooMany."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._read: list[Token] = []

    def __getitem__(self, number: int) -> Token:
        if number >= MOST:
            raise TooMany
        while number >= len(self._read):
            self._read.append(self._next(self._read[-1].end if self._read else 0))
        return self._read[number]

    def rest(self, number: int) -> str:
        """The text from a token on, without trailing semicolons."""
        text = self.text[self[number].start :].rstrip()
        while text.endswith(";"):
            text = text[:-1].rstrip()
        return text

    def dotted(self, number: int, most: int) -> tuple[Names, int]:
        """A dotted name of at most `most` parts and the number of the next token; no parts if there is no name."""
        parts: list[str] = []
        while len(parts) < most:
            token = self[number]
            if token.kind == NAME and token.value:
                parts.append(token.value)
            elif token.kind == WORD:
                parts.append(token.value.lower())
            elif token.kind == NUMBER and parts:
                # The rest of an entity's name, such as orders.2024.
                parts.append(token.value)
            else:
                return (), number
            number += 1
            if not self.is_sign(number, "."):
                break
            number += 1
        else:
            number -= 1
        return tuple(parts), number

    def closing(self, number: int) -> int:
        """The number of the token that closes the parenthesis at `number`, or of the end if none does."""
        depth = 0
        while (token := self[number]).kind != END:
            if token.kind == SIGN:
                depth += (token.value == "(") - (token.value == ")")
                if not depth:
                    break
            number += 1
        return number

    def is_sign(self, number: int, sign: str) -> bool:
        return self[number].kind == SIGN and self[number].value == sign

    def _next(self, at: int) -> Token:
        blank = _BLANK.match(self.text, at)
        at = blank.end() if blank else at
        matched = _TOKEN.match(self.text, at)
        if matched is None:
            return Token(END, "", "", at, at)
        kind, raw = str(matched.lastgroup), matched[0]
        match kind:
            case "word":
                return Token(kind, raw, raw.upper(), at, matched.end())
            case "name" | "text":
                quote = raw[0]
                if raw.count(quote) % 2 == 0:
                    return Token(kind, raw[1:-1].replace(quote * 2, quote), "", at, matched.end())
                # An unterminated string or name is neither.
                kind = SIGN
        return Token(kind, raw, raw, at, matched.end())
