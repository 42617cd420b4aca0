"""Whether a data file is whole, empty or a marked array.

DuckDB does not compare the checksums of gzip, cannot read padded gzip files, reads zstd files that were cut off as if
they ended there, and JSON arrays behind a byte order mark as one value.
"""

from __future__ import annotations

import gzip
import os
import zlib
from io import FileIO
from pathlib import Path
from typing import Final

INCOMPLETE: Final = "the gzip data is incomplete; copy or download the file again"
DAMAGED: Final = "the gzip data is damaged; copy or download the file again"
PADDED: Final = "other bytes follow the gzip data; unpack it: gunzip -c FILE > NEW_FILE"
_GZIP: Final = b"\x1f\x8b"
_WITH_CHECKSUM: Final = 31
_PIECE: Final = 1 << 16
"""Compressed bytes that are read at once; they become 64 MiB at most."""


def damage(path: Path) -> str:
    """What is wrong with a file of gzip members (RFC 1952): INCOMPLETE, DAMAGED, PADDED or "".

    "" also for a file that is not gzip or cannot be read. All of the file is decompressed.
    """
    # A pipe can be read once only.
    if not path.is_file():
        return ""
    try:
        with path.open("rb") as file:
            data = file.read(_PIECE)
            if not data.startswith(_GZIP):
                return ""
            while data:
                member = zlib.decompressobj(_WITH_CHECKSUM)
                while not member.eof:
                    if not data:
                        return INCOMPLETE
                    member.decompress(data)
                    data = member.unused_data if member.eof else file.read(_PIECE)
                if len(data) < len(_GZIP):
                    data += file.read(_PIECE)
                if data and not data.startswith(_GZIP):
                    return PADDED
    except zlib.error:
        return DAMAGED
    except OSError:
        return ""
    return ""


ENDS_TOO_EARLY: Final = "the zstd data is incomplete; copy or download the file again"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_SKIPPABLE: Final = b"\x2a\x4d\x18"
"""The bytes that follow the first byte, 0x50 to 0x5f, of a frame without data."""

_CHECKSUM: Final = 4
_RUN_LENGTH: Final = 1


def ends_too_early(path: Path) -> bool:
    """Whether a file of zstd frames is cut off; False for one that is not zstd, or cannot be opened."""
    # A pipe can be read once only.
    if not path.is_file():
        return False
    try:
        file = path.open("rb", buffering=0)
    except OSError:
        return False
    with file:
        try:
            return _cut_off(file, os.fstat(file.fileno()).st_size)
        except EOFError:
            return True
        finally:
            # Opening /dev/fd/N again shares the position on some systems.
            file.seek(0)


def _cut_off(file: FileIO, size: int) -> bool:
    while file.tell() < size:
        magic = file.read(len(_ZSTD))
        if magic == _ZSTD:
            _skip_frame(file)
        elif magic[1:] == _SKIPPABLE and 0x50 <= magic[0] <= 0x5F:
            file.seek(_number(file, 4), os.SEEK_CUR)
        else:
            # Other formats are refused by the reader.
            return len(magic) < len(_ZSTD)
    return file.tell() > size


def _skip_frame(file: FileIO) -> None:
    """Continue after a frame, or after the end of the file. Raises EOFError."""
    descriptor = _number(file, 1)
    single, content = descriptor >> 5 & 1, descriptor >> 6
    header = (1 - single) + (0, 1, 2, 4)[descriptor & 3] + (single, 2, 4, 8)[content]
    file.seek(header, os.SEEK_CUR)
    last = 0
    while not last:
        block = _number(file, 3)
        last, kind, length = block & 1, block >> 1 & 3, block >> 3
        file.seek(1 if kind == _RUN_LENGTH else length, os.SEEK_CUR)
    file.seek(_CHECKSUM if descriptor & 4 else 0, os.SEEK_CUR)


def _number(file: FileIO, length: int) -> int:
    data = file.read(length)
    if len(data) < length:
        raise EOFError
    return int.from_bytes(data, "little")


_HEAD: Final = 4096
_MARK: Final = b"\xef\xbb\xbf"


def is_empty(path: Path) -> bool:
    """Whether a file has no bytes, or is compressed with gzip and has none then; False for one that cannot be read."""
    return _beginning(path) == b""


def is_marked_array(path: Path) -> bool:
    """Whether the first character behind a byte order mark is `[`; False for a file compressed with zstd, and for one
    that cannot be read."""
    head = _beginning(path) or b""
    return head.startswith(_MARK) and head.removeprefix(_MARK).lstrip().startswith(b"[")


def _beginning(path: Path) -> bytes | None:
    """The first bytes of a file, without gzip; None for one that cannot be read."""
    # A pipe can be read once only.
    if not path.is_file():
        return None
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            return file.read(_HEAD)
    except (OSError, EOFError, zlib.error):
        return None
