"""Requests to a service in this process: its ASGI application runs in the event loop of another thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import unquote

from sqlshell.client.http.answer import Answer, Content, read_headers
from sqlshell.client.target import Target
from sqlshell.errors import ConnectionBroken, ConnectionFailed

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

    async def take(self) -> list[Message]:
        """All messages that have arrived, at least one; none at the end."""
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
    one. `name` is that of the service. Raises ConnectionFailed if the application has ended.
    """

    def __init__(self, local: LocalApp, scope: MutableMapping[str, Any], name: str) -> None:
        self._local = local
        self._scope = scope
        ours = asyncio.get_running_loop()
        self._requests = Window(ours, local.loop)
        self._responses = Window(local.loop, ours)
        self._received: deque[Message] = deque()
        self._task: asyncio.Task[None] | None = None
        local.exchanges.add(self)
        try:
            local.loop.call_soon_threadsafe(self._start)
        except RuntimeError as error:
            local.exchanges.discard(self)
            raise ConnectionFailed(f"cannot connect to {name}: the service has ended") from error

    async def tell(self, message: Message) -> None:
        """Send a message to the application. Raises BrokenPipeError if it has ended."""
        await self._requests.put(message)

    async def hear(self, timeout: float | None = None) -> list[Message]:
        """The messages of the application that have arrived, at least one; none if it has ended. Raises TimeoutError
        after `timeout` seconds.
        """
        async with asyncio.timeout(timeout):
            return await self._responses.take()

    def close(self) -> None:
        """Disconnect. The application learns it when it receives or sends next."""
        self._responses.close()
        self._requests.end()

    def end(self) -> None:
        """Let the client know that nothing more comes."""
        self._local.exchanges.discard(self)
        self._requests.close()
        self._responses.end()

    def _start(self) -> None:
        if self._local.ending:
            self.end()
        else:
            self._task = self._local.loop.create_task(self._run())

    async def _run(self) -> None:
        try:
            await self._local.app(self._scope, self._receive, self._responses.put)
        except Exception as error:
            # The application may not expect that its client disconnects, or that its loop ends.
            if not (self._responses.closed or self._local.ending):
                self._local.report(error)
        finally:
            self.end()

    async def _receive(self) -> Message:
        if not self._received:
            self._received.extend(await self._requests.take())
        if self._received:
            return self._received.popleft()
        return {"type": f"{self._scope['type']}.disconnect", "code": 1006}


class InProcess:
    """Sends requests to an application in this process; see answer.Connections. `seconds` is how long it may be silent,
    0 for any time."""

    def __init__(self, open_app: OpenApp, target: Target, seconds: float) -> None:
        self._open_app = open_app
        self._target = target
        self._seconds = seconds

    async def send(self, method: str, where: str, headers: Mapping[str, str], content: Content) -> Answer:
        """Raises ConnectionFailed, as for a connection over TCP, and the errors of opening the service."""
        own = {"type": "http", "method": method, "scheme": self._target.scheme}
        name = self._target.name
        exchange = Exchange(self._open_app(), scope_of(where, headers) | own, name)
        try:
            with contextlib.suppress(BrokenPipeError):
                await _send_body(content, exchange)
            messages = await self._heard(exchange)
            if not messages:
                raise ConnectionBroken(f"{name} closed the connection without a response")
        except BaseException:
            exchange.close()
            raise
        head = messages.pop(0)

        async def close() -> None:
            exchange.close()

        return Answer(head["status"], read_headers(head.get("headers", ())), self._pieces(exchange, messages), close)

    async def aclose(self) -> None:
        """Do nothing: each exchange ends with its response."""

    async def _pieces(self, exchange: Exchange, messages: list[Message]) -> AsyncGenerator[bytes]:
        """The body of a response, whose first `messages` have arrived."""
        while True:
            for message in messages:
                if body := message.get("body"):
                    yield bytes(body)
                if not message.get("more_body", False):
                    return
            messages = await self._heard(exchange)
            if not messages:
                raise ConnectionBroken(
                    f"{self._target.name} closed the connection in the middle of the response: the service sent an "
                    "incomplete response"
                )

    async def _heard(self, exchange: Exchange) -> list[Message]:
        try:
            return await exchange.hear(self._seconds or None)
        except TimeoutError as error:
            raise ConnectionBroken(
                f"no data from {self._target.name} for {self._seconds:g} s", "use a longer --read-timeout"
            ) from error


def scope_of(where: str, headers: Mapping[str, str]) -> dict[str, Any]:
    """What the ASGI scopes of requests and of websockets have in common. `where` is a path with its query."""
    path, _, query = where.encode("ascii").partition(b"?")
    return {
        # With this version, sending to a client that has disconnected is an OSError.
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "path": unquote(path.decode("ascii")),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        "client": None,
        "server": None,
        "state": {},
    }


async def _send_body(content: Content, exchange: Exchange) -> None:
    async for body in _whole(content or b"") if content is None or isinstance(content, bytes) else content:
        for start in range(0, len(body), PIECE):
            await exchange.tell({"type": "http.request", "body": body[start : start + PIECE], "more_body": True})
    await exchange.tell({"type": "http.request", "body": b"", "more_body": False})


async def _whole(body: bytes) -> AsyncGenerator[bytes]:
    yield body


def _call(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    """Call a function in a loop of another thread, unless that has ended."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(what)
