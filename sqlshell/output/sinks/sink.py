"""Where bytes go: a stream that is there already, or a command. Files are in file.py, the screen in pager.py."""

from __future__ import annotations

import contextlib
import functools
import os
import select
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO, Protocol

from sqlshell.errors import OutputError
from sqlshell.origin import Own
from sqlshell.output.sinks.command import CommandProcess, OutputClosed
from sqlshell.output.sinks.file import FileSink, open_fd, write_error

__all__ = ["CommandSink", "FileSink", "OutputClosed", "Sink", "StreamSink", "command_in"]


class Sink(Protocol):
    @property
    def blocking(self) -> bool:
        """Whether a write may wait for a person, so that it is to be done in a thread."""

    @property
    def terminal(self) -> bool:
        """Whether a person sees it in colors, on a screen of some width."""

    @property
    def closed(self) -> bool:
        """Whether it is known that nobody reads any more, before a write finds out."""

    def write(self, data: bytes) -> None:
        """Raises Closed when nobody reads any more, and OutputError."""

    def finish(self) -> None:
        """One result is complete: may wait until it was read, as close() would. Called in a thread if `blocking`."""

    def close(self) -> None:
        """What was written is complete. Raises OutputError."""

    def abort(self) -> None:
        """What was written is not to be kept, and nothing is waited for. Raises nothing."""


class StreamSink:
    """A stream that is there already, such as stdout; it stays open."""

    blocking = False
    closed = False

    def __init__(self, stream: BinaryIO, name: str = "stdout", held: Callable[[], bool] = lambda: False) -> None:
        """While `held` says so, what is written waits for more, or for settle()."""
        self._stream = stream
        self._name = name
        self._held = held

    @functools.cached_property
    def terminal(self) -> bool:
        """Whether it is a terminal on which text can be drawn over."""
        return self._stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"

    def settle(self) -> None:
        """Nothing waits any more. Raises as write()."""
        self.write(b"")

    def write(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[self._patiently(partial(self._stream.write, left)) :]
            if not self._held():
                self._patiently(self._stream.flush)
        except BrokenPipeError:
            # What the stream still holds would be tried again, and told of, at the program's end.
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
        """Do it, waiting where another program made the stream one that does not wait; the bytes that are through."""
        while True:
            try:
                return action() or 0
            except BlockingIOError as error:
                select.select([], [self._stream], [])
                if error.characters_written:
                    return error.characters_written


class AppendSink(StreamSink):
    """The end of a file. Raises OutputError when it cannot be opened."""

    terminal = False

    def __init__(self, path: Own) -> None:
        try:
            place = Path(path).expanduser()
            file = open_fd(place) or place.open("ab", buffering=0)
        except (OSError, RuntimeError, ValueError) as error:
            raise write_error(path, error) from error
        super().__init__(file, path)
        self._file = file

    def close(self) -> None:
        self._file.close()


def command_in(output: Own) -> Own:
    """The command of a `|command`. Raises OutputError where there is none."""
    command = Own(output[1:].strip())
    if not command:
        raise OutputError("missing command after |", "example: \\o |less")
    return command


class CommandSink:
    """The standard input of a command of the person's shell. close() raises OutputError when the command fails."""

    blocking = True
    closed = False
    terminal = False

    def __init__(self, command: Own) -> None:
        self._text = command
        self._command = CommandProcess(command)

    @property
    def waited(self) -> float:
        """Seconds that the command's reading took."""
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
