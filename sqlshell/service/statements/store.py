"""Stores all statements."""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo, ContextEcho
from sqlshell.service.engines.engine import Outcome
from sqlshell.service.failure import Failure
from sqlshell.service.organizations.sessions import Session
from sqlshell.service.results.results import Layout, Spool
from sqlshell.service.statements.statement import LISTED, NOT_BEGUN, State, Statement, bytes_of
from sqlshell.service.storage.storage import Storage, StorageError, Unavailable

UNREAD = 1000
"""The number of finished statements in memory whose secrets their owners have yet to look up."""

SWEEP_BATCH = 500
"""The maximum number of statements that are removed at once, which blocks the event loop."""

LATE, LATE_SIZE = 1000, 16 << 20
"""The number of ends that are kept in memory while the disk is full, and the size of their texts and rows in characters
and bytes."""

MESSAGE = 10_000
"""Characters that are stored of a message: a statement can cause an error of any length."""

Row = tuple[Any, ...]


class StatementLoad(Struct):
    """A number of statements, and the size of their texts: those that a token or organization has running (in
    characters), or what is stored of an organization (in bytes)."""

    number: int = 0
    size: int = 0

    def add(self, number: int, size: int) -> None:
        self.number += number
        self.size += size


class _Kept(Struct, omit_defaults=True):
    """The stored part of an outcome, and of a statement that has one."""

    columns: list[ColumnInfo] | None = None
    zoned: list[Any] = []
    layout: Layout = msgspec.field(default_factory=Layout)
    timezone: str = ""
    seconds: float = 0.0


class Ending(Struct):
    """How a statement ends: `row` has the values of PUT, and `size` the bytes of what is stored besides its rows."""

    statement: Statement
    state: str
    message: str
    finished: float
    row: Row
    size: int


_decode_kept = msgspec.json.Decoder(_Kept).decode
_decode_context = msgspec.json.Decoder(ContextEcho).decode


