"""Results kept outside the user's databases: small ones in memory, larger ones in files of a private folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import zoneinfo
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import msgspec

from sqlshell.interface.models import Rows

IN_MEMORY = 1 << 20
"""Bytes of a result that are held; more go to a file."""

_ROWS = msgspec.json.Decoder(Rows)


class Store:
    """Where results are kept; close() removes them all. The folder is made when it is first needed, mode 0700."""

    def __init__(self) -> None:
        self._folder: Path | None = None

    def new(self) -> Spool:
        return Spool(self)

    def file(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="sqlshell-"))
        handle, name = tempfile.mkstemp(dir=self._folder)
        os.close(handle)
        return Path(name)

    def close(self) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


class Spool:
    """The partitions of one result, each as the text between the brackets of a JSON array of rows."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: list[bytes] = []
        self._size = 0
        self._path: Path | None = None
        self._file: BinaryIO | None = None
        self._places: list[tuple[int, int]] = []
        self.row_counts: list[int] = []

    def keep(self, rows: Sequence[str]) -> None:
        """Add a partition; rows are JSON arrays."""
        body = ",".join(rows).encode("utf-8", "surrogatepass")
        self._places.append((self._size, len(body)))
        self.row_counts.append(len(rows))
        self._size += len(body)
        if self._file is None:
            self._held.append(body)
            if self._size > IN_MEMORY:
                self._path = self._store.file()
                self._file = self._path.open("wb")
                self._file.writelines(self._held)
                self._held = []
        else:
            self._file.write(body)

    def finish(self) -> None:
        """No more partitions come."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def partition(self, number: int) -> bytes:
        """The rows of a partition; of partition 0 of an empty result none. Raises IndexError."""
        if not self._places and number == 0:
            return b""
        offset, length = self._places[number]
        if self._path is None:
            return self._held[number]
        with self._path.open("rb") as file:
            file.seek(offset)
            return file.read(length)

    def drop(self) -> None:
        self.finish()
        self._held = []
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.unlink()


def in_zone(body: bytes, zoned: Sequence[int], timezone: str) -> bytes:
    """Rows with the instants of the columns `zoned` rendered in another zone than the UTC they are kept in."""
    if not zoned or timezone == "UTC" or not body:
        return body
    zone = zoneinfo.ZoneInfo(timezone)
    rows = _ROWS.decode(b"[" + body + b"]")
    for row in rows:
        for number in zoned:
            text = row[number]
            if text is not None and text.endswith("Z"):
                row[number] = _moved(text, zone)
    return msgspec.json.encode(rows)[1:-1]


def _moved(text: str, zone: zoneinfo.ZoneInfo) -> str:
    try:
        return datetime.fromisoformat(text).astimezone(zone).isoformat(" ")
    except (ValueError, OverflowError):
        # Years that Python does not have stay in UTC, which they say by their Z.
        return text
