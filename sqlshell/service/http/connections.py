"""Connections of clients: uvicorn's protocol behind limits of size, time and number, and the order of requests."""

from __future__ import annotations

import asyncio
import contextlib
import resource
from collections import Counter, deque
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import httptools
import msgspec
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from sqlshell.service.http.responses import CONNECTION
from sqlshell.service.settings import Settings, limit_note

STEP = 4 << 10
"""Bytes of headers or of chunks that are parsed in one iteration of the event loop."""

BODY_STEP = 256 << 10
"""Bytes of a body of a known length that are passed on in one iteration."""

HEADERS = 100
"""The maximum number of headers of a request."""

FRAMING = 64 << 10
"""A chunked body may have this many bytes of framing, in addition to the size of its content."""

DRAIN = 64 << 20
DRAIN_SECONDS = 15.0
"""How much is still read after an early response, and for how long, so that the client can read it."""

BURST, RATE = 32 << 10, 1 << 10
"""Bytes that the client of a websocket may send at once, and bytes per second over a longer time."""

TOO_MUCH = b"\x88\x02" + (1008).to_bytes(2)
"""The frame that closes such a websocket: a violation of policy."""

BETWEEN, HEAD, BODY = "between", "head", "body"
"""Where a connection is: between requests, in the head of one, or in its body."""

FILES = 100
"""File descriptors that are reserved for other uses than connections: a number, and below a fraction of all."""
PART = 0.2

REQUESTS = 4
"""Requests of one token that begin in one iteration of the event loop; of those without a token, one does."""


class Refused(Exception):
    """A request is refused: the status and the message of the response."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message

    def response(self) -> bytes:
        """Make the response, which does not come from the application."""
        body = msgspec.json.encode({"message": self.message})
        line = f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}\r\n".encode()
        headers = b"Content-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
        return line + headers + body


class RequestLimits:
    """Parses requests only to find those that exceed a limit; its public methods `on_…` are called by the parser."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._parser = httptools.HttpRequestParser(self)
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._refused: Refused | None = None
        self.place = BETWEEN
        self.unanswered = 0
        """The number of requests whose head is complete, without those whose response has been sent."""
        self.ended = 0
        """The number of requests that have been received completely."""
        self.upgraded = False
        """Whether the last step was the end of a request for another protocol."""
        self._end = b""
        self._step = self._received = self._content = self._headers = 0
        self._left: int | None = None
        self._url = b""
        self._hosts: list[bytes] = []
        self._codings: list[bytes] = []
        self._is_handshake = False

    def take(self, data: bytearray) -> bytes:
        """Take and parse the next step of what was received, at most to the end of a head or of a body of a known
        length. Raises Refused.
        """
        size = STEP
        if self.place == BODY:
            size = min(self._left, BODY_STEP) if self._left else STEP
        else:
            found = (self._end + data[:STEP]).find(b"\r\n\r\n")
            if found >= 0:
                size = found + 4 - len(self._end)
        step = bytes(data[:size])
        del data[:size]
        self._end = b"" if self.place == BODY else (self._end + step)[-3:]
        self._step = len(step)
        self._received += self._step
        try:
            self._parser.feed_data(step)
        except httptools.HttpParserUpgrade:
            self.upgraded = True
        except httptools.HttpParserError:
            raise self._refused or Refused(400, "the request is not valid HTTP/1.1") from None
        if self.place == HEAD and self._received > self._settings.header_size:
            raise self._too_long()
        if self.place == BODY and self._left is None and self._received > FRAMING + 2 * self._content:
            raise Refused(400, "the chunks of the body are too small")
        return step

    def on_message_begin(self) -> None:
        self.place, self._received = HEAD, self._step
        self._url, self._hosts, self._codings = b"", [], []
        self._headers, self._left, self._is_handshake = 0, 0, False

    def on_url(self, url: bytes) -> None:
        self._url += url
        if len(self._url) > self._settings.url_size:
            self._refuse(Refused(414, f"the URL is longer than {self._settings.url_size} bytes"))

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.place == BODY:
            # A trailer is ignored, because the headers have already been checked.
            return
        self._headers += 1
        if self._headers > HEADERS:
            self._refuse(Refused(431, f"the request has more than {HEADERS} headers"))
        match name.lower():
            case b"host":
                self._hosts.append(value)
            case b"transfer-encoding":
                self._codings.append(value)
                self._left = None
            case b"content-length":
                self._left = int(value)
            case b"upgrade":
                self._is_handshake = value.lower() == b"websocket"

    def on_headers_complete(self) -> None:
        if self._received > self._settings.header_size:
            self._refuse(self._too_long())
        if self._codings and (self._codings != [b"chunked"] or self._parser.get_http_version() != "1.1"):
            self._refuse(Refused(501, "Transfer-Encoding: only chunked is supported, once, in HTTP/1.1"))
        if self._is_handshake and (self._codings or self._left):
            self._refuse(Refused(400, "the handshake of a websocket has no body"))
        if not self._url.startswith((b"/", b"*")):
            with contextlib.suppress(ValueError):
                if self._hosts != [urlsplit(self._url).netloc]:
                    self._refuse(Refused(400, "the URL and the header Host name different hosts"))
        self.place, self._received, self._content = BODY, 0, 0
        self.unanswered += 1

    def on_body(self, body: bytes) -> None:
        self._content += len(body)
        if self._left is not None:
            self._left -= len(body)

    def on_message_complete(self) -> None:
        self.ended += 1
        self.place, self._received = BETWEEN, 0

    def _too_long(self) -> Refused:
        return Refused(431, f"the request's headers are longer than {self._settings.header_size} bytes")

    def _refuse(self, refused: Refused) -> None:
        """Stop the parser from one of its callbacks."""
        self._refused = refused
        raise refused


