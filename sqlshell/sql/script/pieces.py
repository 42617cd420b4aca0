"""The text of a script, as it arrives, without the data of COPY … FROM STDIN."""

from __future__ import annotations

from collections import deque

from sqlshell.sql.script.copy_data import CopyData


class Pieces:
    """Pieces of a script that may end anywhere.

    `copies` counts the COPY statements whose data are still to come: they begin with the line after the COPY, whatever
    else began on its own. `skipped` and `lines` count the characters and line ends of data since the last take().
    """

    def __init__(self) -> None:
        self.copies = 0
        self.skipped = self.lines = 0
        self._waiting: deque[str] = deque()
        self._on_line = False  # the text that was taken last is on the line of a COPY
        self._data: CopyData | None = None

    @property
    def in_data(self) -> bool:
        """Whether what comes next is data."""
        return self._data is not None

    @property
    def split(self) -> bool:
        """Whether the text that was taken last has to be given back from here on, for data may begin in it."""
        return self.copies > 0 and not self._on_line

    def feed(self, piece: str) -> None:
        if piece:
            self._waiting.append(piece)

    def give_back(self, rest: str) -> None:
        if rest:
            self._waiting.appendleft(rest)

    def take(self) -> str:
        """The next text that is no data, "" where there is none."""
        self.skipped = self.lines = 0
        while self._waiting:
            piece = self._waiting.popleft()
            if self._data is None:
                self._on_line = self.copies > 0
                if self._on_line:
                    line, end, rest = piece.partition("\n")
                    self.give_back(rest)
                    piece = line + end
                return piece
            stop, closed = self._data.skip(piece, 0)
            self.skipped += stop
            self.lines += piece.count("\n", 0, stop)
            self.give_back(piece[stop:])
            if closed:
                self.copies -= 1
                self._data = CopyData() if self.copies else None
        return ""

    def used_up(self, text: str) -> None:
        """The text that was taken last has been looked at to its end."""
        if self._on_line and self.copies and text.endswith("\n"):
            self._data = CopyData()

    def end(self) -> None:
        """Data that have no end of their own end with the script."""
        self.copies = 0
        self._data = None
