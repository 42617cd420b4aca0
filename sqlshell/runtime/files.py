"""Files: paths that the user gives, what no output may replace, open descriptors, and complete writes."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct

from sqlshell.errors import OutputError

DATA_ENDINGS: Final = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet")
COMPRESSED_ENDINGS: Final = (".gz", ".zst")
DATABASE_ENDINGS: Final = (".db", ".duckdb", ".ddb")
"""The endings of the files that can be a TARGET: data, compressed data, and databases."""

_IN_USE: list[tuple[Path, str, bool]] = []


def expanded(path: str | Path) -> Path:
    """A path with the home directory for `~` and `~user`; a name that begins with `~` and
    is not that of a user stays unchanged."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        # DuckDB would replace a `~` at the beginning, too.
        return Path(path).absolute()


def without_compression(path: Path) -> str:
    """The name of a file in lower case, without the ending of its compression."""
    bare = path.name.lower()
    for ending in COMPRESSED_ENDINGS:
        bare = bare.removesuffix(ending)
    return bare


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


_NAMED: Final = {"stdin": 0, "stdout": 1, "stderr": 2}
_PATH: Final = re.compile(
    r"/dev/(?P<name>stdin|stdout|stderr)|/dev/fd/(?P<number>\d+)"
    r"|/proc/(?P<process>self|thread-self|\d+)(?:/task/\d+)?/fd/(?P<other>\d+)"
)
LONGEST_WAY: Final = 256
"""Maximum number of directories and links to follow; a longer path is taken for a loop."""


class Descriptor(Struct, frozen=True):
    """File descriptor `number`; `own` says whether it belongs to this process."""

    number: int
    own: bool


def descriptor(path: str) -> Descriptor | None:
    """The descriptor that a path refers to, directly or through links; None for every other path.

    Links are followed one by one, because `/proc/self/fd/1` is itself a link to an ordinary file or pipe.
    """
    at = "/" if path.startswith("/") else os.getcwd()  # noqa: PTH109
    ahead = path.split("/")[::-1]
    for _ in range(LONGEST_WAY):
        if not ahead:
            return None
        part = ahead.pop()
        if part in ("", "."):
            continue
        if part == "..":
            at = os.path.dirname(at)  # noqa: PTH120
            continue
        at = f"{at.rstrip('/')}/{part}"
        match = _PATH.fullmatch(at)
        if match and not any(ahead):
            return _from_match(match)
        try:
            target = os.readlink(at)  # noqa: PTH115
        except (OSError, ValueError):
            continue
        ahead += target.split("/")[::-1]
        at = "/" if target.startswith("/") else os.path.dirname(at)  # noqa: PTH120
    return None


def is_stdin(path: str) -> bool:
    """Whether a path refers to this program's stdin, by any path or link."""
    opened = descriptor(path)
    return opened is not None and opened.own and opened.number == 0


def stand_in_for_closed() -> None:
    """Open closed standard descriptors on /dev/null, so that no file opened later gets their numbers.

    Reading stdin and writing stdout still fail as on a closed descriptor; messages to stderr are lost.
    """
    for name, number, flags in (("stdin", 0, os.O_WRONLY), ("stdout", 1, os.O_RDONLY), ("stderr", 2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            nowhere = os.open(os.devnull, flags)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "r" if number == 0 else "w", closefd=False))  # noqa: SIM115


def _from_match(match: re.Match[str]) -> Descriptor:
    if match["name"]:
        return Descriptor(_NAMED[match["name"]], True)
    if match["number"]:
        return Descriptor(int(match["number"]), True)
    return Descriptor(int(match["other"]), match["process"] in {"self", "thread-self", str(os.getpid())})


def write_all(write: Callable[[memoryview], int | None], data: bytes) -> None:
    """Repeat `write`, which returns how many bytes it has written, until all are. Raises the same errors as `write`."""
    left = memoryview(data)
    while left:
        left = left[write(left) or 0 :]


def replace_private(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Write a file that only this user can read, whole or not at all; `durable` is after a power failure too.

    Raises OSError.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}")
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    part.replace(path)
