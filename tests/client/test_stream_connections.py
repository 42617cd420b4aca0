"""A stream on scripted connections: what is read, what is retried, and which error is the reason in the end."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from sqlshell.client.http import retries
from sqlshell.client.http.options import NetworkOptions
from sqlshell.client.results import frames, stream
from sqlshell.client.results.stream import ClosedWhileSending, Stream
from sqlshell.client.secret_values import Secrets
from sqlshell.client.statements.client import StreamLimits
from sqlshell.client.target import parse
from sqlshell.errors import (
    ConnectionBroken,
    ConnectionFailed,
    NotAuthenticated,
    ProtocolError,
    ServiceError,
    ShellError,
    StatementError,
    Unreachable,
    Where,
)

COLUMNS = {"type": "metadata", "columns": [{"name": "a", "type": "INTEGER"}]}
OTHERS = {"type": "metadata", "columns": [{"name": "b", "type": "INTEGER"}]}


def row(value: object) -> dict[str, Any]:
    return {"type": "data", "data": [str(value)]}


class Connection:
    """Gives its frames in groups, then ends with `code`; `refuses` is raised when the first frame is sent to it."""

    def __init__(self, *groups: Sequence[object], code: int = 1000, refuses: Exception | None = None) -> None:
        self._groups = [[json.dumps(frame).encode() for frame in group] for group in groups]
        self._refuses = refuses
        self.close_code = code
        self.close_reason = ""
        self.sent: list[str] = []
        self.closed = False

    @property
    def ended(self) -> bool:
        return not self._groups

    async def send_first(self, text: str) -> None:
        self.sent.append(text)
        if self._refuses is not None:
            raise self._refuses

    async def frames(self, timeout: float | None) -> list[bytes]:
        await asyncio.sleep(0)
        return self._groups.pop(0) if self._groups else []


class Read:
    """A stream that was read to its end: its rows, its error, what was said."""

    def __init__(self, *connections: Connection | Exception, limits: StreamLimits | None = None, **given: Any) -> None:
        self.said: list[str] = []
        self.rows: list[str | None] = []
        self.error: ShellError | None = None
        self.opened = 0
        self.closed: list[bool] = []
        """Whether each connection was closed when the error came."""
        left = list(connections)

        @contextlib.asynccontextmanager
        async def context(connection: Connection) -> AsyncIterator[Connection]:
            yield connection
            connection.closed = True

        async def open_() -> AbstractAsyncContextManager[Any]:
            earlier = connections[: self.opened]
            assert all(connection.closed for connection in earlier if isinstance(connection, Connection))
            self.opened += 1
            coming = left.pop(0)
            if isinstance(coming, Exception):
                raise coming
            return context(coming)

        async def explain() -> str:
            return "out of memory"

        async def work() -> None:
            self.stream = Stream(
                open_,
                lambda: "hello",
                limits or StreamLimits(),
                NetworkOptions(retries=given.get("retries", 0)),
                explain,
                self.said.append,
                Where(statement_id="id"),
                "query",
            )
            try:
                await self.stream.begin()
            except ShellError as error:
                # Nobody closes a stream that did not begin.
                self.error = error
                return
            try:
                async for batch in self.stream:
                    self.rows += [values[0] for values in batch.rows]
            except ShellError as error:
                self.error = error
                self.closed = [connection.closed for connection in connections if isinstance(connection, Connection)]
            await self.stream.aclose()

        asyncio.run(work())
        assert all(connection.closed for connection in connections[: self.opened] if isinstance(connection, Connection))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.001)


def test_no_rows_after_the_time_limit() -> None:
    read = Read(Connection([COLUMNS], [row(1)]), limits=StreamLimits(seconds=0))
    assert (read.rows, read.stream.end_reason) == ([], "seconds")


def test_columns_may_be_repeated_and_not_changed() -> None:
    read = Read(Connection([COLUMNS], [row(1), COLUMNS, row(2)]))
    assert (read.rows, read.error) == (["1", "2"], None)
    read = Read(Connection([COLUMNS], [row(1), OTHERS, row(2)]))
    assert read.rows == ["1"]
    assert isinstance(read.error, ProtocolError)
    assert read.error.where.statement_id == "id"


@pytest.mark.parametrize(
    ("first", "kind", "words"),
    [
        ([row(1)], ProtocolError, "rows before its columns"),
        ([{"type": "metadata", "columns": []}], ProtocolError, "no columns"),
        ([{"type": "error", "message": "boom", "sqlCode": "53200"}], StatementError, "boom"),
        ([{"type": "error", "message": {"a": 1}}], StatementError, '{"a": 1}'),
        ([{"type": "error"}], StatementError, "the query failed"),
    ],
)
def test_a_stream_that_does_not_begin(first: list[object], kind: type[ShellError], words: str) -> None:
    read = Read(Connection(first))
    assert type(read.error) is kind
    assert words in read.error.message
    # The service knows why a query failed.
    assert ("out of memory" in read.error.hint) == (kind is StatementError)


def test_a_service_that_never_sends_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "COLUMNS_SECONDS", 0.001)
    read = Read(Connection(*[[{"type": "heartbeat"}]] * 100_000))
    assert isinstance(read.error, ConnectionBroken)
    assert "columns in time" in read.error.message


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (1000, ProtocolError, "before it sent its columns"),
        (4401, NotAuthenticated, "refused access (4401)"),
        (1006, ConnectionBroken, "the connection to the stream was lost after 0 rows"),
        (1011, ConnectionBroken, "closed after 0 rows (code 1011)"),
    ],
)
def test_a_stream_that_closes_instead_of_sending_columns(code: int, kind: type[ShellError], words: str) -> None:
    read = Read(Connection(code=code))
    assert type(read.error) is kind
    assert words in read.error.message


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (4403, NotAuthenticated, "refused access (4403)"),
        (1011, ConnectionBroken, "code 1011"),
        (1000, ConnectionBroken, "while it was being opened"),
    ],
)
def test_a_stream_that_closes_while_the_token_is_sent(code: int, kind: type[ShellError], words: str) -> None:
    read = Read(Connection([COLUMNS], code=code, refuses=ClosedWhileSending("closed")))
    assert type(read.error) is kind
    assert words in read.error.message


def test_a_bug_is_not_reported_as_a_lost_connection() -> None:
    with pytest.raises(ZeroDivisionError):
        Read(Connection([COLUMNS], refuses=ZeroDivisionError()))


def test_a_stream_that_closes_while_the_token_is_sent_again_is_left() -> None:
    closes = Connection([COLUMNS], code=1011, refuses=ClosedWhileSending("closed"))
    read = Read(Connection([COLUMNS], [row(1)], code=1006), closes, limits=StreamLimits(reconnect=True))
    assert (read.rows, read.closed) == (["1"], [True, True])
    assert isinstance(read.error, ConnectionBroken)
    assert "code 1011" in read.error.message


def test_a_failed_connection_is_tried_again_as_often_as_allowed() -> None:
    lost = ConnectionFailed("refused")
    read = Read(lost, Connection(code=1006), Connection([COLUMNS, row(1)]), retries=2)
    assert (read.rows, read.error, read.opened) == (["1"], None, 3)
    assert [text.rpartition("(")[2] for text in read.said] == ["attempt 1 of 2)", "attempt 2 of 2)"]
    read = Read(lost, lost, Connection([COLUMNS, row(1)]), retries=1)
    assert (read.rows, read.error, read.opened) == ([], lost, 2)


@pytest.mark.parametrize("error", [Unreachable("no such host"), NotAuthenticated("token"), ProtocolError("x")])
def test_what_would_fail_again_is_not_tried_again(error: ShellError) -> None:
    read = Read(error, Connection([COLUMNS]), retries=5)
    assert (read.error, read.opened) == (error, 1)


@pytest.mark.parametrize("again", [False, True])
def test_a_lost_connection_is_a_gap_only_where_gaps_are_allowed(again: bool) -> None:
    limits = StreamLimits(reconnect=again)
    read = Read(Connection([COLUMNS, row(1)], code=1006), Connection([COLUMNS, row(3)]), limits=limits)
    assert read.rows == ["1", "3"][: 1 + again]
    assert (read.stream.gaps, read.opened) == ((1, 2) if again else (0, 1))
    assert any("possible gap" in text for text in read.said) is again
    assert any(text.endswith(": reconnecting") for text in read.said) is again
    assert ("--allow-gaps" in (read.error.hint if read.error else "")) is not again


def test_rows_before_a_gap_are_returned_when_the_service_does_not_come_back() -> None:
    limits = StreamLimits(reconnect=True)
    read = Read(Connection([COLUMNS], [row(1)], code=1006), ConnectionFailed("refused"), limits=limits)
    assert read.rows == ["1"]
    assert read.error is not None
    assert read.error.message == "refused"
    assert read.stream.gaps == 0


@pytest.mark.parametrize(
    ("raised", "kind", "words"),
    [
        (TimeoutError(), ConnectionFailed, "timed out"),
        (EOFError("gone"), ConnectionFailed, "did not open the stream: gone"),
        (ConnectionRefusedError(), ConnectionFailed, "connection refused by the data plane http://dp:1"),
        (ValueError("odd"), ProtocolError, "cannot open the data plane http://dp:1: odd"),
    ],
)
def test_why_a_websocket_was_not_opened(raised: Exception, kind: type[ServiceError], words: str) -> None:
    with pytest.raises(kind, match=words) as caught, frames._translating_errors(parse("http://dp:1")):
        raise raised
    assert type(caught.value) is kind


class Sends:
    """The connection of websockets, which gives frames of these sizes and then nothing."""

    def __init__(self, *sizes: int) -> None:
        self.left = list(sizes)

    async def recv(self, *, decode: bool) -> bytes:
        assert not decode
        if not self.left:
            await asyncio.Event().wait()
        return b"x" * self.left.pop(0)

    async def close(self) -> None:
        return None


@pytest.mark.parametrize(
    ("sizes", "received"),
    [((5, 5), 2), ((5, 6), 2), ((5, 6, 7), 2), ((11, 1, 1), 1), ((5, 5, 5, 5), 3)],
)
def test_a_fast_service_is_not_read_until_its_frames_are_taken(
    monkeypatch: pytest.MonkeyPatch, sizes: Sequence[int], received: int
) -> None:
    monkeypatch.setattr(frames, "QUEUE_BYTES", 10)

    async def work() -> None:
        theirs = Sends(*sizes)
        connection = frames.StreamConnection(theirs, Secrets())  # type: ignore[arg-type]
        found = await connection.frames(None)
        for _ in range(3):
            await asyncio.sleep(0)
        assert len(found) == received
        while len(found) < len(sizes):
            found += await connection.frames(None)
        assert [len(frame) for frame in found] == list(sizes)
        assert await connection.frames(0) == []
        assert not connection.ended
        coming = asyncio.ensure_future(connection.frames(None))
        for _ in range(3):
            await asyncio.sleep(0)
        assert not coming.done()
        coming.cancel()
        await connection.aclose()
        assert connection.ended

    asyncio.run(work())
