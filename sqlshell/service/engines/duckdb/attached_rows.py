"""The rows of an attached Parquet file, with the types of the table that they are inserted into."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
from msgspec import Struct

from sqlshell.sql.identifiers import always_quoted, literal

_LONGEST = 60


class AttachedRows(Struct, frozen=True):
    """`source` is SQL for FROM. `columns` are its columns and `targets` those of the table, each a name and DuckDB's
    type, in the order in which they are inserted."""

    source: str
    columns: Sequence[tuple[str, str]]
    targets: Sequence[tuple[str, str]]

    @property
    def select(self) -> str:
        """The query to insert. Rows that do not fit the table are as they are in the file: DuckDB refuses them."""
        if len(self.columns) != len(self.targets):
            return f"FROM {self.source}"
        values = (
            _value(name, kind, target) for (name, kind), (_, target) in zip(self.columns, self.targets, strict=True)
        )
        return f"SELECT {', '.join(values)} FROM {self.source}"

    def first_invalid_value(self, connection: duckdb.DuckDBPyConnection) -> str:
        """The first text that cannot be converted, with its column and row; "" if none is found.

        Raises duckdb.Error.
        """
        if len(self.columns) != len(self.targets):
            return ""
        for (name, kind), (column, target) in zip(self.columns, self.targets, strict=True):
            if kind != "VARCHAR" or target == kind:
                continue
            text = always_quoted(name)
            row = connection.execute(
                f"SELECT file_row_number + 1, {text} "
                f"FROM {self.source.removesuffix(')')}, file_row_number = true) WHERE {text} IS NOT NULL "
                f"AND TRY_CAST({_value(name, kind, target)} AS {target}) IS NULL ORDER BY 1 LIMIT 1"
            ).fetchone()
            if row is not None:
                value = literal(row[1][:_LONGEST])
                return f"row {row[0]:,} of the attachment, column {column}: cannot convert {value} to {target}"
        return ""


def _value(name: str, kind: str, target: str) -> str:
    """SQL for a value of the file in a column of the table."""
    text = always_quoted(name)
    if kind == "VARCHAR" and target == "INTERVAL":
        # PostgreSQL writes a plus after a negative part: -3 days +04:05:06.
        return f"regexp_replace({text}, '(^|\\s)[+](\\d)', '\\1\\2', 'g')"
    if target.startswith("UNION(") and not target.endswith("]"):
        # CAST(NULL) would yield a union member that is NULL instead of NULL.
        return f"CASE WHEN {text} IS NULL THEN NULL ELSE CAST({text} AS {target}) END"
    return text
