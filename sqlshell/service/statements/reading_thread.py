"""A thread that reads long texts in pieces, so that none delays the others and all use at most one processor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sqlshell.service.dialect import DialectStatement, Reading
from sqlshell.service.organizations.pools import Pool, Size

T = TypeVar("T")

SHORT = 1 << 10
"""Texts of up to this many characters are read at once, in the event loop."""

PIECE = 16 << 10
"""Characters of a longer text that are read before it is the turn of another text."""


class ReadingThread:
    """Runs functions one at a time, for each owner in turn. Used from one event loop."""

    def __init__(self) -> None:
        self._turns = Pool("texts", Size(1, 1 << 30))
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="reading")

    async def run(self, owner: str, work: Callable[[], T]) -> T:
        """Run a function in the thread when it is the owner's turn."""
        async with self._turns.admit(owner):
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def parse(self, reading: Reading, owner: str) -> DialectStatement | None:
        """The result of reading.statement(), in the thread if it takes long. Raises Failure."""
        return await self.run(owner, reading.statement) if reading.takes_long else reading.statement()

    async def is_for_engine(self, reading: Reading, owner: str) -> bool:
        """The result of reading.is_for_engine(), in the thread if it takes long."""
        return await self.run(owner, reading.is_for_engine) if reading.takes_long else reading.is_for_engine()

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
