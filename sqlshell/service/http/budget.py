"""Budgets of memory and disk space: for bodies that are being received, and rows that are not sent yet."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable

from sqlshell.runtime.idle import IdleTimer, in_thread
from sqlshell.runtime.unused_memory import return_unused_memory

SHARE = 4
"""Each holder may use at most 1/SHARE of a budget."""

LOOK_SECONDS = 1.0
"""How often it is checked whether a waiting client has disconnected."""

REST_SECONDS = 2.0
"""How long after the last use of a budget freed memory is returned to the operating system."""


class Budget:
    """A budget of bytes, of which each holder (an organization) may use at most a share.

    Used from one event loop, except take(), which is for any thread.
    """

    def __init__(self, most: int) -> None:
        self._share = max(1, most // SHARE)
        self._most = self._share * SHARE
        self._lock = threading.Lock()
        self._all = 0
        self._held: dict[str, int] = {}
        self._waiting: list[asyncio.Event] = []
        self._idle = IdleTimer(REST_SECONDS, lambda: in_thread(return_unused_memory))

    def take(self, holder: str, size: int) -> bool:
        """Reserve bytes until give(); returns whether there is room."""
        with self._lock:
            held = self._held.get(holder, 0)
            if held + size > self._share or self._all + size > self._most:
                return False
            self._held[holder] = held + size
            self._all += size
        return True

    def give(self, holder: str, size: int) -> None:
        with self._lock:
            held = self._held.pop(holder, 0) - size
            if held > 0:
                self._held[holder] = held
            self._all -= size
        for waiting in self._waiting:
            waiting.set()
        if not self._all:
            self._idle.restart()

    async def wait(self, holder: str, size: int, left: Callable[[], bool] = bool) -> int:
        """Wait for room, where what has waited longest is looked at first; returns the bytes reserved until give().

        More than a share counts as one share, so that it can be served. Raises BrokenPipeError if the client has
        `left`.
        """
        size = min(size, self._share)
        if self.take(holder, size):
            return size
        room = asyncio.Event()
        self._waiting.append(room)
        try:
            while not self.take(holder, size):
                if left():
                    raise BrokenPipeError("the client has disconnected")
                room.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        await room.wait()
        finally:
            self._waiting.remove(room)
        return size


class Lease:
    """The growing share of a budget that one body uses."""

    def __init__(self, budget: Budget, holder: str) -> None:
        self._budget = budget
        self._holder = holder
        self._size = 0

    def grow(self, size: int) -> bool:
        """Reserve more bytes; returns whether there is room."""
        if not self._budget.take(self._holder, size):
            return False
        self._size += size
        return True

    def close(self) -> None:
        size, self._size = self._size, 0
        if size:
            self._budget.give(self._holder, size)
