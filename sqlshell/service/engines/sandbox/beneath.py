"""Opens files beneath an open directory without following links."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

Stamp = tuple[int, int, int]
"""Identifies a version of a file: inode, size in bytes, modification time in ns."""


def stamp(status: os.stat_result) -> Stamp:
    return status.st_ino, status.st_size, status.st_mtime_ns


@contextmanager
def folder_of(root: int, name: str) -> Iterator[tuple[int, str]]:
    """A descriptor of the directory that contains `name`, a path beneath the directory `root`, and the last part of the
    path.

    Raises OSError.
    """
    *folders, file = name.split("/")
    if "\0" in name or not {"", ".", ".."}.isdisjoint((*folders, file)):
        raise OSError(errno.EINVAL, "the name is not a valid path in a store")
    place = os.dup(root)
    try:
        for part in folders:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
            os.close(place)
            place = inner
        yield place, file
    finally:
        os.close(place)


@contextmanager
def open_file(root: int, name: str, flags: int = os.O_RDONLY) -> Iterator[int]:
    """A descriptor of the regular file `name`, a path beneath the directory `root`. Raises OSError."""
    with folder_of(root, name) as (place, file):
        # Opening a pipe would wait for its other end.
        opened = os.open(file, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600, dir_fd=place)
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        yield opened
    finally:
        os.close(opened)
