"""Batches of statements, for a service that announces the extension `batch`.

The service runs them one after another and answers with what each came to; their results are still taken one by one.
What did not run is sent again with what is left, so that whoever takes them need not know where a batch ended. A batch
is sent while the results of the one before are taken, where nothing can keep its statements from being run by then.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from itertools import islice
from typing import Protocol

from sqlshell.client.http.transport import Response
from sqlshell.client.statements.client import Observer, Submission, UnreadOutcome, mark_uncertain
from sqlshell.client.statements.protocol import Done, Fail, Poll, poll_wait, read_batch
from sqlshell.context import SessionContext
from sqlshell.errors import ConnectionBroken, ShellError
from sqlshell.interface import sqlstate
from sqlshell.result import Result

REFUSED = frozenset({400, 413, 415})
"""Answers by which a service says that it does not take these statements together; none of them ran."""

MOST = 500
"""Statements of a batch."""

SIZE = 64 << 10
"""Characters of them, unless the first alone has more."""

LOOK_SECONDS = 0.02
"""How long a batch that runs is left alone at least: a look-up takes time from its statements."""

LEAVING_SECONDS = 0.002
"""How long a batch that is sent ahead is given to leave, before results at hand keep the event loop busy."""

ENDING_SECONDS = 10.0
"""How long the end of a batch that nobody waits for any more is waited for."""


_ROWS = b'"data":'
"""In an answer that has its rows; it cannot stand inside a string of JSON."""


class Sender(Protocol):
    """What Together asks of the statements of a service."""

    supports_batches: bool | None

    @property
    def base(self) -> str: ...

    def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]: ...

    async def result(self, done: Done, context: SessionContext, observer: Observer) -> Result: ...

    async def terminate(self, query_id: str, context: SessionContext) -> None: ...

    async def submit_batch(
        self,
        statements: Sequence[str],
        context: SessionContext,
        stop: bool,
        read: Callable[[Response], bool],
        *,
        idempotent: bool,
    ) -> bool: ...

    async def look_up_batch(
        self, statement_id: str, start: int, context: SessionContext, read: Callable[[Response], None]
    ) -> None: ...

    def uncertain(self, status: int) -> bool: ...


class _SendSeparately(Exception):
    """The next statement has to be sent on its own."""


class BatchRunner:
    """Sends the statements `asked`; run() gives the results of each, in order.

    `stop` says that a failure ends all, `apart` that the service is another process, which works while results are
    taken here.
    """

    def __init__(self, client: Sender, submission: Sequence[Submission], *, stop: bool, apart: bool) -> None:
        self._client = client
        self._stop = stop
        self._apart = apart
        self._left = deque(submission)
        self._taken: deque[Done | Fail] = deque()
        """What was answered about the next ones of those that are left."""
        self._running: Poll | None = None
        self._over = True
        """Whether nothing of the last batch will run any more."""
        self._first = ""
        self._count = self._listed = 0
        """The statements of the last batch, and how many of them were answered about."""
        self._fresh: list[Done | Fail] = []
        """What the last answer told, until the next batch was thought of."""
        self._closed = False
        self._sending: asyncio.Task[None] | None = None
        """Sends the next batch while results are taken."""

    @property
    def at_hand(self) -> bool:
        # A batch ends behind a result that is not small: only the last one may have to be read for long.
        return len(self._taken) > 1

    async def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        """The result of the next statement, which is `asked`. Raises as Statements.run()."""
        observer = observer or Observer()
        assert self._left[0] is submission
        try:
            step = await self._next(context, observer)
        except _SendSeparately:
            step = None
        self._left.popleft()
        if step is None or (isinstance(step, Fail) and sqlstate.not_ready(step.error.where.sql_state)):
            # What met something that is not ready did not run: it is tried again as any statement is.
            async for result in self._client.run(submission, context, observer):
                yield result
        elif isinstance(step, Fail):
            observer.statement_id(step.error.where.statement_id)
            observer.context(step.context)
            raise step.error
        else:
            observer.statement_id(step.head.statement_id or "")
            yield await self._client.result(step, context, observer)

    async def aclose(self, context: SessionContext, *, patient: bool = True) -> list[UnreadOutcome]:
        """Have no more of them run; those that ran all the same, as far as that is known. Raises nothing.

        Without patience the service is not asked.
        """
        try:
            # What has not left yet is not sent any more.
            self._closed = True
            async with asyncio.timeout(ENDING_SECONDS):
                await self._sent_ahead(patient=patient)
                while patient and not self._over:
                    if self._running is not None:
                        await self._client.terminate(self._running.statement_id, context)
                    await self._look(context)
                    await asyncio.sleep(0 if self._over else poll_wait(0))
        except (TimeoutError, ShellError, _SendSeparately):
            pass
        self._over = True
        return [_behind(submission.sql, step) for submission, step in zip(self._left, self._taken, strict=False)]

    async def _next(self, context: SessionContext, observer: Observer) -> Done | Fail:
        began = time.monotonic()
        while not self._taken:
            if self._sending is not None:
                await self._sent_ahead()
                continue
            if self._over:
                await self._submit(context)
                continue
            if self._running is not None:
                observer.statement_id(self._running.statement_id)
                observer.progress(self._running.share, self._running.message)
            await asyncio.sleep(max(LOOK_SECONDS, poll_wait(time.monotonic() - began)))
            await self._look(context)
        fresh, self._fresh = self._fresh, []
        if fresh and self._may_send_ahead(fresh, context):
            self._sending = asyncio.ensure_future(self._send_ahead(context))
            await asyncio.wait([self._sending], timeout=LEAVING_SECONDS)
        return self._taken.popleft()

    def _may_send_ahead(self, told: Sequence[Done | Fail], context: SessionContext) -> bool:
        """Whether the next statements can be sent before the results at hand, which end with `told`, are taken.

        They cannot behind a failure, in a context that the service has left, and behind a result of which not all is
        here, for its reader may fail.
        """
        if not self._apart or not self._over or self._listed < self._count or len(self._next_ones()) < 2:
            return False
        for step in told:
            metadata = step.head.metadata if isinstance(step, Done) else None
            if metadata is None or metadata.dataplane_request is not None:
                return False
            if context.adopt(metadata.context) != context:
                return False
        last = told[-1]
        return isinstance(last, Done) and (_ROWS in last.body or not _columns(last))

    async def _send_ahead(self, context: SessionContext) -> None:
        if not self._closed:
            await self._submit(context)

    async def _sent_ahead(self, *, patient: bool = True) -> None:
        """Wait for the answer to what was sent ahead, or leave it. Raises as _submit()."""
        sending, self._sending = self._sending, None
        if sending is None:
            return
        try:
            if patient:
                await sending
        finally:
            sending.cancel()

    def _next_ones(self) -> list[Submission]:
        """The next statements that were not answered about, as many as a batch takes."""
        found: list[Submission] = []
        size = 0
        for item in islice(self._left, len(self._taken), len(self._taken) + MOST):
            size += len(item.sql)
            if found and size > SIZE:
                break
            found.append(item)
        return found

    async def _submit(self, context: SessionContext) -> None:
        """Send the next ones. Raises _Alone where they cannot be sent together, or none of the last ones ran."""
        ran = self._listed or not self._count
        left = self._next_ones()
        if len(left) < 2 or not ran or not self._client.supports_batches:
            raise _SendSeparately
        idempotent = all(item.reads_only for item in left)

        def read(answer: Response) -> bool:
            if answer.status in REFUSED:
                return False
            self._count, self._listed = len(left), 0
            error = self._take(answer)
            if error is not None:
                if not idempotent and (answer.status in {200, 202} or self._client.uncertain(answer.status)):
                    mark_uncertain(error, len(left) - 1)
                raise error
            return True

        try:
            taken = await self._client.submit_batch(
                [item.text for item in left], context, self._stop, read, idempotent=idempotent
            )
        except ConnectionBroken as error:
            if not idempotent:
                mark_uncertain(error, len(left) - 1)
            raise
        if not taken:
            self._client.supports_batches = False
            raise _SendSeparately

    async def _look(self, context: SessionContext) -> None:
        """Ask what has been done since the last answer."""

        def read(answer: Response) -> None:
            error = self._take(answer)
            if error is not None:
                raise error

        try:
            await self._client.look_up_batch(self._first, self._listed, context, read)
        except ShellError as error:
            # Nobody knows any more what becomes of them.
            self._over = True
            mark_uncertain(error, self._count - self._listed - 1)
            raise

    def _take(self, answer: Response) -> ShellError | None:
        """Keep what an answer tells; its error where it is none about a batch."""
        found = read_batch(answer.status, answer.headers, answer.body, self._client.base, self._count - self._listed)
        if isinstance(found, Fail):
            return found.error
        self._first = self._first if self._listed else found.statement_id
        self._listed += len(found.ended)
        self._taken.extend(found.ended)
        self._fresh = found.ended
        self._running, self._over = found.running, found.over
        return None


def _columns(done: Done) -> bool:
    return bool(done.head.metadata is not None and done.head.metadata.columns)


def _behind(sql: str, step: Done | Fail) -> UnreadOutcome:
    if isinstance(step, Fail):
        where = step.error.where
        return UnreadOutcome(sql, where.statement_id, where.sql_state, step.error.message)
    head = step.head
    return UnreadOutcome(sql, head.statement_id or "", head.sql_state or sqlstate.DONE, head.message or "")
