"""A file that is put in place when it is complete."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from sqlshell.errors import OutputError, reason
from sqlshell.origin import Own
from sqlshell.output.sinks.command import OutputClosed
from sqlshell.runtime.files import check_output, descriptor, expanded, write_all
from sqlshell.runtime.scratch import scratch

LONGEST_STEM = 60
"""Characters of a file's name that the name of its temporary file contains: names have at most 255 bytes."""


class FileSink:
    """Writes to a temporary file and renames it in close(); links are followed, an existing file's mode is kept.

    A descriptor (`/dev/stdout`, or a link to it) and anything that is not a regular file (a FIFO, a device) is written
    directly. After a failed write, close() keeps the existing file. Raises OutputError if it cannot be opened.
    """

    blocking = False
    closed = False
    terminal = False

    def __init__(self, path: Own) -> None:
        self.name = path
        self._temporary: Path | None = None
        self._replaces = False
        self._broken = False
        self._size_at_mark = 0
        self._used = False
        self._used_at_mark = False
        try:
            self._place = expanded(path)
            self._file = self._open()
        except (OSError, RuntimeError, ValueError) as error:
            self._remove()
            raise _unopened(path, error) from error

    @property
    def unused(self) -> bool:
        """Whether an existing file would be replaced although nothing was written."""
        return self._temporary is not None and not self._used

    def write(self, data: bytes) -> None:
        self._used = True
        try:
            write_all(self._file.write, data)
        except BrokenPipeError:
            raise OutputClosed from None
        except OSError as error:
            self._broken = True
            raise self._failed(error) from error

    def finish(self) -> None:
        return None

    def mark(self) -> None:
        """Keep what has been written so far, whatever happens to the next result. A result may have no bytes."""
        self._used = self._used_at_mark = True
        if self._temporary is not None:
            self._size_at_mark = self._file.tell()

    def rewind(self) -> None:
        """Discard what was written since the last mark. Raises OutputError."""
        if self._temporary is None or self._broken:
            return
        try:
            self._file.seek(self._size_at_mark)
            self._file.truncate()
            self._used = self._used_at_mark
        except OSError as error:
            raise self._failed(error) from error

    def close(self) -> None:
        if self._broken:
            self.abort()
            return
        try:
            self._file.close()
            if self._temporary is not None:
                self._temporary.replace(self._place)
                scratch().forget(self._temporary)
                self._temporary = None
        except OSError as error:
            self._remove()
            raise self._failed(error) from error

    def abort(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()
        self._remove()

    def _open(self) -> BinaryIO:
        given = open_fd(self._place)
        if given is not None:
            return given
        there = _existing(self.name, self._place)
        check_output(self._place, self.name, replaced=True)
        if there is not None and not stat.S_ISREG(there.st_mode):
            return self._place.open("wb", buffering=0)
        self._place = Path(os.path.realpath(self._place))
        temporary = self._place.with_name(f".{self._place.name[:LONGEST_STEM]}.{os.urandom(4).hex()}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        file = os.fdopen(os.open(temporary, flags, 0o666), "wb", buffering=0)
        self._temporary = temporary
        self._replaces = there is not None
        try:
            scratch().add(temporary)
            if there is not None:
                # Only root may keep the owner: a user who may write the file may replace it.
                with contextlib.suppress(OSError, AttributeError):
                    os.chown(temporary, there.st_uid, there.st_gid)
                temporary.chmod(there.st_mode & 0o7777)
        except BaseException:
            file.close()
            raise
        return file

    def _remove(self) -> None:
        if self._temporary is not None:
            with contextlib.suppress(OSError):
                self._temporary.unlink()
            scratch().forget(self._temporary)

    def _failed(self, error: Exception) -> OutputError:
        return write_error(self.name, error, "the existing file was kept" if self._replaces else "")


def compression(path: str) -> str:
    """The ending of a compressed file, `.gz` or `.zst`; "" for any other."""
    lower = path.lower()
    return next((suffix for suffix in (".gz", ".zst") if lower.endswith(suffix)), "")


def uncompressed(path: str) -> str:
    """The path without the ending of a compressed file."""
    suffix = compression(path)
    return path[: -len(suffix)] if suffix else path


def check(path: Own) -> None:
    """Raise the OutputError that a FileSink would raise, as far as it is known before a file is created."""
    try:
        place = expanded(path)
        if descriptor(str(place)) is not None:
            return
        there = _existing(path, place)
        check_output(place, path, replaced=True)
        if there is None or stat.S_ISREG(there.st_mode):
            folder = Path(os.path.realpath(place)).parent
            if not stat.S_ISDIR(folder.stat().st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            if not os.access(folder, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except (OSError, RuntimeError, ValueError) as error:
        raise _unopened(path, error) from error


def _existing(name: str, place: Path) -> os.stat_result | None:
    """The existing file, None if there is none. Raises OSError, and OutputError if it cannot be replaced."""
    if place.is_dir() or name.endswith("/"):
        raise OutputError(f"{name} is a directory", "name a file in the directory")
    if not place.exists():
        return None
    if not os.access(place, os.W_OK):
        raise OutputError(f"cannot write to {name}: permission denied", "check its permissions")
    return place.stat()


def open_fd(path: Path) -> BinaryIO | None:
    """The descriptor of this process that a path refers to, opened for writing; None for other
    paths. Raises OSError.
    """
    opened = descriptor(str(path))
    if opened is None or not opened.own:
        return None
    # Not by its name, which would open a redirected file again, at its start.
    return os.fdopen(os.dup(opened.number), "wb", buffering=0)


def write_error(name: str, error: Exception, hint: str = "") -> OutputError:
    """The OutputError for a write that failed."""
    closed = isinstance(error, OSError) and error.errno == errno.EBADF
    return OutputError(f"cannot write to {name}: {'it is closed' if closed else reason(error)}", hint)


def _unopened(path: str, error: Exception) -> OutputError:
    match error:
        case FileNotFoundError():
            hint = "create the directory first"
        case NotADirectoryError():
            hint = "its directory is a file; use another path"
        case PermissionError():
            hint = "the directory is not writable; the new file is created there first"
        case _:
            hint = ""
    return write_error(path, error, hint)
