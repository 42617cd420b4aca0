"""The result of a statement: its columns and its batches of rows. Everything above the client uses these types."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol

import msgspec
from msgspec import Struct

from sqlshell.errors import ProtocolError
from sqlshell.interface.models import ContextEcho, Rows, StatementData
from sqlshell.interface.types import Kind, kind

__all__ = ["Batch", "Body", "Column", "Partitions", "Result", "Rows"]

Body = bytes | bytearray
"""The body of an answer as received, not copied."""

_DATA = msgspec.json.Decoder(StatementData)


class Column(Struct, frozen=True):
    """One column of a result set: `type` is the interface's text, such as `DECIMAL(10,2)`, without the display hint."""

    name: str
    type: str = "VARCHAR"
    nullable: bool | None = None
    display_hint: str = ""

    @property
    def kind(self) -> Kind:
        return kind(self.type)


class Batch:
    """The rows of one partition, decoded from the answer's body on first access.

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
        """Size in bytes of the answer that contained the rows."""
        self._count = count
        self._body = body
        self._rows = rows

    @property
    def announced(self) -> int | None:
        """The number of rows that the service announced; None if it did not, or if the rows are already decoded."""
        return self._count if self._rows is None else None

    @property
    def body(self) -> Body:
        """The answer that contains the rows; empty once they are decoded."""
        return self._body

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
        """The rows in the body of an answer. Raises ProtocolError."""
        try:
            return _DATA.decode(body).data or []
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ProtocolError(f"partition {number}: cannot decode the rows: {error}") from error


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


class Endless(Protocol):
    """An unbounded result: the query at the service keeps running when its reader leaves."""

    @property
    def rows(self) -> int:
        """The number of rows read so far."""

    @property
    def gaps(self) -> int:
        """The number of gaps, in which rows may be missing."""

    @property
    def ended(self) -> str:
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
    endless: Endless | None = None
    elapsed: float | None = None
    """Seconds that the statement took, if the service reports them."""
    label: str = ""
    """Action and target, if the legacy interface reports them."""
    secret: str = ""
    """A secret that the service shows once: printed to the person, but never stored or logged."""

    def __repr__(self) -> str:
        return f"Result({self.statement_id!r}, {self.sql_state!r})"

    @property
    def row_count(self) -> int | None:
        """The number of rows of all partitions, None if the service does not report it."""
        return None if self.row_counts is None else sum(self.row_counts)
