"""The messages between the service and a converter, in a separate module so that the service never loads DuckDB."""

from __future__ import annotations

import os

from msgspec import Struct

COPY = "store.data"
"""The file name of the copy; DuckDB does not recognize its extension as that of a data file."""

Stamp = tuple[int, int, int]
"""Identifies a version of a file: inode, size in bytes, modification time in ns."""


class CopyRequest(Struct, frozen=True):
    """Request to copy `entities` of the directory with the descriptor `root`, and the tables `keep` of `before`, a copy
    or "" for none, into the directory `into`. Limits are in bytes and seconds; the converter exits with the process
    `parent`.
    """

    root: int
    into: str
    entities: list[str]
    before: str
    keep: list[str]
    threads: int
    memory: int
    file_size: int
    seconds: int
    parent: int


class CopyReport(Struct, frozen=True, omit_defaults=True):
    """A line of the converter's output: it starts copying an entity; has copied it, as of `stamp`; or could not."""

    name: str
    stamp: Stamp | None = None
    reason: str = ""


def stamp(status: os.stat_result) -> Stamp:
    return status.st_ino, status.st_size, status.st_mtime_ns
