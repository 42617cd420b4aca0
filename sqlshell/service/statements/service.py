"""Runs statements from submission to result: each session runs its own in order, and all can be looked up by ID."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from sqlshell.interface import sqlstate
from sqlshell.interface.models import Parameters, StatementRequest
from sqlshell.mask import MASK
from sqlshell.runtime.idle import in_thread
from sqlshell.runtime.unused_memory import Growth, return_unused_memory
from sqlshell.service.catalog import Caller
from sqlshell.service.engines.engine import CANCELED_BEFORE_START, ExternalEngine, Outcome
from sqlshell.service.failure import Failure
from sqlshell.service.objects.attachments import Attachment, Attachments
from sqlshell.service.objects.grammar import ParsedStatement, dialect_of
from sqlshell.service.objects.kind import DialectStatement, Drop, StartedFeed, Update, Work
from sqlshell.service.objects.listing import List
from sqlshell.service.objects.query import Restart
from sqlshell.service.objects.result_rows import table
from sqlshell.service.organizations.organizations import Organization, Organizations
from sqlshell.service.organizations.pools import Pool
from sqlshell.service.organizations.sessions import Session, Sessions
from sqlshell.service.refusals import InvalidRequest, Refusal, ShuttingDown
from sqlshell.service.results.results import IN_RECORD
from sqlshell.service.settings import Settings, limit_note
from sqlshell.service.statements.admission import Admission, SentText
from sqlshell.service.statements.batches import Batch, Batches, EndedStatement
from sqlshell.service.statements.canceller import NOT_BEGUN, SESSION_ENDED, Canceller, end_of, when_stopped
from sqlshell.service.statements.control import Control, ControlStatement, is_control
from sqlshell.service.statements.reading_thread import LONG, ReadingThread
from sqlshell.service.statements.runner import Executor
from sqlshell.service.statements.splitting import split
from sqlshell.service.statements.statement import STOPPED, Statement, wait_for_response
from sqlshell.service.statements.store import StatementStore
from sqlshell.service.statements.undelivered_secrets import Secret
from sqlshell.service.storage.storage import StorageError
from sqlshell.sql.analysis.kinds import verb
from sqlshell.sql.analysis.secrets import names_secret
from sqlshell.sql.script import items as script
from sqlshell.sql.script.lexical_rules import BLANKS

if TYPE_CHECKING:
    from sqlshell.service.cluster.cluster import Cluster
    from sqlshell.service.statements.membership import Membership

CLOSING_SECONDS = 5.0
TICK_SECONDS = 0.5
SWEEP_SECONDS = 5.0
REPORT_SECONDS = 0.05
"""How long the ends of statements are collected before they are recorded together."""

MOST_TOGETHER = 100
"""The maximum number of statements that a thread runs before the event loop looks at the next ones."""

POOL_TIME = "statement canceled: it ran longer than the timeout of its compute pool"

REASON = 1000
"""The maximum length of a message that quotes another statement's failure, in characters."""

SESSION_LOST = (
    "the session was lost when its service process stopped: its transaction, role, settings and temporary tables are "
    "gone, and the statement was not run; run it again to continue without them"
)

TRANSACTION_LOST = (
    "the transaction was lost with its session, whose role, settings and temporary tables are gone too: none of its "
    "changes were committed, and the statement was not run; run ROLLBACK"
)

