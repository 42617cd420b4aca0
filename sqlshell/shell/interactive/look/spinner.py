"""Shows that a statement is being waited for: the time, and the share done where the service tells it."""

from __future__ import annotations

import asyncio
import time
from typing import TextIO

from sqlshell.output.text.cells import printable
from sqlshell.shell.results.humanize import duration
from sqlshell.shell.session import Running

SIGNS = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FIRST_SECONDS = 0.15
STEP_SECONDS = 0.1
BAR_CELLS = 20
ERASE = "\r\x1b[K"


class Spinner:
    """Draws on `stream`, a terminal, between show() and hide(); nothing for what takes less than a moment."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._task: asyncio.Task[None] | None = None
        self._drawn = False

    def show(self, running: Running) -> None:
        if self._task is None:
            self._task = asyncio.ensure_future(self._turn(running))

    def hide(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
        if self._drawn:
            self._drawn = False
            self._write(ERASE)

    async def _turn(self, running: Running) -> None:
        await asyncio.sleep(FIRST_SECONDS)
        number = 0
        while True:
            share = f" {_bar(running.share)} {running.share:.0%}" if running.share is not None else ""
            said = f" {printable(running.message)[:40]}" if running.message else ""
            elapsed = duration(time.monotonic() - running.began)
            self._drawn = True
            self._write(f"{ERASE}{SIGNS[number % len(SIGNS)]} {elapsed}{share}{said}")
            number += 1
            await asyncio.sleep(STEP_SECONDS)

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, UnicodeEncodeError):
            self._drawn = False


def _bar(share: float) -> str:
    done = round(min(1.0, max(0.0, share)) * BAR_CELLS)
    return "█" * done + "░" * (BAR_CELLS - done)
