"""Runs the statements of submissions: those of a text, or of a batch with one response, one after another."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import math
import time
from collections import Counter, deque
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct, field
from msgspec.structs import replace

from sqlshell.errors import reason
from sqlshell.interface import sqlstate
from sqlshell.interface.models import StatementRequest
from sqlshell.runtime.event_loops import spawn
from sqlshell.service.engines.engine import CANCELED_BEFORE_START, ExternalEngine, Outcome
from sqlshell.service.failure import Failure, ResultLost
from sqlshell.service.objects.attachments import Attachments
from sqlshell.service.objects.grammar import dialect_of
from sqlshell.service.objects.kind import DialectStatement, StartedFeed, Work
from sqlshell.service.organizations.organizations import Organizations
from sqlshell.service.organizations.sessions import Session, Sessions
from sqlshell.service.settings import Settings
from sqlshell.service.statements.control import SESSION_ENDED, Control
from sqlshell.service.statements.executor import Executor
from sqlshell.service.statements.statement import NOT_BEGUN, STOPPED, Statement, when_stopped
from sqlshell.service.statements.store import StatementStore
from sqlshell.service.statements.texts import Secret, read_text
from sqlshell.service.storage.storage import StorageError, Unavailable, Unreachable
from sqlshell.sql.analysis.kinds import verb

if TYPE_CHECKING:
    from sqlshell.service.cluster.cluster import Cluster
    from sqlshell.service.objects.query import AboutQuery

REPORT_SECONDS = 0.05
"""How often the ends of statements that run together are recorded."""

MOST_TOGETHER = 100
"""The maximum number of statements that a thread runs before the event loop looks at the next ones."""

RESULTS = 4 << 20
"""A batch ends when its results exceed this many bytes."""

KEPT, KEPT_SIZE = 2_000, 16 << 20
"""Batches can be looked up while they have at most this many statements together, and about as many characters of texts
and bytes of results; the statements are kept longer."""

REASON = 1000
"""The maximum length of a message that quotes another statement's failure, in characters."""

NOT_RUN = "not run: an earlier statement of the same submission failed"

SESSION_LOST = (
    "the session was lost when its service process stopped: its transaction, role, settings and temporary tables are "
    "gone, and the statement was not run; run it again to continue without them"
)

TRANSACTION_LOST = (
    "the transaction was lost with its session, whose role, settings and temporary tables are gone too: none of its "
    "changes were committed, and the statement was not run; run ROLLBACK"
)


Ended = tuple[Statement, Outcome | StartedFeed | Exception]
"""A statement that a thread has run, and its result: that of a SELECT on a stream goes on."""


