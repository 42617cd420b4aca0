"""Where text came from. What a person wrote may name files, commands and settings; what a service gave is data.

A plain `str` is of unknown origin. Whatever opens a file, runs a command or sends something takes `Own`, and whatever a
script is made of (values of variables, arguments, statements) is `Text`, from which only own() makes one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, NewType

from msgspec import Struct

from sqlshell.errors import UsageError

Own = NewType("Own", str)
"""Text without a word of a service in it: typed, in a file that the person named, in a setting, of this program."""

NOWHERE: Final = Own("")
"""No file: stdout, or the text that is being written."""

ADOPT: Final = "\\echo shows it; write it yourself, or \\own NAME EXPRESSION makes it yours where it matches"


class Foreign(NamedTuple):
    """The part of a text that came from a service; `source` is how people know it, such as `:x`."""

    start: int
    stop: int
    source: str


class Text(Struct, frozen=True):
    """A text, and which parts of it came from a service. It is made by mine(), theirs() and joined() alone."""

    text: str
    foreign: tuple[Foreign, ...] = ()

    @property
    def source(self) -> str:
        """Where the first part that is not the person's own came from; "" where all is."""
        return self.foreign[0].source if self.foreign else ""

    @property
    def blanked(self) -> str:
        """The text as long as it is, with blanks in the place of what is not the person's own."""
        made, done = [], 0
        for start, stop, _ in self.foreign:
            made += [self.text[done:start], " " * (stop - start)]
            done = stop
        return "".join([*made, self.text[done:]])

    def own(self, asked: str) -> Own:
        """The text, for what only a person may decide; `asked` says what that is. Raises UsageError."""
        if self.foreign:
            raise refused(asked, self.source)
        return Own(self.text)

    def part(self, start: int, stop: int) -> Text:
        cut = (Foreign(max(a, start) - start, min(b, stop) - start, source) for a, b, source in self.foreign)
        return Text(self.text[start:stop], tuple(each for each in cut if each.start < each.stop))


def mine(text: Own) -> Text:
    return Text(text)


def theirs(text: str, source: str) -> Text:
    """What a service gave; `source` is how people know it. An empty one keeps its mark."""
    return Text(text, (Foreign(0, len(text), source),))


def joined(parts: Iterable[Text], between: str = "") -> Text:
    """Texts behind one another, with a text of this program's `between` them."""
    made: list[str] = []
    foreign: list[Foreign] = []
    length = 0
    for number, part in enumerate(parts):
        if number:
            made.append(between)
            length += len(between)
        made.append(part.text)
        foreign += (Foreign(start + length, stop + length, source) for start, stop, source in part.foreign)
        length += len(part.text)
    return Text("".join(made), tuple(foreign))


def refused(asked: str, source: str) -> UsageError:
    """The error of using what came from a service for what only a person may decide."""
    return UsageError(f"{asked} cannot be {source}, which came from the service", ADOPT)
