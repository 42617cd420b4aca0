"""PostgreSQL's rows as lines of COPY's text format, and these as JSON arrays, or as a table of Arrow."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from psycopg import pq

from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.files.parquet import USUAL_CHARACTERS, WIDTH
from sqlshell.service.engines.postgresql.failures import decoded
from sqlshell.service.engines.postgresql.types import BOOL, BYTEA
from sqlshell.service.failure import Failure

_ESCAPED: Final = re.compile(rb"\\(.)", re.S)
_SIGNS: Final = re.compile(rb"[\\\t\n\r]")
_ESCAPES: Final = {b"\\": b"\\\\", b"\t": b"\\t", b"\n": b"\\n", b"\r": b"\\r"}
_RAW: Final = re.compile(rb"[\x00-\x09\x0b-\x1f]")
_CONTROLS: Final = bytes(number for number in range(32) if number != 10)

_ARROW_TYPES: Final = {"BOOLEAN": "bool", "SMALLINT": "int16", "INTEGER": "int32", "BIGINT": "int64"}
"""Types whose values have one spelling, by those of the interface. All others are strings."""

_BOM: Final = b"\xef\xbb\xbf"
_BACKSLASH: Final = "\0"
"""Stands for an escaped backslash meanwhile: no value of PostgreSQL contains it."""

_UNESCAPED: Final = {
    "\\\\": _BACKSLASH, "\\b": "\b", "\\f": "\f", "\\n": "\n", "\\r": "\r", "\\t": "\t", "\\v": "\v", _BACKSLASH: "\\",
}  # fmt: skip


def lines_of(result: Any) -> bytes:
    """Return the rows of a PGresult as lines."""
    value, readers = result.get_value, [_READERS.get(result.ftype(number), bytes) for number in range(result.nfields)]
    lines = bytearray()
    for row in range(result.ntuples):
        values = [
            b"\\N" if (raw := value(row, number)) is None else _line(read(raw)) for number, read in enumerate(readers)
        ]
        lines += b"\t".join(values) + b"\n"
    return bytes(lines)


def lines_of_values(values: bytes) -> bytes:
    """Return the lines of a COPY … TO STDOUT as lines of one value. Raises Failure if they are not UTF-8."""
    try:
        values.decode()
    except UnicodeDecodeError:
        # To replace a part of them would damage the data.
        raise Failure("22021", "the data of COPY … TO STDOUT is not UTF-8; omit the option ENCODING") from None
    return b"\n".join(map(_line, values.split(b"\n")))


def rows_of_copy(block: bytes) -> list[str]:
    """Return the rows of whole lines in COPY's text format.

    COPY and JSON escape a backslash, a backspace, a form feed, a line feed, a carriage return and a tab alike. So only
    what separates values is replaced, quotes are escaped, and NULL, vertical tabs and other control characters are
    written as JSON does. No value contains an unescaped backslash, therefore `"\\N"` is always a NULL.
    """
    # One byte is found ten times as fast as two.
    escapes = b"\\" in block
    if b'"' in block:
        block = block.replace(b'"', b'\\"')
    if escapes and b"\\v" in block:
        block = _ESCAPED.sub(lambda match: b"\\u000b" if match[1] == b"v" else match[0], block)
    encoded = b'["' + block[:-1].replace(b"\t", b'","').replace(b"\n", b'"]\n["') + b'"]'
    if escapes:
        encoded = encoded.replace(b'"\\N"', b"null")
    # The regular expression alone would take ten times as long.
    if len(encoded.translate(None, _CONTROLS)) != len(encoded):
        encoded = _RAW.sub(lambda match: b"\\u%04x" % ord(match[0]), encoded)
    return decoded(encoded).split("\n")


class CopiedLines:
    """Makes rows of blocks of whole lines in COPY's text format."""

    zoned: Sequence[int] = ()

    def __init__(self, columns: Sequence[ColumnInfo]) -> None:
        self.columns = columns

    def texts(self, pieces: Sequence[bytes]) -> list[str]:
        block = b"".join(pieces)
        return rows_of_copy(block) if self.columns else ["[]"] * block.count(b"\n")

    def table(self, pieces: Sequence[bytes]) -> Any:
        return table_of(pieces, self.columns)


def selected(oid: int, name: str) -> str:
    """Return SQL that makes the interface's string of the column `name`; the name alone if it is what PostgreSQL
    prints."""
    if oid == BOOL:
        return f"{name}::pg_catalog.text"
    if oid == BYTEA:
        return f"pg_catalog.translate(pg_catalog.encode({name}, 'base64'), E'\\n', '')"
    return name


def table_of(blocks: Sequence[bytes], columns: Sequence[ColumnInfo]) -> Any:
    """Return the rows in blocks of whole lines, as columns c0, c1, … and WIDTH, their approximate bytes as JSON.

    Booleans are spelled `true` and `false`. Text that is not UTF-8 gets replacement characters.
    """
    # Small results do without pyarrow, whose import takes as long as a thousand small statements.
    import pyarrow as pa
    import pyarrow.compute as pc

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
        if escapes and pc.any(pc.match_substring(column, "\\")).as_py():
            for escape, char in _UNESCAPED.items():
                column = pc.replace_substring(column, escape, char)
            table = table.set_column(number, table.field(number), column)
        sizes.append(pc.fill_null(pc.binary_length(column), 4))
    width = pa.repeat(pa.scalar(fixed, pa.int64()), table.num_rows)
    for size in sizes:
        width = pc.add(width, size)
    return table.append_column(WIDTH, width)


def _parsed(text: bytes, columns: Sequence[ColumnInfo]) -> Any:
    import pyarrow as pa
    import pyarrow.csv

    names = [f"c{number}" for number in range(len(columns))]
    kinds = {name: _ARROW_TYPES.get(column.type or "", "string") for name, column in zip(names, columns, strict=True)}
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


def _line(value: bytes) -> bytes:
    return _SIGNS.sub(lambda match: _ESCAPES[match[0]], value)


def _bytes(value: bytes) -> bytes:
    """Of both forms that bytea_output may choose."""
    return base64.b64encode(
        bytes.fromhex(value[2:].decode()) if value.startswith(b"\\x") else pq.Escaping().unescape_bytea(value)
    )


_READERS: Final[dict[int, Callable[[bytes], bytes]]] = {
    BOOL: lambda value: b"true" if value == b"t" else b"false",
    BYTEA: _bytes,
}
"""What makes the interface's string of a value that PostgreSQL printed, by the OID of its type, if it is another."""
