"""Finished results: partitions of files as text, and files made on demand of results that are kept as text."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import duckdb

from sqlshell.interface.arrow import ArrowError, stretches
from sqlshell.interface.models import ColumnInfo
from sqlshell.interface.strings import ZONED, string_of
from sqlshell.runtime.isolated_duckdb import hide_progress, isolated_duckdb
from sqlshell.runtime.unused_memory import return_unused_memory
from sqlshell.service.engines.engine import RunOptions
from sqlshell.service.engines.files.failures import failure
from sqlshell.service.engines.files.parquet import WIDTH, file_columns, file_rows, row_width, to_file
from sqlshell.service.engines.files.render import finished_bytes, row, type_id
from sqlshell.sql.identifiers import literal
from sqlshell.sql.typed_values import file_type, typed_value

MEMORY: Final = "256MB"
_MAGIC: Final = b"PAR1"
_READING: Final = {
    "enable_external_file_cache": "false",
    "autoinstall_known_extensions": "false",
    "temp_directory": "''",
    "arrow_large_buffer_size": "true",
}

_KEPT: Final = {
    **{
        name: name.lower()
        for name in ("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE", "DATE")
    },
    "TIMESTAMP(6)": "timestamp",
    "TIMESTAMP_LTZ(6)": ZONED,
    "VARBINARY": "blob",
}
"""Ids of DuckDB's types by those of the interface, besides DECIMAL, whose values a file keeps."""


