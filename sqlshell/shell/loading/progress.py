"""Which rows of a file are in its table, so that a later load can continue: a small file in the state directory."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, field

from sqlshell.errors import UsageError
from sqlshell.origin import Own
from sqlshell.runtime.paths import expanded

Range = tuple[int, int]
"""Rows from the first on, up to the second."""


class Fingerprint(Struct, frozen=True):
    """The file and the way that it is read: what differs is another load."""

    size: int
    sha256: str
    table: str
    columns: tuple[tuple[str, str], ...]
    options: str


class LoadProgress(Struct):
    """`done` are the rows that the service confirmed, `unknown` those that were sent, or are about to be, and may be in
    the table. `superseded` says that a later load has begun again, and has sent no row yet: its user may have deleted
    these."""

    fingerprint: Fingerprint
    done: list[Range] = field(default_factory=list)
    unknown: list[Range] = field(default_factory=list)
    superseded: bool = False

    @property
    def rows(self) -> int:
        return sum(stop - start for start, stop in self.done)


class ProgressFile:
    """Keeps the progress of the load of one file into one table; with no `folder` nothing is kept."""

    def __init__(self, folder: Path | None, target: str, table: str, path: Own) -> None:
        whole = str(expanded(path).resolve())
        name = hashlib.sha256("\0".join((target, table, whole)).encode("utf-8", "surrogateescape")).hexdigest()[:32]
        self._path = folder / "loads" / f"{name}.json" if folder is not None else None

    @property
    def stores(self) -> bool:
        """Whether another load can continue from what is written."""
        return self._path is not None

    def read(self) -> LoadProgress | None:
        """The progress of an earlier load; None if there is none."""
        if self._path is None:
            return None
        with contextlib.suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode(self._path.read_bytes(), type=LoadProgress)
        return None

    def write(self, progress: LoadProgress) -> None:
        """Raises UsageError where it cannot be kept."""
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            part = self._path.with_suffix(f".{os.getpid()}")
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(msgspec.json.encode(progress))
                file.flush()
                # Otherwise, after a power failure, rows that were sent would appear never to have been.
                os.fsync(file.fileno())
            part.replace(self._path)
        except OSError as error:
            raise UsageError(f"cannot save the progress of the load: {error.strerror or error}") from None

    def forget(self) -> None:
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.unlink()


def fingerprint(path: Own, table: str, columns: tuple[tuple[str, str], ...], options: str) -> Fingerprint:
    """Reads the whole file. Raises UsageError."""
    try:
        with expanded(path).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return Fingerprint(os.fstat(file.fileno()).st_size, digest, table, columns, options)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from None


def with_range(ranges: list[Range], new: Range) -> list[Range]:
    """Ranges in order with one more, where neighbors are one."""
    merged: list[Range] = []
    for start, stop in sorted([*ranges, new]):
        if merged and merged[-1][1] >= start:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged


def missing(ranges: Sequence[Range], rows: int) -> Iterator[Range]:
    """The ranges of `rows` rows that the ordered `ranges` do not cover."""
    at = 0
    for start, stop in [*ranges, (rows, rows)]:
        if at < start:
            yield at, start
        at = max(at, stop)


def without_range(ranges: list[Range], gone: Range) -> list[Range]:
    """Ranges in order without the rows of one."""
    remaining = [(start, min(stop, gone[0])) for start, stop in ranges]
    remaining += [(max(start, gone[1]), stop) for start, stop in ranges]
    return sorted({each for each in remaining if each[0] < each[1]})
