"""Large results as Parquet files, whose partitions are rendered when they are requested."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import msgspec

from sqlshell.interface.arrow import ArrowError, stretches
from sqlshell.interface.models import COLUMNS_KEY, INSTANTS_KEY, ColumnInfo
from sqlshell.service.engines.duckdb.results.render import PLAIN, finished_bytes, instants, row, stored, type_id
from sqlshell.service.engines.duckdb.results.separate_instance import SharedInstance
from sqlshell.service.engines.engine import RunOptions
from sqlshell.sql.identifiers import always_quoted, literal

LARGE = 50_000
"""Results of at least this many rows, by DuckDB's estimate, are written to a Parquet file instead of text."""

ROW_GROUP = 40_960
ROW_GROUP_BYTES = 8 << 20
DICTIONARY_BYTES = 4096
"""Rows and bytes of a file's row group: small enough to read a few partitions without many others. And the size up to
which the strings of a column have a dictionary: building a larger one takes longer than writing them all."""

WIDE = 1024
"""Rows of a table with at least this many bytes are wide."""

SAMPLE = 1000
"""The number of rows from which the width of a table is estimated."""

USUAL_CHARACTERS = 8
"""The approximate number of characters of a value of a PLAIN type."""

WIDTH = "width"
"""The column with the approximate size of a row as JSON. The other columns are c0, c1, …"""


def write(
    connection: duckdb.DuckDBPyConnection,
    sql: str,
    columns: Sequence[ColumnInfo],
    kinds: Sequence[Any],
    path: Path,
    options: RunOptions,
) -> list[tuple[int, int]]:
    """Write the rows of a SELECT, and its `columns` as metadata of the file.

    Returns the rows and approximate bytes of each partition. Raises duckdb.Error.
    """
    names = [f"c{number}" for number in range(len(kinds))]
    values = ", ".join(f"{stored(kind, name)} AS {name}" for kind, name in zip(kinds, names, strict=True))
    inner = f"SELECT {values} FROM (\n{sql}\n) t({', '.join(names)})"
    fixed, varying = row_width(kinds, names)
    if varying:
        inner = f"SELECT *, {fixed} + {varying} AS {WIDTH} FROM ({inner})"
        if reads_wide(connection, sql):
            # DuckDB copies 122,880 rows of a table at a time in each thread. From a source without such batches it
            # copies row by row, in one thread.
            inner += f" UNION ALL SELECT {', '.join(['NULL'] * (len(kinds) + 1))} FROM range(0)"
    connection.execute(f"COPY ({inner}) {to_file(path, columns, [number for number, _ in instants(kinds)])}")
    counted = connection.fetchone()
    return partitions(connection, path, int(counted[0]) if counted else 0, options, 0 if varying else fixed)


def write_relation(
    connection: duckdb.DuckDBPyConnection,
    relation: duckdb.DuckDBPyRelation,
    columns: Sequence[ColumnInfo],
    kinds: Sequence[Any],
    path: Path,
    options: RunOptions,
) -> list[tuple[int, int]]:
    """Write `relation`, whose columns are c0, c1, …, as write() does. Raises duckdb.Error."""
    names = [f"c{number}" for number in range(len(kinds))]
    values = ", ".join(f"{stored(kind, name)} AS {name}" for kind, name in zip(kinds, names, strict=True))
    fixed, varying = row_width(kinds, names)
    rendered = relation.project(values)
    if varying:
        rendered = rendered.project(f"*, {fixed} + {varying} AS {WIDTH}")
    copied = rendered.query(
        "made", f"COPY (FROM made) {to_file(path, columns, [number for number, _ in instants(kinds)])}"
    )
    number = copied.fetchall()[0][0] if copied is not None else 0
    return partitions(connection, path, number, options, 0 if varying else fixed)


def to_file(path: Path, columns: Sequence[ColumnInfo], zoned: Sequence[int]) -> str:
    """The end of a COPY to a file whose metadata has the names, types and nullability of `columns`, and the numbers of
    those with instants."""
    metadata = {COLUMNS_KEY: columns, INSTANTS_KEY: zoned}
    pairs = ", ".join(f"{key}: {literal(msgspec.json.encode(value).decode())}" for key, value in metadata.items())
    return (
        f"TO {literal(str(path))} (FORMAT parquet, PARQUET_VERSION V2, COMPRESSION snappy, ROW_GROUP_SIZE {ROW_GROUP}, "
        f"ROW_GROUP_SIZE_BYTES {ROW_GROUP_BYTES}, STRING_DICTIONARY_PAGE_SIZE_LIMIT {DICTIONARY_BYTES}, "
        f"KV_METADATA {{{pairs}}})"
    )


