"""The tokens of the interface's statements, and the names in a statement of the engine.

They are those of `sqlshell.sql.analysis.tokens`, joined where the interface reads one word or number: my-pool, 30s.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from msgspec import Struct

from sqlshell.sql.analysis.tokens import tokens
from sqlshell.sql.script.lexical_rules import IN_WORD, LETTER

Names = tuple[str, ...]
"""The parts of a dotted name; unquoted parts are folded to lower case."""

WORD, NAME, TEXT, NUMBER, SIGN, END = "word", "name", "text", "number", "sign", "end"

MOST = 50_000
"""The maximum number of tokens that are read."""

HEAD = 4000
"""The first words of a statement are searched in this many characters."""

BLANK = re.compile(r"(?:\s++|--[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z))*+")
"""White space and comments. It never backtracks, because other threads wait for a match to end."""

READS = frozenset({"FROM", "JOIN", "USING", "TABLE", "DESCRIBE", "DESC", "SUMMARIZE", "PIVOT", "UNPIVOT"})
WRITES = frozenset(
    {"INSERT", "REPLACE", "UPDATE", "DELETE", "TRUNCATE", "MERGE", "ALTER", "DROP", "COMMENT", "CREATE", "COPY"}
)
"""Verbs for targets(), before a relation that is read or written. For error messages, never for permissions."""

_FILLERS = frozenset(
    [
        *("ABORT", "EXISTS", "FAIL", "FROM", "IF", "IGNORE", "INTO", "NOT", "ON", "OR", "RECURSIVE", "REPLACE"),
        *("CHANGELOG", "FUNCTION", "MACRO", "MATERIALIZED", "SCHEMA", "SEQUENCE", "STREAM", "TABLE", "TYPE", "VIEW"),
    ]
)
"""The words between such a verb and the name."""


_WORD = re.compile(rf"{LETTER}(?:{IN_WORD}++|-(?!-))*+")
_NUMBER = re.compile(rf"[+-]?[0-9](?:{IN_WORD}++|\.|(?<=[eE])[+-](?=[0-9])|-(?={IN_WORD}))*+")
"""What is one word or number here. A number may continue as a word, such as 30s or an ID."""


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
        self._parts = tokens(text)
        self._at = 0

    def __getitem__(self, number: int) -> Token:
        if number >= MOST:
            raise TooMany
        while number >= len(self._read):
            self._read.append(self._next())
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

    def first_words(self, number: int) -> list[str]:
        """The first words, in upper case; "" for another token or the end."""
        return [self[at].upper if self[at].kind == WORD else "" for at in range(number)]

    def _next(self) -> Token:
        token = next((item for item in self._parts if item.start >= self._at), None)
        if token is None:
            return Token(END, "", "", len(self.text), len(self.text))
        if token.kind in {"string", "name"}:
            quote = token.text[0]
            if quote not in "'\"`" or token.text.count(quote) % 2 == 0:
                return Token(TEXT if token.kind == "string" else NAME, token.value, "", token.start, token.end)
        elif match := _WORD.match(self.text, token.start) or _NUMBER.match(self.text, token.start):
            kind, self._at = WORD if match.re is _WORD else NUMBER, match.end()
            return Token(kind, match[0], match[0].upper() if kind == WORD else match[0], token.start, self._at)
        # A string or name that is not terminated is neither.
        return Token(SIGN, token.text, token.text, token.start, token.end)


def targets(sql: str, verbs: Collection[str]) -> list[Names]:
    """The names that follow one of `verbs`, words in upper case, in a statement."""
    tokens, at, found = Tokens(sql), 0, []
    try:
        while tokens[at].kind != END:
            verb, at = tokens[at].upper, at + 1
            if verb not in verbs or tokens[at - 1].kind != WORD:
                continue
            name = at
            while tokens[name].upper in _FILLERS and tokens[name].kind == WORD:
                name += 1
            names, behind = tokens.dotted(name, 3)
            if names and (verb != "COPY" or tokens[behind].upper == "FROM"):
                found.append(names)
    except TooMany:
        pass
    return found
