"""The result of a statement: its columns and its batches of rows. Everything above the client uses these types."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import Struct

from sqlshell.errors import ProtocolError
from sqlshell.interface import sqlstate
from sqlshell.interface.models import ContextEcho, Rows, StatementData
from sqlshell.interface.types import Kind, kind

if TYPE_CHECKING:
    import duckdb

__all__ = ["Batch", "Body", "Column", "Partitions", "Result", "Rows"]

Body = bytes | bytearray
"""The body of a response as received, not copied."""

_COMMAND_TAG_COUNT = re.compile(r"[A-Z ]+ (\d{1,18})")

_DATA = msgspec.json.Decoder(StatementData)


class Column(Struct, frozen=True):
    """One column of a result set: `type` is the interface's text, such as `DECIMAL(10,2)`, without the display hint."""

    name: str
    type: str = "VARCHAR"
    nullable: bool | None = None
    display_hint: str = ""
    engine_type: str = ""
    """The engine's type, if it was requested and does not follow from `type`: `UUID`, `ARRAY<HUGEINT>`."""

    @property
    def kind(self) -> Kind:
        return kind(self.type)

    @property
    def exact_type(self) -> str:
        """The engine's type if it is known, else the interface's."""
        return self.engine_type or self.type


class Batch:
    """The rows of one partition, decoded from the response on first access.

    `width` is the number of values that each row must have; a row of another length is a ProtocolError, because a
    writer would put its values under the wrong names.
    """

    __slots__ = ("_body", "_count", "_rows", "number", "size", "width")

    def __init__(
        self, width: int, *, body: Body = b"", rows: Rows | None = None, number: int = 0, count: int | None = None
    ) -> None:
        self.width = width
        self.number = number
        self.size = len(body)
        """Size in bytes of the response that contained the rows."""
        self._count = count
        self._body = body
        self._rows = rows

    @property
    def announced(self) -> int | None:
        """The number of rows that the service announced; None if it did not, or if the rows are already decoded."""
        return self._count if self._rows is None else None

    @property
    def body(self) -> Body:
        """The response that contains the rows; empty once they are decoded."""
        return self._body

    def lines(self, of: LineSql) -> bytes | None:
        """The rows in the form that `of` describes, if this batch was made for it."""
        return None

    @property
    def rows(self) -> Rows:
        """The rows: a list per row, a str or None per value. Raises ProtocolError."""
        if self._rows is None:
            rows = self.decode(self._body, self.number)
            if not {len(row) for row in rows} <= {self.width}:
                raise ProtocolError(f"partition {self.number}: each row must have {self.width} values, one per column")
            self._rows = rows
            self._body = b""
        return self._rows

    @staticmethod
    def decode(body: Body, number: int) -> Rows:
        """The rows in the body of a response. Raises ProtocolError."""
        try:
            return _DATA.decode(body).data or []
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ProtocolError(f"partition {number}: cannot decode the rows: {error}") from error


class FileUnavailable(Exception):
    """The rows of a result after the first `rows` cannot be read from its file, only from its partitions."""

    def __init__(self, rows: int = 0) -> None:
        super().__init__(rows)
        self.rows = rows


class StoredColumn(Struct, frozen=True):
    """A column of a whole result: `name` is that of its values in SQL, `type_id` DuckDB's id of their type, and
    `string` is SQL for the interface's string of a value."""

    column: Column
    name: str
    type_id: str
    string: str

    @property
    def is_text(self) -> bool:
        """Whether the values are stored as strings, which may contain any character."""
        return self.type_id == "varchar"


LineSql = Callable[[Sequence[StoredColumn]], str | None]
"""SQL for the text of a row in some format. Its value is NULL for a row that requires the plain way; None says that
these columns do."""


