"""Connections of clients: uvicorn's protocol behind limits of size, time and number."""

from __future__ import annotations

import asyncio
import contextlib
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import httptools
import msgspec
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from sqlshell.service.http.connections import KEY, Connections
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


class Refused(Exception):
    """A request is refused: the status and the message of the response."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class RequestLimits:
    """Parses requests only to find those that exceed a limit; its public methods `on_…` are called by the parser."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._parser = httptools.HttpRequestParser(self)
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._refused: Refused | None = None
        self.place = BETWEEN
        self.begun = 0
        """The number of requests that have begun."""
        self.ended = 0
        """The number of requests that have been received completely."""
        self._end = b""
        self._step = self._received = self._content = 0
        self._left: int | None = None
        self._url = b""
        self._hosts: list[bytes] = []
        self._codings: list[bytes] = []
        self._headers = 0

    def take(self, data: bytearray) -> bytes:
        """Take the next step of what was received, at most to the end of a head or of a body."""
        size = STEP
        if self.place == BODY:
            size = min(self._left, BODY_STEP) if self._left else STEP
        else:
            seen = self._end + data[:STEP]
            found = seen.find(b"\r\n\r\n")
            if found >= 0:
                size = found + 4 - len(self._end)
        step = bytes(data[:size])
        del data[:size]
        self._end = b"" if self.place == BODY else (self._end + step)[-3:]
        return step

    def parse(self, step: bytes) -> None:
        """Parse one step. Raises Refused, and httptools.HttpParserUpgrade at the end of a request for an upgrade."""
        self._step = len(step)
        self._received += self._step
        try:
            self._parser.feed_data(step)
        except httptools.HttpParserUpgrade:
            raise
        except httptools.HttpParserError:
            raise self._refused or Refused(400, "the request is not valid HTTP/1.1") from None
        if self.place == HEAD and self._received > self._settings.header_size:
            raise self._too_long()
        if self.place == BODY and self._left is None and self._received > FRAMING + 2 * self._content:
            raise Refused(400, "the chunks of the body are too small")

    def on_message_begin(self) -> None:
        self.begun += 1
        self.place, self._received = HEAD, self._step
        self._url, self._hosts, self._codings = b"", [], []
        self._headers, self._left = 0, 0

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

    def on_headers_complete(self) -> None:
        if self._received > self._settings.header_size:
            self._refuse(self._too_long())
        if self._codings and (self._codings != [b"chunked"] or self._parser.get_http_version() != "1.1"):
            self._refuse(Refused(501, "Transfer-Encoding: only chunked is supported, once, in HTTP/1.1"))
        if not self._url.startswith((b"/", b"*")):
            with contextlib.suppress(ValueError):
                if self._hosts != [urlsplit(self._url).netloc]:
                    self._refuse(Refused(400, "the URL and the header Host name different hosts"))
        self.place, self._received, self._content = BODY, 0, 0

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


