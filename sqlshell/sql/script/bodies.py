"""Statements that contain semicolons: BEGIN APPLICATION …, and functions with the body BEGIN ATOMIC … END; and COPY …
FROM STDIN, which is followed by data.

As in psql, CREATE FUNCTION is recognized by its first words; BEGIN and CASE in it, outside parentheses, require an END.
"""

from __future__ import annotations

import enum
from typing import Final

from sqlshell.sql.script import lexical_rules
from sqlshell.sql.script.items import State


class _Kind(enum.Enum):
    PLAIN = enum.auto()
    HEAD = enum.auto()
    """The words so far may begin any of the others."""
    FUNCTION = enum.auto()
    APPLICATION = enum.auto()
    COPY = enum.auto()


_HEADS: Final = {
    "begin": _Kind.HEAD,
    "begin application": _Kind.APPLICATION,
    "copy": _Kind.COPY,
    "create": _Kind.HEAD,
    "create or": _Kind.HEAD,
    "create or replace": _Kind.HEAD,
    "create or replace function": _Kind.FUNCTION,
    "create or replace procedure": _Kind.FUNCTION,
    "create function": _Kind.FUNCTION,
    "create procedure": _Kind.FUNCTION,
}


class StatementBody:
    """Follows the words of one statement."""

    def __init__(self) -> None:
        self._kind = _Kind.HEAD
        self._head = ""
        self._open = 0
        self._ending = False
        self._from = False
        self.copies_from_stdin = False
        """Whether the words so far are COPY … FROM STDIN."""

    @property
    def watching(self) -> bool:
        """Whether further words can change the state."""
        return self._kind is not _Kind.PLAIN

    @property
    def state(self) -> State | None:
        """The kind of body that contains the current position, None outside of one."""
        if self._kind is _Kind.APPLICATION:
            return State.APPLICATION
        return State.ATOMIC if self._kind is _Kind.FUNCTION and self._open else None

    def word(self, word: str, depth: int) -> None:
        """Process an unquoted word inside `depth` parentheses."""
        word = word.lower()
        if self._kind is _Kind.HEAD:
            self._head = f"{self._head} {word}".lstrip()
            self._kind = _HEADS.get(self._head, _Kind.PLAIN)
        elif self._kind is _Kind.COPY:
            self._head = ""
            self.copies_from_stdin = self.copies_from_stdin or (self._from and word == "stdin")
            self._from = word == "from" and not depth
        elif self._kind is _Kind.FUNCTION and not depth:
            if word == "begin" or (word == "case" and self._open):
                self._open += 1
            elif word == "end" and self._open:
                self._open -= 1
        elif self._kind is _Kind.APPLICATION:
            if self._ending and word == "application":
                self._kind = _Kind.PLAIN
            # An END without a CASE: `case … end application` is an expression and its name.
            self._ending = word == "end" and not self._open
            if word == "case":
                self._open += 1
            elif word == "end" and self._open:
                self._open -= 1

    def other(self, token: str = "") -> None:
        """Process anything other than a word, whitespace or a comment."""
        # A query after COPY is only written.
        copies_query = token == "(" and self._head == "copy"
        self._ending = self._from = False
        self._head = ""
        if self._kind is _Kind.HEAD or copies_query:
            self._kind = _Kind.PLAIN


def may_have_body(statement: str) -> bool:
    """Whether a statement may contain semicolons in a body, or be followed by data."""
    if statement[0] not in "cC":
        return False
    if lexical_rules.FUNCTION.match(statement):
        return "begin" in statement.lower()
    return statement[:4].lower() == "copy" and "stdin" in statement.lower()
