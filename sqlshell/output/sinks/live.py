"""A view of rows that keep arriving: the last screenful, redrawn, with the total and the rate below it."""

from __future__ import annotations

import shutil
import time
from collections import deque
from collections.abc import Iterable, Sequence

from sqlshell.output.writer import Summary, WriterOptions
from sqlshell.output.writers.fitting import plain_or_screen
from sqlshell.result import Batch, Column

STEP_SECONDS = 0.1
RATE_SECONDS = 2.0
FRAME_LINES = 7
"""Lines of the view that are not rows: the table's frame, the status, the line of the cursor."""


class LiveTableWriter:
    """Draws like TableWriter, on a terminal, at most ten times a second."""

    def __init__(self, options: WriterOptions) -> None:
        self._options = options
        self._columns: Sequence[Column] = ()
        self._rows: deque[list[str | None]] = deque(maxlen=max(1, shutil.get_terminal_size().lines - FRAME_LINES))
        self._total = 0
        self._lines = 0
        self._began = time.monotonic()
        self._drawn = 0.0
        self._counts: deque[tuple[float, int]] = deque()
        self._ended = False

    @property
    def buffering(self) -> bool:
        """The rate changes even if no row arrives."""
        return not self._ended

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        self._columns = columns
        return self._draw()

    def write(self, batch: Batch) -> Iterable[bytes]:
        self._rows.extend(batch.rows)
        self._total += len(batch.rows)
        return self._draw() if time.monotonic() - self._drawn >= STEP_SECONDS else []

    def settle(self) -> Iterable[bytes]:
        return self._draw()

    def end(self, summary: Summary) -> Iterable[bytes]:
        self._ended = True
        return self._draw()

    def _draw(self) -> Iterable[bytes]:
        self._drawn = time.monotonic()
        writer = plain_or_screen(self._options)
        chunks = [*writer.begin(self._columns), *writer.write(Batch(len(self._columns), rows=list(self._rows)))]
        text = b"".join([*chunks, *writer.end(Summary(len(self._rows), True))]).decode()
        lines = text.split("\n")[:-1]
        height = max(2, shutil.get_terminal_size().lines - 1)
        if not self._ended:
            lines = [*lines[: height - 1], f"\x1b[7m{self._status()}\x1b[0m"]
        up = f"\x1b[{self._lines}A" if self._lines else ""
        self._lines = len(lines)
        # Without wrapping: the terminal cuts off lines that are too wide.
        return [f"\x1b[?7l{up}\r\x1b[J".encode(), "\r\n".join(lines).encode(), b"\r\n\x1b[?7h"]

    def _status(self) -> str:
        now = time.monotonic()
        self._counts.append((now, self._total))
        while len(self._counts) > 2 and now - self._counts[0][0] > RATE_SECONDS:
            self._counts.popleft()
        since, had = self._counts[0]
        rate = (self._total - had) / (now - since) if now > since else 0.0
        seconds = int(now - self._began)
        clock = f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        return f" {self._total:,} rows │ {rate:,.0f} rows/s │ {clock} │ Ctrl-C to stop "
