"""Arrow IPC: files with an index (`.arrow`), and streams (`.arrows`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sqlshell.errors import UsageError
from sqlshell.output.typed.rows import TypedRows, TypedWriter
from sqlshell.output.writer import Summary
from sqlshell.result import Batch, FileUnavailable, Table

if TYPE_CHECKING:
    import duckdb

BATCH_ROWS = 122_880
"""The most rows of a record batch, which also ends with a row group of the result's file."""


class ArrowWriter(TypedWriter):
    """A record batch for every few MiB of rows.

    Raises UsageError where pyarrow is not installed, and OutputError for a value that is not of its type.
    """

    def __init__(self, *, stream: bool = False) -> None:
        super().__init__()
        try:
            import pyarrow
            import pyarrow.ipc
        except ImportError:
            raise UsageError(
                "the arrow formats require the package pyarrow (extra: arrow)", "run: pip install pyarrow"
            ) from None
        self._arrow: Any = pyarrow
        self._open_writer = pyarrow.ipc.new_stream if stream else pyarrow.ipc.new_file
        self._stream = stream
        self._written = _WrittenBytes()
        self._writer: Any = None
        self._row_count = 0

    @property
    def buffering(self) -> bool:
        return self._stream and self._rows is not None and bool(self._rows.size)

    def write(self, batch: Batch) -> Iterator[bytes]:
        if self._rows is None:
            return
        self._rows.hold(batch)
        if self._rows.full:
            yield from self._convert(self._rows)

    def settle(self) -> Iterator[bytes]:
        if self._rows is not None and self.buffering:
            yield from self._convert(self._rows)

    def end(self, summary: Summary) -> Iterator[bytes]:
        if self._rows is None:
            return
        try:
            if self._rows.size or self._writer is None:
                yield from self._convert(self._rows)
            yield from self._finish()
        finally:
            self._rows.close()

    def from_table(self, table: Table) -> Iterator[bytes]:
        rows = self._rows
        assert rows is not None
        try:
            with rows.of_table(table) as query:
                yield from self._batches(table.connection, query)
        except FileUnavailable as error:
            raise FileUnavailable(self._row_count) from error
        yield from self._finish()

    def _convert(self, rows: TypedRows) -> Iterator[bytes]:
        with rows.converting() as query:
            yield from self._batches(rows.root, query)

    def _batches(self, root: duckdb.DuckDBPyConnection, query: str) -> Iterator[bytes]:
        reader = root.sql(query).to_arrow_reader(BATCH_ROWS)
        # Its first rows show whether DuckDB can read them, before anything is written.
        batch = next(reader, None)
        if self._writer is None:
            self._writer = self._open_writer(self._arrow.PythonFile(self._written, "w"), reader.schema)
        while batch is not None:
            self._writer.write_batch(batch)
            self._row_count += batch.num_rows
            yield self._written.take_all()
            batch = next(reader, None)

    def _finish(self) -> Iterator[bytes]:
        self._writer.close()
        yield self._written.take_all()


class _WrittenBytes:
    """A file that keeps what is written to it until it is take_all."""

    closed = False

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._at = 0

    def write(self, data: Any) -> int:
        piece = bytes(data)
        self._pieces.append(piece)
        self._at += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._at

    def flush(self) -> None:
        return

    def close(self) -> None:
        return

    def take_all(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)
