"""Open organizations, each with its own folder, engine, pools and streams."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import threading
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlshell.errors import reason
from sqlshell.interface import sqlstate
from sqlshell.runtime.scratch import scratch
from sqlshell.service.catalog import Catalog, missing
from sqlshell.service.engines.engine import FOLDERS, RENDERING, RESULTS, SPOOL, Engine, Limits, Relation
from sqlshell.service.failure import Failure
from sqlshell.service.organizations.pools import DEFAULT, Pool, Size, size_of
from sqlshell.service.organizations.streams import Streams
from sqlshell.service.secrets.vault import FILE, Vault
from sqlshell.service.settings import Settings

if TYPE_CHECKING:
    from sqlshell.service.organizations.copies import Copies
    from sqlshell.service.results.shared_files import SharedFiles

DATABASE = "local"
"""The initial database of every organization."""

OTHERS = 14
"""The number of threads of an organization besides those for statements of its engine."""

QUEUE = 1 << 30

MIN_MEMORY = 256 << 20
"""The minimum memory of an organization in bytes."""

_CGROUP = Path("/sys/fs/cgroup/memory.max")

NOT_GRANTED = "its directory is not allowed; allow it with sqlshell serve --store-root DIR"


class Organization:
    """An open organization of `owner`.

    `copies` are the copies of its stores, or None if its engine may read any file. `protections` says how its engine is
    isolated from the rest of the machine, "" if it is not. `broken` are the databases and stores (kind and name) that
    could not be opened, with the reasons.
    """

    def __init__(
        self,
        organization_id: str,
        engine: Engine,
        owner: Organizations,
        running: int,
        copies: Copies | None = None,
        protections: str = "",
    ):
        self.id = organization_id
        self.engine = engine
        self.catalog, self.vault = owner.catalog, owner.vault
        self.copies = copies
        self.protections = protections
        self.broken: dict[tuple[str, str], str] = {}
        self.places = Pool("", Size(running, QUEUE))
        """Admits statements of the engine in turn by token; `running` run at once."""
        self.changing = threading.RLock()
        """Held while a database or store is created or dropped."""
        self._changing_streams = threading.RLock()
        self.store_names: set[str] = {item.name for item in self.catalog.objects(organization_id, "store")}
        self.owner = owner
        self._threads = ThreadPoolExecutor(running + OTHERS, thread_name_prefix="organization")
        self._pools: dict[str, Pool] = {}
        relations = [json.loads(item.name) for item in self.catalog.objects(organization_id, "stream")]
        known = ((database, schema, name) for database, schema, name in relations)
        self.streams = Streams(engine, known, self.run, owner.settings.seconds)

    @property
    def name(self) -> str:
        return self.catalog.organization_name(self.id)

    def why_no_database(self) -> str:
        """Return why the oldest database, which is the initial one of sessions, cannot be opened; "" if it can."""
        if not self.broken:
            return ""
        databases = self.catalog.objects(self.id, "database")
        first = min(databases, key=lambda item: item.created, default=None)
        if first is None or not (reason := self.broken.get(("database", first.name))):
            return ""
        remedy = "select another with USE DATABASE (LIST DATABASES shows all)"
        return f'cannot open the default database "{first.name}": {reason}; {remedy}'

    @property
    def is_confined(self) -> bool:
        """Whether its engine can access only its own folder."""
        return self.copies is not None

    def folder(self, name: str) -> Path:
        """Create a subfolder of the organization's folder, mode 0700."""
        path = self.owner.folder(self.id) / name
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path

    async def pool(self, name: str) -> Pool:
        """Return the pool of this name. Raises Failure if it does not exist or is stopped."""
        detail = await self.catalog.run_async(lambda: self.catalog.find(self.id, "compute_pool", name))
        if detail is None and name != DEFAULT:
            raise missing("compute_pool", name)
        if detail is not None and not detail.detail["running"]:
            raise Failure(
                sqlstate.COMPUTE_POOL_NOT_READY, f'compute pool "{name}" is stopped; run START COMPUTE_POOL {name}'
            )
        size = size_of(detail.detail) if detail else Size()
        pool = self._pools.get(name)
        if pool is None:
            pool = self._pools[name] = Pool(name, size)
        elif pool.size != size:
            pool.resize(size)
        return pool

    async def refresh_pools(self) -> None:
        """Apply changes of pools to the statements that run and wait in them."""
        for name, pool in list(self._pools.items()):
            if pool.is_used:
                # A pool that was stopped or dropped admits no new statements, only those that it has.
                with contextlib.suppress(Failure):
                    await self.pool(name)

    def add_stream(self, relation: Relation, detail: Mapping[str, Any]) -> None:
        """Record a new stream, in place of one of its name whose relation was replaced."""
        with self._changing_streams:
            self.check_streams()
            self.catalog.add(self.id, "stream", json.dumps(relation), detail)
            self.streams.add(relation)

    def check_streams(self) -> None:
        """Remove streams whose relation was dropped or replaced."""
        with self._changing_streams:
            for relation in self.streams.forget_dropped():
                self.catalog.forget(self.id, "stream", json.dumps(relation))

    async def run(self, work: Callable[..., Any], *given: Any) -> Any:
        """Do work in a thread of the organization, which is not shared with others; a statement of the engine holds a
        slot of `places` meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *given)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        self.engine.close()


class Organizations:
    """All organizations, opened on first use.

    `single` is the engine of the only organization, if there can be no other. `embedded` says that the service is in
    the process of its user. `system` are the columns of the service's own relations.
    """

    def __init__(
        self,
        catalog: Catalog,
        settings: Settings,
        data: Path | None,
        single: Engine | None = None,
        *,
        embedded: bool = False,
        shared: SharedFiles | None = None,
        system: Callable[[], Mapping[str, Sequence[tuple[str, str]]]] = dict,
    ) -> None:
        self.catalog = catalog
        self._system = system
        self.shared = shared
        """The place of results that several processes of the service share."""
        self.settings = settings
        self._data = data.absolute() if data is not None else None
        self._temporary: Path | None = None
        self._single = single
        self.is_embedded = embedded
        """Whether the service is in the process of its user, who has all rights."""
        self._open: dict[str, Organization] = {}
        self.broken: dict[str, str] = {}
        """Organizations that could not be opened at the last attempt, with the reasons."""
        self.vault = Vault(self._data / FILE if self._data is not None else None, catalog.holds_sealed)
        self._opening: dict[str, threading.Lock] = {}

    @property
    def server(self) -> Engine | None:
        """The engine of the only organization, if its SQL is its own rather than the interface's."""
        return self._single if self._single is not None and not self._single.traits.interface_sql else None

    def default(self) -> str:
        return self.catalog.organizations()[0][0]

    def get(self, organization_id: str) -> Organization:
        """Open an organization, if necessary. Raises Failure if it does not exist or cannot be opened."""
        organization = self._open.get(organization_id)
        if organization is not None:
            return organization
        # A lock for each organization, so that others do not wait.
        with self._opening.setdefault(organization_id, threading.Lock()):
            if organization_id not in self._open:
                if not self.catalog.organization_name(organization_id):
                    raise missing("organization", organization_id)
                try:
                    self._open[organization_id] = self._opened(organization_id)
                except (Failure, OSError) as error:
                    why = reason(error) if isinstance(error, OSError) else error.message
                    self.broken[organization_id] = str(why or error).partition("\n")[0]
                    name = self.catalog.organization_name(organization_id)
                    message = f'cannot open organization "{name}": {self.broken[organization_id]}'
                    raise Failure("58030", message) from error
                self.broken.pop(organization_id, None)
            return self._open[organization_id]

    def find_open(self, organization_id: str) -> Organization | None:
        """Return the organization if it is already open."""
        return self._open.get(organization_id)

    def first_usable(self) -> Organization:
        """Return the oldest organization that can be opened. Raises Failure if none can."""
        failures = []
        for organization_id, _ in self.catalog.organizations():
            try:
                return self.get(organization_id)
            except Failure as failure:
                failures.append(failure)
        raise failures[0]

    def opened(self) -> list[Organization]:
        return list(self._open.values())

    def add(self, name: str) -> str:
        if self._single is not None:
            message = (
                "the embedded service has only one organization; use sqlshell serve for more"
                if self.is_embedded
                else f"the engine {self._single.name} serves one organization"
            )
            raise Failure(sqlstate.UNSUPPORTED, message)
        return self.catalog.add_organization(name)

    def check_not_last(self) -> None:
        """Raise Failure if only one organization is left."""
        if len(self.catalog.organizations()) == 1:
            raise Failure(sqlstate.DEPENDENTS, "cannot drop the last organization")

    def drop(self, organization_id: str) -> None:
        """Drop an organization with everything that it owns."""
        with self._opening.setdefault(organization_id, threading.Lock()):
            # Tokens are dropped first, so that nothing starts in a closed organization.
            self.catalog.drop_organization(organization_id)
            opened = self._open.pop(organization_id, None)
            if opened is not None:
                opened.close()
            self.broken.pop(organization_id, None)
            _remove(self._base() / "organizations" / organization_id)

    def folder(self, organization_id: str) -> Path:
        """Return the folder of an organization, created if missing."""
        folder = self._base() / "organizations" / organization_id
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def result_file(self, organization_id: str, statement_id: str) -> Path:
        """Return the file for the result of a statement; it has no extension that DuckDB recognizes.

        The result of a statement that belongs to no organization is stored where no engine has access.
        """
        folder = (self.folder(organization_id) if organization_id else self._base()) / RESULTS
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder / statement_id

    def uploads(self) -> Path:
        """Return the folder for the files of requests until their statements have finished."""
        folder = self._base() / "uploads"
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def remove_leftovers(self, known: Callable[[str], set[str]]) -> None:
        """Remove what a killed service left behind: uploads, and results of statements that are not `known`."""
        if self._data is None:
            return
        for file in self.uploads().iterdir():
            file.unlink(missing_ok=True)
        places = {key: self._data / "organizations" / key / "results" for key, _ in self.catalog.organizations()}
        for organization_id, results in (places | {"": self._data / "results"}).items():
            with contextlib.suppress(OSError):
                # An unreadable folder is reported when its organization is opened.
                ids = known(organization_id) if results.is_dir() else set()
                for file in results.iterdir() if results.is_dir() else ():
                    if file.name not in ids:
                        file.unlink(missing_ok=True)

    def why_no_store(self, folder: Path) -> str:
        """Return why a folder, a path without links, cannot be a store; "" if it can.

        It must not overlap with the service's own folder. The embedded service allows any folder.
        """
        if self.is_embedded:
            return ""
        own = (self._data or self._temporary or Path("/nowhere/at/all")).resolve()
        overlaps = folder == own or own in folder.parents or folder in own.parents
        if self.settings.store_roots:
            granted = self._beneath_root(folder) and not overlaps
            return "" if granted else "allow it with sqlshell serve --store-root DIR"
        return "it overlaps with the service's own directory" if overlaps else ""

    @property
    def registry_hosts(self) -> Collection[str] | None:
        """The hosts where schema registries may be, besides loopback; None allows all, as in the embedded service."""
        return None if self.is_embedded else self.settings.registry_hosts

    def allows_writing(self, folder: Path) -> bool:
        """Return whether a store in this folder may be writable: in a --store-root, or anywhere in the embedded
        service.
        """
        return self.is_embedded or (not self.why_no_store(folder) and self._beneath_root(folder))

    def _beneath_root(self, folder: Path) -> bool:
        return any(root == folder or root in folder.parents for root in self.settings.store_roots)

    def close(self) -> None:
        for organization in self._open.values():
            organization.close()
        if self.shared is not None:
            self.shared.close()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _base(self) -> Path:
        """The service's own folder."""
        if self._data is None and self._temporary is None:
            self._temporary = scratch().folder("service")
        base = self._data or self._temporary
        assert base is not None
        return base

    def _limits(self) -> Limits:
        """The resource limits of an organization's engine."""
        settings = self.settings
        return Limits(
            threads=settings.threads,
            memory=settings.memory or f"{memory_share(len(self.catalog.organizations())) >> 20}MiB",
            spill=settings.spill_size,
            results=settings.quota,
        )

    def _opened(self, organization_id: str) -> Organization:
        if self._single is not None:
            return Organization(organization_id, self._single, self, self.settings.running)
        from sqlshell.service.engines.process.frames import EngineConfig
        from sqlshell.service.engines.process.remote import RemoteEngine
        from sqlshell.service.organizations.copies import Copies

        base = self.folder(organization_id)
        first = f"{uuid.uuid4()}.data"
        broken: dict[tuple[str, str], str] = {}
        organization: Organization | None = None
        shutil.rmtree(base / "copies", ignore_errors=True)

        def config() -> EngineConfig:
            nonlocal broken
            for name in ("temporary", SPOOL):
                shutil.rmtree(base / name, ignore_errors=True)
            for name in (*FOLDERS, "temporary", RESULTS, RENDERING):
                (base / name).mkdir(mode=0o700, exist_ok=True)
            known, broken = self._databases(organization_id, base / "databases")
            if not known and not broken and organization is None:
                known[DATABASE] = base / "databases" / first
            return EngineConfig(base, known, self._limits(), self._system())

        def all_broken() -> dict[tuple[str, str], str]:
            return broken | {("database", name): reason for name, reason in engine.opened.broken.items()}

        def renewed() -> None:
            if organization is not None:
                organization.broken = all_broken()
                organization.streams.look_again()

        engine = RemoteEngine(config, renewed)
        settings = self.settings
        copies = Copies(engine, base / "copies", Limits(settings.threads, settings.memory), settings.quota)
        if (base / "databases" / first).exists() and not all_broken():
            # Recorded only once it exists, because a recorded database without a file counts as broken.
            self.catalog.add(organization_id, "database", DATABASE, {"file": first})
        organization = Organization(organization_id, engine, self, settings.running, copies, engine.opened.protections)
        organization.broken = all_broken()
        # A killed service may not have recorded that a stream was dropped.
        organization.check_streams()
        return organization

    def _databases(self, organization_id: str, folder: Path) -> tuple[dict[str, Path], dict[tuple[str, str], str]]:
        """The files of an organization's databases by name, the oldest first; and the reasons for the databases and
        stores that cannot be opened."""
        from sqlshell.service.engines.process.remote import RemoteEngine

        files: dict[str, Path] = {}
        broken: dict[tuple[str, str], str] = {}
        taken: set[str] = set()
        kinds = ("database", "store")
        items = [item for kind in kinds for item in self.catalog.objects(organization_id, kind)]
        for item in sorted(items, key=lambda item: (kinds.index(item.kind), item.created)):
            low, reason = item.name.lower(), ""
            if low in RemoteEngine.traits.reserved_names:
                reason = "its name is reserved"
            elif low in taken:
                reason = "its name differs from another only in case"
            taken.add(low)
            if item.kind == "database" and not reason:
                files[item.name] = folder / item.detail["file"]
                with contextlib.suppress(OSError):
                    reason = "" if files[item.name].stat().st_size else "its file is empty"
                if not files[item.name].exists():
                    reason = "its file does not exist"
            if item.kind == "store" and not reason and self.why_no_store(Path(item.detail["uri"])):
                reason = NOT_GRANTED
            if reason:
                files.pop(item.name, None)
                broken[item.kind, item.name] = reason
        return files, broken


def memory_share(organizations: int) -> int:
    """Return the memory in bytes of each organization's engine: its part of 80 % of the machine's, but 20 % at most."""
    return max(MIN_MEMORY, machine_memory() * 4 // 5 // max(4, organizations))


def machine_memory() -> int:
    """Return the memory of this machine, or of its container, in bytes."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError):
        memory = min(memory, int(_CGROUP.read_text()))
    return memory


def _remove(folder: Path) -> None:
    """Remove a file or folder."""
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.suppress(OSError):
        folder.unlink(missing_ok=True)
