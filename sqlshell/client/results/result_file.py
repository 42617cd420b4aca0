"""A large result as one file: downloaded from the service that has it, checked, and read by DuckDB.

The service may be hostile: this instance of DuckDB cannot read other files and loads no extensions, and the file's
metadata must agree with the result.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import zoneinfo
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import import_module
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from sqlshell.client.http.downloads import download, is_strong
from sqlshell.client.http.transport import Transport
from sqlshell.errors import ProtocolError, ShellError, Where
from sqlshell.interface.models import COLUMNS_KEY, INSTANTS_KEY, PARQUET, ColumnInfo
from sqlshell.interface.strings import NATIVE, ZONED, literal, string_of
from sqlshell.result import Column, FileUnavailable, Rows, StoredColumn
from sqlshell.runtime.parquet_table import ParquetTable
from sqlshell.runtime.scratch import scratch
from sqlshell.text import format_count

if TYPE_CHECKING:
    import duckdb
    import httpx

SLACK_BYTES = 64 << 20
"""A file may be larger than the JSON of its rows by this many bytes."""

MEMORY = "1200MB"
"""The most memory for reading all rows: a single value of 200 MB takes all of it."""

QUERY_MEMORY = "384MB"
SPILLED = "16GB"
"""The most memory for queries, and the most that they may write to temporary files."""

VECTOR = 2048
"""The most rows that are fetched at once."""

CHUNK_BYTES = 1 << 20
"""The approximate bytes of the lines that are returned together."""

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

_COLUMNS = msgspec.json.Decoder(list[ColumnInfo])
_NUMBERS = msgspec.json.Decoder(list[int])

EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
MOST_CHANGES = 500
"""The maximum number of changes of the offset that SQL distinguishes."""

_DAY = 86_400
_SECOND = 1_000_000


class ResultFile(Struct):
    """Where the file of a result is, and what is known of the result: `rows` and, approximately, `size` in bytes of
    JSON. `zone` is the time zone of its instants, "" if it is not known."""

    transport: Callable[[], Transport]
    path: str
    statement_id: str
    columns: Sequence[Column]
    rows: int
    size: int
    zone: str

    async def fetch(self, place: Path) -> None:
        """Download the file to `place`. Raises FileUnavailable."""
        accept = f"{PARQUET}, application/json;q=0.5"
        try:
            with _Download(place, self.size * 2 + SLACK_BYTES) as into:
                await download(self.transport(), self.path, accept, into)
        except (ShellError, OSError) as error:
            raise FileUnavailable from error


class _Download:
    """Writes a file of at most `limit` bytes. Methods raise OSError, and FileUnavailable if it is not a result's."""

    def __init__(self, place: Path, limit: int) -> None:
        self._file = os.fdopen(os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_EXCL, 0o600), "r+b")
        self._limit = limit
        self._left = 0
        self.tag = ""

    def __enter__(self) -> _Download:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def size(self) -> int:
        return self._file.tell()

    def check(self, headers: Mapping[str, str], kept: int, left: int | None) -> None:
        disk = os.fstatvfs(self._file.fileno())
        room = min(self._limit - kept, disk.f_bavail * disk.f_frsize)
        if headers.get("content-type", "") != PARQUET or left is None or left > room:
            raise FileUnavailable
        self._left = left

    def restart(self, tag: str) -> None:
        self._file.seek(0)
        self._file.truncate()
        self.tag = tag if is_strong(tag) else ""

    def add(self, piece: bytes) -> None:
        self._left -= len(piece)
        if self._left < 0:
            raise FileUnavailable
        self._file.write(piece)

    async def refusal(self, response: httpx.Response) -> Exception:
        return FileUnavailable()


