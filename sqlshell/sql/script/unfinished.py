"""The statement that the scanner is in: its text so far, and the state that determines its end."""

from __future__ import annotations

import copy
import enum

from sqlshell.origin import Foreign, Text
from sqlshell.sql.script import lexical_rules
from sqlshell.sql.script.bodies import StatementBody


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

    __slots__ = (
        "body",
        "column",
        "copies",
        "depth",
        "escaped",
        "foreign",
        "has_failed_command",
        "joint",
        "left_out",
        "line",
        "offset",
        "parts",
        "started",
        "substituted",
        "taken",
    )

    def __init__(self) -> None:
        self.started = False
        self.taken = 0
        self.line = self.offset = self.column = 0
        self.depth = 0
        self.body = StatementBody()
        self.copies = 0
        self.joint = QuoteContinuation.NONE
        self.left_out = 0
        self.escaped = False
        self.substituted = 0
        self.foreign: tuple[Foreign, ...] = ()
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
        if not self.depth and not self.body.state:
            self.copies += self.body.copies_from_stdin
            self.body = StatementBody()

    def copy(self) -> UnfinishedStatement:
        copied = copy.copy(self)
        copied.body = copy.copy(self.body)
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
