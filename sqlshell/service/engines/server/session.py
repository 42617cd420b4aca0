"""The methods that all sessions on external servers share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.engine import Begun, Outcome, Relation, RunOptions, Sink, Store
from sqlshell.service.engines.server.loop import EngineLoop


def ignore(value: object) -> None:
    """Do nothing with what a statement reports."""


def completed(names: Sequence[str], database: str, schema: str) -> Relation:
    """The full name of a relation, completed with the database and schema; of more than three parts, the last."""
    return (
        names[-3] if len(names) > 2 else database,
        names[-2] if len(names) > 1 else schema,
        names[-1],
    )


class ServerSession(ABC):
    """The synchronous methods of EngineSession, on the asynchronous ones, which run in the engine's loop."""

    def __init__(self, loop: EngineLoop, engine: str, database: str, schema: str) -> None:
        self._loop = loop
        self._engine_name = engine
        self.database, self.schema = database, schema
        self.transaction = self.timezone = ""

    async def execute(self, sql: str, options: RunOptions, sink: Sink, begun: Begun, store: Store) -> Outcome:
        return await self._loop.wait(self._execute(sql, options, sink, begun, store))

    def run(self, sql: str, options: RunOptions, sink: Sink) -> Outcome:
        return self._loop.call(self._execute(sql, options, sink, ignore, ignore))

    def use(self, database: str, schema: str) -> None:
        self._loop.call(self._use(database or self.database, schema))

    def columns(self, relation: Relation, options: RunOptions) -> list[ColumnInfo]:
        return self._loop.call(self._columns(relation))

    def resolve(self, names: Sequence[str]) -> Relation:
        return completed(names, self.database, self.schema)

    def cancel(self, *, force: bool = False) -> bool:
        self._loop.post(self._disconnect() if force else self._cancel())
        return True

    def progress(self) -> float | None:
        return None

    def close(self) -> None:
        self._loop.post(self._disconnect())

    @abstractmethod
    def lose_transaction(self) -> None: ...

    @abstractmethod
    async def _execute(self, sql: str, options: RunOptions, sink: Sink, begun: Begun, store: Store) -> Outcome:
        """AsyncSession.execute(), in the engine's loop."""

    @abstractmethod
    async def _use(self, database: str, schema: str) -> None:
        """EngineSession.use() with a database; "" is its initial schema."""

    @abstractmethod
    async def _columns(self, relation: Relation) -> list[ColumnInfo]: ...

    @abstractmethod
    async def _cancel(self) -> None:
        """Ask the server to cancel the running statement, if any. Raises nothing."""

    @abstractmethod
    async def _disconnect(self) -> None:
        """Close the connection to the server; a running statement fails with 57P02. Raises nothing."""
