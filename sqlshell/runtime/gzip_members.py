"""Whether a file compressed with gzip is whole: DuckDB does not compare checksums, and cannot read a padded file."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Final

INCOMPLETE: Final = "the gzip data is incomplete; copy or download the file again"
DAMAGED: Final = "the gzip data is damaged; copy or download the file again"
PADDED: Final = "other bytes follow the gzip data; unpack it: gunzip -c FILE > NEW_FILE"
_MAGIC: Final = b"\x1f\x8b"
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
            if not data.startswith(_MAGIC):
                return ""
            while data:
                member = zlib.decompressobj(_WITH_CHECKSUM)
                while not member.eof:
                    if not data:
                        return INCOMPLETE
                    member.decompress(data)
                    data = member.unused_data if member.eof else file.read(_PIECE)
                if len(data) < len(_MAGIC):
                    data += file.read(_PIECE)
                if data and not data.startswith(_MAGIC):
                    return PADDED
    except zlib.error:
        return DAMAGED
    except OSError:
        return ""
    return ""
