"""Submits statements, waits for them, and gives back results: protocol.py decides, transport.py does the I/O."""

from __future__ import annotations

import asyncio
import secrets
import time
import uuid
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from urllib.parse import quote

from sqlshell.client.partitions import PartitionReader
from sqlshell.client.protocol import (
    MAX_WAITS_ON_NOT_READY,
    Done,
    Fail,
    Follow,
    Poll,
    Step,
    columns_of,
    encode_request,
    not_ready_wait,
    poll_wait,
    read_lookup,
    read_submission,
)
from sqlshell.client.transport import Transport
from sqlshell.context import SessionContext
from sqlshell.errors import ProtocolError, ShellError, StatementError, UsageError, WaitTimeout, Where
from sqlshell.interface import sqlstate
from sqlshell.interface.models import ContextEcho
from sqlshell.result import Batch, Column, Result

AHEAD = 4
"""Partitions in flight before the reader asks for them."""

LOOKUP_TRIES = 5


def _ignore(*_: object) -> None:
    return None


@dataclass(slots=True)
class Watch:
    """Who is told what while a statement is waited for."""

    statement_id: Callable[[str], None] = _ignore
    progress: Callable[[float | None, str], None] = _ignore
    context: Callable[[ContextEcho | None], None] = _ignore
    say: Callable[[str], None] = _ignore


