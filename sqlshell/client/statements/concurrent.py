"""Statements that do not depend on each other, each in one of several sessions; results are read in their order.

A result that waits for its turn keeps its first partition. If several wait, the others are closed, and fetched again
from the service when it is their turn, so that memory does not grow with the number of statements.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sqlshell.client.statements.client import Client, Observer, Submission, Timing, UnreadOutcome
from sqlshell.context import SessionContext
from sqlshell.errors import ShellError
from sqlshell.interface import sqlstate
from sqlshell.result import Result

HELD = 4
"""Maximum results that wait for their turn with a partition in memory."""

ENDING_SECONDS = 10.0
"""How long to wait, in seconds, for the end of statements that were asked to stop."""


class _Run(Struct, eq=False):
    """One statement that was sent."""

    submission: Submission
    sent: float
    statement_id: str = ""
    query_id: str = ""
    answered: float | None = None
    timing: Timing | None = None
    error: Exception | None = None
    result: Result | None = None
    results: AsyncGenerator[Result, None] | None = None
    released: bool = False
    """Whether the result has to be fetched again."""
    watcher: Observer | None = None
    """Of the statement whose turn it is."""


class ConcurrentBatch:
    """Runs each submission in one of `sessions`, as many at once as there are sessions.

    After an error for which `ends` is true, and once `halted`, no further statement is sent. `sent` is called with the
    number of a statement before it is sent, `identified` when the service has assigned its ID.
    """

    at_hand = False

    def __init__(
        self,
        client: Client,
        submissions: Sequence[Submission],
        context: SessionContext,
        sessions: Sequence[str],
        *,
        ends: Callable[[ShellError], bool],
        halted: Callable[[], bool],
        sent: Callable[[int], None],
        identified: Callable[[int, str, float], None],
    ) -> None:
        self._client = client
        self._submissions = submissions
        self._context = context
        self._ends = ends
        self._halted = halted
        self._sent = sent
        self._identified = identified
        self._runs: list[_Run] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._arrived = asyncio.Condition()
        self._turn = 0
        self._stopped = False
        self._workers = [asyncio.ensure_future(self._work(session)) for session in sessions]

    @property
    def unread(self) -> int:
        return len(self._submissions) - self._turn

    async def sends_next(self) -> bool:
        """Whether the next statement has been or will be sent; waits until that is known."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self._runs) > self._turn or self._stopped)
        return len(self._runs) > self._turn

    async def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        """The results of the next statement, which must have been sent. Raises the same errors as Client.run()."""
        observer = observer or Observer()
        run = self._runs[self._turn]
        assert run.submission is submission
        run.watcher = observer
        observer.sent_earlier(run.sent, None)
        if run.statement_id:
            observer.statement_id(run.statement_id)
        async with self._arrived:
            await self._arrived.wait_for(lambda: run.answered is not None)
        self._turn += 1
        async with self._arrived:
            self._arrived.notify_all()
        observer.sent_earlier(run.sent, run.answered if run.error is None else None)
        if run.timing is not None:
            observer.timing(run.timing)
        if run.error is not None:
            raise run.error
        if run.released:
            async for result in self._client.fetch(run.statement_id, self._context, replace(observer, timing=_ignore)):
                yield result
            return
        first, run.result = run.result, None
        if first is not None and run.results is not None:
            yield first
            async for further in run.results:
                yield further

    async def aclose(self, context: SessionContext, *, patient: bool = True) -> list[UnreadOutcome]:
        """Send nothing more, and cancel what still runs; returns the outcomes that were not read. Raises nothing."""
        self._stopped = True
        left = self._runs[self._turn :]
        if patient:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ENDING_SECONDS):
                    await asyncio.gather(*(self._terminate(run) for run in left if run.answered is None))
                    await asyncio.gather(*self._workers, return_exceptions=True)
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        for run in self._runs:
            await _close(run)
        return [_unread(run) for run in left]

    async def _terminate(self, run: _Run) -> None:
        async with self._arrived:
            await self._arrived.wait_for(lambda: bool(run.statement_id) or run.answered is not None)
        if run.answered is None:
            with contextlib.suppress(ShellError):
                await self._client.terminate(run.query_id or run.statement_id, self._context)

    async def _work(self, session: str) -> None:
        """Run statements one after another in a session."""
        context = replace(self._context, session_id=session)
        while not (self._stopped or self._halted()) and len(self._runs) < len(self._submissions):
            number = len(self._runs)
            run = _Run(self._submissions[number], time.monotonic())
            self._runs.append(run)
            await self._tell()
            try:
                await self._run(number, run, context)
            except Exception as error:
                run.error = error
                self._stopped = self._stopped or not isinstance(error, ShellError) or self._ends(error)
            finally:
                run.answered = time.monotonic()
        await self._tell()

    async def _run(self, number: int, run: _Run, context: SessionContext) -> None:
        """Run a statement up to its first result."""

        def identified(statement_id: str) -> None:
            if run.statement_id == statement_id:
                return
            run.statement_id = statement_id
            self._identified(number, statement_id, time.monotonic() - run.sent)
            if run.watcher is not None:
                run.watcher.statement_id(statement_id)
            task = asyncio.ensure_future(self._tell())
            self._tasks.append(task)
            task.add_done_callback(self._tasks.remove)

        def queried(query_id: str) -> None:
            run.query_id = query_id
            if run.watcher is not None:
                run.watcher.query_id(query_id)

        def progressed(share: float | None, text: str) -> None:
            if run.watcher is not None:
                run.watcher.progress(share, text)

        def timed(timing: Timing) -> None:
            run.timing = timing

        self._sent(number)
        # The context of the statement's own session is not that of the shell.
        observer = Observer(identified, queried, progressed, timing=timed)
        run.results = self._client.run(run.submission, context, observer)
        run.result = await anext(run.results, None)
        if run.result is None or run.result.endless is not None:
            return
        holds = [other for other in self._runs[self._turn :] if other is not run and other.result is not None]
        if len(holds) >= HELD and number != self._turn and run.statement_id and run.result.columns:
            run.released = True
            await _close(run)

    async def _tell(self) -> None:
        async with self._arrived:
            self._arrived.notify_all()


async def _close(run: _Run) -> None:
    """Close what was opened to read the results."""
    result, run.result = run.result, None
    if result is not None:
        await result.batches.aclose()
    if run.results is not None:
        await run.results.aclose()


def _unread(run: _Run) -> UnreadOutcome:
    error = run.error
    if run.answered is None or (error is None and not run.results):
        return UnreadOutcome(run.submission.sql, run.statement_id, sqlstate.RUNNING, "")
    if error is not None:
        state = error.where.sql_state if isinstance(error, ShellError) else ""
        return UnreadOutcome(run.submission.sql, run.statement_id, state or sqlstate.INTERNAL, str(error))
    return UnreadOutcome(run.submission.sql, run.statement_id, sqlstate.DONE, "")


def _ignore(*_: object) -> None:
    return None
