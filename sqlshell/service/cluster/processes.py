"""Marks of processes, by which another process of the same machine knows that one has ended."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from sqlshell.runtime.scratch import start_time


def own_mark() -> str:
    """The mark of this process: the start of the machine, the namespace of process IDs, the ID, and the start time; ""
    if the system does not show them.
    """
    machine = _machine()
    return f"{machine} {os.getpid()} {start_time(os.getpid())}" if machine else ""


def has_ended(mark: str) -> bool:
    """Whether the process with this mark ran on this machine and has certainly ended."""
    machine, _, rest = mark.partition(" ")
    number, _, began = rest.partition(" ")
    if not began or not number.isdecimal() or machine != _machine():
        return False
    with contextlib.suppress(OSError):
        try:
            os.kill(int(number), 0)
        except ProcessLookupError:
            return True
    # Another process may have its ID now; that of another user may be hidden.
    return start_time(int(number)) not in {"", began}


def _machine() -> str:
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    return ""