@dataclass(slots=True)
class Statements:
    """The statements of one session at one service.

    `wait_limit` is how many seconds one statement is waited for (None: without end); past it WaitTimeout is raised and
    the statement keeps running there.
    """

    transport: Transport
    ahead: int = AHEAD
    wait_limit: float | None = None
    _boundary: str = field(default_factory=lambda: f"sqlshell-{secrets.token_hex(16)}")

    async def run(
        self, sql: str, context: SessionContext, *, row_limit: int | None = None, watch: Watch | None = None
    ) -> AsyncGenerator[Result, None]:
        """Run `sql` and give the result of each statement in it, in order.

        Raises StatementError for a statement that failed, WaitTimeout, and the errors of Transport.request.
        """
        watch = watch or Watch()
        began = time.monotonic()
        step = await self._begun(sql, context, row_limit, began, watch)
        if isinstance(step, Done):
            yield await self._result(step, context, watch)
            return
        for statement_id in step.statement_ids:
            watch.statement_id(statement_id)
            done = await self._wait(await self.look_up(statement_id, context), context, began, watch)
            yield await self._result(done, context, watch)

    async def look_up(self, statement_id: str, context: SessionContext) -> Step:
        """How `statement_id` stands. Look-ups change nothing: a busy service or a lost connection is tried again."""
        for attempt in range(LOOKUP_TRIES):
            last = attempt == LOOKUP_TRIES - 1
            try:
                answer = await self.transport.request("GET", _path(statement_id), params=_query(context))
            except ShellError as error:
                if last or isinstance(error, UsageError | ProtocolError):
                    raise
            else:
                step = read_lookup(answer.status, answer.headers, answer.body, self._base, statement_id)
                if last or not (isinstance(step, Fail) and step.again and not isinstance(step.error, StatementError)):
                    return step
            await asyncio.sleep(not_ready_wait(attempt))
        raise AssertionError("unreachable")

    async def terminate(self, statement_id: str, context: SessionContext) -> str:
        """Ask the service to end a statement; the sqlState that the statement has then. Raises as run() does."""
        quoted = statement_id.replace("'", "''")
        async for _ in self.run(f"TERMINATE QUERY '{quoted}'", context):
            pass
        step = await self.look_up(statement_id, context)
        match step:
            case Poll():
                return sqlstate.RUNNING
            case Fail(error):
                if error.where.sql_state:
                    return error.where.sql_state
                raise error
        return step.head.sql_state or ""

    @property
    def _base(self) -> str:
        return self.transport.target.base

    async def _begun(
        self, sql: str, context: SessionContext, row_limit: int | None, began: float, watch: Watch
    ) -> Done | Follow:
        """Submit, and wait for one statement; what met something that is not ready (class 3E) is submitted again."""
        for attempt in range(MAX_WAITS_ON_NOT_READY + 1):
            step = await self._submit(sql, context, row_limit)
            if isinstance(step, Follow):
                return step
            try:
                return await self._wait(step, context, began, watch)
            except StatementError as error:
                if not sqlstate.not_ready(error.where.sql_state) or attempt == MAX_WAITS_ON_NOT_READY:
                    raise
                wait = not_ready_wait(attempt)
                watch.say(f"{error.message} ({error.where.sql_state}): trying again in {wait:g} s")
                await asyncio.sleep(wait)
        raise AssertionError("unreachable")

    async def _submit(self, sql: str, context: SessionContext, row_limit: int | None) -> Step:
        try:
            body, content_type = encode_request(context.request(sql, row_limit), self._boundary)
        except UnicodeEncodeError:
            raise UsageError(
                "the statement has characters that are not valid Unicode", "is the script UTF-8?"
            ) from None
        if body.count(self._boundary.encode()) != 2:
            raise UsageError("the statement contains the request's own boundary", "run it again")
        answer = await self.transport.request("POST", "/v2/statements", content=body, content_type=content_type)
        return read_submission(answer.status, answer.headers, answer.body, self._base)

    async def _wait(self, step: Step, context: SessionContext, began: float, watch: Watch) -> Done:
        while True:
            match step:
                case Done():
                    if step.head.statement_id:
                        watch.statement_id(step.head.statement_id)
                    return step
                case Fail(error):
                    watch.context(step.context)
                    raise error
                case Follow():
                    raise ProtocolError(f"{self._base} answered a look-up with further statements")
                case Poll():
                    watch.statement_id(step.statement_id)
                    watch.progress(step.share, step.message)
                    elapsed = time.monotonic() - began
                    if self.wait_limit is not None and elapsed >= self.wait_limit:
                        raise WaitTimeout(
                            f"the statement still runs after {elapsed:.0f} s",
                            f"it keeps running there as {step.statement_id}",
                            Where(sqlstate.RUNNING, step.statement_id),
                        )
                    await asyncio.sleep(poll_wait(elapsed))
                    step = await self.look_up(step.statement_id, context)

    async def _result(self, done: Done, context: SessionContext, watch: Watch) -> Result:
        head, metadata = done.head, done.head.metadata
        if metadata is not None and metadata.dataplane_request is not None:
            raise ProtocolError(
                f"{self._base} keeps this result on a data plane, which this version does not read",
                where=Where(statement_id=head.statement_id or ""),
            )
        counts = None
        if metadata is not None and metadata.partition_info is not None:
            counts = [part.row_count for part in metadata.partition_info]
        first, columns = _first_batch(done, counts)
        statement_id = head.statement_id or ""
        echo = metadata.context if metadata else None
        watch.context(echo)

        async def fetch(number: int) -> Batch:
            count = counts[number] if counts and number < len(counts) else None
            return await self._partition(statement_id, context, number, len(columns), count)

        return Result(
            columns=columns,
            batches=PartitionReader(fetch, first, len(counts) if counts else 1, self.ahead),
            statement_id=statement_id,
            sql_state=head.sql_state or sqlstate.DONE,
            message=head.message or "",
            context=echo,
            row_counts=counts,
            partition=fetch,
        )

    async def _partition(
        self, statement_id: str, context: SessionContext, number: int, width: int, count: int | None
    ) -> Batch:
        if not statement_id:
            raise ProtocolError(f"{self._base} announced further partitions but gave no statementID")
        query = _query(context) | {"partitionID": number}
        for attempt in range(LOOKUP_TRIES):
            try:
                answer = await self.transport.request("GET", _path(statement_id), params=query)
            except ShellError as error:
                if attempt == LOOKUP_TRIES - 1 or isinstance(error, UsageError | ProtocolError):
                    raise
            else:
                if answer.status == 200:
                    return Batch(width, body=answer.body, number=number, count=count)
                step = read_lookup(answer.status, answer.headers, answer.body, self._base, statement_id)
                if isinstance(step, Fail) and (attempt == LOOKUP_TRIES - 1 or not step.again):
                    raise step.error
            await asyncio.sleep(not_ready_wait(attempt))
        raise ProtocolError(f"{self._base} still prepares partition {number} of a finished statement")


def fresh_session_id() -> str:
    return str(uuid.uuid4())


def _path(statement_id: str) -> str:
    return f"/v2/statements/{quote(statement_id, safe='')}"


def _query(context: SessionContext) -> dict[str, str | int]:
    query: dict[str, str | int] = {}
    if context.session_id:
        query["sessionID"] = context.session_id
    if context.timezone:
        query["timezone"] = context.timezone
    return query


def _first_batch(done: Done, counts: list[int] | None) -> tuple[Batch, list[Column]]:
    """The partition inside a finished answer, and the columns: named by its first row where the service names none."""
    metadata = done.head.metadata
    if metadata is not None and metadata.columns is not None:
        columns = columns_of(done.head, 0)
        return Batch(len(columns), body=done.body, count=counts[0] if counts else None), columns
    rows = Batch.decode(done.body, 0)
    columns = columns_of(done.head, max(map(len, rows), default=0))
    return Batch(len(columns), rows=rows), columns
