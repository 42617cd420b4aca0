"""The screen: short results as they are, tall ones through a pager that is fed as rows arrive."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import IO, BinaryIO

from sqlshell.errors import OutputError
from sqlshell.origin import Own
from sqlshell.output.sinks.command import CommandProcess, OutputClosed, lent_terminal
from sqlshell.output.sinks.sink import StreamSink
from sqlshell.output.text.cells import cells
from sqlshell.runtime.scratch import scratch

DEFAULT = "less -SRXF"
DEFAULT_FOR_WIDE = "less -SRX"
"""Without F, for `less` counts a line that it chops as one: it would leave at once, with the lines cut."""

BROWSE = "B"
"""The key in less that opens the result in the explorer: less ends with its code (less 582 and later)."""
NOT_STARTED = frozenset({126, 127})
"""What a shell ends with when there is no such command."""

_SIMPLE = re.compile(r"[\w./+-]+( [\w./+-]+)*")
"""A command that the shell may put in its own place, so that what ends the shell ends the pager."""

_PAINT = re.compile(rb"\x1b\[[0-9;]*m")
PIPE_HOLDS = 1 << 20
"""More than this in a pipe, and somebody has read from it."""


class ScreenSink:
    """Holds output back until it is taller than the screen, then starts the pager `command`, "" for the default.

    With `sideways` a line that is wider than the screen starts it too, for its rest is to be scrolled to.

    Without `less`, and when the pager cannot be started, output is plain. While the pager runs Ctrl-C is the pager's
    own; leaving it is Closed to whoever writes. To be used from the main thread, but for write() and finish() while
    `blocking`.
    """

    def __init__(self, stream: BinaryIO, command: str, *, sideways: bool = False) -> None:
        self._plain = StreamSink(stream)
        self._command = command.strip() or (DEFAULT if shutil.which("less") else "")
        self._sideways = sideways
        self._held = b""
        self._unread = b""
        self._pager: CommandProcess | None = None
        self._lent = contextlib.ExitStack()
        self._through = not self._command
        self._keys: IO[str] | None = None
        self.waited = 0.0
        """Seconds that the person read in the pager."""
        self.browse = False
        """Whether the person left the pager for the explorer."""

    @property
    def terminal(self) -> bool:
        """Colors go through the default pager, and through any other that is told to let them."""
        plain = self._command in {"", DEFAULT} or " -R" in self._command or "raw-control" in self._command.lower()
        return self._plain.terminal and plain

    @property
    def blocking(self) -> bool:
        return self._pager is not None

    @property
    def closed(self) -> bool:
        return self._pager is not None and self._pager.ended

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
            wraps = shown > lines + (not self._held.endswith(b"\n"))
            if tall or shown >= size.lines - 1 or (wraps and self._sideways):
                self._start(self._command if tall or self._command != DEFAULT else DEFAULT_FOR_WIDE)

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
        """What is held back is shown all the same: these are rows that did come."""
        if self._pager is not None:
            self._pager.stop()
        with contextlib.suppress(OutputError):
            self.close()

    def _start(self, command: str) -> None:
        held, self._held = self._held, b""
        self._lent.enter_context(lent_terminal())
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
        """What the pager ended with; `browse` says that the person left it by the key for that."""
        assert self._pager is not None
        code = self._pager.finish()
        self.browse = self.browse or (self._keys is not None and code == ord(BROWSE))
        return code

    def _environment(self, command: str) -> dict[str, str]:
        """less learns one key, where the person has not taught it any."""
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
        """The pager never ran: what it was given goes to the screen."""
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


def screen_lines(data: bytes, width: int, enough: int) -> int:
    """The lines that a terminal of `width` cells shows for `data`; counting ends at `enough`."""
    lines = 0
    for line in _PAINT.sub(b"", data).split(b"\n"):
        if lines >= enough:
            break
        length = len(line) if line.isascii() else cells(line.decode("utf-8", "replace"))
        lines += max(1, -(-length // max(1, width)))
    return lines - (data.endswith(b"\n") and lines < enough)
