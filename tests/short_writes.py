"""Files that cannot grow: the operating system writes what fits, and fails the next write."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator

FILE_LIMIT = 1_000
"""Bytes."""


@contextlib.contextmanager
def files_limited() -> Iterator[None]:
    """Limit the size of the files that this process writes to FILE_LIMIT."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_LIMIT, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
