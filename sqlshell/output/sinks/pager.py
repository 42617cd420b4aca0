"""The screen: short results are printed, tall ones go through a pager as rows arrive."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, BinaryIO, TextIO

from sqlshell.errors import OutputError
from sqlshell.origin import Own
from sqlshell.output.sinks.command import CommandProcess, OutputClosed, lent_terminal
from sqlshell.output.sinks.sink import StreamSink
from sqlshell.output.text.cells import cells
from sqlshell.runtime.scratch import scratch

DEFAULT = "less -SRXF"
DEFAULT_FOR_WIDE = "less -SRX"
"""Without F: less counts a chopped line as one line, so it would exit at once, with the lines cut off."""

BROWSE = "B"
"""The key in less that opens the result in the explorer; less then exits with its code (less 582 and later)."""
NOT_STARTED = frozenset({126, 127})
"""The exit code of a shell if the command does not exist."""

_SIMPLE = re.compile(r"[\w./+-]+( [\w./+-]+)*")
"""A command that the shell can replace itself with, so that terminating the shell terminates the pager."""

_PAINT = re.compile(rb"\x1b\[[0-9;]*m")
PIPE_HOLDS = 1 << 20
"""If more bytes than this were written to a pipe, some have been read."""


class ScreenSink:
    """Holds output back until it is taller than the screen, then starts the pager `command`, "" for the default.

    With `sideways`, a line that is wider than the screen starts it too, because its rest is reached by scrolling.

    Without `less`, or if the pager cannot be started, the output is printed. While the pager runs, it receives Ctrl-C;
    when it exits, writing raises OutputClosed. Must be used in the main thread, except for write() and finish() while
    `blocking`.
    """

    def __init__(self, stream: BinaryIO, command: str, stdin: TextIO, *, sideways: bool = False) -> None:
        self._plain = StreamSink(stream)
        self._command = command.strip() or (DEFAULT if shutil.which("less") else "")
        self._sideways = sideways
        self._stdin = stdin
        self._held = b""
        self._unread = b""
        self._pager: CommandProcess | None = None
        self._lent = contextlib.ExitStack()
        self._through = not self._command
        self._keys: IO[str] | None = None
        self._frozen: Callable[[], tuple[int, int]] = lambda: (0, 0)
        self.waited = 0.0
        """Seconds that the pager was open."""
        self.browse = False
        """Whether the user left the pager for the explorer."""

    @property
    def terminal(self) -> bool:
        """The default pager shows colors, and so does any other that is configured to."""
        plain = self._command in {"", DEFAULT} or " -R" in self._command or "raw-control" in self._command.lower()
        return self._plain.terminal and plain

    @property
    def blocking(self) -> bool:
        return self._pager is not None

    @property
    def closed(self) -> bool:
        return self._pager is not None and self._pager.ended

    def freeze(self, frozen: Callable[[], tuple[int, int]]) -> None:
        """Keep lines and cells at the edges in view, if the pager can: `frozen` says how many once they are known."""
        self._frozen = frozen

    def write(self, data: bytes) -> None:
        if self._pager is not None:
            self._feed(data)
        elif self._through:
            self._plain.write(data)
        else:
            self._held += data
            size = shutil.get_terminal_size()
            lines = self._held.count(b"\n")
            tall = lines >= size.lines - 1
            shown = screen_lines(self._held, size.columns, size.lines)
            wraps = is_wider(self._held, size.columns)
            if tall or shown >= size.lines - 1 or (wraps and self._sideways):
                self._start(self._with_header(wraps=wraps, tall=tall))

    def finish(self) -> None:
        if self._pager is not None and self._code() in NOT_STARTED:
            self._give_up()

    def close(self) -> None:
        try:
            self.finish()
            held, self._held = self._held, b""
            if held:
                self._plain.write(held)
        except OutputClosed:
            return
        finally:
            self._ended()

    def abort(self) -> None:
        """Text that is held back is printed nevertheless: its rows have arrived."""
        if self._pager is not None:
            self._pager.stop()
        with contextlib.suppress(OutputError):
            self.close()

    def _with_header(self, *, wraps: bool, tall: bool) -> str:
        """The pager's command, with what it keeps in view."""
        lines, width = self._frozen()
        if self._command != DEFAULT:
            return self._command
        if lines and (wraps or tall) and has_header(less_version()):
            return f"{DEFAULT_FOR_WIDE} --header={lines},{width if wraps else 0}"
        return DEFAULT if tall else DEFAULT_FOR_WIDE

    def _start(self, command: str) -> None:
        held, self._held = self._held, b""
        self._lent.enter_context(lent_terminal(self._stdin))
        try:
            started = f"exec {command}" if _SIMPLE.fullmatch(command) else command
            self._pager = CommandProcess(Own(started), self._environment(command))
        except OutputError:
            self._lent.close()
            self._through = True
            self._plain.write(held)
            return
        self._feed(held)

    def _feed(self, data: bytes) -> None:
        assert self._pager is not None
        if len(self._unread) < PIPE_HOLDS:
            self._unread += data
        try:
            self._pager.write(data)
        except OutputClosed:
            if self._code() not in NOT_STARTED:
                raise
            self._give_up()
        else:
            if len(self._unread) >= PIPE_HOLDS:
                self._unread = b""

    def _code(self) -> int:
        """The exit code of the pager; `browse` says that the user left it with the explorer's key."""
        assert self._pager is not None
        code = self._pager.finish()
        self.browse = self.browse or (self._keys is not None and code == ord(BROWSE))
        return code

    def _environment(self, command: str) -> dict[str, str]:
        """The pager's environment: less gets one more key, unless the user has configured its keys."""
        environment = {"LESSCHARSET": "utf-8"} | dict(os.environ)
        own = Path.home() / ".lesskey"
        if not command.startswith(DEFAULT_FOR_WIDE) or "LESSKEYIN" in environment or own.exists():
            return environment
        with contextlib.suppress(OSError):
            self._keys = tempfile.NamedTemporaryFile("w", dir=scratch().folder("pager"))  # noqa: SIM115
            self._keys.write(f"#command\n{BROWSE} quit {BROWSE}\n")
            self._keys.flush()
            environment["LESSKEYIN"] = self._keys.name
        return environment

    def _give_up(self) -> None:
        """The pager did not start: its input goes to the screen."""
        self._pager, self._through = None, True
        unread, self._unread = self._unread, b""
        self._plain.write(unread)

    def _ended(self) -> None:
        if self._pager is not None:
            self.waited += self._pager.waited
        self._pager = None
        if self._keys is not None:
            self._keys.close()
        self._lent.close()


def less_version() -> str:
    """The first line of `less --version`; "" if it cannot be had."""
    try:
        told = subprocess.run(["less", "--version"], check=False, capture_output=True, text=True, timeout=2)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return ""
    return told.stdout.partition("\n")[0]


def has_header(version: str) -> bool:
    """Whether a version of less can keep lines and columns in view."""
    found = re.match(r"less (\d+)", version)
    return found is not None and int(found[1]) >= 600


def screen_lines(data: bytes, width: int, enough: int) -> int:
    """The number of lines that a terminal of `width` cells needs for `data`; counting stops at `enough`."""
    lines = 0
    for line in _PAINT.sub(b"", data).split(b"\n"):
        if lines >= enough:
            break
        lines += max(1, -(-_length(line) // max(1, width)))
    return lines - (data.endswith(b"\n") and lines < enough)


def is_wider(data: bytes, width: int) -> bool:
    """Whether a line of `data` does not fit into `width` cells."""
    return any(_length(line) > width for line in _PAINT.sub(b"", data).split(b"\n"))


def _length(line: bytes) -> int:
    return len(line) if line.isascii() else cells(line.decode("utf-8", "replace"))
