"""The periodic work of a process in a cluster: its lease, requests to cancel, and statements of dead processes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any, Protocol

from sqlshell.interface import sqlstate
from sqlshell.service.catalog import ANONYMOUS, OPERATOR
from sqlshell.service.cluster.cluster import BEAT_SECONDS, LEASE_SECONDS, Cluster
from sqlshell.service.engines.engine import CANCELED_BEFORE_START
from sqlshell.service.failure import Failure
from sqlshell.service.organizations.organizations import Organizations
from sqlshell.service.organizations.pools import Pool
from sqlshell.service.organizations.sessions import Session, Sessions
from sqlshell.service.statements.canceller import Canceller
from sqlshell.service.statements.shared_store import SharedStatementStore
from sqlshell.service.statements.statement import State, Statement
from sqlshell.service.statements.store import StatementStore
from sqlshell.service.storage.storage import StorageError, Unreachable

SLOT_SECONDS = (0.01, 0.03)
"""The shortest and the longest pause between two attempts of a process to take a slot of a pool."""

SWEEP_SECONDS = 600.0
"""How often each process looks for files in the storage of results that no statement needs."""

UNUSED_SECONDS = 60.0
"""How long a session may belong to a process that has not opened it."""

_log = logging.getLogger("sqlshell.service")


class MemberService(Protocol):
    """The part of StatementService that Membership uses."""

    organizations: Organizations
    store: StatementStore
    canceller: Canceller

    def resume(self, records: Sequence[Statement]) -> None: ...


class Membership:
    """Renews the lease, cancels what others ask to cancel, and takes over what dead processes ran."""

    def __init__(self, cluster: Cluster, statements: MemberService, sessions: Sessions) -> None:
        self._cluster = cluster
        self._statements = statements
        self._sessions = sessions
        self._tasks: set[asyncio.Task[None]] = set()
        self._beating: asyncio.Task[None] | None = None
        self._unused: dict[tuple[str, str], float] = {}
        """Sessions of this process that do not exist, and since when: their first submission was refused."""
        self._lines: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)
        """The statements of this process that wait for a slot of a pool, given by organization and name. Only the first
        one asks the database."""
        self._ending: set[tuple[str, str, bool]] = set()
        """Sessions that others asked this process to end: token, name, and whether once they are idle."""
        self._next_sweep = time.monotonic() + SWEEP_SECONDS
        self._sweeping: asyncio.Task[None] | None = None
        sessions.on_end = self._session_ended
        sessions.was_lost = cluster.was_lost
        sessions.number_elsewhere = cluster.number_elsewhere

    def start(self) -> None:
        self._beating = asyncio.ensure_future(self._beat())

    async def close(self) -> None:
        """Leave the cluster, so that others need not wait for the end of the lease."""
        if self._beating is not None:
            self._beating.cancel()
        if isinstance(self._statements.store, SharedStatementStore):
            await self._statements.store.flush()
        with contextlib.suppress(StorageError):
            await self._cluster.run_async(self._cluster.leave)

    @contextlib.asynccontextmanager
    async def slot(self, session: Session, pool: Pool, record: Statement) -> AsyncIterator[None]:
        """Hold a slot of a pool, whose number counts in all processes together. Raises Failure."""
        place = session.organization.id, pool.name
        try:
            async with self._lines[place]:
                # The concurrency of the pool may change meanwhile.
                while not await self._cluster.run_async(
                    self._cluster.take_slot, *place, pool.size.concurrency, record.statement_id
                ):
                    if record.state is State.ENDING:
                        raise Failure(sqlstate.CANCELED, CANCELED_BEFORE_START)
                    await asyncio.sleep(random.uniform(*SLOT_SECONDS))
            yield
        finally:
            with contextlib.suppress(StorageError):
                await self._cluster.run_async(self._cluster.free_slot, record.statement_id)

    async def give_up_idle_sessions(self) -> None:
        """Leave the sessions that run nothing to the other processes: this one stops."""
        idle = [item for item in self._sessions.all() if not item.waiting]
        for session in idle:
            session.ended = True
        with contextlib.suppress(StorageError):
            await self._cluster.run_async(self._cluster.give_up, [(item.caller.token_id, item.name) for item in idle])
        for session in idle:
            self._sessions.forget(session)

    async def count_kept(self) -> None:
        """Count what all processes have stored. Raises StorageError."""
        store = self._statements.store
        store.note_kept(await asyncio.to_thread(store.kept))

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
        cluster, store = self._cluster, self._statements.store
        if not await cluster.run_async(cluster.renew):
            await self._rejoin()
        dead = await cluster.run_async(cluster.take_over)
        if dead:
            _log.warning(
                "the processes at %s have not renewed their leases for %g seconds; this process ends or continues "
                "their statements",
                ", ".join(sorted(set(dead))),
                LEASE_SECONDS,
            )
            self._next_sweep = 0.0
        await cluster.run_async(cluster.tidy)
        for asked in set(await cluster.run_async(cluster.sessions_asked_to_end)) - self._ending:
            self._ending.add(asked)
            self._start(self._end_session(*asked))
        if isinstance(store, SharedStatementStore):
            store.write_again()
            self._statements.resume(await store.load_interrupted())
        if time.monotonic() > self._next_sweep and (self._sweeping is None or self._sweeping.done()):
            self._next_sweep = time.monotonic() + SWEEP_SECONDS
            self._sweeping = asyncio.ensure_future(self._sweep_results())
        asked_to_end = await cluster.run_async(cluster.asked_to_end)
        for record in store.running():
            if record.statement_id in asked_to_end:
                self._end(record)
        # Another process may have changed the concurrency of pools for which statements wait here.
        for organization in self._statements.organizations.opened():
            await organization.refresh_pools()
        await self._look_at_tokens()
        await self._give_up_sessions()

    async def _sweep_results(self) -> None:
        """Remove results that were stored, but whose statements another process has ended."""
        shared, store = self._statements.organizations.shared, self._statements.store
        assert shared is not None
        assert isinstance(store, SharedStatementStore)
        try:
            await store.flush()
            service = (await self._cluster.run_async(self._cluster.key, "service")).hex()
            await asyncio.to_thread(shared.sweep, service, self._cluster.needs_files)
        except (OSError, StorageError) as error:
            _log.warning("cannot look for results that nothing needs: %s", getattr(error, "strerror", None) or error)

    async def _give_up_sessions(self) -> None:
        """Give up sessions that have not been opened for some time."""
        now = time.monotonic()
        there = {(item.caller.token_id, item.name) for item in self._sessions.all()}
        self._unused = {key: self._unused.get(key, now) for key in self._cluster.sessions - there}
        for key, since in self._unused.items():
            if now - since > UNUSED_SECONDS:
                await self._cluster.run_async(self._cluster.end_session, *key)
        # Sessions of these tokens may have been refused because of sessions that other processes have ended meanwhile.
        for token_id in {token_id for token_id, _ in self._unused}:
            await self._cluster.run_async(self._cluster.count_elsewhere, token_id)

    async def _rejoin(self) -> None:
        """Join again with a new ID after the lease was lost; other processes have taken over the statements."""
        _log.warning("this process did not renew its lease in time; other processes have taken over its statements")
        running = self._statements.store.running()
        await self._cluster.run_async(self._cluster.rejoin)
        for session in self._sessions.all():
            session.ended = True
            self._sessions.forget(session)
        for record in running:
            self._end(record)

    async def _look_at_tokens(self) -> None:
        """Notice tokens that were dropped by another process; the next sweep ends what they have."""
        catalog = self._statements.organizations.catalog
        owners = {record.owner for record in self._statements.store.running()}
        owners |= {session.caller.token_id for session in self._sessions.all()}
        if owners := owners - catalog.dropped - {OPERATOR, ANONYMOUS}:
            organizations = self._statements.organizations
            known = await asyncio.to_thread(lambda: catalog.owners(organizations.default()))
            catalog.dropped |= owners - known.keys()

    def _end(self, record: Statement) -> None:
        canceled = record.cancel()
        if not record.started:
            self._statements.canceller.finish(record, sqlstate.CANCELED, CANCELED_BEFORE_START)
        elif canceled:
            self._statements.canceller.end_soon(record)

    async def _end_session(self, token_id: str, name: str, when_idle: bool) -> None:
        session = self._sessions.of(token_id, name)
        try:
            if session is not None:
                await self._statements.canceller.end_session(session, when_idle=when_idle)
            else:
                # The session belongs to this process but was never opened.
                await self._cluster.run_async(self._cluster.end_session, token_id, name)
            await self._cluster.run_async(self._cluster.has_ended_session, token_id, name)
        except StorageError:
            # The next beat finds the request again.
            return
        finally:
            self._ending.discard((token_id, name, when_idle))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _session_ended(self, token_id: str, name: str) -> None:
        with contextlib.suppress(StorageError):
            self._cluster.end_session(token_id, name)
