"""The methods that all engines on external servers share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor

from sqlshell.service.engines.duckdb.results.result_files import ResultFiles
from sqlshell.service.engines.engine import (
    Capabilities,
    CatalogQuery,
    EngineSession,
    Listing,
    ObjectQuery,
    Rows,
    Traits,
)
from sqlshell.service.engines.server.loop import EngineLoop
from sqlshell.service.engines.server.session import ServerSession

WRITERS = 4
"""Threads of an engine that render and write rows, for all statements. None waits for a server."""


class ServerEngine(ResultFiles, ABC):
    """What such engines have in common: an event loop, and files of results that DuckDB reads in this process."""

    name: str
    capabilities: Capabilities
    traits: Traits

    def __init__(self, shared: EngineLoop | None = None) -> None:
        """With a loop that is `shared` with other engines, which stays open."""
        super().__init__()
        self._loop = shared or EngineLoop(self.name)
        self._shares_loop = shared is not None
        self._threads = ThreadPoolExecutor(WRITERS, f"{self.name}-rows")

    @property
    @abstractmethod
    def version(self) -> str: ...

    @abstractmethod
    def server(self) -> str: ...

    @abstractmethod
    def connect(self) -> ServerSession: ...

    @abstractmethod
    def catalog(self, query: CatalogQuery, seen: EngineSession | None = None) -> Rows: ...

    @abstractmethod
    def objects(self, query: ObjectQuery, seen: EngineSession) -> Listing: ...

    @abstractmethod
    def inline(self, rows: Listing) -> str: ...

    @abstractmethod
    async def _close(self) -> None:
        """Close the connections, in the engine's loop. Raises nothing."""

    def close(self) -> None:
        if self._loop.running:
            self._loop.call(self._close())
        self._threads.shutdown()
        self.release_memory()
        if not self._shares_loop:
            self._loop.close()
