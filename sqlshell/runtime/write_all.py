"""Unbuffered writes of all bytes: a full disk or a limit can make the operating system write only some."""

from __future__ import annotations

from collections.abc import Callable


def write_all(write: Callable[[memoryview], int | None], data: bytes) -> None:
    """Repeat `write`, which returns how many bytes it has written, until all are. Raises the same errors as `write`."""
    left = memoryview(data)
    while left:
        left = left[write(left) or 0 :]
