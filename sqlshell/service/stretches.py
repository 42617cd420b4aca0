"""Statements of a batch that the engine runs, one after another in one thread."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from sqlshell.interface import sqlstate
from sqlshell.interface.models import StatementRequest
from sqlshell.service.batches import Batch, Ended
from sqlshell.service.body import Form
from sqlshell.service.dialect import Own, read
from sqlshell.service.endings import Endings
from sqlshell.service.engines.engine import Failure, Outcome
from sqlshell.service.execution import Begun
from sqlshell.service.pools import Pool
from sqlshell.service.records import Record
from sqlshell.service.sessions import Session

TOLD_SECONDS = 0.05
"""How long the endings of a batch's statements are collected, to be written down together."""

Work = Callable[[Session, Own | None, StatementRequest, Record, Form], Outcome | Begun]


class Stretches:
    """Runs stretches of batches. `work` runs one statement, `begun` is told of an endless SELECT in the event loop, and
    `start` starts a task there."""

    def __init__(
        self,
        endings: Endings,
        work: Work,
        begun: Callable[[Session, Record, Begun], None],
        start: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._endings = endings
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
        """In a thread: run statements of a batch from number `at` on, as long as they are the engine's and nobody else
        waits for the place; the number of the next one."""
        form = Form()
        while at < len(batch.records) and is_engines(batch.records[at].sql) and not session.ended:
            record = batch.records[at]
            if not self._endings.take(record, session.connection):
                break
            began = time.perf_counter()
            outcome = None
            try:
                result = self._work(session, None, request, record, form)
                if isinstance(result, tuple):
                    loop.call_soon_threadsafe(self._begun, session, record, result)
                    return at + 1
                outcome, state, message = result, result.sql_state, result.message
            except Exception as error:
                state, message = fault(error, record)
            record.seconds = time.perf_counter() - began
            batch.size += record.spool.size
            committed = not session.connection.in_transaction
            batch.ended.append(Ended(record, state, message, outcome, session.echo(), committed))
            if not batch.told:
                batch.told = True
                loop.call_soon_threadsafe(loop.call_later, TOLD_SECONDS, self.take, batch, session)
            at += 1
            if any(pool.waiting for pool in pools) or batch.ends_with(record, state):
                break
        return at

    def take(self, batch: Batch, session: Session) -> None:
        """Write down what the thread of a batch has told."""
        batch.told = False
        endings, committed = [], False
        while batch.ended:
            item = batch.ended.popleft()
            item.record.outcome, item.record.context = item.outcome, item.context
            endings.append((item.record, item.state, item.message))
            committed = committed or item.committed
        if endings:
            self._endings.finish_all(endings)
        if committed:
            self._start(session.organization.streams.changed())


def is_engines(sql: str) -> bool:
    """Whether a statement is the engine's to run, and not one about the service's own objects."""
    try:
        return read(sql) is None
    except Failure:
        return False


def fault(error: Exception, record: Record) -> tuple[str, str]:
    """sqlState and message of what ended a statement."""
    if isinstance(error, Failure):
        if record.timed_out and error.sql_state == sqlstate.CANCELLED:
            return sqlstate.TIMEOUT, record.timed_out
        return error.sql_state, error.message
    if isinstance(error, OSError):
        return sqlstate.LIMIT, f"the result cannot be kept: {error.strerror or error}"
    return sqlstate.INTERNAL, f"internal error: {type(error).__name__}: {error}"
