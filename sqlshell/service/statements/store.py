"""Stores all statements."""

from __future__ import annotations

import contextlib
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo, ContextEcho
from sqlshell.service.engines.engine import Outcome
from sqlshell.service.results.results import Layout, Spool
from sqlshell.service.statements.statement import LISTED, State, Statement, bytes_of
from sqlshell.service.storage.storage import Storage, StorageError, Unavailable

RECENT = 1000
RECENT_SIZE = 8 << 20
"""The number and size (characters and bytes) of finished records in memory; the others are read from the storage."""

SWEEP_BATCH = 500
"""The maximum number of records that are removed at once, which blocks the event loop."""

LATE, LATE_SIZE = 1000, 16 << 20
"""The number of finished records that are kept in memory while the disk is full, and the size of their texts and rows,
in characters and bytes.
"""

MESSAGE = 10_000
"""Characters that are stored of a message: a statement can cause an error of any length."""


class StatementLoad:
    """The number of unfinished statements of a token or organization, and the characters of their texts."""

    __slots__ = ("number", "size")

    def __init__(self) -> None:
        self.number = self.size = 0

    def add(self, number: int, size: int) -> None:
        self.number += number
        self.size += size


class _Kept(msgspec.Struct, omit_defaults=True):
    """The stored part of an outcome."""

    columns: list[ColumnInfo] | None = None
    zoned: list[Any] = []
    layout: Layout = msgspec.field(default_factory=Layout)


Row = tuple[Any, ...]


class Ending(Struct):
    """How a record ends: `row` has the values of PUT, and `size` the bytes of what is stored besides its rows."""

    record: Statement
    state: str
    message: str
    finished: float
    row: Row
    size: int


_decode_kept = msgspec.json.Decoder(_Kept).decode
_decode_context = msgspec.json.Decoder(ContextEcho).decode


