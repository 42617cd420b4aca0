"""Results kept outside the users' databases: small ones with their statement's record, larger ones in files."""

from __future__ import annotations

import contextlib
import zoneinfo
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import msgspec

from sqlshell.interface.models import Rows

IN_MEMORY = 1 << 20
"""Bytes of a result that are held while its statement runs; more go to a file."""

IN_RECORD = 32 << 10
"""Bytes of a finished result that stay with the record."""

_ROWS = msgspec.json.Decoder(Rows)


class Layout(msgspec.Struct, omit_defaults=True):
    """How a result is kept: `rows` in partitions of `partition_rows`, the last one smaller.

    `form` is "record" (beside the record), "text" (a file of JSON rows, `ends` being where each partition ends) or
    "engine" (a file of the engine's own).
    """

    rows: int = 0
    partition_rows: int = 1
    form: str = "record"
    ends: list[int] = []

    @property
    def counts(self) -> list[int]:
        """Rows of each partition; an empty result has one empty partition."""
        whole, rest = divmod(self.rows, self.partition_rows)
        return [self.partition_rows] * whole + ([rest] if rest or not whole else [])


class Spool:
    """One result while it is made, and its partitions afterwards. `place` gives the file to use when one is needed."""

    def __init__(self, place: Callable[[], Path], partition_rows: int) -> None:
        self._place = place
        self._held: list[bytes] = []
        self._file: BinaryIO | None = None
        self._path: Path | None = None
        self.layout = Layout(partition_rows=partition_rows)
        self.body = b""
        self.size = 0

    def keep(self, rows: Sequence[str]) -> None:
        """Add a partition; rows are JSON arrays."""
        body = ",".join(rows).encode("utf-8", "surrogatepass")
        self.size += len(body)
        self.layout.rows += len(rows)
        self.layout.ends.append(self.size)
        if self._file is not None:
            self._file.write(body)
            return
        self._held.append(body)
        if self.size > IN_MEMORY:
            self._to_file()

    def file(self) -> Path:
        self._path = self._place()
        self.layout.form = "engine"
        return self._path

    def finish(self, filed: int | None = None) -> None:
        """No more rows come; `filed` is how many the engine wrote to its file. Raises OSError."""
        if filed is not None and self._path is not None:
            self.layout.rows = filed
            self.size = self._path.stat().st_size
        elif self._file is not None or self.size > IN_RECORD:
            self._to_file()
            assert self._file is not None
            self._file.close()
            self._file = None
        else:
            self.body, self._held = b"".join(self._held), []

    def restore(self, layout: Layout, body: bytes, size: int) -> Spool:
        """The spool of a record that was kept."""
        self.layout, self.body, self.size = layout, body, size
        if layout.form != "record":
            self._path = self._place()
        return self

    @property
    def path(self) -> Path | None:
        return self._path

    def partition(self, number: int) -> bytes:
        """The rows of a partition that is kept as text. Raises OSError."""
        ends = self.layout.ends
        if not ends:
            return b""
        start, end = (ends[number - 1] if number else 0), ends[number]
        if self._path is None:
            return self.body[start:end]
        with self._path.open("rb") as file:
            file.seek(start)
            return file.read(end - start)

    def drop(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        self._held, self.body = [], b""
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.unlink()
        self.layout = Layout(partition_rows=self.layout.partition_rows)
        self.size = 0

    def _to_file(self) -> None:
        if self._file is None:
            self._path = self._place()
            self._file = self._path.open("wb")
            self.layout.form = "text"
            self._file.writelines(self._held)
            self._held = []


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
