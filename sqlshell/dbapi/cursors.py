"""The common parts of both kinds of cursors: the attributes of PEP 249, executing statements, and reading rows."""

from __future__ import annotations

import asyncio
import itertools
import operator
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple, NoReturn

from msgspec import Struct
from msgspec.structs import replace

from sqlshell.client.http.upload import Attachment, attachment, checked_name
from sqlshell.dbapi.binding import Parameters, RowInsert, row_insert, statement_text, template_of
from sqlshell.dbapi.bulk import copy_statement, file_chunks, write_parquet
from sqlshell.dbapi.exceptions import InterfaceError, ProgrammingError
from sqlshell.dbapi.literals import Literals
from sqlshell.dbapi.rows import Row, RowDecoder
from sqlshell.dbapi.session import Running, Session
from sqlshell.interface.types import Kind, size_of
from sqlshell.origin import Trusted
from sqlshell.result import Batch, Column, Partitions, Result
from sqlshell.runtime.scratch import scratch

Attachments = Mapping[str, str | os.PathLike[str] | bytes | bytearray | memoryview]
"""Files for a statement, by the names that the SQL uses: paths, or their contents as bytes."""

_ATTACHMENTS = "pass a dict of names and paths, or contents as bytes"

STATEMENTS_PER_REQUEST = 500
"""The number of statements of executemany() that are sent together."""


class Description(NamedTuple):
    """A column of a result, as PEP 249 describes one. `type_code` is the interface's type, such as `DECIMAL(10,2)`."""

    name: str
    type_code: str
    display_size: int | None
    internal_size: int | None
    precision: int | None
    scale: int | None
    null_ok: bool | None


class Created(NamedTuple):
    """What a CREATE … AS SELECT or INSERT INTO … SELECT has created, as the service describes it: `name` is the name of
    the relation or the ID of the query, `path` a JSON array."""

    type: str | None
    name: str | None
    command: str | None
    summary: str | None
    path: str | None


class Group(Struct, frozen=True):
    """Statements that are sent together, or one with a file; `rows` is how many rows they insert, None if unknown."""

    statements: list[str]
    rows: int | None = None
    file: Path | None = None


