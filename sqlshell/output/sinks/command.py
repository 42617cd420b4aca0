"""Writes to the standard input of a shell command."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from io import FileIO
from typing import cast

from sqlshell.errors import OutputError, reason
from sqlshell.origin import Own

STOP_SECONDS = 2.0
"""How long a command may take to end when it is asked to."""


@contextlib.contextmanager
def lent_terminal() -> Iterator[None]:
    """Lend the terminal to a program: Ctrl-C is that program's alone, and the modes that it leaves are put back.

    To be used from the main thread. A handler that does nothing is not inherited, as an ignored signal would be.
    """
    wakeup, before = signal.set_wakeup_fd(-1), signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with _modes_kept():
            yield
    finally:
        # None is a handler that was not made in Python; it cannot be put back.
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)


@contextlib.contextmanager
def _modes_kept() -> Iterator[None]:
    if os.name != "posix" or not sys.stdin.isatty():
        yield
        return
    import termios

    descriptor = sys.stdin.fileno()
    modes = termios.tcgetattr(descriptor)
    try:
        yield
    finally:
        # What a signal ended before it could do so itself leaves them as they were for its keys.
        with contextlib.suppress(OSError, termios.error):
            termios.tcsetattr(descriptor, termios.TCSANOW, modes)


class OutputClosed(Exception):
    """The reader of the output has closed it. Not an error: `| head` does so."""


class CommandProcess:
    """A running command. write() may be called from another thread. Raises OutputError where there is no shell."""

    def __init__(self, command: Own, environment: Mapping[str, str] | None = None) -> None:
        try:
            # Unbuffered: a buffer's lock, held by a blocked write, would keep stop() waiting for ever.
            self._process = subprocess.Popen(
                command, shell=True, stdin=subprocess.PIPE, bufsize=0, env=None if environment is None else environment
            )
        except (OSError, ValueError) as error:
            raise OutputError(f"the command {command!r} could not be started: {reason(error)}") from error
        self._input = cast(FileIO, self._process.stdin)
        self.waited = 0.0
        """Seconds that its reading took, which is a person's where it is a pager."""

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def write(self, data: bytes) -> None:
        """Waits while the command does not read. Raises Closed when it never will again."""
        left = memoryview(data)
        began = time.monotonic()
        try:
            while left:
                left = left[self._input.write(left) or 0 :]
        except (BrokenPipeError, ValueError):
            raise OutputClosed from None
        finally:
            self.waited += time.monotonic() - began

    def finish(self) -> int:
        """Tell it that there is no more, wait for it to end, and give its exit code. Harmless a second time."""
        began = time.monotonic()
        with contextlib.suppress(OSError):
            self._input.close()
        try:
            return self._process.wait()
        finally:
            self.waited += time.monotonic() - began

    def stop(self) -> None:
        """End it, whatever it is doing."""
        for end in (self._process.terminate, self._process.kill):
            with contextlib.suppress(subprocess.TimeoutExpired, OSError):
                end()
                self._process.wait(STOP_SECONDS)
                break
        self.finish()
