"""Cancels statements, and runs statements about statements and sessions: TERMINATE, RESTART, LIST and DESCRIBE.

A query's ID is its statementID.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from sqlshell.interface import sqlstate
from sqlshell.interface.models import Parameters, StatementRequest
from sqlshell.runtime.event_loops import spawn
from sqlshell.service.catalog import Caller
from sqlshell.service.engines.engine import CANCELED_BEFORE_START, Outcome, Rights, Sink
from sqlshell.service.failure import Failure, Refusal
from sqlshell.service.objects.kind import DialectStatement, require
from sqlshell.service.objects.result_rows import Facts, keep, stamp, table
from sqlshell.service.organizations.organizations import Organizations
from sqlshell.service.organizations.sessions import Session, Sessions
from sqlshell.service.settings import limit_note
from sqlshell.service.statements.statement import LISTED, Statement, wait_for_response
from sqlshell.service.statements.store import StatementStore
from sqlshell.sql.analysis.secrets import names_secret
from sqlshell.text import MASK, format_count

if TYPE_CHECKING:
    from sqlshell.service.cluster.cluster import Cluster
    from sqlshell.service.objects.query import AboutQuery, TerminateSession

TERMINATE_SECONDS = 120.0
"""How long TERMINATE QUERY waits for the statement: an interrupt may take seconds to take effect."""

ABANDON_SECONDS = 8.0
"""How long a statement may ignore an interrupt before the process of its engine is killed."""

AGAIN_SECONDS = 0.05
SESSION_ENDED = "the session was terminated"
POOL_TIME = "statement canceled: it ran longer than the timeout of its compute pool"
UNREAD_SECONDS = 300.0
"""How long a SELECT on a stream runs without readers."""

QUERY_ENDED = (sqlstate.CANCELED, "the query was terminated")
UNREAD = (sqlstate.CANCELED, "canceled because no client was reading its result")
TOKEN_DROPPED = "the token of the statement, or its organization, was dropped"

HIDDEN = "<insufficient privilege>"
"""Shown instead of a statement that the caller may not read."""


class Control:
    """Cancels statements, and runs control statements. Used from the event loop. `submit` starts a submission."""

    def __init__(
        self,
        organizations: Organizations,
        sessions: Sessions,
        store: StatementStore,
        cluster: Cluster | None,
        submit: Callable[[StatementRequest, Caller], Coroutine[Any, Any, list[Statement]]],
    ) -> None:
        self._organizations = organizations
        self._cluster = cluster
        self._sessions = sessions
        self._store = store
        self._submit = submit
        self._ending: set[asyncio.Task[None]] = set()

    def cancel_soon(self, statement: Statement, cause: tuple[str, str] | None = None) -> None:
        """Cancel a statement as cancel() does, in a task."""
        if statement.cancel(cause):
            spawn(self.cancel(statement, cause), self._ending)

    async def cancel(self, statement: Statement, cause: tuple[str, str] | None = None) -> None:
        """Cancel a statement, with a sqlState and message if it is not for a user. Returns when it has ended, or after
        TERMINATE_SECONDS: it is interrupted until then, as an interrupt between two of its steps may be lost.
        """
        statement.cancel(cause)
        if not statement.started:
            self._store.end(statement, *(cause or (sqlstate.CANCELED, CANCELED_BEFORE_START)))
            await self._store.settled(statement)
        began = time.monotonic()
        abandoned = False
        while statement.running and time.monotonic() < began + TERMINATE_SECONDS:
            if statement.feed is not None:
                # The SELECT on a stream has its response: there is nothing to interrupt.
                self.end_stream_query(statement, *(cause or QUERY_ENDED))
                return
            if time.monotonic() > began + ABANDON_SECONDS and not abandoned:
                connection = statement.connection
                abandoned = connection is not None and connection.cancel(force=True)
            statement.interrupt()
            await wait_for_response(statement, AGAIN_SECONDS)

    def end_overdue(self) -> None:
        """Cancel the statements that have run past their deadlines."""
        now = time.monotonic()
        for statement in self._store.running():
            if statement.connection is not None and statement.deadline < now:
                seconds = self._organizations.settings.seconds
                most = format_count(seconds, "second")
                timed_out = f"statement canceled: it ran longer than {most} {limit_note('seconds')}"
                self.cancel_soon(statement, (sqlstate.TIMEOUT, timed_out if statement.most == seconds else POOL_TIME))

    async def end_dropped(self) -> None:
        """Cancel the statements of dropped tokens and of dropped organizations."""
        catalog = self._organizations.catalog
        tokens, organizations = catalog.dropped, {key for key, _ in await catalog.run_async(catalog.organizations)}
        for session in self._sessions.of_tokens(tokens):
            session.ended = True
            self._sessions.forget(session)
        for statement in self._store.running():
            organization = statement.organization
            if statement.owner in tokens or (organization and organization not in organizations):
                self.cancel_soon(statement, (sqlstate.CANCELED, TOKEN_DROPPED))
        self._store.keep_only(organizations)

    async def end_session(self, target: Session, *, when_idle: bool, besides: Statement | None = None) -> None:
        """End a session: cancel its statements, except one `besides`, or let them finish."""
        if not when_idle:
            target.ended = True
            for item in self._store.running():
                if item.connection is target.connection and item is not besides:
                    await self.cancel(item)
        self._sessions.forget(target)

    def end_stream_query(self, statement: Statement, state: str, message: str) -> None:
        """End a SELECT on a stream, and what its readers receive."""
        self._store.end(statement, state, message)
        for organization in self._organizations.opened():
            organization.streams.end(statement.statement_id, state, message)

    def fail_stream_query(self, query_id: str, failure: Failure) -> None:
        """End a SELECT on a stream that can no longer be read."""
        statement = self._store.find(query_id)
        if statement is not None and statement.running:
            self.end_stream_query(statement, failure.sql_state, failure.message)

    def end_unread(self) -> None:
        """Cancel SELECTs on streams that have had no reader for UNREAD_SECONDS."""
        oldest = asyncio.get_running_loop().time() - UNREAD_SECONDS
        for organization in self._organizations.opened():
            for query in organization.streams.queries():
                statement = self._store.find(query.query_id)
                if statement is not None and not query.readers and query.idle_since < oldest:
                    self.end_stream_query(statement, *UNREAD)

    async def run(self, session: Session, statement: Statement, asked: DialectStatement) -> None:
        """Run a control statement, which does not change the context. Raises Failure."""
        await self._store.note_begun([statement])
        # The operator needs these statements most when the storage of results cannot be used.
        statement.spool.may_stay_local = True
        from sqlshell.service.objects.listing import List
        from sqlshell.service.objects.query import AboutQuery, TerminateSession

        match asked:
            case AboutQuery(verb="terminate"):
                statement.start()
                outcome = Outcome(message=await self._terminate(session, asked.statement_id))
            case TerminateSession():
                await self._terminate_session(session, statement, asked)
                outcome = Outcome(message="TERMINATE SESSION")
            case AboutQuery():
                target = await self._readable(session, asked.statement_id, "DESCRIBE QUERY")
                outcome = _describe(target, asked.part, statement.spool)
            case List(what="sessions"):
                outcome = await self._list_sessions(session, statement.spool)
            case _:
                outcome = await asyncio.to_thread(self._list_queries, session, statement)
        statement.outcome = outcome
        statement.spool.finish()
        self._store.end(statement, sqlstate.DONE, outcome.message)

    def _list_queries(self, session: Session, statement: Statement) -> Outcome:
        """LIST QUERIES, in a thread: a thousand rows take a while."""
        from sqlshell.service.objects.query import Query

        outcome = keep(Query.listing, listed(self._store, session, statement), statement.spool)
        statement.spool.finish()
        return outcome

    async def restart(self, session: Session, statement: Statement, asked: AboutQuery) -> None:
        """Run a statement again as a new one of this caller, in a new session with the old context and current role.

        Raises Failure.
        """
        await self._store.note_begun([statement])
        target = await self._readable(session, asked.statement_id, "RESTART QUERY")
        if target.running:
            message = f"query {asked.statement_id} is still running; run TERMINATE QUERY '{asked.statement_id}' first"
            raise Failure("55006", message)
        if MASK in target.sql and names_secret(target.sql):
            message = f"query {asked.statement_id} contained a secret, which is not stored; send the statement again"
            raise Failure(sqlstate.UNSUPPORTED, message)
        place = target.context
        request = StatementRequest(
            target.sql,
            organization=target.organization or session.organization.id,
            role=session.role,
            database=place.database_name,
            schema=place.schema_name,
            store=place.store_name,
            compute_pool=place.compute_pool_name,
            parameters=Parameters(timezone=target.timezone or None),
        )
        try:
            begun = (await self._submit(request, session.caller))[0]
        except Refusal as refused:
            raise Failure(sqlstate.LIMIT, str(refused)) from None
        message = f"restarted query {target.statement_id} as {begun.statement_id}"
        statement.outcome = replace(table(statement.spool, ("id",), [(begun.statement_id,)]), message=message)
        statement.spool.finish()
        self._store.end(statement, sqlstate.DONE, message, session)

    async def _readable(self, session: Session, statement_id: str, what: str) -> Statement:
        """A statement that the session may read. Raises Failure."""
        target = await self._target(session, statement_id)
        if not _may_read(session, target):
            require(session, Rights.OBJECTS, f"{what} of another token's statement")
        return target

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
            if self._cluster is not None and target.process not in {"", self._cluster.id}:
                target = await self._ended_elsewhere(self._cluster, target)
            else:
                await self.cancel(target)
        meaning = "is still running" if target.running else f"has state {target.sql_state}"
        return f"query {statement_id} {meaning} ({sqlstate.meaning(target.sql_state)})"

    async def _ended_elsewhere(self, cluster: Cluster, target: Statement) -> Statement:
        """Have another process cancel a statement; returns it as it is then."""
        await cluster.run_async(cluster.ask_to_end, target.statement_id)
        until = time.monotonic() + TERMINATE_SECONDS
        while target.running and time.monotonic() < until:
            await asyncio.sleep(0.1)
            target = await self._store.look_up(target.statement_id) or target
        return target

    async def _terminate_session(self, session: Session, statement: Statement, asked: TerminateSession) -> None:
        """Terminate a session: at once, canceling its statements, or once they have finished. Raises Failure."""
        elsewhere = {token for token, name in await self._sessions_elsewhere() if name == asked.name}
        owner = self._sessions.owner_of(asked.name, session, elsewhere)
        if owner != session.caller.token_id:
            require(session, Rights.OBJECTS, "TERMINATE SESSION of another token's session")
        statement.start()
        target = self._sessions.find(owner, asked.name)
        if target is not None:
            await self.end_session(target, when_idle=asked.when_idle, besides=statement)
        elif self._cluster is not None:
            await self._end_session_elsewhere(self._cluster, owner, asked)

    async def _end_session_elsewhere(self, cluster: Cluster, owner: str, asked: TerminateSession) -> None:
        """Have another process end a session. Raises Failure if it has not done so in time."""
        await cluster.run_async(cluster.ask_to_end_session, owner, asked.name, asked.when_idle)
        until = time.monotonic() + TERMINATE_SECONDS
        while await cluster.run_async(cluster.is_asked_to_end_session, owner, asked.name):
            if time.monotonic() > until:
                message = (
                    f"another process of the service has not terminated session {asked.name!r} yet, and will do so "
                    "when it responds; LIST SESSIONS shows whether the session still exists"
                )
                raise Failure(sqlstate.TIMEOUT, message)
            await asyncio.sleep(0.1)

    async def _sessions_elsewhere(self) -> list[tuple[str, str]]:
        """Token and name of each session of other processes, which share the engine and so the only organization."""
        return [] if self._cluster is None else await self._cluster.run_async(self._cluster.sessions_elsewhere)

    async def _list_sessions(self, session: Session, sink: Sink) -> Outcome:
        """The sessions of an organization; those of other processes by their names alone."""
        organization, catalog = session.organization.id, session.organization.catalog
        owners = await catalog.run_async(lambda: catalog.owners(organization))
        running = {id(item.connection) for item in self._store.running() if item.connection is not None}
        rows: list[tuple[str, ...]] = []
        for item in self._sessions.of_organization(organization):
            owner = owners.get(item.caller.token_id, item.caller.token_id)
            state = "running" if id(item.connection) in running else "waiting" if item.waiting else "idle"
            transaction = str(bool(item.connection.transaction)).lower()
            idle = 0 if item.waiting else int(time.monotonic() - item.used)
            place = (item.role, item.connection.database, item.connection.schema)
            rows.append((item.name, state, owner, *place, transaction, stamp(item.created), str(idle)))
        for token, name in await self._sessions_elsewhere():
            rows.append((name, "elsewhere", owners.get(token, token), "", "", "", "", "", ""))
        columns = ("id", "state", "owner", "role", "database", "schema", "transaction", "created", "idle_seconds")
        return table(sink, columns, rows)


def listed(store: StatementStore, session: Session, besides: Statement) -> list[Facts]:
    """The facts about the latest statements of a session's organization except one, with the text of those that the
    session may read. For any thread.
    """
    statements = store.latest(session.organization.id, 1001)
    if not session.caller.organization:
        statements = sorted(statements + store.latest("", 1001), key=lambda item: item.created, reverse=True)
    owners = session.organization.catalog.owners(session.organization.id)
    return [
        facts_of(item, owners.get(item.owner, item.owner), item.text[:LISTED] if _may_read(session, item) else HIDDEN)
        for item in statements
        if item is not besides
    ]


def facts_of(statement: Statement, owner: str, sql: str) -> Facts:
    """The facts about a statement."""
    return {
        "id": statement.statement_id,
        "name": statement.statement_id,
        "version": 1,
        "intended": statement.status,
        "state": statement.status,
        "sql_state": statement.sql_state,
        "statement": sql,
        "owner": owner,
        "created": statement.created,
        "updated": statement.finished or statement.created,
    }


def _may_read(session: Session, statement: Statement) -> bool:
    """Whether a session may read the text of a statement: its own token's, or all for owners."""
    return statement.owner == session.caller.token_id or session.rights >= Rights.OBJECTS


