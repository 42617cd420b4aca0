"""The machine's memory, shared among the organizations that are open."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

WHOLE = 0.8
"""The part of the machine's memory that all engines together may take."""

PARTS = 4
"""An organization gets one of so many parts, and at most half of what is left."""

LEAST = 256 << 20
"""Bytes that each gets, even where that is more than is left."""

_CGROUP = Path("/sys/fs/cgroup/memory.max")


class Shares:
    """Gives each organization its share, which stays what it is while the service runs. For any thread."""

    def __init__(self, whole: int = 0) -> None:
        self._whole = whole or int(machine() * WHOLE)
        self._given: dict[str, int] = {}
        self._lock = threading.Lock()

    def of(self, organization: str) -> int:
        """The bytes that an organization may take."""
        with self._lock:
            if organization not in self._given:
                left = self._whole - sum(self._given.values())
                self._given[organization] = max(LEAST, min(self._whole // PARTS, left // 2))
            return self._given[organization]

    def forget(self, organization: str) -> None:
        """The organization is gone: its share is free."""
        with self._lock:
            self._given.pop(organization, None)


def machine() -> int:
    """The bytes of memory that this machine, or its container, has."""
    found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError):
        found = min(found, int(_CGROUP.read_text()))
    return found
