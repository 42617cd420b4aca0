"""Several statements in one request, and the next ones sent ahead, for a service that announces the extension `batch`.

The service runs the statements in order and returns the result of each; the caller reads the results one by one.
Statements that did not run are sent again with the following ones, so that the caller does not see where a batch ends.
The next batch is sent while the results of the previous one are read, if it is certain that its statements should run.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from itertools import islice

from sqlshell.client.http.transport import Response, Transport
from sqlshell.client.results.partitions import look_up_query, statement_path
from sqlshell.client.statements.client import BATCHES, Client, Observer, Submission, UnreadOutcome, mark_uncertain
from sqlshell.client.statements.protocol import Done, Fail, Poll, may_have_run, poll_wait, read_batch, request_part
from sqlshell.context import SessionContext
from sqlshell.errors import ConnectionBroken, ServiceError, ShellError
from sqlshell.interface import sqlstate
from sqlshell.result import Result

REFUSED = frozenset({400, 413, 415})
"""Responses that mean that the service does not accept these statements together; none of them ran."""

MOST = 500
"""Maximum statements of a batch."""

SIZE = 64 << 10
"""Maximum characters of a batch, unless its first statement has more."""

LOOK_SECONDS = 0.02
"""Minimum interval of lookups of a running batch, in seconds: a lookup takes time from its statements."""

LEAVING_SECONDS = 0.002
"""How long to wait, in seconds, until a batch that is sent ahead has left, before results that have arrived occupy the
event loop.
"""

ENDING_SECONDS = 10.0
"""How long to wait, in seconds, for the end of a batch whose results are no longer read."""


_ROWS = b'"data":'
"""Occurs in a response that contains rows; cannot occur inside a JSON string."""


MakeResult = Callable[[Done, SessionContext, Observer], Awaitable[Result]]


class _SendSeparately(Exception):
    """The next statement must be sent separately."""


class Pipeline:
    """Statements that are sent together, in several requests if they are many; run() returns the results of each, in
    order.

    `client` runs statements that are sent separately, `result` makes a result of a final response, `stop` says that a
    failure ends the batch.
    """

    def __init__(
        self, client: Client, transport: Transport, result: MakeResult, submissions: Sequence[Submission], *, stop: bool
    ) -> None:
        self._client = client
        self._transport = transport
        self._result = result
        self._stop = stop
        self._remaining = deque(submissions)
        self._outcomes: deque[Done | Fail] = deque()
        """The outcomes of the next statements, from the responses."""
        self._running: Poll | None = None
        self._finished = True
        """Whether no statement of the last batch will run."""
        self._batch_id = ""
        self._count = self._outcome_count = 0
        """The statements of the last batch, and how many of them have an outcome."""
        self._last_outcomes: list[Done | Fail] = []
        """The content of the last response, until the next batch is planned."""
        self._unknown = 0
        """How many of the next statements were sent with one that failed and have no outcome: they may have run."""
        self._closed = False
        self._sending: asyncio.Task[None] | None = None
        """Sends the next batch while results are read."""

    @property
    def unread(self) -> int:
        return len(self._remaining)

    async def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        """The result of the next statement, which must be `submission`. Raises the same errors as Statements.run()."""
        observer = observer or Observer()
        assert self._remaining[0] is submission
        try:
            step = await self._next(context, observer)
        except _SendSeparately:
            step = None
        except ShellError:
            self._remaining.popleft()
            raise
        self._remaining.popleft()
        if step is None or (isinstance(step, Fail) and sqlstate.not_ready(step.error.where.sql_state)):
            # A statement that failed because something was not ready did not run: it is retried like any statement.
            async for result in self._client.run(submission, context, observer):
                yield result
        elif isinstance(step, Fail):
            observer.statement_id(step.error.where.statement_id)
            observer.context(step.context)
            raise step.error
        else:
            observer.statement_id(step.head.statement_id or "")
            yield await self._result(step, context, observer)

    async def aclose(self, context: SessionContext, *, patient: bool = True) -> list[UnreadOutcome]:
        """Stop the batch, and return the outcomes of statements that have run, as far as they are known. Raises
        nothing.

        If `patient` is not set, the service is not asked.
        """
        began = time.monotonic()
        try:
            # Statements that have not been sent are not sent any more.
            self._closed = True
            async with asyncio.timeout(ENDING_SECONDS):
                await self._wait_for_send_ahead(patient=patient)
                while patient and not self._finished:
                    if self._running is not None:
                        await self._client.terminate(self._running.statement_id, context)
                    await self._look_up(context)
                    await asyncio.sleep(0 if self._finished else _pause(began))
        except (TimeoutError, ShellError, _SendSeparately):
            pass
        self._finished = True
        return [
            _unread_outcome(submission.sql, step)
            for submission, step in zip(self._remaining, self._outcomes, strict=False)
        ]

    async def _next(self, context: SessionContext, observer: Observer) -> Done | Fail:
        began = time.monotonic()
        while not self._outcomes:
            if self._sending is not None:
                await self._wait_for_send_ahead()
                continue
            if self._unknown:
                self._unknown -= 1
                error = ServiceError("the outcome of the statement is unknown: the request that contained it failed")
                mark_uncertain(error)
                raise error
            if self._finished:
                await self._submit(context)
                continue
            if self._running is not None:
                observer.statement_id(self._running.statement_id)
                observer.progress(self._running.share, self._running.message)
            await asyncio.sleep(_pause(began))
            await self._look_up(context)
        fresh, self._last_outcomes = self._last_outcomes, []
        if fresh and self._may_send_ahead(fresh, context):
            self._sending = asyncio.ensure_future(self._send_ahead(context))
            await asyncio.wait([self._sending], timeout=LEAVING_SECONDS)
        return self._outcomes.popleft()

    def _may_send_ahead(self, steps: Sequence[Done | Fail], context: SessionContext) -> bool:
        """Whether the next statements can be sent before the received results, which end with `steps`, have been read.

        They cannot after a failure, if the context has changed, or if a result has not arrived completely, because
        reading it may fail.
        """
        if (
            self._transport.in_process
            or not self._finished
            or self._outcome_count < self._count
            or len(self._next_submissions()) < 2
        ):
            return False
        for step in steps:
            metadata = step.head.metadata if isinstance(step, Done) else None
            if metadata is None or metadata.dataplane_request is not None:
                return False
            if context.adopt(metadata.context) != context:
                return False
        last = steps[-1]
        return isinstance(last, Done) and (_ROWS in last.body or not _columns(last))

    async def _send_ahead(self, context: SessionContext) -> None:
        if not self._closed:
            await self._submit(context)

    async def _wait_for_send_ahead(self, *, patient: bool = True) -> None:
        """Wait for the response to the batch that was sent ahead, or discard it.

        Raises the same errors as _submit().
        """
        sending, self._sending = self._sending, None
        if sending is None:
            return
        try:
            if patient:
                await sending
        finally:
            sending.cancel()

    def _next_submissions(self) -> list[Submission]:
        """The next statements without an outcome, as many as a batch may contain."""
        submissions: list[Submission] = []
        size = 0
        for item in islice(self._remaining, len(self._outcomes), len(self._outcomes) + MOST):
            size += len(item.sql)
            if submissions and size > SIZE:
                break
            submissions.append(item)
        return submissions

    async def _submit(self, context: SessionContext) -> None:
        """Send the next statements. Raises _SendSeparately if they cannot be sent together, or if none of the previous
        batch ran.
        """
        ran = self._outcome_count or not self._count
        left = self._next_submissions()
        if len(left) < 2 or not ran or not self._client.supports_batches:
            raise _SendSeparately
        repeatable = all(item.repeatable for item in left)

        def read(answer: Response) -> bool:
            if answer.status in REFUSED:
                return False
            self._count, self._outcome_count = len(left), 0
            error = self._store_outcomes(answer)
            if error is not None:
                accepted = answer.status in {200, 202}
                if not repeatable and (accepted or may_have_run(answer.status, answer.headers)):
                    self._lose(error, len(left))
                self._count = 0
                raise error
            return True

        try:
            taken = await self._transport.call(
                "POST",
                "/v2/statements",
                read,
                content=request_part(context.batch([item.text for item in left], stop=self._stop)),
                content_type="application/json",
                idempotent=repeatable,
            )
        except ConnectionBroken as error:
            if not repeatable:
                self._lose(error, len(left))
            raise
        if not taken:
            self._transport.refused.add(BATCHES)
            raise _SendSeparately

    async def _look_up(self, context: SessionContext) -> None:
        """Look the batch up: what has been done since the last response."""

        def read(answer: Response) -> None:
            error = self._store_outcomes(answer, self._batch_id)
            if error is not None:
                raise error

        params = {**look_up_query(context), "batch": self._outcome_count}
        try:
            await self._transport.call("GET", statement_path(self._batch_id), read, params=params)
        except ShellError as error:
            self._finished = True
            self._lose(error, self._count - self._outcome_count)
            self._count = self._outcome_count = 0
            raise

    def _lose(self, error: ShellError, number: int) -> None:
        """Note that the outcome of the next `number` statements is unknown; `error` is that of the first of them."""
        mark_uncertain(error, number - 1)
        self._unknown = number - 1

    def _store_outcomes(self, answer: Response, batch_id: str = "") -> ShellError | None:
        """Store the outcomes in the response to a submission, or to a lookup of the batch `batch_id`; returns its error
        if it is not a response to a batch.
        """
        most = self._count - self._outcome_count
        status = read_batch(answer.status, answer.headers, answer.body, self._transport.target.name, most, batch_id)
        if isinstance(status, Fail):
            return status.error
        self._batch_id = self._batch_id if self._outcome_count else status.statement_id
        self._outcome_count += len(status.ended)
        self._outcomes.extend(status.ended)
        self._last_outcomes = status.ended
        self._running, self._finished = status.running, status.over
        return None


def _pause(began: float) -> float:
    """Seconds to wait before the next lookup; `began` is on the monotonic clock."""
    return max(LOOK_SECONDS, poll_wait(time.monotonic() - began))


def _columns(done: Done) -> bool:
    return bool(done.head.metadata is not None and done.head.metadata.columns)


def _unread_outcome(sql: str, step: Done | Fail) -> UnreadOutcome:
    if isinstance(step, Fail):
        where = step.error.where
        return UnreadOutcome(sql, where.statement_id, where.sql_state, step.error.message)
    head = step.head
    return UnreadOutcome(sql, head.statement_id or "", head.sql_state or sqlstate.DONE, head.message or "")
