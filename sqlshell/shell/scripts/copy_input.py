"""The data that follow COPY … FROM STDIN in a script, written to temporary files as they arrive."""

from __future__ import annotations

import re
from collections import deque
from pathlib import Path
from typing import BinaryIO, Final

from sqlshell.runtime.scratch import scratch
from sqlshell.sql.analysis.copy_statements import CopyStatement
from sqlshell.sql.script.items import CopyLines

_END: Final = re.compile(rb"\\\.\r?\n?\Z")


class CopyInput:
    """The COPY statements of one script whose data is still to come."""

    def __init__(self) -> None:
        self._expected: deque[CopyStatement | None] = deque()
        self._file: BinaryIO | None = None
        self._path = Path()

    def expect(self, copy: CopyStatement | None) -> None:
        """The next data is for this statement; None discards it."""
        self._expected.append(copy)

    def add(self, lines: CopyLines) -> tuple[CopyStatement, Path] | None:
        """Take a part of the data; with the last part, the statement and the file with its data, which the caller
        removes. Raises OSError.
        """
        copy = self._expected[0] if self._expected else None
        if copy is None:
            if lines.last and self._expected:
                self._expected.popleft()
            return None
        if self._file is None:
            self._path = scratch().folder("copy") / "data"
            self._file = self._path.open("w+b")
        self._file.write(lines.text.encode("utf-8", "surrogateescape"))
        if not lines.last:
            return None
        file, self._file = self._file, None
        with file:
            _truncate(file, cut=lines.cut)
        self._expected.popleft()
        return copy, self._path

    def close(self) -> None:
        """Discard what has arrived."""
        self._expected.clear()
        if self._file is not None:
            self._file.close()
            self._path.unlink(missing_ok=True)
            self._file = None


def _truncate(file: BinaryIO, *, cut: bool) -> None:
    """Remove the end of the data: the line `\\.`, or the line end that the end of a script adds."""
    size = file.tell()
    file.seek(max(0, size - 4))
    tail = file.read()
    if cut:
        extra = 1 if tail.endswith(b"\n") else 0
    else:
        match = _END.search(tail)
        extra = len(match[0]) if match is not None else 0
    file.truncate(size - extra)
