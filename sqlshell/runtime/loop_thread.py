"""An event loop in a thread of its own, for callers that are not asynchronous."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from sqlshell.runtime.event_loops import end_threads, thread_loop

Given = TypeVar("Given")


class LoopThread:
    """Runs coroutines for any number of threads. It ends with close(), or with the process."""

    def __init__(self, name: str) -> None:
        self._process = os.getpid()
        self._loop = thread_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Given]) -> Given:
        """The result of a coroutine. An exception in this thread, such as KeyboardInterrupt, cancels it first."""
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:
            work.close()
            raise
        try:
            return future.result()
        except BaseException:
            if not future.done():
                future.cancel()
                asyncio.run_coroutine_threadsafe(_others(), self._loop).result()
            raise

    @property
    def inherited(self) -> bool:
        """Whether this process was forked from the one that has the thread; nothing would run the loop here."""
        return os.getpid() != self._process

    @property
    def here(self) -> bool:
        """Whether this is the thread."""
        return threading.current_thread() is self._thread

    def close(self) -> None:
        """Cancel what still runs, end the thread and wait for it. A second call does nothing."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            if not self.here:
                self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.run_until_complete(_others())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            end_threads(self._loop)
        finally:
            self._loop.close()


async def _others() -> None:
    """Wait for the tasks that are being canceled."""
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task() and task.cancelling()]
    await asyncio.gather(*tasks, return_exceptions=True)
