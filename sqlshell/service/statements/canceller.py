"""Finishes and cancels statements."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import time
from collections.abc import Sequence

from sqlshell.interface import sqlstate
from sqlshell.runtime.event_loops import spawn
from sqlshell.service.engines.engine import CANCELED_BEFORE_START
from sqlshell.service.failure import Failure, ResultLost
from sqlshell.service.organizations.organizations import Organizations
from sqlshell.service.organizations.sessions import Session, Sessions
from sqlshell.service.settings import Settings
from sqlshell.service.statements.statement import NOT_BEGUN, STOPPED, State, Statement, wait_for_response
from sqlshell.service.statements.store import StatementStore
from sqlshell.service.storage.storage import StorageError, Unavailable, Unreachable

TERMINATE_SECONDS = 120.0
"""How long TERMINATE QUERY waits for the statement: an interrupt may take seconds to take effect."""

ABANDON_SECONDS = 8.0
"""How long a statement may ignore an interrupt before the process of its engine is killed."""

AGAIN_SECONDS = 0.05
SESSION_ENDED = "the session was terminated"
QUERY_ENDED = "the query was terminated"
SWEEP_SIZE = 8 << 20
UNREAD_SECONDS = 300.0
"""How long a SELECT on a stream runs without readers."""

TOKEN_DROPPED = "the token of the statement, or its organization, was dropped"


class Canceller:
    """Finishes and cancels statements. Used from the event loop, and by the threads that run statements."""

    def __init__(
        self, organizations: Organizations, sessions: Sessions, store: StatementStore, settings: Settings
    ) -> None:
        self._organizations = organizations
        self._sessions = sessions
        self._store = store
        self._settings = settings
        self._ending: set[asyncio.Task[None]] = set()

    async def end_dropped(self) -> None:
        """Cancel the statements of dropped tokens and of dropped organizations."""
        catalog = self._organizations.catalog
        tokens, organizations = catalog.dropped, {key for key, _ in await catalog.run_async(catalog.organizations)}

        def is_gone(statement: Statement) -> bool:
            return statement.owner in tokens or bool(
                statement.organization and statement.organization not in organizations
            )

        for session in self._sessions.of_tokens(tokens):
            session.ended = True
            self._sessions.forget(session)
        for statement in self._store.running():
            if is_gone(statement):
                await self.cancel(statement, (sqlstate.CANCELED, TOKEN_DROPPED))
        self._store.keep_only(organizations)

    async def cancel(self, statement: Statement, cause: tuple[str, str] | None = None) -> None:
        """Cancel a statement, with a sqlState and message if it is not for a user, while the caller goes on."""
        canceled = statement.cancel(cause)
        if not await self.end_idle(statement, cause) and canceled:
            self._end_soon(statement)

    async def end_idle(self, statement: Statement, cause: tuple[str, str] | None = None) -> bool:
        """End a canceled statement for which the engine runs nothing; returns False for others."""
        if statement.feed is not None:
            await self.end_stream_query(statement, *(cause or (sqlstate.CANCELED, QUERY_ENDED)))
        elif not statement.started:
            self.finish(statement, *(cause or (sqlstate.CANCELED, CANCELED_BEFORE_START)))
            await self._store.settled(statement)
        else:
            return False
        return True

    def _end_soon(self, statement: Statement) -> None:
        """Interrupt a statement that is to be canceled, in a task, until it has ended."""
        spawn(self.until_ended(statement), self._ending)

    def end_overdue(self) -> None:
        """Cancel the statements that have run past their deadlines."""
        now = time.monotonic()
        for statement in self._store.running():
            overdue = statement.connection is not None and statement.deadline < now
            if overdue and statement.cancel((sqlstate.TIMEOUT, statement.timeout)):
                self._end_soon(statement)

    async def until_ended(self, target: Statement) -> None:
        """Interrupt until the statement has ended: an interrupt between two steps of a statement may be lost."""
        target.cancel()
        began = time.monotonic()
        abandoned = False
        while target.running and time.monotonic() < began + TERMINATE_SECONDS:
            if target.feed is not None:
                # The SELECT on a stream has started meanwhile and has its response: there is nothing to interrupt.
                await self.end_stream_query(target, sqlstate.CANCELED, QUERY_ENDED)
                return
            if time.monotonic() > began + ABANDON_SECONDS and not abandoned:
                connection = target.connection
                abandoned = connection is not None and connection.cancel(force=True)
            target.interrupt()
            await wait_for_response(target, AGAIN_SECONDS)

    async def end_session(self, target: Session, *, when_idle: bool, besides: Statement | None = None) -> None:
        """End a session: cancel its statements, except one `besides`, or let them finish."""
        if not when_idle:
            target.ended = True
            for item in self._store.running():
                if item.connection is target.connection and item is not besides:
                    await self.until_ended(item)
        self._sessions.forget(target)

    async def end_stream_query(self, statement: Statement, state: str, message: str) -> None:
        self.finish(statement, state, message)
        for organization in self._organizations.opened():
            await organization.streams.end(statement.statement_id, state, message)

    async def fail_stream_query(self, query_id: str, failure: Failure) -> None:
        """Finish a SELECT on a stream that can no longer be read."""
        statement = self._store.find(query_id)
        if statement is not None and statement.running:
            await self.end_stream_query(statement, failure.sql_state, failure.message)

    def finish(self, statement: Statement, state: str, message: str, session: Session | None = None) -> None:
        """Finish a statement, in the context of its session if one is given, unless it has an end already."""
        if statement.unfinished and session is not None:
            statement.context = session.echo()
        self.finish_all([(statement, state, message)])

    def finish_all(self, endings: Sequence[tuple[Statement, str, str]]) -> None:
        """Finish statements, each with a sqlState and a message, except those that have an end already."""
        endings = [item for item in endings if item[0].move_to(State.after(item[1], item[2]))]
        self._store.finish(
            *(
                (item, state, item.redacted.clean(state, text) if item.redacted else text)
                for item, state, text in endings
            )
        )
        if any(statement.spool.size > SWEEP_SIZE for statement, _, _ in endings):
            with contextlib.suppress(StorageError):
                self.sweep()

    def sweep(self) -> bool:
        """Remove some expired records; returns whether there are more."""
        return self._store.sweep(self._settings.retention, self._settings.quota, self._settings.records)

    async def sweep_feeds(self) -> None:
        """Cancel SELECTs on streams that have had no reader for UNREAD_SECONDS."""
        oldest = asyncio.get_running_loop().time() - UNREAD_SECONDS
        for organization in self._organizations.opened():
            for query in organization.streams.queries():
                statement = self._store.find(query.query_id)
                if statement is not None and not query.readers and query.idle_since < oldest:
                    await self.end_stream_query(
                        statement, sqlstate.CANCELED, "canceled because no client was reading its result"
                    )


def when_stopped(statement: Statement) -> tuple[str, str]:
    """The sqlState and message of a statement that the end of the service ends."""
    return (sqlstate.INTERNAL, STOPPED) if statement.started else (sqlstate.CANCELED, NOT_BEGUN)


def end_of(error: BaseException, statement: Statement) -> tuple[str, str]:
    """The sqlState and message for an error that ended a statement."""
    if isinstance(error, ResultLost):
        state, message = end_of(error.error, statement)
        effect = "took effect" if error.certain else "may have taken effect"
        return state, f"the statement {effect}, but its result could not be stored: {message}"
    if isinstance(error, Failure):
        if statement.cause is not None and error.sql_state == sqlstate.CANCELED:
            return statement.cause
        return error.sql_state, error.message
    if isinstance(error, OSError):
        full = error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
        state = sqlstate.DISK_FULL if full else sqlstate.LIMIT
        return state, f"cannot store the result: {error.strerror or error}"
    if isinstance(error, Unreachable):
        return sqlstate.REMOTE_UNAVAILABLE, str(error)
    if isinstance(error, Unavailable):
        return sqlstate.DISK_FULL, f"cannot write to the service's storage: {error}"
    return sqlstate.INTERNAL, f"internal error: {type(error).__name__}: {error}"
