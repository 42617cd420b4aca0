"""A file that is compressed while it is written: `.gz` or `.zst`."""

from __future__ import annotations

import sys
import zlib
from importlib import import_module
from typing import Protocol

from sqlshell.errors import UsageError
from sqlshell.origin import Own
from sqlshell.output.sinks.file import FileSink, compression

GZIP_WINDOW = 31
"""zlib's window of 32 KiB, with a header of gzip."""


class _Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


class CompressedFileSink(FileSink):
    """A FileSink that compresses; each result is a separate member or frame, so that a failed one can be removed.

    Raises UsageError where the package for the compression is not installed, before a file is created.
    """

    def __init__(self, path: Own) -> None:
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
            "writing .zst files requires the package backports.zstd",
            "run: pip install backports.zstd; or write .gz",
        ) from None
    made: _Compressor = zstd.ZstdCompressor()
    return made
