"""The store of one process among several that share their records."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

from sqlshell.interface import sqlstate
from sqlshell.service.cluster.cluster import Cluster
from sqlshell.service.results.results import Spool
from sqlshell.service.statements.statement import State, Statement
from sqlshell.service.statements.store import (
    COLUMNS,
    DELETED,
    INSERT,
    LISTED_COLUMNS,
    OPERATION,
    Ending,
    Row,
    StatementStore,
)
from sqlshell.service.storage.postgresql import PostgresqlStorage
from sqlshell.service.storage.storage import StorageError, Unavailable

_ENDED_HERE = (
    "UPDATE statements SET organization = ?, state = ?, message = ?, finished = ?, context = ?, outcome = ?, body = ?, "
    f"bytes = ? WHERE id = ? AND process = ? AND state = '{sqlstate.RUNNING}'"
)

TAKEN_OVER = "another process of the service has taken over the statement; look the statement up again"

_log = logging.getLogger("sqlshell.service")


class SharedStatementStore(StatementStore):
    """Records are written before they run and when they end. An end counts only if no other process has taken the
    statement over. The event loop does not wait for the database.
    """

    def __init__(self, storage: PostgresqlStorage, place: Callable[[str, str], Spool], cluster: Cluster) -> None:
        self._cluster = cluster
        self._shared = storage
        self._unwritten: list[Ending] = []
        """Ends that wait for the task that writes them, or for a database that responds."""
        self._writing: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        super().__init__(storage, place)

    @property
    def process(self) -> str:
        return self._cluster.id

    async def admit(self, records: Sequence[Statement]) -> None:
        """Add records. Raises Unavailable if they cannot be written: another process could not find them."""
        self._register(records)
        try:
            await self._shared.run_async(partial(self._insert, [self._row(record) for record in records]))
        except BaseException:
            # If a row was written nevertheless, the next beat finds it and ends it.
            self._unregister(records)
            raise

    def drop(self, records: Sequence[Statement]) -> None:
        self._unregister(records)
        rows = [(record.statement_id,) for record in records]
        self._start(self._write_best_effort(lambda: self._shared.write_all(DELETED, rows)))

    def note_operation(self, record: Statement, operation: str) -> None:
        record.operation = operation
        self._start(self._write_best_effort(lambda: self._shared.write(OPERATION, (operation, record.statement_id))))

    async def loads_elsewhere(self, keys: Collection[str]) -> Mapping[str, tuple[int, int]]:
        return await self._shared.run_async(lambda: self._cluster.loads(keys))

    def finish(self, *endings: tuple[Statement, str, str]) -> None:
        self._unwritten += self._prepared(endings)
        self.write_again()

    async def settled(self, record: Statement) -> None:
        if not record.unfinished:
            await record.done.wait()

    def write_again(self) -> None:
        """Begin to write the ends that are not written yet, unless that is going on."""
        if self._unwritten and (self._writing is None or self._writing.done()):
            self._writing = asyncio.ensure_future(self._write())

    async def flush(self) -> None:
        """Wait until all ends are written, if the database responds."""
        self.write_again()
        if self._writing is not None:
            await self._writing
        await asyncio.gather(*self._tasks)

    async def load_interrupted(self) -> list[Statement]:
        """interrupted(), while the event loop goes on. Raises StorageError."""
        return self._mark_running(await self._shared.run_async(self._stored_as_running))

    def latest(self, organization: str, number: int) -> list[Statement]:
        rows = self._storage.read(
            f"SELECT {LISTED_COLUMNS} FROM statements WHERE organization = ? AND state = ? AND process <> ?",
            (organization, sqlstate.RUNNING, self.process),
        )
        elsewhere = [self._restored(row) for row in rows]
        have_slots = self._cluster.have_slots([item.statement_id for item in elsewhere]) if elsewhere else ()
        for item in elsewhere:
            item.state = State.RUNNING if item.statement_id in have_slots else State.SUBMITTED
        return sorted(elsewhere + super().latest(organization, number), key=lambda item: item.created, reverse=True)

    def _insert(self, rows: Sequence[Row]) -> None:
        """Write new records, for any thread. Raises Unavailable if this process has lost its lease: others may run
        statements of the same session already.
        """
        if len(rows) == 1:
            held = bool(self._shared.write(_INSERT_HERE, (*rows[0], self.process)))
        else:
            held = self._cluster.holds_lease()
            if held:
                self._shared.write_all(INSERT, rows)
        if not held:
            raise Unavailable("this process of the service has lost its lease")

    async def _write(self) -> None:
        """Write ends together, as they arrive, until all are written or the database does not respond."""
        most: int | None = None
        while self._unwritten:
            endings = self._unwritten[:most]
            try:
                results = await self._shared.run_async(partial(self._write_ends, endings))
            except Unavailable:
                # The next beat begins again.
                return
            except StorageError as error:
                if len(endings) > 1:
                    # One of them is refused: the others are written without it.
                    most = 1
                    continue
                self._refuse(endings[0], error)
                results = [True]
            del self._unwritten[: len(endings)]
            self._settle_as(endings, results)

    def _refuse(self, ending: Ending, error: StorageError) -> None:
        """Give a statement whose end the database refuses an end for the clients of this process."""
        _log.warning("cannot record the outcome of statement %s: %s", ending.record.statement_id, error)
        ending.record.outcome = None
        ending.record.spool.drop()
        ending.state, ending.message = sqlstate.INTERNAL, "the result cannot be stored in the database of the service"

    def _write_ends(self, endings: Sequence[Ending]) -> list[Statement | bool | None]:
        """Write ends, for any thread; returns True for each, or, for a statement that is recorded already by another
        process that has taken it over or by an earlier attempt of this one, its record as far as it is known.
        """
        rows = []
        for item in endings:
            statement_id, organization, _, _, _, finished, state, message, *result, _, process = item.row
            rows.append((organization, state, message, finished, *result, statement_id, process))
        changed = self._shared.write_each(_ENDED_HERE, rows)
        return [bool(number) or self._taken_over(item.record) for item, number in zip(endings, changed, strict=True)]

    def _taken_over(self, record: Statement) -> Statement | None:
        rows = self._storage.read(f"SELECT {COLUMNS} FROM statements WHERE id = ?", (record.statement_id,))
        stored = self._restored(rows[0]) if rows else None
        return None if stored is None or stored.running else stored

    def _settle_as(self, endings: Sequence[Ending], results: Sequence[Statement | bool | None]) -> None:
        for item, stored in zip(endings, results, strict=True):
            if stored is True:
                continue
            record = item.record
            record.outcome = None
            record.spool.forget()
            item.state, item.message = sqlstate.INTERNAL, TAKEN_OVER
            if isinstance(stored, Statement):
                record.outcome, record.spool = stored.outcome, stored.spool
                item.state, item.message = stored.sql_state, stored.message
        self._settle(endings)

    async def _write_best_effort(self, work: Callable[[], object]) -> None:
        """Write what can be lost."""
        with contextlib.suppress(StorageError):
            await self._shared.run_async(work)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


_INSERT_HERE = (
    f"{INSERT.partition(' VALUES ')[0]} SELECT v.* FROM (VALUES (?, ?, ?, ?, ?::float8, ?::float8, ?, ?, ?::bytea, "
    "?::bytea, ?::bytea, ?::bigint, ?, ?)) v WHERE EXISTS (SELECT FROM processes WHERE id = ?)"
)
"""INSERT for a process that has its lease."""
