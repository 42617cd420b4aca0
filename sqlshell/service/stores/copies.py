"""Copies of stores: database files that a process of their own writes and the engine attaches read-only.

The service itself only looks at names, sizes and times of a store's files; what is in them is read by the converter, so
that neither the service nor an organization's engine ever opens a file that somebody else wrote.
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
from sqlshell.service.engines.converter.conversion import COPY, Order, Said, Stamp
from sqlshell.service.engines.engine import Engine, Failure, Limits
from sqlshell.service.engines.process import launching
from sqlshell.service.engines.sandbox import sandbox
from sqlshell.sql.identifiers import literal

SECONDS: Final = 600.0
"""How long a converter has."""

AGAIN: Final = 3
"""How often a converter is begun again without the file at which it ended."""

MEMORY: Final = 1 << 30
"""Bytes of a converter's DuckDB, where the engine's may have as much."""

THREADS: Final = 4
PLAIN: Final = (".csv", ".tsv", ".json", ".jsonl", ".ndjson")
SMALL: Final = 200
SMALL_SIZE: Final = 16 << 20
"""Files of the PLAIN forms, and bytes of them, of a store that is copied whole when one of it is first asked for."""

LEAST: Final = 4 << 20
"""Bytes that a copy may have whatever the quota is."""

WAIT_SECONDS: Final = 0.1


class Waiting(Protocol):
    """Who waits for a copy. `helper` is called to end what is done for it, from another thread, any number of times."""

    helper: Callable[[], None] | None


class _Copy(Struct):
    """The copy of one store: its file, what is in it, and what could not be copied and why."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    path: Path | None = None
    held: dict[str, Stamp] = {}
    failed: dict[str, tuple[Stamp, str]] = {}


