"""One statement from its submission on, and the ledger in which it stays findable."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo, ContextEcho
from sqlshell.service.engines.engine import Connection, Feed, Outcome
from sqlshell.service.results import Layout, Spool
from sqlshell.service.storage import Storage

RECENT = 1000
"""Records that are held beside those that run; the others come from the ledger when they are asked for."""

STOPPED = "the service stopped while it ran; it may have taken effect"


def _new_id() -> str:
    """A random UUID (version 4): the uuid module takes several times as long to make the text of one."""
    digits = os.urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


class Record(Struct, eq=False):
    """One statement. `state` is its sqlState: 03000 until it is done.

    `feed` is set while an endless SELECT goes on: to its sender it is done, for it has all that it will get by the
    interface; its state of 03000 ends with the query. `timezone` is what its request asked for, "" where that is not
    known any more; the context has the zone in which it ran.
    """

    sql: str
    organization: str
    owner: str
    spool: Spool
    context: ContextEcho
    statement_id: str = field(default_factory=_new_id)
    created: float = field(default_factory=time.time)
    state: str = sqlstate.RUNNING
    message: str = ""
    outcome: Outcome | None = None
    connection: Connection | None = None
    feed: Feed | None = None
    ending: bool = False
    timed_out: bool = False
    started: bool = False
    finished: float = 0.0
    seconds: float = 0.0
    """How long it ran; known of the statements of a batch."""
    timezone: str = ""
    done: asyncio.Event = field(default_factory=asyncio.Event)
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when there is an answer: at the end, or when an endless SELECT has begun."""

    @property
    def running(self) -> bool:
        return self.state == sqlstate.RUNNING

    def zone(self, asked: str) -> str:
        """The zone in which to render instants for who asks for `asked`, "" being no wish.

        Who asks for the zone of the statement's request gets the one that SET TimeZone had put in its place.
        """
        ran_in = self.context.timezone or ""
        return ran_in if ran_in and asked in {"", self.timezone} else asked or "UTC"

    @property
    def status(self) -> str:
        """Its state in a word, as LIST QUERIES has it."""
        if self.running:
            return "running" if self.started else "queued"
        if self.state == sqlstate.CANCELLED:
            return "terminated"
        return "failed" if sqlstate.failed(self.state) else "completed"


class _Kept(msgspec.Struct, omit_defaults=True):
    """What the ledger keeps of an outcome."""

    columns: list[ColumnInfo] | None = None
    zoned: list[Any] = []
    layout: Layout = msgspec.field(default_factory=Layout)


_decode_kept = msgspec.json.Decoder(_Kept).decode
_decode_context = msgspec.json.Decoder(ContextEcho).decode


