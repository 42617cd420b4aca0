"""Work that an event loop does after the last use of something, or in a thread."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable


def in_thread(work: Callable[[], None]) -> None:
    """Run `work`, which saves memory, in a thread of the running event loop."""
    # At the end of the process Python starts no more threads, and the memory is returned anyway.
    with contextlib.suppress(RuntimeError):
        asyncio.get_running_loop().run_in_executor(None, work)


class IdleTimer:
    """Calls `idle` a number of seconds after the last use of something. Used from one event loop."""

    def __init__(self, seconds: float, idle: Callable[[], None]) -> None:
        self._seconds = seconds
        self._idle = idle
        self._timer: asyncio.TimerHandle | None = None

    def restart(self) -> None:
        """Note a use."""
        if self._timer is not None:
            self._timer.cancel()
        # Python closes what is left of a coroutine after the end of its loop.
        with contextlib.suppress(RuntimeError):
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._idle)
