"""The items of a script, and the states of the scanner that reads them."""

from __future__ import annotations

import enum

from msgspec import Struct

from sqlshell.origin import Foreign, Text


class State(enum.Enum):
    """What a scanner is inside of; the value is a sign for a continuation prompt."""

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
    COMMAND = "\\"
    COPY_DATA = ">"


class Statement(Struct, frozen=True):
    """One SQL statement.

    `text` runs from the first token to the last character before the closing `;` that is not blank, as written, but for
    `\\;`, `\\:` and `\\\\`, of which it has the second character. `line` (from 1) and `offset` (characters in the whole
    input) are those of the first token. `terminated` is False for what the end of the input ended, `background` is True
    for what ended in `;&`. The first `settled` characters have the values of their variables already; `foreign` are the
    parts that came from a service. `broken` says that a command within it failed. `ending` is its `;` as typed
    with the blanks before it, "" where a command or the end of the input ended it.
    """

    text: str
    line: int
    offset: int
    terminated: bool
    background: bool = False
    settled: int = 0
    foreign: tuple[Foreign, ...] = ()
    broken: bool = False
    ending: str = ""

    @property
    def whole(self) -> Text:
        """The text with where its parts came from."""
        return Text(self.text, self.foreign)


class BackslashCommand(Struct, frozen=True):
    """One backslash command.

    `name` comes without the backslash, `args` is the rest of its line up to the next command outside quotes, as written
    and stripped. `line` (from 1) and `offset` (characters in the whole input) are those of the backslash.
    """

    name: str
    args: str
    line: int
    offset: int


Item = Statement | BackslashCommand
