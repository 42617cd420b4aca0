"""The threads of one organization, which are not shared with others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from sqlshell.service.organizations.pools import Pool, Size

OTHERS = 8
READERS = 4
STREAMS = 2
"""The numbers of threads for other statements than the engine's, for readers of results, and for streams."""

QUEUE = 1 << 30


class Workers:
    """Thread pools whose threads are started when first needed. `running` is the number of statements that run at once.

    `places` admits statements in turn by token, `turns` the evaluation of streams in turn by query.
    """

    def __init__(self, running: int) -> None:
        self.places = Pool("", Size(running, QUEUE))
        self.turns = Pool("streams", Size(STREAMS, QUEUE))
        self._statements = _threads(running, "statement")
        self._others = _threads(OTHERS, "other")
        self._readers = _threads(READERS, "reader")
        self._streams = _threads(STREAMS, "stream")

    async def statement(self, work: Callable[..., Any], *given: Any) -> Any:
        """Run a statement of the engine; the caller holds a slot of `places`."""
        return await _run(self._statements, work, *given)

    async def run_other(self, work: Callable[..., Any], *given: Any) -> Any:
        return await _run(self._others, work, *given)

    async def reader(self, work: Callable[..., Any], *given: Any) -> Any:
        return await _run(self._readers, work, *given)

    async def stream(self, query: str, work: Callable[..., Any], *given: Any) -> Any:
        """Evaluate rows of a query on a stream."""
        async with self.turns.admit(query):
            return await _run(self._streams, work, *given)

    def close(self) -> None:
        for pool in (self._statements, self._others, self._readers, self._streams):
            pool.shutdown(wait=False, cancel_futures=True)


def _threads(number: int, name: str) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(number, thread_name_prefix=name)


async def _run(pool: ThreadPoolExecutor, work: Callable[..., Any], *given: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(pool, partial(work, *given))
