"""A user at a terminal: a real pty with the program, whose screen pyte renders."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyte

from tests.conftest import clean_environment, start
from tests.prepared import Forked

ROUND_SECONDS = 0.1
"""How long the terminal waits for something to draw before it looks at the screen again."""


_QUESTION = re.compile(rb"\x1b\[6n|\x1b\[c|\x1b\]11;\?(?:\x07|\x1b\\)")
"""What programs ask a terminal: the place of the cursor, its kind, its background."""

LAST_SECONDS = 2.0
"""How long the last bytes of a program that has ended may take to arrive."""

ENDING_SECONDS = 10.0
"""How long a program may take to end once its terminal is gone."""


class Terminal:
    """`screen()` is what a person sees; wait() looks until it holds, and shows the screen when it never does.

    `python` are options of Python for a program that is started anew; `command` is another program instead of sqlshell.
    """

    def __init__(
        self,
        home: Path,
        *argv: str,
        env: Mapping[str, str] = {},
        rows: int = 24,
        columns: int = 80,
        python: Sequence[str] | None = None,
        command: Sequence[str] = (),
    ) -> None:
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self.written = b""
        self.descriptor, theirs = os.openpty()
        os.set_blocking(self.descriptor, False)
        self.name = os.ttyname(theirs)
        """The path of the terminal that the program has."""
        try:
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
            if command:
                self.process: Forked | subprocess.Popen[str] = _start(command, home, env, theirs)
            else:
                self.process = start(
                    home, *argv, env=env, stdin=theirs, stdout=theirs, stderr=theirs, python=python, terminal=True
                )
        finally:
            os.close(theirs)

    def screen(self) -> str:
        return "\n".join(line.rstrip() for line in self._screen.display)

    def wait(self, seen: str | Callable[[str], bool], seconds: float = 40) -> str:
        until = time.monotonic() + seconds
        holds = seen if callable(seen) else lambda text: seen in text
        while True:
            self._read()
            text = self.screen()
            if holds(text):
                return self._settled(text, holds)
            if time.monotonic() > until or self.process.poll() is not None:
                text = self._last_screen()
                assert holds(text), f"not seen: {seen!r}\n{'-' * 80}\n{text}\n{'-' * 80}"
                return text

    def _settled(self, text: str, holds: Callable[[str], bool]) -> str:
        """`text`, or what it became in the rest of the same drawing, which may arrive in several pieces."""
        for _ in range(5):
            before = len(self.written)
            self._read(0.02)
            if len(self.written) == before or not holds(self.screen()):
                break
            text = self.screen()
        return text

    def cells(self, row: int) -> Any:
        """The cells of a row, with their colors."""
        return self._screen.buffer[row]

    def cursor(self) -> tuple[int, int] | None:
        """Row and column of the cursor, from 0; None if it is hidden."""
        cursor = self._screen.cursor
        return None if cursor.hidden else (cursor.y, cursor.x)

    def screen_after(self, seconds: float) -> str:
        """What is seen then, whatever it is."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._read()
        return self.screen()

    def prompt(self) -> str:
        """Wait until the last line with anything on it, above the toolbar, is an empty prompt that reads keys."""
        return self.wait(lambda text: self._at_prompt(_lines(text)))

    def clear(self) -> str:
        """Clear the screen at an empty prompt: what is seen from now on is new."""
        self.prompt()
        self.type("\x0c")
        return self.wait(lambda text: len(lines := _lines(text)) == 1 and self._at_prompt(lines))

    def _at_prompt(self, lines: Sequence[str]) -> bool:
        return bool(lines) and lines[-1].endswith(">") and " " not in lines[-1] and self.reads_keys()

    def reads_keys(self) -> bool:
        """Whether the program has each key at once: before, the terminal makes lines of them, and signals of some."""
        return not termios.tcgetattr(self.descriptor)[3] & termios.ICANON

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
        self._screen.resize(rows, columns)

    def type(self, text: str) -> None:
        data = text.encode()
        while data:
            # Who types much reads what is drawn meanwhile: neither side may wait for the other.
            self._read(0)
            if select.select([], [self.descriptor], [], ROUND_SECONDS)[1]:
                with contextlib.suppress(BlockingIOError):
                    data = data[os.write(self.descriptor, data) :]

    def enter(self, text: str) -> None:
        self.type(text + "\r")

    def hang_up(self) -> None:
        """Close the terminal, as a window that is closed."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def close(self) -> None:
        """Close the terminal, and end what goes on without it."""
        self.hang_up()
        try:
            self.process.wait(ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def ended(self) -> str:
        """Wait for the program to end; its last screen."""
        until = time.monotonic() + 40
        while self.process.poll() is None and time.monotonic() < until:
            self._read()
        assert self.process.poll() is not None, f"still running:\n{self.screen()}"
        return self._last_screen()

    def end(self) -> int:
        """Wait for the program to end; its exit code, or minus the signal."""
        self.ended()
        self.close()
        return self.process.wait()

    def _last_screen(self) -> str:
        """What is seen when the program has ended, or draws nothing more: the kernel may hand over its last bytes after
        its end. Processes that it left behind may have the terminal open."""
        until = time.monotonic() + LAST_SECONDS
        while self._read() and time.monotonic() < until:
            pass
        return self.screen()

    def _read(self, seconds: float = ROUND_SECONDS) -> bool:
        """Draw what was written since; whether anybody still has the other end open."""
        if not select.select([self.descriptor], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.descriptor, 1 << 16)
        except OSError as error:
            # Nobody has the other end open any more.
            if error.errno != errno.EIO:
                raise
            self.process.wait(40)
            return False
        self.written += data
        asked = 0
        for question in _QUESTION.finditer(data):
            self._stream.feed(data[asked : question.start()])
            asked = question.end()
            match question[0]:
                case b"\x1b[6n":
                    # A terminal says where its cursor is by then; the toolbar is drawn only when it did.
                    answer = f"\x1b[{self._screen.cursor.y + 1};{self._screen.cursor.x + 1}R"
                case b"\x1b[c":
                    answer = "\x1b[?62;22c"
                case _:
                    answer = "\x1b]11;rgb:1616/1818/1d1d\x1b\\"
            os.write(self.descriptor, answer.encode())
        self._stream.feed(data[asked:])
        return True


def _start(command: Sequence[str], home: Path, env: Mapping[str, str], terminal: int) -> subprocess.Popen[str]:
    """Start a program with this terminal as its controlling one."""
    takes_terminal = ("setsid", "--ctty", "--wait", *command)
    environment = clean_environment(home, env)
    return subprocess.Popen(
        takes_terminal, cwd=home, env=environment, stdin=terminal, stdout=terminal, stderr=terminal, text=True
    )


def _lines(text: str) -> list[str]:
    """The lines above the toolbar that have anything on them, without those of tables."""
    return [line for line in text.split("\n") if line and "│" not in line and " | " not in line]
