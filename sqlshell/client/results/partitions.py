"""Yields partitions in order and fetches them ahead of the reader within a limited window."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable

from sqlshell.result import Batch

FetchPartition = Callable[[int], Awaitable[Batch]]

AHEAD_BYTES = 8 << 20
"""Bytes in flight, estimated from the largest partition so far, above which no further partition is requested."""


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