class Table(Protocol):
    """The rows of a result in a DuckDB of their own: `source` is SQL for a relation with the `columns`, and with
    `file_row_number`, from 0.

    They are in the file `place` of `size` bytes, alone in a folder that close() removes, or the garbage collector;
    `made` is another file there that queries may write.
    """

    @property
    def columns(self) -> Sequence[StoredColumn]: ...

    @property
    def source(self) -> str: ...

    @property
    def connection(self) -> duckdb.DuckDBPyConnection: ...

    @property
    def place(self) -> Path: ...

    @property
    def made(self) -> Path: ...

    @property
    def size(self) -> int: ...

    async def query(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query. One runs at a time; a canceled one is interrupted. Raises OutputError."""

    async def texts(self, sql: str) -> Rows:
        """The rows of a query with one column, a list of strings. Raises OutputError."""

    def interrupt(self) -> None:
        """Stop what runs in another thread."""

    def close(self) -> None: ...


class FileResult(Protocol):
    """A result that can also be read as a file, which DuckDB turns into text."""

    def choose(self, of: LineSql) -> None:
        """Announce, before the first batch, that all rows will be written in this form. The batches then have lines(),
        if the result is large enough and the file is available."""

    async def skip(self, rows: int) -> None:
        """Make the batch after the first `rows` rows, from partitions, the next one."""

    async def table(self, *, typed: bool = False) -> Table | None:
        """The rows as a table, to be closed; None if the file is not available. One that is `typed` is for reading all
        values: it has no strings of instants in the time zone of the result.

        Raises ProtocolError for a file that is not that of the result.
        """


class Partitions(Protocol):
    """Batches in order. Not a generator: after an error, the next step requests the same partition again."""

    def __aiter__(self) -> AsyncIterator[Batch]: ...

    async def __anext__(self) -> Batch: ...

    async def aclose(self) -> None:
        """Stop fetching and cancel the requests in flight."""


class HeldBatches:
    """One batch that is in memory, as Partitions."""

    def __init__(self, batch: Batch) -> None:
        self._batch: Batch | None = batch

    def __aiter__(self) -> HeldBatches:
        return self

    async def __anext__(self) -> Batch:
        batch, self._batch = self._batch, None
        if batch is None:
            raise StopAsyncIteration
        return batch

    async def aclose(self) -> None:
        self._batch = None


class BatchWrapper:
    """Batches of another source, which a subclass looks at or replaces as they are read."""

    def __init__(self, batches: Partitions) -> None:
        self._batches = batches

    def __aiter__(self) -> BatchWrapper:
        return self

    async def __anext__(self) -> Batch:
        try:
            batch = await anext(self._batches)
        except StopAsyncIteration:
            self.at_end()
            raise
        return self.each(batch)

    async def aclose(self) -> None:
        await self._batches.aclose()

    def each(self, batch: Batch) -> Batch:
        """The batch to give to the reader."""
        return batch

    def at_end(self) -> None:
        """The last batch has been read. Not called when the reader leaves before it, nor after an error."""


class StreamingResult(Protocol):
    """An unbounded result: the query at the service keeps running when its reader leaves."""

    @property
    def rows(self) -> int:
        """The number of rows read so far."""

    @property
    def gaps(self) -> int:
        """The number of gaps, in which rows may be missing."""

    @property
    def end_reason(self) -> str:
        """Why the result ended: "service", "stopped", "max_rows", "seconds" or "failure"; "" while it is running."""

    @property
    def query_id(self) -> str:
        """The id for TERMINATE QUERY; "" if the service does not report one."""

    def stop(self) -> None:
        """Stop reading after the rows that have arrived."""


class Result(Struct):
    """The result of one statement.

    `columns` is empty for a statement without rows. `row_counts` has the number of rows of each partition, or is None
    if the service does not report them; `context` is the service's echo. `partition(n)` fetches any partition,
    `batches` yields all of them once, in order.
    """

    columns: list[Column]
    batches: Partitions
    statement_id: str = ""
    sql_state: str = "00000"
    message: str = ""
    context: ContextEcho | None = None
    row_counts: list[int] | None = None
    partition: Callable[[int], Awaitable[Batch]] | None = None
    endless: StreamingResult | None = None
    elapsed: float | None = None
    """Seconds that the statement took, if the service reports them."""
    whole: FileResult | None = None
    """The result as a file, if the service has it."""
    label: str = ""
    """Action and target, if the legacy interface reports them."""
    created: tuple[str | None, ...] = ()
    """What the statement created: type, name, command, summary and path, if that was the result's row."""
    secret: str = ""
    """A secret that the service shows once: printed to the person, but never stored or logged."""

    def __repr__(self) -> str:
        return f"Result({self.statement_id!r}, {self.sql_state!r})"

    @property
    def changed_rows(self) -> int | None:
        """The number of rows that the statement changed, None if the service does not report it (`INSERT 5`, which may
        follow the lines of a warning)."""
        match = _COMMAND_TAG_COUNT.fullmatch(self.message.rpartition("\n")[2])
        return int(match[1]) if match is not None else None

    @property
    def limited(self) -> bool:
        """Whether the service stopped at the requested number of rows although there are more."""
        return self.sql_state == sqlstate.ROW_LIMIT

    @property
    def row_count(self) -> int | None:
        """The number of rows of all partitions, None if the service does not report it."""
        return None if self.row_counts is None else sum(self.row_counts)
