"""Parquet files with typed columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sqlshell.output.typed.rows import TypedRows, TypedWriter
from sqlshell.output.writer import Summary, Unbuffered
from sqlshell.result import Batch, Table
from sqlshell.sql.identifiers import literal

if TYPE_CHECKING:
    import duckdb

ROW_GROUP_BYTES = 32 << 20
"""The approximate size of a row group in memory, also where its rows are wide."""

CHUNK = 1 << 20


class ParquetWriter(TypedWriter, Unbuffered):
    """Rows go into files of a few MiB as they come, and these into one at the end, so that memory stays flat.

    Raises OutputError for a value that is not of its type.
    """

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[Path] = []

    def write(self, batch: Batch) -> Iterator[bytes]:
        if self._rows is None:
            return
        self._rows.hold(batch)
        if self._rows.full:
            self._add_piece(self._rows)
        yield from ()

    def end(self, summary: Summary) -> Iterator[bytes]:
        if self._rows is None:
            return
        try:
            if self._rows.size or not self._pieces:
                self._add_piece(self._rows)
            yield from _read(self._pieces[0] if len(self._pieces) == 1 else self._join_pieces(self._rows))
        finally:
            self._rows.close()

    def from_table(self, table: Table) -> Iterator[bytes]:
        rows = self._rows
        assert rows is not None
        with rows.of_table(table) as query:
            _copy(table.connection, query, len(rows.names), table.made)
        table.place.unlink()
        yield from _read(table.made)

    def _add_piece(self, rows: TypedRows) -> None:
        piece = rows.folder / f"{len(self._pieces)}.parquet"
        with rows.converting() as query:
            _copy(rows.root, query, len(rows.names), piece)
        self._pieces.append(piece)

    def _join_pieces(self, rows: TypedRows) -> Path:
        path = rows.folder / "made.parquet"
        files = ", ".join(literal(str(piece)) for piece in self._pieces)
        _copy(rows.root, f"FROM read_parquet([{files}])", len(rows.names), path)
        return path


def _copy(root: duckdb.DuckDBPyConnection, query: str, columns: int, to: Path) -> None:
    # From a source without batches, DuckDB copies row by row. Otherwise it checks the size of a row group only between
    # batches, which may have 122,880 rows.
    query += f" UNION ALL SELECT {', '.join(['NULL'] * columns)} FROM range(0)"
    root.execute(f"COPY ({query}) TO {literal(str(to))} (FORMAT parquet, ROW_GROUP_SIZE_BYTES {ROW_GROUP_BYTES})")


def _read(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk
