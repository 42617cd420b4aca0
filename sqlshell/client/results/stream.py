"""An unbounded result: the rows of a streaming data plane, as batches, when they arrive.

The protocol has no offsets: after a lost connection it is unknown whether rows were missed. If reconnecting is allowed,
each possible gap is reported; otherwise the result ends with an error.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import msgspec

from sqlshell.client.http.decompress import UNCOUNTED_BYTES, count_values
from sqlshell.client.http.options import NetworkOptions
from sqlshell.client.http.retries import Retries
from sqlshell.client.statements.client import StreamLimits
from sqlshell.client.statements.protocol import COLUMN_LIMIT
from sqlshell.errors import (
    ConnectionBroken,
    ConnectionFailed,
    NotAuthenticated,
    ProtocolError,
    ShellError,
    StatementError,
    Where,
)
from sqlshell.result import Batch, Column, Rows
from sqlshell.text import format_count

COLUMNS_SECONDS = 60.0
"""How long to wait for the columns, in seconds."""

UNAUTHORIZED_CODES = frozenset({1008, 4401, 4403})
NORMAL_CODES = frozenset({1000, 1001})
NO_CLOSE_CODE = 1006

_BATCH = 10_000


class ClosedWhileSending(Exception):
    """The connection was closed while the first frame was being sent."""


class Frames(Protocol):
    """The connection to a stream. `ended` says whether it is closed and all its frames have been taken."""

    @property
    def ended(self) -> bool: ...

    @property
    def close_code(self) -> int:
        """The close code; NO_CLOSE_CODE if there is none."""

    @property
    def close_reason(self) -> str:
        """The reason that the service gave when it closed the connection."""

    async def send_first(self, frame: str) -> None:
        """Send the first frame. Raises ClosedWhileSending."""

    async def frames(self, timeout: float | None) -> list[bytes]:
        """All frames that have arrived, at least one; none at the end, or if none arrives within `timeout` seconds."""


class _Frame(msgspec.Struct, rename="camel"):
    type: str = ""
    data: list[str | None] | None = None
    columns: list[dict[str, Any]] | None = None
    message: Any = None
    sql_code: Any = None


_FRAME = msgspec.json.Decoder(_Frame)


Open = Callable[[], Awaitable[AbstractAsyncContextManager[Frames]]]


class Stream:
    """The batches of an unbounded result; see result.Partitions.

    `open_` connects with a new token; `hello` is the first frame to send; `explain` asks the service why a query
    failed; `say` reports gaps.
    """

    def __init__(
        self,
        open_: Open,
        hello: Callable[[], str],
        limits: StreamLimits,
        network: NetworkOptions,
        explain: Callable[[], Awaitable[str]],
        say: Callable[[str], None],
        where: Where,
        query_id: str,
    ) -> None:
        self.query_id = query_id
        self._open = open_
        self._hello = hello
        self._limits = limits
        self._network = network
        self._explain = explain
        self._say = say
        self._where = where
        self._stack = contextlib.AsyncExitStack()
        self._connection: Frames | None = None
        self._unread_rows: Rows = []
        self._number = 0
        self._deadline: float | None = None
        self._last_received = time.time()
        self._failure: ShellError | None = None
        self._stopped = asyncio.Event()
        self._described = False
        """Whether the connection has sent the columns."""
        self.columns: list[Column] = []
        self.rows = 0
        self.gaps = 0
        self.end_reason = ""
        """Why no more rows come: "service", "stopped", "max_rows" or "seconds"; "" while they may."""

    async def begin(self) -> None:
        """Connect and wait for the columns. Raises the errors of __anext__."""
        try:
            await self._connect()
        except BaseException:
            await self._stack.aclose()
            raise
        if self._limits.seconds is not None:
            self._deadline = time.monotonic() + self._limits.seconds

    def stop(self) -> None:
        """Stop reading: rows that have arrived are still returned, then the result ends."""
        self._stopped.set()

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Batch:
        while True:
            if self._unread_rows:
                rows, self._unread_rows = self._unread_rows[:_BATCH], self._unread_rows[_BATCH:]
                return self._batch(rows)
            if self._failure is not None:
                failure, self._failure = self._failure, None
                self.end_reason = "failure"
                raise await self._with_history(failure)
            if self.end_reason or self._limit_reached():
                await self.aclose()
                raise StopAsyncIteration
            try:
                self._add_rows(await self._frames())
            except (ConnectionFailed, NotAuthenticated) as error:
                await self._handle_break(error)
            except ShellError as error:
                # The rows that arrived before it are returned first.
                self._failure = error

    async def aclose(self) -> None:
        """Close the connection; the query keeps running."""
        self.end_reason = self.end_reason or "stopped"
        await self._stack.aclose()

    def _batch(self, rows: Rows) -> Batch:
        most = self._limits.max_rows
        if most is not None and self.rows + len(rows) >= most:
            rows = rows[: most - self.rows]
            self._unread_rows = []
            self.end_reason = "max_rows"
        self.rows += len(rows)
        self._number += 1
        return Batch(len(self.columns), rows=rows, number=self._number)

    def _limit_reached(self) -> bool:
        if self._stopped.is_set():
            self.end_reason = "stopped"
        elif self._limits.max_rows is not None and self.rows >= self._limits.max_rows:
            self.end_reason = "max_rows"
        elif self._deadline is not None and time.monotonic() >= self._deadline:
            self.end_reason = "seconds"
        return bool(self.end_reason)

    async def _frames(self) -> list[bytes]:
        """The frames that have arrived; none if it is time to check the limits."""
        connection = self._connection
        assert connection is not None
        left = None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
        coming = asyncio.ensure_future(connection.frames(left))
        stopping = asyncio.ensure_future(self._stopped.wait())
        try:
            await asyncio.wait({coming, stopping}, return_when=asyncio.FIRST_COMPLETED)
            frames = coming.result() if coming.done() else []
        finally:
            for task in (coming, stopping):
                task.cancel()
            await asyncio.gather(coming, stopping, return_exceptions=True)
        if frames:
            self._last_received = time.time()
        elif connection.ended:
            self._raise_for_close(connection)
        return frames

    def _raise_for_close(self, connection: Frames) -> None:
        code = connection.close_code
        reason = f": {connection.close_reason}" if connection.close_reason else ""
        if code in NORMAL_CODES:
            self.end_reason = "service"
        elif code in UNAUTHORIZED_CODES:
            raise NotAuthenticated(f"the data plane refused access ({code}){reason}", where=self._where)
        else:
            what = "the connection to the stream was lost" if code == NO_CLOSE_CODE else "the stream was closed"
            message = f"{what} after {format_count(self.rows, 'row')}" + (
                "" if code == NO_CLOSE_CODE else f" (code {code})"
            )
            raise ConnectionBroken(message + reason, where=self._where)

    def _add_rows(self, frames: list[bytes]) -> None:
        """Convert frames to rows. Raises ProtocolError, and StatementError if the query failed."""
        for frame in frames:
            width = len(self.columns)
            row = self.rows + len(self._unread_rows)
            decoded = _decoded(frame, row, self._where)
            if decoded.type == "data":
                if not self._described:
                    raise ProtocolError("the stream sent rows before its columns", where=self._where)
                if decoded.data is None or len(decoded.data) != width:
                    raise ProtocolError(
                        f"row {row + 1} of the stream has {format_count(len(decoded.data or ()), 'value')}; "
                        f"expected {width}",
                        where=self._where,
                    )
                self._unread_rows.append(decoded.data)
            elif decoded.type == "error":
                raise _query_error(decoded, self._where)
            elif decoded.type == "metadata":
                self._set_columns(decoded)

    def _set_columns(self, frame: _Frame) -> None:
        columns = _columns(frame, self._where)
        if self.columns and [(item.name, item.type) for item in columns] != [
            (item.name, item.type) for item in self.columns
        ]:
            raise ProtocolError("the columns of the stream changed", where=self._where)
        self.columns, self._described = columns, True

    async def _connect(self) -> None:
        """Connect, authenticate and wait for the columns; retry if the error allows it."""
        tries = Retries(self._network, idempotent=True, known=True)
        while True:
            try:
                self._connection = await self._stack.enter_async_context(await self._open())
                await self._connection.send_first(self._hello())
                await self._receive_columns(self._connection)
                return
            except ConnectionFailed as error:
                await self._stack.aclose()
                wait = tries.after_error(error)
                if wait is None:
                    raise
                self._say(tries.named(error.message, wait))
                await self._pause(wait)
                if self._limit_reached():
                    return
            except StatementError as error:
                raise await self._with_history(error) from None
            except ClosedWhileSending as error:
                await self._stack.aclose()
                if self._connection is not None:
                    self._raise_for_close(self._connection)
                raise ConnectionBroken(
                    f"the stream closed while it was being opened: {error}", where=self._where
                ) from error

    async def _pause(self, seconds: float) -> None:
        """Wait, unless the reader stops in the meantime."""
        left = seconds if self._deadline is None else min(seconds, max(0.0, self._deadline - time.monotonic()))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(left):
                await self._stopped.wait()

    async def _receive_columns(self, connection: Frames) -> None:
        self._described = False
        until = time.monotonic() + COLUMNS_SECONDS
        while time.monotonic() < until:
            frames = await connection.frames(until - time.monotonic())
            if not frames and connection.ended:
                self._raise_for_close(connection)
                raise ProtocolError("the stream ended before it sent its columns", where=self._where)
            try:
                self._add_rows(frames)
            except ShellError as error:
                if not self._described:
                    raise
                self._failure = error
            if self._described:
                return
        raise ConnectionBroken("the stream did not send its columns in time", where=self._where)

    async def _handle_break(self, error: ShellError) -> None:
        """Continue after a gap, or store the error. All rows have been returned."""
        await self._stack.aclose()
        if not self._limits.reconnect or isinstance(error, NotAuthenticated) or _is_permanent(self._connection):
            self._failure = error
            if not isinstance(error, NotAuthenticated):
                error.hint = error.hint or "use --allow-gaps to reconnect; each possible gap is then reported"
            return
        self._say(f"{error.message}: reconnecting")
        since = self._last_received
        try:
            await self._connect()
        except ShellError as failed:
            self._failure = failed
        if self._failure is None and not self.end_reason:
            self.gaps += 1
            self._say(f"possible gap: rows between {_clock(since)} and {_clock(time.time())} may be missing")
        self._last_received = time.time()

    async def _with_history(self, error: ShellError) -> ShellError:
        """The error, with the service's history of the query as the hint."""
        asked = isinstance(error, StatementError | ConnectionBroken)
        cause = await self._explain() if asked else ""
        if cause and cause not in error.message:
            history = f"query history: {cause}"
            error.hint = f"{history}\n{error.hint}" if error.hint else history
        return error


