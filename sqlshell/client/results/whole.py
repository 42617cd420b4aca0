"""A large result as a file: fetched whole, checked, and turned into text by DuckDB.

The file comes from a service, which may be hostile. DuckDB opens it in an instance of its own that may read nothing
else and loads no extensions, and what the file says of itself has to agree with the result.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sqlshell.client.http.retries import Retries
from sqlshell.client.http.transport import Transport
from sqlshell.client.results.partitions import PartitionReader
from sqlshell.client.results.result_table import ResultTable, opened
from sqlshell.client.results.stretches import block_of, stretches
from sqlshell.client.results.zones import in_zone
from sqlshell.errors import ConnectionBroken, ProtocolError, ShellError, Where
from sqlshell.interface.models import COLUMNS_KEY, INSTANTS_KEY, PARQUET, ColumnInfo
from sqlshell.interface.strings import NATIVE, ZONED, literal, string_of
from sqlshell.result import Batch, Column, LineSql, Rows, StoredColumn
from sqlshell.runtime.download_file import DownloadFile
from sqlshell.runtime.scratch import scratch

READERS = 2
"""Stretches that are turned into text at once: a stretch has too few row groups for DuckDB to use several threads."""

SLACK = 64 << 20
"""A file may be larger than the JSON of its rows by this many bytes."""

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
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)")


class Unavailable(Exception):
    """The result is not available as a file, only as partitions."""


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
    kept: Path | None = None
    """Where the file has been downloaded to."""

    async def fetch(self, place: Path) -> None:
        """Download the file to `place`. Raises Unavailable."""
        if self.kept is not None:
            await asyncio.to_thread(_linked, self.kept, place)
            return
        with DownloadFile(place) as file:
            try:
                await self._download(file)
            except (ShellError, OSError) as error:
                raise Unavailable from error

    async def keep(self, file: DownloadFile) -> None:
        """Download the file, or the rest of it, so that fetch() finds it there.

        Raises Unavailable, OSError and what the transport raises.
        """
        await self._download(file)
        self.kept = file.place

    async def _download(self, file: DownloadFile) -> None:
        tries = Retries(self.transport().network, idempotent=True, known=True)
        while True:
            try:
                return await self._attempt(file)
            except ShellError as error:
                wait = tries.after_error(error)
                if wait is None:
                    raise
                await asyncio.sleep(wait)

    async def _attempt(self, file: DownloadFile) -> None:
        """Download the file, or the rest of it. Raises Unavailable, OSError and what the transport raises."""
        transport = self.transport()
        had = file.tell() if file.tag else 0
        headers = {"Accept": f"{PARQUET}, application/json;q=0.5", "Accept-Encoding": "identity"}
        if had:
            headers |= {"Range": f"bytes={had}-", "If-Range": file.tag}
        async with transport.opened(self.path, headers) as response:
            if response.status_code in {408, 429, 500, 502, 503, 504}:
                raise ConnectionBroken(f"{transport.target.name} responded with {response.status_code}")
            told = response.headers
            if had and response.status_code == 416 and told.get("content-range", "") == f"bytes */{had}":
                # Nothing is missing.
                return
            if response.status_code not in {200, 206} or told.get("content-type", "") != PARQUET:
                raise Unavailable
            begun = _RANGE.fullmatch(told.get("content-range", "")) if response.status_code == 206 else None
            if response.status_code == 200:
                had = 0
                tag = told.get("etag", "")
                file.restart(tag if tag.startswith('"') else "")
            elif begun is None or int(begun[1]) != had:
                raise Unavailable
            length = told.get("content-length", "")
            if not length.isdecimal() or told.get("content-encoding", "identity") != "identity":
                raise Unavailable
            left = int(length[:18])
            disk = os.fstatvfs(file.fileno())
            if had + left > self.size * 2 + SLACK or left > disk.f_bavail * disk.f_frsize:
                raise Unavailable
            async for piece in response.aiter_raw():
                left -= len(piece)
                if left < 0:
                    raise Unavailable
                file.write(piece)
            if left:
                raise ConnectionBroken(f"{transport.target.name} closed the connection in the middle of a result")


class FileReader:
    """Turns the rows of a file into text, in stretches of row groups. Methods are called from one thread at a time, but
    for text(), which READERS threads may call.

    Raises ProtocolError if the file is not that of the result, and Unavailable if its values cannot be written in SQL.
    """

    def __init__(self, place: Path, told: ResultFile, of: LineSql, skip: int) -> None:
        import duckdb

        self._told = told
        self._source = f"read_parquet({literal(str(place))}, file_row_number = true)"
        self._root = opened(place, large=True)
        self._cursors = [self._root.cursor() for _ in range(READERS)]
        self._idle = [*self._cursors]
        try:
            self.stored = self._checked(place)
            line = of(self.stored)
            if line is None:
                raise Unavailable
            self._line = line
            self.stretches = self._stretched(place, skip)
        except duckdb.Error as error:
            self.close()
            raise self._wrong(f"cannot be read: {error}") from error
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
            raise self._wrong(f"cannot be read: {error}") from error
        finally:
            self._idle.append(cursor)
        if rows != count:
            raise self._wrong(f"has {rows:,} rows instead of {count:,}")
        if not whole:
            return None
        found = self._told.transport().redacted(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        return found if isinstance(found, bytes) else bytes(found)

    def rows(self, start: int, count: int) -> Rows:
        """Some rows as the service would send them."""
        import duckdb

        values = ", ".join(column.string for column in self.stored)
        try:
            found = self._root.sql(self._query(f"[{values}]", start, count)).fetchall()
        except duckdb.Error as error:
            raise self._wrong(f"cannot be read: {error}") from error
        body = msgspec.json.encode([row for (row,) in found])
        return msgspec.json.decode(self._told.transport().redacted(body), type=Rows)

    def values(self, start: int, count: int) -> list[list[Any]] | None:
        """Some rows by column, as Batch.values() describes them; None if they contain a secret."""
        import duckdb

        from sqlshell.interface.arrow import TEXT, ArrowError, columns

        formats = [_FORMATS.get(column.type_id, TEXT) for column in self.stored]
        chosen = ", ".join(map(_value, self.stored))
        found: list[list[Any]] = [[] for _ in formats]
        transport = self._told.transport()
        secrets: list[bytes] = []

        def seen(text: bytes) -> None:
            if transport.redacted(text) != text:
                secrets.append(text)

        try:
            for arrays in columns(self._root.sql(self._query(chosen, start, count)), formats, seen):
                for whole, part in zip(found, arrays, strict=True):
                    whole += part
        except (duckdb.Error, ArrowError, UnicodeDecodeError) as error:
            raise self._wrong(f"cannot be read: {error}") from error
        if any(len(whole) != count for whole in found):
            raise self._wrong(f"has {len(found[0]):,} rows instead of {count:,}")
        return None if secrets else found

    def contains(self, texts: Sequence[str]) -> bool:
        """Whether a string of the file contains one of these texts."""
        import duckdb

        names = [column.name for column in self.stored if column.is_text]
        found = [f"contains({name}, {literal(text)})" for name in names for text in texts]
        if not found:
            return False
        try:
            query = f"SELECT true FROM {self._source} WHERE {' OR '.join(found)} LIMIT 1"
            return bool(self._root.execute(query).fetchall())
        except duckdb.Error as error:
            raise self._wrong(f"cannot be read: {error}") from error

    def interrupt(self) -> None:
        for connection in (self._root, *self._cursors):
            connection.interrupt()

    def close(self) -> None:
        for connection in (*self._cursors, self._root):
            connection.close()

    def _query(self, what: str, start: int, count: int) -> str:
        return f"SELECT {what} FROM {self._source} WHERE file_row_number BETWEEN {start} AND {start + count - 1}"

    def _wrong(self, what: str) -> ProtocolError:
        name = self._told.transport().target.name
        return ProtocolError(f"the result file from {name} {what}", where=Where(statement_id=self._told.statement_id))

    def _checked(self, place: Path) -> list[StoredColumn]:
        """The columns of the file, after a look at all that it claims."""
        told, columns = self._told, self._told.columns
        file = literal(str(place))
        known = {
            bytes(key): bytes(value)
            for key, value in self._root.execute(f"SELECT key, value FROM parquet_kv_metadata({file})").fetchall()
        }
        try:
            named = _COLUMNS.decode(known[COLUMNS_KEY.encode()])
            instants = set(_NUMBERS.decode(known[INSTANTS_KEY.encode()]))
        except (KeyError, msgspec.DecodeError, UnicodeDecodeError):
            raise self._wrong("does not name its columns") from None
        if [(item.name, item.type) for item in named] != [(column.name, column.type) for column in columns]:
            raise self._wrong("does not have the columns of the result")
        counted = self._root.execute(f"SELECT num_rows FROM parquet_file_metadata({file})").fetchone()
        if counted is None or counted[0] != told.rows:
            raise self._wrong("does not have the number of rows of the result")
        described = self._root.execute(f"DESCRIBE FROM {self._source}").fetchall()
        stored: list[StoredColumn] = []
        for number, column in enumerate(columns):
            name = f"c{number}"
            if number >= len(described) or described[number][0] != name:
                raise self._wrong("does not have the columns of the result")
            kind = str(described[number][1])
            type_id = kind.partition("(")[0].lower()
            fits = type_id in _STORED.get(column.type, ()) or (type_id == "decimal" and kind == column.type)
            if kind != "VARCHAR" and not (fits and type_id in NATIVE):
                raise self._wrong(f"has the type {kind[:100]} for {column.type[:100]}")
            string = f"({string_of(type_id, name)})"
            if number in instants and told.zone != "UTC":
                string = self._zoned(type_id, name)
            stored.append(StoredColumn(column, name, type_id, string))
        return stored

    def _zoned(self, type_id: str, name: str) -> str:
        if type_id != ZONED or not self._told.zone:
            raise Unavailable
        found = self._root.execute(
            f"SELECT min(epoch_us({name})), max(epoch_us({name})) FROM {self._source} WHERE isfinite({name})"
        ).fetchone()
        least, most = found or (None, None)
        string = in_zone(name, self._told.zone, least or 0, most or 0)
        if string is None:
            raise Unavailable
        return string

    def _stretched(self, place: Path, skip: int) -> list[tuple[int, int]]:
        """The first row and the number of rows of each stretch, without the first `skip` rows."""
        file = literal(str(place))
        groups = self._root.execute(
            "SELECT any_value(row_group_num_rows), sum(total_uncompressed_size)::BIGINT "
            f"FROM parquet_metadata({file}) GROUP BY row_group_id ORDER BY row_group_id"
        ).fetchall()
        if sum(rows for rows, _ in groups) != self._told.rows or any(rows < 0 for rows, _ in groups):
            raise self._wrong("does not have the number of rows of the result")
        block = block_of(self._told.rows)
        return stretches(groups, self._measured(file, block), block, len(self.stored), skip)

    def _measured(self, file: str, block: int) -> Iterator[int]:
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
        found = self._root.execute(
            f"SELECT sum({' + '.join(names)})::BIGINT + 1 FROM {self._source} GROUP BY {at} ORDER BY {at}"
        )
        while some := found.fetchmany(10_000):
            yield from (size for (size,) in some)


FileRows = bytes | list[list[Any]] | None
"""Rows of a file in the form that was asked for: their text, or their values by column."""


class FileBatch(Batch):
    """Rows of a file, in the form that was asked for."""

    __slots__ = ("_found", "_of", "_read")

    def __init__(self, width: int, count: int, of: LineSql, found: FileRows, read: Callable[[], Rows]) -> None:
        super().__init__(width, count=count)
        self.size = len(found) if isinstance(found, bytes) else 0
        self._of = of
        self._found = found
        self._read = read

    def lines(self, of: LineSql) -> bytes | None:
        return self._found if of == self._of and isinstance(self._found, bytes) else None

    def values(self) -> list[list[Any]] | None:
        return self._found if isinstance(self._found, list) else None

    @property
    def rows(self) -> Rows:
        if self._rows is None:
            self._rows = self._read()
        return self._rows


class WholeReader:
    """The batches of a result: its first partition, then either the others or, after choose(), those of its file.

    Partitions are read as PartitionReader does. After an error the next step tries the same rows again.
    """

    def __init__(self, partitions: PartitionReader, file: ResultFile, first: int, *, large: bool = True) -> None:
        self._partitions = partitions
        self._file = file
        self._first = first
        self._large = large
        self._of: LineSql | None = None
        self._by_column = False
        self._given = 0
        self._reader: FileReader | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._coming: deque[asyncio.Future[FileRows]] = deque()
        self._folder: Path | None = None
        self._next = 0

    @property
    def own(self) -> bool:
        return self._file.transport().inside

    def choose(self, of: LineSql) -> None:
        if not self._given and self._large:
            self._of, self._by_column = of, False

    def choose_values(self) -> None:
        if not self._given and self._large:
            self._of, self._by_column = _no_line, True

    async def fetch(self, place: Path) -> list[StoredColumn] | None:
        if _is_pattern(place):
            return None
        try:
            await self._file.fetch(place)
            # The instants keep their type; no string of them is needed.
            return await asyncio.to_thread(self._checked, place, replace(self._file, zone="UTC"))
        except (Unavailable, OSError):
            return None

    async def keep(self, opened: Callable[[], DownloadFile]) -> bool:
        if not self._large:
            return False
        with opened() as file:
            try:
                await self._file.keep(file)
            except Unavailable:
                return False
        return True

    async def table(self) -> ResultTable | None:
        folder: Path | None = None
        table: ResultTable | None = None
        try:
            folder = scratch().folder("result")
            place = folder / "result.parquet"
            if not _is_pattern(place):
                await self._file.fetch(place)
                columns = await asyncio.to_thread(self._columns, place, self._file)
                table = ResultTable(folder, place, columns, self._redacted)
        except (Unavailable, OSError):
            pass
        finally:
            if table is None and folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
        return table

    def _redacted(self, body: bytes) -> bytes:
        return bytes(self._file.transport().redacted(body))

    @staticmethod
    def _checked(place: Path, file: ResultFile) -> list[StoredColumn]:
        """As _columns(). Raises Unavailable for a file with a secret, which is removed only from partitions."""
        reader = FileReader(place, file, _no_line, 0)
        try:
            if reader.contains(file.transport().secrets_in_rows()):
                raise Unavailable
        finally:
            reader.close()
        return reader.stored

    @staticmethod
    def _columns(place: Path, file: ResultFile) -> list[StoredColumn]:
        reader = FileReader(place, file, _no_line, 0)
        reader.close()
        return reader.stored

    def __aiter__(self) -> WholeReader:
        return self

    async def __anext__(self) -> Batch:
        self._given += 1
        if self._given == 1 and self._of is not None and self._first:
            return self._partitions.take_first()
        if self._of is not None and self._reader is None:
            try:
                await self._open(self._of)
            except Unavailable:
                self._of = None
                await self._leave()
        if self._reader is None or self._of is None:
            return await anext(self._partitions)
        return await self._stretch(self._reader, self._of)

    async def aclose(self) -> None:
        self._of = None
        await self._partitions.aclose()
        await self._leave()

    async def _open(self, of: LineSql) -> None:
        try:
            folder = self._folder = scratch().folder("result")
        except OSError as error:
            raise Unavailable from error
        # For a reader that is dropped without aclose().
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        place = folder / "result.parquet"
        if _is_pattern(place):
            raise Unavailable
        self._threads = ThreadPoolExecutor(READERS, "result")
        # Takes as long as fetching the file.
        self._threads.submit(import_module, "duckdb")
        await self._file.fetch(place)
        opening = self._threads.submit(FileReader, place, self._file, of, self._first)
        self._reader = await asyncio.shield(asyncio.wrap_future(opening))

    async def _stretch(self, reader: FileReader, of: LineSql) -> Batch:
        if self._next >= len(reader.stretches):
            raise StopAsyncIteration
        start, count = reader.stretches[self._next]
        self._begin(reader, 1 if self._by_column else READERS)
        coming = self._coming[0]
        try:
            found = await asyncio.shield(coming)
        except BaseException:
            if coming.done():
                self._forget_coming()
            raise
        self._coming.popleft()
        self._next += 1
        # Making Python objects ahead would only compete with the reader for the GIL.
        self._begin(reader, 0 if self._by_column else READERS)
        return FileBatch(len(self._file.columns), count, of, found, lambda: self._rows(reader, start, count))

    def _begin(self, reader: FileReader, most: int) -> None:
        """Begin to read the next stretches, `most` at once."""
        assert self._threads is not None
        read: Callable[[int, int], FileRows] = reader.values if self._by_column else reader.text
        for start, count in reader.stretches[self._next + len(self._coming) : self._next + most]:
            self._coming.append(asyncio.wrap_future(self._threads.submit(read, start, count)))

    def _forget_coming(self) -> None:
        """The next step reads the same stretch again."""
        for future in self._coming:
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._coming.clear()

    def _rows(self, reader: FileReader, start: int, count: int) -> Rows:
        assert self._threads is not None
        return self._threads.submit(reader.rows, start, count).result()

    async def _leave(self) -> None:
        """Nothing of the file remains."""
        reader, self._reader = self._reader, None
        threads, self._threads = self._threads, None
        coming, self._coming = [*self._coming], deque()
        folder, self._folder = self._folder, None
        if reader is not None:
            reader.interrupt()
        if coming:
            await asyncio.wait(coming)
            for future in coming:
                future.cancelled() or future.exception()
        if threads is not None:
            threads.shutdown()
        if reader is not None:
            # Not in a thread: none can be started any more while the interpreter ends.
            reader.close()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _no_line(columns: Sequence[StoredColumn]) -> str:
    return "''"


def _value(column: StoredColumn) -> str:
    """SQL for a value in the form that Batch.values() describes."""
    if column.type_id == "boolean":
        return f"{column.name}::TINYINT"
    if column.type_id == "float":
        # The DOUBLE with the digits of its text.
        return f"{column.name}::VARCHAR::DOUBLE"
    return column.name if column.type_id in _FORMATS else column.string


def _linked(kept: Path, place: Path) -> None:
    try:
        place.hardlink_to(kept)
    except OSError:
        # Another file system.
        shutil.copyfile(kept, place)


def _is_pattern(place: Path) -> bool:
    """Whether DuckDB would take a path for a pattern."""
    return any(char in str(place) for char in "*?[")
