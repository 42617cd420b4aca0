"""A result as a temporary CSV file, for DuckDB to read."""

from __future__ import annotations

from msgspec.structs import replace

from sqlshell.errors import OutputError
from sqlshell.origin import Own
from sqlshell.output.copy import copy
from sqlshell.output.sinks.sink import FileSink
from sqlshell.output.writer import WriterOptions
from sqlshell.output.writers.delimited import CsvWriter
from sqlshell.result import Batch, BatchWrapper, Column, Result


async def write_csv_file(result: Result, path: Own, limit: int, padding: str) -> None:
    """Write the rows of a result without a header. A result of one column gets a second one of this name.

    Raises OutputError if the file would have more than `limit` bytes, and what reading the result raises.
    """
    if len(result.columns) == 1:
        columns = [*result.columns, Column(padding, "INTEGER")]
        result = replace(result, columns=columns, batches=_Padded(result.batches), whole=None)
    sink = _Bounded(path, limit)
    try:
        await copy(result, CsvWriter(WriterOptions(header=False)), sink)
    finally:
        sink.close()


class _Padded(BatchWrapper):
    """Rows of one column, with a second column added."""

    def each(self, batch: Batch) -> Batch:
        return Batch(2, rows=[[row[0], "1"] for row in batch.rows])


class _Bounded(FileSink):
    """A file of at most `limit` bytes."""

    def __init__(self, path: Own, limit: int) -> None:
        super().__init__(path)
        self._left = self._limit = limit

    def write(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            raise OutputError(f"the result is larger than {self._limit >> 30} GB", "select fewer rows or columns first")
        super().write(data)
