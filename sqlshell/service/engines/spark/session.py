"""A session of the service on a Spark Connect server, whose session may be lost at any time."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncGenerator, AsyncIterator
from concurrent.futures import Executor
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from typing import Any, Final

import grpc
import grpc.aio
import pyarrow as pa

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo
from sqlshell.runtime.event_loops import LoopThread
from sqlshell.service.engines.engine import Outcome, Relation, RunOptions, Sink
from sqlshell.service.engines.files.result_files import ResultFiles
from sqlshell.service.engines.files.result_writer import ResultWriter
from sqlshell.service.engines.files.texts import bounded
from sqlshell.service.engines.server_engine import ServerSession
from sqlshell.service.engines.spark import failures, plans
from sqlshell.service.engines.spark.client import SparkClient, SparkHandle
from sqlshell.service.engines.spark.operation import Ended, Operation
from sqlshell.service.engines.spark.results import received
from sqlshell.service.engines.spark.types import columns_of
from sqlshell.service.failure import Failure, ResultLost
from sqlshell.sql.analysis.tokens import first_word

CHANGES_CONTEXT: Final = frozenset({"use", "set", "reset"})
"""First words of statements that may change the catalog, the namespace or the time zone."""

READS: Final = frozenset(
    {"select", "with", "values", "table", "from", "show", "describe", "desc", "explain", "list", ""}
)
"""First words of statements that return rows and change nothing."""

NO_RELATION: Final = frozenset({"42P01", "42704"})

CANCELED: Final = "the statement was canceled"
CONTEXT: Final = "SELECT current_catalog() AS c, current_schema() AS s, current_timezone() AS z"

Place = tuple[str, str]
"""A catalog and a namespace, which are a database and a schema of the interface."""


class SparkSession(ServerSession):
    """The server makes its session with the first request; one that it has lost is made again with the same context.

    `first` is where the server's sessions begin. Methods raise Failure.
    """

    def __init__(
        self, loop: LoopThread, client: SparkClient, first: Place, reader: ResultFiles, threads: Executor
    ) -> None:
        super().__init__(loop, *first)
        self.client = client
        self._first = first
        self._reader = reader
        self._threads = threads
        self._running: Operation | None = None
        self._following = ""
        """The ID of the operation that the next statement will be, "" for any."""
        self._handle: SparkHandle | None = None
        self._breaks = -1
        """How often the connection had broken when the server's session was known to have this context."""
        self._asked = ""
        """The time zone that was asked for last."""

    @property
    def handle(self) -> SparkHandle:
        """The server's session."""
        if self._handle is None:
            self._handle, self._breaks = SparkHandle(str(uuid.uuid4())), -1
        return self._handle

    def lose(self) -> SparkHandle | None:
        """Leave the server's session, if there is one, and return it; the next request makes a new one."""
        left, self._handle = self._handle, None
        return left

    def operation(self) -> str:
        """Return the IDs of the server's session, and of the operation that the next statement in it will be."""
        self._following = str(uuid.uuid4())
        return f"{self.handle.id}/{self._following}"

    def progress(self) -> float | None:
        running = self._running
        return running.progress if running is not None else None

    def lose_transaction(self) -> None:
        """Do nothing: there are no transactions."""

    def columns(self, relation: Relation, options: RunOptions) -> list[ColumnInfo]:
        return bounded(super().columns(relation, options), options)

    async def taken_up(self, operation: str, options: RunOptions, sink: Sink) -> Outcome:
        """Return the outcome of an operation that another process has begun. Ends the session in which it runs."""
        session, _, number = operation.partition("/")
        self._handle, self._breaks = SparkHandle(session), self.client.breaks
        running = self._running = Operation(self.client, self.handle, number)
        try:
            async with self.explained(running=running):
                return await self._received(running.continued(), "", options, sink)
        finally:
            self._running = None
            await self.disconnect()

    async def rows(self, plan: Any) -> list[dict[str, Any]]:
        """Return the rows of a plan, few, as Python objects by the names of the columns in lower case."""
        await self._prepare()
        return await self._rows(plan)

    async def columns_of(self, plan: Any, sql: str = "") -> list[ColumnInfo]:
        """Return the columns of a plan, which is not run; `sql` is its statement, for errors."""
        await self._prepare()
        async with self.explained(sql):
            return columns_of(await self.client.schema(plan, self.handle))

    async def follow(self) -> None:
        """Follow what a statement has changed."""
        [row] = await self._rows(plans.statement(CONTEXT))
        self.database, self.schema, self.timezone = str(row["c"]), plans.unquoted(str(row["s"])), str(row["z"])

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
                raise Failure(sqlstate.CANCELED, CANCELED) from error
            ended = isinstance(error, Ended)
            failure = failures.session_lost() if ended else failures.failure(error, self.client.address.endpoint, sql)
            if failure.sql_state == failures.UNREACHABLE and running is not None and running.begun:
                message = "the connection to the server was lost while the statement was running"
                unknown = "it is unknown whether the statement took effect"
                failure = Failure(sqlstate.SESSION_LOST, f"{message}; {unknown}")
            if failure.sql_state == sqlstate.SESSION_LOST:
                self.lose()
            raise failure from error
        except pa.ArrowException as error:
            raise Failure(sqlstate.INTERNAL, f"cannot read the rows that the server sent: {error}") from error

    async def _execute(self, sql: str, options: RunOptions, sink: Sink) -> Outcome:
        word = first_word(sql)
        running = self._running = Operation(self.client, self.handle, self._following)
        self._following = ""
        try:
            async with self.explained(sql, running):
                await self._prepare(options.timezone)
                if running.canceled:
                    raise Failure(sqlstate.CANCELED, CANCELED)
                if options.row_limit == 0 and word in plans.QUERIES:
                    return Outcome(bounded(await self.columns_of(plans.statement(sql), sql), options))
                # One row more than is wanted shows that there are more.
                plan = plans.statement(sql, plans.MOST if options.row_limit is None else options.row_limit + 1)
                try:
                    outcome = await self._received(running.run(plan), sql, options, sink)
                except (OSError, Failure) as error:
                    is_ours = isinstance(error, OSError) or error.sql_state == sqlstate.LIMIT
                    if is_ours and word not in READS:
                        raise ResultLost(error, certain=True) from error
                    raise
        finally:
            self._running = None
        if word in CHANGES_CONTEXT:
            await self.follow()
        return outcome

    async def _received(self, responses: AsyncGenerator[Any], sql: str, options: RunOptions, sink: Sink) -> Outcome:
        new_writer = partial(ResultWriter, sink, options, self._threads, self._reader)
        async with aclosing(responses):
            return await received(responses, sql, options, self._reader, new_writer)

    async def _prepare(self, timezone: str = "") -> None:
        """Give the server's session this context, where it may have another, and a time zone that differs from the one
        that was asked for last.
        """
        handle = self.handle
        while self._breaks != (breaks := self.client.breaks):
            if self.timezone:
                await self._set_timezone(self.timezone, handle)
            if (self.database, self.schema) != self._first:
                await self._go_back()
            self._breaks = breaks
        if timezone and timezone != self._asked:
            await self._set_timezone(timezone, handle)
            self._asked = self.timezone = timezone

    async def _set_timezone(self, timezone: str, handle: SparkHandle) -> None:
        async with self.explained():
            await self.client.set_timezone(timezone, handle)

    async def _go_back(self) -> None:
        try:
            await self._go(self.database, self.schema)
        except Failure as failure:
            if failure.sql_state not in {sqlstate.NO_DATABASE, sqlstate.NO_SCHEMA}:
                raise
            gone = f'schema "{self.schema}" of database "{self.database}" is no longer available'
            self.database, self.schema = self._first
            self.lose()
            message = f'the server ended this session, and {gone}; the new session is in schema "{self.schema}"'
            raise Failure(sqlstate.SESSION_LOST, message) from failure

    async def _use(self, database: str, schema: str) -> None:
        await self._prepare()
        before = self.database, self.schema
        try:
            if database != before[0]:
                await self._go(database, "")
            schema = schema or await self._initial_schema(database)
            await self._go("", schema)
        except BaseException:
            if database != before[0]:
                await self._go(*before)
            raise
        self.database, self.schema = database, schema

    async def _go(self, database: str, schema: str) -> None:
        """Change the catalog and the namespace of the server's session; "" changes nothing."""
        if database:
            plan = plans.catalog(set_current_catalog={"catalog_name": database})
            await self._to(plan, sqlstate.NO_DATABASE, f'database "{database}" does not exist')
        if schema:
            plan = plans.catalog(set_current_database={"db_name": plans.namespace(schema)})
            await self._to(plan, sqlstate.NO_SCHEMA, f'schema "{schema}" does not exist in database "{database}"')

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

    async def _columns(self, relation: Relation) -> list[ColumnInfo]:
        database, schema, name = relation
        if (database, schema) == (self.database, self.schema):
            # A temporary view has no schema, and goes before a table of the current one.
            try:
                return await self.columns_of(plans.relation(name))
            except Failure as failure:
                if failure.sql_state not in NO_RELATION:
                    raise
        return await self.columns_of(plans.relation(database, *schema.split("."), name))

    async def _rows(self, plan: Any) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        async with self.explained(), aclosing(Operation(self.client, self.handle).run(plan)) as responses:
            async for response in responses:
                if response.WhichOneof("response_type") == "arrow_batch":
                    for batch in pa.ipc.open_stream(response.arrow_batch.data):
                        names = [name.lower() for name in batch.schema.names]
                        rows += [dict(zip(names, row.values(), strict=True)) for row in batch.to_pylist() if row]
        return rows

    async def _cancel(self) -> None:
        if (running := self._running) is not None:
            with suppress(grpc.RpcError):
                await running.interrupt()

    async def disconnect(self) -> None:
        running, handle = self._running, self.lose()
        if running is not None:
            running.leave()
        if handle is not None:
            with suppress(grpc.RpcError):
                if running is not None:
                    # Apache Spark may continue an operation whose session has ended.
                    await self.client.interrupt(running.id, handle)
                await self.client.end(handle)
