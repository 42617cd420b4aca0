"""Whether a file compressed with zstd is whole: DuckDB reads one that was cut off as if it ended there.

Only the lengths of the frames and blocks are followed (RFC 8878), which needs no package and no decompression.
"""

from __future__ import annotations

import os
from io import FileIO
from pathlib import Path
from typing import Final

ENDS_TOO_EARLY: Final = "the zstd data is incomplete; copy or download the file again"
_MAGIC: Final = b"\x28\xb5\x2f\xfd"
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
        magic = file.read(len(_MAGIC))
        if magic == _MAGIC:
            _skip_frame(file)
        elif magic[1:] == _SKIPPABLE and 0x50 <= magic[0] <= 0x5F:
            file.seek(_number(file, 4), os.SEEK_CUR)
        else:
            # Other formats are refused by the reader.
            return len(magic) < len(_MAGIC)
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