class Batch(Struct, eq=False):
    """Statements that are submitted together: all until the batch has ended, and then those that were started.

    `stops` says whether a failure ends the batch; `finished` is set when no more statements of it will run. `combined`
    is False for the statements of a text, each of which has a response of its own.
    """

    statements: list[Statement]
    stops: bool
    finished: asyncio.Event = field(default_factory=asyncio.Event)
    combined: bool = True
    at: int = 0
    """How many statements have ended or were passed over."""
    size: int = 0
    """The size of all results in bytes."""

    @property
    def weight(self) -> int:
        """Its share of KEPT_SIZE."""
        texts = sum(len(item.sql) for item in self.statements)
        return max(len(self.statements) * KEPT_SIZE // KEPT, texts + self.size)


def keep_batch(batches: dict[str, Batch], batch: Batch) -> None:
    """Keep a batch by the ID of its first statement. If there are too many, remove old ones, beginning with those of
    the token that has the most."""
    batches[batch.statements[0].statement_id] = batch
    weights = {key: item.weight for key, item in batches.items()}
    weight = sum(weights.values())
    if weight <= KEPT_SIZE:
        return
    shares: Counter[str] = Counter()
    for key, item in batches.items():
        shares[item.statements[0].owner] += weights[key]
    # Removes a few more than necessary, so that the next batches find room.
    for key, item in sorted(batches.items(), key=lambda entry: -shares[entry[1].statements[0].owner]):
        if item.finished.is_set() and weight > 0.9 * KEPT_SIZE:
            weight -= weights[key]
            del batches[key]


class Submission(Struct, eq=False):
    """A batch that runs, or waits for its turn, in a session."""

    session: Session
    request: StatementRequest
    batch: Batch
    attachments: Attachments
    adopted: bool = False
    """Whether the session has the context of the request."""

    @property
    def shown(self) -> Session | None:
        """The session whose context its statements show: that of their own request before it is adopted."""
        return self.session if self.adopted else None

    def is_over(self, statement: Statement, sql_state: str) -> bool:
        """Whether a statement with this sqlState ends the submission.

        It does so after a failure because of the request's context, or any if the batch `stops`; after a canceled
        statement, one that failed because something was not ready and should be sent again, or one whose session was
        lost. If the batch is `combined`, also after a large result, because reading it may fail; after a SELECT on a
        stream; and when the results are too large in total.
        """
        batch = self.batch
        if self.session.failed_by_context(sql_state):
            return True
        if sqlstate.failed(sql_state):
            ending = sql_state in {sqlstate.CANCELED, sqlstate.SESSION_LOST}
            return batch.stops or ending or sqlstate.not_ready(sql_state)
        large = statement.spool.layout.form != "record" or batch.size > RESULTS
        return batch.combined and (sql_state == sqlstate.RUNNING or large)

    def next(self) -> Statement | None:
        """The statement that runs next, None if the submission is over."""
        batch = self.batch
        latest = batch.statements[batch.at - 1] if batch.at else None
        over = batch.at == len(batch.statements) or (latest and self.is_over(latest, latest.sql_state))
        return None if over else batch.statements[batch.at]


class Runner:
    """Runs submissions in tasks. Used from one event loop; engines run in threads."""

    def __init__(
        self,
        organizations: Organizations,
        sessions: Sessions,
        store: StatementStore,
        settings: Settings,
        control: Control,
        cluster: Cluster | None,
    ) -> None:
        self._organizations = organizations
        self._sessions = sessions
        self._store = store
        self._settings = settings
        self._control = control
        self._executor = Executor(organizations, sessions, store, settings)
        self._dialect = dialect_of(organizations)
        self._tasks: set[asyncio.Task[None]] = set()
        self._cluster = cluster

    async def close(self) -> None:
        """End the tasks."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do work in a task until it ends or close() cancels it."""
        spawn(work, self._tasks)

    async def run(self, submission: Submission) -> None:
        """Run the statements of a submission one after another, once its session is free."""
        session, batch = submission.session, submission.batch
        stopped = False
        try:
            async with session.turn:
                while (statement := submission.next()) is not None:
                    at = batch.at
                    if session.ended:
                        self._store.end(statement, sqlstate.CANCELED, SESSION_ENDED, submission.shown)
                    elif statement.unfinished:
                        await self._guarded(statement, self._next(submission, statement), submission)
                    batch.at = max(batch.at, at + 1)
                    await self._store.settled(batch.statements[batch.at - 1])
                if session.before is not None:
                    # Keeps the context of a request whose first statement did not fail because of it.
                    await session.organization.run(session.settle, batch.statements[0].sql_state)
        except asyncio.CancelledError:
            stopped = True
            raise
        finally:
            submission.attachments.close()
            if batch.at < len(batch.statements):
                self._end_rest(submission, stopped=stopped)
            batch.finished.set()
            self._sessions.release(session)

    def _end_rest(self, submission: Submission, *, stopped: bool) -> None:
        """End the statements of a submission that were not run; those of a batch are removed."""
        batch, session = submission.batch, submission.shown
        rest = batch.statements[batch.at :]
        while rest and ((stopped and (not batch.combined or rest[0].started)) or not rest[0].unfinished):
            self._store.end(rest[0], *when_stopped(rest[0]), session)
            del rest[0]
        if batch.combined:
            del batch.statements[len(batch.statements) - len(rest) :]
            self._store.drop(rest)
        elif rest:
            # A client may poll only the last statement, so its message quotes the failure.
            failed = batch.statements[batch.at - 1]
            message = f"{NOT_RUN}: {failed.sql_state}: {failed.message}"[:REASON]
            for statement in rest:
                self._store.end(statement, sqlstate.CANCELED, message, session)

    async def run_control(
        self, session: Session, request: StatementRequest, statement: Statement, asked: DialectStatement
    ) -> None:
        """Run a control statement that is alone in its submission, beside what runs in its session."""
        try:
            await self._guarded(statement, self._run_alone(session, request, statement, asked))
        finally:
            self._sessions.release(session)

    async def _run_alone(
        self, session: Session, request: StatementRequest, statement: Statement, asked: DialectStatement
    ) -> None:
        if not session.name:
            await self._adopt(session, request)
            statement.context = session.echo()
        elif request.role and request.role != session.role:
            # The statement that is running in the session keeps its role.
            session = replace(session)
            session.use("role", request.role)
        await self._control.run(session, statement, asked)

    async def _guarded(
        self, statement: Statement, work: Coroutine[Any, Any, None], submission: Submission | None = None
    ) -> None:
        """Finish the statement whatever happens, except for a SELECT on a stream that has started."""
        shown = None
        try:
            await work
        except asyncio.CancelledError:
            shown = submission.shown if submission is not None else None
            self._store.end(statement, *when_stopped(statement), shown)
            raise
        except Exception as error:
            state, message = end_of(error, statement)
            if submission is not None and not submission.adopted:
                submission.batch.stops = True
            elif submission is not None:
                shown = submission.session
                await self._note_transaction(shown)
            self._store.end(statement, state, message, shown)

    async def _adopt(self, session: Session, request: StatementRequest) -> None:
        session.context_failures = {}
        if session.differs_from(request):
            await session.organization.run(session.adopt, request, self._organizations)
        if session.lost_transaction and not session.connection.transaction:
            # Until the client ends it, none of its statements may be committed alone.
            await session.organization.run(session.connection.lose_transaction)

    async def _next(self, submission: Submission, statement: Statement) -> None:
        """Run the next statement of a submission, and those after it that the engine can run in the same slot."""
        session, submitted = submission.session, statement.organization
        if not submission.adopted:
            await self._adopt(session, submission.request)
            submission.adopted = True
            if not statement.unfinished:
                return
        sql, whose = statement.sql, statement.organization or statement.owner
        asked = await read_text(len(sql), partial(self._dialect.read, sql), whose)
        if asked is not None and asked.is_control:
            statement.context = session.echo()
            await self._control.run(session, statement, asked)
            return
        if asked is None or not asked.needs().organizations:
            self._settle_in(session, statement)
        statement.spool.may_stay_local = asked is not None and asked.verb == "list"
        if session.lost or session.lost_transaction:
            _check_lost(session, statement)
        if asked is not None and asked.verb == "restart":
            await self._control.restart(session, statement, cast("AboutQuery", asked))
            return
        server = self._organizations.server
        together = [statement] if asked is not None or server is not None else await self._together(submission)
        await self._execute(submission, together, asked)
        for left in together:
            if not left.started:
                self._store.move(left, submitted)
        if asked is not None and asked.verb == "drop":
            await self._control.end_dropped()
        if asked is not None and asked.verb == "update":
            await session.organization.refresh_pools()

    async def _together(self, submission: Submission) -> list[Statement]:
        """The next statement of a submission, and those after it that the engine can run in the same slot.

        A thread for each of them takes half as much processor time again.
        """
        batch = submission.batch
        statements = batch.statements[batch.at : batch.at + MOST_TOGETHER]
        for number, statement in enumerate(statements[1:], 1):
            sql, whose = statement.sql, statement.organization or statement.owner
            if not await read_text(len(sql), partial(self._dialect.is_for_engine, sql), whose):
                return statements[:number]
            self._settle_in(submission.session, statement)
        return statements

    async def _execute(
        self, submission: Submission, together: Sequence[Statement], asked: DialectStatement | None
    ) -> None:
        """Run statements in a thread, once they have a slot, unless the first one has ended meanwhile."""
        session, statement = submission.session, together[0]
        organization, server = session.organization, self._organizations.server
        async with contextlib.AsyncExitStack() as stack:
            most = self._settings.seconds or math.inf
            if asked is None or asked.needs().work is Work.ENGINE:
                pool = await organization.pool(session.compute_pool)
                statement.pools = pool, organization.places
                for each in statement.pools:
                    await stack.enter_async_context(each.admit(statement.owner, statement.statement_id))
                most = min(most, pool.size.timeout or math.inf)
            if not statement.unfinished:
                return
            await self._store.note_begun(together)
            if not statement.start(session.connection, most):
                raise Failure(sqlstate.CANCELED, CANCELED_BEFORE_START)
            if asked is None and server is not None and server.capabilities.reattaching:
                self._store.note_operation(statement, cast(ExternalEngine, server).operation(session.connection))
            ended: deque[Ended] = deque()
            work = asyncio.ensure_future(organization.run(self._work, submission, together, asked, most, ended))
            try:
                while not (await asyncio.wait({work}, timeout=REPORT_SECONDS if len(together) > 1 else None))[0]:
                    self._record(submission, ended)
                work.result()
                await self._note_transaction(session)
            finally:
                work.cancel()
                self._record(submission, ended)

    def _work(
        self,
        submission: Submission,
        together: Sequence[Statement],
        asked: DialectStatement | None,
        most: float,
        ended: deque[Ended],
    ) -> None:
        """Run statements in a thread, of which the first has started, each for at most `most` seconds, until one ends
        the submission or another statement waits for the slot. Their results, or errors, are added to `ended`.
        """
        session, files = submission.session, submission.attachments.files
        for statement in together:
            if statement is not together[0] and not statement.start(session.connection, most):
                return
            result: Outcome | StartedFeed | Exception
            try:
                result = self._executor.run(session, asked, statement, files, submission.request)
                state = sqlstate.RUNNING if isinstance(result, tuple) else result.sql_state
            except Exception as error:
                result, state = error, end_of(error, statement)[0]
            statement.context, statement.seconds = session.echo(), time.monotonic() - statement.began
            submission.batch.size += statement.spool.size
            ended.append((statement, result))
            is_over = submission.is_over(statement, state) or session.ended
            if is_over or any(pool.waiting for pool in together[0].pools):
                return

    def _record(self, submission: Submission, ended: deque[Ended]) -> None:
        """Record what the thread of a submission has reported."""
        streams = submission.session.organization.streams
        while ended:
            statement, result = ended.popleft()
            submission.batch.at += 1
            if isinstance(result, tuple):
                # A SELECT on a stream has started: it goes on until somebody ends it.
                statement.feed, start = result
                streams.begin(statement.statement_id, statement.feed, start)
                statement.ready.set()
            elif isinstance(result, Exception):
                self._store.end(statement, *end_of(result, statement))
            else:
                if result.secret:
                    statement.secret = Secret(result.secret_name, result.secret)
                    result = replace(result, secret="", secret_name="")
                statement.outcome = result
                self._store.end(statement, result.sql_state, result.message)
            if not statement.context.transaction:
                # Others may see the changes.
                streams.changed()

    async def _note_transaction(self, session: Session) -> None:
        """Before the outcome of a statement is reported, tell the others whether it left a transaction open."""
        is_open = bool(session.connection.transaction)
        if self._cluster is not None and session.name and is_open != session.noted_transaction:
            # If the database does not respond, the end of the statement waits for it too, and the next one tries again.
            with contextlib.suppress(StorageError):
                noted = session.caller.token_id, session.name, is_open
                await self._cluster.run_async(self._cluster.note_transaction, *noted)
                session.noted_transaction = is_open

    def _settle_in(self, session: Session, statement: Statement) -> None:
        """Assign a statement to the organization in which it runs."""
        here = session.organization.id
        if statement.organization != here and self._store.move(statement, here):
            statement.context = replace(session.echo(), timezone=None)

    async def resume(self) -> None:
        """Go on with statements of a process that has ended: wait for those that the engine still runs, fail others.
        Raises StorageError.
        """
        statements = await self._store.interrupted()
        server = self._organizations.server
        for statement in statements:
            if statement.queued:
                self._store.end(statement, sqlstate.CANCELED, NOT_BEGUN)
            elif server is not None and statement.operation and server.capabilities.reattaching:
                work = self._reattach(cast(ExternalEngine, server), statement)
                self.spawn(self._guarded(statement, work))
            else:
                self._store.end(statement, sqlstate.INTERNAL, STOPPED)

    async def _reattach(self, engine: ExternalEngine, statement: Statement) -> None:
        """Wait for a statement that the engine went on with while no process of the service waited for it. Raises
        Failure, as without an engine that goes on with it if the engine does not know it, or no longer."""
        statement.began = time.monotonic()
        place = statement.organization or self._organizations.default()
        organization = await asyncio.to_thread(self._organizations.get, place)
        try:
            outcome = await self._executor.reattach(engine, organization, statement)
        except Failure as failure:
            if failure.sql_state != sqlstate.SESSION_LOST:
                raise
            raise Failure(sqlstate.INTERNAL, STOPPED) from failure
        statement.outcome = outcome
        self._store.end(statement, outcome.sql_state, outcome.message)


def _check_lost(session: Session, statement: Statement) -> None:
    """Raises the Failure of the first statement in a session that replaces a lost one."""
    if session.lost_transaction:
        session.lost_transaction = False
        if verb(statement.sql) not in {"ROLLBACK", "ABORT"}:
            session.lost = False
            raise Failure("40000", TRANSACTION_LOST)
    elif session.lost:
        session.lost = False
        raise Failure(sqlstate.SESSION_LOST, SESSION_LOST)


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
        return state, f"cannot store the result: {reason(error)}"
    if isinstance(error, Unreachable):
        return sqlstate.REMOTE_UNAVAILABLE, str(error)
    if isinstance(error, Unavailable):
        return sqlstate.DISK_FULL, f"cannot write to the service's storage: {error}"
    return sqlstate.INTERNAL, f"internal error: {type(error).__name__}: {error}"
