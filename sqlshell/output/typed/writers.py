"""The formats with typed columns: Parquet files, Arrow IPC files with an index (`.arrow`), and streams (`.arrows`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlshell.errors import UsageError
from sqlshell.output.typed.rows import TypedRows
from sqlshell.output.writer import Summary, Writer
from sqlshell.result import Batch, Column, FileUnavailable, Table
from sqlshell.sql.identifiers import literal
from sqlshell.text import how_to_install

if TYPE_CHECKING:
    import duckdb

BATCH_ROWS = 122_880
"""The most rows of a record batch of Arrow, which also ends with a row group of the result's file."""

ROW_GROUP_BYTES = 32 << 20
"""The approximate size of a row group of Parquet in memory, also where its rows are wide."""

CHUNK = 1 << 20


class TypedWriter(Writer):
    """Collects rows as text, and converts a few MiB of them at a time. Raises OutputError for a value that is not of
    its type.
    """

    by_sql = "table"

    def __init__(self) -> None:
        self._rows: TypedRows | None = None
        self._converted = False

    def begin(self, columns: Sequence[Column]) -> Iterable[bytes]:
        if columns:
            self._rows = TypedRows(columns)
        return []

    def write(self, batch: Batch) -> Iterator[bytes]:
        if self._rows is None:
            return
        self._rows.hold(batch)
        if self._rows.full:
            yield from self._convert(self._rows)

    def end(self, summary: Summary) -> Iterator[bytes]:
        if self._rows is None:
            return
        try:
            if self._rows.size or not self._converted:
                yield from self._convert(self._rows)
            yield from self._finish(self._rows)
        finally:
            self._rows.close()

    def interrupt(self) -> None:
        if self._rows is not None:
            self._rows.interrupt()

    def _convert(self, rows: TypedRows) -> Iterator[bytes]:
        """Convert the rows that are held."""
        self._converted = True
        with rows.converting() as query:
            yield from self._make(rows, query)

    @abstractmethod
    def _make(self, rows: TypedRows, query: str) -> Iterable[bytes]:
        """Write what a query returns."""

    @abstractmethod
    def _finish(self, rows: TypedRows) -> Iterable[bytes]:
        """End the file."""


class ParquetWriter(TypedWriter):
    """Rows go into files of a few MiB as they come, and these into one at the end, so that memory stays flat."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[Path] = []

    def from_table(self, table: Table) -> Iterator[bytes]:
        rows = self._rows
        assert rows is not None
        with rows.of_table(table) as query:
            _copy(table.connection, query, len(rows.names), table.made)
        table.place.unlink()
        yield from _read(table.made)

    def _make(self, rows: TypedRows, query: str) -> Iterable[bytes]:
        piece = rows.folder / f"{len(self._pieces)}.parquet"
        _copy(rows.root, query, len(rows.names), piece)
        self._pieces.append(piece)
        return []

    def _finish(self, rows: TypedRows) -> Iterable[bytes]:
        path = self._pieces[0]
        if len(self._pieces) > 1:
            path = rows.folder / "made.parquet"
            files = ", ".join(literal(str(piece)) for piece in self._pieces)
            _copy(rows.root, f"FROM read_parquet([{files}])", len(rows.names), path)
        return _read(path)


def _copy(root: duckdb.DuckDBPyConnection, query: str, columns: int, to: Path) -> None:
    # From a source without batches, DuckDB copies row by row. Otherwise it checks the size of a row group only between
    # batches, which may have 122,880 rows.
    query += f" UNION ALL SELECT {', '.join(['NULL'] * columns)} FROM range(0)"
    root.execute(f"COPY ({query}) TO {literal(str(to))} (FORMAT parquet, ROW_GROUP_SIZE_BYTES {ROW_GROUP_BYTES})")


def _read(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


class ArrowWriter(TypedWriter):
    """A record batch for every few MiB of rows. Raises UsageError where pyarrow is not installed."""

    def __init__(self, *, stream: bool = False) -> None:
        super().__init__()
        try:
            import pyarrow
            import pyarrow.ipc
        except ImportError:
            raise UsageError(
                "the arrow formats require the package pyarrow (extra: arrow)", how_to_install("pyarrow")
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

    def settle(self) -> Iterable[bytes]:
        return self._convert(self._rows) if self._rows is not None and self.buffering else []

    def from_table(self, table: Table) -> Iterator[bytes]:
        rows = self._rows
        assert rows is not None
        try:
            with rows.of_table(table) as query:
                yield from self._batches(table.connection, query)
        except FileUnavailable as error:
            raise FileUnavailable(self._row_count) from error
        yield from self._finish(rows)

    def _make(self, rows: TypedRows, query: str) -> Iterable[bytes]:
        return self._batches(rows.root, query)

    def _batches(self, root: duckdb.DuckDBPyConnection, query: str) -> Iterator[bytes]:
        reader = root.sql(query).to_arrow_reader(BATCH_ROWS)
        # Its first rows show whether DuckDB can read them, before anything is written.
        batch = next(reader, None)
        if self._writer is None:
            self._writer = self._open_writer(self._arrow.PythonFile(self._written, "w"), reader.schema)
        self._converted = True
        while batch is not None:
            self._writer.write_batch(batch)
            self._row_count += batch.num_rows
            yield self._written.take_all()
            batch = next(reader, None)

    def _finish(self, rows: TypedRows) -> Iterable[bytes]:
        self._writer.close()
        return [self._written.take_all()]


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
        """Return what was written, and keep it no longer."""
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)
