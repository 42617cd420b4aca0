"""The origin of text: text from the user may name files, commands and settings; text from a service is data.

A plain `str` has an unknown origin. Functions that open a file, run a command or send something require
`Trusted`. Values of variables, arguments and statements are `Text`, and only trusted() converts a `Text` to `Trusted`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, NewType

from msgspec import Struct

from sqlshell.errors import UsageError

Trusted = NewType("Trusted", str)
"""Trusted text: typed by the user, read from a file that the user named, from a setting, or from this program."""

EMPTY: Final = Trusted("")
"""No file: stdout, or the query buffer."""

ADOPT: Final = "check the value with \\echo; then type it yourself, or trust it with \\trust NAME REGEX"


class TaintedPart(NamedTuple):
    """A part of a text that came from a service; `source` names it for people, such as `:x`."""

    start: int
    stop: int
    source: str


class Text(Struct, frozen=True):
    """A text, and which of its parts came from a service. Only own_text(), service_text() and joined() create it."""

    text: str
    foreign: tuple[TaintedPart, ...] = ()

    @property
    def source(self) -> str:
        """The source of the first part that came from a service; "" if there is none."""
        return self.foreign[0].source if self.foreign else ""

    @property
    def blanked(self) -> str:
        """The text at its full length, with blanks in place of the parts that came from a service."""
        pieces, done = [], 0
        for start, stop, _ in self.foreign:
            pieces += [self.text[done:start], " " * (stop - start)]
            done = stop
        return "".join([*pieces, self.text[done:]])

    def trusted(self, use: str) -> Trusted:
        """The text as trusted text; `use` names its use. Raises UsageError if a part came from a service."""
        if self.foreign:
            raise refused(use, self.source)
        return Trusted(self.text)

    def part(self, start: int, stop: int) -> Text:
        cut = (TaintedPart(max(a, start) - start, min(b, stop) - start, source) for a, b, source in self.foreign)
        return Text(self.text[start:stop], tuple(each for each in cut if each.start < each.stop))


def trusted_text(text: Trusted) -> Text:
    return Text(text)


def service_text(text: str, source: str) -> Text:
    """A text from a service; `source` names it for people. An empty text is marked too."""
    return Text(text, (TaintedPart(0, len(text), source),))


def joined(parts: Iterable[Text], between: str = "") -> Text:
    """Texts joined by `between`, a text of this program."""
    texts: list[str] = []
    foreign: list[TaintedPart] = []
    length = 0
    for number, part in enumerate(parts):
        if number:
            texts.append(between)
            length += len(between)
        texts.append(part.text)
        foreign += (TaintedPart(start + length, stop + length, source) for start, stop, source in part.foreign)
        length += len(part.text)
    return Text("".join(texts), tuple(foreign))


def refused(use: str, source: str) -> UsageError:
    """The error for a value from a service that is used where only trusted text is allowed."""
    return UsageError(f"{use} cannot be {source}: the value came from the service", ADOPT)