class Copies:
    """Those of one organization. `folder` holds them; a copy is `most` bytes at most. For any thread."""

    def __init__(self, engine: Engine, folder: Path, limits: Limits, most: int) -> None:
        self._engine = engine
        self._folder = folder
        self._limits = limits
        self._most = most
        self._lock = threading.Lock()
        self._copies: dict[str, _Copy] = {}

    def bring(
        self, store: str, root: int, known: Mapping[str, Stamp], wanted: Collection[str], waiting: Waiting | None
    ) -> dict[str, str]:
        """Have the `wanted` entities of a store in the database of its name, as they are now; why some cannot be, by
        their names. `root` is the store's folder, `known` are the stamps of all its entities.

        Raises Failure.
        """
        with self._lock:
            copy = self._copies.setdefault(store, _Copy())
        with _turn(copy.lock, waiting):
            asked = [
                name
                for name in wanted
                if copy.held.get(name) != known[name] and copy.failed.get(name, (None, ""))[0] != known[name]
            ]
            gone = copy.held.keys() - known.keys()
            if asked or gone or copy.path is None:
                self._renew(store, copy, root, known, asked, waiting)
            elif not self._attached(store):
                # The engine was restarted.
                self._engine.mount(store, copy.path)
            return {
                name: copy.failed[name][1] for name in wanted if copy.failed.get(name, (None, ""))[0] == known[name]
            }

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

    def mount_again(self) -> None:
        """The engine was restarted and has none of the copies.

        Takes no copy's lock: who has one may wait for the engine.
        """
        with self._lock:
            found = list(self._copies.items())
        for store, copy in found:
            if copy.path is not None:
                # Who needs it next makes it anew.
                with contextlib.suppress(Failure):
                    self._engine.mount(store, copy.path)

    def _attached(self, store: str) -> bool:
        return bool(
            self._engine.read_listing(f"SELECT 1 FROM duckdb_databases() WHERE database_name = {literal(store)}")
        )

    def _renew(
        self,
        store: str,
        copy: _Copy,
        root: int,
        known: Mapping[str, Stamp],
        asked: Collection[str],
        waiting: Waiting | None,
    ) -> None:
        """Make another copy, with the entities that are `asked` for and those of the one before that did not change."""
        keep = [name for name, stamp in copy.held.items() if known.get(name) == stamp and name not in asked]
        failed = {name: state for name, state in copy.failed.items() if name in known and name not in asked}
        left = [*asked, *_others(known, {*keep, *failed, *asked})]
        for _ in range(AGAIN):
            into = self._folder / uuid.uuid4().hex
            into.mkdir(mode=0o700)
            try:
                held, refused, ended_at = self._converted(root, into, copy, keep, left, waiting)
                for name, reason in refused.items():
                    failed[name] = known[name], reason
                if ended_at is None:
                    self._engine.mount(store, into / COPY)
                    before, copy.path = copy.path, into / COPY
                    copy.held = {name: copy.held[name] for name in keep} | held
                    copy.failed = failed
                    if before is not None:
                        shutil.rmtree(before.parent, ignore_errors=True)
                    return
            except BaseException:
                shutil.rmtree(into, ignore_errors=True)
                raise
            shutil.rmtree(into, ignore_errors=True)
            left = [name for name in left if name not in failed]
        raise Failure(sqlstate.STORE_NOT_READY, f"store {store!r} cannot be read: {ended_at}")

    def _converted(
        self, root: int, into: Path, before: _Copy, keep: list[str], asked: list[str], waiting: Waiting | None
    ) -> tuple[dict[str, Stamp], dict[str, str], str | None]:
        """Run a converter: what it copied, what it could not and why, and, where it ended too early, at what."""
        threads = min(self._limits.threads or os.cpu_count() or 1, THREADS)
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        memory = min(sandbox.size(self._limits.memory, machine) or MEMORY, MEMORY)
        order = Order(
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
        ended, late = threading.Event(), threading.Event()

        def end(why: threading.Event = ended) -> None:
            why.set()
            process.kill()

        timer = threading.Timer(SECONDS, end, (late,))
        timer.start()
        if waiting is not None:
            waiting.helper = end
        try:
            output, _ = process.communicate(msgspec.json.encode(order))
        finally:
            if waiting is not None:
                waiting.helper = None
            timer.cancel()
            process.kill()
            process.wait()
        if ended.is_set():
            raise Failure(sqlstate.CANCELLED, "the statement was ended while files of a store were copied for it")
        held: dict[str, Stamp] = {}
        failed: dict[str, str] = {}
        at = ""
        for line in output.splitlines():
            with contextlib.suppress(msgspec.DecodeError):
                said = msgspec.json.decode(line, type=Said)
                at = said.name
                if said.stamp is not None:
                    held[said.name] = said.stamp
                elif said.reason:
                    failed[said.name] = said.reason
        if process.returncode == 0:
            return held, failed, None
        if at and at not in failed and at not in held:
            late_said = f"it was not copied within {SECONDS:.0f} seconds"
            failed[at] = late_said if late.is_set() else "the process that copies it ended: it may need too much memory"
        return held, failed, failed.get(at) or "the process that copies its files ended"


def _others(known: Mapping[str, Stamp], done: Collection[str]) -> list[str]:
    """What is copied although nobody asked: all of a small store, but for what may be large when it is unpacked."""
    plain = [name for name in known if name.lower().endswith(PLAIN)]
    if len(plain) > SMALL or sum(known[name][1] for name in plain) > SMALL_SIZE:
        return []
    return [name for name in plain if name not in done]


@contextlib.contextmanager
def _turn(lock: threading.Lock, waiting: Waiting | None) -> Iterator[None]:
    """Hold a lock; who waits for it can be ended."""
    ended = threading.Event()
    if waiting is not None:
        waiting.helper = ended.set
    until = time.monotonic() + 2 * SECONDS
    while not lock.acquire(timeout=WAIT_SECONDS):
        if ended.is_set() or time.monotonic() > until:
            raise Failure(sqlstate.CANCELLED, "the statement was ended while it waited for the copy of a store")
    try:
        if waiting is not None:
            waiting.helper = None
        yield
    finally:
        lock.release()
