"""The text of a script in pieces, without the data of COPY … FROM STDIN."""

from __future__ import annotations

from collections import deque

from sqlshell.sql.script.copy_data import CopyData


class Pieces:
    """Pieces of a script that may end anywhere.

    `copies` counts the COPY statements whose data follows: it begins with the line after the COPY, even if another
    statement has begun on the same line. `skipped` and `lines` count the characters and line ends of data since the
    last take().
    """

    def __init__(self, *, keeps_data: bool) -> None:
        self.copies = 0
        self.kept: list[tuple[str, bool]] = []
        """The parts of the data since the last take(), if they are kept; each says whether it is the last one."""
        self._keeps_data = keeps_data
        self.skipped = self.lines = 0
        self._waiting: deque[str] = deque()
        self._on_line = False  # the text taken last is on the line of a COPY
        self._data: CopyData | None = None

    @property
    def in_data(self) -> bool:
        """Whether the next text is data."""
        return self._data is not None

    @property
    def must_return(self) -> bool:
        """Whether the text from here on must be returned, because data may begin in it."""
        return self.copies > 0 and not self._on_line

    def feed(self, piece: str) -> None:
        if piece:
            self._waiting.append(piece)

    def give_back(self, rest: str) -> None:
        if rest:
            self._waiting.appendleft(rest)

    def take(self) -> str:
        """The next text that is not data, "" if there is none."""
        self.skipped = self.lines = 0
        self.kept = []
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
            if self._keeps_data:
                self.kept.append((piece[:stop], closed))
            self.skipped += stop
            self.lines += piece.count("\n", 0, stop)
            self.give_back(piece[stop:])
            if closed:
                self.copies -= 1
                self._data = CopyData() if self.copies else None
        return ""

    def note_processed(self, text: str) -> None:
        """The text taken last has been processed to its end."""
        if self._on_line and self.copies and text.endswith("\n"):
            self._data = CopyData()

    def end(self) -> None:
        """The end of the script: data without an end of its own ends here."""
        self.copies = 0
        self._data = None
