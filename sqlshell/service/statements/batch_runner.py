"""Runs consecutive statements of a batch in one thread, if they are for the engine."""

from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from sqlshell.interface import sqlstate
from sqlshell.interface.models import StatementRequest
from sqlshell.service.dialect import DialectStatement
from sqlshell.service.engines.engine import Outcome
from sqlshell.service.failure import Failure, ResultLost
from sqlshell.service.objects import inventory
from sqlshell.service.objects.attachments import Attachment
from sqlshell.service.organizations.pools import Pool
from sqlshell.service.organizations.sessions import Session
from sqlshell.service.statements import artifacts
from sqlshell.service.statements.batches import Batch, EndedStatement
from sqlshell.service.statements.canceller import Canceller
from sqlshell.service.statements.runner import Executor, StartedFeed
from sqlshell.service.statements.statement import Statement
from sqlshell.service.statements.store import STOPPED
from sqlshell.service.storage.storage import Unavailable, Unreachable

NOT_BEGUN = "the service was shut down before the statement ran"

REPORT_SECONDS = 0.05
"""How long the outcomes of a batch's statements are collected before they are recorded together."""

MOST_TOGETHER = 100
"""The maximum number of statements that are passed to the engine together."""

Work = Callable[
    [Session, DialectStatement | None, StatementRequest, Statement, Sequence[Attachment]], Outcome | StartedFeed
]


class BatchRunner:
    """Runs consecutive statements of batches.

    `work` runs one statement; `begun` is called in the event loop for a SELECT on a stream; `start` starts a task.
    """

    def __init__(
        self,
        canceller: Canceller,
        executor: Executor,
        work: Work,
        begun: Callable[[Session, Statement, StartedFeed], None],
        start: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._canceller = canceller
        self._executor = executor
        self._work = work
        self._begun = begun
        self._start = start

    def run(
        self,
        loop: asyncio.AbstractEventLoop,
        session: Session,
        request: StatementRequest,
        batch: Batch,
        at: int,
        pools: Sequence[Pool],
    ) -> int:
        """Run statements of a batch from number `at` on, in a thread; returns the number of the next one.

        It stops at a statement that is not for the engine, or when another statement waits for the slot.
        """
        most = MOST_TOGETHER
        while at < len(batch.records) and batch.records[at].reading.is_for_engine() and not session.ended:
            before, at = at, self._together(loop, session, request, batch, at, most)
            if at == before:
                break
            # Statements that did not run are passed to the engine again.
            most = min(MOST_TOGETHER, 2 * (at - before))
            waited = any(pool.waiting for pool in pools)
            over = session.failed_by_context(batch.state) or batch.ends_with(batch.records[at - 1], batch.state)
            if batch.state == sqlstate.RUNNING or waited or over:
                break
        return at

    def _together(
        self,
        loop: asyncio.AbstractEventLoop,
        session: Session,
        request: StatementRequest,
        batch: Batch,
        at: int,
        most: int,
    ) -> int:
        """Run at most `most` statements in one call of the engine; returns the number of the next one."""
        records = batch.records[at : at + self._plain(session, batch, at, most)]
        records = records[: self._canceller.assign(records, session.connection)]
        if len(records) < 2:
            return at + sum(self._alone(loop, session, request, batch, record) for record in records)
        reported = 0

        def on_end(number: int, result: Outcome | Exception, seconds: float) -> None:
            nonlocal reported
            reported += 1
            if isinstance(result, Exception):
                result = self._executor.better_explained(session, records[number].sql, result)
            else:
                try:
                    inventory.note(session, records[number].sql)
                    result = artifacts.with_created_row(session, records[number], result)
                except Exception as error:
                    # The error belongs to this statement, not to the next one.
                    result = error
            self._canceller.release(records[number], records[reported] if reported < len(records) else None)
            self._report(loop, session, batch, records[number], result, seconds)

        runs = [(record.sql, record.spool) for record in records]
        try:
            session.connection.run_batch(runs, self._executor.options(session, request.parameters), on_end)
        except Exception as error:
            # The statements could not be started.
            on_end(reported, error, 0.0)
        finally:
            self._canceller.unassign(records[reported:])
        return at + reported

    def _plain(self, session: Session, batch: Batch, at: int, most: int) -> int:
        """The number of statements from `at` on that the engine can run without the service; at least 1."""
        number = 0
        for record in batch.records[at : at + most]:
            if not (self._executor.is_plain(session, record.sql) and record.reading.is_for_engine()):
                break
            number += 1
        return max(1, number)

    def _alone(
        self,
        loop: asyncio.AbstractEventLoop,
        session: Session,
        request: StatementRequest,
        batch: Batch,
        record: Statement,
    ) -> int:
        began = time.perf_counter()
        try:
            result: Outcome | StartedFeed | Exception = self._work(session, None, request, record, ())
        except Exception as error:
            result = error
        if isinstance(result, tuple):
            batch.state = sqlstate.RUNNING
            loop.call_soon_threadsafe(self._begun, session, record, result)
        else:
            self._report(loop, session, batch, record, result, time.perf_counter() - began)
        return 1

    def _report(
        self,
        loop: asyncio.AbstractEventLoop,
        session: Session,
        batch: Batch,
        record: Statement,
        result: Outcome | Exception,
        seconds: float,
    ) -> None:
        """Report the outcome of a statement to the event loop, with a short delay."""
        outcome = None if isinstance(result, Exception) else result
        state, message = (
            state_and_message(result, record) if isinstance(result, Exception) else (result.sql_state, result.message)
        )
        record.seconds = seconds
        batch.size += record.spool.size
        batch.state = state
        batch.outcomes.append(
            EndedStatement(record, state, message, outcome, session.echo(), not session.connection.in_transaction)
        )
        if not batch.notified:
            batch.notified = True
            loop.call_soon_threadsafe(loop.call_later, REPORT_SECONDS, self.take, batch, session)

    def take(self, batch: Batch, session: Session) -> None:
        """Record the outcomes that the thread of a batch has reported."""
        batch.notified = False
        endings, committed = [], False
        while batch.outcomes:
            item = batch.outcomes.popleft()
            item.record.outcome, item.record.context = item.outcome, item.context
            endings.append((item.record, item.state, item.message))
            committed = committed or item.committed
        if endings:
            self._canceller.finish_all(endings)
        if committed:
            self._start(session.organization.streams.changed())


def when_stopped(record: Statement) -> tuple[str, str]:
    """The sqlState and message of a statement that the end of the service ends."""
    return (sqlstate.INTERNAL, STOPPED) if record.started else (sqlstate.CANCELED, NOT_BEGUN)


def state_and_message(error: BaseException, record: Statement) -> tuple[str, str]:
    """The sqlState and message for an error that ended a statement."""
    if isinstance(error, ResultLost):
        state, message = state_and_message(error.error, record)
        effect = "took effect" if error.certain else "may have taken effect"
        return state, f"the statement {effect}, but its result could not be stored: {message}"
    if isinstance(error, Failure):
        if record.stopped and error.sql_state == sqlstate.CANCELED:
            return when_stopped(record)
        if record.timed_out and error.sql_state == sqlstate.CANCELED:
            return sqlstate.TIMEOUT, record.timed_out
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
