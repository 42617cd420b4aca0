"""The items of a script, and the states of the scanner."""

from __future__ import annotations

import enum
from functools import cached_property

from msgspec import Struct

from sqlshell.origin import TaintedPart, Text
from sqlshell.sql.analysis.lexed import Lexed


class State(enum.Enum):
    """The construct that the scanner is inside of; the value is the character in a continuation prompt."""

    READY = "="
    STATEMENT = "-"
    SINGLE_QUOTE = "'"
    DOUBLE_QUOTE = '"'
    BACK_QUOTE = "`"
    DOLLAR_QUOTE = "$"
    BLOCK_COMMENT = "*"
    PARENTHESIS = "("
    APPLICATION = "a"
    ATOMIC = "b"
    COPY_DATA = ">"


class Statement(Struct, frozen=True, dict=True):
    """One SQL statement.

    `text` runs from the first token to the last character before the closing `;` that is not whitespace, as
    written, except that `\\;`, `\\:` and `\\\\` become their second character. `line` (from 1) and `offset`
    (characters in the whole input) are those of the first token. `terminated` is False if the end of the input
    ended it, `background` is True if `;&` did. Variables in the first `substituted` characters have been
    substituted; `foreign` are the parts that came from a service. `has_failed_command` says that a command within
    it failed. `ending` is its `;` as typed with the whitespace before it, "" if a command or the end of the input
    ended it. `column` (from 1, in characters) is that of the first token, 0 if it is not known. `copies` counts the
    COPY … FROM STDIN in it, whose data follow if it is terminated; `\\;` allows several.
    """

    text: str
    line: int
    offset: int
    terminated: bool
    background: bool = False
    substituted: int = 0
    foreign: tuple[TaintedPart, ...] = ()
    has_failed_command: bool = False
    ending: str = ""
    column: int = 0
    copies: int = 0

    @property
    def whole(self) -> Text:
        """The text with the origins of its parts."""
        return Text(self.text, self.foreign)

    @cached_property
    def lexed(self) -> Lexed:
        """The text with what has been learned of it since the scanner found it."""
        return Lexed(self.whole)


class BackslashCommand(Struct, frozen=True):
    """One backslash command.

    `name` does not include the backslash. `args` is the rest of the line up to the next command outside quotes, as
    written and stripped. `line` (from 1) and `offset` (characters in the whole input) are those of the backslash.
    """

    name: str
    args: str
    line: int
    offset: int


class CopyLines(Struct, frozen=True):
    """A part of the data of a COPY … FROM STDIN, as written. The `last` part ends the data: by the line `\\.`, which
    belongs to it, or `cut` off by the end of the script."""

    text: str
    line: int
    offset: int
    last: bool
    cut: bool = False


Item = Statement | BackslashCommand | CopyLines
