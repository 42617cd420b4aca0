"""An engine that is a Spark Connect server: Apache Spark, or Sail."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from contextlib import suppress

import grpc
from msgspec.structs import replace

from sqlshell.errors import ServiceError
from sqlshell.runtime.event_loops import LoopThread
from sqlshell.service.engines.engine import (
    Capabilities,
    CatalogQuery,
    EngineSession,
    Listing,
    ObjectQuery,
    Outcome,
    Rows,
    RunOptions,
    Sink,
    Traits,
)
from sqlshell.service.engines.server_engine import ServerEngine
from sqlshell.service.engines.spark import CAPABILITIES, catalog, plans
from sqlshell.service.engines.spark.client import Address, SparkClient
from sqlshell.service.engines.spark.session import Place, SparkSession
from sqlshell.service.failure import Failure


@functools.cache
def _loop() -> LoopThread:
    """The event loop of all such engines of this process: gRPC may have an event for it after an engine is closed."""
    return LoopThread("spark")


class SparkEngine(ServerEngine):
    """Each session of the service is a session of the server: a database is a catalog there, a schema a namespace.

    Raises UsageError for a URL that cannot be used, ServiceError if the server does not respond.
    """

    name = "spark"
    inline = staticmethod(catalog.inline)

    def __init__(self, url: str) -> None:
        address = Address(url)
        super().__init__(_loop())
        self._address = address
        self._client = SparkClient(address)
        self._first: Place = "", ""
        self._own = self.connect()
        """The session that answers questions of the service."""
        try:
            self._version = self._loop.run(self._begin())
        except Failure as error:
            self.close()
            raise ServiceError(error.message) from error

    def server(self) -> str:
        return self._address.endpoint.lower()

    async def _begin(self) -> str:
        own = self._own
        async with own.explained():
            version = await self._client.version(own.handle)
        [row] = await own.rows(plans.statement("SELECT version() AS v"))
        await own.follow()
        self._first = own.database, own.schema
        self.traits = Traits(initial_schema=own.schema)
        # A server other than Apache Spark has a version of its own.
        product = str(row["v"]).partition(" ")[0]
        return version if product == version else f"{version} (server {product})"

    async def _close(self) -> None:
        if (handle := self._own.lose()) is not None:
            with suppress(grpc.RpcError):
                await self._client.end(handle)
        await self._client.close()

    @property
    def version(self) -> str:
        return f"Spark Connect {self._version}"

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        """`progress` once the server has reported any: Apache Spark does, Sail does not."""
        return replace(CAPABILITIES, progress=self._client.progressed)

    def connect(self) -> SparkSession:
        return SparkSession(self._loop, self._client, self._first, self, self._threads)

    def operation(self, session: EngineSession) -> str:
        return self._of(session).operation()

    async def reattach(
        self, operation: str, options: RunOptions, sink: Sink, attached: Callable[[EngineSession], None]
    ) -> Outcome:
        """Finish an operation that another process has begun. Called from the service's event loop.

        Raises Failure, 57P02 if the server no longer has it or its first rows.
        """
        connection = self.connect()
        attached(connection)
        return await asyncio.wrap_future(self._loop.start(connection.taken_up(operation, options, sink)))

    def catalog(self, query: CatalogQuery, seen: EngineSession | None = None) -> Rows:
        return self._loop.run(catalog.listed(self._of(seen), query))

    def objects(self, query: ObjectQuery, seen: EngineSession) -> Listing:
        return self._loop.run(catalog.described(self._of(seen), query))

    def _of(self, seen: EngineSession | None) -> SparkSession:
        """The session that sees what is asked for: temporary views, and all tables of Sail's own catalog."""
        return seen if isinstance(seen, SparkSession) else self._own