class LimitedProtocol(asyncio.Protocol):
    """One connection. uvicorn's protocol gets what is within the limits, a step in each iteration of the event loop.

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
        self.connections = connections
        self._settings = connections.settings
        self._loop = asyncio.get_running_loop()
        self._inner: asyncio.Protocol = HttpToolsProtocol(config, server_state, {**app_state, KEY: self}, _loop)
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
        self._answered = 0
        self._upgraded = False
        self._flood, self._flood_at = 0.0, 0.0
        self.gone = self.responding = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._inner.connection_made(_InnerTransport(self, transport))
        if self.connections.enter(self):
            self._start_clock(self._settings.header_seconds)
            return
        limit = f"{self._settings.connections} {limit_note('connections')}"
        transport.write(_raw(Refused(503, f"too many connections: {limit}")))
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
            if not self._planned:
                self._step()

    def pause_inner(self, *, pauses: bool) -> None:
        """Note whether uvicorn's protocol wants no more data."""
        self._inner_pauses = pauses
        self._plan()

    def upgrade(self, protocol: asyncio.Protocol) -> None:
        """Pass what is received to this protocol, which speaks websocket."""
        self._inner = protocol
        self._upgraded = True
        self._flood_at = self._loop.time()

    def write(self, data: bytes) -> None:
        """Send what uvicorn's protocol writes."""
        if self._upgraded:
            # The response to the handshake, or what follows it.
            self._stop_clock()
        self._transport.write(data)

    def close(self) -> None:
        """Close the connection. What the client is still sending is read for a while."""
        if self.is_closing():
            return
        if not (self._deaf or self._unread or self._limits.place != BETWEEN) or not self._transport.can_write_eof():
            self._transport.close()
            return
        try:
            self._transport.write_eof()
        except OSError:
            # The peer has reset the connection.
            self._transport.close()
            return
        self._lingers = True
        self._transport.resume_reading()
        self._stop_clock()
        self._clock = self._loop.call_later(DRAIN_SECONDS, self._transport.close)

    def is_closing(self) -> bool:
        return self._lingers or self._transport.is_closing()

    def end_response(self) -> None:
        """Note that the whole response to a request has been sent."""
        self.responding = False
        self._answered += 1
        self._plan()

    def abort(self) -> None:
        """Close the connection at once."""
        self._transport.abort()

    def _plan(self) -> None:
        self._set_reading()
        if self._unread and not self._planned and not self._waits():
            self._planned = True
            self._loop.call_soon(self._step)

    def _waits(self) -> bool:
        """Whether what was received waits for uvicorn's protocol, or for the response to an earlier request."""
        return self._inner_pauses or (self._limits.place != BODY and self._limits.ended > self._answered)

    def _set_reading(self) -> None:
        if self.is_closing():
            return
        if self._unread or self._inner_pauses:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _step(self) -> None:
        """Pass on one step of what was received."""
        self._planned = False
        if self._deaf or self._waits() or self.is_closing():
            self._set_reading()
            return
        ended = self._limits.ended
        step = self._limits.take(self._unread)
        try:
            self._limits.parse(step)
        except Refused as refused:
            self._refuse(refused)
            return
        except httptools.HttpParserUpgrade:
            self._stop_clock()
            self._inner.data_received(step)
            if self._upgraded:
                # There is no response to a handshake that the package websockets does not understand.
                self._start_clock(self._settings.header_seconds)
            self._deaf = not self._upgraded
            self._unread.clear()
            return
        self._inner.data_received(step)
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
            self._transport.write(TOO_MUCH)
            self._deaf = True
            self.close()
            self._end_inner(None)
        elif self._clock is None:
            # A client sends nothing before it has the response to its handshake.
            self._inner.data_received(data)

    def _refuse(self, refused: Refused) -> None:
        self._deaf = True
        self._unread.clear()
        if self.responding or self._answered < self._limits.begun - 1:
            self._transport.abort()
            return
        if self._limits.place != BODY or self._answered < self._limits.begun:
            self._transport.write(_raw(refused))
        # The application is told that its client has left, and what it still says is not sent.
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
        if self._upgraded:
            self._transport.abort()
        elif self._unread or self._inner_pauses:
            # The service itself does not read.
            self._start_clock(self._settings.body_seconds)
        elif not self.is_closing():
            self._refuse(Refused(408, "timed out while receiving the request"))


class _InnerTransport(asyncio.Transport):
    """What uvicorn's protocol takes for its transport."""

    def __init__(self, protocol: LimitedProtocol, transport: asyncio.Transport) -> None:
        super().__init__()
        self._protocol = protocol
        self._transport = transport

    def write(self, data: Any) -> None:
        self._protocol.write(data)

    def close(self) -> None:
        self._protocol.close()

    def abort(self) -> None:
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._protocol.is_closing()

    def pause_reading(self) -> None:
        self._protocol.pause_inner(pauses=True)

    def resume_reading(self) -> None:
        self._protocol.pause_inner(pauses=False)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        assert isinstance(protocol, asyncio.Protocol)
        self._protocol.upgrade(protocol)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)


def _raw(refused: Refused) -> bytes:
    """A raw HTTP response to a request that does not reach the application."""
    body = msgspec.json.encode({"message": refused.message})
    line = f"HTTP/1.1 {refused.status} {HTTPStatus(refused.status).phrase}\r\n".encode()
    return (
        line + b"Content-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body
    )
