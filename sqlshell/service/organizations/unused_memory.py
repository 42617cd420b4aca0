"""Returns unused memory to the operating system."""

from __future__ import annotations

import ctypes


def give_back() -> None:
    """Call malloc_trim() of glibc, which otherwise keeps memory that threads freed; no effect on other systems."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
