"""Waiting for what another process or thread does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

SECONDS = 60.0

Found = TypeVar("Found")


def until(holds: Callable[[], Found | None], seconds: float = SECONDS) -> Found:
    """Wait until something holds, and return it; fails after `seconds`."""
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert time.monotonic() < end, f"it did not come about in {seconds:.0f} s"
        time.sleep(0.02)
    return found
