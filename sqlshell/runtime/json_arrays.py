"""Whether a JSON file is an array behind a byte order mark, which DuckDB would read as one value."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Final

_HEAD: Final = 4096
_MARK: Final = b"\xef\xbb\xbf"


def is_marked_array(path: Path) -> bool:
    """Whether the first character behind a byte order mark is `[`; False for a file compressed with zstd, and for one
    that cannot be read."""
    # A pipe can be read once only.
    if not path.is_file():
        return False
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            head = file.read(_HEAD)
    except (OSError, EOFError):
        return False
    return head.startswith(_MARK) and head.removeprefix(_MARK).lstrip().startswith(b"[")
