"""Restricts a process of the service before it handles users' data.

An engine's process reads and writes its organization's folders, reads what DuckDB and Python need of the system, and
nothing else: no other file, no network, no other program or process. Its memory, its open files and their size are
bounded, and it ends with the service. Which of these a system has is told as a value, for the person who starts the
service.
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

import sqlshell
from sqlshell.service.engines.sandbox import landlock, syscalls

BEYOND: Final = 3 << 29
"""Bytes that DuckDB takes beside what it counts against its memory limit, and Python: 1.5 GiB."""

THREAD: Final = 16 << 20
"""Bytes for each thread's stack and what malloc keeps for it."""

OPEN_FILES: Final = 8192

SYSTEM: Final = (
    "/proc/self/cgroup", "/proc/self/status",
    "/proc/meminfo", "/proc/stat", "/proc/cpuinfo", "/sys/fs/cgroup", "/sys/devices/system/cpu",
    "/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/etc/localtime",
)  # fmt: skip
"""What DuckDB and libc read of the machine: without the first of them DuckDB aborts the process."""

_ARENAS: Final = -8
"""mallopt()'s M_ARENA_MAX."""


class Bounds(Struct, frozen=True):
    """The most that the process may take: bytes of memory and of one file (0: not bounded), open files."""

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


def restrict(read: Sequence[Path | int], write: Sequence[Path], bounds: Bounds, *, parent: int = 0) -> Protections:
    """Give up what an engine does not need, for good. `read` (folders, files or open descriptors) is what may be read
    beside what Python and DuckDB need, `write` the folders in which files may be read, made and removed.

    To be called before there is a second thread, and so before DuckDB is connected to: threads that run already would
    keep their rights. What is imported later has to be of the standard library or of sqlshell. `parent` is the process
    that began this one, from the main thread or one that lasts: this one gets SIGKILL when that thread ends.

    Raises RuntimeError where there are other threads, ProcessLookupError where the parent has ended already.
    """
    if _threads() > 1:
        raise RuntimeError("a process must be restricted before it starts a second thread")
    given: list[str] = []
    missing: list[str] = []

    def told(there: bool, what: str) -> None:
        (given if there else missing).append(what)

    version = landlock.version()
    # What is bounded first is not needed to bound the rest.
    os.umask(0o077)
    ends = bool(parent) and syscalls.end_with_parent(signal.SIGKILL, parent)
    syscalls.not_dumpable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _bound(resource.RLIMIT_NOFILE, bounds.open_files)
    if bounds.file_size:
        # A write beyond the bound is an error and no signal.
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        _bound(resource.RLIMIT_FSIZE, bounds.file_size)
    _end_first()
    safe = syscalls.no_new_privileges()
    confined = False
    if version and safe:
        allowed: list[tuple[Path | int, int]] = [(place, landlock.READ) for place in (*_needed(), *read)]
        allowed += [(Path(sysconfig.get_path("stdlib")), landlock.LIST)]
        allowed += [(place, landlock.WRITE) for place in write]
        with contextlib.suppress(OSError):
            _held.extend(landlock.confine(allowed, version))
            confined = True
    told(confined, f"{FILES} (Landlock {version})" if confined else FILES)
    filtered = safe and syscalls.forbid()
    told(filtered or (confined and landlock.network(version)), NETWORK)
    told(filtered or confined, PROGRAMS)
    told(confined and landlock.signals(version), SIGNALS)
    told(_bound_memory(bounds.memory), MEMORY)
    if parent:
        told(ends, ENDS)
    return Protections(tuple(given), tuple(missing))


def memory_bound(limit: str, threads: int) -> int:
    """The bytes for an engine's process with this memory limit ("" is DuckDB's own) and threads (0: one per core)."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return (size(limit, machine) or machine * 8 // 10) + BEYOND + (threads or os.cpu_count() or 1) * THREAD


def size(text: str, machine: int) -> int:
    """The bytes of a size as DuckDB reads it, such as 2GB, 512MiB or 50% of `machine`; 0 for ""."""
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
    """The bytes that one file in a folder may come to: nearly what is free there, beside what the largest one has."""
    largest = 0
    for place, _, files in os.walk(folder):
        for file in files:
            with contextlib.suppress(OSError):
                largest = max(largest, Path(place, file).lstat().st_size)
    found = os.statvfs(folder)
    return largest + max(1 << 30, found.f_bavail * found.f_frsize * 9 // 10)


def _needed() -> Iterator[Path]:
    """What Python and DuckDB read of the system while they run."""
    yield from map(Path, SYSTEM)
    yield from map(Path, zoneinfo.TZPATH)
    yield Path(sqlshell.__file__).parent
    # Other packages may be in the folder of the standard library, and nobody needs those.
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
    """What is only reserved (malloc's arenas) does not count, what may be written to does."""
    if not most or not sys.platform.startswith("linux"):
        return False
    with contextlib.suppress(AttributeError):
        # Only glibc has it, and only glibc has arenas.
        ctypes.CDLL(None).mallopt(_ARENAS, 4)
    _bound(resource.RLIMIT_DATA, most)
    return True


def _end_first() -> None:
    """Where the machine has no memory left, this process is ended rather than another."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("800")


def _threads() -> int:
    with contextlib.suppress(OSError):
        return sum(1 for _ in Path("/proc/self/task").iterdir())
    return threading.active_count()
