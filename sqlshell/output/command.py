"""Bytes into the standard input of a command of the person's shell."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Mapping
from io import FileIO
from typing import cast

from sqlshell.errors import OutputError

STOP_SECONDS = 2.0
"""How long a command may take to end when it is asked to."""


class Closed(Exception):
    """Whoever read the output has left. No error: `| head` does it."""


class Command:
    """A running command. write() may be called from another thread. Raises OutputError where there is no shell."""

    def __init__(self, command: str, environment: Mapping[str, str] | None = None) -> None:
        try:
            # Unbuffered: a buffer's lock, held by a blocked write, would keep stop() waiting for ever.
            self._process = subprocess.Popen(
                command, shell=True, stdin=subprocess.PIPE, bufsize=0, env=None if environment is None else environment
            )
        except (OSError, ValueError) as error:
            raise OutputError(f"the command {command!r} cannot be started: {error}") from error
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
            raise Closed from None
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
