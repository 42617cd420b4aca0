"""The protocol of sinks, and sinks for an open stream and a command. Files are in file.py, the screen in pager.py."""

from __future__ import annotations

import contextlib
import functools
import os
import select
from collections.abc import Awaitable, Callable
from functools import partial
from typing import BinaryIO, Protocol, runtime_checkable

from sqlshell.errors import OutputError
from sqlshell.origin import Own
from sqlshell.output.sinks.command import CommandProcess, OutputClosed
from sqlshell.output.sinks.file import FileSink, open_fd, write_error
from sqlshell.runtime.files import check_output, expanded, write_all

__all__ = ["CommandSink", "FileSink", "OutputClosed", "PagedSink", "Sink", "StreamSink", "WaitingSink", "command_in"]


class Sink(Protocol):
    @property
    def blocking(self) -> bool:
        """Whether a write may wait for the user, so that it must be done in a thread."""

    @property
    def terminal(self) -> bool:
        """Whether the output is shown to a person, in colors, on a screen of limited width."""

    @property
    def closed(self) -> bool:
        """Whether it is already known that the reader has exited."""

    def write(self, data: bytes) -> None:
        """Raises OutputClosed if the reader has exited, and OutputError."""

    def finish(self) -> None:
        """One result is complete. May wait until it has been read, as close() does. Called in a
        thread if `blocking`.
        """

    def close(self) -> None:
        """The output is complete. Raises OutputError."""

    def abort(self) -> None:
        """Discard the output, without waiting. Raises nothing."""


@runtime_checkable
class PagedSink(Protocol):
    """A sink that may show its output in a pager."""

    def freeze(self, frozen: Callable[[], tuple[int, int]], wraps: Callable[[], bool]) -> None:
        """Keep lines and cells at the edges in view, if the pager can: `frozen` says how many once they are known, and
        `wraps` whether wide lines may be wrapped.
        """

    def offer(self, browse: Callable[[], Awaitable[None]], rows: str) -> None:
        """Give the pager a key that waits for `browse`; the pager shows `rows`, how many there are."""


@runtime_checkable
class WaitingSink(Protocol):
    """A sink whose reader may keep it waiting."""

    @property
    def waited(self) -> float:
        """Seconds that it has waited for its reader."""


class StreamSink:
    """An open stream, such as stdout; it is not closed. `before` is called before each write."""

    blocking = False

    def __init__(self, stream: BinaryIO, name: str = "stdout", before: Callable[[], None] | None = None) -> None:
        self._stream = stream
        self._name = name
        self._before = before
        self._held = self._left = False

    @functools.cached_property
    def terminal(self) -> bool:
        """Whether a person reads it."""
        return self._stream.isatty()

    @property
    def redraws(self) -> bool:
        """Whether it is a terminal on which text can be redrawn."""
        return self.terminal and os.environ.get("TERM", "dumb") != "dumb"

    @property
    def closed(self) -> bool:
        try:
            poll = select.poll()
            poll.register(self._stream.fileno(), 0)
            return any(events & select.POLLERR for _, events in poll.poll(0))
        except (OSError, ValueError):
            return False

    def hold(self) -> None:
        """Let output wait for more, until settle()."""
        self._held = True

    def settle(self) -> None:
        """Write everything that waits, and let nothing wait from now on. If it cannot be written, the next write()
        raises the error."""
        if self._held:
            self._held = False
            with contextlib.suppress(OutputClosed, OutputError):
                self.write(b"")

    def write(self, data: bytes) -> None:
        if self._before is not None:
            self._before()
        try:
            # Writing would not tell while output is held, and after the error the stream leads nowhere.
            if self._left or (self._held and self.closed):
                raise BrokenPipeError
            write_all(lambda left: self._patiently(partial(self._stream.write, left)), data)
            if not self._held:
                self._patiently(self._stream.flush)
        except BrokenPipeError:
            self._left = True
            # The stream would retry its buffered text at the end of the program, and report the error again.
            with contextlib.suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self._stream.fileno())
                os.close(nowhere)
            raise OutputClosed from None
        except (OSError, ValueError) as error:
            raise write_error(self._name, error) from error

    def finish(self) -> None:
        return None

    def close(self) -> None:
        return None

    def abort(self) -> None:
        return None

    def _patiently(self, action: Callable[[], int | None]) -> int:
        """Retry while another program has made the stream non-blocking; returns the number of bytes written."""
        while True:
            try:
                return action() or 0
            except BlockingIOError as error:
                select.select([], [self._stream], [])
                if error.characters_written:
                    return error.characters_written


class AppendSink(StreamSink):
    """Appends to a file, which only its owner can read if it is new. Raises OutputError if it cannot be opened."""

    terminal = False

    def __init__(self, path: Own) -> None:
        try:
            place = expanded(path)
            check_output(place, path)
            file = open_fd(place) or open(place, "ab", buffering=0, opener=_private)  # noqa: SIM115
        except (OSError, RuntimeError, ValueError) as error:
            raise write_error(path, error) from error
        super().__init__(file, path)
        self._file = file

    def close(self) -> None:
        self._file.close()

    def abort(self) -> None:
        self.close()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def command_in(output: Own) -> Own:
    """The command of a `|command`. Raises OutputError if it is missing."""
    command = Own(output[1:].strip())
    if not command:
        raise OutputError("missing command after |", "example: \\o |less")
    return command


class CommandSink:
    """The standard input of a shell command. close() raises OutputError if the command fails."""

    blocking = True
    closed = False
    terminal = False

    def __init__(self, command: Own) -> None:
        self._text = command
        self._command = CommandProcess(command)

    @property
    def waited(self) -> float:
        """Seconds that the command took to read."""
        return self._command.waited

    def write(self, data: bytes) -> None:
        self._command.write(data)

    def finish(self) -> None:
        return None

    def close(self) -> None:
        code = self._command.finish()
        if code:
            raise OutputError(f"the command {self._text!r} exited with code {code}")

    def abort(self) -> None:
        self._command.stop()