NOT_RUN = "not run: an earlier statement of the same submission failed"


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
        self._sessions = Sessions(organizations, settings)
        self._executor = Executor(organizations, self._sessions, self.store, settings)
        self._tasks: set[asyncio.Task[None]] = set()
        self._ticking: asyncio.Task[None] | None = None
        self.thread = ReadingThread()
        self.admission = Admission(organizations, self._sessions, store, settings, self.thread)
        self.canceller = Canceller(organizations, self._sessions, store, settings)
        self._control = Control(self._sessions, store, self.canceller, self.thread, cluster)
        self.batches = Batches()
        self._membership: Membership | None = None

    def start(self) -> None:
        """Start the periodic work: timeouts, retention and idle sessions. A second call has no effect."""
        if self._ticking is None:
            self._ticking = asyncio.ensure_future(self._tick())
            if self.cluster is None:
                self.resume(self.store.interrupted())
            else:
                from sqlshell.service.statements.membership import Membership

                self._membership = Membership(self.cluster, self, self._sessions)
                self._membership.start()

    async def submit(
        self,
        request: StatementRequest,
        caller: Caller,
        attachments: Attachments | None = None,
    ) -> list[Statement]:
        """Start the statements of a request; returns their records, in order.

        `attachments` are closed when they have finished. The records have failed if the caller's organization cannot be
        opened. Raises Refusal.
        """
        attachments = attachments or Attachments()
        running = False
        try:
            if self.draining:
                raise ShuttingDown("the service is shutting down")
            most = self._settings.statements
            items = await self.thread.read(len(request.statement), partial(split, request.statement, most))
            given = [(item.text, item.ending) for item in items if isinstance(item, script.Statement)]
            if not items:
                raise InvalidRequest("request.statement contains no statement")
            # A backslash command is not SQL: the statement fails, but the request is valid.
            given = given or [(request.statement, "")]
            texts = [text for text, _ in given]
            commands = [item.name for item in items if isinstance(item, script.BackslashCommand)]
            parsed = ParsedStatement(texts[0], dialect_of(self.organizations))
            control = self._control_statement(parsed) if len(texts) == 1 and not commands else None
            # Statements about statements have a separate limit, so that others can still be terminated.
            try:
                session, single_use, records = await self.admission.admit(
                    request, caller, given, 1 if control is None else 2
                )
            except Failure as failure:
                return await self._failed(request, caller, given, failure)
            self.start()
            records[0].cached_parse = parsed
            if commands:
                message = f"{commands[0][:100]!r} is a shell command, not SQL"
                self.canceller.finish(records[0], sqlstate.SYNTAX, message)
                self._cancel(records[1:])
                self._sessions.end_if_left(session)
                return records
            if control is not None:
                self._start(self._run_control(session, single_use, request, records[0], control))
            else:
                self._sessions.hold(session)
                batch = Batch(records, stops=True, combined=False)
                self._start(self._run(session, request, batch, attachments))
                running = True
            return records
        finally:
            if not running:
                attachments.close()

    async def submit_batch(self, request: StatementRequest, caller: Caller, attachments: Attachments) -> Batch:
        """Start the statements of a batch. Raises like submit()."""
        attached = bool(attachments.files)
        attachments.close()
        if attached:
            raise InvalidRequest("a batch cannot have attachments; submit the statement that needs them separately")
        if self.draining:
            raise ShuttingDown("the service is shutting down")
        texts = request.statements or []
        await self.admission.check_load(caller, len(texts), sum(map(len, texts)), 1)
        given = [_split_semicolon(text) for text in texts]
        try:
            session, _, records = await self.admission.admit(request, caller, given, 1)
        except Failure as failure:
            batch = Batch(await self._failed(request, caller, given[:1], failure), True)
            batch.finished.set()
            self.batches.keep(batch)
            return batch
        self.start()
        batch = Batch(records, request.on_error != "continue", text_size=sum(map(len, texts)))
        self.batches.keep(batch)
        self._sessions.hold(session)
        self._start(self._run(session, request, batch, attachments))
        return batch

    async def find(self, statement_id: str, caller: Caller) -> Statement | None:
        """The record of a statement that the caller may see. Raises StorageError."""
        record = await self.store.look_up(statement_id)
        return record if record is not None and caller.may_read(record.organization, record.owner) else None

    def find_batch(self, statement_id: str, caller: Caller) -> Batch | None:
        """The batch that begins with this statement, if the caller may see all of it."""
        batch = self.batches.find(statement_id)
        if batch is None:
            return None
        # Clients poll a long batch often, so each pair is checked once.
        if not all(caller.may_read(*pair) for pair in {(item.organization, item.owner) for item in batch.records}):
            return None
        return batch

    async def drain(self, grace: float) -> None:
        """Accept no more statements, and give running ones `grace` seconds to finish."""
        self.draining = True
        if self._membership is not None:
            await self._membership.give_up_idle_sessions()
        until = time.monotonic() + grace
        for record in self.store.running():
            if record.feed is None:
                await wait_for_response(record, until - time.monotonic())

    async def close(self) -> None:
        """Cancel running statements, and close all sessions and engines."""
        self.draining = True
        if self._ticking is not None:
            self._ticking.cancel()
        until = time.monotonic() + CLOSING_SECONDS
        for record in self.store.running():
            record.cancel(when_stopped(record))
            if record.feed is not None:
                await self.canceller.end_stream_query(record, sqlstate.CANCELED, "the service was shut down")
        while any(record.connection for record in self.store.running()) and time.monotonic() < until:
            for record in self.store.running():
                record.interrupt()
            await asyncio.sleep(0.01)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._membership is not None:
            await self._membership.close()
        self.admission.close()
        self.thread.close()
        self._sessions.close()
        self.organizations.close()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _failed(
        self, request: StatementRequest, caller: Caller, given: Sequence[SentText], failure: Failure
    ) -> list[Statement]:
        """The failed records of statements without a session, for example if their organization cannot be opened."""
        records = await self.admission.without_session(request, caller, given)
        self.canceller.finish(records[0], failure.sql_state, failure.message)
        self._cancel(records[1:])
        return records

    def _settle_in(self, record: Statement, session: Session, asked: DialectStatement | None) -> None:
        """Assign a record to the organization in which it runs.

        Statements about organizations, or about statements without an organization, belong to none.
        """
        here = session.organization.id
        about = is_control(asked) or (asked is not None and asked.needs().organizations)
        if record.organization != here and not about:
            self.store.move(record, here)
            record.context = replace(session.echo(), timezone=None)

    @staticmethod
    def _control_statement(parsed: ParsedStatement) -> ControlStatement | None:
        """The parsed statement, if it is a control statement; None for others."""
        if len(parsed.sql) > LONG:
            return None
        with contextlib.suppress(Failure):
            asked = parsed.statement()
            return asked if is_control(asked) else None
        return None

    async def _run(self, session: Session, request: StatementRequest, batch: Batch, attachments: Attachments) -> None:
        """Run the statements of a submission one after another."""
        adopted = stopped = False
        try:
            async with session.turn:
                while batch.at < len(batch.records) and not _is_over(session, batch):
                    at, record = batch.at, batch.records[batch.at]
                    if session.ended:
                        self.canceller.finish(record, sqlstate.CANCELED, SESSION_ENDED, session if adopted else None)
                    elif record.unfinished:
                        adopted = adopted or await self._adopted(session, request, record)
                        if adopted:
                            await self._guarded(record, session, self._next(session, request, batch, attachments.files))
                        else:
                            batch.stops = True
                    batch.at = max(batch.at, at + 1)
                    await self.store.settled(batch.records[batch.at - 1])
                await self._settle(session, batch.records[0])
        except asyncio.CancelledError:
            stopped = True
            raise
        finally:
            attachments.close()
            self._take(batch, session)
            self._end_rest(batch, session if adopted else None, stopped=stopped)
            batch.finished.set()
            self._sessions.release(session)

    def _end_rest(self, batch: Batch, session: Session | None, *, stopped: bool) -> None:
        """End the statements of a submission that were not run; those of a batch are removed."""
        rest = batch.records[batch.at :]
        while rest and ((stopped and (not batch.combined or rest[0].started)) or not rest[0].unfinished):
            self.canceller.finish(rest[0], *when_stopped(rest[0]), session)
            del rest[0]
        if batch.combined:
            del batch.records[len(batch.records) - len(rest) :]
            self.store.drop(rest)
        elif rest:
            # A client may poll only the last statement, so its message quotes the failure.
            failed = batch.records[batch.at - 1]
            message = f"{NOT_RUN}: {failed.sql_state}: {failed.message}"[:REASON]
            for record in rest:
                self.canceller.finish(record, sqlstate.CANCELED, message, session)

    async def _run_control(
        self,
        session: Session,
        single_use: bool,
        request: StatementRequest,
        record: Statement,
        asked: ControlStatement,
    ) -> None:
        try:
            if not single_use:
                await self._guarded(record, None, self._run_beside(session, request, record, asked))
            elif await self._adopted(session, request, record):
                record.context = session.echo()
                await self._guarded(record, session, self._control.run(session, record, asked))
        finally:
            self._sessions.end_if_left(session)

    async def _run_beside(
        self, session: Session, request: StatementRequest, record: Statement, asked: ControlStatement
    ) -> None:
        """Run a control statement beside the statement that is running in its session, which keeps its role."""
        if request.role and request.role != session.role:
            session = replace(session)
            session.use("role", request.role)
        await self._control.run(session, record, asked)

    async def _guarded(self, record: Statement, session: Session | None, work: Coroutine[Any, Any, None]) -> None:
        """Finish the record whatever happens, except for a SELECT on a stream that has started."""
        try:
            await work
        except asyncio.CancelledError:
            self.canceller.finish(record, *when_stopped(record), session)
            raise
        except Exception as error:
            state, message = end_of(error, record)
            if session is not None:
                await self._note_transaction(session)
            self.canceller.finish(record, state, message, session)

    async def _note_transaction(self, session: Session) -> None:
        """Before the outcome is reported, notify the other processes whether the statement left a transaction open."""
        is_open = bool(session.connection.transaction)
        if self.cluster is not None and session.name and is_open != session.noted_transaction:
            # If the database does not respond, the end of the statement waits for it too, and the next one tries again.
            with contextlib.suppress(StorageError):
                noted = session.caller.token_id, session.name, is_open
                await self.cluster.run_async(self.cluster.note_transaction, *noted)
                session.noted_transaction = is_open

    async def _next(
        self, session: Session, request: StatementRequest, batch: Batch, files: Sequence[Attachment]
    ) -> None:
        """Run the next statement of a submission, and those after it that the engine can run in the same slot."""
        record, submitted = batch.records[batch.at], batch.records[batch.at].organization
        asked = await self.thread.read(len(record.sql), record.parsed.statement)
        if is_control(asked):
            record.context = session.echo()
            await self._control.run(session, record, asked)
            return
        record.spool.may_stay_local = isinstance(asked, List)
        self._settle_in(record, session, asked)
        _check_lost(session, record)
        if isinstance(asked, Restart):
            await self._restart(session, record, asked)
            return
        organization, awaited = session.organization, session.organization.engine.traits.awaited
        records = [record] if asked is not None or awaited else await self._together(session, batch)
        async with contextlib.AsyncExitStack() as stack:
            limit = self._limit(None)
            if asked is None or asked.needs().work is Work.ENGINE:
                pool = await organization.pool(session.compute_pool)
                record.pools = pool, organization.places
                for each in record.pools:
                    await stack.enter_async_context(each.admit(record.owner, record.statement_id))
                if self._membership is not None:
                    await stack.enter_async_context(self._membership.slot(session, pool, record))
                limit = self._limit(pool)
            if not record.unfinished:
                return
            if not record.start(session.connection, *limit):
                raise Failure(sqlstate.CANCELED, CANCELED_BEFORE_START)
            if asked is None and awaited:
                outcome = await self._on_server(session, request, record, files)
                batch.size += record.spool.size
                batch.ended.append(_ended(session, record, outcome))
            else:
                run = partial(self._executor.run, session, asked, files=files, parameters=request.parameters)
                try:
                    await organization.run(self._work, asyncio.get_running_loop(), session, batch, records, run, limit)
                except Exception:
                    # Some of them may have ended.
                    self._take(batch, session)
                    raise
            for left in records:
                if not left.started and left.organization != submitted:
                    self.store.move(left, submitted)
        await self._note_transaction(session)
        self._take(batch, session)
        if isinstance(asked, Drop):
            await self.canceller.end_dropped()
        if isinstance(asked, Update) and asked.kind == "compute_pool":
            await session.organization.refresh_pools()

    async def _together(self, session: Session, batch: Batch) -> list[Statement]:
        """The next statement of a submission, and those after it that the engine can run in the same slot."""
        records = batch.records[batch.at : batch.at + MOST_TOGETHER]
        for number, record in enumerate(records[1:], 1):
            if not await self.thread.read(len(record.sql), record.parsed.is_for_engine):
                return records[:number]
            self._settle_in(record, session, None)
        return records

    def _limit(self, pool: Pool | None) -> tuple[float, str]:
        """How many seconds a statement may run, and the message if it runs longer."""
        most = self._settings.seconds or math.inf
        if pool is not None and pool.size.timeout and pool.size.timeout < most:
            return pool.size.timeout, POOL_TIME
        return most, f"statement canceled: it ran longer than {most:g} seconds {limit_note('seconds')}"

    def _work(
        self,
        loop: asyncio.AbstractEventLoop,
        session: Session,
        batch: Batch,
        records: Sequence[Statement],
        run: Callable[[Statement], Outcome | StartedFeed],
        limit: tuple[float, str],
    ) -> None:
        """Run statements in a thread, of which the first has started, until one ends the submission or another
        statement waits for the slot.
        """
        for record in records:
            if record is not records[0] and not record.start(session.connection, *limit):
                return
            result: Outcome | StartedFeed | Exception
            filed: Sequence[tuple[int, int]] | None = None
            try:
                try:
                    result = run(record)
                    filed = result.filed if isinstance(result, Outcome) else None
                finally:
                    record.runs_on(None)
                    record.spool.finish(filed)
            except Exception as error:
                result = error
            ended = _ended(session, record, result)
            batch.size += record.spool.size
            batch.ended.append(ended)
            batch.at += 1
            over = session.failed_by_context(ended.sql_state) or batch.ends_with(record, ended.sql_state)
            if over or session.ended or any(pool.waiting for pool in records[0].pools):
                return
            if not batch.notified and record is not records[-1]:
                batch.notified = True
                loop.call_soon_threadsafe(loop.call_later, REPORT_SECONDS, self._take, batch, session)

    def _take(self, batch: Batch, session: Session) -> None:
        """Record the ends that the thread of a submission has reported."""
        batch.notified = False
        ends, committed = [], False
        while batch.ended:
            item = batch.ended.popleft()
            record, result = item.record, item.result
            record.context = item.context
            if isinstance(result, tuple):
                self._begun(session, record, result)
                continue
            if result is not None and result.secret:
                secret = Secret(result.secret_name, result.secret)
                self.canceller.undelivered_secrets.keep(record.owner, record.statement_id, secret)
                result = replace(result, secret="", secret_name="")
            record.outcome = result
            ends.append((record, item.sql_state, item.message))
            committed = committed or item.committed
        if ends:
            self.canceller.finish_all(ends)
        if committed:
            self._start(session.organization.streams.changed())

    async def _restart(self, session: Session, record: Statement, asked: Restart) -> None:
        """Run a statement again as a new one of this caller, in a new session with the old context and current role.

        Raises Failure.
        """
        target = await self._control.readable(session, asked.statement_id, "RESTART QUERY")
        if target.running:
            raise Failure("55006", f"query {asked.statement_id} is still running; run TERMINATE QUERY first")
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
            begun = (await self.submit(request, session.caller))[0]
        except Refusal as refused:
            raise Failure(sqlstate.LIMIT, str(refused)) from None
        message = f"restarted query {target.statement_id} as {begun.statement_id}"
        record.outcome = replace(table(record.spool, ("id",), [(begun.statement_id,)]), message=message)
        record.spool.finish()
        self.canceller.finish(record, sqlstate.DONE, message, session)

    def _begun(self, session: Session, record: Statement, begun: StartedFeed) -> None:
        """Register a SELECT on a stream that has started."""
        record.feed, start = begun
        session.organization.streams.begin(record.statement_id, record.feed, start)
        record.ready.set()

    async def _adopted(self, session: Session, request: StatementRequest, record: Statement) -> bool:
        """Apply a request's context to the session; if that fails, finish the record and return False."""
        await self._guarded(record, None, self._adopt(session, request))
        return record.unfinished

    async def _adopt(self, session: Session, request: StatementRequest) -> None:
        session.context_failures = {}
        if session.differs_from(request):
            await session.organization.run(session.adopt, request, self.organizations)
        if session.lost_transaction and not session.connection.transaction:
            # Until the client ends it, none of its statements may be committed alone.
            await session.organization.run(session.connection.lose_transaction)

    @staticmethod
    async def _settle(session: Session, first: Statement) -> None:
        """Keep the context of a request whose first statement did not fail because of it."""
        if session.before is not None:
            await session.organization.run(session.settle, first.sql_state)

    async def _on_server(
        self, session: Session, request: StatementRequest, record: Statement, files: Sequence[Attachment]
    ) -> Outcome:
        """Run the statement on an engine that is an external server. Raises Failure."""
        loop = asyncio.get_running_loop()

        def begun(operation: str) -> None:
            loop.call_soon_threadsafe(self.store.note_operation, record, operation)

        try:
            outcome = await self._executor.run_on_server(session, record, files, request.parameters, begun)
        finally:
            record.runs_on(None)
        await _finish_result(session.organization, record, outcome.filed)
        return outcome

    def resume(self, records: Sequence[Statement]) -> None:
        """Go on with statements of a process that has ended: wait for those that the engine still runs, fail others."""
        server = self.organizations.server
        interrupted = {record.statement_id for record in records}
        for record in records:
            # Several processes note each end before the next statement of the submission begins.
            if self.cluster is not None and record.previous in interrupted:
                self.canceller.finish(record, sqlstate.CANCELED, NOT_BEGUN)
            elif server is not None and record.operation and server.capabilities.reattaching:
                self._start(self._guarded(record, None, self._reattach(cast(ExternalEngine, server), record)))
            else:
                self.canceller.finish(record, sqlstate.INTERNAL, STOPPED)

    async def _reattach(self, engine: ExternalEngine, record: Statement) -> None:
        """Wait for a statement that the engine went on with while no process of the service waited for it."""
        record.start()
        place = record.organization or self.organizations.default()
        organization = await asyncio.to_thread(self.organizations.get, place)
        try:
            with self._executor.counted(record) as sink:
                outcome = await engine.reattach(
                    record.operation,
                    self._executor.options_of(record),
                    sink,
                    record.runs_on,
                )
        finally:
            record.runs_on(None)
        await _finish_result(organization, record, outcome.filed)
        record.outcome = outcome
        self.canceller.finish(record, outcome.sql_state, outcome.message)

    def _cancel(self, records: Sequence[Statement]) -> None:
        for record in records:
            self.canceller.finish(record, sqlstate.CANCELED, NOT_RUN)

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