class Connection(asyncio.Protocol, asyncio.Transport):
    """One connection: a protocol for the system, and the transport of uvicorn's protocol, which gets what is within the
    limits, a step in each iteration of the event loop.

    A request is passed on when the one before has been answered. A refused request gets its response, and then the
    connection is closed; if the response to it, or to an earlier request, has begun, the connection is cut off.

    A client that is still sending is closed in two steps, so that it can read the response: first the write side, then,
    after what it sends has been discarded for a while, the connection.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        connections: Connections,
    ) -> None:
        super().__init__()
        self.connections = connections
        self._settings = connections.settings
        self._loop = asyncio.get_running_loop()
        self._inner: asyncio.Protocol = HttpToolsProtocol(config, server_state, {**app_state, CONNECTION: self}, _loop)
        self._limits = RequestLimits(self._settings)
        self._transport: asyncio.Transport
        self._unread = bytearray()
        self._planned = False
        self._inner_pauses = False
        self._deaf = False
        """Whether what is received is discarded."""
        self._lingers = False
        """Whether only the write side is closed."""
        self._discarded = 0
        self._inner_ended = False
        self._clock: asyncio.TimerHandle | None = None
        self._upgraded = False
        self._flood, self._flood_at = 0.0, 0.0
        self.gone = False
        """Whether the client has disconnected."""
        self.responding = False
        """Whether a response has begun, and not ended."""

    # What the system calls.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._inner.connection_made(self)
        if self.connections.enter(self):
            self._start_clock(self._settings.header_seconds)
            return
        limit = f"{self._settings.connections} {limit_note('connections')}"
        transport.write(Refused(503, f"too many connections: {limit}").response())
        self._deaf = True
        self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone = True
        self._stop_clock()
        self.connections.leave(self)
        self._end_inner(exc)

    def eof_received(self) -> None:
        self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    def data_received(self, data: bytes) -> None:
        if self._lingers:
            self._discarded += len(data)
            if self._discarded > DRAIN:
                self._transport.close()
        elif self._upgraded:
            self._websocket_received(data)
        elif not self._deaf:
            self._unread += data
            if self._planned or self._waits():
                self._plan()
            else:
                self._step()

    # What uvicorn's protocol calls.

    def write(self, data: Any) -> None:
        if self._upgraded:
            # The response to the handshake, or what follows it.
            self._stop_clock()
        self._transport.write(data)

    def close(self) -> None:
        """Close the connection. What the client is still sending is read for a while."""
        if self.is_closing():
            return
        still_sends = self._deaf or self._unread or self._limits.place != BETWEEN
        if still_sends and self._transport.can_write_eof():
            # An OSError says that the peer has reset the connection.
            with contextlib.suppress(OSError):
                self._transport.write_eof()
                self._lingers = True
                self._transport.resume_reading()
                self._start_clock(DRAIN_SECONDS)
                return
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._lingers or self._transport.is_closing()

    def pause_reading(self) -> None:
        self._inner_pauses = True
        self._plan()

    def resume_reading(self) -> None:
        self._inner_pauses = False
        self._plan()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Pass what is received to this protocol, which speaks websocket."""
        assert isinstance(protocol, asyncio.Protocol)
        self._inner = protocol
        self._upgraded = True
        self._flood_at = self._loop.time()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    # What the application calls.

    def end_response(self) -> None:
        """Note that the whole response to a request has been sent."""
        self.responding = False
        self._limits.unanswered -= 1
        self._plan()

    def _waits(self) -> bool:
        """Whether what was received waits for uvicorn's protocol, or for the response to an earlier request."""
        return self._inner_pauses or (self._limits.place != BODY and self._limits.unanswered > 0)

    def _plan(self) -> None:
        """Plan the next step of what was received, or read more."""
        if self.is_closing():
            return
        if self._unread or self._inner_pauses:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()
        if self._unread and not self._planned and not self._waits():
            self._planned = True
            self._loop.call_soon(self._step)

    def _step(self) -> None:
        """Pass on one step of what was received."""
        self._planned = False
        if self._deaf or self._waits() or self.is_closing():
            return
        ended = self._limits.ended
        try:
            step = self._limits.take(self._unread)
        except Refused as refused:
            self._refuse(refused)
            return
        if self._limits.upgraded:
            self._stop_clock()
        self._inner.data_received(step)
        if self._limits.upgraded:
            if self._upgraded:
                # There is no response to a handshake that the package websockets does not understand.
                self._start_clock(self._settings.header_seconds)
            self._deaf = not self._upgraded
            self._unread.clear()
            return
        if self._limits.place == BODY:
            self._start_clock(self._settings.body_seconds)
        elif self._limits.place == BETWEEN and self._limits.ended > ended:
            self._stop_clock()
        elif self._clock is None:
            # A head, or blank lines before one.
            self._start_clock(self._settings.header_seconds)
        self._plan()

    def _websocket_received(self, data: bytes) -> None:
        now = self._loop.time()
        self._flood = max(0.0, self._flood - (now - self._flood_at) * RATE) + len(data)
        self._flood_at = now
        if self._flood > BURST:
            # Its frames may be as small as six bytes.
            self._end(TOO_MUCH)
        elif self._clock is None:
            # A client sends nothing before it has the response to its handshake.
            self._inner.data_received(data)

    def _refuse(self, refused: Refused) -> None:
        """Respond to the request that is being received, unless it or an earlier one is being answered."""
        earlier = self._limits.unanswered - (self._limits.place == BODY)
        if self.responding or earlier > 0:
            self._deaf = True
            self._transport.abort()
        else:
            self._end(refused.response() if not earlier else b"")

    def _end(self, last: bytes) -> None:
        """Send `last` and close the connection; the application is told that its client has left."""
        self._transport.write(last)
        self._deaf = True
        self._unread.clear()
        self.close()
        self._end_inner(None)

    def _end_inner(self, exc: Exception | None) -> None:
        if not self._inner_ended:
            self._inner_ended = True
            self._inner.connection_lost(exc)

    def _start_clock(self, seconds: float) -> None:
        self._stop_clock()
        self._clock = self._loop.call_later(seconds, self._late)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _late(self) -> None:
        self._clock = None
        if self._lingers:
            self._transport.close()
        elif self._upgraded:
            self._transport.abort()
        elif self._unread or self._inner_pauses:
            # The service itself does not read.
            self._start_clock(self._settings.body_seconds)
        elif not self.is_closing():
            self._refuse(Refused(408, "timed out while receiving the request"))


