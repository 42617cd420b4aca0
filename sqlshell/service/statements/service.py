"""Takes statements from submission to result: each session runs its own in order, and all can be looked up by ID."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlshell.interface import sqlstate
from sqlshell.interface.models import StatementRequest
from sqlshell.runtime.event_loops import in_thread
from sqlshell.runtime.unused_memory import Growth, return_unused_memory
from sqlshell.service.catalog import Caller
from sqlshell.service.failure import Failure, InvalidRequest, ShuttingDown
from sqlshell.service.objects.attachments import Attachments
from sqlshell.service.objects.grammar import ParsedStatement, dialect_of
from sqlshell.service.objects.kind import DialectStatement
from sqlshell.service.organizations.organizations import Organizations
from sqlshell.service.organizations.sessions import Session, Sessions
from sqlshell.service.settings import Settings
from sqlshell.service.statements.admission import LONG, Admission, SentText
from sqlshell.service.statements.canceller import Canceller, when_stopped
from sqlshell.service.statements.control import Control, is_control
from sqlshell.service.statements.runner import NOT_RUN, Batch, Runner, Submission, keep_batch
from sqlshell.service.statements.statement import Statement, wait_for_response
from sqlshell.service.statements.store import StatementStore
from sqlshell.service.storage.storage import StorageError
from sqlshell.sql.script.lexical_rules import BLANKS

if TYPE_CHECKING:
    from sqlshell.service.cluster.cluster import Cluster
    from sqlshell.service.statements.membership import Membership

CLOSING_SECONDS = 5.0
TICK_SECONDS = 0.5
SWEEP_SECONDS = 5.0


class StatementService:
    """All statements of the service. Used from one event loop; engines run in threads."""

    def __init__(
        self,
        organizations: Organizations,
        store: StatementStore,
        settings: Settings,
        cluster: Cluster | None = None,
    ) -> None:
        self.organizations = organizations
        self.store = store
        self.cluster = cluster
        self.draining = False
        self._sessions = Sessions(organizations, settings)
        self._ticking: asyncio.Task[None] | None = None
        self.admission = Admission(organizations, self._sessions, store, settings)
        self.canceller = Canceller(organizations, self._sessions, store, settings)
        control = Control(self._sessions, store, self.canceller, cluster)
        self._runner = Runner(organizations, self._sessions, store, settings, self.canceller, control, self.submit)
        self._batches: dict[str, Batch] = {}
        """The latest batches by the ID of their first statement."""
        self._membership: Membership | None = None

    def start(self) -> None:
        """Start the periodic work: timeouts, retention and idle sessions. A second call has no effect."""
        if self._ticking is None:
            self._ticking = asyncio.ensure_future(self._tick())
            if self.cluster is None:
                self._runner.resume(self.store.interrupted(), in_cluster=False)
            else:
                from sqlshell.service.statements.membership import Membership, SharedStatementStore

                assert isinstance(self.store, SharedStatementStore)
                self._membership = Membership(
                    self.cluster, self.organizations, self._sessions, self.store, self.canceller, self._runner
                )
                self._membership.start()

    async def submit(
        self, request: StatementRequest, caller: Caller, attachments: Attachments | None = None
    ) -> list[Statement]:
        """Start the statements of a request; returns them in order.

        `attachments` are closed when they have finished. The statements have failed if the caller's organization cannot
        be opened. Raises Refusal.
        """
        attachments = attachments or Attachments()
        with contextlib.ExitStack() as unless_started:
            unless_started.callback(attachments.close)
            given, command = await self.admission.split(request.statement)
            parsed = ParsedStatement(given[0][0], dialect_of(self.organizations))
            control = _control_statement(parsed) if len(given) == 1 and not command else None
            # Statements about statements have a separate limit, so that others can still be terminated.
            session, statements = await self._admit(request, caller, given, 1 if control is None else 2)
            if session is None:
                return statements
            statements[0].cached_parse = parsed
            if command:
                message = f"{command[:100]!r} is a shell command, not SQL"
                self._fail(statements, sqlstate.SYNTAX, message)
                self._sessions.release(session)
            elif control is not None:
                self._runner.start_control(session, request, statements[0], control)
            else:
                unless_started.pop_all()
                batch = Batch(statements, stops=True, combined=False)
                self._runner.start(Submission(session, request, batch, attachments))
            return statements

    async def submit_batch(self, request: StatementRequest, caller: Caller, attachments: Attachments) -> Batch:
        """Start the statements of a batch. Raises like submit()."""
        attached = bool(attachments.files)
        attachments.close()
        if attached:
            raise InvalidRequest("a batch cannot have attachments; submit the statement that needs them separately")
        given = [_split_semicolon(text) for text in request.statements or []]
        session, statements = await self._admit(request, caller, given, 1, of_failed=1)
        batch = Batch(statements, request.on_error != "continue")
        keep_batch(self._batches, batch)
        if session is None:
            batch.finished.set()
        else:
            self._runner.start(Submission(session, request, batch, attachments))
        return batch

    async def find(self, statement_id: str, caller: Caller) -> Statement | None:
        """A statement that the caller may see. Raises StorageError."""
        statement = await self.store.look_up(statement_id)
        return statement if statement and caller.may_read(statement.organization, statement.owner) else None

    def find_batch(self, statement_id: str, caller: Caller) -> Batch | None:
        """The batch that begins with this statement, if the caller may see all of it."""
        batch = self._batches.get(statement_id)
        if batch is None:
            return None
        # Clients poll a long batch often, so each pair is checked once.
        pairs = {(item.organization, item.owner) for item in batch.statements}
        return batch if all(caller.may_read(*pair) for pair in pairs) else None

    async def drain(self, grace: float) -> None:
        """Accept no more statements, and give running ones `grace` seconds to finish."""
        self.draining = True
        if self._membership is not None:
            await self._membership.give_up_idle_sessions()
        until = time.monotonic() + grace
        for statement in self.store.running():
            if statement.feed is None:
                await wait_for_response(statement, until - time.monotonic())

    async def close(self) -> None:
        """Cancel running statements, and close all sessions and engines."""
        self.draining = True
        if self._ticking is not None:
            self._ticking.cancel()
        until = time.monotonic() + CLOSING_SECONDS
        for statement in self.store.running():
            statement.cancel(when_stopped(statement))
            if statement.feed is not None:
                await self.canceller.end_stream_query(statement, sqlstate.CANCELED, "the service was shut down")
        while any(statement.connection for statement in self.store.running()) and time.monotonic() < until:
            for statement in self.store.running():
                statement.interrupt()
            await asyncio.sleep(0.01)
        await self._runner.close()
        if self._membership is not None:
            await self._membership.close()
        self.admission.close()
        self._sessions.close()
        self.organizations.close()

    async def _admit(
        self,
        request: StatementRequest,
        caller: Caller,
        given: Sequence[SentText],
        times: int,
        of_failed: int | None = None,
    ) -> tuple[Session | None, list[Statement]]:
        """The session and statements of a request; if no session can be opened, it is None, and the statements, or the
        first `of_failed` of them, have failed. Raises Refusal."""
        if self.draining:
            raise ShuttingDown("the service is shutting down")
        try:
            admitted = await self.admission.admit(request, caller, given, times)
        except Failure as failure:
            statements = await self.admission.without_session(request, caller, given[:of_failed])
            self._fail(statements, failure.sql_state, failure.message)
            return None, statements
        self.start()
        return admitted

    def _fail(self, statements: Sequence[Statement], state: str, message: str) -> None:
        """End statements of which the first failed before any of them ran."""
        self.canceller.finish(statements[0], state, message)
        for statement in statements[1:]:
            self.canceller.finish(statement, sqlstate.CANCELED, NOT_RUN)

    async def _tick(self) -> None:
        sweep = time.monotonic() + SWEEP_SECONDS
        growth, finished, last = Growth(), 0, 0
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self.canceller.end_overdue()
            if time.monotonic() < sweep:
                continue
            sweep = time.monotonic() + SWEEP_SECONDS
            for organization in self.organizations.opened():
                organization.engine.trim_memory()
            # The responses to the last statements may have held memory until now.
            if self.store.finished != last and growth.large:
                in_thread(return_unused_memory)
            finished, last = self.store.finished, finished
            self._sessions.expire()
            # A storage that does not respond now is swept later.
            with contextlib.suppress(StorageError):
                await self._sweep()

    async def _sweep(self) -> None:
        await self.canceller.end_dropped()
        if self._membership is not None:
            await self._membership.count_kept()
        for _ in iter(self.canceller.sweep, False):
            await asyncio.sleep(0)
        await self.canceller.sweep_feeds()


def _control_statement(parsed: ParsedStatement) -> DialectStatement | None:
    """The parsed statement, if it is a control statement; None for others."""
    if len(parsed.sql) <= LONG:
        with contextlib.suppress(Failure):
            asked = parsed.statement()
            return asked if is_control(asked) else None
    return None


def _split_semicolon(text: str) -> SentText:
    """A statement of a batch, and the semicolon after it."""
    bare = text.rstrip(BLANKS)
    if not bare.endswith(";"):
        return text, ""
    bare = bare[:-1].rstrip(BLANKS)
    return bare, text[len(bare) :]
