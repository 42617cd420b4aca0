"""Paths that the user gives, and the files that no output may replace because the program is using them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from sqlshell.errors import OutputError

_IN_USE: list[tuple[Path, str, bool]] = []


def expanded(path: str | Path) -> Path:
    """A path with the home directory for `~` and `~user`; a name that begins with `~` and
    is not that of a user stays unchanged."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        # DuckDB would replace a `~` at the beginning, too.
        return Path(path).absolute()


def use_source(path: Path) -> Callable[[], None]:
    """Let check_output() refuse a file that is read, until the function that is returned is called."""
    return _use([(path.absolute(), "read by this session", True)])


def use_database(path: Path) -> Callable[[], None]:
    """Let check_output() refuse a database, and DuckDB's write-ahead log of it, until the function that is returned is
    called."""
    path = path.absolute()
    log = path.with_name(f"{path.name}.wal")
    database = "the database of this session"
    return _use([(path, database, False), (log, f"the write-ahead log of {database}", False)])


def check_output(place: Path, name: str, *, replaced: bool = False) -> None:
    """Raises OutputError if writing to a file would destroy one that is in use, by whatever path or link. A file that
    is only read may be `replaced`: renaming another file to its name leaves readers what they have opened."""
    for used, what, replaceable in list(_IN_USE):
        if not (replaced and replaceable) and _same(place, used):
            raise OutputError(f"cannot write to {name}: it is {what}", "name another file")


def _use(added: list[tuple[Path, str, bool]]) -> Callable[[], None]:
    _IN_USE.extend(added)

    def release() -> None:
        for each in added:
            if each in _IN_USE:
                _IN_USE.remove(each)

    return release


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        # One of the two files does not exist yet.
        return os.path.realpath(one) == os.path.realpath(other)