class Ledger:
    """All records. `place` makes the empty spool of a statement of an organization. Used from one thread."""

    def __init__(self, storage: Storage, place: Callable[[str, str], Spool]) -> None:
        self._storage = storage
        self._place = place
        self._held: OrderedDict[str, Record] = OrderedDict()
        self._fresh: dict[str, Record] = {}
        """What runs and is not written yet."""
        storage.write(
            "UPDATE statements SET state = ?, message = ?, finished = ? WHERE state = ?",
            (sqlstate.INTERNAL, STOPPED, time.time(), sqlstate.RUNNING),
        )
        found = storage.read("SELECT count(*), coalesce(sum(bytes), 0) FROM statements")[0]
        self._number, self._size = int(found[0]), int(found[1])

    def begin(self, records: Sequence[Record]) -> None:
        """Write records before they run, where that outlives the process; else they are written when they are done."""
        self._number += len(records)
        for record in records:
            self._held[record.statement_id] = self._fresh[record.statement_id] = record
        if self._storage.durable:
            self._write_fresh()

    def finish(self, *endings: tuple[Record, str, str]) -> None:
        """Write how records ended (sqlState, message), all in one transaction; only then is it so for those who ask."""
        finished = time.time()
        updates, inserts = [], []
        for record, state, message in endings:
            outcome = record.outcome
            kept = None
            if outcome is not None and not sqlstate.failed(state) and not outcome.secret:
                kept = msgspec.json.encode(_Kept(outcome.columns, list(outcome.zoned), record.spool.layout))
            else:
                record.spool.drop()
            context = msgspec.json.encode(record.context)
            rest = (context, kept, record.spool.body, record.spool.size)
            if self._fresh.pop(record.statement_id, None) is None:
                updates.append((state, message, finished, *rest, record.statement_id))
            else:
                inserts.append((*_first(record), finished, state, message, *rest))
        if updates:
            self._storage.write_all(
                "UPDATE statements SET state = ?, message = ?, finished = ?, context = ?, outcome = ?, body = ?, "
                "bytes = ? WHERE id = ?",
                updates,
            )
        if inserts:
            self._storage.write_all(_INSERT, inserts)
        for record, state, message in endings:
            self._size += record.spool.size
            record.state, record.message, record.finished = state, message, finished
            record.done.set()
            record.ready.set()
        if len(self._held) > RECENT:
            self._let_go()

    def drop(self, records: Sequence[Record]) -> None:
        """Forget records that did not run and that nobody was told of."""
        written = [(item.statement_id,) for item in records if self._fresh.pop(item.statement_id, None) is None]
        if written:
            self._storage.write_all("DELETE FROM statements WHERE id = ?", written)
        self._number -= len(records)
        for record in records:
            self._held.pop(record.statement_id, None)

    def _write_fresh(self) -> None:
        """Write the records that run and are not written yet."""
        rows = [
            (*_first(item), 0.0, item.state, "", msgspec.json.encode(item.context), None, None, 0)
            for item in self._fresh.values()
        ]
        self._fresh.clear()
        if rows:
            self._storage.write_all(_INSERT, rows)

    def find(self, statement_id: str) -> Record | None:
        found = self._held.get(statement_id)
        if found is not None:
            return found
        rows = self._storage.read(f"SELECT {_COLUMNS} FROM statements WHERE id = ?", (statement_id,))
        return self._restored(rows[0]) if rows else None

    def running(self) -> list[Record]:
        return [record for record in self._held.values() if record.running]

    def latest(self, organization: str, number: int) -> list[Record]:
        """The latest records of an organization, the newest first, but for what shells say when they leave."""
        self._write_fresh()
        rows = self._storage.read(
            f"SELECT {_COLUMNS.replace('body', 'NULL')} FROM statements WHERE organization = ? "
            "AND sql NOT LIKE 'TERMINATE SESSION % WHEN IDLE' ORDER BY created DESC LIMIT ?",
            (organization, number),
        )
        return [self._held.get(row[0]) or self._restored(row) for row in rows]

    def sweep(self, retention: float, quota: int, records: int) -> None:
        """Forget finished records that are older than `retention`, and the oldest until the rest is within bounds."""
        number, size = self._number, self._size
        oldest = time.time() - retention
        rows = self._storage.read(
            f"SELECT {_COLUMNS} FROM statements WHERE finished > 0 ORDER BY finished LIMIT 10000"
            if size > quota or number > records
            else f"SELECT {_COLUMNS} FROM statements WHERE finished > 0 AND finished < {oldest!r} LIMIT 10000"
        )
        gone = []
        for row in rows:
            record = self._held.get(row[0]) or self._restored(row)
            if record.finished >= oldest and size <= quota and number <= records:
                break
            size, number = size - record.spool.size, number - 1
            self._held.pop(record.statement_id, None)
            record.spool.drop()
            gone.append((record.statement_id,))
        if gone:
            self._number, self._size = number, size
            self._storage.write_all("DELETE FROM statements WHERE id = ?", gone)

    def known(self, organization: str) -> set[str]:
        """The ids of an organization's statements."""
        self._write_fresh()
        return {
            row[0] for row in self._storage.read("SELECT id FROM statements WHERE organization = ?", (organization,))
        }

    def forget(self, organization: str) -> None:
        for statement_id in [key for key, record in self._held.items() if record.organization == organization]:
            del self._held[statement_id]

    def _let_go(self) -> None:
        for statement_id, record in list(self._held.items())[: len(self._held) - RECENT]:
            if not record.running:
                del self._held[statement_id]

    def _restored(self, row: Sequence[Any]) -> Record:
        statement_id, organization, owner, sql, created, finished, state, message, context, outcome, body, size = row
        spool = self._place(organization, statement_id)
        record = Record(
            sql, organization, owner, spool, _decode_context(context), statement_id, created, state, message,
            finished=finished,
        )  # fmt: skip
        if outcome is not None:
            kept = _decode_kept(outcome)
            spool.restore(kept.layout, body or b"", size)
            record.outcome = Outcome(kept.columns, tuple(kept.zoned))
        record.done.set()
        return record


def _first(record: Record) -> tuple[str, str, str, str, float]:
    """What is known of a record before it runs."""
    return record.statement_id, record.organization, record.owner, record.sql, record.created


_COLUMNS = "id, organization, owner, sql, created, finished, state, message, context, outcome, body, bytes"
_INSERT = f"INSERT INTO statements ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


async def settle(record: Record, seconds: float) -> None:
    """Wait for a record's answer, for so long at most."""
    if not record.ready.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await record.ready.wait()
