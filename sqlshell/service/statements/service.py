"""Takes statements from submission to result: each session runs its own in order, and all can be looked up by ID."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ContextEcho, StatementRequest
from sqlshell.runtime.event_loops import in_thread
from sqlshell.runtime.unused_memory import Growth, return_unused_memory
from sqlshell.service.catalog import Caller
from sqlshell.service.failure import Failure, InvalidRequest, InvalidToken, ShuttingDown, TooManyRequests
from sqlshell.service.objects.attachments import Attachments
from sqlshell.service.objects.grammar import dialect_of
from sqlshell.service.objects.kind import DialectStatement
from sqlshell.service.organizations.organizations import Organizations
from sqlshell.service.organizations.sessions import Session, Sessions
from sqlshell.service.settings import ORGANIZATION_FACTOR, Settings, limit_note
from sqlshell.service.statements.control import Control
from sqlshell.service.statements.runner import NOT_RUN, Batch, Runner, Submission, keep_batch
from sqlshell.service.statements.statement import Statement, new_id, wait_for_response, when_stopped
from sqlshell.service.statements.store import StatementStore
from sqlshell.service.statements.texts import LONG, SentText, read_text, redacted_statements, split, split_semicolon
from sqlshell.service.storage.storage import StorageError
from sqlshell.sql.script import items as script
from sqlshell.text import format_count

if TYPE_CHECKING:
    from sqlshell.service.cluster.cluster import Cluster
    from sqlshell.service.statements.membership import Membership

CLOSING_SECONDS = 5.0
TICK_SECONDS = 0.5
SWEEP_SECONDS = 5.0
SWEEP_SIZE = 8 << 20
"""Bytes of new results after which expired statements are removed at once."""


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
        self._settings = settings
        self._sessions = Sessions(organizations, settings, cluster)
        self._ticking: asyncio.Task[None] | None = None
        self.control = Control(organizations, self._sessions, store, cluster, self.submit)
        self._runner = Runner(organizations, self._sessions, store, settings, self.control, cluster)
        self._batches: dict[str, Batch] = {}
        """The latest batches by the ID of their first statement."""
        self._membership: Membership | None = None

    def start(self) -> None:
        """Start the periodic work: timeouts, retention and idle sessions. A second call has no effect."""
        if self._ticking is None:
            self._ticking = asyncio.ensure_future(self._tick())
            if self.cluster is None:
                self._runner.spawn(self._runner.resume())
            else:
                from sqlshell.service.statements.membership import Membership, SharedStatementStore

                assert isinstance(self.store, SharedStatementStore)
                self._membership = Membership(
                    self.cluster, self.organizations, self._sessions, self.store, self.control, self._runner
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
            given, command = await self._split(request.statement, caller)
            control = self._control_statement(given[0][0]) if len(given) == 1 and not command else None
            # Statements about statements have a separate limit, so that others can still be terminated.
            session, statements = await self._admit(request, caller, given, 1 if control is None else 2)
            if session is None:
                return statements
            if command:
                message = f"{command[:100]!r} is a backslash command of sqlshell, not SQL"
                self._fail(statements, sqlstate.SYNTAX, message)
                self._sessions.release(session)
            elif control is not None:
                self._runner.spawn(self._runner.run_control(session, request, statements[0], control))
            else:
                unless_started.pop_all()
                batch = Batch(statements, stops=True, combined=False)
                self._runner.spawn(self._runner.run(Submission(session, request, batch, attachments)))
            return statements

    async def submit_batch(self, request: StatementRequest, caller: Caller, attachments: Attachments) -> Batch:
        """Start the statements of a batch. Raises like submit()."""
        attached = bool(attachments.files)
        attachments.close()
        if attached:
            raise InvalidRequest("a batch cannot have attachments; submit the statement that needs them separately")
        given = [split_semicolon(text) for text in request.statements or []]
        session, statements = await self._admit(request, caller, given, 1, of_failed=1)
        batch = Batch(statements, request.on_error != "continue")
        keep_batch(self._batches, batch)
        if session is None:
            batch.finished.set()
        else:
            self._runner.spawn(self._runner.run(Submission(session, request, batch, attachments)))
        return batch

    async def _split(self, text: str, caller: Caller) -> tuple[list[SentText], str]:
        """Split a text: its statements of a text, and the name of its first backslash command. Raises Refusal."""
        items = await read_text(len(text), partial(split, text, self._settings.statements), _whose(caller))
        if not items:
            raise InvalidRequest("request.statement contains no statement")
        commands = (item.name for item in items if isinstance(item, script.BackslashCommand))
        given = [(item.text, item.ending) for item in items if isinstance(item, script.Statement)]
        # A backslash command is not SQL: the statement fails, but the request is valid.
        return given or [(text, "")], next(commands, "")

    def _control_statement(self, sql: str) -> DialectStatement | None:
        """The parsed statement, if it is a control statement; None for others."""
        if len(sql) <= LONG:
            with contextlib.suppress(Failure):
                asked = dialect_of(self.organizations).read(sql)
                return asked if asked is not None and asked.is_control else None
        return None

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
                self.control.end_stream_query(statement, sqlstate.CANCELED, "the service was shut down")
        while any(statement.connection for statement in self.store.running()) and time.monotonic() < until:
            for statement in self.store.running():
                statement.interrupt()
            await asyncio.sleep(0.01)
        await self._runner.close()
        if self._membership is not None:
            await self._membership.close()
        self._sessions.close()
        self.organizations.close()

    def check_room(self, caller: Caller, times: int, number: int = 1, size: int = 0) -> None:
        """Raises TooManyRequests if a token or organization has too many unfinished statements for `number` more with
        `size` characters. The limits are multiplied by `times`.
        """
        loads = self.store.loads((caller.token_id, caller.organization))
        both = (caller.token_id, times, "token"), (caller.organization, times * ORGANIZATION_FACTOR, "organization")
        for key, factor, who in both:
            has, long = loads[key].number, loads[key].size
            cause = ""
            if has + number > self._settings.waiting * factor:
                cause = f"this {who} has {format_count(has, 'unfinished statement')} {limit_note('waiting')}"
            elif has and long + size > self._settings.waiting_size * factor:
                cause = f"this {who} has unfinished statements with {long} characters"
            if cause:
                raise TooManyRequests(f"{cause}; try again later")

    async def _admit(
        self,
        request: StatementRequest,
        caller: Caller,
        given: Sequence[SentText],
        times: int,
        of_failed: int | None = None,
    ) -> tuple[Session | None, list[Statement]]:
        """The session and statements of a request; if no session can be opened, it is None, and the statements, or the
        first `of_failed` of them, have failed. A session without a name is only for this request.

        The limits are multiplied by `times`. Raises Refusal.
        """
        if self.draining:
            raise ShuttingDown("the service is shutting down")
        session, failure = None, None
        try:
            # Whoever runs the statements releases the session.
            session = await self._sessions.of_request(caller, request, times)
        except Failure as raised:
            failure, given = raised, given[:of_failed]
        try:
            statements = await self._create(request, caller, given, session)
            if caller.token_id in self.organizations.catalog.dropped:
                raise InvalidToken("invalid token")
            # Nothing is awaited between this and the admission.
            self.check_room(caller, times, len(given), sum(len(sql) for sql, _ in given))
            await self.store.admit(statements)
        except BaseException:
            if session is not None:
                self._sessions.release(session)
            raise
        if failure is not None:
            self._fail(statements, failure.sql_state, failure.message)
        self.start()
        return session, statements

    async def _create(
        self, request: StatementRequest, caller: Caller, given: Sequence[SentText], session: Session | None
    ) -> list[Statement]:
        """The statements of a request, to be run in a session if it has one."""
        texts = [sql for sql, _ in given]
        redacted = await read_text(sum(map(len, texts)), partial(redacted_statements, texts), _whose(caller))
        # If the caller may change the organization, a statement's organization is known only when it starts.
        organization = caller.organization
        if session is not None and self.organizations.is_embedded:
            organization = session.organization.id
        # The time zone is set when the statement has run.
        echo = replace(session.echo(), timezone=None) if session else ContextEcho(organization or None, caller.roles[0])
        context = _named(request, echo)
        timezone = (request.parameters.timezone if request.parameters else None) or ""
        statements = []
        for (sql, semicolon), redaction in zip(given, redacted, strict=True):
            number = new_id()
            statement = Statement(
                sql, organization, caller.token_id, self.store.place(organization, number), context, number,
                timezone=timezone, semicolon=semicolon, redacted=redaction,
            )  # fmt: skip
            statements.append(statement)
        return statements

    def _fail(self, statements: Sequence[Statement], state: str, message: str) -> None:
        """End statements of which the first failed before any of them ran."""
        self.store.end(statements[0], state, message)
        for statement in statements[1:]:
            self.store.end(statement, sqlstate.CANCELED, NOT_RUN)

    async def _tick(self) -> None:
        sweep = time.monotonic() + SWEEP_SECONDS
        growth, finished, last = Growth(), 0, 0
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self.control.end_overdue()
            if time.monotonic() < sweep and self.store.unswept < SWEEP_SIZE:
                continue
            sweep = time.monotonic() + SWEEP_SECONDS
            for organization in self.organizations.opened():
                in_thread(organization.engine.trim_memory)
            # The responses to the last statements may have held memory until now.
            if self.store.finished != last and growth.large:
                in_thread(return_unused_memory)
            finished, last = self.store.finished, finished
            self._sessions.expire()
            # A storage that does not respond now is swept later.
            with contextlib.suppress(StorageError):
                await self._sweep()

    async def _sweep(self) -> None:
        await self.control.end_dropped()
        if self._membership is not None:
            # Other processes store results too.
            await asyncio.to_thread(self.store.count_kept)
        settings = self._settings
        for _ in iter(lambda: self.store.sweep(settings.retention, settings.quota, settings.records), False):
            await asyncio.sleep(0)
        self.control.end_unread()


def _whose(caller: Caller) -> str:
    """Whose turn reading a long text takes: that of an organization, or of a token for all of them."""
    return caller.organization or caller.token_id


def _named(request: StatementRequest, echo: ContextEcho) -> ContextEcho:
    """The context that a request names, for the response to a statement that fails before its session adopts it.

    Clients continue in the context of the response, which must not differ from the one that they named.
    """
    moves = bool(request.database) and request.database != echo.database_name
    return replace(
        echo,
        # A name is not an ID; clients keep the value of a field that is left out.
        organization_id=_id(request.organization) if request.organization else echo.organization_id,
        role_name=request.role or echo.role_name,
        database_name=request.database or echo.database_name,
        schema_name=request.schema or (None if moves else echo.schema_name),
        store_name=request.store or echo.store_name,
        compute_pool_name=request.compute_pool or echo.compute_pool_name,
    )


def _id(organization: str) -> str | None:
    with contextlib.suppress(ValueError):
        return str(uuid.UUID(organization))
    return None
