"""The partitions of a finished statement: fetched from the service or from a data plane, and read in order."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import quote

from msgspec import Struct

from sqlshell.client.http.transport import Response, Transport
from sqlshell.client.statements.protocol import poll_wait, read_partition
from sqlshell.context import SessionContext
from sqlshell.errors import NotAuthenticated, ProtocolError, Where
from sqlshell.result import Batch, Body

PREPARING_SECONDS = 60.0
"""How long the service may prepare a partition of a finished statement, in seconds."""

AHEAD_BYTES = 8 << 20
"""Bytes in flight, estimated from the largest partition so far, above which no further partition is requested."""

FetchPartition = Callable[[int], Awaitable[Batch]]


def statement_path(statement_id: str) -> str:
    return f"/v2/statements/{quote(statement_id, safe='')}"


def look_up_query(context: SessionContext) -> dict[str, str | int]:
    """The parameters of a lookup in a session."""
    # All clients request the first partition by its number.
    query: dict[str, str | int] = {"partitionID": 0}
    if context.session_id:
        query["sessionID"] = context.session_id
    if context.timezone:
        query["timezone"] = context.timezone
    return query


class PartitionFetcher(Struct):
    """Fetches partitions by number. `query` is sent with every request.

    `refresh` returns a new transport when the token has expired; tokens of a data plane are short-lived.
    """

    transport: Transport
    path: str
    query: Mapping[str, str | int]
    statement_id: str
    counts: list[int] | None
    refresh: Callable[[], Awaitable[Transport]] | None = None

    async def body(self, number: int) -> Body:
        """The response with partition `number`, whose number of rows has been checked.

        Raises ProtocolError, StatementError, and the errors of Transport.request.
        """
        count = self.counts[number] if self.counts and number < len(self.counts) else None
        began = time.monotonic()
        refreshed = False
        while True:
            transport = self.transport

            def read(answer: Response, base: str = transport.target.base) -> Body | None:
                whole = read_partition(
                    answer.status, answer.headers, answer.body, base, self.statement_id, number, count
                )
                return answer.body if whole else None

            try:
                body = await transport.call(
                    "GET", self.path, read, params={**self.query, "partitionID": number}, rows=count
                )
            except NotAuthenticated:
                if self.refresh is None or refreshed:
                    raise
                refreshed = True
                if self.transport is transport:
                    self.transport = await self.refresh()
                continue
            if body is not None:
                return body
            elapsed = time.monotonic() - began
            if elapsed > min(PREPARING_SECONDS, transport.network.timeout):
                raise ProtocolError(
                    f"{transport.target.base} is still preparing partition {number} of a finished statement",
                    "try again later",
                    Where(statement_id=self.statement_id),
                )
            await asyncio.sleep(poll_wait(elapsed))


class PartitionReader:
    """The batches of a result set, each once, in order. Up to `ahead` fetches are in flight, and at least one.

    For large partitions there are fewer, so that about AHEAD_BYTES are in flight.

    An iterator object and not a generator: if a fetch fails, the reader gets the error, and the next step requests the
    same partition again. `first` is the first partition, if it came with the response; `count` is the total number.
    """

    def __init__(self, fetch: FetchPartition, first: Batch | None, count: int, ahead: int) -> None:
        self._fetch = fetch
        self._first = first
        self._count = max(count, 1)
        self._ahead = ahead
        self._next = 0
        self._largest = first.size if first is not None else None
        self._in_flight: deque[asyncio.Future[Batch]] = deque()

    def __aiter__(self) -> PartitionReader:
        return self

    def take_first(self) -> Batch:
        """The first batch, without fetching the next ones."""
        batch, self._first = self._first, None
        assert batch is not None
        self._next += 1
        return batch

    async def __anext__(self) -> Batch:
        if self._next >= self._count:
            raise StopAsyncIteration
        if self._first is not None:
            batch = self.take_first()
            self._start_fetches()
            return batch
        self._start_fetches()
        try:
            batch = await self._in_flight[0]
        except BaseException:
            await self._cancel_fetches()
            raise
        self._in_flight.popleft()
        self._next += 1
        self._largest = max(self._largest or 0, batch.size)
        self._start_fetches()
        return batch

    async def skip_to(self, number: int) -> None:
        """Continue with another partition."""
        if number != self._next:
            await self._cancel_fetches()
            self._first, self._next = None, number

    async def aclose(self) -> None:
        """Cancel the fetches in flight; no further batch is returned."""
        self._next = self._count
        await self._cancel_fetches()

    def _start_fetches(self) -> None:
        # Nothing is known of the size before the first partition has arrived.
        largest = AHEAD_BYTES if self._largest is None else self._largest
        most = max(1, min(self._ahead, AHEAD_BYTES // max(largest, 1)))
        while len(self._in_flight) < most and self._next + len(self._in_flight) < self._count:
            task = asyncio.ensure_future(self._fetch(self._next + len(self._in_flight)))
            # The reader may be dropped without aclose(): asyncio would report the exception as never retrieved.
            task.add_done_callback(_retrieve)
            self._in_flight.append(task)

    async def _cancel_fetches(self) -> None:
        """Cancel the fetches in flight and wait for them."""
        flying = list(self._in_flight)
        self._in_flight.clear()
        for task in flying:
            task.cancel()
        for task in flying:
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task


def _retrieve(task: asyncio.Future[Batch]) -> None:
    if not task.cancelled():
        task.exception()
