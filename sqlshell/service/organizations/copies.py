"""Copies of stores: database files that a separate process writes and the engine attaches read-only.

The service itself looks only at names, sizes and times of a store's files. The converter reads their contents, so that
neither the service nor an organization's engine opens files that somebody else wrote.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Final, Protocol

import msgspec
from msgspec import Struct, field

from sqlshell.interface import sqlstate
from sqlshell.service.engines.converter.conversion import COPY, CopyReport, CopyRequest, Stamp
from sqlshell.service.engines.engine import CatalogQuery, Limits, StoreEngine
from sqlshell.service.engines.process import launching
from sqlshell.service.engines.sandbox import sandbox
from sqlshell.service.failure import Failure

SECONDS: Final = 600.0
"""The maximum time for a converter."""

AGAIN: Final = 3
"""How often a converter is started again without the file at which it crashed."""

MEMORY: Final = 1 << 30
"""The maximum memory of a converter's DuckDB, in bytes."""

THREADS: Final = 4
LEAST: Final = 4 << 20
"""The size that a copy may always have, whatever the quota is, in bytes."""

WAIT_SECONDS: Final = 0.1


class CopyWaiter(Protocol):
    """A statement that waits for a copy. `cancel_copy` cancels it; any thread may call it, any number of times."""

    cancel_copy: Callable[[], None] | None


