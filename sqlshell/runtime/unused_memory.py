"""Returns unused memory to the operating system."""

from __future__ import annotations

import ctypes
import gc
from pathlib import Path

MORE = 12 << 20
"""Bytes that a process may hold above its start before it is worth looking for unused memory."""


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
