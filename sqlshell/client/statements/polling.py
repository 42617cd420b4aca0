"""Submits statements, polls them and returns their results: protocol.py decides, transport.py does the I/O."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Iterator, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from sqlshell.client.http.retries import Retries
from sqlshell.client.http.transport import Response, Transport
from sqlshell.client.http.upload import Upload, upload_of
from sqlshell.client.results.factory import ResultFactory
from sqlshell.client.results.partitions import look_up_query, statement_path
from sqlshell.client.statements.client import (
    BATCHES,
    Observer,
    StatementBatch,
    Submission,
    mark_uncertain,
    terminate,
)
from sqlshell.client.statements.protocol import (
    Done,
    Fail,
    Follow,
    Poll,
    State,
    Step,
    may_have_run,
    poll_wait,
    read_lookup,
    read_submission,
    request_part,
)
from sqlshell.context import SessionContext
from sqlshell.errors import (
    ConnectionBroken,
    ProtocolError,
    ServiceError,
    ShellError,
    StatementError,
    WaitTimeout,
    Where,
)
from sqlshell.interface import sqlstate
from sqlshell.interface.models import MINIMAL, StatementHead
from sqlshell.result import Result

__all__ = ["Observer", "StatementsClient", "Submission", "new_session_id"]

_T = TypeVar("_T")

UNAVAILABLE = 503
"""The status that is as good as a statement for which something is not ready."""

NAMED_SECONDS = 2.0
LOOKED_UP_SECONDS = 0.5
"""How long a submission or lookup may take at least, in seconds, even if --timeout is shorter."""

SESSIONS = "sessions"
LEAVING_SECONDS = 2.0
"""How long ending the sessions may take, in seconds."""

HISTORY_SECONDS = 5.0
"""How long asking for the cause of a stream's failure may take, in seconds."""

_REQUEST_PART = 'Content-Disposition: form-data; name="request"\r\nContent-Type: application/json'


