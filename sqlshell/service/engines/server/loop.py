"""The event loop of an engine that is an external server."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from sqlshell.runtime.event_loops import thread_loop

T = TypeVar("T")


class EngineLoop:
    """An event loop in a thread of its own, for all sessions of an engine.

    Rows that arrive never hold up the service's own loop, and statements that run hold no thread.
    """

    def __init__(self, name: str) -> None:
        self._loop = thread_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and wait for it. For threads without an event loop."""
        return self._future(work).result()

    async def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and await it in another event loop."""
        return await asyncio.wrap_future(self._future(work))

    def post(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine that catches its errors, without waiting. For any thread."""
        self._future(work)

    def close(self) -> None:
        """End the loop and its thread; what still runs is canceled. A second call does nothing."""
        if self.running:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def _future(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()