class ResultTable(ParquetTable):
    """The rows of a result, with `columns`.

    Reading raises ProtocolError if the file is not that of the result, and FileUnavailable if DuckDB cannot read it,
    for example because that takes too much memory.
    """

    def __init__(self, place: Path, file: ResultFile, *, typed: bool = False, memory: str = MEMORY) -> None:
        """Check the file at `place`, which has to be alone in its folder. A table that is `typed` has no strings of
        instants in the time zone of the result, and no secrets, which are removed only from partitions.
        """
        import duckdb

        self._file = file
        # Memory for long strings is given back at once.
        flush = {"allocator_bulk_deallocation_flush_threshold": "'8MB'"}
        super().__init__(place, memory, {"max_temp_directory_size": literal(SPILLED), **flush})
        try:
            self.columns = self._checked_columns(typed)
            if typed and self._contains(file.transport().secrets_in_rows()):
                raise FileUnavailable
        except duckdb.OutOfMemoryException as error:
            self.close()
            raise FileUnavailable from error
        except duckdb.Error as error:
            self.close()
            raise self.wrong(f"cannot be read: {error}") from error
        except BaseException:
            self.close()
            raise

    def lines(self, line: str, start: int) -> Iterator[tuple[int, bytes | None]]:
        """The lines of the rows from `start` on, which the SQL `line` makes, many together with their number; None for
        lines of which SQL cannot write one."""
        with self._reading() as cursor:
            groups = cursor.execute(
                f"SELECT any_value(row_group_num_rows) FROM parquet_metadata({literal(str(self.place))}) "
                "GROUP BY row_group_id ORDER BY row_group_id"
            ).fetchall()
            self._check_count(sum(rows for (rows,) in groups), self._file.rows)
            cursor.execute(f"SELECT {line} FROM {self.source} WHERE file_row_number >= {start}")
            at, first, lines = start, start, bytearray()
            most, whole = VECTOR, True
            for end in accumulate(rows for (rows,) in groups):
                # A row group is limited in bytes, so that only one is in memory.
                while at < end:
                    fetched = cursor.fetchmany(min(end - at, most))
                    if not fetched:
                        raise self.wrong(f"ends after {format_count(at, 'row')}")
                    at += len(fetched)
                    try:
                        text = "".join([line for (line,) in fetched])
                        most = min(VECTOR, 1 + CHUNK_BYTES * len(fetched) // max(1, len(text)))
                        lines += text.encode()
                    except TypeError:
                        whole = False
                    if len(lines) >= CHUNK_BYTES or not whole:
                        yield at - first, self._redacted(lines) if whole else None
                        first, lines, whole = at, bytearray(), True
            if at > first:
                yield at - first, self._redacted(lines)

    def rows(self, start: int, count: int) -> Rows:
        """Some rows as the service would send them."""
        values = ", ".join(column.string for column in self.columns)
        some = f"WHERE file_row_number BETWEEN {start} AND {start + count - 1}"
        with self._reading() as cursor:
            rows = cursor.execute(f"SELECT [{values}] FROM {self.source} {some}").fetchall()
        return self._decoded(rows)

    async def texts(self, sql: str) -> Rows:
        return self._decoded(await self.query(sql))

    def wrong(self, what: str) -> ProtocolError:
        """An error about the file."""
        name = self._file.transport().target.name
        return ProtocolError(f"the result file from {name} {what}", where=Where(statement_id=self._file.statement_id))

    @contextlib.contextmanager
    def _reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        import duckdb

        try:
            cursor = self.connection.cursor()
            self._cursors.append(cursor)
            try:
                yield cursor
            finally:
                self._cursors.remove(cursor)
                cursor.close()
        except duckdb.Error as error:
            raise FileUnavailable from error

    def _redacted(self, text: bytes | bytearray) -> bytes:
        return bytes(self._file.transport().redacted(text))

    def _decoded(self, rows: Sequence[tuple[Any, ...]]) -> Rows:
        """Rows of one column, a list of strings."""
        return msgspec.json.decode(self._redacted(msgspec.json.encode([row for (row,) in rows])), type=Rows)

    def _check_count(self, found: int, expected: int) -> None:
        if found != expected:
            raise self.wrong(f"has {format_count(found, 'row')} instead of {expected:,}")

    def _contains(self, texts: Sequence[str]) -> bool:
        """Whether a string of the file contains one of these texts."""
        names = [column.name for column in self.columns if column.is_text]
        conditions = [f"contains({name}, {literal(text)})" for name in names for text in texts]
        if not conditions:
            return False
        query = f"SELECT true FROM {self.source} WHERE {' OR '.join(conditions)} LIMIT 1"
        return bool(self.connection.execute(query).fetchall())

    def _checked_columns(self, typed: bool) -> list[StoredColumn]:
        """The columns, after a check of everything that the file's metadata claims."""
        columns = self._file.columns
        file = literal(str(self.place))
        known = {
            bytes(key): bytes(value)
            for key, value in self.connection.execute(f"SELECT key, value FROM parquet_kv_metadata({file})").fetchall()
        }
        try:
            named = _COLUMNS.decode(known[COLUMNS_KEY.encode()])
            instants = set(_NUMBERS.decode(known[INSTANTS_KEY.encode()]))
        except (KeyError, msgspec.DecodeError, UnicodeDecodeError):
            raise self.wrong("does not name its columns") from None
        if [(item.name, item.type) for item in named] != [(column.name, column.type) for column in columns]:
            raise self.wrong("does not have the columns of the result")
        counted = self.connection.execute(f"SELECT num_rows FROM parquet_file_metadata({file})").fetchone()
        if counted is None or counted[0] != self._file.rows:
            raise self.wrong("does not have the number of rows of the result")
        described = self.connection.execute(f"DESCRIBE FROM {self.source}").fetchall()
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
                where = f'for column "{column.name[:100]}"'
                raise self.wrong(f"has the type {kind[:100]} {where}; expected {column.type[:100]}")
            string = f"({string_of(type_id, name)})"
            if number in instants and not typed and self._file.zone != "UTC":
                string = self._zoned_string(type_id, name)
            stored.append(StoredColumn(column, name, type_id, string))
        return stored

    def _zoned_string(self, type_id: str, name: str) -> str:
        if type_id != ZONED or not self._file.zone:
            raise FileUnavailable
        ((least, most),) = self.connection.execute(
            f"SELECT coalesce(min(epoch_us({name})), 0), coalesce(max(epoch_us({name})), 0) "
            f"FROM {self.source} WHERE isfinite({name})"
        ).fetchall()
        string = in_zone(name, self._file.zone, least, most)
        if string is None:
            raise FileUnavailable
        return string


async def open_table(file: ResultFile, *, typed: bool = False, memory: str = MEMORY) -> ResultTable:
    """Download the file of a result. Raises FileUnavailable, and ProtocolError if it is not that of the result."""
    try:
        folder = scratch().folder("result")
    except OSError as error:
        raise FileUnavailable from error
    opened = False
    try:
        place = folder / "result.parquet"
        if any(char in str(place) for char in "*?["):
            # DuckDB would take the path for a pattern.
            raise FileUnavailable
        # Takes as long as fetching the file.
        importing = asyncio.ensure_future(asyncio.to_thread(import_module, "duckdb"))
        await file.fetch(place)
        await importing
        table = await asyncio.to_thread(partial(ResultTable, place, file, typed=typed, memory=memory))
        opened = True
        return table
    except OSError as error:
        raise FileUnavailable from error
    finally:
        if not opened:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def in_zone(name: str, zone: str, least: int, most: int) -> str | None:
    """SQL for the interface's string of the instant `name` in a time zone. All instants are between `least` and `most`,
    in microseconds since 1970. None if SQL cannot express that.

    The offsets are those of Python's zone: DuckDB's may be of another year.
    """
    first, last = least // _SECOND, most // _SECOND
    if first < EARLIEST.timestamp() or last > LATEST.timestamp():
        return None
    try:
        changes = _changes(zoneinfo.ZoneInfo(zone), first, last)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        return None
    if len(changes) > MOST_CHANGES:
        return None
    micros = f"epoch_us({name})"
    whens = [f"WHEN NOT isfinite({name}) THEN {name}::VARCHAR"]
    for (_, offset), (until, _) in pairwise(changes):
        whens.append(f"WHEN {micros} < {until * _SECOND} THEN {_written(micros, offset)}")
    return f"CASE {' '.join(whens)} ELSE {_written(micros, changes[-1][1])} END"


def _changes(zone: zoneinfo.ZoneInfo, first: int, last: int) -> list[tuple[int, timedelta]]:
    """The offset at the second `first`, and each later one with the second at which it begins."""

    def offset(second: int) -> timedelta:
        return datetime.fromtimestamp(second, zone).utcoffset() or timedelta(0)

    changes = [(first, offset(first))]
    at = first
    while at < last:
        then = min(at + _DAY, last)
        if offset(then) != changes[-1][1]:
            low, high = at, then
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(middle) == changes[-1][1] else (low, middle)
            changes.append((high, offset(high)))
            then = high
        at = then
    return changes


def _written(micros: str, offset: timedelta) -> str:
    seconds = int(offset.total_seconds())
    sign, rest = ("-", -seconds) if seconds < 0 else ("+", seconds)
    text = f"{sign}{rest // 3600:02}:{rest // 60 % 60:02}" + (f":{rest % 60:02}" if rest % 60 else "")
    return f"make_timestamp({micros} + {seconds * _SECOND})::VARCHAR || '{text}'"