class NoteResponses:
    """Tells the connection of a request when its response begins and when it has been sent."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        connection: Connection = scope["state"][CONNECTION]
        # Behind these, the next data may be a body or a request.
        last = scope["method"] == "CONNECT" or any(name in {b"expect", b"upgrade"} for name, _ in scope["headers"])

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                connection.responding = True
                if last:
                    message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                connection.end_response()

        await self._app(scope, receive, sending)


class Connections:
    """The connections of a service.

    A token may have a number of them. If there are more than file descriptors for them, the one that has been open for
    the longest time without a valid token is closed for a new one. If all have one, the new one is refused. Requests
    begin in turn by token, so that many of one client do not delay those of others.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._tokens: dict[Connection, str] = {}
        """All connections, with the last valid token of each, or ""."""
        self._counts: Counter[str] = Counter()
        self._strangers: dict[Connection, None] = {}
        self._begun: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def enter(self, connection: Connection) -> bool:
        """Count a connection, if there is room for it."""
        if len(self._tokens) >= self.settings.connections:
            oldest = next(iter(self._strangers), None)
            if oldest is None:
                return False
            self.leave(oldest)
            oldest.abort()
        self._tokens[connection] = ""
        self._strangers[connection] = None
        return True

    def leave(self, connection: Connection) -> None:
        """Count a connection no more. Has no effect if it is not counted."""
        token = self._tokens.pop(connection, "")
        self._strangers.pop(connection, None)
        if token:
            self._counts[token] -= 1
            if not self._counts[token]:
                del self._counts[token]

    def note_token(self, connection: Connection, token: str) -> str:
        """Note that a request has a valid token; returns "", or the message of a refusal."""
        if self._tokens.get(connection, token) == token:
            return ""
        bound = self.settings.token_connections
        if self._counts[token] >= bound:
            return f"too many connections of this token: {bound} {limit_note('token_connections')}"
        self.leave(connection)
        self._tokens[connection] = token
        self._counts[token] += 1
        return ""

    async def take_turn(self, token: str) -> None:
        """Wait until a request of this token may begin, "" for one without."""
        if self._begun[token] < _most(token) and token not in self._waiting:
            self._begin(token)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(token, deque()).append(turn)
        await turn

    def _begin(self, token: str) -> None:
        if not self._begun:
            asyncio.get_running_loop().call_soon(self._next_turns)
        self._begun[token] += 1

    def _next_turns(self) -> None:
        """Begin the requests of the next iteration of the event loop."""
        self._begun.clear()
        for token, turns in list(self._waiting.items()):
            while turns and self._begun[token] < _most(token):
                turn = turns.popleft()
                if not turn.done():
                    turn.set_result(None)
                    self._begin(token)
            if not turns:
                del self._waiting[token]

    def abort(self) -> None:
        """Close all connections at once."""
        for connection in list(self._tokens):
            connection.abort()


def _most(token: str) -> int:
    return REQUESTS if token else 1


def raise_descriptor_limit() -> int:
    """Raise the limit of open files as far as the system allows; returns the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # macOS accepts at most 10240 if the hard limit is unlimited.
    for wanted in (hard, min(10240, hard) if hard != resource.RLIM_INFINITY else 10240):
        if wanted == soft:
            break
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            continue
        break
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return soft if soft != resource.RLIM_INFINITY else 1 << 30


def fitting_connections(connections: int, files: int) -> int:
    """Return the number of connections that fit into a limit of open files."""
    return max(1, min(connections, files - max(FILES, int(files * PART))))