class StatementsClient(Struct):
    """The client of `/v2`: submits the statements of one session and polls them.

    `wait_limit` is the maximum time for one statement in seconds (None: no limit); after it WaitTimeout is raised, and
    the statement keeps running.
    """

    transport: Transport
    results: ResultFactory
    wait_limit: float | None = None

    async def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        """Run a submission and yield the result of each statement in it, in order.

        Raises StatementError if a statement failed, WaitTimeout, and the errors of Transport.request.
        """
        observer = observer or Observer()
        began = time.monotonic()
        step = await self._begun(submission, context, began, observer)
        if isinstance(step, Done):
            yield await self.result(step, context, observer)
            return
        for number, statement_id in enumerate(step.statement_ids, 1):
            observer.statement_id(statement_id)
            with _doubting(submission, statement_id, len(step.statement_ids) - number):
                done = await self._wait(await self.look_up(statement_id, context), context, began, observer)
            yield await self.result(done, context, observer)

    async def fetch(
        self, statement_id: str, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        """The result of a statement that was submitted before; waits for it if it is still running.

        Raises the same errors as run().
        """
        observer = observer or Observer()
        observer.statement_id(statement_id)
        done = await self._wait(await self.look_up(statement_id, context), context, time.monotonic(), observer)
        yield await self.result(done, context, observer)

    async def terminate(self, query_id: str, context: SessionContext) -> None:
        """Ask the service to terminate a query, however long that takes. Raises the same errors as run()."""
        await terminate(replace(self, wait_limit=None), query_id, context)

    async def look_up(self, statement_id: str, context: SessionContext) -> State:
        """The state of `statement_id`. Lookups change nothing, so they are retried if the service is busy or the
        connection is lost.
        """

        def read(answer: Response) -> State:
            step = read_lookup(answer.status, answer.headers, answer.body, self.base, statement_id)
            if isinstance(step, Fail) and isinstance(step.error, ProtocolError):
                raise step.error
            return step

        return await self.transport.call(
            "GET",
            statement_path(statement_id),
            read,
            params=look_up_query(context),
            preference=self._preference,
        )

    async def state(self, statement_id: str, context: SessionContext) -> tuple[str, str]:
        """The current sqlState of a statement, and the message of the service. Raises the same errors as look_up()."""
        match await self.look_up(statement_id, context):
            case Poll(message=message):
                return sqlstate.RUNNING, message
            case Fail(error):
                if error.where.sql_state:
                    return error.where.sql_state, error.message
                raise error
            case Done(head) if _endless(head):
                return sqlstate.RUNNING, ""
            case Done(head):
                return head.sql_state or sqlstate.DONE, head.message or ""

    @property
    def supports_batches(self) -> bool | None:
        """Whether the service accepts batches: None until it has announced them, False if it refused one."""
        if BATCHES in self.transport.refused:
            return False
        return True if BATCHES in self.transport.extensions else None

    def begin_batch(self, submission: Sequence[Submission], *, stop: bool) -> StatementBatch | None:
        """A batch of statements. None if the service does not accept batches, and if each statement has its own time
        limit: the statements after one that exceeds it would still run.
        """
        if self.wait_limit is not None or not self.supports_batches:
            return None
        from sqlshell.client.statements.pipeline import Pipeline

        return Pipeline(self, self.transport, self.result, submission, stop=stop)

    async def end_sessions(self, session_ids: Sequence[str]) -> None:
        """End sessions once their statements have finished, if the service supports it. Raises nothing."""
        if SESSIONS not in self.transport.extensions:
            return

        async def end(session_id: str) -> None:
            submission = Submission(f"TERMINATE SESSION '{session_id}' WHEN IDLE", repeatable=True)
            with contextlib.suppress(ShellError):
                # Run in the session itself, so that no other session is opened for this.
                async for result in self.run(submission, SessionContext(session_id=session_id)):
                    await result.batches.aclose()

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVING_SECONDS):
                await asyncio.gather(*(end(session_id) for session_id in session_ids if "'" not in session_id))

    can_cancel = True
    can_refetch = True
    is_legacy = False

    async def aclose(self) -> None:
        await self.results.aclose()
        await self.transport.aclose()

    @property
    def base(self) -> str:
        """The name of the service in messages."""
        return self.transport.target.name

    @property
    def _preference(self) -> str:
        # Rendering the first rows takes a tenth of writing a million rows to a file, and another request takes 1 ms.
        return MINIMAL if self.transport.in_process else ""

    async def _begun(
        self, submission: Submission, context: SessionContext, began: float, observer: Observer
    ) -> Done | Follow:
        """Submit one statement and wait for it. If something is not ready (class 3E), it is submitted again."""
        tries = Retries(self.transport.network, idempotent=True, known=True)
        while True:
            step = await self._submit(submission, context, observer, began)
            if isinstance(step, Follow):
                return step
            try:
                with _doubting(submission, step.statement_id if isinstance(step, Poll) else ""):
                    return await self._wait(step, context, began, observer)
            except StatementError as error:
                wait = tries.after_status(UNAVAILABLE, {}) if sqlstate.not_ready(error.where.sql_state) else None
                if wait is None:
                    raise
                left = began + self.wait_limit - time.monotonic() if self.wait_limit is not None else wait
                if wait > left:
                    await asyncio.sleep(max(0.0, left))
                    hint = "the statement did not run; use a longer --timeout"
                    raise WaitTimeout(
                        f"{error.message} (gave up after {self.wait_limit:g} s)", hint, error.where
                    ) from None
                observer.say(tries.named(f"{error.message} ({error.where.sql_state})", wait))
                await asyncio.sleep(wait)

    async def _submit(self, submission: Submission, context: SessionContext, observer: Observer, began: float) -> Step:
        upload = self.body(submission, context, observer)

        def read(answer: Response) -> Step:
            step = read_submission(answer.status, answer.headers, answer.body, self.base)
            if isinstance(step, Fail) and not submission.repeatable and may_have_run(answer.status, answer.headers):
                mark_uncertain(step.error)
            if submission.repeatable and isinstance(step, Fail) and isinstance(step.error, ProtocolError):
                raise step.error
            return step

        content = upload if upload.files else upload.head + f"--{upload.boundary}--\r\n".encode()
        sending = self.transport.call(
            "POST",
            "/v2/statements",
            read,
            content=content,
            content_type=upload.content_type,
            idempotent=submission.repeatable,
            preference=self._preference,
        )
        try:
            # Uploading files takes an unknown time, and a statement without an ID could not be fetched later.
            return await (sending if upload.files else self._within(sending, began, NAMED_SECONDS))
        except (ConnectionBroken, WaitTimeout) as error:
            if not submission.repeatable:
                mark_uncertain(error)
            raise

    async def _within(self, work: Awaitable[_T], began: float, least: float, statement_id: str = "") -> _T:
        """Await `work`, but at most until --timeout, and at least `least` seconds. Raises WaitTimeout."""
        if self.wait_limit is None:
            return await work
        deadline = asyncio.timeout(max(least, began + self.wait_limit - time.monotonic()))
        try:
            async with deadline:
                return await work
        except TimeoutError:
            if not deadline.expired():
                raise
            message = f"no response from {self.base} within {time.monotonic() - began:.1f} s"
            raise WaitTimeout(message, where=Where(statement_id=statement_id)) from None

    def body(self, submission: Submission, context: SessionContext, observer: Observer) -> Upload:
        """The body of a submission. Raises UsageError."""
        part = request_part(context.request(submission.text, submission.row_limit))
        return upload_of([(_REQUEST_PART, part)], submission.attachments, "attachments", observer.progress)

    async def _wait(self, step: State, context: SessionContext, began: float, observer: Observer) -> Done:
        while True:
            match step:
                case Done():
                    if step.head.statement_id:
                        observer.statement_id(step.head.statement_id)
                    if step.timing is not None:
                        observer.timing(step.timing)
                    return step
                case Fail(error):
                    observer.context(step.context)
                    if step.timing is not None:
                        observer.timing(step.timing)
                    raise error
                case Poll():
                    observer.statement_id(step.statement_id)
                    observer.progress(step.share, step.message)
                    elapsed = time.monotonic() - began
                    if self.wait_limit is not None and elapsed >= self.wait_limit:
                        raise WaitTimeout(
                            f"the statement has not ended after {elapsed:.1f} s",
                            where=Where(sqlstate.RUNNING, step.statement_id),
                        )
                    await asyncio.sleep(poll_wait(elapsed))
                    known = step.statement_id
                    step = await self._within(self.look_up(known, context), began, LOOKED_UP_SECONDS, known)

    async def result(self, done: Done, context: SessionContext, observer: Observer) -> Result:
        observer.context(done.head.metadata.context if done.head.metadata else None)
        query = look_up_query(context)

        async def again() -> Done:
            return await self._wait(
                await self.look_up(done.head.statement_id or "", context), context, time.monotonic(), Observer()
            )

        async def explain(query_id: str) -> str:
            return await self._history(query_id, context)

        return await self.results.create(done, query, again, explain, observer)

    async def _history(self, query_id: str, context: SessionContext) -> str:
        """The output of DESCRIBE QUERY HISTORY in one line; "" if there is none."""
        submission = Submission(f"DESCRIBE QUERY HISTORY {query_id}", repeatable=True)
        lines: list[str] = []
        try:
            async with asyncio.timeout(HISTORY_SECONDS):
                step = await self._begun(submission, context, time.monotonic(), Observer())
                if isinstance(step, Follow) or _endless(step.head):
                    return ""
                result = await self.result(step, context, Observer())
                names = [column.name.lower() for column in result.columns]
                wanted = [names.index(name) for name in ("state", "messages", "message") if name in names]
                async for batch in result.batches:
                    lines += [": ".join(text for at in wanted if (text := row[at])) for row in batch.rows]
        except (TimeoutError, ShellError):
            return ""
        return "; ".join(line for line in lines[-3:] if line)[:2_000]


@contextlib.contextmanager
def _doubting(submission: Submission, statement_id: str, behind: int = 0) -> Iterator[None]:
    """Name the statement whose outcome cannot be looked up in the error, and say that it may have run if it writes.

    `behind` is how many statements of the submission follow it. Without an ID there was nothing to look up.
    """
    try:
        yield
    except ServiceError as error:
        if statement_id:
            error.where = replace(error.where, statement_id=statement_id)
            if not submission.repeatable:
                mark_uncertain(error, behind)
        raise


def _endless(head: StatementHead) -> bool:
    """Whether a response belongs to an unbounded query: its data plane is a stream."""
    request = head.metadata.dataplane_request if head.metadata is not None else None
    return request is not None and request.request_type == "streaming"


def new_session_id() -> str:
    return str(uuid.uuid4())
