"""Where bytes go: a stream, a file that appears when it is complete, a command."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from pathlib import Path
from typing import BinaryIO, Protocol

from sqlshell.errors import OutputError


class Closed(Exception):
    """Whoever read the output has left. No error: `| head` does it."""


class Sink(Protocol):
    @property
    def blocking(self) -> bool:
        """Whether a write may wait for a person."""

    def write(self, data: bytes) -> None:
        """Raises Closed when nobody reads any more, and OutputError."""

    def close(self) -> None:
        """What was written is complete. Raises OutputError."""

    def abort(self) -> None:
        """What was written is not to be kept. Raises nothing."""


class StreamSink:
    """A stream that is there already, such as stdout; it stays open."""

    blocking = False

    def __init__(self, stream: BinaryIO, name: str = "stdout") -> None:
        self._stream = stream
        self._name = name

    def write(self, data: bytes) -> None:
        try:
            self._stream.write(data)
            self._stream.flush()
        except BrokenPipeError:
            # What the stream still holds would be tried again, and told of, at the program's end.
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())
            raise Closed from None
        except (OSError, ValueError) as error:
            raise _failed(self._name, error) from error

    def close(self) -> None:
        return None

    def abort(self) -> None:
        return None


class FileSink:
    """A file that is written beside its place and moved there by close(); what is no regular file is written directly.

    Raises OutputError when it cannot be opened.
    """

    blocking = False

    def __init__(self, path: str) -> None:
        self._name = path
        try:
            self._place = Path(os.path.realpath(Path(path).expanduser()))
            self._temporary: Path | None = None
            if self._place.is_dir():
                raise OutputError(f"{path} is a folder", "name a file in it")
            if self._place.exists() and not self._place.is_file():
                self._file: BinaryIO = self._place.open("wb", buffering=0)
                return
            if self._place.exists() and not os.access(self._place, os.W_OK):
                raise OutputError(f"{path} may not be written", "its permissions forbid it")
            handle, name = tempfile.mkstemp(prefix=f".{self._place.name}.", dir=self._place.parent)
            self._temporary = Path(name)
            self._file = os.fdopen(handle, "wb", buffering=0)
            mode = self._place.stat().st_mode & 0o7777 if self._place.exists() else 0o666 & ~_umask()
            self._temporary.chmod(mode)
        except OSError as error:
            self._remove()
            hint = "does its folder exist?" if isinstance(error, FileNotFoundError) else ""
            raise OutputError(f"{path} cannot be written: {error.strerror or error}", hint) from error

    def write(self, data: bytes) -> None:
        try:
            left = memoryview(data)
            while left:
                left = left[self._file.write(left) :]
        except BrokenPipeError:
            raise Closed from None
        except OSError as error:
            raise _failed(self._name, error) from error

    def close(self) -> None:
        try:
            self._file.close()
            if self._temporary is not None:
                self._temporary.replace(self._place)
        except OSError as error:
            self._remove()
            raise _failed(self._name, error) from error

    def abort(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()
        self._remove()

    def _remove(self) -> None:
        temporary = getattr(self, "_temporary", None)
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink()


class PipeSink:
    """The standard input of a command of the person's shell. Raises OutputError when the command fails."""

    blocking = True

    def __init__(self, command: str) -> None:
        if not command:
            raise OutputError("there is no command behind |", "write \\o |command")
        self._command = command
        self._process = subprocess.Popen(command, shell=True, stdin=subprocess.PIPE)

    def write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise Closed from None

    def close(self) -> None:
        code = self._end()
        if code:
            raise OutputError(f"the command {self._command!r} ended with code {code}")

    def abort(self) -> None:
        self._end()

    def _end(self) -> int:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        return self._process.wait()


def _failed(name: str, error: Exception) -> OutputError:
    reason = (error.strerror if isinstance(error, OSError) else "") or str(error)
    return OutputError(
        f"{name} cannot be written: {reason}", "what was there before is kept" if name != "stdout" else ""
    )


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
