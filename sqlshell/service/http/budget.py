"""Budgets of memory and disk space: for bodies that are being received, and rows that are not sent yet."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

SHARE = 4
"""Each holder may use at most 1/SHARE of a budget."""


class Budget:
    """A budget of bytes, of which each holder (an organization) may use at most a share. take() is for any thread."""

    def __init__(self, most: int) -> None:
        self._share = max(1, most // SHARE)
        self._lock = threading.Lock()
        self._held: Counter[str] = Counter()
        self._given = asyncio.Event()

    def take(self, holder: str, size: int) -> bool:
        """Reserve bytes until give(); returns whether there is room."""
        with self._lock:
            if self._held[holder] + size > self._share or self._held.total() + size > self._share * SHARE:
                return False
            self._held[holder] += size
        return True

    def give(self, holder: str, size: int) -> None:
        with self._lock:
            self._held[holder] -= size
        self._given.set()

    async def wait(self, holder: str, size: int) -> Lease:
        """Wait for room. More than a share counts as one share, so that it can be served."""
        lease = Lease(self, holder)
        while not lease.grow(min(size, self._share)):
            self._given.clear()
            await self._given.wait()
        return lease


class Lease:
    """The growing part of a budget that one body or reader uses."""

    def __init__(self, budget: Budget, holder: str) -> None:
        self._budget = budget
        self._holder = holder
        self.size = 0

    def grow(self, size: int) -> bool:
        """Reserve more bytes; returns whether there is room."""
        if not self._budget.take(self._holder, size):
            return False
        self.size += size
        return True

    def close(self) -> None:
        size, self.size = self.size, 0
        if size:
            self._budget.give(self._holder, size)