class CursorState:
    """The attributes of a cursor, and the steps of the methods that wait."""

    def __init__(self, session: Session) -> None:
        self._arraysize = 1
        self.description: list[Description] | None = None
        self.rowcount = -1
        self.sqlstate = ""
        self.statusmessage = ""
        self.created: Created | None = None
        self.closed = False
        self._session = session
        self._running = Running()
        self._results: list[Result] = []
        self._result: Result | None = None
        self._decoder = RowDecoder(())
        self._rows: list[Row] = []
        self._next_row = 0
        self._rows_fetched = 0
        self._batch: Batch | None = None
        self._turn = asyncio.Lock()

    @property
    def statement_id(self) -> str:
        """The ID that the service assigned to the statement, also while it runs; "" before that."""
        return self._running.statement_id

    @property
    def arraysize(self) -> int:
        """The number of rows that fetchmany() returns by default. Setting it raises ProgrammingError below 1."""
        return self._arraysize

    @arraysize.setter
    def arraysize(self, value: int) -> None:
        self._arraysize = _count("arraysize", value, least=1)

    def _wanted(self, size: int | None) -> int:
        """The number of rows for fetchmany(). Raises ProgrammingError if the size is not a number of rows."""
        return self._arraysize if size is None else _count("size", size, least=0)

    @property
    def rownumber(self) -> int | None:
        """The index of the next row in the result, starting at 0; None without a result."""
        return None if self.description is None else self._rows_fetched

    def __reduce__(self) -> NoReturn:
        raise TypeError("a cursor cannot be copied or pickled: create another one")

    def setinputsizes(self, sizes: Sequence[object]) -> None:
        """Does nothing, because each value determines its type."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing, because the length of values is not limited."""

    def _groups(self, sql: str, rows: Iterable[Parameters], literals: Literals) -> Iterator[Group]:
        """The statements of executemany(). Raises what iterating `rows` and Template.bound() raise."""
        sql = statement_text(sql)
        try:
            each = iter(rows)
        except TypeError:
            raise ProgrammingError(
                f"the rows must be an iterable of sequences or mappings, not {type(rows).__name__}"
            ) from None
        try:
            first = next(each)
        except StopIteration:
            self.rowcount = 0
            return
        named = isinstance(first, Mapping)
        each = itertools.chain([first], each)
        insert = row_insert(sql, named=named)
        if insert is not None:
            yield from self._inserts(insert, each, literals)
            return
        template = template_of(sql, named=named)
        while texts := [template.bound(row, literals) for row in islice(each, STATEMENTS_PER_REQUEST)]:
            yield Group(texts)

    def _inserts(self, insert: RowInsert, rows: Iterator[Parameters], literals: Literals) -> Iterator[Group]:
        copy = copy_statement(insert) if self._session.loads_files else None
        if copy is None:
            for text, count in insert.statements(rows, literals):
                yield Group([text], count)
            return
        for part in file_chunks(rows):
            file = write_parquet(part, insert.row.names, len(insert.row.pieces) - 1)
            if file is not None:
                yield Group([copy], len(part), file)
            else:
                yield from (Group([text], count) for text, count in insert.statements(part, literals))

    async def _run_group(self, group: Group) -> None:
        if group.file is not None:
            await self._load(group, group.file)
            return
        changed = max(self.rowcount, 0)
        known = True
        async for result in self._session.execute_each(group.statements, self._running):
            await result.batches.aclose()
            self._adopt_outcome(result)
            # If the service reports no number, an INSERT of n rows has inserted n.
            number = result.changed_rows if result.changed_rows is not None else group.rows
            known = known and number is not None
            changed += number or 0
        self.rowcount = changed if known else -1

    async def _load(self, group: Group, file: Path) -> None:
        try:
            given = attachment(Trusted(str(file)), self._session.upload_limit)
            for result in await self._session.execute(group.statements[0], [given], self._running):
                await result.batches.aclose()
                self._adopt_outcome(result)
            self.rowcount = max(self.rowcount, 0) + (group.rows or 0)
        finally:
            shutil.rmtree(file.parent, ignore_errors=True)

    async def _read_batch(self) -> bool:
        """Read the next rows; False at the end. Raises ProgrammingError if there is no result."""
        self._session.check_loop()
        with self._session.reporting_closed():
            async for batch in self._rows_result().batches:
                self._rows, self._next_row, self._batch = self._decoder.rows(batch), 0, batch
                if self._rows:
                    return True
        self._drop_rows()
        return False

    async def _fetch_many(self, size: int | None) -> list[Row]:
        """The next `size` rows, or all of them (None)."""
        self._check()
        rows = self._take(size)
        try:
            while (size is None or len(rows) < size) and await self._read_batch():
                rows += self._take(None if size is None else size - len(rows))
        except BaseException:
            # They are the next ones again.
            if rows:
                self._rows, self._next_row, self._batch = rows + self._rows[self._next_row :], 0, None
                self._rows_fetched -= len(rows)
            raise
        return rows

    async def _discard_results(self) -> None:
        """Discard the current results."""
        self._check()
        while self._result is not None:
            await self._close_result()
            self._result = self._results.pop(0) if self._results else None
        self.description, self.rowcount, self.created = None, -1, None
        self._running.statement_id = self.sqlstate = self.statusmessage = ""

    async def _close_result(self) -> None:
        result, self._result = self._result, None
        self._drop_rows()
        if result is not None:
            await result.batches.aclose()
            if result.endless is not None and not result.endless.end_reason and result.endless.query_id:
                await self._session.terminate(result.endless.query_id)

    def _rows_result(self) -> Result:
        """The current result. Raises ProgrammingError if it has no rows, or if there is none."""
        self._check()
        if self._result is None or self.description is None:
            raise ProgrammingError(
                "there are no rows to fetch: no statement was executed, or the last one returned no result set"
            )
        return self._result

    def _check(self) -> None:
        if self.closed:
            raise InterfaceError("the cursor is closed")
        self._session.check()

    def _take(self, size: int | None) -> list[Row]:
        """Up to `size` of the rows in memory, or all of them (None)."""
        if size is None:
            rows = self._rows[self._next_row :] if self._next_row else self._rows
            self._drop_rows()
        else:
            rows = self._rows[self._next_row : self._next_row + size]
            self._next_row += len(rows)
        self._rows_fetched += len(rows)
        return rows

    def _drop_rows(self) -> None:
        self._rows, self._next_row, self._batch = [], 0, None

    def _begin_next_result(self) -> None:
        """Start reading the next result."""
        result = self._results.pop(0)
        self._adopt_outcome(result)
        self._rows_fetched = 0
        self._result = result
        if result.columns:
            self._decoder = RowDecoder(result.columns)
            self.created = None
            self.description = [_description_of(column) for column in result.columns]
            self.rowcount = -1 if result.row_count is None or result.endless is not None else result.row_count
        else:
            self.description = None
            self.created = Created(*result.created) if result.created else None
            self.rowcount = -1 if result.changed_rows is None else result.changed_rows

    def _adopt_outcome(self, result: Result) -> None:
        self._running.statement_id = result.statement_id
        self.sqlstate, self.statusmessage = result.sql_state, result.message

    def _files(self, attachments: Attachments, folder: list[Path]) -> list[Attachment]:
        """The files of a statement. Contents given as bytes are written to a new folder, appended to `folder`."""
        files: list[Attachment] = []
        if not isinstance(attachments, Mapping):
            raise ProgrammingError(
                f"attachments must be a mapping, not {type(attachments).__name__}", hint=_ATTACHMENTS
            )
        for name, given in attachments.items():
            if not isinstance(name, str):
                raise ProgrammingError(f"the name of an attachment must be a str, not {type(name).__name__}")
            if isinstance(given, bytes | bytearray | memoryview):
                if not folder:
                    folder.append(scratch().folder("attachments"))
                path = folder[0] / str(len(files))
                path.write_bytes(given)
            elif isinstance(given, str | os.PathLike):
                path = Path(given)
            else:
                raise ProgrammingError(f"cannot attach a value of type {type(given).__name__}", hint=_ATTACHMENTS)
            file = attachment(Trusted(str(path)), self._session.upload_limit)
            files.append(replace(file, name=checked_name(name)))
        return files