class _Copy(Struct):
    """The copy of one store: its file, and for each entity the version that was read and the reason why it could not be
    copied, "" for one that is in the copy."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    path: Path | None = None
    read: dict[str, tuple[Stamp, str]] = {}


class Copies:
    """The copies of one organization, in `folder`; a copy has at most `most` bytes. For any thread."""

    def __init__(self, engine: StoreEngine, folder: Path, limits: Limits, most: int) -> None:
        self._engine = engine
        self._folder = folder
        self._limits = limits
        self._most = most
        self._lock = threading.Lock()
        self._copies: dict[str, _Copy] = {}

    def refresh_copy(
        self, store: str, root: int, known: Mapping[str, Stamp], wanted: Collection[str], waiting: CopyWaiter | None
    ) -> dict[str, str]:
        """Copy the current contents of the `wanted` entities into the store's database.

        Returns the reasons for entities that cannot be copied, by name. `root` is a descriptor of the store's folder,
        `known` are the stamps of all its entities. Raises Failure.
        """
        with self._lock:
            copy = self._copies.setdefault(store, _Copy())
        with _turn(copy.lock, waiting):
            asked = [name for name in wanted if name not in copy.read or copy.read[name][0] != known[name]]
            gone = any(name not in known for name, (_, reason) in copy.read.items() if not reason)
            if asked or gone or copy.path is None:
                self._renew(store, copy, root, known, asked, waiting)
            elif not self._attached(store):
                # The engine was restarted.
                self._engine.mount(store, copy.path)
            return {name: copy.read[name][1] for name in wanted if copy.read[name][1]}

    def drop(self, store: str) -> None:
        """Detach a store's database and remove its copy. Raises Failure."""
        with self._lock:
            copy = self._copies.pop(store, None)
        if copy is not None:
            with copy.lock:
                if self._attached(store):
                    self._engine.detach(store)
                if copy.path is not None:
                    shutil.rmtree(copy.path.parent, ignore_errors=True)

    def _attached(self, store: str) -> bool:
        return any(row[0] == store for row in self._engine.catalog(CatalogQuery("databases")))

    def _renew(
        self,
        store: str,
        copy: _Copy,
        root: int,
        known: Mapping[str, Stamp],
        asked: Collection[str],
        waiting: CopyWaiter | None,
    ) -> None:
        """Create a new copy with the entities `asked` for and the unchanged entities of the old copy."""
        read = {
            name: state
            for name, state in copy.read.items()
            if name not in asked and name in known and (state[1] or state[0] == known[name])
        }
        keep = [name for name, (_, reason) in read.items() if not reason]
        left = list(asked)
        for _ in range(AGAIN):
            into = self._folder / uuid.uuid4().hex
            into.mkdir(mode=0o700)
            try:
                reports, ended_at = self._converted(root, into, copy, keep, left, waiting)
                read |= {name: (stamp or known[name], reason) for name, (stamp, reason) in reports.items() if reason}
                if ended_at is None:
                    read |= {name: (stamp, "") for name, (stamp, reason) in reports.items() if stamp and not reason}
                    self._engine.mount(store, into / COPY)
                    before, copy.path, copy.read = copy.path, into / COPY, read
                    if before is not None:
                        shutil.rmtree(before.parent, ignore_errors=True)
                    return
            except BaseException:
                shutil.rmtree(into, ignore_errors=True)
                raise
            shutil.rmtree(into, ignore_errors=True)
            left = [name for name in left if name not in read]
        raise Failure(sqlstate.STORE_NOT_READY, f"cannot read store {store!r}: {ended_at}")

    def _converted(
        self, root: int, into: Path, before: _Copy, keep: list[str], asked: list[str], waiting: CopyWaiter | None
    ) -> tuple[dict[str, tuple[Stamp | None, str]], str | None]:
        """Run a converter: for each entity its version, if it was copied, and the reason, if it was not; and why the
        process ended too early, None if it did not."""
        threads = min(self._limits.threads or os.cpu_count() or 1, THREADS)
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        memory = min(sandbox.size(self._limits.memory, machine) or MEMORY, MEMORY)
        order = CopyRequest(
            root,
            str(into),
            asked,
            str(before.path) if before.path is not None and keep else "",
            keep,
            threads,
            memory,
            min(max(self._most, LEAST), sandbox.file_bound(into)),
            int(SECONDS) + 10,
            os.getpid(),
        )
        process = launching.begin(
            "sqlshell.service.engines.converter.converter",
            descriptors=[root],
            temporary=into,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        canceled, why = threading.Event(), "the process that copies it crashed, possibly out of memory"

        def cancel() -> None:
            canceled.set()
            process.kill()

        if waiting is not None:
            waiting.cancel_copy = cancel
        try:
            output, _ = process.communicate(msgspec.json.encode(order), SECONDS)
        except subprocess.TimeoutExpired:
            why = f"copying took longer than {SECONDS:.0f} seconds"
            process.kill()
            output, _ = process.communicate()
        finally:
            if waiting is not None:
                waiting.cancel_copy = None
            process.kill()
            process.wait()
        if canceled.is_set():
            raise Failure(sqlstate.CANCELED, "the statement was canceled while files of a store were copied")
        reports: dict[str, tuple[Stamp | None, str]] = {}
        for line in output.splitlines():
            with contextlib.suppress(msgspec.DecodeError):
                report = msgspec.json.decode(line, type=CopyReport)
                reports[report.name] = report.stamp, report.reason
        if process.returncode == 0:
            return reports, None
        begun = next((name for name, report in reports.items() if report == (None, "")), "")
        if begun:
            reports[begun] = None, why
        at = next(reversed(reports), "")
        return reports, reports[at][1] if at and reports[at][1] else "the process that copies its files crashed"


@contextlib.contextmanager
def _turn(lock: threading.Lock, waiting: CopyWaiter | None) -> Iterator[None]:
    """Hold a lock; a statement that waits for it can be canceled."""
    ended = threading.Event()
    if waiting is not None:
        waiting.cancel_copy = ended.set
    until = time.monotonic() + 2 * SECONDS
    while not lock.acquire(timeout=WAIT_SECONDS):
        if ended.is_set() or time.monotonic() > until:
            raise Failure(sqlstate.CANCELED, "the statement was canceled while it waited for the copy of a store")
    try:
        if waiting is not None:
            waiting.cancel_copy = None
        yield
    finally:
        lock.release()
