"""Storage of results outside the users' databases: small ones in the statement's record, larger ones in files."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

if TYPE_CHECKING:
    from sqlshell.service.results.shared_files import SharedFiles

IN_MEMORY = 1 << 20
"""A running statement's result is kept in memory up to this many bytes; then it goes to a file."""

IN_RECORD = 32 << 10
"""A finished result of up to this many bytes is stored in the record."""

PARTITION_BYTES = 8 << 20
"""The maximum size of a partition in bytes; a single row may be larger."""


class Layout(msgspec.Struct, omit_defaults=True):
    """How a result is stored: `rows` in partitions of `partition_rows`, or with the numbers of rows in `sizes`.

    `form` is "record" (in the record), "text" (a file of JSON rows) or "engine" (a file in the engine's format). `ends`
    are the ends of the partitions in bytes of JSON: exact for a text, approximate for an engine's file. `typed` is a
    Parquet file with the result's columns in its metadata. `digest` is the SHA-256 of a file that other processes read,
    as hexadecimal digits.
    """

    rows: int = 0
    partition_rows: int = 1
    form: str = "record"
    ends: list[int] = []
    sizes: list[int] = []
    typed: bool = False
    digest: str = ""

    @property
    def size(self) -> int:
        """The bytes of all rows as JSON, 0 for rows in the record, which are few."""
        return self.ends[-1] if self.ends else 0

    @property
    def counts(self) -> list[int]:
        """The number of rows of each partition; an empty result has one empty partition."""
        if self.sizes:
            return self.sizes
        whole, rest = divmod(self.rows, self.partition_rows)
        return [self.partition_rows] * whole + ([rest] if rest or not whole else [])

    def add(self, rows: int, end: int) -> None:
        """Add a partition. Sizes are stored once a partition other than the last has fewer rows."""
        even = not self.sizes and self.rows % self.partition_rows == 0
        if not even and not self.sizes:
            self.sizes = self.counts
        if self.sizes:
            self.sizes.append(rows)
        self.rows += rows
        self.ends.append(end)


class Discard:
    """A sink that discards all rows."""

    def keep(self, rows: Sequence[str]) -> None:
        return

    def file(self) -> Path | None:
        return None

    def grown(self, size: int) -> None:
        return

    def finish(self, filed: Sequence[tuple[int, int]] | None = None) -> None:
        return


