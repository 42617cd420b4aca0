"""A result's rows with their types, in a DuckDB instance of their own."""

from __future__ import annotations

import contextlib
import re
import shutil
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from sqlshell.errors import OutputError, reason
from sqlshell.interface.types import Kind
from sqlshell.output.writer import WriterOptions
from sqlshell.output.writers.column_names import distinct_in_any_case
from sqlshell.output.writers.delimited import CsvWriter
from sqlshell.result import Batch, Column, FileUnavailable, Table
from sqlshell.runtime.isolated_duckdb import isolated_duckdb
from sqlshell.runtime.scratch import scratch
from sqlshell.sql.duckdb_types import PADDING, select_from_csv
from sqlshell.sql.identifiers import always_quoted
from sqlshell.sql.typed_values import TEXT, file_type, typed_value

if TYPE_CHECKING:
    import duckdb

CONVERTED_BYTES = 8 << 20
"""Rows are converted together when they have this many bytes as CSV."""

MEMORY = "512MB"
_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*+"|-?[0-9][0-9.eE+-]*+')
_LONG_NUMBER = re.compile(r"[0-9.]{17}")
"""DuckDB reads a number of JSON as a double, with 15 digits that are certain, unless it is written as a string."""

SHOWN_CHARACTERS = 80


class CsvRows:
    """Writes rows as select_from_csv() reads them: those of one column have a second one."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._csv = CsvWriter(WriterOptions(header=False))
        self._padded = len(columns) == 1
        list(self._csv.begin([*columns, Column(PADDING)] if self._padded else columns))

    def write(self, batch: Batch) -> Iterable[bytes]:
        return self._csv.write(Batch(2, rows=[[row[0], "1"] for row in batch.rows]) if self._padded else batch)


class TypedRows:
    """Converts rows of strings, or those of a table. Raises OutputError for a value that is not of its type.

    `folder` is for temporary files, and everything in it is removed by close() or with this object. Methods are called
    from one thread at a time.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        self.names = distinct_in_any_case(columns)
        self._csv = CsvRows(columns)
        self._decimals = [
            number
            for number, column in enumerate(columns)
            if column.kind is Kind.NESTED and "DECIMAL" in file_type(column.type)
        ]
        self._chunks: list[bytes] = []
        self.size = 0
        """The bytes of the rows that are held."""

    @cached_property
    def folder(self) -> Path:
        made = scratch().folder("typed")
        weakref.finalize(self, shutil.rmtree, made, ignore_errors=True)
        return made

    @cached_property
    def root(self) -> duckdb.DuckDBPyConnection:
        """An instance of DuckDB for the files in `folder`."""
        return isolated_duckdb(MEMORY, folder=self.folder, spilled=self.folder / "spilled")

    def close(self) -> None:
        if "root" in self.__dict__:
            self.root.close()
        if "folder" in self.__dict__:
            shutil.rmtree(self.folder, ignore_errors=True)

    def interrupt(self) -> None:
        if "root" in self.__dict__:
            self.root.interrupt()

    @property
    def full(self) -> bool:
        """Whether the rows that are held should be converted."""
        return self.size >= CONVERTED_BYTES

    def hold(self, batch: Batch) -> None:
        """Keep the rows of a batch until converting()."""
        if self._decimals:
            batch = Batch(batch.width, rows=[self._with_exact_numbers(row) for row in batch.rows])
        for chunk in self._csv.write(batch):
            self._chunks.append(chunk)
            self.size += len(chunk)

    @contextlib.contextmanager
    def converting(self) -> Iterator[str]:
        """A query for the rows that are held, which are dropped afterwards. Raises OutputError."""
        place = self.folder / "rows.csv"
        with place.open("wb") as file:
            file.writelines(self._chunks)
        self._chunks, self.size = [], 0
        names = [f"c{number}" for number in range(len(self._columns))]
        strings = f"({select_from_csv(str(place), names, [TEXT] * len(names))})"
        values = [typed_value(column.type, name) for column, name in zip(self._columns, names, strict=True)]
        try:
            with self._naming_misfits(self.root, strings, values, _output_error):
                yield self._select(values, strings)
        finally:
            place.unlink(missing_ok=True)

    @contextlib.contextmanager
    def of_table(self, table: Table) -> Iterator[str]:
        """A query for the rows of a table. Raises OutputError, and FileUnavailable if DuckDB cannot read them."""
        values = [
            typed_value(item.column.type, item.name)
            if item.is_text
            else f"CAST({item.name} AS {file_type(item.column.type)})"
            for item in table.columns
        ]
        with self._naming_misfits(table.connection, table.source, values, lambda _: FileUnavailable()):
            yield self._select(values, table.source)

    def _with_exact_numbers(self, row: Sequence[str | None]) -> list[str | None]:
        """A row whose nested values have all numbers as strings, if one is long."""
        values = list(row)
        for number in self._decimals:
            text = values[number]
            if text is not None and _LONG_NUMBER.search(text):
                values[number] = _NUMBER.sub(lambda match: match[0] if match[0][0] == '"' else f'"{match[0]}"', text)
        return values

    def _select(self, values: Sequence[str], source: str) -> str:
        named = (f"{value} AS {always_quoted(name)}" for value, name in zip(values, self.names, strict=True))
        return f"SELECT {', '.join(named)} FROM {source}"

    @contextlib.contextmanager
    def _naming_misfits(
        self,
        root: duckdb.DuckDBPyConnection,
        source: str,
        values: Sequence[str],
        other: Callable[[Exception], Exception],
    ) -> Iterator[None]:
        """Raises OutputError for a value that is not of its type and an error of the disk, and what `other` makes of
        another error of DuckDB."""
        import duckdb

        try:
            yield
        except (duckdb.ConversionException, duckdb.InvalidInputException, duckdb.OutOfRangeException) as error:
            raise self._misfit(root, source, values) or other(error) from error
        except duckdb.Error as error:
            raise other(error) from error
        except OSError as error:
            if error.errno is None:
                # An error of DuckDB, raised by pyarrow.
                raise self._misfit(root, source, values) or other(error) from error
            raise OutputError(
                f"cannot write a temporary file: {reason(error)}",
                "set TMPDIR to a writable directory with enough space",
            ) from error

    def _misfit(self, root: duckdb.DuckDBPyConnection, source: str, values: Sequence[str]) -> OutputError | None:
        """The error for the first column with a value that is not of its type."""
        names = [f"c{number}" for number in range(len(self._columns))]
        unfit = misfit(root, source, names, values)
        if unfit is None:
            return None
        column, shown = self._columns[unfit[0]], unfit[1]
        return OutputError(
            f'column "{column.name}": {shown!r} is not a value of {column.type}',
            "cast the column to VARCHAR in the query, or write csv or jsonl",
        )


def misfit(
    connection: duckdb.DuckDBPyConnection, source: str, names: Sequence[str], values: Sequence[str]
) -> tuple[int, str] | None:
    """The first column with a string that its SQL in `values` cannot convert, and the beginning of that string."""
    import duckdb

    for number, (name, value) in enumerate(zip(names, values, strict=True)):
        try:
            rows = connection.execute(
                f"SELECT {name}::VARCHAR FROM {source} WHERE {name} IS NOT NULL AND TRY({value}) IS NULL LIMIT 1"
            ).fetchall()
        except duckdb.Error:
            continue
        if rows and rows[0][0].strip() != "null":
            text = rows[0][0]
            return number, text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"
    return None


def _output_error(error: Exception) -> OutputError:
    return OutputError(f"DuckDB cannot convert the rows: {str(error).splitlines()[0]}", "write csv or jsonl instead")
