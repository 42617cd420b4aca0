"""Arrow batches as rows of the interface, rendered by DuckDB as those of a result's file are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from sqlshell.service.engines.duckdb.results.parquet import WIDTH, row_width
from sqlshell.service.engines.duckdb.results.render import finished, row, stored
from sqlshell.service.engines.duckdb.results.separate_instance import SharedInstance
from sqlshell.service.engines.duckdb.results.texts import line, writers
from sqlshell.service.engines.server.result_writer import FEW

PARTS = ("value", "metadata")
VARIANT = {b"ARROW:extension:name": b"arrow.parquet.variant", b"ARROW:extension:metadata": b""}


class Rendering(SharedInstance):
    """Renders batches in an instance of DuckDB of its own. Methods raise Failure."""

    def __init__(self) -> None:
        super().__init__({"temp_directory": "''", "preserve_insertion_order": "true"})

    def kinds(self, batch: pa.RecordBatch) -> list[Any]:
        """DuckDB's types of the columns of a batch."""
        with self.cursor() as cursor:
            return list(cursor.from_arrow(_numbered(pa.Table.from_batches([batch.slice(0, 0)]))).types)

    def rows(self, table: pa.Table, kinds: Sequence[Any]) -> list[str]:
        """Each row as the text of a JSON array of strings and nulls."""
        table = _numbered(table)
        # For few rows, DuckDB takes longer to plan the SQL.
        if table.num_rows <= FEW and (writes := writers(kinds)) is not None:
            return [*map(partial(line, writes=writes), zip(*(item.to_pylist() for item in table.columns), strict=True))]
        with self.cursor() as cursor:
            rendered = cursor.from_arrow(table).project(row(kinds, table.column_names))
            return [finished(text) for (text,) in rendered.fetchall()]

    def to_file(self, table: pa.Table, kinds: Sequence[Any]) -> pa.Table:
        """The columns c0, c1, … as they are written to a file: values, or their strings where a file has no such type.
        And WIDTH, if the rows have different sizes.
        """
        table = _numbered(table)
        names = table.column_names
        columns = [stored(kind, name) for kind, name in zip(kinds, names, strict=True)]
        fixed, varying = row_width(kinds, names)
        wanted = [name for sql, name in zip(columns, names, strict=True) if sql != name]
        added = [*wanted, f"{fixed} + {varying} AS {WIDTH}"] if varying else wanted
        if not added:
            return table
        with self.cursor() as cursor:
            values = ", ".join(f"{sql} AS {name}" for sql, name in zip(columns, names, strict=True))
            rendered = cursor.from_arrow(table).project(values).project(", ".join(added)).to_arrow_table()
        for name in wanted:
            table = table.set_column(names.index(name), name, rendered[name])
        return table.append_column(WIDTH, rendered[WIDTH]) if varying else table


def _numbered(table: pa.Table) -> pa.Table:
    """The columns as c0, c1, …, those of VARIANT marked as DuckDB knows them."""
    table = table.rename_columns([f"c{number}" for number in range(table.num_columns)])
    for at, field in enumerate(table.schema):
        if _is_variant(field.type):
            table = table.set_column(at, field.with_metadata(VARIANT), table.column(at))
    return table


def _is_variant(kind: pa.DataType) -> bool:
    """Whether a type is the form in which Spark sends values of VARIANT."""
    if not pa.types.is_struct(kind) or kind.num_fields != len(PARTS):
        return False
    value, metadata = kind.field(0), kind.field(1)
    return (value.name, metadata.name) == PARTS and b"variant" in (metadata.metadata or {})
