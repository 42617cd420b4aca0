"""What everything above the client speaks: columns, batches of rows, and the result that they come from."""

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
"""An answer's body: as it was received, without a copy."""

_DATA = msgspec.json.Decoder(StatementData)


class Column(Struct, frozen=True):
    """One column of a result set: `type` is the interface's text, such as `DECIMAL(10,2)`; the hint is taken off it."""

    name: str
    type: str = "VARCHAR"
    nullable: bool | None = None
    display_hint: str = ""

    @property
    def kind(self) -> Kind:
        return kind(self.type)


class Batch:
    """The rows of one partition, decoded from the answer's body when they are first asked for.

    `width` is the number of columns that each row must have; a row of another length is a ProtocolError, for a writer
    would put its values under the wrong names.
    """

    __slots__ = ("_body", "_count", "_rows", "number", "size", "width")

    def __init__(
        self, width: int, *, body: Body = b"", rows: Rows | None = None, number: int = 0, count: int | None = None
    ) -> None:
        self.width = width
        self.number = number
        self.size = len(body)
        """The bytes of the answer that the rows came in."""
        self._count = count
        self._body = body
        self._rows = rows

    @property
    def announced(self) -> int | None:
        """How many rows the service said that there are; None where it did not, or where they are decoded already."""
        return self._count if self._rows is None else None

    @property
    def body(self) -> Body:
        """The answer that the rows are in; empty once they are decoded."""
        return self._body

    @property
    def rows(self) -> Rows:
        """The rows: a list per row, a str or None per value. Raises ProtocolError."""
        if self._rows is None:
            rows = self.decode(self._body, self.number)
            if not {len(row) for row in rows} <= {self.width}:
                raise ProtocolError(f"partition {self.number}: rows do not have the {self.width} values of the columns")
            self._rows = rows
            self._body = b""
        return self._rows

    @staticmethod
    def decode(body: Body, number: int) -> Rows:
        """The rows in the body of an answer. Raises ProtocolError."""
        try:
            return _DATA.decode(body).data or []
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ProtocolError(f"partition {number}: the rows cannot be read: {error}") from error


class Partitions(Protocol):
    """Batches in order. Not a generator: after an error the next step asks for the same partition again."""

    def __aiter__(self) -> AsyncIterator[Batch]: ...

    async def __anext__(self) -> Batch: ...

    async def aclose(self) -> None:
        """Stop fetching; nothing stays in flight."""


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
    """A result that has no end of its own: the query at the service goes on when its reader leaves."""

    @property
    def rows(self) -> int:
        """The rows given so far."""

    @property
    def gaps(self) -> int:
        """How often rows may have been missed."""

    @property
    def ended(self) -> str:
        """Why no more rows come: "service", "stopped", "max_rows", "seconds" or "failure"; "" while they may."""

    @property
    def query_id(self) -> str:
        """What TERMINATE QUERY takes; "" where the service does not tell."""

    def stop(self) -> None:
        """End it here, after the rows that have come."""


class Result(Struct):
    """What one statement gave.

    `columns` is empty for a statement without rows. `row_counts` has the rows of each partition where the service tells
    them, else it is None; `context` is the service's echo. `partition(n)` fetches any partition, `batches` is all of
    them once, in order.
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
    """Seconds that the statement took, where the service tells them."""
    label: str = ""
    """Action and target, where the legacy interface tells them."""
    secret: str = ""
    """What the service shows once: never kept, logged or written anywhere but to the person."""

    def __repr__(self) -> str:
        return f"Result({self.statement_id!r}, {self.sql_state!r})"

    @property
    def row_count(self) -> int | None:
        """The rows of all partitions, where the service tells them."""
        return None if self.row_counts is None else sum(self.row_counts)
