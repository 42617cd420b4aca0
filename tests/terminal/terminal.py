"""A person at a terminal: a real pty, its screen drawn by pyte, the program inside."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pexpect
import pyte

from tests.conftest import clean_environment


class Terminal:
    """`screen()` is what a person sees; wait() looks until it holds, and shows the screen when it never does."""

    def __init__(
        self,
        home: Path,
        *argv: str,
        env: Mapping[str, str] = {},
        rows: int = 24,
        columns: int = 80,
        python: Sequence[str] = (),
    ) -> None:
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self.written = b""
        self.child = pexpect.spawn(
            sys.executable,
            [*python, "-m", "sqlshell", *argv],
            env=clean_environment(home, env),
            cwd=str(home),
            dimensions=(rows, columns),
            timeout=60,
        )

    def screen(self) -> str:
        return "\n".join(line.rstrip() for line in self._screen.display)

    def wait(self, seen: str | Callable[[str], bool], seconds: float = 40) -> str:
        until = time.monotonic() + seconds
        holds = seen if callable(seen) else lambda text: seen in text
        while True:
            self._read()
            text = self.screen()
            if holds(text):
                return text
            if time.monotonic() > until or not self.child.isalive():
                self._read()
                text = self.screen()
                assert holds(text), f"not seen: {seen!r}\n{'-' * 80}\n{text}\n{'-' * 80}"
                return text

    def cells(self, row: int) -> Any:
        """The cells of a row, with their colours."""
        return self._screen.buffer[row]

    def screen_after(self, seconds: float) -> str:
        """What is seen then, whatever it is."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._read()
        return self.screen()

    def prompt(self) -> str:
        """Wait until the last line with anything on it, above the toolbar, is an empty prompt."""

        def ready(text: str) -> bool:
            lines = [line for line in text.split("\n") if line and "│" not in line]
            return bool(lines) and lines[-1].endswith(">") and " " not in lines[-1]

        return self.wait(ready)

    def resize(self, rows: int, columns: int) -> None:
        self.child.setwinsize(rows, columns)
        self._screen.resize(rows, columns)

    def type(self, text: str) -> None:
        self.child.send(text)

    def enter(self, text: str) -> None:
        self.child.send(text + "\r")

    def end(self) -> int:
        """Wait for the program to end; its exit code, or minus the signal."""
        until = time.monotonic() + 40
        while self.child.isalive() and time.monotonic() < until:
            self._read()
        self._read()
        self.child.close()
        code = self.child.exitstatus
        return int(code) if code is not None else -int(self.child.signalstatus or 0)

    def _read(self) -> None:
        try:
            data = bytes(self.child.read_nonblocking(1 << 16, timeout=0.1))  # type: ignore[arg-type]
        except (pexpect.TIMEOUT, pexpect.EOF):
            return
        self.written += data
        first, *others = data.split(b"\x1b[6n")
        self._stream.feed(first)
        for part in others:
            # A terminal says where its cursor is by then; the toolbar is drawn only when it did.
            self.child.send(f"\x1b[{self._screen.cursor.y + 1};{self._screen.cursor.x + 1}R")
            self._stream.feed(part)
