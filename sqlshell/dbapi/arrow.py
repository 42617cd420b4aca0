"""The rows that a cursor has not fetched yet as an Arrow stream or a data frame, typed by DuckDB."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import warnings
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlshell.dbapi.exceptions import DataError, NotSupportedError, ProgrammingError
from sqlshell.interface.types import Kind, kind, size_of
from sqlshell.output.typed.text_table import text_table
from sqlshell.output.writers.column_names import distinct_names
from sqlshell.result import Column, FileUnavailable, Result, Table
from sqlshell.sql.duckdb_types import TEXT, UNSIZED, digits, distinct_for_duckdb, exact_type, sized, value_of
from sqlshell.sql.identifiers import always_quoted

if TYPE_CHECKING:
    import duckdb


class ArrowResult:
    """A result for consumers of the Arrow PyCapsule interface, such as pyarrow, polars and DuckDB.

    The rows are in a temporary file. Each stream reads it from the beginning, a few thousand rows at a time.
    """

    def __init__(self, table: Table, query: str, columns: Sequence[Column]) -> None:
        self._table = table
        self._query = query
        self._columns = columns

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        # A connection has one open stream at a time.
        return self._table.connection.cursor().sql(self._query).__arrow_c_stream__(requested_schema)

    @property
    def relation(self) -> duckdb.DuckDBPyRelation:
        """The rows as a relation of DuckDB's Python module, which this object has to outlive."""
        return self._table.connection.sql(self._query)

    def to_pandas(self) -> Any:
        """A pandas DataFrame. Decimals are objects of the class Decimal; those in lists, maps and structs are floats
        where pyarrow is not installed. Raises DataError."""
        import duckdb
        import pandas

        through_arrow = importlib.util.find_spec("pyarrow") is not None
        exact = [
            name
            for name, column in zip(self.relation.columns, self._columns, strict=True)
            if column.kind is Kind.DECIMAL or (through_arrow and "DECIMAL" in column.type.upper())
        ]
        nothing = ", ".join(f"NULL AS {always_quoted(name)}" for name in exact)
        try:
            with warnings.catch_warnings():
                # DuckDB calls methods that pandas 3.1 has deprecated.
                warnings.simplefilter("ignore")
                frame = self.relation.project(f"* REPLACE ({nothing})" if exact else "*").df()
            for name, values in self._decimals(exact).items():
                # pandas has no type for decimals.
                frame[name] = pandas.Series(values, dtype=object)
        except duckdb.Error as error:
            raise _unfit(error) from None
        return frame

    def _decimals(self, names: Sequence[str]) -> dict[str, Any]:
        """The values of columns of decimals as objects of the class Decimal. Raises duckdb.Error."""
        if not names:
            return {}
        quoted = [always_quoted(name) for name in names]
        if importlib.util.find_spec("pyarrow") is not None:
            # In a fifth of the time that DuckDB and Python take for it.
            columns = self.relation.project(", ".join(quoted)).to_arrow_table().columns
            return dict(zip(names, (column.to_pandas(maps_as_pydicts="lossy") for column in columns), strict=True))
        texts = self.relation.project(", ".join(f"{name}::VARCHAR AS {name}" for name in quoted)).fetchnumpy()
        return {name: [None if text is None else Decimal(text) for text in texts[name].tolist()] for name in names}


async def arrow_of(result: Result) -> ArrowResult:
    """The rows of a result. Raises DataError if Arrow has no type for a value, and what reading the result raises."""
    if result.whole is not None and (table := await result.whole.table(typed=True)) is not None:
        with contextlib.suppress(FileUnavailable):
            made = await _of_table(table, result.columns)
            await result.batches.aclose()
            return made
    try:
        return await _of_table(await text_table(result), result.columns)
    except FileUnavailable as error:
        raise _unfit(error.__cause__ or error) from None


async def _of_table(table: Table, columns: Sequence[Column]) -> ArrowResult:
    """The rows of a table. Raises DataError, and FileUnavailable if DuckDB cannot read them."""
    names = distinct_for_duckdb(distinct_names(columns))
    try:
        query = await asyncio.to_thread(_checked_query, table, names, [arrow_type(column.type) for column in columns])
    except BaseException:
        table.close()
        raise
    return ArrowResult(table, query, columns)


def arrow_type(text: str) -> str:
    """The type of DuckDB whose Arrow type holds the values of a type of the interface."""
    sizes = size_of(text)
    if kind(text) is Kind.DECIMAL and sizes and sizes[0] > 38:
        # DuckDB would give a decimal of 38 digits whatever the digits of a HUGEINT.
        return "DECIMAL(38,0)"
    return exact_type(text)


