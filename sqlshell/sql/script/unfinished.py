"""The statement that the scanner is in: its text so far, and the state that determines its end.

Some statements contain semicolons: BEGIN APPLICATION …, and functions with the body BEGIN ATOMIC … END. COPY … FROM
STDIN is followed by data. As in psql, CREATE FUNCTION is recognized by its first words; BEGIN and CASE in it, outside
parentheses, require an END.
"""

from __future__ import annotations

import copy
import enum
from typing import Final

from sqlshell.origin import TaintedPart, Text
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


class QuoteContinuation(enum.Enum):
    """The position after an E'' string: a quote continues it, immediately or on a later line."""

    NONE = enum.auto()
    CLOSED = enum.auto()
    BLANK = enum.auto()
    NEW_LINE = enum.auto()


class UnfinishedStatement:
    """An unfinished statement; none if it is not `started`.

    `line`, `column` and `offset` are those of its first token, `left_out` is the number of commands within it. After a
    `\\;`, `body` is that of the next part, and `copies` counts the parts before it that have data. Its text is `parts`,
    followed by the scanner's text from `taken` on. Variables in the first `substituted` characters have been
    substituted; `foreign` are their parts that came from a service. `escaped` says that the text differs from what was
    written, because a `\\;` lost its backslash. `has_failed_command` says that a command within it failed.
    """

    def __init__(self) -> None:
        self.started = False
        self.taken = 0
        self.line = self.offset = self.column = 0
        self.opened: list[int] = []
        """The places in the script of the parentheses that are open."""
        self.body = StatementBody()
        self.copies = 0
        self.joint = QuoteContinuation.NONE
        self.left_out = 0
        self.escaped = False
        self.substituted = 0
        self.foreign: tuple[TaintedPart, ...] = ()
        self.has_failed_command = False
        self.parts: list[str] = []

    @property
    def rewritable(self) -> bool:
        """Whether the text, typed again, would be the same statement."""
        return not self.escaped and not self.substituted

    def replace_substituted(self, text: Text) -> None:
        """Replace the text by the given one, in which variables have been substituted."""
        self.parts[:] = [text.text]
        self.substituted = len(text.text)
        self.foreign = text.foreign

    def end_part(self) -> None:
        """Process a `\\;`: another statement follows, unless it is in parentheses or in a body."""
        if not self.opened and not self.body.state:
            self.copies += self.body.copies_from_stdin
            self.body = StatementBody()

    def copy(self) -> UnfinishedStatement:
        copied = copy.copy(self)
        copied.body = copy.copy(self.body)
        copied.opened = [*self.opened]
        copied.parts = ["".join(self.parts)]
        return copied

    def omit(self, before: str, *, separated: bool) -> None:
        """Leave out a command after some text. A line with only the command is not a line of the statement.

        The text continues on the next line, or after the `\\\\` that `separated` the two.
        """
        self.parts.append(before)
        self.left_out += 1
        if separated:
            return
        blank: list[str] = []
        while self.parts:
            kept = self.parts[-1].rstrip(lexical_rules.BLANKS)
            blank.append(self.parts[-1][len(kept) :])
            self.parts[-1] = kept
            if kept:
                break
            self.parts.pop()
        between = "".join(reversed(blank))
        if between and "\n" not in between:
            self.parts.append(between)


def may_have_body(statement: str) -> bool:
    """Whether a statement may contain semicolons in a body, or be followed by data."""
    if statement[0] not in "cC":
        return False
    if lexical_rules.FUNCTION.match(statement):
        return "begin" in statement.lower()
    return statement[:4].lower() == "copy" and "stdin" in statement.lower()
