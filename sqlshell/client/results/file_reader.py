"""Reads the downloaded file of a result: checks it, and has DuckDB turn its rows into text or values.

The file comes from a service, which may be hostile. A separate DuckDB instance opens the file; it cannot read other
files and loads no extensions. The file's metadata must agree with the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from sqlshell.client.results.result_file import ResultFile
from sqlshell.client.results.result_table import open_duckdb
from sqlshell.client.results.stretches import block_of, stretches
from sqlshell.client.results.zones import in_zone
from sqlshell.errors import ProtocolError, Where
from sqlshell.humanize import format_count
from sqlshell.interface.models import COLUMNS_KEY, INSTANTS_KEY, ColumnInfo
from sqlshell.interface.strings import NATIVE, ZONED, literal, string_of
from sqlshell.result import FileUnavailable, LineSql, Rows, StoredColumn

READERS = 2
"""Stretches that are turned into text at once: a stretch has too few row groups for DuckDB to use several threads."""

_STORED = {
    "BOOLEAN": {"boolean"},
    "TINYINT": {"tinyint"},
    "SMALLINT": {"smallint", "utinyint"},
    "INTEGER": {"integer", "usmallint"},
    "BIGINT": {"bigint", "uinteger"},
    "DECIMAL(20,0)": {"ubigint", "decimal"},
    "FLOAT": {"float"},
    "DOUBLE": {"double"},
    "DATE": {"date"},
    "TIMESTAMP(6)": {"timestamp"},
    "TIMESTAMP_LTZ(6)": {ZONED},
    "VARBINARY": {"blob"},
}
"""Ids of the DuckDB types that a column of an interface type may have in the file, besides VARCHAR."""

_FORMATS = {
    "boolean": "b",
    "tinyint": "b",
    "utinyint": "B",
    "smallint": "h",
    "usmallint": "H",
    "integer": "i",
    "uinteger": "I",
    "bigint": "q",
    "ubigint": "Q",
    "float": "d",
    "double": "d",
    "blob": "bytes",
}
"""The form of the values of types that are not read as strings."""

_LENGTHS = {"varchar": "strlen", "blob": "octet_length"}
"""The functions for the bytes of a value of types whose values have any length."""

_COLUMNS = msgspec.json.Decoder(list[ColumnInfo])
_NUMBERS = msgspec.json.Decoder(list[int])


class FileReader:
    """Turns the rows of a file into text, in stretches of row groups. Methods are called from one thread at a time, but
    for text(), which READERS threads may call.

    Raises ProtocolError if the file is not that of the result, and FileUnavailable if SQL cannot write its values or
    DuckDB cannot read its rows, for example because that takes too much memory.
    """

    def __init__(self, place: Path, file: ResultFile, of: LineSql, skip: int) -> None:
        import duckdb

        self._file = file
        self._source = f"read_parquet({literal(str(place))}, file_row_number = true)"
        self._root = open_duckdb(place, large=True)
        self._cursors = [self._root.cursor() for _ in range(READERS)]
        self._idle = [*self._cursors]
        try:
            self.stored = self._check_file(place)
            line = of(self.stored)
            if line is None:
                raise FileUnavailable
            self._line = line
            self.stretches = self._find_stretches(place, skip)
        except duckdb.OutOfMemoryException as error:
            self.close()
            raise FileUnavailable from error
        except duckdb.Error as error:
            self.close()
            raise self.wrong(f"cannot be read: {error}") from error
        except BaseException:
            self.close()
            raise

    def text(self, start: int, count: int) -> bytes | None:
        """The lines of some rows; None if SQL cannot write one of them."""
        import duckdb

        from sqlshell.interface.arrow import ArrowError, strings

        pieces: list[bytes] = []
        rows = 0
        whole = True
        cursor = self._idle.pop()
        try:
            for number, text in strings(cursor.sql(self._query(self._line, start, count))):
                rows += number
                whole = whole and text is not None
                pieces.append(text or b"")
        except (duckdb.Error, ArrowError) as error:
            raise FileUnavailable from error
        finally:
            self._idle.append(cursor)
        if rows != count:
            raise self.wrong(f"has {format_count(rows, 'row')} instead of {count:,}")
        if not whole:
            return None
        redacted = self._file.transport().redacted(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        return redacted if isinstance(redacted, bytes) else bytes(redacted)

    def rows(self, start: int, count: int) -> Rows:
        """Some rows as the service would send them."""
        import duckdb

        values = ", ".join(column.string for column in self.stored)
        try:
            texts = self._root.sql(self._query(f"[{values}]", start, count)).fetchall()
        except duckdb.Error as error:
            raise FileUnavailable from error
        body = msgspec.json.encode([row for (row,) in texts])
        return msgspec.json.decode(self._file.transport().redacted(body), type=Rows)

    def values(self, start: int, count: int) -> list[list[Any]] | None:
        """Some rows by column, as Batch.values() describes them; None if they contain a secret."""
        import duckdb

        from sqlshell.interface.arrow import TEXT, ArrowError, columns

        formats = [_FORMATS.get(column.type_id, TEXT) for column in self.stored]
        chosen = ", ".join(map(_value, self.stored))
        values: list[list[Any]] = [[] for _ in formats]
        transport = self._file.transport()
        secrets: list[bytes] = []

        def seen(text: bytes) -> None:
            if transport.redacted(text) != text:
                secrets.append(text)

        try:
            for arrays in columns(self._root.sql(self._query(chosen, start, count)), formats, seen):
                for whole, part in zip(values, arrays, strict=True):
                    whole += part
        except (duckdb.Error, ArrowError, UnicodeDecodeError) as error:
            raise FileUnavailable from error
        if any(len(whole) != count for whole in values):
            raise self.wrong(f"has {format_count(len(values[0]), 'row')} instead of {count:,}")
        return None if secrets else values

    def contains(self, texts: Sequence[str]) -> bool:
        """Whether a string of the file contains one of these texts."""
        import duckdb

        names = [column.name for column in self.stored if column.is_text]
        conditions = [f"contains({name}, {literal(text)})" for name in names for text in texts]
        if not conditions:
            return False
        try:
            query = f"SELECT true FROM {self._source} WHERE {' OR '.join(conditions)} LIMIT 1"
            return bool(self._root.execute(query).fetchall())
        except duckdb.Error as error:
            raise FileUnavailable from error

    def interrupt(self) -> None:
        for connection in (self._root, *self._cursors):
            connection.interrupt()

    def close(self) -> None:
        for connection in (*self._cursors, self._root):
            connection.close()

    def _query(self, what: str, start: int, count: int) -> str:
        return f"SELECT {what} FROM {self._source} WHERE file_row_number BETWEEN {start} AND {start + count - 1}"

    def wrong(self, what: str) -> ProtocolError:
        name = self._file.transport().target.name
        return ProtocolError(f"the result file from {name} {what}", where=Where(statement_id=self._file.statement_id))

    def _check_file(self, place: Path) -> list[StoredColumn]:
        """Check everything that the file's metadata claims, and return its columns."""
        columns = self._file.columns
        file = literal(str(place))
        known = {
            bytes(key): bytes(value)
            for key, value in self._root.execute(f"SELECT key, value FROM parquet_kv_metadata({file})").fetchall()
        }
        try:
            named = _COLUMNS.decode(known[COLUMNS_KEY.encode()])
            instants = set(_NUMBERS.decode(known[INSTANTS_KEY.encode()]))
        except (KeyError, msgspec.DecodeError, UnicodeDecodeError):
            raise self.wrong("does not name its columns") from None
        if [(item.name, item.type) for item in named] != [(column.name, column.type) for column in columns]:
            raise self.wrong("does not have the columns of the result")
        counted = self._root.execute(f"SELECT num_rows FROM parquet_file_metadata({file})").fetchone()
        if counted is None or counted[0] != self._file.rows:
            raise self.wrong("does not have the number of rows of the result")
        described = self._root.execute(f"DESCRIBE FROM {self._source}").fetchall()
        stored: list[StoredColumn] = []
        for number, column in enumerate(columns):
            name = f"c{number}"
            # The last one is file_row_number, so that a missing column has another name.
            if described[number][0] != name:
                raise self.wrong("does not have the columns of the result")
            kind = str(described[number][1])
            type_id = kind.partition("(")[0].lower()
            fits = type_id in _STORED.get(column.type, ()) or (type_id == "decimal" and kind == column.type)
            if kind != "VARCHAR" and not (fits and type_id in NATIVE):
                raise self.wrong(f"has the type {kind[:100]} for {column.type[:100]}")
            string = f"({string_of(type_id, name)})"
            if number in instants and self._file.zone != "UTC":
                string = self._zoned_string(type_id, name)
            stored.append(StoredColumn(column, name, type_id, string))
        return stored

    def _zoned_string(self, type_id: str, name: str) -> str:
        if type_id != ZONED or not self._file.zone:
            raise FileUnavailable
        ((least, most),) = self._root.execute(
            f"SELECT coalesce(min(epoch_us({name})), 0), coalesce(max(epoch_us({name})), 0) "
            f"FROM {self._source} WHERE isfinite({name})"
        ).fetchall()
        string = in_zone(name, self._file.zone, least, most)
        if string is None:
            raise FileUnavailable
        return string

    def _find_stretches(self, place: Path, skip: int) -> list[tuple[int, int]]:
        """The first row and the number of rows of each stretch, without the first `skip` rows."""
        file = literal(str(place))
        groups = self._root.execute(
            "SELECT any_value(row_group_num_rows), sum(total_uncompressed_size)::BIGINT "
            f"FROM parquet_metadata({file}) GROUP BY row_group_id ORDER BY row_group_id"
        ).fetchall()
        if sum(rows for rows, _ in groups) != self._file.rows or any(rows < 0 for rows, _ in groups):
            raise self.wrong("does not have the number of rows of the result")
        block = block_of(self._file.rows)
        return stretches(groups, self._string_sizes(file, block), block, len(self.stored), skip)

    def _string_sizes(self, file: str, block: int) -> Iterator[int]:
        """The bytes of strings in each `block` rows, nothing if no string is stored once for several rows."""
        shared = self._root.execute(
            f"SELECT DISTINCT path_in_schema FROM parquet_metadata({file}) "
            "WHERE regexp_matches(encodings::VARCHAR, 'DICTIONARY|DELTA_BYTE_ARRAY')"
        ).fetchall()
        names = [
            f"coalesce({_LENGTHS[column.type_id]}({column.name}), 0)"
            for column in self.stored
            if column.type_id in _LENGTHS and (column.name,) in shared
        ]
        if not names:
            return
        at = f"file_row_number // {block}"
        sizes = self._root.execute(
            f"SELECT sum({' + '.join(names)})::BIGINT + 1 FROM {self._source} GROUP BY {at} ORDER BY {at}"
        )
        while some := sizes.fetchmany(10_000):
            yield from (size for (size,) in some)


def _value(column: StoredColumn) -> str:
    """SQL for a value in the form that Batch.values() describes."""
    if column.type_id == "boolean":
        return f"{column.name}::TINYINT"
    if column.type_id == "float":
        # The DOUBLE with the digits of its text.
        return f"{column.name}::VARCHAR::DOUBLE"
    return column.name if column.type_id in _FORMATS else column.string
