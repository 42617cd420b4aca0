"""Files: put in place when they are complete, compressed while they are written, or appended to."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import zlib
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, Protocol

from sqlshell.errors import OutputError, UsageError
from sqlshell.origin import Trusted
from sqlshell.output.sinks.sink import OutputClosed, Sink, StreamSink, compression, write_error
from sqlshell.runtime.files import check_output, descriptor, expanded, write_all
from sqlshell.runtime.scratch import scratch
from sqlshell.text import how_to_install

LONGEST_STEM = 60
"""Characters of a file's name that the name of its temporary file contains: names have at most 255 bytes."""

GZIP_WINDOW = 31
"""zlib's window of 32 KiB, with a header of gzip."""


class FileSink(Sink):
    """Writes to a temporary file and renames it in close(); links are followed, an existing file's mode is kept.

    A descriptor (`/dev/stdout`, or a link to it) and anything that is not a regular file (a FIFO, a device) is written
    directly. After a failed write, close() keeps the existing file. Raises OutputError if it cannot be opened.
    """

    def __init__(self, path: Trusted) -> None:
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


class _Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


class CompressedFileSink(FileSink):
    """A FileSink that compresses; each result is a separate member or frame, so that a failed one can be removed.

    Raises UsageError where the package for the compression is not installed, before a file is created.
    """

    def __init__(self, path: Trusted) -> None:
        self._suffix = compression(path)
        self._compressor: _Compressor | None = None
        compressor(self._suffix)
        super().__init__(path)

    def write(self, data: bytes) -> None:
        if self._compressor is None:
            self._compressor = compressor(self._suffix)
        super().write(self._compressor.compress(data))

    def mark(self) -> None:
        if self._compressor is None and not self._used_at_mark:
            # A file without a byte is not one of this format.
            self.write(b"")
        self._end_member()
        super().mark()

    def rewind(self) -> None:
        self._compressor = None
        super().rewind()

    def close(self) -> None:
        self._end_member()
        super().close()

    def _end_member(self) -> None:
        ended, self._compressor = self._compressor, None
        if ended is not None:
            super().write(ended.flush())


def compressor(suffix: str) -> _Compressor:
    """A compressor for `.gz` or `.zst`. Raises UsageError where its package is not installed."""
    if suffix == ".gz":
        return zlib.compressobj(wbits=GZIP_WINDOW)
    try:
        zstd = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    except ImportError:
        raise UsageError(
            "writing .zst files requires the package backports.zstd (extra: zstd)",
            f"write .gz, or {how_to_install('backports.zstd')}",
        ) from None
    made: _Compressor = zstd.ZstdCompressor()
    return made


class AppendSink(StreamSink):
    """Appends to a file, which only its owner can read if it is new. Raises OutputError if it cannot be opened."""

    def __init__(self, path: Trusted) -> None:
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


def check(path: Trusted) -> None:
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


def _unopened(path: str, error: Exception) -> OutputError:
    match error:
        case NotADirectoryError():
            hint = "its directory is a file; use another path"
        case PermissionError():
            hint = "the directory is not writable; the new file is created there first"
        case _:
            hint = ""
    return write_error(path, error, hint)
