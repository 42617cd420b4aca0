"""Organizations while they are open: each with a folder, an engine, pools and streams of its own."""

from __future__ import annotations

import contextlib
import json
import shutil
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

from sqlshell.errors import ShellError
from sqlshell.interface import sqlstate
from sqlshell.scratch import scratch
from sqlshell.service.catalog import Catalog, missing
from sqlshell.service.engines.duckdb import DuckdbEngine
from sqlshell.service.engines.engine import Engine, Failure, Relation
from sqlshell.service.options import Options
from sqlshell.service.pools import DEFAULT, Pool, Size, size_of
from sqlshell.service.streams import Streams
from sqlshell.service.workers import Workers

DATABASE = "local"
"""The database that every organization begins with."""


class Organization:
    """One organization. `locked` says that its engine sees nothing but its own folder; `folder` makes that folder, and
    `running` is how many of its statements run at once."""

    def __init__(
        self,
        organization_id: str,
        engine: Engine,
        catalog: Catalog,
        folder: Callable[[], Path],
        *,
        locked: bool,
        running: int,
    ):
        self.id = organization_id
        self.workers = Workers(running)
        self.engine = engine
        self.catalog = catalog
        self.locked = locked
        self.store_names: set[str] = {item.name for item in catalog.objects(organization_id, "store")}
        self._folder = folder
        self._pools: dict[str, Pool] = {}
        self.streams = Streams(engine, self._known_streams(), self.workers)
        self._tables = {relation: engine.identity(relation) for relation in self.streams.known}

    @property
    def name(self) -> str:
        return self.catalog.organization_name(self.id)

    def folder(self, name: str) -> Path:
        """A folder of the organization's own, mode 0700."""
        made = self._folder() / name
        made.mkdir(mode=0o700, parents=True, exist_ok=True)
        return made

    def pool(self, name: str) -> Pool:
        """The admission of a pool. Raises Failure for one that does not exist or is stopped."""
        detail = self.catalog.find(self.id, "compute_pool", name)
        if detail is None and name != DEFAULT:
            raise missing("compute_pool", name)
        if detail is not None and not detail.detail["running"]:
            raise Failure(
                sqlstate.COMPUTE_POOL_NOT_READY, f"compute pool {name!r} is stopped: START COMPUTE_POOL {name}"
            )
        size = size_of(detail.detail) if detail else Size()
        found = self._pools.get(name)
        if found is None or found.size != size:
            found = self._pools[name] = Pool(name, size)
        return found

    def add_stream(self, relation: Relation) -> None:
        self.catalog.add(self.id, "stream", json.dumps(relation), {})
        self._tables[relation] = self.engine.identity(relation)
        self.streams.known.add(relation)

    def check_streams(self) -> None:
        """Forget streams whose relation is gone, or is another one of that name."""
        for relation in list(self.streams.known):
            table = self.engine.identity(relation)
            if table is None or table != self._tables.get(relation):
                self.streams.forget(relation)
                with contextlib.suppress(Failure):
                    self.catalog.drop(self.id, "stream", json.dumps(relation))

    def close(self) -> None:
        self.workers.close()
        self.engine.close()

    def _known_streams(self) -> set[Relation]:
        found = (json.loads(item.name) for item in self.catalog.objects(self.id, "stream"))
        return {(database, schema, name) for database, schema, name in found}


