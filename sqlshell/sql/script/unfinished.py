"""The statement that the scanner is in: its text so far, and what decides where it ends."""

from __future__ import annotations

import copy
import enum

from sqlshell.origin import Foreign, Text
from sqlshell.sql.script import lexical_rules
from sqlshell.sql.script.bodies import StatementBody


class Joint(enum.Enum):
    """What came since an E'' string was closed: a quote goes on with it at once, or on a later line."""

    NONE = enum.auto()
    CLOSED = enum.auto()
    BLANK = enum.auto()
    NEW_LINE = enum.auto()


class Unfinished:
    """A statement that has not ended, or none while it is not `started`.

    `line` and `offset` are those of its first token. Its text is `parts`, and then what the scanner has from `taken`
    on. The first `settled` characters have the values of their variables; `foreign` are the parts of them that came
    from a service. `escaped` is a text that is not as it was written, because a `\\;` lost its backslash. `broken` says
    that a command within it failed.
    """

    __slots__ = (
        "body",
        "broken",
        "depth",
        "escaped",
        "foreign",
        "joint",
        "line",
        "offset",
        "parts",
        "settled",
        "started",
        "taken",
    )

    def __init__(self) -> None:
        self.started = False
        self.taken = 0
        self.line = self.offset = 0
        self.depth = 0
        self.body = StatementBody()
        self.joint = Joint.NONE
        self.escaped = False
        self.settled = 0
        self.foreign: tuple[Foreign, ...] = ()
        self.broken = False
        self.parts: list[str] = []

    @property
    def rewritable(self) -> bool:
        """Whether the text, typed again, would be the same statement."""
        return not self.escaped and not self.settled

    def settle(self, text: Text) -> None:
        """Let that be the text from now on, with the values that its variables have now."""
        self.parts[:] = [text.text]
        self.settled = len(text.text)
        self.foreign = text.foreign

    def copied(self) -> Unfinished:
        found = copy.copy(self)
        found.body = copy.copy(self.body)
        found.parts = ["".join(self.parts)]
        return found

    def leave_out(self, before: str, *, separated: bool) -> None:
        """A command after some text. A line that has nothing but the command is no line of the statement.

        The text goes on in the next line, or after the `\\\\` that `separated` the two.
        """
        self.parts.append(before)
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
