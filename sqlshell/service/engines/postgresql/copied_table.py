"""Lines of COPY's text format as a table of Arrow, whose strings are exactly what PostgreSQL printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.duckdb.results.parquet import USUAL_CHARACTERS, WIDTH

_TYPES: Final = {"BOOLEAN": pa.bool_(), "SMALLINT": pa.int16(), "INTEGER": pa.int32(), "BIGINT": pa.int64()}
"""Types whose values have one spelling, by those of the interface. All others are strings."""

_BOM: Final = b"\xef\xbb\xbf"
_BACKSLASH: Final = "\0"
"""Stands for an escaped backslash meanwhile: no value of PostgreSQL contains it."""

_ESCAPES: Final = {
    "\\\\": _BACKSLASH, "\\b": "\b", "\\f": "\f", "\\n": "\n", "\\r": "\r", "\\t": "\t", "\\v": "\v", _BACKSLASH: "\\",
}  # fmt: skip


def table_of(blocks: Sequence[bytes], columns: Sequence[ColumnInfo]) -> pa.Table:
    """The rows in blocks of whole lines, as columns c0, c1, … and WIDTH, their approximate bytes as JSON.

    Booleans are spelled `true` and `false`. Text that is not UTF-8 gets replacement characters.
    """
    text = b"".join(blocks)
    try:
        table = _parsed(text, columns)
    except pa.ArrowInvalid:
        # A database whose encoding is SQL_ASCII may contain anything.
        table = _parsed(text.decode("utf-8", "replace").encode(), columns)
    # NULL is \N; every escape sequence adds a backslash.
    escapes = text.count(b"\\") != sum(column.null_count for column in table.columns)
    fixed, sizes = 2 + 3 * len(columns), []
    for number, column in enumerate(table.columns):
        if not pa.types.is_string(column.type):
            fixed += USUAL_CHARACTERS
            continue
        if escapes:
            column = _unescaped(column)
            table = table.set_column(number, table.field(number), column)
        sizes.append(pc.fill_null(pc.binary_length(column), 4))
    width = pa.repeat(pa.scalar(fixed, pa.int64()), table.num_rows)
    for size in sizes:
        width = pc.add(width, size)
    return table.append_column(WIDTH, width)


def _parsed(text: bytes, columns: Sequence[ColumnInfo]) -> pa.Table:
    names = [f"c{number}" for number in range(len(columns))]
    kinds = {name: _TYPES.get(column.type or "", pa.string()) for name, column in zip(names, columns, strict=True)}
    if text.startswith(_BOM):
        # The CSV reader drops one BOM.
        text = _BOM + text
    return pa.csv.read_csv(
        pa.BufferReader(text),
        # A line never spans two blocks.
        read_options=pa.csv.ReadOptions(use_threads=False, block_size=len(text) + 1, column_names=names),
        parse_options=pa.csv.ParseOptions(
            delimiter="\t", quote_char=False, escape_char=False, newlines_in_values=False, ignore_empty_lines=False
        ),
        convert_options=pa.csv.ConvertOptions(
            column_types=kinds,
            null_values=["\\N"],
            true_values=["true"],
            false_values=["false"],
            strings_can_be_null=True,
        ),
    )


def _unescaped(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pc.any(pc.match_substring(column, "\\")).as_py():
        return column
    for escape, char in _ESCAPES.items():
        column = pc.replace_substring(column, escape, char)
    return column
