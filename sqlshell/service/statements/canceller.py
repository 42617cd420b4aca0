"""Finishes and cancels statements."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from sqlshell.interface import sqlstate
from sqlshell.service.engines.engine import Connection
from sqlshell.service.failure import Failure
from sqlshell.service.options import Options
from sqlshell.service.organizations.organizations import Organizations
from sqlshell.service.organizations.sessions import Session, Sessions
from sqlshell.service.statements.statement import Statement, wait_for_response
from sqlshell.service.statements.store import StatementStore
from sqlshell.service.statements.undelivered_secrets import UndeliveredSecrets
from sqlshell.service.storage.storage import StorageError

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


class _Reader(Struct, eq=False):
    """A reader of a SELECT on a stream."""

    record: Statement
    token_id: str
    dropped: asyncio.Event = field(default_factory=asyncio.Event)


class Canceller:
    """Finishes and cancels statements. Used from the event loop, and by the threads that run statements."""

    def __init__(
        self, organizations: Organizations, sessions: Sessions, store: StatementStore, options: Options
    ) -> None:
        self._organizations = organizations
        self._sessions = sessions
        self._store = store
        self._options = options
        self._interrupting = threading.Lock()
        self.undelivered_secrets = UndeliveredSecrets()
        self._readers: set[_Reader] = set()
        self._ending: set[asyncio.Task[None]] = set()

    def start_on(self, record: Statement, connection: Connection) -> None:
        """Note that the record's statement runs on this connection from now on."""
        with self._interrupting:
            record.began = time.monotonic()
            record.connection = connection

    def assign(self, records: Sequence[Statement], connection: Connection) -> int:
        """Assign statements to a connection that runs them one after another.

        Returns their number: those before the first that was already canceled.
        """
        with self._interrupting:
            for number, record in enumerate(records):
                if record.ending or not record.running:
                    return number
                record.connection, record.number, record.began = connection, number, time.monotonic()
                record.started = not number
            return len(records)

    def release(self, record: Statement, then: Statement | None = None) -> None:
        """Note that the statement no longer runs, so that no interrupt hits the next one. `then` starts now."""
        with self._interrupting:
            record.connection, record.number = None, 0
            if then is not None:
                then.started, then.began = True, time.monotonic()

    def unassign(self, records: Sequence[Statement]) -> None:
        """Note that these records were assigned to a connection but did not start."""
        with self._interrupting:
            for record in records:
                record.connection, record.number, record.started = None, 0, False

    @contextlib.contextmanager
    def reading(self, record: Statement, token_id: str) -> Iterator[asyncio.Event]:
        """Register a reader of a SELECT on a stream; the event is set when its token or organization is dropped."""
        reader = _Reader(record, token_id)
        self._readers.add(reader)
        try:
            yield reader.dropped
        finally:
            self._readers.discard(reader)

    def mark_ending(self, record: Statement) -> bool:
        """Note that a statement is being canceled; returns whether it already was."""
        with self._interrupting:
            known, record.ending = record.ending, True
            return known

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
            known = self.mark_ending(record)
            if record.feed is not None:
                await self.end_stream_query(record, sqlstate.CANCELED, TOKEN_DROPPED)
            elif not record.started and record.connection is None:
                self.finish(record, sqlstate.CANCELED, TOKEN_DROPPED)
            elif not known:
                task = asyncio.ensure_future(self.until_ended(record))
                self._ending.add(task)
                task.add_done_callback(self._ending.discard)
        self._store.keep_only(organizations)

    async def until_ended(self, target: Statement) -> None:
        """Interrupt until the statement has ended: an interrupt between two steps of a statement may be lost."""
        began = time.monotonic()
        abandoned = False
        while target.running and time.monotonic() < began + TERMINATE_SECONDS:
            if target.feed is not None:
                # The SELECT on a stream has started meanwhile and has its response: there is nothing to interrupt.
                await self.end_stream_query(target, sqlstate.CANCELED, QUERY_ENDED)
                return
            if time.monotonic() > began + ABANDON_SECONDS and not abandoned:
                connection = target.connection
                abandoned = connection is not None and connection.abandon()
            self.interrupt(target)
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

    def interrupt(self, *records: Statement) -> None:
        """Interrupt these records. Under the lock, so that the next statement of a session is never hit."""
        with self._interrupting:
            for record in records:
                if record.connection is not None:
                    record.connection.interrupt(record.number)
                if (helper := record.cancel_copy) is not None:
                    helper()

    def finish(self, record: Statement, state: str, message: str, session: Session | None = None) -> None:
        if not record.unfinished:
            return
        if session is not None:
            record.context = session.echo()
        self.finish_all([(record, state, message)])

    def finish_all(self, endings: Sequence[tuple[Statement, str, str]]) -> None:
        """Finish running records, each with a sqlState and a message."""
        self._store.finish(*((record, state, _without_secrets(record, message)) for record, state, message in endings))
        if any(record.spool.size > SWEEP_SIZE for record, _, _ in endings):
            with contextlib.suppress(StorageError):
                self.sweep()

    def sweep(self) -> bool:
        """Remove some expired records; returns whether there are more."""
        return self._store.sweep(self._options.retention, self._options.quota, self._options.records)

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


def _without_secrets(record: Statement, message: str) -> str:
    """A message without the secrets of its statement."""
    if record.redacted is None or not message:
        return message
    from sqlshell.sql.analysis.secrets import NOT_RECORDED, without_values

    if record.redacted.cut:
        return NOT_RECORDED

    return without_values(message[:SECRETLESS], record.redacted.values)
