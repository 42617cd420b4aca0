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
from typing import Final

import msgspec
from msgspec import Struct, field

from sqlshell.interface import sqlstate
from sqlshell.service.engines.engine import CatalogQuery, Limits, LocalEngine
from sqlshell.service.engines.process.frames import COPY, CopyReport, CopyRequest
from sqlshell.service.engines.process.process import launch
from sqlshell.service.engines.sandbox import sandbox
from sqlshell.service.engines.sandbox.beneath import Stamp
from sqlshell.service.failure import Failure

SECONDS: Final = 600.0
"""The maximum time for a converter."""

MEMORY: Final = 1 << 30
"""The maximum memory of a converter's DuckDB, in bytes."""

THREADS: Final = 4
LEAST: Final = 4 << 20
"""The size that a copy may always have, whatever the quota is, in bytes."""

WAIT_SECONDS: Final = 0.1
"""How often a statement that waits for a copy looks whether it was canceled."""

IsCanceled = Callable[[], bool]
"""Whether the statement that waits for a copy was canceled."""


class _Copy(Struct):
    """The copy of one store: its file, and for each entity the version that was read and the reason why it could not be
    copied, "" for one that is in the copy."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    path: Path | None = None
    read: dict[str, tuple[Stamp, str]] = {}


class Copies:
    """The copies of one organization, in `folder`; a copy has at most `most` bytes. For any thread."""

    def __init__(self, engine: LocalEngine, folder: Path, limits: Limits, most: int) -> None:
        self._engine = engine
        self._folder = folder
        self._limits = limits
        self._most = most
        self._copies: dict[str, _Copy] = {}

    def refresh_copy(
        self, store: str, root: int, known: Mapping[str, Stamp], wanted: Collection[str], is_canceled: IsCanceled
    ) -> dict[str, str]:
        """Copy the current contents of the `wanted` entities into the store's database.

        Returns the reasons for entities that cannot be copied, by name. `root` is a descriptor of the store's folder,
        `known` are the stamps of all its entities. Raises Failure.
        """
        copy = self._copies.setdefault(store, _Copy())
        with _turn(copy.lock, is_canceled):
            asked = [name for name in wanted if name not in copy.read or copy.read[name][0] != known[name]]
            gone = any(name not in known for name, (_, reason) in copy.read.items() if not reason)
            if asked or gone or copy.path is None:
                self._renew(store, copy, root, known, asked, is_canceled)
            elif not self._attached(store):
                # The engine was restarted.
                self._engine.mount(store, copy.path)
            return {name: copy.read[name][1] for name in wanted if copy.read[name][1]}

    def drop(self, store: str) -> None:
        """Detach a store's database and remove its copy. Raises Failure."""
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
        is_canceled: IsCanceled,
    ) -> None:
        """Create a new copy with the entities `asked` for and the unchanged entities of the old copy. Raises Failure,
        also if the converter crashes: the file at which it did is not read again before it has changed."""
        read = {
            name: state
            for name, state in copy.read.items()
            if name not in asked and name in known and (state[1] or state[0] == known[name])
        }
        keep = [name for name, (_, reason) in read.items() if not reason]
        into = self._folder / uuid.uuid4().hex
        into.mkdir(mode=0o700)
        old = copy.path
        try:
            order = self._order(root, into, asked, old if keep else None, keep)
            reports, crash = _converted(order, is_canceled)
            read |= {name: (item.stamp or known[name], item.reason) for name, item in reports.items()}
            if crash:
                at = next(reversed(reports), "")
                reason = (reports[at].reason if at else "") or crash
                if at:
                    copy.read = {**copy.read, at: (known[at], reason)}
                what = f'entity "{store}.{at}"' if at else f'store "{store}"'
                raise Failure(sqlstate.STORE_NOT_READY, f"cannot read {what}: {reason}")
            self._engine.mount(store, into / COPY)
        except BaseException:
            shutil.rmtree(into, ignore_errors=True)
            raise
        copy.path, copy.read = into / COPY, read
        if old is not None:
            shutil.rmtree(old.parent, ignore_errors=True)

    def _order(
        self, root: int, into: Path, asked: Collection[str], before: Path | None, keep: list[str]
    ) -> CopyRequest:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return CopyRequest(
            root,
            str(into),
            list(asked),
            str(before or ""),
            keep,
            threads=min(self._limits.threads or os.cpu_count() or 1, THREADS),
            memory=min(sandbox.size(self._limits.memory, machine) or MEMORY, MEMORY),
            file_size=min(max(self._most, LEAST), sandbox.file_bound(into)),
            seconds=int(SECONDS) + 10,
            parent=os.getpid(),
        )


def _converted(order: CopyRequest, is_canceled: IsCanceled) -> tuple[dict[str, CopyReport], str]:
    """Run a converter: its last report of each entity, and why it ended too early, "" if it did not."""
    process = launch(
        "sqlshell.service.engines.converter",
        descriptors=[order.root],
        temporary=Path(order.into),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    until = time.monotonic() + SECONDS
    given: bytes | None = msgspec.json.encode(order)
    try:
        while True:
            try:
                output, _ = process.communicate(given, WAIT_SECONDS)
                break
            except subprocess.TimeoutExpired:
                given = None
                _check_waiting(is_canceled)
                if time.monotonic() > until:
                    process.kill()
    finally:
        process.kill()
        process.wait()
    reports: dict[str, CopyReport] = {}
    for line in output.splitlines():
        with contextlib.suppress(msgspec.DecodeError):
            report = msgspec.json.decode(line, type=CopyReport)
            # The last one is that of the entity at which the process ended.
            reports.pop(report.name, None)
            reports[report.name] = report
    if process.returncode == 0:
        return reports, ""
    if time.monotonic() > until:
        return reports, f"copying took longer than {SECONDS:.0f} s"
    return reports, "the process that copies it crashed, possibly out of memory"


@contextlib.contextmanager
def _turn(lock: threading.Lock, is_canceled: IsCanceled) -> Iterator[None]:
    """Hold a lock; a statement that waits for it can be canceled."""
    while not lock.acquire(timeout=WAIT_SECONDS):
        _check_waiting(is_canceled)
    try:
        yield
    finally:
        lock.release()


def _check_waiting(is_canceled: IsCanceled) -> None:
    if is_canceled():
        raise Failure(sqlstate.CANCELED, "the statement was canceled while files of a store were copied")
