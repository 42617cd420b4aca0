"""Work in a thread, which is undone if nobody waits for it any more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread_or_undone(work: Callable[[], T], undo: Callable[[T], object]) -> T:
    """The result of `work` in a thread. If the task is canceled, `undo` is called with the result, also in a thread.

    Threads cannot be canceled: `work` goes on, and nobody else would release what it opens.
    """
    lock = threading.Lock()
    results: list[T] = []
    canceled = False

    def run() -> T:
        result = work()
        with lock:
            results.append(result)
            unwanted = canceled
        if unwanted:
            undo(result)
        return result

    try:
        return await asyncio.to_thread(run)
    except asyncio.CancelledError:
        with lock:
            canceled = True
            unwanted = [*results]
        for result in unwanted:
            await asyncio.to_thread(undo, result)
        raise