def reads_wide(connection: duckdb.DuckDBPyConnection, sql: str) -> bool:
    """Whether a SELECT reads a table with wide rows, judging by a sample."""
    plan = connection.execute(f"EXPLAIN (FORMAT json)\n{sql}").fetchone()
    for node in _scans(json.loads(plan[1])) if plan is not None else ():
        projected = node["Projections"]
        names = [always_quoted(name) for name in ([projected] if isinstance(projected, str) else projected)]
        widths = ", ".join(f"strlen({name}::VARCHAR)" for name in names)
        some = f"SELECT {', '.join(names)} FROM {node['Table']} LIMIT {SAMPLE}"
        sample = connection.execute(f"SELECT avg(list_sum([{widths}])) FROM ({some})").fetchone()
        if sample is not None and (sample[0] or 0) >= WIDE:
            return True
    return False


def _scans(nodes: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """The scans of a plan that read columns of tables."""
    for node in nodes:
        info = node.get("extra_info", {})
        if node.get("name", "").strip() == "SEQ_SCAN" and info.get("Table") and info.get("Projections"):
            yield info
        yield from _scans(node.get("children", ()))


def row_width(kinds: Sequence[Any], names: Sequence[str]) -> tuple[int, str]:
    """The size in bytes of the constant part of a row as JSON, and SQL for the variable part, "" if there is none."""
    fixed = 2 + 3 * len(kinds)
    sums: list[str] = []
    for kind, name in zip(kinds, names, strict=True):
        if type_id(kind) == "blob":
            sums.append(f"coalesce(octet_length({name}) * 4 // 3, 4)")
        elif type_id(kind) in PLAIN:
            fixed += USUAL_CHARACTERS
        else:
            sums.append(f"coalesce(strlen({name}), 4)")
    while len(sums) > 1:
        # A balanced tree, because DuckDB limits the depth of expressions.
        rest = sums[-1:] if len(sums) % 2 else []
        sums = [f"({one} + {other})" for one, other in zip(sums[::2], sums[1::2], strict=False)] + rest
    return fixed, "".join(sums)


def partitions(
    connection: duckdb.DuckDBPyConnection, path: Path, rows: int, options: RunOptions, width: int
) -> list[tuple[int, int]]:
    """Partitions of a file with a limited number of rows and, except for single rows, of bytes; `width` is the bytes of
    each row, 0 if the file contains them. Raises duckdb.Error.
    """
    most, limit = options.partition_rows, options.partition_bytes
    if width:
        most = max(1, min(most, limit // width))
        return [(count, count * width) for count in (min(most, rows - start) for start in range(0, rows, most))]
    source = f"(SELECT {WIDTH} AS w, file_row_number AS n FROM {_source(path)})"
    block = f"n // {most}"
    result = connection.execute(f"SELECT count(*), sum(w)::BIGINT FROM {source} GROUP BY {block} ORDER BY {block}")
    blocks = result.fetchall()
    if all(size <= limit for _, size in blocks):
        return blocks
    part = f"(sum(w) OVER (PARTITION BY {block} ORDER BY n) - w)::BIGINT // {limit}"
    return connection.execute(
        f"SELECT count(*), sum(w)::BIGINT FROM (SELECT w, {block} AS block, {part} AS part FROM {source}) "
        "GROUP BY block, part ORDER BY block, part"
    ).fetchall()


def _source(path: Path) -> str:
    return f"read_parquet({literal(str(path))}, file_row_number = true)"


class Reader(SharedInstance):
    """Renders partitions in a separate instance, whose memory is freed with it."""

    def __init__(self) -> None:
        super().__init__({"temp_directory": "''", "arrow_large_buffer_size": "true"})

    def read(self, path: Path, start: int, counts: Sequence[int]) -> list[bytes]:
        """Render partitions of `counts` rows from row `start` on; rows are separated by commas. Raises duckdb.Error."""
        source = _source(path)
        with self.cursor() as cursor:
            described = cursor.execute(f"DESCRIBE FROM {source}").fetchall()
            names = [str(item[0]) for item in described if item[0] not in {WIDTH, "file_row_number"}]
            kinds = [cursor.type(item[1]) for item in described[: len(names)]]
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
        """The rows and approximate bytes of each partition of a file with WIDTH. Raises duckdb.Error."""
        with self.cursor() as cursor:
            return partitions(cursor, path, rows, options, 0)
