"""The file that a download is written to, and continued in."""

from __future__ import annotations

import os
from io import FileIO
from pathlib import Path

from sqlshell.runtime.write_all import write_all


class DownloadFile(FileIO):
    """A file that has the beginning of a download, up to its position. `tag` is the strong ETag of the whole, "" if the
    download cannot continue there.
    """

    def __init__(self, place: Path, flags: int = os.O_EXCL) -> None:
        super().__init__(os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | flags, 0o600), "r+")
        self.place = place
        self.tag = ""

    def write(self, data: bytes) -> int:  # type: ignore[override]
        """Add all of `data`. Raises OSError."""
        write_all(super().write, data)
        return len(data)

    def restart(self, tag: str) -> None:
        """Begin again at the first byte. Raises OSError."""
        self.seek(0)
        self.truncate()
        self.tag = tag