class Remaining:
    """The rows of a batch that were not fetched, and the following batches."""

    def __init__(self, batch: Batch | None, at: int, batches: Partitions) -> None:
        self._batch = batch
        self._next_row = at
        self._batches = batches

    def __aiter__(self) -> Remaining:
        return self

    async def __anext__(self) -> Batch:
        batch, self._batch = self._batch, None
        if batch is not None and self._next_row < len(batch.rows):
            return Batch(batch.width, rows=batch.rows[self._next_row :])
        return await anext(self._batches)

    async def aclose(self) -> None:
        await self._batches.aclose()


def _count(name: str, value: object, *, least: int) -> int:
    """Raises ProgrammingError if the value is not an integer, or is less than `least`."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ProgrammingError(f"{name} must be an int, not {type(value).__name__}") from None
    if number < least:
        raise ProgrammingError(f"{name} must be at least {least}, not {number}")
    return number


def _description_of(column: Column) -> Description:
    sizes = size_of(column.type)
    code = column.exact_type
    precision, scale = (*sizes, 0)[:2] if sizes and column.kind is Kind.DECIMAL else (None, None)
    internal = sizes[0] if sizes and column.kind in {Kind.TEXT, Kind.BYTES} else None
    return Description(column.name, code, None, internal, precision, scale, column.nullable)
