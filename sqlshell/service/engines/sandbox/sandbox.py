"""Restricts a process of the service before it handles users' data.

An engine's process can read and write its organization's directories, and read the files of the system that DuckDB and
Python need. It has access to no other files, no network, no other programs and processes. Its memory, its open files
and their size are limited, and it exits with the service. The result says which of these the system supports, so that
`serve` can report it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys
import sysconfig
import threading
import zoneinfo
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from sqlshell.service.engines.sandbox import landlock, syscalls

BEYOND: Final = 3 << 29
"""Bytes that DuckDB needs in addition to its memory limit, and Python: 1.5 GiB."""

THREAD: Final = 16 << 20
"""Bytes for the stack of each thread, and for memory that malloc keeps for it."""

OPEN_FILES: Final = 8192

SYSTEM: Final = (
    "/proc/self/cgroup", "/proc/self/status",
    "/proc/meminfo", "/proc/stat", "/proc/cpuinfo", "/sys/fs/cgroup", "/sys/devices/system/cpu",
    "/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/etc/localtime",
)  # fmt: skip
"""Files of the system that DuckDB and libc read: without the first one DuckDB aborts the process."""

_ARENAS: Final = -8
"""M_ARENA_MAX of mallopt()."""


class Bounds(Struct, frozen=True):
    """Limits of the process: bytes of memory and of one file (0: no limit), open files."""

    memory: int = 0
    file_size: int = 0
    open_files: int = OPEN_FILES


class Protections(Struct, frozen=True):
    """The restrictions that took effect, and those that the system does not support."""

    given: tuple[str, ...]
    missing: tuple[str, ...]

    def __str__(self) -> str:
        given = f"each engine runs in its own process: {', '.join(self.given) or 'without restrictions'}"
        return given + (f"; not supported by this system: {', '.join(self.missing)}" if self.missing else "")


FILES: Final = "no access to other files"
NETWORK: Final = "no network"
PROGRAMS: Final = "no other programs"
SIGNALS: Final = "no signals to other processes"
MEMORY: Final = "limited memory"
ENDS: Final = "exits with the service"

_held: list[int] = []


def restrict(
    read: Sequence[Path | int], write: Sequence[Path], bounds: Bounds, *, fill: Sequence[Path] = (), parent: int = 0
) -> Protections:
    """Permanently give up all access that an engine does not need. `read` (directories, files or open descriptors) is
    what it may read in addition to the files of Python and DuckDB, `write` the directories in which it may read, create
    and remove files, `fill` those in which it may only create, write and remove them.

    Call it before a second thread exists, and so before the first connection of DuckDB: running threads would keep
    their rights. Later imports must be from the standard library or from sqlshell. `parent` is the process that started
    this one, from its main thread or another permanent one: this process gets SIGKILL when that thread ends.

    Raises RuntimeError if there are other threads, ProcessLookupError if the parent has exited, and OSError if the
    system has Landlock but refuses it.
    """
    if _threads() > 1:
        raise RuntimeError("a process must be restricted before it starts a second thread")
    given: list[str] = []
    missing: list[str] = []

    def note(there: bool, what: str) -> None:
        (given if there else missing).append(what)

    version = landlock.version()
    # The first restrictions are not needed to apply the following ones.
    os.umask(0o077)
    ends = bool(parent) and syscalls.end_with_parent(signal.SIGKILL, parent)
    syscalls.not_dumpable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _bound(resource.RLIMIT_NOFILE, bounds.open_files)
    if bounds.file_size:
        # A write beyond the limit is an error, not a signal.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        _bound(resource.RLIMIT_FSIZE, bounds.file_size)
    _end_first()
    safe = syscalls.no_new_privileges()
    confined = bool(version)
    if confined:
        allowed: list[tuple[Path | int, int]] = [(place, landlock.READ) for place in (*_needed(), *read)]
        allowed += [(Path(sysconfig.get_path("stdlib")), landlock.LIST)]
        allowed += [(place, landlock.WRITE) for place in write]
        allowed += [(place, landlock.FILL) for place in fill]
        _held.extend(landlock.confine(allowed, version))
    note(confined, f"{FILES} (Landlock {version})" if confined else FILES)
    filtered = safe and syscalls.forbid()
    note(filtered or (confined and landlock.network(version)), NETWORK)
    note(filtered or confined, PROGRAMS)
    note(confined and landlock.signals(version), SIGNALS)
    note(_bound_memory(bounds.memory), MEMORY)
    if parent:
        note(ends, ENDS)
    return Protections(tuple(given), tuple(missing))


def memory_bound(limit: str, threads: int) -> int:
    """Maximum bytes for an engine's process with this memory limit ("" is DuckDB's default) and threads (0: one per
    core).
    """
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return (size(limit, machine) or machine * 8 // 10) + BEYOND + (threads or os.cpu_count() or 1) * THREAD


def size(text: str, machine: int) -> int:
    """The bytes of a size in DuckDB's syntax, such as 2GB, 512MiB or 50% of `machine`; 0 for ""."""
    text = text.strip().lower()
    number = text.rstrip("%kmgtib ")
    if not number:
        return 0
    unit = text[len(number) :].strip()
    if unit == "%":
        return int(float(number) * machine / 100)
    power = " kmgt".index(unit[0]) if unit and unit[0] in "kmgt" else 0
    return int(float(number) * (1024 if "i" in unit else 1000) ** power)


def file_bound(folder: Path) -> int:
    """Maximum bytes of one file in a directory: nearly all of the free space, plus the size of the largest file."""
    largest = 0
    for place, _, files in os.walk(folder):
        for file in files:
            with contextlib.suppress(OSError):
                largest = max(largest, Path(place, file).lstat().st_size)
    space = os.statvfs(folder)
    return largest + max(1 << 30, space.f_bavail * space.f_frsize * 9 // 10)


def _needed() -> Iterator[Path]:
    """Files of the system that Python and DuckDB read while they run."""
    yield from map(Path, SYSTEM)
    yield from map(Path, zoneinfo.TZPATH)
    yield Path(__file__).parents[3]
    # The directory of the standard library may contain other packages, which are not needed.
    with contextlib.suppress(OSError):
        for entry in Path(sysconfig.get_path("stdlib")).iterdir():
            if entry.name not in {"site-packages", "dist-packages"} and not entry.is_symlink():
                yield entry


def _bound(what: int, most: int) -> None:
    hard = resource.getrlimit(what)[1]
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(what, (most, most))


def _bound_memory(most: int) -> bool:
    """Limit the memory that may be written to. Memory that is only reserved (malloc's arenas) does not count."""
    if not most or not sys.platform.startswith("linux"):
        return False
    with contextlib.suppress(AttributeError):
        # Only glibc has this function, and only glibc has arenas.
        ctypes.CDLL(None).mallopt(_ARENAS, 4)
    _bound(resource.RLIMIT_DATA, most)
    return True


def _end_first() -> None:
    """If the machine runs out of memory, the kernel kills this process first."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("800")


def _threads() -> int:
    with contextlib.suppress(OSError):
        return sum(1 for _ in Path("/proc/self/task").iterdir())
    return threading.active_count()
