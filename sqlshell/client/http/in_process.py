"""Requests to a service in this process: its ASGI application runs in the event loop of another thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote

import httpx

WINDOW = 1 << 20
"""Bytes of a body that may wait for their reader. With more, the writer waits, so that memory stays flat."""

PIECE = 256 << 10
"""A body that is in memory is passed on in pieces of this many bytes."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


class LocalApp:
    """An ASGI application and the event loop, of another thread, in which it runs.

    `report` is called in that loop with an exception of the application whose client is still there.
    """

    def __init__(self, app: App, loop: asyncio.AbstractEventLoop, report: Callable[[Exception], None]) -> None:
        self.app = app
        self.loop = loop
        self.report = report
        self.exchanges: set[Exchange] = set()
        self.ending = False
        """Whether the loop is about to end: nothing new begins in it."""

    def end(self) -> None:
        """End the exchanges that are left. Called when the loop runs no more."""
        for exchange in list(self.exchanges):
            exchange.end()


OpenApp = Callable[[], LocalApp]
"""Wait until the application accepts requests, and return it. Raises ShellError if the service cannot be started."""


class Window:
    """Messages from one event loop to another, in order, whose bodies have at most about WINDOW bytes."""

    def __init__(self, source: asyncio.AbstractEventLoop, target: asyncio.AbstractEventLoop) -> None:
        self._source = source
        self._target = target
        self._lock = threading.Lock()
        self._messages: list[Message] = []
        self._size = 0
        self._ended = False
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self.closed = False
        """Whether nobody reads any more."""

    async def put(self, message: Message) -> None:
        """Add a message, then wait while the window is full. Raises BrokenPipeError if nobody reads any more."""
        with self._lock:
            if self.closed:
                raise BrokenPipeError("the reader has gone")
            self._messages.append(message)
            self._size += len(message.get("body") or message.get("text") or b"")
            full = self._size > WINDOW
            if full:
                self._room.clear()
            if len(self._messages) == 1:
                _call(self._target, self._arrived.set)
        if full:
            await self._room.wait()

    async def take(self, timeout: float | None = None) -> list[Message]:
        """All messages that have arrived, at least one; none at the end. Raises TimeoutError after `timeout`
        seconds."""
        async with asyncio.timeout(timeout):
            while True:
                with self._lock:
                    messages, self._messages = self._messages, []
                    if self._size > WINDOW:
                        _call(self._source, self._room.set)
                    self._size = 0
                    if messages or self._ended:
                        return messages
                    self._arrived.clear()
                await self._arrived.wait()

    def end(self) -> None:
        """Let take() return nothing after the messages that have arrived."""
        with self._lock:
            self._ended = True
        _call(self._target, self._arrived.set)

    def close(self) -> None:
        """Drop the messages; whoever waits to write, or writes later, learns that nobody reads."""
        with self._lock:
            self.closed = True
            self._messages = []
        _call(self._source, self._room.set)


class Exchange:
    """One request or one websocket: the application answers in its own loop, the client talks to it from the running
    one. Raises httpx.ConnectError if the application has ended.
    """

    def __init__(self, local: LocalApp, scope: MutableMapping[str, Any]) -> None:
        self._local = local
        self._scope = scope
        ours = asyncio.get_running_loop()
        self.requests = Window(ours, local.loop)
        """To the application; put() raises BrokenPipeError if it has ended."""
        self.responses = Window(local.loop, ours)
        """From the application; take() returns nothing if it has ended."""
        self._received: deque[Message] = deque()
        self._task: asyncio.Task[None] | None = None
        local.exchanges.add(self)
        try:
            local.loop.call_soon_threadsafe(self._start)
        except RuntimeError as error:
            local.exchanges.discard(self)
            raise httpx.ConnectError("the service has ended") from error

    def close(self) -> None:
        """Disconnect. The application learns it when it receives or sends next."""
        self.responses.close()
        self.requests.end()

    def end(self) -> None:
        """Let the client know that nothing more comes."""
        self._local.exchanges.discard(self)
        self.requests.close()
        self.responses.end()

    def _start(self) -> None:
        if self._local.ending:
            self.end()
        else:
            self._task = self._local.loop.create_task(self._run())

    async def _run(self) -> None:
        try:
            await self._local.app(self._scope, self._receive, self.responses.put)
        except Exception as error:
            # The application may not expect that its client disconnects, or that its loop ends.
            if not (self.responses.closed or self._local.ending):
                self._local.report(error)
        finally:
            self.end()

    async def _receive(self) -> Message:
        if not self._received:
            self._received.extend(await self.requests.take())
        if self._received:
            return self._received.popleft()
        return {"type": f"{self._scope['type']}.disconnect", "code": 1006}


class InProcess(httpx.AsyncBaseTransport):
    """Sends httpx's requests to an application in this process."""

    def __init__(self, open_app: OpenApp) -> None:
        self._open_app = open_app

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Raises httpx's errors, as for a connection over TCP, and those of opening the service."""
        seconds: float | None = request.extensions.get("timeout", {}).get("read")
        own = {"type": "http", "method": request.method, "scheme": request.url.scheme}
        exchange = Exchange(self._open_app(), scope_of(request.url, request.headers) | own)
        try:
            with contextlib.suppress(BrokenPipeError):
                await _send_body(request, exchange)
            messages = await _heard(exchange, seconds)
            if not messages:
                raise httpx.RemoteProtocolError("the service sent no response")
            head = messages.pop(0)
            body = _Body(exchange, messages, seconds)
            return httpx.Response(head["status"], headers=list(head.get("headers", ())), stream=body)
        except BaseException:
            exchange.close()
            raise


class _Body(httpx.AsyncByteStream):
    """The body of a response; `messages` have arrived with its head."""

    def __init__(self, exchange: Exchange, messages: list[Message], seconds: float | None) -> None:
        self._exchange = exchange
        self._messages = messages
        self._seconds = seconds

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            for message in self._messages:
                if body := message.get("body"):
                    yield bytes(body)
                if not message.get("more_body", False):
                    return
            self._messages = await _heard(self._exchange, self._seconds)
            if not self._messages:
                raise httpx.RemoteProtocolError("the service sent an incomplete response")

    async def aclose(self) -> None:
        self._exchange.close()


def scope_of(url: httpx.URL, headers: httpx.Headers) -> dict[str, Any]:
    """What the ASGI scopes of requests and of websockets have in common."""
    path, _, query = url.raw_path.partition(b"?")
    return {
        # With this version, sending to a client that has disconnected is an OSError.
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "path": unquote(path.decode("ascii")),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in headers.raw],
        "client": None,
        "server": None,
        "state": {},
    }


async def _send_body(request: httpx.Request, exchange: Exchange) -> None:
    assert isinstance(request.stream, httpx.AsyncByteStream)
    async for body in request.stream:
        for start in range(0, len(body), PIECE):
            await exchange.requests.put(
                {"type": "http.request", "body": body[start : start + PIECE], "more_body": True}
            )
    await exchange.requests.put({"type": "http.request", "body": b"", "more_body": False})


async def _heard(exchange: Exchange, seconds: float | None) -> list[Message]:
    try:
        return await exchange.responses.take(seconds)
    except TimeoutError as error:
        raise httpx.ReadTimeout("the service sent nothing") from error


def _call(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    """Call a function in a loop of another thread, unless that has ended."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(what)
