"""Where bytes go: the protocol of sinks, and the sink for an open stream such as stdout."""

from __future__ import annotations

import contextlib
import functools
import os
import select
from collections.abc import Awaitable, Callable
from functools import partial
from typing import BinaryIO

from sqlshell.errors import OutputError, reason
from sqlshell.output.writer import Look
from sqlshell.runtime.files import write_all


class OutputClosed(Exception):
    """The reader of the output has closed it. Not an error: `| head` does so."""


class Sink:
    """Receives the bytes of one result or several."""

    name = ""

    @property
    def unused(self) -> bool:
        """Whether an existing file would be replaced although nothing was written."""
        return False

    @property
    def redraws(self) -> bool:
        """Whether it is a terminal on which text can be redrawn."""
        return False

    @property
    def waited(self) -> float:
        """Seconds that it has waited for its reader, a pager or a command."""
        return 0.0

    @property
    def blocking(self) -> bool:
        """Whether a write may wait for the user, so that it must be done in a thread."""
        return False

    @property
    def terminal(self) -> bool:
        """Whether the output is shown to a person, in colors, on a screen of limited width."""
        return False

    @property
    def shares_terminal(self) -> bool:
        """Whether the output comes to the terminal, on which nothing else may be drawn meanwhile."""
        return self.terminal

    @property
    def closed(self) -> bool:
        """Whether it is already known that the reader has exited."""
        return False

    def write(self, data: bytes) -> None:
        """Write all of `data`. Raises OutputClosed if the reader has exited, and OutputError."""
        raise NotImplementedError

    def finish(self) -> None:
        """End one result. May wait until it has been read, as close() does. Called in a thread if `blocking`."""

    def mark(self) -> None:
        """Keep what has been written so far, whatever happens to the next result."""

    def rewind(self) -> None:
        """Discard what was written since the last mark, if that is possible. Raises OutputError."""

    def close(self) -> None:
        """End the output. Raises OutputError."""

    def abort(self) -> None:
        """Discard the output, without waiting. Raises nothing."""

    def freeze(self, look: Callable[[], Look]) -> None:
        """Keep the edges of a table in view, and wrap wide lines, as far as its look says and a pager can."""

    def offer(self, browse: Callable[[], Awaitable[None]], rows: str = "") -> None:
        """Give the pager, if there is one, a key that waits for `browse`, which has the terminal meanwhile, in the
        event loop. The pager shows the number of all `rows`, if it is known.
        """


class StreamSink(Sink):
    """An open stream, such as stdout; it is not closed. `before` is called before each write."""

    def __init__(self, stream: BinaryIO, name: str = "stdout", before: Callable[[], None] | None = None) -> None:
        self._stream = stream
        self.name = name
        self._before = before
        self._left = False

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

    def write(self, data: bytes) -> None:
        if self._before is not None:
            self._before()
        try:
            # After the error the stream leads nowhere, which writing would not tell.
            if self._left:
                raise BrokenPipeError
            write_all(lambda left: self._patiently(partial(self._stream.write, left)), data)
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
            raise write_error(self.name, error) from error

    def _patiently(self, action: Callable[[], int | None]) -> int:
        """Retry while another program has made the stream non-blocking; returns the number of bytes written."""
        while True:
            try:
                return action() or 0
            except BlockingIOError as error:
                select.select([], [self._stream], [])
                if error.characters_written:
                    return error.characters_written


def write_error(name: str, error: Exception, hint: str = "") -> OutputError:
    """The OutputError for a write that failed."""
    missing = "create the directory first" if isinstance(error, FileNotFoundError) else ""
    return OutputError(f"cannot write to {name}: {reason(error)}", hint or missing)


def compression(path: str) -> str:
    """The ending of a compressed file, `.gz` or `.zst`; "" for any other."""
    lower = path.lower()
    return next((suffix for suffix in (".gz", ".zst") if lower.endswith(suffix)), "")


def uncompressed(path: str) -> str:
    """The path without the ending of a compressed file."""
    suffix = compression(path)
    return path[: -len(suffix)] if suffix else path
