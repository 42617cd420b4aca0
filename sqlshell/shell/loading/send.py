"""Converted rows on their way to the service: as attachments where it takes them, else as INSERT statements. Which of
them are in the table is also kept in a small file in the state directory, so that a later load can continue."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol, TypeVar

import msgspec
from msgspec import Struct, field

from sqlshell.client.http.upload import Attachment
from sqlshell.client.statements.client import Observer, Submission
from sqlshell.errors import Interrupted, ShellError, UsageError, reason
from sqlshell.interface import sqlstate
from sqlshell.interface.types import Kind, base, field_of, kind, parts_of
from sqlshell.origin import Trusted
from sqlshell.runtime.event_loops import await_thread
from sqlshell.runtime.files import expanded, replace_private
from sqlshell.shell.loading.convert import FETCHED, ConvertedRows
from sqlshell.shell.loading.inspect import DataFile
from sqlshell.shell.loading.spec import ColumnMatch, LoadRequest, TargetColumn
from sqlshell.shell.loading.types import staged_type
from sqlshell.shell.running.statement import outcome_unknown
from sqlshell.shell.session import Session
from sqlshell.sql.duckdb_types import TEXT
from sqlshell.sql.identifiers import always_quoted, literal
from sqlshell.text import format_count

T = TypeVar("T")

_PLAIN_TYPE: Final = re.compile(r"[A-Za-z_][\w ]*(?:\(\d+(?:,\s*\d+)?\))?(?: WITH(?:OUT)? (?:LOCAL )?TIME ZONE)?")
"""A type that can be written behind AS in a CAST."""
_LTZ: Final = frozenset({"TIMESTAMP_LTZ", "TIMESTAMP_TZ"})

EXTENSION: Final = "copy"
"""The extension that a service announces if it loads attached Parquet files."""

ATTACHED: Final = 64 << 20
"""Bytes of an attachment: what fits into one is loaded as a whole or not at all."""

STATEMENT: Final = 256 << 10
"""Bytes of an INSERT, unless a single row has more."""

IN_FLIGHT: Final = 4
"""INSERT statements that the service works on at once. Each is sent when the one before has arrived."""

SETTLING_SECONDS: Final = 10.0
"""How long statements that were sent are waited for where a load is interrupted."""

ROWS_ATTACHMENT: Final = "rows.parquet"


Range = tuple[int, int]
"""Rows from the first on, up to the second."""


class SentBatch(Struct, frozen=True):
    """Rows that are sent together, and their outcome: `error` is None if the service confirmed them. `arrived` says
    that the service had the statement before the error."""

    rows: Range
    error: ShellError | None = None
    arrived: bool = False

    @property
    def unknown(self) -> bool:
        return self.error is not None and outcome_unknown(self.error, arrived=self.arrived)


class Sender(Protocol):
    """Sends rows, and gives the batches in their order. A batch that failed is the last one.

    Rows of `done`, which are ranges in order that an earlier load sent, are left out. Its batches may have had other
    bounds. `begin` is called with the rows of each batch
    before they are sent.
    """

    def send(
        self, staged: ConvertedRows, done: Sequence[Range], begin: Callable[[Range], None]
    ) -> AsyncIterator[SentBatch]: ...

    async def settled(self) -> list[SentBatch]: ...


class AttachmentSender:
    """Sends Parquet files, one after another. `submit` runs a statement with its attachments and shows nothing."""

    def __init__(
        self,
        request: LoadRequest,
        matched: ColumnMatch,
        batch: Callable[[Range], Awaitable[Path]],
        submit: Callable[[str, Attachment], Awaitable[None]],
        arrived: Callable[[], bool],
        limit: int = 0,
    ) -> None:
        """`batch` gives a Parquet file with some rows. `arrived` says whether the service had the last statement.
        `limit` is the most bytes that one attachment may have, 0 for any number."""
        self._sql = f"COPY {request.table} ({matched.listed}) FROM '@{ROWS_ATTACHMENT}' (FORMAT parquet)"
        self._batch = batch
        self._submit = submit
        self._arrived = arrived
        self._size = min(ATTACHED, limit or ATTACHED)

    async def send(
        self, staged: ConvertedRows, done: Sequence[Range], begin: Callable[[Range], None]
    ) -> AsyncIterator[SentBatch]:
        size = staged.path.stat().st_size
        count = max(1, -(-size // self._size))
        step = max(1, -(-staged.rows // count))
        for rows in self._batches(staged, done, step):
            path = await self._batch(rows)
            begin(rows)
            try:
                await self._submit(self._sql, Attachment(path, ROWS_ATTACHMENT, path.stat().st_size))
            except Interrupted as error:
                finished = error.where.sql_state and not sqlstate.failed(error.where.sql_state)
                if finished and not sqlstate.running(error.where.sql_state):
                    yield SentBatch(rows)
                    yield SentBatch((rows[1], rows[1]), error)
                else:
                    yield SentBatch(rows, error)
                return
            except ShellError as error:
                yield SentBatch(rows, error, self._arrived())
                return
            yield SentBatch(rows)

    @staticmethod
    def _batches(staged: ConvertedRows, done: Sequence[Range], step: int) -> Iterator[Range]:
        for first, last in missing(done, staged.rows):
            for start in range(first, last, step):
                yield start, min(start + step, last)

    async def settled(self) -> list[SentBatch]:
        """Nothing is on its way: each is waited for."""
        return []


class InsertSender:
    """Sends INSERT statements, several at a time and yet in their order."""

    def __init__(self, request: LoadRequest, matched: ColumnMatch, source: DataFile, session: Session) -> None:
        self._head = f"INSERT INTO {request.table} ({matched.listed}) VALUES\n"
        self._targets = matched.targets
        self._source = source
        self._session = session
        self._running: list[tuple[Range, asyncio.Task[SentBatch]]] = []

    async def send(
        self, staged: ConvertedRows, done: Sequence[Range], begin: Callable[[Range], None]
    ) -> AsyncIterator[SentBatch]:
        failed = False
        async for rows, sql in self._statements(staged, done):
            while len(self._running) >= IN_FLIGHT and not failed:
                batch = await self._first()
                failed = batch.error is not None
                yield batch
            if failed:
                break
            sent = asyncio.Event()
            begin(rows)
            task = asyncio.ensure_future(self._insert(rows, sql, sent))
            self._running.append((rows, task))
            # The service has it before the next one is sent: it runs them in this order.
            arrived = asyncio.ensure_future(sent.wait())
            try:
                await asyncio.wait({task, arrived}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                arrived.cancel()
            if task.done() and task.result().error is not None:
                break
        while self._running:
            yield await self._first()

    async def settled(self) -> list[SentBatch]:
        """The outcomes of the statements that were already sent; no others are sent."""
        running, self._running = self._running, []
        if running:
            await asyncio.wait([task for _, task in running], timeout=SETTLING_SECONDS)
        sent = []
        for rows, task in running:
            if task.done():
                sent.append(task.result())
            else:
                task.cancel()
                sent.append(SentBatch(rows, Interrupted("stopped waiting")))
        return sent

    async def _first(self) -> SentBatch:
        """The first batch that is on its way, when the service has confirmed it."""
        await asyncio.wait({self._running[0][1]})
        return self._running.pop(0)[1].result()

    async def _statements(self, staged: ConvertedRows, done: Sequence[Range]) -> AsyncIterator[tuple[Range, str]]:
        for start, stop in missing(done, staged.rows):
            values = literals(self._source, staged, self._targets, start)
            async for rows, sql in self._packed(values, start, stop):
                yield rows, sql

    async def _packed(self, values: Iterator[str], at: int, stop: int) -> AsyncIterator[tuple[Range, str]]:
        while at < stop:
            taken: list[str] = await blocking(self._source, lambda: _some(values, stop - at))  # noqa: B023
            yield (at, at + len(taken)), self._head + ",\n".join(taken)
            at += len(taken)

    async def _insert(self, rows: Range, sql: str, sent: asyncio.Event) -> SentBatch:
        session, journal = self._session, self._session.connection.journal
        context, began = session.context, time.monotonic()
        ids: list[str] = []

        def identified(statement_id: str) -> None:
            sent.set()
            if not ids:
                ids.append(statement_id)
                count = rows[1] - rows[0]
                journal.record_start(
                    statement_id, f"{self._head}… {format_count(count, 'row')}", context, time.monotonic() - began
                )

        try:
            observer = Observer(statement_id=identified, context=session.adopt)
            async for result in session.connection.client.run(Submission(sql), context, observer):
                await result.batches.aclose()
                journal.record_end(result.statement_id, result.sql_state, result.message)
        except ShellError as error:
            if ids and error.where.sql_state:
                journal.record_end(ids[0], error.where.sql_state, error.message)
            return SentBatch(rows, error, bool(ids))
        return SentBatch(rows)


def _some(values: Iterator[str], most: int) -> list[str]:
    """The next rows, as many as an INSERT takes."""
    taken: list[str] = []
    size = 0
    for row in values:
        taken.append(row)
        # No character of a literal has more bytes than four.
        size += len(row) if row.isascii() else len(row.encode("utf-8", "surrogatepass"))
        if size >= STATEMENT or len(taken) == most:
            break
    return taken


async def blocking(source: DataFile, work: Callable[[], T]) -> T:
    """Work of a DataFile in a thread; what it runs ends where this is canceled."""
    return await await_thread(asyncio.get_running_loop().run_in_executor(None, work), source.interrupt)


def literals(source: DataFile, staged: ConvertedRows, targets: Sequence[TargetColumn], start: int) -> Iterator[str]:
    """The rows from one on, each as the list of its values in parentheses, in SQL."""
    values = " || ', ' || ".join(
        f"CASE WHEN c{number} IS NULL THEN 'NULL' ELSE {_literal(target.type, f'c{number}', 0)} END"
        for number, target in enumerate(targets)
    )
    rows = f"read_parquet({literal(str(staged.path))}, file_row_number = true)"
    with source.translating_errors():
        cursor = source.connection.execute(
            f"SELECT '(' || {values} || ')' FROM {rows} WHERE file_row_number >= {start}"
        )
        while fetched := cursor.fetchmany(FETCHED):
            for row in fetched:
                yield str(row[0])


def _literal(declared: str, value: str, depth: int) -> str:
    """SQL of an expression that gives a value, which is not NULL, as an SQL literal."""
    what, converted = kind(declared), staged_type(declared)
    text = f"'''' || replace(({value})::VARCHAR, '''', '''''') || ''''"
    if what is Kind.NESTED and converted != TEXT:
        return _nested(declared, value, depth)
    if what in {Kind.INTEGER, Kind.DECIMAL} and converted != TEXT:
        return f"({value})::VARCHAR"
    if what is Kind.BOOLEAN:
        return f"CASE WHEN {value} THEN 'TRUE' ELSE 'FALSE' END"
    if what is Kind.FLOAT:
        cast = f"'CAST(''' || ({value})::VARCHAR || ''' AS {base(declared)})'"
        return f"CASE WHEN isfinite({value}) THEN ({value})::VARCHAR ELSE {cast} END"
    if what is Kind.BYTES:
        return f"'FROM_BASE64(''' || to_base64({value}) || ''')'"
    if base(declared) in _LTZ and converted != TEXT:
        utc = f"(({value}) AT TIME ZONE 'UTC')::VARCHAR"
        text = f"'''' || {utc} || CASE WHEN isfinite({value}) THEN '+00' ELSE '' END || ''''"
    if what is Kind.TEXT or not _PLAIN_TYPE.fullmatch(declared):
        return text
    return f"'CAST(' || {text} || ' AS {declared})'"


def _nested(declared: str, value: str, depth: int) -> str:
    name, parts, item = base(declared), parts_of(declared), f"x{depth}"

    def inner(kind_: str, expression: str) -> str:
        written = _literal(kind_, expression, depth + 1)
        return f"CASE WHEN {expression} IS NULL THEN 'NULL' ELSE {written} END"

    if name == "ARRAY":
        items = f"list_transform({value}, lambda {item}: {inner(parts[0], item)})"
        return f"'CAST(ARRAY[' || array_to_string({items}, ', ') || '] AS {declared})'"
    if name == "MAP":
        pair = f"{inner(parts[0], f'{item}.key')} || ', ' || {inner(parts[1], f'{item}.value')}"
        items = f"list_transform(map_entries({value}), lambda {item}: {pair})"
        written = f"'MAP[' || array_to_string({items}, ', ') || ']'"
        # MAP[] would be the subscript of a column.
        return f"'CAST(' || CASE WHEN cardinality({value}) = 0 THEN '''{{}}''' ELSE {written} END || ' AS {declared})'"
    members = " || ', ' || ".join(
        inner(each, f"({value}).{always_quoted(field)}") for field, each in map(field_of, parts)
    )
    return f"'CAST(ROW(' || {members} || ') AS {declared})'"


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

    def __init__(self, folder: Path | None, target: str, table: str, path: Trusted) -> None:
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
            # Otherwise, after a power failure, rows that were sent would appear never to have been.
            replace_private(self._path, msgspec.json.encode(progress), durable=True)
        except OSError as error:
            raise UsageError(f"cannot save the progress of the load: {reason(error)}") from None

    def forget(self) -> None:
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.unlink()


def fingerprint(path: Trusted, table: str, columns: tuple[tuple[str, str], ...], options: str) -> Fingerprint:
    """Reads the whole file. Raises UsageError."""
    try:
        with expanded(path).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return Fingerprint(os.fstat(file.fileno()).st_size, digest, table, columns, options)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {reason(error)}") from None


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
