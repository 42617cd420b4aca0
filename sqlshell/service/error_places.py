"""Where errors are: positions in the text that the user typed, for messages of an engine about what was made of it."""

from __future__ import annotations

import bisect
import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import Final

from sqlshell.service.failure import Failure, cells_of, excerpt

_LONGEST: Final = 64 << 10
"""Characters of a message in which a position is searched."""

_PLACE: Final = re.compile(r"^LINE (\d+): (.*)\n( *)(\^+)", re.M)
_CUT: Final = "..."


def without_place(message: str) -> str:
    """Return a message of DuckDB without the line and marks of a text that the user did not type."""
    match = _PLACE.search(message, 0, _LONGEST)
    return message[: match.start()].rstrip() + message[match.end() :] if match else message


@contextlib.contextmanager
def placed(typed: str, before: str, part: str, behind: str = "") -> Iterator[None]:
    """Errors inside the block about `before + part + behind`, or about `part` alone, refer to the typed statement,
    which ends with the part, or contains it at its first occurrence.
    """
    try:
        yield
    except Failure as error:
        start = typed.rfind(part) if typed.rstrip("; \n\t").endswith(part) else typed.find(part)
        alone = [(part, start, True)]
        whole = [(before, start, False), *alone, (behind, start + len(part), False)]
        tried = (whole, alone) if start >= 0 else ()
        found = filter(None, (TranslatedStatement(typed, pieces).located(error.message) for pieces in tried))
        raise error.with_message(next(found, without_place(error.message))) from error.__cause__


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
        """Return the position in the typed statement of a character of the translated one."""
        if not self._places:
            return 0
        begin, typed, kept = self._places[max(0, bisect.bisect_right(self._starts, offset) - 1)]
        return min(len(self.typed), typed + (offset - begin if kept else 0))

    def explained(self, message: str) -> str:
        """Convert a message of DuckDB about this statement to one about the typed statement."""
        return message if self.sql == self.typed else self.located(message) or message

    def located(self, message: str) -> str | None:
        """Convert a message as explained() does; None for one without a position in this statement."""
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
