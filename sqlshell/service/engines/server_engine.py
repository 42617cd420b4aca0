"""What engines on external servers share: an event loop, sessions and files of results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from sqlshell.interface.models import ColumnInfo
from sqlshell.runtime.event_loops import LoopThread
from sqlshell.service.engines.engine import Capabilities, Outcome, Relation, RunOptions, Sink, Traits, completed
from sqlshell.service.engines.files.result_files import ResultFiles

WRITERS = 4
"""Threads of an engine that render and write rows, for all statements. None waits for a server."""


class ServerSession(ABC):
    """The methods of EngineSession, on the asynchronous ones, which run in the engine's loop: rows that arrive never
    hold up the service's own."""

    def __init__(self, loop: LoopThread, database: str, schema: str) -> None:
        self._loop = loop
        self.database, self.schema = database, schema
        self.transaction = self.timezone = ""

    def run(self, sql: str, options: RunOptions, sink: Sink) -> Outcome:
        return self._loop.run(self._execute(sql, options, sink))

    def use(self, database: str, schema: str) -> None:
        self._loop.run(self._use(database or self.database, schema))

    def columns(self, relation: Relation, options: RunOptions) -> list[ColumnInfo]:
        return self._loop.run(self._columns(relation))

    def resolve(self, names: Sequence[str]) -> Relation:
        return completed(names, self.database, self.schema)

    def cancel(self, *, force: bool = False) -> bool:
        self._loop.start(self.disconnect() if force else self._cancel())
        return True

    def progress(self) -> float | None:
        return None

    def close(self) -> None:
        self._loop.start(self.disconnect())

    @abstractmethod
    def lose_transaction(self) -> None: ...

    @abstractmethod
    async def _execute(self, sql: str, options: RunOptions, sink: Sink) -> Outcome:
        """EngineSession.run(). Waiting for room in the sink, it reads nothing from the server."""

    @abstractmethod
    async def _use(self, database: str, schema: str) -> None:
        """EngineSession.use() with a database; "" is its initial schema."""

    @abstractmethod
    async def _columns(self, relation: Relation) -> list[ColumnInfo]: ...

    @abstractmethod
    async def _cancel(self) -> None:
        """Ask the server to cancel the running statement, if any. Raises nothing."""

    @abstractmethod
    async def disconnect(self) -> None:
        """Close the connection to the server; a running statement fails with 57P02. Raises nothing."""


class ServerEngine(ResultFiles, ABC):
    """What such engines have in common: an event loop, and files of results that DuckDB reads in this process."""

    name: str
    capabilities: Capabilities
    traits: Traits

    def __init__(self, shared: LoopThread | None = None) -> None:
        """With a loop that is `shared` with other engines, which stays open."""
        super().__init__()
        self._loop = shared or LoopThread(self.name)
        self._shares_loop = shared is not None
        self._threads = ThreadPoolExecutor(WRITERS, f"{self.name}-rows")

    @abstractmethod
    async def _close(self) -> None:
        """Close the connections, in the engine's loop. Raises nothing."""

    def close(self) -> None:
        if self._loop.running:
            self._loop.run(self._close())
        self._threads.shutdown()
        self.close_files()
        if not self._shares_loop:
            self._loop.close()
