"""The data of COPY … FROM STDIN, which follows its statement in the script and is not SQL."""

from __future__ import annotations

from typing import Final

_END: Final = "\\."
_LONGEST_END: Final = "\\.\r"


class CopyData:
    """From the line after a COPY … FROM STDIN to the line `\\.`, inclusive.

    Pieces of text may end anywhere: the beginning of the current line is kept as long as it may be the last line.
    """

    def __init__(self) -> None:
        self._line: str | None = ""

    def skip(self, text: str, position: int) -> tuple[int, bool]:
        """The end of the data in `text`, and whether the data is complete there."""
        end = text.find("\n", position)
        if end < 0:
            self._note(text, position)
            return len(text), False
        self._note(text, position, end)
        if self._line in (_END, _LONGEST_END):
            return end + 1, True
        while (line_end := text.find("\n" + _END, end)) >= 0:
            start, end = line_end + 1, text.find("\n", line_end + 1)
            if end < 0:
                break
            if text[start:end] in (_END, _LONGEST_END):
                return end + 1, True
        self._line = ""
        self._note(text, text.rfind("\n") + 1)
        return len(text), False

    def _note(self, text: str, position: int, end: int | None = None) -> None:
        """Add text to the current line; None once the line is known to be data."""
        if self._line is not None:
            stop = position + len(_LONGEST_END) + 1
            line = self._line + text[position : stop if end is None else min(end, stop)]
            self._line = line if _LONGEST_END.startswith(line) else None
