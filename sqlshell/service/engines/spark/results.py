"""The responses of an operation as a result of the interface."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor
from functools import partial
from typing import Any, Final

import pyarrow as pa

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.duckdb.results.parquet import LARGE, ROW_GROUP, ROW_GROUP_BYTES
from sqlshell.service.engines.duckdb.results.render import instants
from sqlshell.service.engines.duckdb.results.rows import bounded, check_columns
from sqlshell.service.engines.engine import Outcome, RunOptions, Sink
from sqlshell.service.engines.server.result_file import ResultFile
from sqlshell.service.engines.spark import plans
from sqlshell.service.engines.spark.rendering import FEW, Rendering
from sqlshell.service.engines.spark.types import columns_of
from sqlshell.service.failure import Failure

SMALL_BYTES: Final = 1 << 20
"""Results of more than these bytes of Arrow, or of LARGE rows, are written to a file, if the sink has one."""


class Receiver:
    """Passes one result to a sink. Waiting for the sink, it asks for no further response."""

    def __init__(self, sql: str, options: RunOptions, sink: Sink, rendering: Rendering, threads: Executor) -> None:
        self._sql = sql
        self._options = options
        self._sink = sink
        self._rendering = rendering
        self._threads = threads
        self._columns: list[ColumnInfo] = []
        self._kinds: list[Any] = []
        self._held: list[pa.RecordBatch] = []
        self._held_rows = self._held_bytes = self._rows = 0
        self._file: ResultFile | None = None
        self._text = False
        self._writing: asyncio.Future[None] | None = None
        self._more = False

    async def outcome(self, responses: AsyncIterator[Any]) -> Outcome:
        """The outcome of an operation, after its rows.

        Raises Failure for a result that is too wide or does not begin with the first response, the errors of
        `responses`, duckdb.Error and OSError.
        """
        known = False
        try:
            async for response in responses:
                if response.HasField("schema"):
                    known = True
                    fields = response.schema.struct.fields
                    check_columns(len(fields), self._options)
                    self._columns = bounded(columns_of(response.schema), self._options)
                if response.WhichOneof("response_type") == "arrow_batch":
                    if not known:
                        message = "the server no longer has the first rows of the result; run the statement again"
                        raise Failure(sqlstate.SESSION_LOST, message)
                    for batch in pa.ipc.open_stream(response.arrow_batch.data):
                        self._hold(batch)
                    if self._more:
                        break
                    await self._relieve()
            return await self._finished()
        finally:
            if self._file is not None:
                await self._wait()
                await self._in_thread(self._file.close)

    def _hold(self, batch: pa.RecordBatch) -> None:
        limit = self._options.row_limit
        if limit is not None and self._rows + batch.num_rows > limit:
            self._more = True
            batch = batch.slice(0, limit - self._rows)
        self._rows += batch.num_rows
        self._held.append(batch)
        self._held_rows += batch.num_rows
        self._held_bytes += batch.nbytes

    async def _relieve(self) -> None:
        """Pass on the rows that are held, if they are many."""
        if self._file is None and not self._text:
            if self._held_rows < LARGE and self._held_bytes < SMALL_BYTES:
                return
            self._note_kinds()
            path = self._sink.file()
            self._text = path is None
            if path is not None:
                self._file = ResultFile(path, self._columns, [number for number, _ in instants(self._kinds)])
        if self._text or self._held_rows >= ROW_GROUP or self._held_bytes >= ROW_GROUP_BYTES:
            await self._pass_on()

    async def _pass_on(self) -> None:
        """Start writing the rows that are held, after those before them are written."""
        table = self._table()
        await self._wait()
        write = self._keep if self._file is None else partial(self._write, self._file)
        self._writing = asyncio.get_running_loop().run_in_executor(self._threads, write, table)

    async def _wait(self) -> None:
        if self._writing is not None:
            writing, self._writing = self._writing, None
            await writing

    async def _finished(self) -> Outcome:
        if self._file is not None:
            if self._held_rows:
                await self._pass_on()
            await self._wait()
            await self._in_thread(self._file.close)
            look = partial(self._rendering.partitions, self._file.path, self._file.rows, self._options)
            filed = await self._in_thread(look)
            return self._with_row_limit(Outcome(self._columns, instants(self._kinds), filed=filed))
        if not self._text and (answer := self._answer()) is not None:
            return Outcome(message=answer)
        self._note_kinds()
        if self._held_rows:
            if self._held_rows <= FEW:
                self._keep(self._table())
            else:
                await self._pass_on()
        await self._wait()
        return self._with_row_limit(Outcome(self._columns, instants(self._kinds)))

    def _answer(self) -> str | None:
        """The server's response to a statement that returns no rows; None for a result."""
        if not self._columns:
            return plans.answer(self._sql)
        if self._rows == 1 and plans.is_answer(self._sql, self._columns):
            return plans.answer(self._sql, self._held[0].column(0)[0].as_py())
        return None

    def _note_kinds(self) -> None:
        if self._held and not self._kinds:
            self._kinds = self._rendering.kinds(self._held[0])

    def _table(self) -> pa.Table:
        table = pa.Table.from_batches(self._held)
        self._held, self._held_rows, self._held_bytes = [], 0, 0
        return table

    def _keep(self, table: pa.Table) -> None:
        self._sink.keep(self._rendering.rows(table, self._kinds))

    def _write(self, file: ResultFile, table: pa.Table) -> None:
        self._sink.grown(file.write(self._rendering.to_file(table, self._kinds)))

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _with_row_limit(self, outcome: Outcome) -> Outcome:
        if not self._more:
            return outcome
        message = f"stopped after {self._options.row_limit:,} rows"
        return Outcome(outcome.columns, outcome.zoned, message, sqlstate.ROW_LIMIT, outcome.filed)
