"""A statement as tokens that can be replaced."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from sqlshell.service.error_places import TranslatedStatement
from sqlshell.sql.analysis.tokens import Token, tokens

_OPENING: Final = {"(": ")", "[": "]", "{": "}"}
_CLOSING: Final = frozenset(_OPENING.values())


class BracketedTokens:
    """The tokens of a statement; `closing` maps opening to closing brackets, `commas` to the commas directly inside."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self.tokens: list[Token] = list(tokens(sql))
        self.opening: dict[int, int] = {}
        self.closing: dict[int, int] = {}
        self.commas: dict[int, list[int]] = {}
        opened: list[int] = []
        for at, token in enumerate(self.tokens):
            if token.kind != "sign":
                continue
            if token.text in _OPENING:
                opened.append(at)
                self.commas[at] = []
            elif token.text in _CLOSING and opened:
                begun = opened.pop()
                self.closing[begun], self.opening[at] = at, begun
            elif token.text == "," and opened:
                self.commas[opened[-1]].append(at)

    def __len__(self) -> int:
        return len(self.tokens)

    def word(self, at: int) -> str:
        """Return the bare word at a token in capitals, "" for anything else and outside of the statement."""
        return self.tokens[at].word if 0 <= at < len(self.tokens) else ""

    def sign(self, at: int) -> str:
        """Return the punctuation character at a token, "" for anything else."""
        if not 0 <= at < len(self.tokens):
            return ""
        token = self.tokens[at]
        return token.text if token.kind == "sign" else ""

    def is_name(self, at: int) -> bool:
        """Tell whether a token is a bare word or a quoted name."""
        return 0 <= at < len(self.tokens) and self.tokens[at].kind in {"word", "name"}

    def joined(self, at: int, signs: str) -> bool:
        """Tell whether the token begins these characters, with nothing between them."""
        return all(self.sign(at + number) == sign for number, sign in enumerate(signs)) and all(
            self.tokens[left].end == self.tokens[right].start for left, right in pairwise(range(at, at + len(signs)))
        )

    def arguments(self, at: int) -> list[tuple[int, int]]:
        """Return the first token of each argument in the parentheses at a token, and the token after the last
        argument."""
        end = self.closing.get(at)
        if end is None:
            return []
        bounds = [at, *self.commas[at], end]
        ranges = [(left + 1, right) for left, right in pairwise(bounds)]
        return [] if ranges == [(at + 1, at + 1)] else ranges

    def written(self, first: int, behind: int) -> str:
        """Return the text from one token to before another one."""
        return self.sql[self.tokens[first].start : self.tokens[behind - 1].end] if first < behind else ""


class Edits:
    """Replacements of tokens, and insertions before and after them."""

    def __init__(self) -> None:
        self.instead: dict[int, str] = {}
        self.before: dict[int, list[str]] = {}
        self.behind: dict[int, str] = {}

    def __bool__(self) -> bool:
        return bool(self.instead or self.before or self.behind)

    def replace(self, at: int, text: str) -> None:
        self.instead[at] = text

    def drop(self, first: int, behind: int) -> None:
        for at in range(first, behind):
            self.instead[at] = ""

    def insert(self, at: int, text: str) -> None:
        """Insert text before a token."""
        self.before.setdefault(at, []).append(text)

    def append(self, at: int, text: str) -> None:
        """Insert text after a token."""
        self.behind[at] = text

    def add(self, others: Edits) -> None:
        self.instead |= others.instead
        self.behind |= others.behind
        for at, texts in others.before.items():
            self.before.setdefault(at, []).extend(texts)

    def applied(self, text: BracketedTokens) -> TranslatedStatement:
        """Return the statement with all edits. Line numbers do not change, because the text between tokens is not
        edited."""
        sql, taken = text.sql, 0
        pieces: list[tuple[str, int, bool]] = []
        for at in sorted(self.instead.keys() | self.before.keys() | self.behind.keys()):
            token = text.tokens[at]
            pieces.append((sql[taken : token.start], taken, True))
            pieces += [(new, token.start, False) for new in self.before.get(at, ())]
            pieces.append((self.instead.get(at, token.text), token.start, at not in self.instead))
            pieces.append((self.behind.get(at, ""), token.end, False))
            taken = token.end
        pieces.append((sql[taken:], taken, True))
        return TranslatedStatement(sql, pieces)
