"""Whether a data file is empty after decompression."""

from __future__ import annotations

import gzip
from pathlib import Path


def is_empty(path: Path) -> bool:
    """Whether a file has no bytes, or is compressed with gzip and has none then; False for one that cannot be read."""
    # A pipe can be read once only.
    if not path.is_file():
        return False
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            return not file.read(1)
    except (OSError, EOFError):
        return False
