"""Waiting for what another process or thread does."""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS = 60.0


def until(holds: Callable[[], object]) -> None:
    """Wait until something holds; fails after SECONDS."""
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end, f"it did not come about in {SECONDS:.0f} s"
        time.sleep(0.02)
