"""A session of the service on a Spark Connect server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Executor
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, Final

import grpc
import grpc.aio

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.duckdb.results.result_files import ResultFiles
from sqlshell.service.engines.duckdb.results.rows import bounded, check_columns
from sqlshell.service.engines.engine import Begun, Outcome, Relation, RunOptions, Sink, Store
from sqlshell.service.engines.server.loop import EngineLoop
from sqlshell.service.engines.server.result_writer import ResultWriter
from sqlshell.service.engines.server.session import ServerSession
from sqlshell.service.engines.spark import plans
from sqlshell.service.engines.spark.client import SparkClient
from sqlshell.service.engines.spark.kept_session import KeptSession, Place, canceled
from sqlshell.service.engines.spark.operation import Operation
from sqlshell.service.engines.spark.results import Receiver
from sqlshell.service.failure import Failure, ResultLost
from sqlshell.sql.script.blanks import first_word

CHANGES_CONTEXT: Final = frozenset({"use", "set", "reset"})
"""First words of statements that may change the catalog, the namespace or the time zone."""

READS: Final = frozenset(
    {"select", "with", "values", "table", "from", "show", "describe", "desc", "explain", "list", ""}
)
"""First words of statements that return rows and change nothing."""

NO_RELATION: Final = frozenset({"42P01", "42704"})


class SparkSession(ServerSession):
    """`first` is where the server's sessions begin. `progressed` is called when the server reports progress."""

    def __init__(
        self,
        loop: EngineLoop,
        client: SparkClient,
        first: Place,
        reader: ResultFiles,
        threads: Executor,
        progressed: Callable[[], None],
    ) -> None:
        super().__init__(loop, "spark", *first)
        self.kept = KeptSession(client, first)
        self._reader = reader
        self._threads = threads
        self._progressed = progressed
        self._running: Operation | None = None

    def progress(self) -> float | None:
        running = self._running
        return running.progress if running is not None else None

    def lose_transaction(self) -> None:
        """Do nothing: there are no transactions."""

    def columns(self, relation: Relation, options: RunOptions) -> list[ColumnInfo]:
        columns = super().columns(relation, options)
        check_columns(len(columns), options)
        return bounded(columns, options)

    async def taken_up(self, operation: str, options: RunOptions, sink: Sink) -> Outcome:
        """The outcome of an operation that another process has begun. Ends the session in which it runs.

        Raises Failure.
        """
        session, _, number = operation.partition("/")
        self.kept.adopt(session)
        running = self._running = self.kept.operation(number)
        try:
            async with self.kept.explained(running=running):
                return await self._received(running, running.continued(), "", options, sink)
        finally:
            self._running = None
            await self._disconnect()

    async def _execute(self, sql: str, options: RunOptions, sink: Sink, begun: Begun, store: Store) -> Outcome:
        running = self._running = self.kept.operation()
        try:
            async with self.kept.explained(sql, running):
                await self.kept.prepare(options.timezone)
                if running.canceled:
                    raise canceled()
                begun(f"{self.kept.id.id}/{running.id}")
                if options.row_limit == 0 and first_word(sql) in plans.QUERIES:
                    return Outcome(bounded(await self.kept.columns(plans.statement(sql), sql), options))
                # One row more than is wanted shows that there are more.
                plan = plans.statement(sql, plans.MOST if options.row_limit is None else options.row_limit + 1)
                try:
                    outcome = await self._received(running, running.run(plan), sql, options, sink)
                except (OSError, Failure) as error:
                    is_ours = isinstance(error, OSError) or error.sql_state == sqlstate.LIMIT
                    if is_ours and first_word(sql) not in READS:
                        raise ResultLost(error, certain=True) from error
                    raise
        finally:
            self._running = None
            self._follow()
        if first_word(sql) in CHANGES_CONTEXT:
            await self.kept.look()
            self._follow()
        return outcome

    async def _received(
        self, running: Operation, responses: AsyncGenerator[Any], sql: str, options: RunOptions, sink: Sink
    ) -> Outcome:
        new_writer = partial(ResultWriter, sink, options, self._threads, self._reader)
        receiver = Receiver(sql, options, self._reader, new_writer)
        async with aclosing(responses):
            outcome = await receiver.outcome(responses)
        if running.progress is not None:
            self._progressed()
        return outcome

    async def _use(self, database: str, schema: str) -> None:
        try:
            await self.kept.use(database, schema)
        finally:
            self._follow()

    async def _columns(self, relation: Relation) -> list[ColumnInfo]:
        database, schema, name = relation
        # A temporary view has no schema, and goes before a table of the current one.
        tried = [(database, *schema.split("."), name)]
        if (database, schema) == (self.database, self.schema):
            tried.insert(0, (name,))
        while True:
            names = tried.pop(0)
            try:
                return await self.kept.columns(plans.relation(*names))
            except Failure as failure:
                if not tried or failure.sql_state not in NO_RELATION:
                    raise

    async def _cancel(self) -> None:
        if (running := self._running) is not None:
            with suppress(grpc.RpcError):
                await running.interrupt()

    async def _disconnect(self) -> None:
        running, session = self._running, self.kept.lose()
        if running is not None:
            running.leave()
        if session is not None:
            with suppress(grpc.RpcError):
                if running is not None:
                    # Apache Spark may continue an operation whose session has ended.
                    await self.kept.client.interrupt(running.id, session)
                await self.kept.client.end(session)

    def _follow(self) -> None:
        kept = self.kept
        self.database, self.schema, self.timezone = kept.database, kept.schema, kept.timezone