async def _finish_result(
    organization: Organization, record: Statement, filed: Sequence[tuple[int, int]] | None
) -> None:
    """Finish a result; a large one in a thread. Raises OSError."""
    if record.spool.small and record.spool.size <= IN_RECORD:
        record.spool.finish(filed)
    else:
        await organization.run(record.spool.finish, filed)


def _is_over(session: Session, batch: Batch) -> bool:
    """Whether the latest statement of a submission ends it."""
    if not batch.at:
        return False
    latest = batch.records[batch.at - 1]
    return session.failed_by_context(latest.sql_state) or batch.ends_with(latest, latest.sql_state)


def _ended(session: Session, record: Statement, result: Outcome | StartedFeed | Exception) -> EndedStatement:
    """The end of a statement with this result."""
    record.seconds = time.monotonic() - record.began
    rest = session.echo(), not session.connection.transaction
    if isinstance(result, Exception):
        return EndedStatement(record, *end_of(result, record), None, *rest)
    if isinstance(result, tuple):
        return EndedStatement(record, sqlstate.RUNNING, "", result, *rest)
    return EndedStatement(record, result.sql_state, result.message, result, *rest)


def _check_lost(session: Session, record: Statement) -> None:
    """Raises the Failure of the first statement in a session that replaces a lost one."""
    if session.lost_transaction:
        session.lost_transaction = False
        if verb(record.sql) not in {"ROLLBACK", "ABORT"}:
            session.lost = False
            raise Failure("40000", TRANSACTION_LOST)
    elif session.lost:
        session.lost = False
        raise Failure(sqlstate.SESSION_LOST, SESSION_LOST)


def _split_semicolon(text: str) -> SentText:
    """A statement of a batch, and the semicolon after it."""
    bare = text.rstrip(BLANKS)
    if not bare.endswith(";"):
        return text, ""
    bare = bare[:-1].rstrip(BLANKS)
    return bare, text[len(bare) :]
