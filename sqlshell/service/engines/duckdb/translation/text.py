"""A statement as tokens that can be replaced, and the mapping from the result back to the typed statement."""

from __future__ import annotations

import bisect
import contextlib
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from sqlshell.service.failure import Failure, cells_of, excerpt
from sqlshell.sql.analysis.tokens import Token, tokens

_LONGEST: Final = 64 << 10
"""Characters of a message in which a position is searched."""

_PLACE: Final = re.compile(r"^LINE (\d+): (.*)\n( *)(\^+)", re.M)
_CUT: Final = "..."
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
        """The bare word at a token in capitals, "" for anything else and outside of the statement."""
        return self.tokens[at].word if 0 <= at < len(self.tokens) else ""

    def sign(self, at: int) -> str:
        """The punctuation character at a token, "" for anything else."""
        if not 0 <= at < len(self.tokens):
            return ""
        token = self.tokens[at]
        return token.text if token.kind == "sign" else ""

    def is_name(self, at: int) -> bool:
        """Whether a token is a bare word or a quoted name."""
        return 0 <= at < len(self.tokens) and self.tokens[at].kind in {"word", "name"}

    def joined(self, at: int, signs: str) -> bool:
        """Whether the token begins these characters, with nothing between them."""
        return all(self.sign(at + number) == sign for number, sign in enumerate(signs)) and all(
            self.tokens[left].end == self.tokens[right].start for left, right in pairwise(range(at, at + len(signs)))
        )

    def arguments(self, at: int) -> list[tuple[int, int]]:
        """The first token of each argument in the parentheses at a token, and the token after the last argument."""
        end = self.closing.get(at)
        if end is None:
            return []
        bounds = [at, *self.commas[at], end]
        ranges = [(left + 1, right) for left, right in pairwise(bounds)]
        return [] if ranges == [(at + 1, at + 1)] else ranges

    def written(self, first: int, behind: int) -> str:
        """The text from one token to before another one."""
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
        """The statement with all edits. Line numbers do not change, because the text between tokens is not edited."""
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


def without_place(message: str) -> str:
    """A message of DuckDB without the line and marks of a text that the user did not type."""
    match = _PLACE.search(message, 0, _LONGEST)
    return message[: match.start()].rstrip() + message[match.end() :] if match else message


def message_for_typed(message: str, typed: str, before: str, part: str, behind: str) -> str:
    """Convert a message about the statement `before + part + behind`, or about `part` alone, to one about the typed
    statement, which ends with the part, or contains it at its first occurrence.
    """
    start = typed.rfind(part) if typed.rstrip("; \n\t").endswith(part) else typed.find(part)
    if start < 0:
        return without_place(message)
    alone = [(part, start, True)]
    whole = TranslatedStatement(typed, [(before, start, False), *alone, (behind, start + len(part), False)])
    return whole.located(message) or TranslatedStatement(typed, alone).located(message) or without_place(message)


@contextlib.contextmanager
def placed(typed: str, before: str, part: str, behind: str = "") -> Iterator[None]:
    """Errors inside the block about `before + part + behind` refer to the typed statement, which contains `part`."""
    try:
        yield
    except Failure as error:
        raise error.with_message(message_for_typed(error.message, typed, before, part, behind)) from error.__cause__


class TranslatedStatement:
    """A translated statement: its pieces, the position of each in the typed statement, and whether it was copied
    unchanged.
    """

    def __init__(self, typed: str, pieces: Sequence[tuple[str, int, bool]]) -> None:
        self.typed = typed
        self.sql = "".join(piece for piece, _, _ in pieces)
        self._places: list[tuple[int, int, bool]] = []
        length = 0
        for piece, start, kept in pieces:
            if piece:
                self._places.append((length, start, kept))
                length += len(piece)
        self._starts = [place[0] for place in self._places]

    def place(self, offset: int) -> int:
        """The position in the typed statement of a character of the translated one."""
        if not self._places:
            return 0
        begin, typed, kept = self._places[max(0, bisect.bisect_right(self._starts, offset) - 1)]
        return min(len(self.typed), typed + (offset - begin if kept else 0))

    def explained(self, message: str) -> str:
        """Convert a message of DuckDB about this statement to one about the typed statement."""
        return message if self.sql == self.typed else self.located(message) or message

    def located(self, message: str) -> str | None:
        """As explained(); None for a message without a position in this statement."""
        match = _PLACE.search(message, 0, _LONGEST)
        span = self._span(match) if match else None
        if match is None or span is None:
            return None
        start = self.place(span[0])
        end = max(start + 1, self.place(span[1] - 1) + 1)
        return message[: match.start()] + excerpt(self.typed, start, end) + message[match.end() :]

    def _span(self, match: re.Match[str]) -> tuple[int, int] | None:
        """The range that a message points at, as offsets in this statement."""
        lines = self.sql.split("\n")
        number = int(match[1])
        if not 0 < number <= len(lines):
            return None
        line, shown = lines[number - 1], match[2]
        lead = len(match[3]) - len(f"LINE {number}: ")
        at = line.find(shown)
        if at < 0:
            inner = shown.removeprefix(_CUT)
            lead -= len(_CUT) if inner != shown else 0
            shown = inner
            at = line.find(shown)
            if at < 0:
                shown = shown.removesuffix(_CUT)
                at = line.find(shown)
        if at < 0 or lead < 0:
            return None
        first = _characters(shown, lead)
        start = sum(len(item) + 1 for item in lines[: number - 1]) + at + first
        return start, start + max(1, _characters(shown[first:], len(match[4])))


def _characters(text: str, cells: int) -> int:
    """The number of characters of a text in its first cells."""
    taken = 0
    for number, sign in enumerate(text):
        if taken >= cells:
            return number
        taken += cells_of(sign)
    return len(text)
