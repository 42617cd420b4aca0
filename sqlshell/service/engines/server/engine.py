"""The methods that all engines on external servers share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from sqlshell.service.engines.duckdb.results.result_files import ResultFiles
from sqlshell.service.engines.engine import (
    Capabilities,
    CatalogQuery,
    Connection,
    Feed,
    Listing,
    ObjectQuery,
    Relation,
    Rows,
)
from sqlshell.service.engines.server.loop import EngineLoop
from sqlshell.service.engines.server.session import ServerSession, not_supported

WRITERS = 4
"""Threads of an engine that render and write rows, for all statements. None waits for a server."""


class ServerEngine(ResultFiles, ABC):
    """The methods for capabilities that such an engine lacks: streams, copies of stores, databases of the service."""

    name: str
    is_server = True
    files_have_text = False
    capabilities: Capabilities
    hidden_databases: Sequence[str] = ()
    reserved_names: Sequence[str] = ()
    initial_schema: str
    default_timezone = "UTC"
    protections = ""
    broken: Mapping[str, str] = {}

    def __init__(self, shared: EngineLoop | None = None) -> None:
        """With a loop that is `shared` with other engines, which stays open."""
        super().__init__()
        self._loop = shared or EngineLoop(self.name)
        self._shares_loop = shared is not None

    @property
    @abstractmethod
    def version(self) -> str: ...

    @property
    @abstractmethod
    def first_database(self) -> str: ...

    @abstractmethod
    def server(self) -> str: ...

    @abstractmethod
    def connect(self) -> ServerSession: ...

    @abstractmethod
    def catalog(self, query: CatalogQuery, seen: Connection | None = None) -> Rows: ...

    @abstractmethod
    def objects(self, query: ObjectQuery, seen: Connection) -> Listing: ...

    @abstractmethod
    def has_function(self, name: str) -> bool: ...

    @abstractmethod
    def exists(self, relation: Relation, seen: Connection | None = None) -> bool: ...

    @abstractmethod
    def inline(self, rows: Listing) -> str: ...

    def give_back(self) -> None:
        return

    def attach(self, name: str, path: Path | None) -> None:
        raise not_supported(self.name, "databases of the service")

    def detach(self, name: str) -> None:
        raise not_supported(self.name, "databases of the service")

    def mount(self, store: str, copy: Path) -> None:
        raise not_supported(self.name, "entities of stores")

    def view(self, store: str, entities: Mapping[str, Path]) -> None:
        raise not_supported(self.name, "entities of stores")

    def identity(self, relation: Relation) -> int | None:
        return None

    def publish(self, tables: Mapping[str, Listing]) -> None:
        raise not_supported(self.name, "system relations")

    def head(self, stream: Relation, least: int = 0) -> int:
        raise not_supported(self.name, "streams")

    def rows(self, feed: Feed, start: int, end: int, number: int) -> list[str]:
        raise not_supported(self.name, "streams")

    def leave(self, number: int) -> None:
        return

    def close(self) -> None:
        self._results.release_memory()
        if not self._shares_loop:
            self._loop.close()