class Spool:
    """Stores one result while its statement runs, and reads its partitions later. `place` returns the file to use.

    With `shared`, the result is copied to the place `there` when it is complete, and fetched from there if another
    process stored it.
    """

    def __init__(
        self, place: Callable[[], Path], partition_rows: int, shared: SharedFiles | None = None, there: str = ""
    ) -> None:
        self._place = place
        self._shared, self._there = shared, there
        self._held: list[bytes] = []
        self._file: BinaryIO | None = None
        self.path: Path | None = None
        self.layout = Layout(partition_rows=partition_rows)
        self.body = b""
        self.size = 0
        self._complete = False
        self.may_stay_local = False
        """Whether the result is complete without the shared file if that cannot be stored."""
        self._is_shared = False
        """Whether this spool has stored or found the shared file, which may otherwise be that of another process."""
        self._rows = 0
        """The number of rows of the current partition; below, its bytes."""
        self._bytes = 0

    def keep(self, rows: Sequence[str]) -> None:
        """Add rows, which are JSON arrays. A partition ends at `partition_rows` or at PARTITION_BYTES."""
        while rows:
            room = self.layout.partition_rows - self._rows
            some, rows = rows[:room], rows[room:]
            body = ",".join(some).encode("utf-8", "surrogatepass")
            if self._bytes + len(body) < PARTITION_BYTES:
                self._add(body, len(some))
                continue
            del body
            for row in some:
                self._add(row.encode("utf-8", "surrogatepass"), 1)

    def file(self) -> Path:
        self.path = self._place()
        self.layout.form = "engine"
        return self.path

    def grown(self, size: int) -> None:
        return

    def lend(self) -> Path:
        """The file in which another process may store the result; adopt() follows."""
        self.path = self._place()
        return self.path

    def adopt(self, layout: Layout, body: bytes, size: int) -> None:
        """Take over a result that another process has stored; finish() then has no effect."""
        self.layout, self.body, self.size = layout, body, size
        self._complete = True
        if layout.form == "record":
            self.path = None

    def finish(self, filed: Sequence[tuple[int, int]] | None = None) -> None:
        """Finish the result; `filed` are the rows and approximate bytes of each partition of the engine's file. Once it
        is complete, a further call does nothing.

        Raises OSError.
        """
        if self._complete:
            return
        self._cut()
        if filed is not None and self.path is not None:
            end = 0
            for rows, size in filed:
                end += size
                self.layout.add(rows, end)
            self.size = self.path.stat().st_size
            self.layout.typed = True
        elif self._file is not None or self.size > IN_RECORD:
            if self._file is None:
                self._to_file()
            assert self._file is not None
            self._file.close()
            self._file = None
        else:
            self.body, self._held = b"".join(self._held), []
        if self.path is not None and self._shared is not None:
            self._is_shared = True
            with self.path.open("rb") as content:
                self.layout.digest = hashlib.file_digest(content, "sha256").hexdigest()
            try:
                self._shared.put(self.path, self._there)
            except OSError:
                if not self.may_stay_local:
                    raise
                self._shared.used(self.path)
        self._complete = True

    def restore(self, layout: Layout, body: bytes, size: int) -> Spool:
        """Restore the spool of a stored record."""
        self.layout, self.body, self.size = layout, body, size
        if layout.form != "record":
            self.path = self._place()
            self._is_shared = True
        return self

    def local_path(self) -> Path:
        """The file of the result, fetched if another process stored it. Raises OSError."""
        assert self.path is not None
        if self.path.exists():
            if self._shared is not None:
                self._shared.used(self.path)
        elif self._shared is not None:
            self._shared.get(self._there, self.path, self.layout.digest)
        else:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return self.path

    def partition(self, number: int) -> bytes:
        """The rows of a partition that is stored as text. Raises OSError."""
        if not self.layout.ends:
            return b""
        start, size = self._span(number)
        if self.path is None:
            return self.body[start : start + size]
        file, _ = self.open(number)
        with file:
            return file.read(size)

    def open(self, number: int) -> tuple[BinaryIO, int]:
        """Open a file at the start of a partition that is stored as text; returns its size too. Raises OSError."""
        start, size = self._span(number)
        file, _ = self.open_whole()
        file.seek(start)
        return file, size

    def _span(self, number: int) -> tuple[int, int]:
        """The first byte of a partition, and its size."""
        start = self.layout.ends[number - 1] if number else 0
        return start, self.layout.ends[number] - start

    def open_whole(self) -> tuple[BinaryIO, int]:
        """Open the file of the result; returns its size too. Raises OSError."""
        return open_engine_file(self.local_path())

    def drop(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                # Unwritten data cannot be flushed to a full disk.
                self._file.close()
            self._file = None
        self._held, self.body = [], b""
        if self.path is not None:
            with contextlib.suppress(OSError):
                self.path.unlink()
            if self._is_shared:
                self._unshare()
        self.layout = Layout(partition_rows=self.layout.partition_rows)
        self.size = 0

    def forget(self) -> None:
        """Forget a result that another process stores, and leave its file."""
        self._held, self.body, self.path = [], b"", None
        self.drop()

    def remove(self) -> None:
        """Remove the file of an unread result, if it has one."""
        with contextlib.suppress(OSError):
            self._place().unlink()
        self._unshare()

    def _unshare(self) -> None:
        if self._shared is not None:
            self._shared.remove(self._there)

    def _add(self, body: bytes, rows: int) -> None:
        """Add rows to the current partition, or to a new one if it would become too large."""
        if self._rows and self._bytes + len(body) >= PARTITION_BYTES:  # A comma is added.
            self._cut()
        for part in (b",", body) if self._rows else (body,):
            self.size += len(part)
            self._bytes += len(part)
            if self._file is not None:
                self._file.write(part)
            else:
                self._held.append(part)
        self._rows += rows
        if self._file is None and self.size > IN_MEMORY:
            self._to_file()
        if self._rows == self.layout.partition_rows:
            self._cut()

    def _cut(self) -> None:
        """End the current partition."""
        if self._rows:
            self.layout.add(self._rows, self.size)
            self._rows = self._bytes = 0

    def _to_file(self) -> None:
        self.path = self._place()
        self._file = self.path.open("wb")
        self.layout.form = "text"
        self._file.writelines(self._held)
        self._held = []


def open_engine_file(path: Path) -> tuple[BinaryIO, int]:
    """Open a file of an engine; returns its size too. Raises OSError."""
    # The engine's process created the file: it could be a link to a file that the engine may not read.
    file = open(path, "rb", opener=_not_through_links)  # noqa: SIM115
    return file, os.fstat(file.fileno()).st_size


def _not_through_links(path: str, flags: int) -> int:
    opened = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError(errno.EINVAL, "not a regular file")
    return opened
