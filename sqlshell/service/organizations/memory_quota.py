"""Divides the machine's memory among the open organizations."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

WHOLE = 0.8
"""The fraction of the machine's memory that all engines together may use."""

PARTS = 4
"""An organization gets 1/4 of that, and at most half of what is left."""

MIN_BYTES = 256 << 20
"""The minimum for each organization in bytes, even if less is left."""

_CGROUP = Path("/sys/fs/cgroup/memory.max")


class MemoryQuota:
    """Assigns each organization a share that does not change while the service runs. Thread-safe."""

    def __init__(self, whole: int = 0) -> None:
        self._whole = whole or int(machine() * WHOLE)
        self._given: dict[str, int] = {}
        self._lock = threading.Lock()

    def of(self, organization: str) -> int:
        """The bytes that an organization may use."""
        with self._lock:
            if organization not in self._given:
                left = self._whole - sum(self._given.values())
                self._given[organization] = max(MIN_BYTES, min(self._whole // PARTS, left // 2))
            return self._given[organization]

    def forget(self, organization: str) -> None:
        """Release the share of a dropped organization."""
        with self._lock:
            self._given.pop(organization, None)


def machine() -> int:
    """The memory of this machine, or of its container, in bytes."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError):
        memory = min(memory, int(_CGROUP.read_text()))
    return memory
