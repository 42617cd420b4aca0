"""Requests to an application in another thread: bodies in pieces, slow readers, and either side that leaves."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import httpx
import pytest

from sqlshell.client.http.in_process import PIECE, WINDOW, App, InProcess, LocalApp, Message, Receive, Send
from sqlshell.client.http.options import NetworkOptions
from sqlshell.client.http.transport import Transport
from sqlshell.client.results.local_frames import LocalFrames, open_local_stream
from sqlshell.client.results.stream import ClosedWhileSending
from sqlshell.client.target import parse
from sqlshell.errors import ConnectionBroken, ConnectionFailed
from sqlshell.runtime.event_loops import thread_loop

OK = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]}


class Running:
    """An application in a thread of its own; `reported` are the exceptions that it reported."""

    def __init__(self, app: App) -> None:
        self.loop = thread_loop()
        self.reported: list[Exception] = []
        self.local = LocalApp(app, self.loop, self.reported.append)
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def open(self) -> LocalApp:
        return self.local

    def stop(self) -> None:
        """End the loop as a service does: what still runs is canceled."""
        if self.thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._cancel(), self.loop)
        self.thread.join()

    async def _cancel(self) -> None:
        self.local.ending = True
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        self.loop.stop()

    def _run(self) -> None:
        self.loop.run_forever()
        self.loop.close()
        self.local.end()


@contextlib.contextmanager
def running(app: App) -> Iterator[Running]:
    service = Running(app)
    try:
        yield service
    finally:
        service.stop()


def asking(service: Running, work: Callable[[httpx.AsyncClient], Awaitable[Any]]) -> Any:
    """What `work` makes of a client of the service."""

    async def whole() -> Any:
        async with httpx.AsyncClient(transport=InProcess(service.open), base_url="http://x", timeout=60) as client:
            return await work(client)

    return asyncio.run(whole())


def failure(service: Running) -> ConnectionFailed:
    """The error of a request to the service."""

    async def work() -> None:
        network = NetworkOptions(retries=0, read_timeout=60)
        transport = Transport(parse("http://x"), "", open_app=service.open, network=network)
        try:
            await transport.get("/")
        finally:
            await transport.aclose()

    with pytest.raises(ConnectionFailed) as caught:
        asyncio.run(work())
    return caught.value


async def whole_body(receive: Receive) -> bytes:
    pieces = list[bytes]()
    more = True
    while more:
        message = await receive()
        pieces.append(message["body"])
        more = message["more_body"]
    assert max(map(len, pieces)) <= PIECE
    return b"".join(pieces)


async def send_pieces(send: Send, body: bytes, size: int = 100_003) -> None:
    for start in range(0, len(body), size):
        await send({"type": "http.response.body", "body": memoryview(body)[start : start + size], "more_body": True})
    await send({"type": "http.response.body"})


async def echo(scope: Any, receive: Receive, send: Send) -> None:
    """Send back what was received, the scope first."""
    line = f"{scope['method']} {scope['path']} {scope['raw_path']} {scope['query_string']} {dict(scope['headers'])}\n"
    body = await whole_body(receive)
    await send(OK)
    await send_pieces(send, line.encode() + body)


@pytest.mark.parametrize("size", [0, 1, PIECE + 1, 3 * WINDOW + 5])
@pytest.mark.parametrize("streamed", [False, True])
def test_bodies_of_any_size_pass_in_both_directions(size: int, streamed: bool) -> None:
    body = (bytes(range(251)) * (size // 251 + 1))[:size]

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, size, 70_001):
            yield body[start : start + 70_001]

    async def work(client: httpx.AsyncClient) -> httpx.Response:
        return await client.post("/a%20b/%C3%A9?x=1&y=%20", content=pieces() if streamed else body)

    with running(echo) as service:
        answer = asking(service, work)
    line, _, rest = answer.content.partition(b"\n")
    assert rest == body
    assert "POST /a b/é b'/a%20b/%C3%A9' b'x=1&y=%20'" in line.decode()
    assert "b'host': b'x'" in line.decode()
    assert answer.headers["content-type"] == "text/plain"
    assert not service.reported


def test_a_slow_reader_holds_the_application_back() -> None:
    sent = 0

    async def app(scope: Any, receive: Receive, send: Send) -> None:
        nonlocal sent
        await send(OK)
        for _ in range(100):
            sent += 1
            await send({"type": "http.response.body", "body": bytes(WINDOW // 4), "more_body": True})
        await send({"type": "http.response.body"})

    async def work(client: httpx.AsyncClient) -> int:
        size = 0
        async with client.stream("GET", "/") as answer:
            async for piece in answer.aiter_raw():
                size += len(piece)
                # What is taken at once, what waits, and the piece at which the application waits.
                assert sent <= size // (WINDOW // 4) + 2 * 6
        return size

    with running(app) as service:
        assert asking(service, work) == 100 * (WINDOW // 4)


def test_a_slow_application_holds_the_upload_back() -> None:
    sent = 0
    begin = threading.Event()

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(40):
            sent += 1
            if sent == 5:
                # The window is full: the application, which has taken nothing, has to read.
                begin.set()
            yield bytes(WINDOW // 4)

    async def app(scope: Any, receive: Receive, send: Send) -> None:
        await asyncio.to_thread(begin.wait)
        assert sent == 5
        size = len(await whole_body(receive))
        await send(OK)
        await send({"type": "http.response.body", "body": str(size).encode()})

    async def work(client: httpx.AsyncClient) -> bytes:
        return (await client.post("/", content=pieces())).content

    with running(app) as service:
        assert asking(service, work) == str(40 * (WINDOW // 4)).encode()


@pytest.mark.parametrize("heard", ["receive", "send"])
def test_a_client_that_leaves_is_noticed(heard: str) -> None:
    noticed = threading.Event()

    async def app(scope: Any, receive: Receive, send: Send) -> None:
        await whole_body(receive)
        await send(OK)
        await send({"type": "http.response.body", "body": b"x", "more_body": True})
        if heard == "receive":
            assert (await receive())["type"] == "http.disconnect"
        try:
            while True:
                await send({"type": "http.response.body", "body": bytes(WINDOW), "more_body": True})
        except OSError:
            noticed.set()
            raise

    async def work(client: httpx.AsyncClient) -> None:
        async with client.stream("GET", "/") as answer:
            async for _ in answer.aiter_raw():
                break

    with running(app) as service:
        asking(service, work)
        assert noticed.wait(60)
    assert not service.reported


def test_a_request_that_is_canceled_is_noticed() -> None:
    begun, noticed = threading.Event(), threading.Event()

    async def app(scope: Any, receive: Receive, send: Send) -> None:
        await whole_body(receive)
        begun.set()
        assert (await receive())["type"] == "http.disconnect"
        noticed.set()

    async def work(client: httpx.AsyncClient) -> None:
        asking = asyncio.ensure_future(client.get("/"))
        await asyncio.to_thread(begun.wait)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    with running(app) as service:
        asking(service, work)
        assert noticed.wait(60)


def test_an_upload_that_is_refused_early_has_its_answer() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        while True:
            yield bytes(WINDOW)

    async def app(scope: Any, receive: Receive, send: Send) -> None:
        await receive()
        await send(OK | {"status": 413})
        await send({"type": "http.response.body", "body": b"too large"})

    async def work(client: httpx.AsyncClient) -> tuple[int, bytes]:
        answer = await client.post("/", content=pieces())
        return answer.status_code, answer.content

    with running(app) as service:
        assert asking(service, work) == (413, b"too large")


def test_an_upload_that_fails_ends_the_request() -> None:
    noticed = threading.Event()

    async def pieces() -> AsyncIterator[bytes]:
        yield b"x"
        raise ValueError("the file has changed")

    async def app(scope: Any, receive: Receive, send: Send) -> None:
        assert (await receive())["body"] == b"x"
        assert (await receive())["type"] == "http.disconnect"
        noticed.set()

    async def work(client: httpx.AsyncClient) -> None:
        with pytest.raises(ValueError, match="changed"):
            await client.post("/", content=pieces())

    with running(app) as service:
        asking(service, work)
        assert noticed.wait(60)


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "closed the connection without a response"),
        ([OK], "in the middle of the response"),
        ([OK, {"type": "http.response.body", "body": b"x", "more_body": True}], "in the middle of the response"),
    ],
)
@pytest.mark.parametrize("fails", [False, True])
def test_an_incomplete_response_is_an_error(messages: list[Message], words: str, fails: bool) -> None:
    async def app(scope: Any, receive: Receive, send: Send) -> None:
        for message in messages:
            await send(message)
        if fails:
            raise ValueError("broken")

    with running(app) as service:
        error = failure(service)
    assert isinstance(error, ConnectionBroken)
    assert words in error.message
    assert [str(error) for error in service.reported] == ["broken"] * fails


def test_a_silent_application_is_a_timeout() -> None:
    async def app(scope: Any, receive: Receive, send: Send) -> None:
        await asyncio.Event().wait()

    async def work() -> None:
        transport = Transport(
            parse("http://x"), "", open_app=service.open, network=NetworkOptions(retries=0, read_timeout=0.01)
        )
        with pytest.raises(ConnectionBroken, match="no data from http://x"):
            await transport.get("/")
        await transport.aclose()

    with running(app) as service:
        asyncio.run(work())


def test_a_service_that_ends_ends_its_requests() -> None:
    begun = threading.Event()

    async def app(scope: Any, receive: Receive, send: Send) -> None:
        begun.set()
        await asyncio.Event().wait()

    def stop() -> None:
        begun.wait()
        service.stop()

    with running(app) as service:
        ending = threading.Thread(target=stop)
        ending.start()
        assert "closed the connection without a response" in failure(service).message
        ending.join()
        assert not service.local.exchanges
        assert failure(service).message == "cannot connect to http://x: the service has ended"


def test_a_request_that_never_began_ends_with_the_service() -> None:
    service, held = Running(echo), threading.Event()

    def hold() -> None:
        held.wait()
        service.local.ending = True
        service.loop.stop()

    async def work() -> None:
        async with httpx.AsyncClient(transport=InProcess(service.open)) as client:
            asking = asyncio.ensure_future(client.get("http://x/"))
            await asyncio.sleep(0)
            assert service.local.exchanges
            held.set()
            with pytest.raises(httpx.RemoteProtocolError):
                await asking

    service.loop.call_soon_threadsafe(hold)
    asyncio.run(work())
    service.thread.join()


def stream(app: App, work: Callable[[LocalFrames], Awaitable[None]]) -> Running:
    async def whole() -> None:
        async with open_local_stream("ws://x/v2/s?a=1", service.open, "X", session_id="mine") as frames:
            await work(frames)

    with running(app) as service:
        asyncio.run(whole())
    return service


def test_frames_of_a_stream() -> None:
    async def app(scope: Any, receive: Receive, send: Send) -> None:
        assert (await receive())["type"] == "websocket.connect"
        headers = dict(scope["headers"])
        assert (scope["path"], scope["query_string"], headers[b"ds-session-id"]) == ("/v2/s", b"a=1", b"mine")
        await send({"type": "websocket.accept"})
        first = await receive()
        for number in range(3000):
            await send({"type": "websocket.send", "text": f"{first['text']} é {number} {'x' * 1000}"})
        await send({"type": "websocket.close", "code": 4401, "reason": "no more"})

    async def work(frames: LocalFrames) -> None:
        assert await frames.frames(0.001) == []
        assert not frames.ended
        await frames.send_first("hello")
        found = list[bytes]()
        while not frames.ended:
            found += await frames.frames(None)
        assert await frames.frames(None) == []
        assert found == [f"hello é {number} {'x' * 1000}".encode() for number in range(3000)]
        assert (frames.close_code, frames.close_reason) == (4401, "no more")
        with pytest.raises(ClosedWhileSending):
            while True:
                await frames.send_first("again")

    assert not stream(app, work).reported


def test_a_stream_that_breaks_off_has_no_close_code() -> None:
    async def app(scope: Any, receive: Receive, send: Send) -> None:
        await send({"type": "websocket.accept"})
        raise ValueError("broken")

    async def work(frames: LocalFrames) -> None:
        assert await frames.frames(None) == []
        assert frames.ended
        assert frames.close_code == 1006

    assert len(stream(app, work).reported) == 1


def test_a_stream_that_is_not_opened() -> None:
    async def app(scope: Any, receive: Receive, send: Send) -> None:
        await send({"type": "websocket.close", "code": 1000})

    async def work(frames: LocalFrames) -> None:
        raise AssertionError("it is not open")

    with pytest.raises(ConnectionFailed, match="X did not open the stream"):
        stream(app, work)


def test_a_reader_of_a_stream_that_leaves_is_noticed() -> None:
    noticed = threading.Event()

    async def app(scope: Any, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        message = await receive()
        assert (message["type"], message["code"]) == ("websocket.disconnect", 1006)
        noticed.set()

    async def work(frames: LocalFrames) -> None:
        return None

    service = stream(app, work)
    assert noticed.wait(60)
    assert not service.reported
