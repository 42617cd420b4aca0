"""The methods that all sessions on external servers share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from pathlib import Path

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.engine import Begun, Feed, Outcome, Plan, Relation, RunOptions, Sink, Store
from sqlshell.service.engines.server.loop import EngineLoop
from sqlshell.service.failure import Failure


def not_supported(engine: str, what: str) -> Failure:
    return Failure(sqlstate.UNSUPPORTED, f"the engine {engine} does not support {what}")


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
    """The synchronous methods of Connection, on the asynchronous ones, which run in the engine's loop."""

    def __init__(self, loop: EngineLoop, engine: str, database: str, schema: str) -> None:
        self._loop = loop
        self._engine_name = engine
        self.database, self.schema = database, schema
        self.transaction = self.timezone = ""

    @property
    def in_transaction(self) -> bool:
        return bool(self.transaction)

    async def execute(self, sql: str, options: RunOptions, sink: Sink, begun: Begun, store: Store) -> Outcome:
        return await self._loop.wait(self._execute(sql, options, sink, begun, store))

    def run(self, sql: str, options: RunOptions, sink: Sink, *, trusted: bool = False) -> Outcome:
        return self._loop.call(self._execute(sql, options, sink, ignore, ignore))

    def load(self, names: Sequence[str], columns: Sequence[str], path: Path, options: RunOptions) -> Outcome:
        raise not_supported(self._engine_name, "attachments")

    def feed(self, sql: str, streams: Collection[Relation], options: RunOptions) -> Feed | None:
        return None

    def plan(self, sql: str, options: RunOptions) -> Plan:
        raise not_supported(self._engine_name, "plans of CREATE and INSERT")

    def use(self, database: str, schema: str) -> None:
        self._loop.call(self._use(database or self.database, schema))

    def columns(self, relation: Relation, options: RunOptions) -> list[ColumnInfo]:
        return self._loop.call(self._columns(relation))

    def resolve(self, names: Sequence[str]) -> Relation:
        return completed(names, self.database, self.schema)

    def interrupt(self) -> None:
        self._loop.post(self._cancel())

    def abandon(self) -> bool:
        self._loop.post(self._disconnect())
        return True

    def progress(self) -> float | None:
        return None

    def close(self) -> None:
        self._loop.post(self._disconnect())

    @abstractmethod
    def lose_transaction(self) -> None: ...

    @abstractmethod
    async def _execute(self, sql: str, options: RunOptions, sink: Sink, begun: Begun, store: Store) -> Outcome:
        """ServerConnection.execute(), in the engine's loop."""

    @abstractmethod
    async def _use(self, database: str, schema: str) -> None:
        """Connection.use() with a database; "" is its initial schema."""

    @abstractmethod
    async def _columns(self, relation: Relation) -> list[ColumnInfo]: ...

    @abstractmethod
    async def _cancel(self) -> None:
        """Ask the server to cancel the running statement, if any. Raises nothing."""

    @abstractmethod
    async def _disconnect(self) -> None:
        """Close the connection to the server; a running statement fails with 57P02. Raises nothing."""
