"""The format of data without a name, from their first bytes."""

from __future__ import annotations

import contextlib
import zlib
from pathlib import Path
from typing import Final

from sqlshell.errors import UsageError
from sqlshell.runtime.paths import expanded

HEAD: Final = 4096
_GZIP: Final = b"\x1f\x8b"
_ZIP: Final = b"PK\x03\x04"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"


def compression_of(path: Path) -> str:
    """The ending of the compression of a file, "" for none. Raises UsageError."""
    head = _head(path)
    return ".gz" if head.startswith(_GZIP) else ".zst" if head.startswith(_ZSTD) else ""


def format_of_data(path: Path) -> str:
    """The format of a file: parquet, json or csv. Raises UsageError."""
    head = _head(path)
    if head.startswith(_GZIP):
        with contextlib.suppress(zlib.error):
            head = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head)
    if head.startswith(_ZIP):
        raise UsageError(
            f"{path.name} is a spreadsheet or a zip archive, not a data file", "save it as csv, or unpack it"
        )
    if head.startswith(b"PAR1"):
        return "parquet"
    return "json" if head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in {b"[", b"{"} else "csv"


def _head(path: Path) -> bytes:
    try:
        with expanded(path).open("rb") as file:
            return file.read(HEAD)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
