"""Large results as Parquet files: which ones, the SQL that writes them, and their partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import msgspec

from sqlshell.interface.models import COLUMNS_KEY, INSTANTS_KEY, ColumnInfo
from sqlshell.interface.strings import NATIVE
from sqlshell.service.engines.files.render import PLAIN, instants, own, stored, type_id
from sqlshell.sql.identifiers import literal

LARGE = 50_000
LARGE_IF_WIDE = 500
"""Results of at least this many rows, by DuckDB's estimate, are written to a Parquet file instead of text. Fewer are
enough where values may have any length: DuckDB holds 2,048 rows in memory while it returns them."""

MOST_COLUMNS = 100
"""With more columns only LARGE counts: each partition of a file would take longer to plan than to read."""

ROW_GROUP = 40_960
ROW_GROUP_BYTES = 8 << 20
DICTIONARY_BYTES = 4096
"""Rows and bytes of a file's row group: small enough to read a few partitions without many others. And the size up to
which the strings of a column have a dictionary: building a larger one takes longer than writing them all."""

INLINE_BYTES = 12
"""The most bytes of a string that a vector of DuckDB contains; it refers to longer ones, and may do so repeatedly."""

_LENGTHS = {"varchar": "system.main.strlen", "blob": "system.main.octet_length"}
"""The functions for the bytes of a value of types whose values may have any length."""

USUAL_CHARACTERS = 8
"""The approximate number of characters of a value of a PLAIN type."""

WIDTH = "width"
"""The column with the approximate size of a row as JSON. The other columns are c0, c1, …"""


def is_large(rows: int | None, kinds: Sequence[Any]) -> bool:
    """Tell whether a result of so many rows, None if that is unknown, with these types is written to a file."""
    if rows is None:
        return False
    return rows >= (LARGE_IF_WIDE if len(kinds) <= MOST_COLUMNS and any(map(_varies, kinds)) else LARGE)


def copy_to(path: Path, source: str, columns: Sequence[ColumnInfo], kinds: Sequence[Any]) -> str:
    """Return a statement that writes the rows of the relation `source` to a file, with `columns` as its metadata."""
    names = [f"c{number}" for number in range(len(kinds))]
    values = ", ".join(f"{stored(kind, name)} AS {name}" for kind, name in zip(kinds, names, strict=True))
    sql = f"SELECT {values} FROM {source} t({', '.join(names)})"
    types = {
        name: type_id(kind) if type_id(kind) in NATIVE else "varchar" for name, kind in zip(names, kinds, strict=True)
    }
    fixed, varying = row_width(kinds, names)
    if varying:
        sql = f"SELECT *, {fixed} + {varying} AS {WIDTH} FROM ({sql})"
        types[WIDTH] = "bigint"
    return to_file(sql, types, path, columns, [number for number, _ in instants(kinds)])


def to_file(sql: str, types: Mapping[str, str], path: Path, columns: Sequence[ColumnInfo], zoned: Sequence[int]) -> str:
    """Return a COPY of a SELECT to a file whose row groups are bounded in bytes, and whose metadata has the names,
    types and nullability of `columns`, and the numbers of those with instants.

    `types` are the ids of DuckDB's types of the SELECT, by the names of its columns.
    """
    metadata = {COLUMNS_KEY: columns, INSTANTS_KEY: zoned}
    pairs = ", ".join(f"{key} := {literal(msgspec.json.encode(value).decode())}" for key, value in metadata.items())
    # DuckDB counts a string once that a vector contains for many rows. The random choice between two equal values makes
    # a vector that has one for each row.
    flat = own("CASE WHEN {0}({1}) > {2} AND random() < 0.5 THEN {1} ELSE {1} END AS {1}")
    values = ", ".join(
        flat.format(_LENGTHS[kind], name, INLINE_BYTES) if kind in _LENGTHS else name for name, kind in types.items()
    )
    # DuckDB would take 122,880 rows of a table at a time in each thread, and count their bytes afterwards. From a
    # source without such batches it copies row by row, in one thread.
    single = f"UNION ALL SELECT {', '.join(['NULL'] * len(types))} FROM range(0)"
    return (
        f"COPY (SELECT {values} FROM ({sql}) {single}) TO {literal(str(path))} (FORMAT parquet, PARQUET_VERSION V2, "
        f"COMPRESSION snappy, ROW_GROUP_SIZE {ROW_GROUP}, ROW_GROUP_SIZE_BYTES {ROW_GROUP_BYTES}, "
        f"STRING_DICTIONARY_PAGE_SIZE_LIMIT {DICTIONARY_BYTES}, KV_METADATA system.main.struct_pack({pairs}))"
    )


def _varies(kind: Any) -> bool:
    """Whether the values of a type, or their strings, may have any length."""
    return type_id(kind) not in PLAIN or type_id(kind) == "blob"


def row_width(kinds: Sequence[Any], names: Sequence[str]) -> tuple[int, str]:
    """Return the size in bytes of the constant part of a row as JSON, and SQL for the variable part, "" if there is
    none."""
    fixed = 2 + 3 * len(kinds)
    sums: list[str] = []
    for kind, name in zip(kinds, names, strict=True):
        if type_id(kind) == "blob":
            sums.append(f"coalesce(octet_length({name}) * 4 // 3, 4)")
        elif not _varies(kind):
            fixed += USUAL_CHARACTERS
        else:
            sums.append(f"coalesce(strlen({name}), 4)")
    while len(sums) > 1:
        # A balanced tree, because DuckDB limits the depth of expressions.
        rest = sums[-1:] if len(sums) % 2 else []
        sums = [f"({one} + {other})" for one, other in zip(sums[::2], sums[1::2], strict=False)] + rest
    return fixed, own("".join(sums))


def file_rows(path: Path) -> str:
    """Return the relation with the rows of a file."""
    return f"read_parquet({literal(str(path))}, file_row_number = true)"


def file_columns(connection: duckdb.DuckDBPyConnection, path: Path) -> tuple[list[str], list[Any]]:
    """Return the names and types of the columns of a file, with WIDTH if it has that."""
    described = connection.execute(f"DESCRIBE FROM {file_rows(path)}").fetchall()[:-1]
    return [str(name) for name, *_ in described], [connection.type(kind) for _, kind, *_ in described]
