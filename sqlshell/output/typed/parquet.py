"""Parquet files with typed columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from sqlshell.output.typed.rows import TypedRows, TypedWriter
from sqlshell.output.writer import Summary, Unbuffered
from sqlshell.result import Batch, StoredColumn
from sqlshell.sql.identifiers import literal

ROW_GROUP_BYTES = 32 << 20
"""The approximate size of a row group in memory, also where its rows are wide."""

WIDE = 1024
"""Rows of at least this many bytes are copied one by one, in one thread: DuckDB checks the size of a row group only
between batches, which may have 122,880 rows."""

CHUNK = 1 << 20


class ParquetWriter(TypedWriter, Unbuffered):
    """Rows go into files of a few MiB as they come, and these into one at the end, so that memory stays flat.

    Raises OutputError for a value that is not of its type.
    """

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[Path] = []
        self._count = 0
        self._size = 0

    def write(self, batch: Batch) -> Iterator[bytes]:
        if self._rows is None:
            return
        self._count += len(batch.rows) if batch.announced is None else batch.announced
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

    def from_file(self, columns: Sequence[StoredColumn], *, own: bool) -> Iterator[bytes]:
        rows = self._rows
        assert rows is not None
        path = rows.folder / "made.parquet"
        with rows.of_file(columns) as query:
            if own and (pages := rows.typed_pages(query)) is not None:
                yield from _read(rows.whole_place, pages[0])
                yield pages[1]
                return
            _copy(rows, query, path, wide=rows.row_bytes() >= WIDE)
            rows.whole_place.unlink()
            yield from _read(path)

    def _add_piece(self, rows: TypedRows) -> None:
        piece = rows.folder / f"{len(self._pieces)}.parquet"
        self._size += rows.size
        with rows.converting() as query:
            _copy(rows, query, piece)
        self._pieces.append(piece)

    def _join_pieces(self, rows: TypedRows) -> Path:
        path = rows.folder / "made.parquet"
        files = ", ".join(literal(str(piece)) for piece in self._pieces)
        _copy(rows, f"FROM read_parquet([{files}])", path, wide=self._size >= WIDE * self._count)
        return path


def _copy(rows: TypedRows, query: str, to: Path, *, wide: bool = False) -> None:
    if wide:
        query += f" UNION ALL SELECT {', '.join(['NULL'] * len(rows.names))} FROM range(0)"
    rows.root.execute(f"COPY ({query}) TO {literal(str(to))} (FORMAT parquet, ROW_GROUP_SIZE_BYTES {ROW_GROUP_BYTES})")


def _read(path: Path, size: int | None = None) -> Iterator[bytes]:
    """The bytes of a file, or the first `size` of them."""
    left = path.stat().st_size if size is None else size
    with path.open("rb") as file:
        while chunk := file.read(min(CHUNK, left)):
            left -= len(chunk)
            yield chunk
