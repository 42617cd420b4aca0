"""Returns unused memory to the operating system."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
from collections.abc import Callable


def give_back() -> None:
    """Call malloc_trim() of glibc, which otherwise keeps memory that threads freed; no effect on other systems."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def in_thread(work: Callable[[], None]) -> None:
    """Run `work`, which saves memory, in a thread of the running event loop."""
    # At the end of the process Python starts no more threads, and the memory is returned anyway.
    with contextlib.suppress(RuntimeError):
        asyncio.get_running_loop().run_in_executor(None, work)
