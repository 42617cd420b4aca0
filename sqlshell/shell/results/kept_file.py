"""The file of a result beside an export: the received part is recorded, so that the download can continue."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct

from sqlshell.errors import OutputError
from sqlshell.runtime.download_file import DownloadFile

NOTED_BYTES: Final = 8 << 20
"""Received bytes are recorded after this many, and when the file is closed."""

CHUNK: Final = 1 << 20

RESUME: Final = "--resume (in \\export: resume)"
START_AGAIN: Final = f"start again without {RESUME}"


class KeptBytes(Struct, frozen=True):
    """The kept part of a file: its first `bytes`, with their SHA-256, and the ETag of the whole."""

    tag: str
    bytes: int
    sha256: str


class KeptFile(DownloadFile):
    """`note` records what is kept, `arrived` is called with the bytes that have arrived. Raises OutputError for a file
    that does not have what was `kept`."""

    def __init__(
        self, place: Path, kept: KeptBytes | None, note: Callable[[KeptBytes], None], arrived: Callable[[int], None]
    ) -> None:
        super().__init__(place, 0)
        self._note = note
        self._arrived = arrived
        self._digest = hashlib.sha256()
        self._size = self._noted = 0
        if kept is None:
            self.truncate()
            return
        while chunk := self.read(min(CHUNK, kept.bytes - self._size)):
            self._digest.update(chunk)
            self._size += len(chunk)
        if self._digest.hexdigest() != kept.sha256:
            super().close()
            raise OutputError(f"{place} is damaged", START_AGAIN)
        self.truncate()
        self._noted, self.tag = self._size, kept.tag

    def restart(self, tag: str) -> None:
        super().restart(tag)
        self._digest = hashlib.sha256()
        self._size = self._noted = 0

    def write(self, data: bytes) -> int:  # type: ignore[override]
        """Add bytes. Raises OSError."""
        super().write(data)
        self._digest.update(data)
        self._size += len(data)
        self._arrived(self._size)
        if self._size - self._noted >= NOTED_BYTES:
            self._note_all()
        return len(data)

    def close(self) -> None:
        if not self.closed and self._size > self._noted:
            self._note_all()
        super().close()

    def _note_all(self) -> None:
        if self.tag:
            os.fsync(self.fileno())
            self._note(KeptBytes(self.tag, self._size, self._digest.hexdigest()))
            self._noted = self._size