class Organizations:
    """All of them, opened when they are first used. `single` is the engine of the embedded service's only one."""

    def __init__(self, catalog: Catalog, options: Options, data: Path | None, single: Engine | None = None) -> None:
        self.catalog = catalog
        self._options = options
        self._data = data
        self._temporary: Path | None = None
        self._single = single
        self._open: dict[str, Organization] = {}
        self._lock = threading.Lock()

    @property
    def alone(self) -> bool:
        """Whether there can be one organization only."""
        return self._single is not None

    def default(self) -> str:
        return self.catalog.organizations()[0][0]

    def get(self, organization_id: str) -> Organization:
        """The open organization. Raises Failure for one that does not exist or cannot be opened."""
        found = self._open.get(organization_id)
        if found is not None:
            return found
        with self._lock:
            if organization_id not in self._open:
                if not self.catalog.organization_name(organization_id):
                    raise missing("organization", organization_id)
                self._open[organization_id] = self._opened(organization_id)
            return self._open[organization_id]

    def at_hand(self, organization_id: str) -> Organization | None:
        """The organization if it is open already."""
        return self._open.get(organization_id)

    def opened(self) -> list[Organization]:
        return list(self._open.values())

    def add(self, name: str) -> str:
        if self._single is not None:
            raise Failure(sqlstate.UNSUPPORTED, "the embedded service has one organization; sqlshell serve has more")
        return self.catalog.add_organization(name)

    def check_not_last(self) -> None:
        """Raises Failure where one organization is left."""
        if len(self.catalog.organizations()) == 1:
            raise Failure(sqlstate.DEPENDENTS, "the last organization cannot be dropped")

    def drop(self, organization_id: str) -> None:
        """Remove an organization with all that it owns."""
        with self._lock:
            opened = self._open.pop(organization_id, None)
            if opened is not None:
                opened.close()
            self.catalog.drop_organization(organization_id)
            shutil.rmtree(self.folder(organization_id), ignore_errors=True)

    def folder(self, organization_id: str) -> Path:
        """The folder of an organization, made when it is missing."""
        folder = self._base() / "organizations" / organization_id
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def result_file(self, organization_id: str, statement_id: str) -> Path:
        """Where the result of a statement is kept. The name has no ending that DuckDB reads as a file's kind.

        One of a statement that belongs to no organization is kept where no engine reaches.
        """
        folder = (self.folder(organization_id) if organization_id else self._base()) / "results"
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder / statement_id

    def uploads(self) -> Path:
        """Where files of requests are until their statements have run."""
        folder = self._base() / "uploads"
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder

    def tidy(self, known: Callable[[str], set[str]]) -> None:
        """Remove what a service that was killed left behind: uploads, and results of statements not `known`."""
        if self._data is None:
            return
        for file in self.uploads().iterdir():
            file.unlink(missing_ok=True)
        places = {key: self._data / "organizations" / key / "results" for key, _ in self.catalog.organizations()}
        for organization_id, results in (places | {"": self._data / "results"}).items():
            ids = known(organization_id) if results.is_dir() else set()
            for file in results.iterdir() if results.is_dir() else ():
                if file.name not in ids:
                    file.unlink(missing_ok=True)

    def inside(self, path: Path) -> bool:
        """Whether a path is in, or holds, the service's own folder."""
        own = (self._data or self._temporary or Path("/nowhere/at/all")).resolve()
        return path == own or own in path.parents or path in own.parents

    def close(self) -> None:
        for organization in self._open.values():
            organization.close()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _base(self) -> Path:
        """The service's own folder."""
        if self._data is None and self._temporary is None:
            self._temporary = scratch().folder("service")
        base = self._data or self._temporary
        assert base is not None
        return base

    def _opened(self, organization_id: str) -> Organization:
        def folder() -> Path:
            return self.folder(organization_id)

        running = self._options.bounds.running
        if self._single is not None:
            return Organization(organization_id, self._single, self.catalog, folder, locked=False, running=running)
        base = folder()
        databases = base / "databases"
        databases.mkdir(mode=0o700, exist_ok=True)
        found = self.catalog.objects(organization_id, "database")
        if not found:
            self.catalog.add(organization_id, "database", DATABASE, {"file": f"{uuid.uuid4()}.data"})
            found = self.catalog.objects(organization_id, "database")
        found.sort(key=lambda item: item.created)
        for left in ("copies", "temporary"):
            shutil.rmtree(base / left, ignore_errors=True)
        engine = DuckdbEngine()
        try:
            engine.lock(base, {item.name: databases / item.detail["file"] for item in found}, self._options.engine)
        except Exception as error:
            engine.close()
            if isinstance(error, ShellError):
                raise
            said = f"the organization's databases cannot be opened: {str(error).partition(chr(10))[0]}"
            raise Failure(sqlstate.INTERNAL, said) from error
        for item in self.catalog.objects(organization_id, "store"):
            engine.mount(item.name, {}, base / "copies")
        made = Organization(organization_id, engine, self.catalog, folder, locked=True, running=running)
        # A service that was killed may not have noted that a stream was dropped.
        made.check_streams()
        return made