def _is_permanent(connection: Frames | None) -> bool:
    """Whether the same error would occur again: a protocol error, invalid text, a frame that is too large."""
    return connection is not None and connection.close_code in {1002, 1003, 1007, 1009}


def _decoded(frame: bytes, row: int, where: Where) -> _Frame:
    if len(frame) > UNCOUNTED_BYTES and count_values(frame) > UNCOUNTED_BYTES:
        message = f"a stream frame after row {row:,} contains more than {UNCOUNTED_BYTES:,} values"
        raise ProtocolError(message, where=where)
    try:
        return _FRAME.decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(f"cannot read the stream frame after row {row:,}: {error}", where=where) from None


def _query_error(frame: _Frame, where: Where) -> StatementError:
    message = frame.message if isinstance(frame.message, str) else json.dumps(frame.message)
    state = frame.sql_code if isinstance(frame.sql_code, str) else ""
    return StatementError(
        message[:2_000] if frame.message else "the query failed",
        where=Where(sql_state=state[:5] or "XX000", statement_id=where.statement_id),
    )


def _columns(frame: _Frame, where: Where) -> list[Column]:
    columns: list[Column] = []
    if len(frame.columns or ()) > COLUMN_LIMIT:
        raise ProtocolError(f"the stream has more than {COLUMN_LIMIT:,} columns", where=where)
    for number, given in enumerate(frame.columns or [], 1):
        name, type_ = given.get("name"), given.get("type")
        kind = type_ if isinstance(type_, str) and type_ else "VARCHAR"
        precision, scale = given.get("precision"), given.get("scale")
        if kind.upper() in {"DECIMAL", "NUMERIC"} and isinstance(precision, int):
            kind = f"{kind}({precision},{scale if isinstance(scale, int) else 0})"
        nullable = given.get("nullable")
        columns.append(
            Column(
                name if isinstance(name, str) else f"column{number}",
                kind,
                nullable if isinstance(nullable, bool) else None,
            )
        )
    if not columns:
        raise ProtocolError("the stream sent no columns", where=where)
    return columns


def _clock(moment: float) -> str:
    return datetime.datetime.fromtimestamp(moment).astimezone().isoformat(timespec="milliseconds")