class StatementStore:
    """All records. `place` creates the empty spool of a statement of an organization. Used from one thread, except
    latest().
    """

    def __init__(self, storage: Storage, place: Callable[[str, str], Spool]) -> None:
        self._storage = storage
        self._place = place
        texts = (f"coalesce({storage.size_of(name)}, 0)" for name in ("sql", "message", "context", "outcome"))
        self._size = " + ".join(("bytes", *texts))
        """SQL for the bytes of a record that count against its organization's quota: its rows, and its texts as they
        are stored."""
        self._swept = f"SELECT id, organization, {self._size} FROM statements WHERE finished > 0 AND"
        self._running: dict[str, Statement] = {}
        self._recent: OrderedDict[str, Statement] = OrderedDict()
        self._recent_size = 0
        self.finished = 0
        """How many records have been finished."""
        self._loads: dict[str, StatementLoad] = {}
        self._late: deque[Row] = deque()
        """The values of PUT for ends that are not written, because the disk is full."""
        self._kept: dict[str, StatementLoad] = {}
        # A storage that cannot be written is noticed at the start.
        storage.write(
            "UPDATE statements SET process = ? WHERE process = ? AND state = ?",
            (self.process, self.process, sqlstate.RUNNING),
        )
        self.note_kept(self.kept())

    @property
    def process(self) -> str:
        """The process whose statements these are, if several share the storage, else ""."""
        return ""

    def interrupted(self) -> list[Statement]:
        """The records of statements that another process ran when it ended; they are running again from now on."""
        return self._mark_running(self._stored_as_running())

    def _stored_as_running(self) -> list[Row]:
        sql = f"SELECT {COLUMNS} FROM statements WHERE state = ? AND process = ?"
        return self._storage.read(sql, (sqlstate.RUNNING, self.process))

    def _mark_running(self, rows: Sequence[Row]) -> list[Statement]:
        # A statement that has ended since the rows were read is at hand too.
        records = [self._restored(row) for row in rows if self._at_hand(row[0]) is None]
        for record in records:
            self._running[record.statement_id] = record
            self._add_to_counts(record, 1)
        return records

    def note_operation(self, record: Statement, operation: str) -> None:
        """Store the engine's ID of what it runs for a statement, so that it can be resumed."""
        record.operation = operation
        if self._storage.durable and record.running:
            with contextlib.suppress(Unavailable):
                self._storage.write(OPERATION, (operation, record.statement_id))

    def kept(self) -> Sequence[Row]:
        """The number of stored records of each organization, and their bytes. For any thread."""
        return self._storage.read(
            f"SELECT organization, count(*), sum({self._size}) FROM statements GROUP BY organization"
        )

    def note_kept(self, counted: Sequence[Row]) -> None:
        """Set the stored amounts to those that kept() returned."""
        self._kept.clear()
        for organization, number, size in counted:
            self._kept_of(organization).add(int(number), int(size))

    async def admit(self, records: Sequence[Statement]) -> None:
        """Add records. With durable storage they are written before they run, otherwise when they have finished.

        If the disk is full they run nevertheless, and are written once there is space. Records that several processes
        share must be written: then it raises Unavailable.
        """
        self._register(records)
        if self._storage.durable:
            with contextlib.suppress(Unavailable):
                self._storage.write_all(PUT, [self._row(record) for record in records])

    def finish(self, *endings: tuple[Statement, str, str]) -> None:
        """Finish records with a sqlState and message. All are written in one transaction before their states change."""
        prepared = self._prepared(endings)
        self._late.extend(item.row for item in prepared)
        self._write_late()
        self._settle(prepared)

    async def settled(self, record: Statement) -> None:
        """Wait until the end of a record is written, if it has one."""

    def _prepared(self, endings: Sequence[tuple[Statement, str, str]]) -> list[Ending]:
        """The endings of records, as they are to be written."""
        finished = time.time()
        self.finished += len(endings)
        prepared = []
        for record, state, given in endings:
            message = _cut(given)
            outcome = record.outcome
            kept = None
            if outcome is not None and not sqlstate.failed(state):
                kept = msgspec.json.encode(_Kept(outcome.columns, list(outcome.zoned), record.spool.layout))
            else:
                record.spool.drop()
            row = self._row(record, finished, state, message, kept)
            size = bytes_of(message) + len(row[8]) + len(kept or b"")
            prepared.append(Ending(record, state, message, finished, row, size))
        return prepared

    def _settle(self, endings: Sequence[Ending]) -> None:
        """Give records that were written their ends."""
        for item in endings:
            record = item.record
            self._kept_of(record.organization).add(0, record.spool.size + item.size)
            record.sql_state, record.message, record.finished = item.state, item.message, item.finished
            record.state = State.after(item.state, item.message)
            if record.began and not record.seconds:
                record.seconds = time.monotonic() - record.began
            record.done.set()
            record.ready.set()
            if self._running.pop(record.statement_id, None) is not None:
                self._add_to_counts(record, -1)
                self._keep(record, item.size)
        while len(self._recent) > RECENT or (self._recent_size > RECENT_SIZE and len(self._recent) > 1):
            self._let_go(next(iter(self._recent)))

    def move(self, record: Statement, organization: str) -> None:
        """Assign a running record to another organization."""
        self._add_to_counts(record, -1)
        self._kept_of(record.organization).add(-1, -record.stored)
        record.organization = organization
        self._kept_of(organization).add(1, record.stored)
        self._add_to_counts(record, 1)

    def drop(self, records: Sequence[Statement]) -> None:
        """Remove records that did not run and were not reported to the client."""
        with contextlib.suppress(StorageError):
            self._storage.write_all(DELETED, [(item.statement_id,) for item in records])
        self._unregister(records)

    def _register(self, records: Sequence[Statement]) -> None:
        for record in records:
            self._kept_of(record.organization).add(1, record.stored)
            self._running[record.statement_id] = record
            self._add_to_counts(record, 1)

    def _unregister(self, records: Sequence[Statement]) -> None:
        for record in records:
            self._kept_of(record.organization).add(-1, -record.stored)
            if self._running.pop(record.statement_id, None) is not None:
                self._add_to_counts(record, -1)

    def loads(self, keys: Collection[str]) -> Mapping[str, StatementLoad]:
        """The loads of tokens and organizations by their IDs, as far as this process knows them."""
        return {key: self._loads.get(key) or StatementLoad() for key in keys}

    async def loads_elsewhere(self, keys: Collection[str]) -> Mapping[str, tuple[int, int]]:
        """What other processes add to the loads: number and characters, where there are any. Raises StorageError."""
        return {}

    def _count(self, key: str, number: int, size: int) -> None:
        load = self._loads.setdefault(key, StatementLoad())
        load.add(number, size)
        if not load.number:
            del self._loads[key]

    def _row(
        self,
        record: Statement,
        finished: float = 0.0,
        state: str = sqlstate.RUNNING,
        message: str = "",
        kept: bytes | None = None,
    ) -> Row:
        """The values of PUT for a record."""
        first = record.statement_id, record.organization, record.owner, record.text, record.created
        context, spool = msgspec.json.encode(record.context), record.spool
        rows = (spool.body, spool.size) if finished else (None, 0)
        return (*first, finished, state, message, context, kept, *rows, record.previous, self.process)

    def _write_late(self) -> None:
        """Write the ends that are not written; if the disk is full, the latest ones stay pending."""
        try:
            self._storage.write_all(PUT, list(self._late))
            self._late.clear()
        except Unavailable:
            sizes = [sum(len(value) for value in row if isinstance(value, str | bytes)) for row in self._late]
            size = sum(sizes)
            for one in sizes:
                if len(self._late) <= LATE and size <= LATE_SIZE:
                    return
                self._late.popleft()
                size -= one

    def find(self, statement_id: str) -> Statement | None:
        record = self._at_hand(statement_id)
        if record is not None:
            return record
        rows = self._storage.read(f"SELECT {COLUMNS} FROM statements WHERE id = ?", (statement_id,))
        return self._restored(rows[0]) if rows else None

    async def look_up(self, statement_id: str) -> Statement | None:
        """find(), while the event loop goes on. Raises StorageError."""
        record = self._at_hand(statement_id)
        return record if record is not None else await self._storage.run_async(lambda: self.find(statement_id))

    def running(self) -> list[Statement]:
        return list(self._running.values())

    def latest(self, organization: str, number: int) -> list[Statement]:
        """The latest records of an organization ("" for those of none), the newest first, except the TERMINATE SESSION
        of shells that exit: `number` of them, and all unfinished ones, so that each of these can be found and
        terminated. Records that are not in memory have the first LISTED characters of their text. For any thread.
        """
        # A running record may be stored with the organization of its submission, or not be stored yet.
        running = [item for item in self.running() if item.organization == organization and not _leaves(item.sql)]
        records = {item.statement_id: item for item in running}
        rows = self._storage.read(
            f"SELECT {LISTED_COLUMNS} FROM statements WHERE organization = ? AND finished > 0 "
            "AND sql NOT LIKE 'TERMINATE SESSION % WHEN IDLE' ORDER BY created DESC, id DESC LIMIT ?",
            (organization, max(0, number - len(records))),
        )
        for row in rows:
            records.setdefault(row[0], self._at_hand(row[0]) or self._restored(row))
        return sorted(records.values(), key=lambda item: item.created, reverse=True)

    def sweep(self, retention: float, quota: int, records: int) -> bool:
        """Remove some expired records; returns whether there are more.

        These are the finished records that are older than `retention` seconds, and the oldest of each organization that
        exceeds `quota` bytes or a number of `records`.
        """
        oldest = time.time() - retention
        rows = self._storage.read(f"{self._swept} finished < ? ORDER BY finished LIMIT ?", (oldest, SWEEP_BATCH))
        self._forget(rows)
        more = len(rows) == SWEEP_BATCH
        for organization, kept in list(self._kept.items()):
            number, size = kept.number - records, kept.size - quota
            if number <= 0 and size <= 0:
                continue
            rows = self._storage.read(
                f"{self._swept} organization = ? ORDER BY finished LIMIT ?", (organization, SWEEP_BATCH)
            )
            gone = []
            for row in rows:
                if number <= 0 and size <= 0:
                    break
                gone.append(row)
                number, size = number - 1, size - row[2]
            self._forget(gone)
            more = more or (len(gone) == SWEEP_BATCH and (number > 0 or size > 0))
        self._write_late()
        return more

    def _forget(self, rows: Sequence[Row]) -> None:
        """Remove finished records and their results."""
        self._storage.write_all(DELETED, [row[:1] for row in rows])
        for statement_id, organization, size in rows:
            record = self._recent.get(statement_id)
            self._let_go(statement_id)
            if record is not None:
                record.spool.drop()
            # If its process was killed after it stored the result, the record knows of no file.
            self._place(organization, statement_id).remove()
            self._kept_of(organization).add(-1, -size)

    def _kept_of(self, organization: str) -> StatementLoad:
        return self._kept.setdefault(organization, StatementLoad())

    def known(self, organization: str) -> set[str]:
        """The IDs of an organization's statements."""
        return {
            row[0] for row in self._storage.read("SELECT id FROM statements WHERE organization = ?", (organization,))
        }

    def keep_only(self, organizations: Collection[str]) -> None:
        """Remove the finished records of dropped organizations; most are already deleted in the storage."""
        gone = self._kept.keys() - organizations - {""}
        for organization in gone:
            self._storage.write("DELETE FROM statements WHERE organization = ? AND finished > 0", (organization,))
            del self._kept[organization]
        if gone:
            for statement_id in [key for key, record in self._recent.items() if record.organization in gone]:
                self._let_go(statement_id)

    def _at_hand(self, statement_id: str) -> Statement | None:
        return self._running.get(statement_id) or self._recent.get(statement_id)

    def _add_to_counts(self, record: Statement, number: int) -> None:
        for key in (record.owner, record.organization):
            self._count(key, number, number * len(record.sql))

    def _keep(self, record: Statement, size: int) -> None:
        record.cached_parse = None
        if record.redacted is not None:
            record.sql, record.redacted = record.redacted.text, None
        record.weight = record.length + size + len(record.spool.body)
        self._recent[record.statement_id] = record
        self._recent_size += record.weight

    def _let_go(self, statement_id: str) -> None:
        record = self._recent.pop(statement_id, None)
        if record is not None:
            self._recent_size -= record.weight

    def _restored(self, row: Sequence[Any]) -> Statement:
        statement_id, organization, owner, sql, created, finished, state, message, context, *rest = row
        outcome, body, size, previous, process, operation = rest
        spool = self._place(organization, statement_id)
        record = Statement(
            sql, organization, owner, spool, _decode_context(context), statement_id, created, state, message,
            finished=finished, operation=operation, process=process, previous=previous,
        )  # fmt: skip
        if outcome is not None:
            kept = _decode_kept(outcome)
            spool.restore(kept.layout, body or b"", size)
            record.outcome = Outcome(kept.columns, tuple(kept.zoned))
        record.state = State.after(state, message)
        if not record.running:
            record.done.set()
            record.ready.set()
        return record


def _cut(message: str) -> str:
    return message if len(message) <= MESSAGE else f"{message[:MESSAGE]}… ({len(message):,} characters)"


def _leaves(sql: str) -> bool:
    return sql.startswith("TERMINATE SESSION ") and sql.endswith(" WHEN IDLE")


_WRITTEN = (
    "id, organization, owner, sql, created, finished, state, message, context, outcome, body, bytes, previous, process"
)
COLUMNS = f"{_WRITTEN}, operation"
LISTED_COLUMNS = COLUMNS.replace("sql", f"substr(sql, 1, {LISTED})").replace("body", "NULL")
DELETED = "DELETE FROM statements WHERE id = ?"
OPERATION = "UPDATE statements SET operation = ? WHERE id = ?"
INSERT = f"INSERT INTO statements ({_WRITTEN}) VALUES ({', '.join('?' * 14)})"
_CHANGED = ("organization", "state", "message", "finished", "context", "outcome", "body", "bytes")
PUT = f"{INSERT} ON CONFLICT (id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _CHANGED)}"
"""Writes a record, which may be stored already."""