class StatementStore:
    """All statements. `place` creates the empty spool of a statement of an organization. Used from one thread, except
    latest().
    """

    def __init__(self, storage: Storage, place: Callable[[str, str], Spool]) -> None:
        self._storage = storage
        self.place = place
        texts = (f"coalesce({storage.size_of(name)}, 0)" for name in ("sql", "message", "context", "outcome"))
        self._size = " + ".join(("bytes", *texts))
        """SQL for the bytes of a statement that count against its organization's quota: its rows, and its texts as they
        are stored."""
        self._swept = f"SELECT id, organization, {self._size} FROM statements WHERE finished > 0 AND"
        self._selected = f"SELECT {_WRITTEN}, operation FROM statements"
        self._listed = self._selected.replace(" sql", f" substr(sql, 1, {LISTED})").replace("body", "NULL")
        self._running: dict[str, Statement] = {}
        self._unread: dict[str, Statement] = {}
        """Finished statements with secrets that were not sent yet."""
        self.finished = 0
        """How many statements have finished."""
        self.unswept = 0
        """The bytes of the results that were stored since sweep() was last called."""
        self._loads: dict[str, StatementLoad] = {}
        self._late: deque[Row] = deque()
        """The values of PUT for ends that are not written, because the disk is full."""
        self._kept: defaultdict[str, StatementLoad]
        # A storage that cannot be written is noticed at the start.
        storage.write(
            "UPDATE statements SET process = ? WHERE process = ? AND state = ?",
            (self.process, self.process, sqlstate.RUNNING),
        )
        self.count_kept()

    @property
    def process(self) -> str:
        """The process whose statements these are, if several share the storage, else ""."""
        return ""

    async def interrupted(self) -> list[Statement]:
        """The statements that another process had when it ended; they are running again from now on. Raises
        StorageError.
        """
        sql = f"{self._selected} WHERE state = ? AND process = ?"
        rows = await self._storage.run_async(lambda: self._storage.read(sql, (sqlstate.RUNNING, self.process)))
        # A statement that has ended since the rows were read is at hand too.
        statements = [self._restored(row) for row in rows if self._at_hand(row[0]) is None]
        for statement in statements:
            self._enter(statement)
        return statements

    def note_operation(self, statement: Statement, operation: str) -> None:
        """Store the engine's ID of what it runs for a statement, so that it can be resumed."""
        statement.operation = operation
        self._write_soon(lambda: self._storage.write(OPERATION, (operation, statement.statement_id)))

    def _write_soon(self, work: Callable[[], object]) -> None:
        """Write what can be lost."""
        with contextlib.suppress(StorageError):
            work()

    def count_kept(self) -> None:
        """Count the stored statements of each organization, and their bytes. For any thread. Raises StorageError."""
        counted = self._storage.read(
            f"SELECT organization, count(*), sum({self._size}) FROM statements GROUP BY organization"
        )
        found = {organization: StatementLoad(int(number), int(size)) for organization, number, size in counted}
        self._kept = defaultdict(StatementLoad, found)

    async def admit(self, statements: Sequence[Statement]) -> None:
        """Add statements. With durable storage they are written before they run, otherwise when they have finished.

        If the disk is full they run nevertheless, and are written once there is space. Statements that several
        processes share must be written: then it raises Unavailable.
        """
        self._register(statements)
        if self._storage.durable:
            with contextlib.suppress(Unavailable):
                self._storage.write_all(PUT, [self._row(statement, begun=False) for statement in statements])
                for statement in statements:
                    statement.queued = True

    async def note_begun(self, statements: Sequence[Statement]) -> None:
        """Store that statements begin: if this process is killed from now on, they may have taken effect. Raises
        Failure if another process has ended one, StorageError: a statement whose row says that it has not begun must
        not run."""
        for statement in statements:
            if statement.queued:
                write = partial(self._storage.write, BEGUN, (statement.statement_id, self.process))
                if not await self._storage.run_async(write):
                    raise Failure(sqlstate.CANCELED, NOT_BEGUN)
                statement.queued = False

    def end(self, statement: Statement, sql_state: str, message: str, session: Session | None = None) -> None:
        """Finish a statement with a sqlState and message, in the context of its session if one is given, unless it has
        an end already. The end is written before clients see it."""
        if statement.unfinished and session is not None:
            statement.context = session.echo()
        if statement.move_to(State.after(sql_state)):
            self.finished += 1
            self._write_end(self._ending(statement, sql_state, message))

    def _write_end(self, ending: Ending) -> None:
        """Write an end, and give it to its statement."""
        self._late.append(ending.row)
        self._write_late()
        self._settle(ending)

    async def settled(self, statement: Statement) -> None:
        """Wait until the end of a statement is written, if it has one."""

    def _ending(self, statement: Statement, state: str, message: str) -> Ending:
        """The end of a statement, as it is to be written."""
        finished = time.time()
        if statement.redacted is not None:
            message = statement.redacted.clean(state, message)
        if len(message) > MESSAGE:
            message = f"{message[:MESSAGE]}… ({len(message):,} characters)"
        if statement.began and not statement.seconds:
            statement.seconds = time.monotonic() - statement.began
        outcome, kept = statement.outcome, b""
        stored = _Kept(timezone=statement.timezone, seconds=round(statement.seconds, 6))
        if outcome is not None and not sqlstate.failed(state):
            stored.columns, stored.zoned, stored.layout = outcome.columns, list(outcome.zoned), statement.spool.layout
            kept = msgspec.json.encode(stored)
        else:
            statement.spool.drop()
            kept = msgspec.json.encode(stored) if stored.seconds else b""
        row = self._row(statement, finished, state, message, kept or None)
        return Ending(statement, state, message, finished, row, bytes_of(message) + len(row[8]) + len(kept))

    def _settle(self, ending: Ending) -> None:
        """Give a statement its end, which is written."""
        statement = ending.statement
        self._kept[statement.organization].add(0, statement.spool.size + ending.size)
        self.unswept += statement.spool.size
        statement.sql_state, statement.message, statement.finished = ending.state, ending.message, ending.finished
        statement.state = State.after(ending.state)
        statement.ready.set()
        if self._leave(statement):
            if statement.redacted is not None:
                statement.sql, statement.redacted = statement.redacted.text, None
            if statement.secret is not None:
                self._unread[statement.statement_id] = statement
        if len(self._unread) > UNREAD:
            unread = [(key, item) for key, item in self._unread.items() if item.secret is not None]
            self._unread = dict(unread[-UNREAD:])

    def move(self, statement: Statement, organization: str) -> bool:
        """Assign a statement that has not run yet to an organization; returns False if it has an end or is there."""
        if statement.organization == organization or statement.statement_id not in self._running:
            return False
        self._unregister([statement])
        statement.organization = organization
        statement.spool = self.place(organization, statement.statement_id)
        self._register([statement])
        return True

    def drop(self, statements: Sequence[Statement]) -> None:
        """Remove statements that did not run and were not reported to the client."""
        self._unregister(statements)
        rows = [(statement.statement_id,) for statement in statements]
        self._write_soon(lambda: self._storage.write_all(DELETED, rows))

    def _register(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            self._kept[statement.organization].add(1, bytes_of(statement.text))
            self._enter(statement)

    def _unregister(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            self._kept[statement.organization].add(-1, -bytes_of(statement.text))
            self._leave(statement)

    def loads(self, keys: Collection[str]) -> Mapping[str, StatementLoad]:
        """The loads of tokens and organizations by their IDs, as far as this process knows them."""
        return {key: self._loads.get(key) or StatementLoad() for key in keys}

    def _enter(self, statement: Statement) -> None:
        """Note that a statement is running, in the loads of its token and organization too."""
        self._running[statement.statement_id] = statement
        for key in (statement.owner, statement.organization):
            self._loads.setdefault(key, StatementLoad()).add(1, len(statement.sql))

    def _leave(self, statement: Statement) -> bool:
        """Note that a statement is no longer running; returns whether it was."""
        if self._running.pop(statement.statement_id, None) is None:
            return False
        for key in (statement.owner, statement.organization):
            load = self._loads[key]
            load.add(-1, -len(statement.sql))
            if not load.number:
                del self._loads[key]
        return True

    def _row(
        self,
        statement: Statement,
        finished: float = 0.0,
        state: str = sqlstate.RUNNING,
        message: str = "",
        kept: bytes | None = None,
        *,
        begun: bool = True,
    ) -> Row:
        """The values of PUT for a statement."""
        first = statement.statement_id, statement.organization, statement.owner, statement.text, statement.created
        context, spool = msgspec.json.encode(statement.context), statement.spool
        rows = (spool.body, spool.size) if finished else (None, 0)
        return (*first, finished, state, message, context, kept, *rows, self.process, begun)

    def _write_late(self) -> None:
        """Write the ends that are not written; if the disk is full, the latest ones stay pending."""
        try:
            self._storage.write_all(PUT, self._late)
            self._late.clear()
        except Unavailable:
            sizes = deque(sum(len(value) for value in row if isinstance(value, str | bytes)) for row in self._late)
            while len(sizes) > LATE or sum(sizes) > LATE_SIZE:
                sizes.popleft()
                self._late.popleft()

    def find(self, statement_id: str) -> Statement | None:
        return self._at_hand(statement_id) or self._stored(statement_id)

    async def look_up(self, statement_id: str) -> Statement | None:
        """find(), while the event loop goes on. Raises StorageError."""
        at_hand = self._at_hand(statement_id)
        return at_hand or await self._storage.run_async(lambda: self._stored(statement_id))

    def _stored(self, statement_id: str) -> Statement | None:
        rows = [(*row, "") for row in self._late if row[0] == statement_id]
        rows = rows or self._storage.read(f"{self._selected} WHERE id = ?", (statement_id,))
        return self._restored(rows[-1]) if rows else None

    def running(self) -> list[Statement]:
        return list(self._running.values())

    def latest(self, organization: str, number: int) -> list[Statement]:
        """The latest statements of an organization ("" for those of none), the newest first, except the TERMINATE
        SESSION of shells that exit: `number` of them, and all unfinished ones, so that each of these can be found and
        terminated. Those that are not in memory have the first LISTED characters of their text. For any thread.
        """
        # A running statement may be stored with the organization of its submission, or not be stored yet.
        running = [item for item in self.running() if item.organization == organization and not _leaves(item.sql)]
        statements = {item.statement_id: item for item in running}
        rows = self._storage.read(
            f"{self._listed} WHERE organization = ? AND finished > 0 "
            "AND sql NOT LIKE 'TERMINATE SESSION % WHEN IDLE' ORDER BY created DESC, id DESC LIMIT ?",
            (organization, max(0, number - len(statements))),
        )
        for row in rows:
            statements.setdefault(row[0], self._at_hand(row[0]) or self._restored(row))
        return sorted(statements.values(), key=lambda item: item.created, reverse=True)

    def sweep(self, retention: float, quota: int, most: int) -> bool:
        """Remove some expired statements; returns whether there are more.

        These are the finished ones that are older than `retention` seconds, and the oldest of each organization that
        has more than `quota` bytes or than `most` statements.
        """
        self.unswept = 0
        oldest = time.time() - retention
        rows = self._storage.read(f"{self._swept} finished < ? ORDER BY finished LIMIT ?", (oldest, SWEEP_BATCH))
        self._forget(rows)
        more = len(rows) == SWEEP_BATCH
        for organization, kept in list(self._kept.items()):
            number, size = kept.number - most, kept.size - quota
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
        """Remove finished statements and their results."""
        self._storage.write_all(DELETED, [row[:1] for row in rows])
        for statement_id, organization, size in rows:
            self._unread.pop(statement_id, None)
            # If its process was killed after it stored the result, its row knows of no file.
            self.place(organization, statement_id).remove()
            self._kept[organization].add(-1, -size)

    def known(self, organization: str) -> set[str]:
        """The IDs of an organization's statements."""
        rows = self._storage.read("SELECT id FROM statements WHERE organization = ?", (organization,))
        return {row[0] for row in rows}

    def keep_only(self, organizations: Collection[str]) -> None:
        """Remove the finished statements of dropped organizations; most are already deleted in the storage."""
        gone = self._kept.keys() - organizations - {""}
        for organization in gone:
            self._storage.write("DELETE FROM statements WHERE organization = ? AND finished > 0", (organization,))
            del self._kept[organization]

    def _at_hand(self, statement_id: str) -> Statement | None:
        return self._running.get(statement_id) or self._unread.get(statement_id)

    def _restored(self, row: Row) -> Statement:
        statement_id, organization, owner, sql, created, finished, state, message, context, *rest = row
        kept, body, size, process, begun, operation = rest
        is_running = state == sqlstate.RUNNING
        known = State.RUNNING if is_running and begun else State.after(state)
        spool = self.place(organization, statement_id)
        statement = Statement(
            sql, organization, owner, spool, _decode_context(context), statement_id, created, state,
            message, known, finished=finished, operation=operation, process=process, queued=is_running and not begun,
        )  # fmt: skip
        if kept is not None:
            stored = _decode_kept(kept)
            statement.timezone, statement.seconds = stored.timezone, stored.seconds
            if not sqlstate.failed(state):
                spool.restore(stored.layout, body or b"", size)
                statement.outcome = Outcome(stored.columns, tuple(stored.zoned))
        if not statement.running:
            statement.ready.set()
        return statement


def _leaves(sql: str) -> bool:
    return sql.startswith("TERMINATE SESSION ") and sql.endswith(" WHEN IDLE")


_WRITTEN = (
    "id, organization, owner, sql, created, finished, state, message, context, outcome, body, bytes, process, begun"
)
DELETED = "DELETE FROM statements WHERE id = ?"
BEGUN = f"UPDATE statements SET begun = TRUE WHERE id = ? AND process = ? AND state = '{sqlstate.RUNNING}'"
OPERATION = "UPDATE statements SET operation = ? WHERE id = ?"
INSERT = f"INSERT INTO statements ({_WRITTEN}) VALUES ({', '.join('?' * 14)})"
_CHANGED = ("organization", "state", "message", "finished", "context", "outcome", "body", "bytes")
PUT = f"{INSERT} ON CONFLICT (id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in _CHANGED)}"
"""Writes a statement, which may be stored already."""
