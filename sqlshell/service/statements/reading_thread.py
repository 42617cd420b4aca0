"""A thread that reads long texts, so that the event loop goes on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

LONG = 4 << 10
"""Texts of more characters are read in the thread: reading a text of this size takes up to 20 ms."""


class ReadingThread:
    """Runs functions one after another. Used from the event loop."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reading")

    async def run(self, work: Callable[[], T]) -> T:
        """Run a function in the thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def read(self, size: int, work: Callable[[], T]) -> T:
        """Run a function that reads a text of `size` characters: in the thread if the text is long."""
        return await self.run(work) if size > LONG else work()

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
