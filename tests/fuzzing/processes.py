"""Runs the statements in a process for each processor, each with a world of its own."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from tests.fuzzing.check import fuzz
from tests.fuzzing.world import World

CHUNK = 500
"""Statements between two comparisons of everything."""

MEMORY = Path("/dev/shm")
"""A directory in memory, where the system has one: each change is synchronized to its file."""

_worlds: list[World] = []


def fuzz_in_processes(number: int) -> Iterator[Counter[str]]:
    """Try as many statements; how many ended in what, after each chunk. Raises AssertionError as fuzz() does."""
    chunks = [min(CHUNK, number - done) for done in range(0, number, CHUNK)]
    with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn"), _begin) as processes:
        try:
            for done in as_completed([processes.submit(_fuzz, examples) for examples in chunks]):
                yield done.result()
        finally:
            processes.shutdown(wait=False, cancel_futures=True)


def _begin() -> None:
    """Make the world of this process. An interrupt is for the process that waits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    folder = tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)
    atexit.register(folder.cleanup)
    _worlds.append(World(Path(folder.name)))


def _fuzz(examples: int) -> Counter[str]:
    return fuzz(_worlds[0], examples, derandomize=False)