def _describe(statement: Statement, part: str, sink: Sink) -> Outcome:
    """Describe one statement: its properties, HISTORY or EVENTS (its past states), STATE, or METRICS."""
    match part:
        case "history" | "events":
            rows = [("submitted", "", stamp(statement.created))]
            if not statement.running:
                rows.append((statement.status, statement.message, stamp(statement.finished)))
            elif statement.started:
                rows.append(("running", "", stamp(statement.created)))
            return table(sink, ("state", "messages", "time"), rows)
        case "state":
            return table(
                sink, ("id", "state", "sqlState"), [(statement.statement_id, statement.status, statement.sql_state)]
            )
        case "metrics":
            ended = statement.finished or statement.created
            took = f"{ended - statement.created:.3f}"
            values = (statement.statement_id, str(statement.spool.layout.rows), str(statement.spool.size), took)
            return table(sink, ("id", "rows", "bytes", "seconds"), [values])
    context = statement.context
    properties = {
        "id": statement.statement_id,
        "state": statement.status,
        "error": statement.message if sqlstate.failed(statement.sql_state) else "",
        "sqlState": statement.sql_state,
        "message": statement.message,
        "query": statement.text[:LISTED],
        "created": stamp(statement.created),
        "finished": stamp(statement.finished) if statement.finished else "",
        "rows": str(statement.spool.layout.rows),
        "database": context.database_name or "",
        "schema": context.schema_name or "",
    }
    return table(sink, ("Property", "Value"), list(properties.items()))
