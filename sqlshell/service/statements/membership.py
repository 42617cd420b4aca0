"""One process among several that share their statements: its store, and its periodic work. It renews its lease, cancels
what others ask it to cancel, and goes on with the statements of dead processes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from functools import partial

from sqlshell.errors import reason
from sqlshell.interface import sqlstate
from sqlshell.runtime.event_loops import spawn
from sqlshell.service.catalog import ANONYMOUS, OPERATOR
from sqlshell.service.cluster.cluster import BEAT_SECONDS, LEASE_SECONDS, Cluster
from sqlshell.service.organizations.organizations import Organizations
from sqlshell.service.organizations.sessions import Sessions
from sqlshell.service.results.results import Spool
from sqlshell.service.statements.control import Control
from sqlshell.service.statements.runner import Runner
from sqlshell.service.statements.statement import Statement
from sqlshell.service.statements.store import (
    INSERT,
    Ending,
    Row,
    StatementStore,
)
from sqlshell.service.storage.postgresql import PostgresqlStorage
from sqlshell.service.storage.storage import StorageError, Unavailable, Unreachable

SWEEP_SECONDS = 600.0
"""How often each process looks for files in the storage of results that no statement needs."""

UNUSED_SECONDS = 60.0
"""How long a session may belong to a process that has not opened it."""

_ENDED_HERE = (
    "UPDATE statements SET organization = ?, state = ?, message = ?, finished = ?, context = ?, outcome = ?, body = ?, "
    f"bytes = ? WHERE id = ? AND process = ? AND state = '{sqlstate.RUNNING}'"
)

TAKEN_OVER = "another process of the service has taken over the statement; look the statement up again"

_INSERT_HERE = (
    f"{INSERT.partition(' VALUES ')[0]} SELECT v.* FROM (VALUES (?, ?, ?, ?, ?::float8, ?::float8, ?, ?, ?::bytea, "
    "?::bytea, ?::bytea, ?::bigint, ?, ?::boolean)) v WHERE EXISTS (SELECT FROM processes WHERE id = ?)"
)
"""INSERT for a process that has its lease."""

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

    async def admit(self, statements: Sequence[Statement]) -> None:
        """Add statements. Raises Unavailable if they cannot be written: another process could not find them."""
        self._register(statements)
        rows = [self._row(statement, begun=False) for statement in statements]
        try:
            await self._shared.run_async(partial(self._insert, rows))
        except BaseException:
            # If a row was written nevertheless, the next beat finds it and ends it.
            self._unregister(statements)
            raise
        for statement in statements:
            statement.queued = True

    def _write_soon(self, work: Callable[[], object]) -> None:
        async def write() -> None:
            with contextlib.suppress(StorageError):
                await self._shared.run_async(work)

        spawn(write(), self._tasks)

    def _write_end(self, ending: Ending) -> None:
        self._unwritten.append(ending)
        self.write_again()

    async def settled(self, statement: Statement) -> None:
        if not statement.unfinished:
            await statement.ready.wait()

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

    def latest(self, organization: str, number: int) -> list[Statement]:
        rows = self._storage.read(
            f"{self._listed} WHERE organization = ? AND state = ? AND process <> ?",
            (organization, sqlstate.RUNNING, self.process),
        )
        elsewhere = [self._restored(row) for row in rows]
        return sorted(elsewhere + super().latest(organization, number), key=lambda item: item.created, reverse=True)

    def _insert(self, rows: Sequence[Row]) -> None:
        """Write new statements, for any thread. Raises Unavailable if this process has lost its lease: others may run
        statements of the same session already.
        """
        written = self._shared.write_each(_INSERT_HERE, [(*row, self.process) for row in rows])
        if not all(written):
            raise Unavailable("this process did not report to the database of --state-url in time")

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
        _log.warning("cannot record the outcome of statement %s: %s", ending.statement.statement_id, error)
        ending.statement.outcome = None
        ending.statement.spool.drop()
        ending.state, ending.message = sqlstate.INTERNAL, "the result cannot be stored in the database of the service"

    def _write_ends(self, endings: Sequence[Ending]) -> list[Statement | bool | None]:
        """Write ends, for any thread; returns True for each, or, for a statement that is recorded already by another
        process that has taken it over or by an earlier attempt of this one, its statement as far as it is known.
        """
        rows = []
        for item in endings:
            statement_id, organization, _, _, _, finished, state, message, *result, process, _ = item.row
            rows.append((organization, state, message, finished, *result, statement_id, process))
        changed = self._shared.write_each(_ENDED_HERE, rows)
        return [bool(number) or self._taken_over(item.statement) for item, number in zip(endings, changed, strict=True)]

    def _taken_over(self, statement: Statement) -> Statement | None:
        stored = self._stored(statement.statement_id)
        return None if stored is None or stored.running else stored

    def _settle_as(self, endings: Sequence[Ending], results: Sequence[Statement | bool | None]) -> None:
        for item, stored in zip(endings, results, strict=True):
            if stored is True:
                continue
            statement = item.statement
            statement.outcome = None
            statement.spool.forget()
            item.state, item.message = sqlstate.INTERNAL, TAKEN_OVER
            if isinstance(stored, Statement):
                statement.outcome, statement.spool = stored.outcome, stored.spool
                item.state, item.message = stored.sql_state, stored.message
        for item in endings:
            self._settle(item)


class Membership:
    """Renews the lease, cancels what others ask to cancel, and takes over what dead processes ran."""

    def __init__(
        self,
        cluster: Cluster,
        organizations: Organizations,
        sessions: Sessions,
        store: SharedStatementStore,
        control: Control,
        runner: Runner,
    ) -> None:
        self._cluster = cluster
        self._organizations = organizations
        self._sessions = sessions
        self._store = store
        self._control = control
        self._runner = runner
        self._beating: asyncio.Task[None] | None = None
        self._unused: dict[tuple[str, str], float] = {}
        """Sessions of this process that do not exist, and since when: their first submission was refused."""
        self._ending: set[tuple[str, str, bool]] = set()
        """Sessions that others asked this process to end: token, name, and whether once they are idle."""
        self._next_sweep = time.monotonic() + SWEEP_SECONDS
        self._sweeping: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._beating = asyncio.ensure_future(self._beat())

    async def close(self) -> None:
        """Leave the cluster, so that others need not wait for the end of the lease."""
        if self._beating is not None:
            self._beating.cancel()
        await self._store.flush()
        with contextlib.suppress(StorageError):
            await self._cluster.run_async(self._cluster.leave)

    async def give_up_idle_sessions(self) -> None:
        """Leave the sessions that run nothing to the other processes: this one stops."""
        idle = [item for item in self._sessions.all() if not item.waiting]
        for session in idle:
            session.ended = True
        with contextlib.suppress(StorageError):
            await self._cluster.run_async(self._cluster.give_up, [(item.caller.token_id, item.name) for item in idle])
        for session in idle:
            self._sessions.forget(session)

    async def _beat(self) -> None:
        failed = False
        while True:
            try:
                await self._look_around()
                if failed:
                    _log.info("the database of --state-url at %s responds again", self._cluster.storage.address)
                failed = False
            except StorageError as error:
                if not failed:
                    what, why = "cannot be used", str(error)
                    if isinstance(error, Unreachable):
                        what, why = "does not respond", self._cluster.storage.last_error
                    _log.warning("the database of --state-url at %s %s: %s", self._cluster.storage.address, what, why)
                failed = True
            except Exception:
                # Without the beat, others would consider this process dead.
                _log.exception("internal error while coordinating with other processes")
            await asyncio.sleep(BEAT_SECONDS)

    async def _look_around(self) -> None:
        cluster, store = self._cluster, self._store
        if not await cluster.run_async(cluster.renew):
            await self._rejoin()
        dead = await cluster.run_async(cluster.take_over)
        if dead:
            _log.warning(
                "no report for %g s from: %s; this process ends or continues their statements",
                LEASE_SECONDS,
                ", ".join(sorted(set(dead))),
            )
            self._next_sweep = 0.0
        await cluster.run_async(cluster.tidy)
        for asked in set(await cluster.run_async(cluster.sessions_asked_to_end)) - self._ending:
            self._ending.add(asked)
            self._runner.spawn(self._end_session(*asked))
        store.write_again()
        await self._runner.resume()
        if time.monotonic() > self._next_sweep and (self._sweeping is None or self._sweeping.done()):
            self._next_sweep = time.monotonic() + SWEEP_SECONDS
            self._sweeping = asyncio.ensure_future(self._sweep_results())
        asked_to_end = await cluster.run_async(cluster.asked_to_end)
        for statement in store.running():
            if statement.statement_id in asked_to_end:
                self._control.cancel_soon(statement)
        # Another process may have changed the concurrency of pools for which statements wait here.
        for organization in self._organizations.opened():
            await organization.refresh_pools()
        await self._look_at_tokens()
        await self._give_up_sessions()

    async def _sweep_results(self) -> None:
        """Remove results that were stored, but whose statements another process has ended."""
        shared = self._organizations.shared
        assert shared is not None
        try:
            await self._store.flush()
            service = (await self._cluster.run_async(self._cluster.key, "service")).hex()
            await asyncio.to_thread(shared.sweep, service, self._cluster.needs_files)
        except (OSError, StorageError) as error:
            _log.warning("cannot remove unused results: %s", reason(error))

    async def _give_up_sessions(self) -> None:
        """Give up sessions that have not been opened for some time."""
        now = time.monotonic()
        there = {(item.caller.token_id, item.name) for item in self._sessions.all()}
        self._unused = {key: self._unused.get(key, now) for key in self._cluster.sessions - there}
        for key, since in self._unused.items():
            if now - since > UNUSED_SECONDS:
                await self._cluster.run_async(self._cluster.end_session, *key)

    async def _rejoin(self) -> None:
        """Join again with a new ID after the lease was lost; other processes have taken over the statements."""
        _log.warning(
            "this process did not report to the database of --state-url in time; other processes have taken over its "
            "statements"
        )
        running = self._store.running()
        await self._cluster.run_async(self._cluster.rejoin)
        for session in self._sessions.all():
            session.ended = True
            self._sessions.forget(session)
        for statement in running:
            self._control.cancel_soon(statement)

    async def _look_at_tokens(self) -> None:
        """Notice tokens that were dropped by another process; the next sweep ends what they have."""
        catalog = self._organizations.catalog
        owners = {statement.owner for statement in self._store.running()}
        owners |= {session.caller.token_id for session in self._sessions.all()}
        if owners := owners - catalog.dropped - {OPERATOR, ANONYMOUS}:
            organizations = self._organizations
            known = await asyncio.to_thread(lambda: catalog.owners(organizations.default()))
            catalog.dropped |= owners - known.keys()

    async def _end_session(self, token_id: str, name: str, when_idle: bool) -> None:
        session = self._sessions.find(token_id, name)
        try:
            if session is not None:
                await self._control.end_session(session, when_idle=when_idle)
            else:
                # The session belongs to this process but was never opened.
                await self._cluster.run_async(self._cluster.end_session, token_id, name)
            await self._cluster.run_async(self._cluster.has_ended_session, token_id, name)
        except StorageError:
            # The next beat finds the request again.
            return
        finally:
            self._ending.discard((token_id, name, when_idle))
