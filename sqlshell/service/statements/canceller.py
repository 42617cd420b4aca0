"""Finishes and cancels statements."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import time
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct, field

from sqlshell.interface import sqlstate
from sqlshell.service.failure import Failure, ResultLost
from sqlshell.service.organizations.organizations import Organizations
from sqlshell.service.organizations.sessions import Session, Sessions
from sqlshell.service.settings import Settings
from sqlshell.service.statements.statement import STOPPED, State, Statement, wait_for_response
from sqlshell.service.statements.store import StatementStore
from sqlshell.service.statements.undelivered_secrets import UndeliveredSecrets
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

SECRETLESS = 2_000
"""Characters that are stored of an error message for a statement with secrets."""

TOKEN_DROPPED = "the token of the statement, or its organization, was dropped"


NOT_BEGUN = "not run: the process of the service stopped before the statement ran"


class _Reader(Struct, eq=False):
    """A reader of a SELECT on a stream."""

    record: Statement
    token_id: str
    dropped: asyncio.Event = field(default_factory=asyncio.Event)


WARNING_NOT_RECORDED: Final = "the warning is not recorded because it may contain secrets"


class Canceller:
    """Finishes and cancels statements. Used from the event loop, and by the threads that run statements."""

    def __init__(
        self, organizations: Organizations, sessions: Sessions, store: StatementStore, settings: Settings
    ) -> None:
        self._organizations = organizations
        self._sessions = sessions
        self._store = store
        self._settings = settings
        self.undelivered_secrets = UndeliveredSecrets()
        self._readers: set[_Reader] = set()
        self._ending: set[asyncio.Task[None]] = set()

    @contextlib.contextmanager
    def reading(self, record: Statement, token_id: str) -> Iterator[asyncio.Event]:
        """Register a reader of a SELECT on a stream; the event is set when its token or organization is dropped."""
        reader = _Reader(record, token_id)
        self._readers.add(reader)
        try:
            yield reader.dropped
        finally:
            self._readers.discard(reader)

    async def end_dropped(self) -> None:
        """Cancel the statements and readers of dropped tokens and of dropped organizations."""
        catalog = self._organizations.catalog
        tokens, organizations = catalog.dropped, {key for key, _ in await catalog.run_async(catalog.organizations)}

        def is_gone(record: Statement) -> bool:
            return record.owner in tokens or bool(record.organization and record.organization not in organizations)

        for session in self._sessions.of_tokens(tokens):
            session.ended = True
            self._sessions.forget(session)
        for token_id in tokens:
            self.undelivered_secrets.forget(token_id)
        for reader in list(self._readers):
            if reader.token_id in tokens or is_gone(reader.record):
                reader.dropped.set()
        for record in self._store.running():
            if not is_gone(record):
                continue
            canceled = record.cancel((sqlstate.CANCELED, TOKEN_DROPPED))
            if record.feed is not None:
                await self.end_stream_query(record, sqlstate.CANCELED, TOKEN_DROPPED)
            elif not record.started:
                self.finish(record, sqlstate.CANCELED, TOKEN_DROPPED)
            elif canceled:
                self.end_soon(record)
        self._store.keep_only(organizations)

    def end_soon(self, record: Statement) -> None:
        """Interrupt a statement that is to be canceled, in a task, until it has ended."""
        task = asyncio.ensure_future(self.until_ended(record))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def end_overdue(self) -> None:
        """Cancel the statements that have run past their deadlines."""
        now = time.monotonic()
        for record in self._store.running():
            overdue = record.connection is not None and record.deadline < now
            if overdue and record.cancel((sqlstate.TIMEOUT, record.timeout)):
                self.end_soon(record)

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

    async def end_stream_query(self, record: Statement, state: str, message: str) -> None:
        self.finish(record, state, message)
        for organization in self._organizations.opened():
            await organization.streams.end(record.statement_id, state, message)

    async def fail_stream_query(self, query_id: str, failure: Failure) -> None:
        """Finish a SELECT on a stream that can no longer be read."""
        record = self._store.find(query_id)
        if record is not None and record.running:
            await self.end_stream_query(record, failure.sql_state, failure.message)

    def finish(self, record: Statement, state: str, message: str, session: Session | None = None) -> None:
        """Finish a statement, in the context of its session if one is given, unless it has an end already."""
        if record.unfinished and session is not None:
            record.context = session.echo()
        self.finish_all([(record, state, message)])

    def finish_all(self, endings: Sequence[tuple[Statement, str, str]]) -> None:
        """Finish statements, each with a sqlState and a message, except those that have an end already."""
        endings = [item for item in endings if item[0].move_to(State.after(item[1], item[2]))]
        self._store.finish(
            *((record, state, _without_secrets(record, state, message)) for record, state, message in endings)
        )
        if any(record.spool.size > SWEEP_SIZE for record, _, _ in endings):
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
                record = self._store.find(query.query_id)
                if record is not None and not query.readers and query.idle_since < oldest:
                    await self.end_stream_query(
                        record, sqlstate.CANCELED, "canceled because no client was reading its result"
                    )


def _without_secrets(record: Statement, state: str, message: str) -> str:
    """A message without the secrets of its statement. That of a success, such as `CREATE SECRET`, has none."""
    if record.redacted is None or not message or state == sqlstate.DONE:
        return message
    from sqlshell.sql.analysis.secrets import NOT_RECORDED, without_values

    if record.redacted.cut:
        return NOT_RECORDED if sqlstate.failed(state) else WARNING_NOT_RECORDED

    return without_values(message[:SECRETLESS], record.redacted.values)


def when_stopped(record: Statement) -> tuple[str, str]:
    """The sqlState and message of a statement that the end of the service ends."""
    return (sqlstate.INTERNAL, STOPPED) if record.started else (sqlstate.CANCELED, NOT_BEGUN)


def end_of(error: BaseException, record: Statement) -> tuple[str, str]:
    """The sqlState and message for an error that ended a statement."""
    if isinstance(error, ResultLost):
        state, message = end_of(error.error, record)
        effect = "took effect" if error.certain else "may have taken effect"
        return state, f"the statement {effect}, but its result could not be stored: {message}"
    if isinstance(error, Failure):
        if record.cause is not None and error.sql_state == sqlstate.CANCELED:
            return record.cause
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
