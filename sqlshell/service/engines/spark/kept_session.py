"""A session of the server with the context of one of the service."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, Final

import grpc
import grpc.aio
import pyarrow as pa
from msgspec.structs import replace

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.spark import failures, plans
from sqlshell.service.engines.spark.client import ServerSession, SparkClient, proto
from sqlshell.service.engines.spark.operation import Ended, Operation
from sqlshell.service.engines.spark.types import columns_of
from sqlshell.service.failure import Failure

TIME_ZONE: Final = "spark.sql.session.timeZone"

Place = tuple[str, str]
"""A catalog and a namespace, which are a database and a schema of the interface."""


class KeptSession:
    """The server makes its session with the first request, and may lose it at any time; then another one gets the same
    context. `first` is where the server's sessions begin.

    The methods raise Failure.
    """

    def __init__(self, client: SparkClient, first: Place) -> None:
        self.client = client
        self.timezone = ""
        """The session's time zone, "" for the server's."""
        self._first = first
        self.database, self.schema = first
        self._id: ServerSession | None = None
        self._breaks = -1
        """How often the connection had broken when the server's session was known to have this context."""
        self._asked = ""
        """The time zone that was asked for last."""

    @property
    def id(self) -> ServerSession:
        if self._id is None:
            self._id, self._breaks = self.client.new_session(), -1
        return self._id

    def adopt(self, id: str) -> None:
        """Take over a session of the server, whatever its context."""
        self._id, self._breaks = ServerSession(id), self.client.breaks

    def lose(self) -> ServerSession | None:
        """Leave the server's session, if there is one, and return it; the next request makes a new one."""
        left, self._id = self._id, None
        return left

    def operation(self, number: str = "") -> Operation:
        """A new operation of the server's session, or one by its ID."""
        return Operation(self.client, self.id, number or str(uuid.uuid4()))

    @asynccontextmanager
    async def explained(self, sql: str = "", running: Operation | None = None) -> AsyncIterator[None]:
        """Translate errors to Failure, those of the statement `sql` that `running` runs. A session that the server has
        lost is made again by the next request.
        """
        try:
            yield
        except (grpc.aio.AioRpcError, Ended, asyncio.CancelledError) as error:
            if running is not None and running.left:
                message = "the statement was terminated because its session ended"
                raise Failure(sqlstate.SESSION_LOST, message) from error
            if isinstance(error, asyncio.CancelledError):
                raise
            if running is not None and running.canceled:
                raise canceled() from error
            failure = failures.session_lost() if isinstance(error, Ended) else await self._failure(error, sql)
            if failure.sql_state == failures.UNREACHABLE and running is not None and running.begun:
                message = "the connection to the server was lost while the statement was running"
                unknown = "it is unknown whether the statement took effect"
                failure = Failure(sqlstate.SESSION_LOST, f"{message}; {unknown}")
            if failure.sql_state == sqlstate.SESSION_LOST:
                self.lose()
            raise failure from error
        except pa.ArrowException as error:
            raise Failure(sqlstate.INTERNAL, f"cannot read the rows that the server sent: {error}") from error

    async def prepare(self, timezone: str = "") -> None:
        """Give the server's session this context, where it may have another, and a time zone that differs from the one
        that was asked for last.
        """
        session = self.id
        while self._breaks != (breaks := self.client.breaks):
            if self.timezone:
                await self._set_timezone(self.timezone, session)
            if (self.database, self.schema) != self._first:
                await self._go_back()
            self._breaks = breaks
        if timezone and timezone != self._asked:
            await self._set_timezone(timezone, session)
            self._asked = self.timezone = timezone

    async def rows(self, plan: Any) -> list[dict[str, Any]]:
        """The rows of a plan, few, as Python objects by the names of the columns in lower case."""
        await self.prepare()
        return await self._rows(plan)

    async def columns(self, plan: Any, sql: str = "") -> list[ColumnInfo]:
        """The columns of a plan, which is not run; `sql` is its statement, for errors."""
        await self.prepare()
        async with self.explained(sql):
            return columns_of(await self.client.schema(plan, self.id))

    async def use(self, database: str, schema: str) -> None:
        """Change the database and schema; "" is the initial schema of the database. Raises Failure 3D002 or 3D003."""
        await self.prepare()
        before = self.database, self.schema
        if database != before[0]:
            await self._go(database, "")
        try:
            schema = schema or await self._initial_schema(database)
            await self._go("", schema)
        except BaseException:
            if database != before[0]:
                await self._go(*before)
            raise
        self.database, self.schema = database, schema

    async def look(self) -> None:
        """Follow what a statement has changed."""
        [row] = await self._rows(plans.statement("SELECT current_catalog() AS c, current_schema() AS s"))
        self.database, self.schema = str(row["c"]), plans.unquoted(str(row["s"]))
        async with self.explained():
            self.timezone = await self.client.setting(TIME_ZONE, self.id) or self.timezone

    async def _failure(self, error: grpc.aio.AioRpcError, sql: str) -> Failure:
        """The Failure for an error, with the server's full report of it, if it keeps one."""
        details = failures.details_of(error)
        if not details.is_whole:
            with suppress(grpc.RpcError):
                request = proto.FetchErrorDetailsRequest(error_id=details.error_id)
                response: Any = await self.client.ask("FetchErrorDetails", request, self.id)
                if response.HasField("root_error_idx") and response.root_error_idx < len(response.errors):
                    root = response.errors[response.root_error_idx]
                    state = root.spark_throwable.sql_state or details.sql_state
                    details = replace(details, message=root.message or details.message, sql_state=state)
        return failures.failure(error, self.client.address.endpoint, sql, details)

    async def _set_timezone(self, timezone: str, session: ServerSession) -> None:
        async with self.explained():
            await self.client.configure(TIME_ZONE, timezone, session)

    async def _go_back(self) -> None:
        try:
            await self._go(self.database, self.schema)
        except Failure as failure:
            if failure.sql_state not in {sqlstate.NO_DATABASE, sqlstate.NO_SCHEMA}:
                raise
            gone = f"schema {self.schema!r} of database {self.database!r} is no longer available"
            self.database, self.schema = self._first
            self.lose()
            message = f"the server ended this session, and {gone}; the new session is in schema {self.schema!r}"
            raise Failure(sqlstate.SESSION_LOST, message) from failure

    async def _go(self, database: str, schema: str) -> None:
        """Change the catalog and the namespace of the server's session; "" changes nothing."""
        if database:
            plan = plans.catalog(set_current_catalog={"catalog_name": database})
            await self._to(plan, sqlstate.NO_DATABASE, f"database {database!r} does not exist")
        if schema:
            plan = plans.catalog(set_current_database={"db_name": plans.namespace(schema)})
            await self._to(plan, sqlstate.NO_SCHEMA, f"schema {schema!r} does not exist in database {database!r}")

    async def _to(self, plan: Any, state: str, otherwise: str) -> None:
        """Run a plan that fails if what it names does not exist."""
        try:
            await self._rows(plan)
        except Failure as failure:
            if failure.sql_state.startswith(("42", "22")):
                raise Failure(state, otherwise) from failure
            raise

    async def _initial_schema(self, database: str) -> str:
        """The schema in which a session begins in a database."""
        if database == self._first[0]:
            return self._first[1]
        listed = await self._rows(plans.statement(f"SHOW SCHEMAS IN {plans.quoted(database)}"))
        names = [plans.unquoted(str(next(iter(row.values())))) for row in listed]
        return "default" if "default" in names or not names else names[0]

    async def _rows(self, plan: Any) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        async with self.explained(), aclosing(self.operation().run(plan)) as responses:
            async for response in responses:
                if response.WhichOneof("response_type") == "arrow_batch":
                    for batch in pa.ipc.open_stream(response.arrow_batch.data):
                        names = [name.lower() for name in batch.schema.names]
                        rows += [dict(zip(names, row.values(), strict=True)) for row in batch.to_pylist() if row]
        return rows


def canceled() -> Failure:
    return Failure(sqlstate.CANCELED, "the statement was canceled")
