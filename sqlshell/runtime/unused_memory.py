"""Returns unused memory to the operating system."""

from __future__ import annotations

import ctypes
import gc
from pathlib import Path

MORE = 12 << 20
"""Bytes that a process may hold above its start before it is worth looking for unused memory."""


LARGEST_KEPT = 4 << 20
"""Bytes of free memory that each arena of glibc's malloc() keeps, and the size from which memory comes from mmap()."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def limit_unused_memory() -> None:
    """Keep glibc from raising its limits of unused memory: after a text of 16 MiB, each thread would keep 32 MiB,
    which malloc_trim() does not return.
    """
    # Other systems do not have it.
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, LARGEST_KEPT)
        mallopt(_M_TRIM_THRESHOLD, LARGEST_KEPT)


def return_unused_memory() -> None:
    """Free garbage, and call malloc_trim() of glibc, which otherwise keeps memory that threads freed."""
    # An exception and its traceback form a cycle that refers to the text of a statement.
    gc.collect()
    # Other systems do not have it.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


class Growth:
    """Tells whether this process holds much more memory than at its start."""

    def __init__(self) -> None:
        self._start = memory_of_process("RssAnon")

    @property
    def large(self) -> bool:
        return memory_of_process("RssAnon") > self._start + MORE


def memory_of_process(kind: str) -> int:
    """The bytes of this process of a kind: RssAnon, which no file contains, or VmData, which count against its limit; 0
    if unknown."""
    try:
        # An engine's process may open no other file that says this.
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith(f"{kind}:")), 0)
