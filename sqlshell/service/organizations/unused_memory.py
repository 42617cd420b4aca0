"""Returns unused memory to the operating system."""

from __future__ import annotations

import contextlib
import ctypes
import gc
from collections.abc import Callable
from pathlib import Path

MORE = 12 << 20
"""Bytes that a process may hold above its start before it is worth looking for unused memory."""


def give_back() -> None:
    """Free garbage, and call malloc_trim() of glibc, which otherwise keeps memory that threads freed."""
    # An exception and its traceback form a cycle that refers to the text of a statement.
    gc.collect()
    # Other systems do not have it.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def in_thread(work: Callable[[], None]) -> None:
    """Run `work`, which saves memory, in a thread of the running event loop."""
    # An engine's process has no event loop, and starts faster without this module.
    import asyncio

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


class Growth:
    """Tells whether this process holds much more memory than at its start."""

    def __init__(self) -> None:
        self._start = _anonymous()

    @property
    def large(self) -> bool:
        return _anonymous() > self._start + MORE


def _anonymous() -> int:
    """The bytes of this process that no file contains; 0 if the system does not tell."""
    try:
        # An engine's process may open no other file that says this.
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("RssAnon:")), 0)
