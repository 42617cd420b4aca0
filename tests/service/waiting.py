"""Waiting for what another process or thread does."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
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


def suspend(pid: int) -> None:
    """Stop a process until SIGCONT, and wait until each of its threads stands still: on a busy machine the others run
    on until the one that receives the signal has its turn.
    """
    os.kill(pid, signal.SIGSTOP)
    tasks = Path(f"/proc/{pid}/task")
    until(lambda: {(task / "stat").read_text().rpartition(")")[2].split()[0] for task in tasks.iterdir()} <= {"T"})
