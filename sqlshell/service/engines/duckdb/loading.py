"""Inserts the rows of an attached Parquet file into a relation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
from msgspec import Struct

from sqlshell.service.engines.engine import Outcome
from sqlshell.service.engines.files.failures import failure
from sqlshell.service.failure import Failure
from sqlshell.sql.identifiers import always_quoted, literal

_LONGEST = 60


class _Column(Struct, frozen=True):
    """A column of the file, with its type there, and the column of the relation that it goes to."""

    name: str
    kind: str
    into: str
    target: str

    @property
    def value(self) -> str:
        """SQL for a value of the file in the relation."""
        text = always_quoted(self.name)
        if self.kind == "VARCHAR" and self.target == "INTERVAL":
            # PostgreSQL writes a plus after a negative part: -3 days +04:05:06.
            return f"regexp_replace({text}, '(^|\\s)[+](\\d)', '\\1\\2', 'g')"
        if self.target.startswith("UNION(") and not self.target.endswith("]"):
            # CAST(NULL) would yield a union member that is NULL instead of NULL.
            return f"CASE WHEN {text} IS NULL THEN NULL ELSE CAST({text} AS {self.target}) END"
        return text


def load_rows(
    connection: duckdb.DuckDBPyConnection,
    names: Sequence[str],
    columns: Sequence[str],
    path: Path,
    *,
    changes: bool,
    in_transaction: bool,
) -> Outcome:
    """Insert the rows of the file at `path` into the `columns` of the relation `names`, all or none.

    Without `changes`, DuckDB is asked first whether the relation may be changed in the transaction that is open.
    Messages do not contain the path. Raises Failure.
    """
    relation = ".".join(map(always_quoted, names))
    listed = ", ".join(map(always_quoted, columns))
    # The path is not a pattern, and the names of its folders are not values.
    source = f"system.main.read_parquet({literal(str(path))}, hive_partitioning = false"
    try:
        if not changes:
            # Nothing of the file is read for a reader who may not change the relation.
            connection.execute(f"DELETE FROM {relation} WHERE false")
        found = connection.execute(f"DESCRIBE FROM {source})").fetchall()
        targets = connection.execute(f"DESCRIBE SELECT {listed or '*'} FROM {relation}").fetchall()
        # DuckDB refuses rows that do not fit the relation.
        fits = len(found) == len(targets)
        matched = [_Column(*name[:2], *into[:2]) for name, into in zip(found, targets, strict=True)] if fits else []
        select = f"SELECT {', '.join(column.value for column in matched) or '*'} FROM {source})"
        try:
            counts = connection.execute(f"INSERT INTO {relation}{listed and f' ({listed})'} {select}").fetchall()
        except duckdb.ConversionException as error:
            if in_transaction or not (place := _first_invalid_value(connection, source, matched)):
                raise
            raise failure(error).with_message(place) from error
    except (duckdb.Error, Failure) as error:
        failed = error if isinstance(error, Failure) else failure(error)
        # The lines that the message quotes are not from the user's statement, and name the file.
        message = failed.message.partition("\n\nLINE ")[0].replace(str(path), "the attachment")
        raise failed.with_message(message) from error
    return Outcome(message=f"COPY {counts[0][0]}")


def _first_invalid_value(connection: duckdb.DuckDBPyConnection, source: str, columns: Sequence[_Column]) -> str:
    """The first text that cannot be converted, with its column and row; "" if none is found. Raises duckdb.Error."""
    for column in columns:
        if column.kind != "VARCHAR" or column.target == column.kind:
            continue
        text = always_quoted(column.name)
        row = connection.execute(
            f"SELECT file_row_number + 1, {text} FROM {source}, file_row_number = true) WHERE {text} IS NOT NULL "
            f"AND TRY_CAST({column.value} AS {column.target}) IS NULL ORDER BY 1 LIMIT 1"
        ).fetchone()
        if row is not None:
            value = literal(row[1][:_LONGEST])
            place = f'row {row[0]:,} of the attachment, column "{column.into}"'
            return f"{place}: cannot convert {value} to {column.target}"
    return ""
