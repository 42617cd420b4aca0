"""What is said of a load: its plan, its bad rows, and which of its rows are in the table. The last is also kept in a
small file in the state directory, so that a later load can continue."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

from sqlshell.errors import StatementError, UsageError
from sqlshell.humanize import format_count
from sqlshell.origin import Own
from sqlshell.output.sinks.file import FileSink
from sqlshell.runtime.files import expanded
from sqlshell.shell.loading.convert import Reject
from sqlshell.shell.loading.inspect import ENCODE
from sqlshell.shell.loading.spec import ColumnMatch, FileLayout, LoadRequest
from sqlshell.sql.engine_types import engine_type

MAX_LISTED_ROWS: Final = 5
"""Bad rows that are listed in a message."""

Range = tuple[int, int]
"""Rows from the first on, up to the second."""


def plan(request: LoadRequest, looked: FileLayout, matched: ColumnMatch, engine: str) -> list[str]:
    """Where the columns go, for people."""
    new = "a new table " if request.create else ""
    lines = [f"{request.name} ({looked.about}) into {new}{request.table}:"]
    width = max((len(source.name) for source, _ in matched.pairs), default=0)
    for source, target in matched.pairs:
        lines.append(f"  {source.name:<{width}} {source.type} -> {target.name} {engine_type(target.type, engine)}")
    if matched.left:
        lines.append(f"  columns that are not in the file and get their defaults: {', '.join(matched.left)}")
    return lines


def rejects_report(request: LoadRequest, rejects: Sequence[Reject], *, more: bool) -> str:
    """The warning about bad rows that are skipped. Raises StatementError if there are more than may be."""
    bad = len(rejects)
    count = f"{'at least ' if more else ''}{format_count(bad, 'row')}"
    # In a pipe the lines become one.
    messages = ";\n".join(reject_message(request, item) for item in rejects[:MAX_LISTED_ROWS])
    rest = f";\n… and {bad - MAX_LISTED_ROWS:,} more" if bad > MAX_LISTED_ROWS else ""
    if bad <= request.max_errors:
        kept = f", written to {request.rejects}" if request.rejects else ""
        return f"{count} of {request.name} skipped{kept}:\n{messages}{rest}"
    listed = f"the first {bad:,}" if more else "all"
    where = f"{listed} of them are in {request.rejects}; " if request.rejects else ""
    remedy = f"use --max-errors {bad} to skip {'it' if bad == 1 else 'them'} (in \\copy: MAX_ERRORS {bad})"
    if more:
        remedy = f"use --max-errors with a number above {bad} to skip them (in \\copy: MAX_ERRORS)"
    if all(item.encoded for item in rejects):
        remedy = ENCODE
    elif all(item.quoted for item in rejects):
        remedy = f"use --with 'FORCE_NULL *' (in \\copy: FORCE_NULL *) to load \"\" as NULL, or {remedy}"
    elif all(item.rounded for item in rejects):
        remedy = f"use --round (in \\copy: ROUND) to leave out what the column does not keep, or {remedy}"
    raise StatementError(
        f"{count} of {request.name} cannot be loaded:\n{messages}{rest}", f"{where}nothing was sent; {remedy}"
    )


def reject_message(request: LoadRequest, item: Reject) -> str:
    """The place of a bad row and what is wrong with it, indented."""
    column = f", column {item.column}" if item.column else ""
    line = f", {request.one} {item.line:,}" if item.line else ""
    return f"  {request.name}{line}{column}: {item.error}"


def write_rejects(path: Own, name: str, rejects: Sequence[Reject]) -> None:
    """Write bad rows to a CSV file. Raises OutputError."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("file", "line", "column", "error", "row"))
    sink = FileSink(path)
    try:
        for item in rejects:
            writer.writerow((name, item.line, item.column, item.error, item.row))
            sink.write(text.getvalue().encode("utf-8", "replace"))
            text.seek(0)
            text.truncate()
        sink.close()
    except BaseException:
        sink.abort()
        raise


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


def shown(start: int, stop: int) -> str:
    """Rows for people, who count from 1."""
    return f"row {stop:,}" if stop - start == 1 else f"rows {start + 1:,} to {stop:,}"
