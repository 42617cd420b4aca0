"""A statement's text with its analysis: each question about it is answered once, when it is first asked.

The value travels with the statement, so that the text is read only once.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Any, Final, TypeVar

from sqlshell.origin import Text, service_text
from sqlshell.sql.analysis.tokens import Token, tokens

T = TypeVar("T")

SHORT_LENGTH: Final = 64 << 10
"""Maximum length of a text whose tokens are kept, in characters. They take up to 120 bytes for each character."""

_NESTED: Final = re.compile(r"/\*(?:[^*/]++|\*(?!/)|/(?!\*))*+/\*")


class Lexed:
    """A text and its tokens, which are read once, when they are first needed.

    For a text longer than SHORT_LENGTH only the answers are kept: each question about all its tokens reads them again.
    """

    __slots__ = ("_answers", "_more", "_read", "text", "whole")

    def __init__(self, whole: Text) -> None:
        self.whole = whole
        """The text with the origins of its parts."""
        self.text = whole.text
        self._read: list[Token] = []
        self._more: Iterator[Token] | None = None
        self._answers: dict[Hashable, Any] = {}

    def __str__(self) -> str:
        return self.text

    @property
    def is_short(self) -> bool:
        """Whether the text is short enough to keep data of the same length."""
        return len(self.text) <= SHORT_LENGTH

    @property
    def tokens(self) -> Sequence[Token]:
        """All tokens, in order."""
        if not self.is_short:
            return list(tokens(self.text))
        return self.first(len(self.text))

    def __iter__(self) -> Iterator[Token]:
        """The tokens in order; those of a long text are never all in memory."""
        return iter(self.tokens) if self.is_short else tokens(self.text)

    def first(self, count: int) -> Sequence[Token]:
        """At least the first `count` tokens, if there are as many. The rest of the text may remain unread."""
        if len(self._read) < count:
            if self._more is None:
                self._more = tokens(self.text)
            self._read += islice(self._more, count - len(self._read))
        return self._read

    @property
    def readings(self) -> Sequence[Sequence[Token]]:
        """The tokens, in each way in which engines read the text."""
        return self.answer("readings", self._readings, long=True)

    @property
    def own(self) -> Callable[[Token], bool]:
        """A predicate for tokens that are the user's own, and would be the same whatever the rest of the text was."""
        if not self.whole.foreign:
            return lambda token: True
        known = self.answer("own", self._own, long=True)
        return lambda token: (token.start, token.text) in known

    def answer(self, question: Hashable, find: Callable[[], T], *, long: bool = False) -> T:
        """The result of `find`, which is kept by its question, unless it is as `long` as a text that is not short."""
        if question in self._answers:
            kept: T = self._answers[question]
            return kept
        result = find()
        if self.is_short or not long:
            self._answers[question] = result
        return result

    def _own(self) -> set[tuple[int, str]]:
        return {(token.start, token.text) for token in tokens(self.whole.blanked)}

    def _readings(self) -> list[Sequence[Token]]:
        text, readings = self.text, [self.tokens]
        if "\\'" in text or '\\"' in text:
            readings.append(list(tokens(text, backslash=True)))
        if _NESTED.search(text):
            readings.append(_without_ends(list(tokens(text, nested=False))))
            if len(readings) > 2:
                readings.append(_without_ends(list(tokens(text, backslash=True, nested=False))))
        return readings


Sql = Lexed | str
"""A statement, or only its text."""

Redact = Callable[[Sql], str]
"""Returns a statement, or another text, without its secrets."""


def lexed(sql: Sql | Text) -> Lexed:
    """A statement as it is; a text as a new statement of unknown origin."""
    if isinstance(sql, Lexed):
        return sql
    return Lexed(service_text(sql, "this text") if isinstance(sql, str) else sql)


def once_per_statement(question: Callable[[Lexed], T]) -> Callable[[Sql], T]:
    """Decorator: evaluate a function of a statement once for each statement. It also accepts a text."""

    @functools.wraps(question)
    def ask(sql: Sql) -> T:
        statement = lexed(sql)
        return statement.answer(question, lambda: question(statement))

    return ask


def _without_ends(given: list[Token]) -> list[Token]:
    """The tokens without each `*/` that is left over in that reading."""
    ends = {
        number
        for number, (star, slash) in enumerate(pairwise(given))
        if star.text == "*" and slash.text == "/" and star.end == slash.start
    }
    return [token for number, token in enumerate(given) if number not in ends and number - 1 not in ends]
