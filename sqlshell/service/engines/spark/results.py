"""The responses of an operation as a result: batches of Arrow, rendered by DuckDB as those of a file are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.duckdb.results.parquet import WIDTH, row_width
from sqlshell.service.engines.duckdb.results.render import finished, instants, row, stored
from sqlshell.service.engines.duckdb.results.result_files import ResultFiles
from sqlshell.service.engines.duckdb.results.rows import bounded, check_columns, line, writers
from sqlshell.service.engines.engine import Outcome, RunOptions
from sqlshell.service.engines.server.result_writer import FEW, Pieces, ResultWriter
from sqlshell.service.engines.spark import plans
from sqlshell.service.engines.spark.types import columns_of
from sqlshell.service.failure import Failure

PARTS = ("value", "metadata")
VARIANT = {b"ARROW:extension:name": b"arrow.parquet.variant", b"ARROW:extension:metadata": b""}

NewWriter = Callable[[Pieces[pa.RecordBatch]], ResultWriter[pa.RecordBatch]]


class Receiver:
    """Passes one result to what `new_writer` returns. Waiting for that, it asks for no further response."""

    def __init__(self, sql: str, options: RunOptions, instance: ResultFiles, new_writer: NewWriter) -> None:
        self._sql = sql
        self._options = options
        self._instance = instance
        self._new_writer = new_writer
        self._columns: list[ColumnInfo] = []
        self._kinds: list[Any] = []
        self._first: pa.RecordBatch | None = None
        self._writer: ResultWriter[pa.RecordBatch] | None = None
        self._rows = 0
        self._more = False

    async def outcome(self, responses: AsyncIterator[Any]) -> Outcome:
        """The outcome of an operation, after its rows.

        Raises Failure for a result that is too wide or does not begin with the first response, OSError, and the errors
        of `responses`.
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
                    # A statement without rows has one without columns.
                    for batch in pa.ipc.open_stream(response.arrow_batch.data) if self._columns else ():
                        await self._take(batch)
                    if self._more:
                        break
            return await self._finished()
        finally:
            if self._writer is not None:
                await self._writer.aclose()

    async def _take(self, batch: pa.RecordBatch) -> None:
        limit = self._options.row_limit
        if limit is not None and self._rows + batch.num_rows > limit:
            self._more = True
            batch = batch.slice(0, limit - self._rows)
        if self._writer is None:
            self._first = batch
            batches = Batches(self._columns, batch, self._instance)
            self._kinds = batches.kinds
            self._writer = self._new_writer(batches)
        self._rows += batch.num_rows
        await self._writer.add(batch, batch.num_rows, batch.nbytes)

    async def _finished(self) -> Outcome:
        if (answer := self._answer()) is not None:
            return Outcome(message=answer)
        filed = await self._writer.finish() if self._writer is not None else None
        outcome = Outcome(self._columns, instants(self._kinds), filed=filed)
        if not self._more:
            return outcome
        message = f"stopped after {self._options.row_limit:,} rows"
        return Outcome(outcome.columns, outcome.zoned, message, sqlstate.ROW_LIMIT, filed)

    def _answer(self) -> str | None:
        """The server's response to a statement that returns no rows; None for a result."""
        if not self._columns:
            return plans.answer(self._sql)
        if self._first is not None and self._rows == 1 and plans.is_answer(self._sql, self._columns):
            return plans.answer(self._sql, self._first.column(0)[0].as_py())
        return None


class Batches:
    """Makes rows of the batches of a result in an instance of DuckDB. Raises Failure."""

    def __init__(self, columns: Sequence[ColumnInfo], first: pa.RecordBatch, instance: ResultFiles) -> None:
        with instance.cursor() as cursor:
            self.kinds: list[Any] = cursor.from_arrow(_numbered([first.slice(0, 0)])).types
        self.columns = columns
        self.zoned: Sequence[int] = [number for number, _ in instants(self.kinds)]
        self._instance = instance

    def texts(self, pieces: Sequence[pa.RecordBatch]) -> list[str]:
        table = _numbered(pieces)
        # For few rows, DuckDB takes longer to plan the SQL.
        if table.num_rows <= FEW and (writes := writers(self.kinds)) is not None:
            return [*map(partial(line, writes=writes), zip(*(item.to_pylist() for item in table.columns), strict=True))]
        with self._instance.cursor() as cursor:
            rendered = cursor.from_arrow(table).project(row(self.kinds, table.column_names))
            return [finished(text) for (text,) in rendered.fetchall()]

    def table(self, pieces: Sequence[pa.RecordBatch]) -> pa.Table:
        """The columns as they are written to a file: values, or their strings where a file has no such type."""
        table = _numbered(pieces)
        names = table.column_names
        columns = [stored(kind, name) for kind, name in zip(self.kinds, names, strict=True)]
        fixed, varying = row_width(self.kinds, names)
        wanted = [name for sql, name in zip(columns, names, strict=True) if sql != name]
        added = [*wanted, f"{fixed} + {varying} AS {WIDTH}"] if varying else wanted
        if not added:
            return table
        with self._instance.cursor() as cursor:
            values = ", ".join(f"{sql} AS {name}" for sql, name in zip(columns, names, strict=True))
            rendered = cursor.from_arrow(table).project(values).project(", ".join(added)).to_arrow_table()
        for name in wanted:
            table = table.set_column(names.index(name), name, rendered[name])
        return table.append_column(WIDTH, rendered[WIDTH]) if varying else table


def _numbered(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """A table with the columns c0, c1, …, those of VARIANT marked as DuckDB knows them."""
    table = pa.Table.from_batches(batches)
    table = table.rename_columns([f"c{number}" for number in range(table.num_columns)])
    for at, field in enumerate(table.schema):
        if _is_variant(field.type):
            table = table.set_column(at, field.with_metadata(VARIANT), table.column(at))
    return table


def _is_variant(kind: pa.DataType) -> bool:
    """Whether a type is the form in which Spark sends values of VARIANT."""
    if not pa.types.is_struct(kind) or kind.num_fields != len(PARTS):
        return False
    value, metadata = kind.field(0), kind.field(1)
    return (value.name, metadata.name) == PARTS and b"variant" in (metadata.metadata or {})
