"""The responses of an operation as a result: batches of Arrow, rendered by DuckDB as those of a file are."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from functools import partial
from typing import Any

import pyarrow as pa

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.engine import Outcome, RunOptions
from sqlshell.service.engines.files.parquet import WIDTH, row_width
from sqlshell.service.engines.files.render import finished, instants, row, stored
from sqlshell.service.engines.files.result_files import ResultFiles
from sqlshell.service.engines.files.result_writer import FEW, Pieces, ResultWriter
from sqlshell.service.engines.files.texts import bounded, line, writers
from sqlshell.service.engines.spark import plans
from sqlshell.service.engines.spark.types import columns_of
from sqlshell.service.failure import Failure
from sqlshell.text import format_count

PARTS = ("value", "metadata")
VARIANT = {b"ARROW:extension:name": b"arrow.parquet.variant", b"ARROW:extension:metadata": b""}

NewWriter = Callable[[Pieces[pa.RecordBatch]], ResultWriter[pa.RecordBatch]]


async def received(
    responses: AsyncIterator[Any], sql: str, options: RunOptions, instance: ResultFiles, new_writer: NewWriter
) -> Outcome:
    """Return the outcome of an operation, whose rows are passed to what `new_writer` returns. Waiting for that, it asks
    for no further response.

    Raises Failure for a result that is too wide or does not begin with the first response, OSError, and the errors of
    `responses`.
    """
    columns: list[ColumnInfo] | None = None
    batches: Batches | None = None
    rows, limit = 0, sys.maxsize if options.row_limit is None else options.row_limit
    async with AsyncExitStack() as stack:
        async for response in responses:
            if response.HasField("schema"):
                columns = bounded(columns_of(response.schema), options)
            if response.WhichOneof("response_type") != "arrow_batch":
                continue
            if columns is None:
                message = "the server no longer has the first rows of the result; run the statement again"
                raise Failure(sqlstate.SESSION_LOST, message)
            # A statement without rows has a batch without columns.
            for batch in pa.ipc.open_stream(response.arrow_batch.data) if columns else ():
                if batches is None:
                    batches = Batches(columns, batch, instance)
                    writer = await stack.enter_async_context(aclosing(new_writer(batches)))
                kept = batch.slice(0, max(0, limit - rows))
                rows += batch.num_rows
                await writer.add(kept, kept.num_rows, kept.nbytes)
            if rows > limit:
                break
        if not columns:
            return Outcome(message=plans.answer(sql))
        if batches is None:
            return Outcome(columns)
        if rows == 1 and plans.is_answer(sql, columns):
            return Outcome(message=plans.answer(sql, batches.first.column(0)[0].as_py()))
        stopped = f"stopped after {format_count(limit, 'row')}"
        message, state = (stopped, sqlstate.ROW_LIMIT) if rows > limit else ("", sqlstate.DONE)
        return Outcome(columns, instants(batches.kinds), message, state, await writer.finish())


class Batches:
    """Makes rows of the batches of a result in an instance of DuckDB. Raises Failure."""

    def __init__(self, columns: Sequence[ColumnInfo], first: pa.RecordBatch, instance: ResultFiles) -> None:
        with instance.cursor() as cursor:
            self.kinds: list[Any] = cursor.from_arrow(_numbered([first.slice(0, 0)])).types
        self.columns = columns
        self.first = first
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
        """Return the columns as they are written to a file: values, or their strings where a file has no such type."""
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