def _check_finite(root: duckdb.DuckDBPyConnection, query: str, columns: Sequence[Column], names: Sequence[str]) -> None:
    """Raises DataError for an infinite date or timestamp: Arrow would have a day in the year 294247 instead."""
    dates = {Kind.DATE, Kind.TIMESTAMP}
    chosen = [(name, column) for name, column in zip(names, columns, strict=True) if column.kind in dates]
    if not chosen:
        return
    infinities = root.execute(
        f"SELECT {', '.join(f'bool_or(isinf({always_quoted(name)}))' for name, _ in chosen)} FROM ({query})"
    ).fetchall()[0]
    for (_, column), infinite in zip(chosen, infinities, strict=True):
        if infinite:
            raise DataError(
                f"column \"{column.name}\": Arrow cannot represent 'infinity'", hint="cast the column to VARCHAR"
            )


def _checked_query(table: Table, names: Sequence[str], types: Sequence[str]) -> str:
    """A query for the rows of a table. Raises DataError, and FileUnavailable if DuckDB cannot read them."""
    import duckdb

    source, columns = table.source, [stored.column for stored in table.columns]
    types = _with_all_digits(table, types)
    values = [
        value_of(column.name, kind, is_text=column.is_text) for column, kind in zip(table.columns, types, strict=True)
    ]
    chosen = ", ".join(f"{value} AS {always_quoted(name)}" for value, name in zip(values, names, strict=True))
    query = f"SELECT {chosen} FROM {source}"
    try:
        # An error is raised here, not in the consumer of the stream.
        casts = [
            f"count({value})"
            for column, kind, value in zip(table.columns, types, values, strict=True)
            if column.is_text and kind != TEXT
        ]
        if casts:
            table.connection.execute(f"SELECT {', '.join(casts)} FROM {source}").fetchall()
        _check_finite(table.connection, query, columns, names)
    except duckdb.Error as error:
        stored_names = [column.name for column in table.columns]
        failed = _unfit_column(table.connection, source, columns, stored_names, values)
        raise failed or FileUnavailable from error
    return query


def _with_all_digits(table: Table, types: Sequence[str]) -> list[str]:
    """The types, with as many digits for decimals of any size as their values have. Raises DataError."""
    unsized = [column for column, kind in zip(table.columns, types, strict=True) if column.is_text and kind == UNSIZED]
    if not unsized:
        return list(types)
    names = [column.name for column in unsized]
    found = dict(zip(names, sized(table.connection.execute(digits(names, table.source)).fetchall()[0]), strict=True))
    for column in unsized:
        if found[column.name] == TEXT:
            raise DataError(
                f'column "{column.column.name}": Arrow cannot represent decimals of more than 38 digits',
                hint="cast the column to VARCHAR",
            )
    return [found.get(column.name, kind) for column, kind in zip(table.columns, types, strict=True)]


def _unfit_column(
    connection: duckdb.DuckDBPyConnection,
    source: str,
    columns: Sequence[Column],
    names: Sequence[str],
    values: Sequence[str],
) -> DataError | None:
    """The error for the first column with a value that Arrow cannot represent."""
    from sqlshell.output.typed.rows import misfit

    unfit = misfit(connection, source, names, values)
    if unfit is None:
        return None
    name, shown = columns[unfit[0]].name, unfit[1]
    return DataError(f'column "{name}": Arrow cannot represent {shown!r}', hint="cast the column to VARCHAR")


def _unfit(error: BaseException) -> DataError:
    return DataError(
        f"cannot convert the rows to Arrow: {str(error).splitlines()[0]}", hint="cast the column to VARCHAR"
    )


def frame_of(rows: ArrowResult, library: str = "") -> Any:
    """A DataFrame of `library`, pandas or polars; without it that of pandas, or of polars if pandas is not installed.

    Raises ProgrammingError for another library, NotSupportedError if the library is not installed, and DataError.
    """
    if library not in {"", "pandas", "polars"}:
        raise ProgrammingError(f"unknown library {library!r}: use pandas or polars")
    wanted = [library] if library else ["pandas", "polars"]
    package = next((name for name in wanted if importlib.util.find_spec(name) is not None), "")
    if package == "pandas":
        return rows.to_pandas()
    if package == "polars":
        import polars

        return polars.DataFrame(rows)
    raise NotSupportedError(f"fetch_df() requires {' or '.join(wanted)}", hint=f"run: pip install {wanted[0]}")
