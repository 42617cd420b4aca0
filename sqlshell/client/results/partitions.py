"""Partitions in order, fetched ahead of the reader within a bounded window."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable

from sqlshell.result import Batch

FetchPartition = Callable[[int], Awaitable[Batch]]

AHEAD_BYTES = 8 << 20
"""Bytes in flight, judged by the largest partition so far, from which no further one is asked for."""


class PartitionReader:
    """The batches of a result set, each once, in order; at most `ahead` fetches are in flight, and at least one.

    Fewer are where partitions are large, so that what is in flight stays about AHEAD_BYTES.

    An iterator object and not a generator: when a fetch fails the error is raised to the reader and the same partition
    is next again. `first` is partition 0, which came with the answer; `count` is how many there are in all.
    """

    def __init__(self, fetch: FetchPartition, first: Batch, count: int, ahead: int) -> None:
        self._fetch = fetch
        self._first: Batch | None = first
        self._count = max(count, 1)
        self._ahead = ahead
        self._next = 0
        self._largest = first.size
        self._flying: deque[asyncio.Future[Batch]] = deque()

    def __aiter__(self) -> PartitionReader:
        return self

    async def __anext__(self) -> Batch:
        if self._next >= self._count:
            raise StopAsyncIteration
        if self._first is not None:
            batch, self._first = self._first, None
            self._next = 1
            self._launch()
            return batch
        self._launch()
        try:
            batch = await self._flying[0]
        except BaseException:
            await self._land()
            raise
        self._flying.popleft()
        self._next += 1
        self._largest = max(self._largest, batch.size)
        self._launch()
        return batch

    async def aclose(self) -> None:
        """Nothing stays in flight, and nothing more is given."""
        self._next = self._count
        await self._land()

    def _launch(self) -> None:
        most = max(1, min(self._ahead, AHEAD_BYTES // max(self._largest, 1)))
        while len(self._flying) < most and self._next + len(self._flying) < self._count:
            self._flying.append(asyncio.ensure_future(self._fetch(self._next + len(self._flying))))

    async def _land(self) -> None:
        """Cancel what is in flight and take its errors, so that none is reported as never retrieved."""
        flying = list(self._flying)
        self._flying.clear()
        for task in flying:
            task.cancel()
        for task in flying:
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task
