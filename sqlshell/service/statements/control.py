"""Runs statements about statements and sessions: TERMINATE, LIST QUERIES, LIST SESSIONS and DESCRIBE QUERY."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, TypeGuard

from sqlshell.interface import sqlstate
from sqlshell.service.engines.engine import CANCELED_BEFORE_START, Outcome
from sqlshell.service.failure import Failure
from sqlshell.service.objects.kind import require
from sqlshell.service.objects.listing import List
from sqlshell.service.objects.query import DescribeQuery, Query, Terminate, TerminateSession
from sqlshell.service.objects.result_rows import keep
from sqlshell.service.organizations.sessions import Session, Sessions
from sqlshell.service.rights import Rights
from sqlshell.service.statements import queries
from sqlshell.service.statements.canceller import QUERY_ENDED, TERMINATE_SECONDS, Canceller
from sqlshell.service.statements.reading_thread import ReadingThread
from sqlshell.service.statements.statement import State, Statement
from sqlshell.service.statements.store import StatementStore

if TYPE_CHECKING:
    from sqlshell.service.cluster.cluster import Cluster

ControlStatement = Terminate | TerminateSession | DescribeQuery | List
"""Statements about statements and sessions. Alone in a submission, they bypass the queues of session and pool."""


def is_control(asked: object) -> TypeGuard[ControlStatement]:
    if isinstance(asked, List):
        # The engine evaluates a condition, and SHOW may be about one of its relations.
        return asked.what in {"queries", "sessions"} and not asked.where and not asked.show
    return isinstance(asked, Terminate | TerminateSession | DescribeQuery)


class Control:
    """Runs control statements. Used from the event loop."""

    def __init__(
        self,
        sessions: Sessions,
        store: StatementStore,
        canceller: Canceller,
        thread: ReadingThread,
        cluster: Cluster | None,
    ) -> None:
        self._cluster = cluster
        self._sessions = sessions
        self._store = store
        self._canceller = canceller
        self._thread = thread

    async def run(self, session: Session, record: Statement, asked: ControlStatement) -> None:
        """Run a control statement, which does not change the context. Raises Failure."""
        organization, catalog = session.organization.id, session.organization.catalog
        # The operator needs these statements most when the storage of results cannot be used.
        record.spool.may_stay_local = True
        if isinstance(asked, TerminateSession):
            await self._terminate_session(session, record, asked)
            return
        if isinstance(asked, Terminate):
            record.start()
            record.outcome = Outcome(message=await self._terminate(session, asked.statement_id))
        elif isinstance(asked, DescribeQuery):
            target = await self.readable(session, asked.statement_id, "DESCRIBE QUERY")
            await self._look_elsewhere(target)
            record.outcome = queries.describe(target, asked.part, record.spool)
        elif asked.what == "sessions":
            owners = await catalog.run_async(lambda: catalog.owners(organization))
            running = {id(item.connection) for item in self._store.running() if item.connection is not None}
            # Several processes share an engine, and with that the only organization.
            elsewhere = () if self._cluster is None else await self._cluster.run_async(self._cluster.sessions_elsewhere)
            record.outcome = queries.list_sessions(
                self._sessions.of_organization(organization), running, owners, record.spool, elsewhere
            )
        else:
            record.outcome = await self._thread.run(partial(self._list_queries, session, record))
            self._canceller.finish(record, sqlstate.DONE, record.outcome.message)
            return
        record.spool.finish()
        self._canceller.finish(record, sqlstate.DONE, record.outcome.message)

    async def _look_elsewhere(self, target: Statement) -> None:
        """Note whether another process of the service runs a statement."""
        if self._cluster is not None and target.running and target.process not in {"", self._cluster.id}:
            running = await self._cluster.run_async(self._cluster.have_slots, [target.statement_id])
            target.state = State.RUNNING if running else State.SUBMITTED

    async def readable(self, session: Session, statement_id: str, what: str) -> Statement:
        """A statement that the session may read. Raises Failure."""
        target = await self._target(session, statement_id)
        if not queries.may_read(session, target):
            require(session, Rights.OBJECTS, f"{what} of another token's statement")
        return target

    def _list_queries(self, session: Session, record: Statement) -> Outcome:
        """LIST QUERIES, in a thread: making a thousand rows takes a while."""
        records = self._store.latest(session.organization.id, 1001)
        if not session.caller.organization:
            records = sorted(records + self._store.latest("", 1001), key=lambda item: item.created, reverse=True)
        # LIST QUERIES does not list itself.
        records = [item for item in records if item is not record]
        outcome = keep(Query.listing, queries.listed(records, session), record.spool)
        record.spool.finish()
        return outcome

    async def _target(self, session: Session, statement_id: str) -> Statement:
        target = await self._store.look_up(statement_id.lower())
        if target is None or not session.caller.may_see(target.organization):
            raise Failure(sqlstate.NO_QUERY, f"query {statement_id!r} does not exist")
        return target

    async def _terminate(self, session: Session, statement_id: str) -> str:
        """Cancel a statement; returns a message with its state."""
        target = await self._target(session, statement_id)
        if target.owner != session.caller.token_id:
            require(session, Rights.DATA, "TERMINATE QUERY of another token's statement")
        if target.running:
            target.cancel()
            if self._cluster is not None and target.process not in {"", self._cluster.id}:
                target = await self._ended_elsewhere(self._cluster, target)
            elif target.feed is not None:
                await self._canceller.end_stream_query(target, sqlstate.CANCELED, QUERY_ENDED)
            elif not target.started:
                self._canceller.finish(target, sqlstate.CANCELED, CANCELED_BEFORE_START)
                await self._store.settled(target)
            else:
                await self._canceller.until_ended(target)
        meaning = "is still running" if target.running else f"has state {target.sql_state}"
        return f"query {statement_id} {meaning} ({sqlstate.meaning(target.sql_state)})"

    async def _ended_elsewhere(self, cluster: Cluster, target: Statement) -> Statement:
        """Have another process cancel a statement; returns its record as it is then."""
        await cluster.run_async(cluster.ask_to_end, target.statement_id)
        until = time.monotonic() + TERMINATE_SECONDS
        while target.running and time.monotonic() < until:
            await asyncio.sleep(0.1)
            target = await self._store.look_up(target.statement_id) or target
        return target

    async def _terminate_session(self, session: Session, record: Statement, asked: TerminateSession) -> None:
        """Terminate a session: at once, canceling its statements, or once they have finished. Raises Failure."""
        # Several processes share an engine, and with that the only organization.
        known = () if self._cluster is None else await self._cluster.run_async(self._cluster.sessions_elsewhere)
        elsewhere = {token for token, name in known if name == asked.name}
        owner = self._sessions.owner_of(asked.name, session, elsewhere)
        if owner != session.caller.token_id:
            require(session, Rights.OBJECTS, "TERMINATE SESSION of another token's session")
        record.start()
        target = self._sessions.of(owner, asked.name)
        if target is not None:
            await self._canceller.end_session(target, when_idle=asked.when_idle, besides=record)
        elif self._cluster is not None:
            await self._end_session_elsewhere(self._cluster, owner, asked)
        record.outcome = Outcome(message="TERMINATE SESSION")
        record.spool.finish()
        self._canceller.finish(record, sqlstate.DONE, record.outcome.message)

    @staticmethod
    async def _end_session_elsewhere(cluster: Cluster, owner: str, asked: TerminateSession) -> None:
        """Have another process end a session. Raises Failure if it has not done so in time."""
        await cluster.run_async(cluster.ask_to_end_session, owner, asked.name, asked.when_idle)
        until = time.monotonic() + TERMINATE_SECONDS
        while await cluster.run_async(cluster.is_asked_to_end_session, owner, asked.name):
            if time.monotonic() > until:
                message = (
                    f"another process of the service has not ended session {asked.name!r} yet, and will do so when it "
                    "responds; LIST SESSIONS shows whether the session still exists"
                )
                raise Failure(sqlstate.TIMEOUT, message)
            await asyncio.sleep(0.1)
