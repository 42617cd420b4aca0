"""Shell commands that read the output, and what a user names as an output: a file or a command."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from io import FileIO
from typing import TextIO, cast

from sqlshell.errors import Interrupted, OutputError, reason
from sqlshell.origin import Trusted
from sqlshell.output.sinks.file import CompressedFileSink, FileSink, check, compressor
from sqlshell.output.sinks.sink import OutputClosed, Sink, compression
from sqlshell.runtime.files import write_all

STOP_SECONDS = 2.0
"""How long a command may take to exit after a request, in seconds."""


@contextlib.contextmanager
def lent_terminal(stdin: TextIO) -> Iterator[None]:
    """Lend the terminal to a program: only that program receives Ctrl-C, and the terminal modes are restored
    afterwards.

    Must be used in the main thread. The handler does nothing: unlike an ignored signal, it is not inherited.
    """
    wakeup, before = signal.set_wakeup_fd(-1), signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with _modes_kept(stdin):
            yield
    finally:
        # None means a handler that was not installed by Python; it cannot be restored.
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)


@contextlib.contextmanager
def _modes_kept(stdin: TextIO) -> Iterator[None]:
    if os.name != "posix" or not stdin.isatty():
        yield
        return
    import termios

    descriptor = stdin.fileno()
    modes = termios.tcgetattr(descriptor)
    try:
        yield
    finally:
        # A program that a signal terminated leaves its terminal modes behind.
        with contextlib.suppress(OSError, termios.error):
            termios.tcsetattr(descriptor, termios.TCSANOW, modes)


class CommandProcess:
    """A running command. write() may be called from another thread. Raises OutputError if there is no shell."""

    def __init__(self, command: Trusted, environment: Mapping[str, str] | None = None) -> None:
        try:
            # Unbuffered: the lock of a buffer, held by a blocked write, would block stop().
            self._process = subprocess.Popen(
                command, shell=True, stdin=subprocess.PIPE, bufsize=0, env=None if environment is None else environment
            )
        except (OSError, ValueError) as error:
            raise OutputError(f"cannot start the command {command!r}: {reason(error)}") from error
        self._input = cast(FileIO, self._process.stdin)
        self.waited = 0.0
        """Seconds that the command took to read; for a pager, the time of its user."""

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def write(self, data: bytes) -> None:
        """Waits while the command does not read. Raises OutputClosed if it no longer reads."""
        began = time.monotonic()
        try:
            write_all(self._input.write, data)
        except (BrokenPipeError, ValueError):
            raise OutputClosed from None
        finally:
            self.waited += time.monotonic() - began

    def finish(self) -> int:
        """Close its input, wait for it to exit, and return its exit code. May be called again."""
        began = time.monotonic()
        with contextlib.suppress(OSError):
            self._input.close()
        try:
            return self._process.wait()
        finally:
            self.waited += time.monotonic() - began

    def stop(self) -> None:
        """Terminate it, whatever it is doing."""
        for end in (self._process.terminate, self._process.kill):
            with contextlib.suppress(subprocess.TimeoutExpired, OSError):
                end()
                self._process.wait(STOP_SECONDS)
                break
        self.finish()


def command_in(output: Trusted) -> Trusted:
    """The command of a `|command`. Raises OutputError if it is missing."""
    command = Trusted(output[1:].strip())
    if not command:
        raise OutputError("missing command after |", "example: \\o |less")
    return command


class CommandSink(Sink):
    """The standard input of a shell command. close() raises OutputError if the command fails, and
    Interrupted if Ctrl-C ended it."""

    blocking = True

    def __init__(self, command: Trusted) -> None:
        self._text = command
        self._command = CommandProcess(command)

    @property
    def waited(self) -> float:
        return self._command.waited

    def write(self, data: bytes) -> None:
        self._command.write(data)

    def close(self) -> None:
        code = self._command.finish()
        if code == -signal.SIGINT:
            raise Interrupted("interrupted")
        if code:
            raise OutputError(f"the command {self._text!r} failed with exit code {code}")

    def abort(self) -> None:
        self._command.stop()


def output_to(name: Trusted) -> Sink:
    """Open the file or `|command` that a user has named. Raises OutputError, and UsageError for a compression whose
    package is not installed."""
    if name.startswith("|"):
        return CommandSink(command_in(name))
    return CompressedFileSink(name) if compression(name) else FileSink(name)


def check_output_to(name: Trusted) -> None:
    """Raise the error that output_to() would raise, as far as it is known before anything is opened."""
    if name.startswith("|"):
        command_in(name)
        return
    check(name)
    if suffix := compression(name):
        compressor(suffix)