class ResultFiles:
    """Implements Results: DuckDB reads and writes the files of results in this process, whatever the engine is.

    It does so in an instance beside the engine's, opened for the first of its callers, in any thread, and closed by
    the second of two calls of trim_memory() without one between them. Methods raise Failure.
    """

    def __init__(self) -> None:
        self.threads = 0
        """The number of threads; with 0 DuckDB chooses."""
        self._opening = threading.Lock()
        self._instance: duckdb.DuckDBPyConnection | None = None
        self._cursors = 0
        self._used = False
        """Whether it was used since the latest call of trim_memory()."""

    @property
    def _own_threads(self) -> dict[str, str]:
        return {"threads": str(self.threads)} if self.threads else {}

    def trim_memory(self) -> None:
        with self._opening:
            used, self._used = self._used or self._cursors > 0, False
        if not used and self._instance is not None:
            self.close_files()
            return_unused_memory()

    def close_files(self) -> None:
        """Close the instance, unless it is in use."""
        with self._opening:
            if self._instance is not None and not self._cursors:
                self._instance.close()
                self._instance = None

    @contextlib.contextmanager
    def cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor for a block, whose errors of DuckDB become Failure."""
        with self._opening:
            if self._instance is None:
                self._instance = duckdb.connect(":memory:")
                hide_progress(self._instance)
                for name, value in (_READING | self._own_threads).items():
                    self._instance.execute(f"SET {name} = {value}")
            cursor = self._instance.cursor()
            self._cursors += 1
            self._used = True
        try:
            yield cursor
        except duckdb.Error as error:
            raise failure(error) from error
        finally:
            cursor.close()
            with self._opening:
                self._cursors -= 1

    def read(self, path: Path, start: int, counts: Sequence[int]) -> list[bytes]:
        """Render partitions of `counts` rows from row `start` on; rows are separated by commas."""
        source = file_rows(path)
        with self.cursor() as cursor:
            names, kinds = file_columns(cursor, path)
            if WIDTH in names:
                # It is the last one.
                del names[-1], kinds[-1]
            rendered = cursor.sql(
                f"SELECT {row(kinds, names, ',')} FROM {source} "
                f"WHERE file_row_number BETWEEN {start} AND {start + sum(counts) - 1}"
            )
            try:
                # Whole partitions as bytes: a Python string for each row would take as long as rendering it.
                return [finished_bytes(text[:-1]) for text in stretches(rendered, counts)]
            except ArrowError as error:
                raise duckdb.Error(str(error)) from error

    def partitions(self, path: Path, rows: int, options: RunOptions) -> list[tuple[int, int]]:
        """Return the rows and approximate bytes of each partition of a file: both are limited, except for single
        rows."""
        most, limit = options.partition_rows, options.partition_bytes
        with self.cursor() as cursor:
            names, kinds = file_columns(cursor, path)
            if WIDTH not in names:
                width, _ = row_width(kinds, names)
                most = max(1, min(most, limit // width))
                return [(count, count * width) for count in (min(most, rows - start) for start in range(0, rows, most))]
            source = f"(SELECT {WIDTH} AS w, file_row_number AS n FROM {file_rows(path)})"
            block = f"n // {most}"
            blocks = cursor.execute(
                f"SELECT count(*), sum(w)::BIGINT FROM {source} GROUP BY {block} ORDER BY {block}"
            ).fetchall()
            if all(size <= limit for _, size in blocks):
                return blocks
            part = f"(sum(w) OVER (PARTITION BY {block} ORDER BY n) - w)::BIGINT // {limit}"
            return cursor.execute(
                f"SELECT count(*), sum(w)::BIGINT FROM (SELECT w, {block} AS block, {part} AS part FROM {source}) "
                "GROUP BY block, part ORDER BY block, part"
            ).fetchall()

    def convert(
        self, source: Path, ends: Sequence[int], columns: Sequence[ColumnInfo], instants: Sequence[int], target: Path
    ) -> None:
        """Write the rows in `source`, JSON arrays separated by commas or a Parquet file, to a file as copy_to() makes
        it.

        `ends` are the ends of the partitions in bytes; one at a time is in memory. A column whose values would not be
        read back unchanged is stored as strings. Raises also OSError.
        """
        folder = target.with_name(f"{target.name}.parts")
        folder.mkdir(mode=0o700)
        files, spilled = [source, target], folder / "spilled"
        try:
            with isolated_duckdb(
                MEMORY, files=files, folder=folder, spilled=spilled, settings=self._own_threads
            ) as root:
                pieces = [source] if _is_file(source) else list(_pieces(root, source, ends, len(columns), folder))
                rows = f"read_parquet([{', '.join(literal(str(piece)) for piece in pieces)}])"
                query = f"SELECT {', '.join(_values(root, rows, columns))} FROM {rows}"
                converted = root.sql(query)
                types = dict(zip(converted.columns, map(type_id, converted.types), strict=True))
                root.execute(to_file(query, types, target, columns, instants))
        except duckdb.Error as error:
            raise failure(error) from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _is_file(source: Path) -> bool:
    with source.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _pieces(
    root: duckdb.DuckDBPyConnection, source: Path, ends: Sequence[int], width: int, folder: Path
) -> Iterator[Path]:
    """Parquet files of strings, one for each partition."""
    places = ", ".join(f"r[{number + 1}] AS c{number}" for number in range(width))
    start = 0
    with source.open("rb") as file:
        for number, end in enumerate([*ends] or [0]):
            # A comma separates the partitions.
            body = file.read(end - start).strip(b",").decode()
            start = end
            piece = folder / f"{number}.parquet"
            root.execute(
                f"COPY (SELECT {places} FROM (SELECT unnest(CAST($1::JSON AS VARCHAR[][])) AS r)) "
                f"TO {literal(str(piece))} (FORMAT parquet)",
                [f"[{body}]"],
            )
            yield piece


def _values(root: duckdb.DuckDBPyConnection, rows: str, columns: Sequence[ColumnInfo]) -> list[str]:
    """SQL for each column: typed if all its values can be read back unchanged."""
    values = [f"c{number}" for number in range(len(columns))]
    checks: list[tuple[int, str]] = []
    for number, column in enumerate(columns):
        declared = column.type or ""
        name, type_id = f"c{number}", _KEPT.get(declared, "decimal" if file_type(declared) == declared else "")
        if type_id and (type_id != "decimal" or declared.startswith("DECIMAL(")):
            value = typed_value(declared, name)
            again = string_of(type_id, f"TRY({value})")
            checks.append((number, f"coalesce(bool_and(({again}) IS NOT DISTINCT FROM {name}), true)"))
            values[number] = f"{value} AS {name}"
    if checks:
        [outcomes] = root.execute(f"SELECT {', '.join(check for _, check in checks)} FROM {rows}").fetchall()
        for (number, _), unchanged in zip(checks, outcomes, strict=True):
            if not unchanged:
                values[number] = f"c{number}"
    return values
