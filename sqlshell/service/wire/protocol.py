"""Uvicorn's HTTP protocol with limits on sizes, times and connections."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from functools import partial
from typing import Any, cast
from urllib.parse import urlsplit

import httptools
import msgspec
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from sqlshell.service.bounds import Bounds, limit_note
from sqlshell.service.http.errors import message
from sqlshell.service.wire.connections import KEY, Connection, Connections, RequestConnection, peer
from sqlshell.service.wire.scheduling import STRANGERS
from sqlshell.service.wire.transport import DRAIN_BODY, DRAIN_HEAD, LingeringTransport

HEADERS = 100
"""The maximum number of headers of a request."""

AHEAD = 16
"""The maximum number of pipelined requests on one connection."""

FRAMING = 64 << 10
"""A chunked body may have this many bytes of framing, in addition to the size of its content."""

PIECES, PIECE = 4096, 16
"""The first PIECES chunks of a body may have any size; if there are more, the average must be PIECE bytes."""

STEP = 4 << 10
"""Bytes that are parsed before it is another client's turn, where they may be many small requests or chunks."""

SPARSE = "the chunks of the body are too small"

BODY_SECONDS = 3600.0
"""The maximum time for a whole body."""


class BoundedProtocol(HttpToolsProtocol):
    """One connection. A refused request gets its response in turn, and then the connection is closed."""

    def __init__(self, *given: Any, bounds: Bounds, connections: Connections, **more: Any) -> None:
        super().__init__(*given, **more)
        self._bounds = bounds
        self._connections = connections
        self._connection: Connection | None = None
        self._clock: asyncio.TimerHandle | None = None
        self._body_until = 0.0
        self._in_head = False
        self._in_body = False
        self._size = 0
        """Bytes received of the request's head, or of its body."""
        self._content = 0
        self._pieces = 0
        self._chunked = False
        self._refusal: tuple[int, str] | None = None
        self._deaf = False
        self._last_words = b""
        self._answering = False
        """Whether the responses to earlier requests are sent before the connection is closed."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        lingering = LingeringTransport(transport, self._bounds.write_seconds, self._sending, self._left, self._waits)
        super().connection_made(lingering)
        connection = Connection(peer(transport.get_extra_info("peername")), transport.abort)
        refused = self._connections.enter(connection)
        if refused is not None:
            self._deaf = True
            transport.write(_raw(*refused))
            transport.close()
            return
        self._connection = connection
        lingering.known = RequestConnection(self._connections, connection)
        self._wait(self._bounds.header_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        cast(LingeringTransport, self.transport).lost()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        lingering = cast(LingeringTransport, self.transport)
        if self._deaf or lingering.lingering or self._connection is None:
            self._parse(data)
            return
        connection = self._connection
        client = connection.token or f"{STRANGERS} {connection.address}"
        if not self._connections.parsing.parse(client, len(data), partial(self._step, iter(self._steps(data)))):
            self._unset_keepalive_if_required()
            lingering.hold()

    def _steps(self, data: bytes) -> Iterator[bool]:
        """Parse data in steps, in as many turns of this client as it takes; yields whether there is another step."""
        start = 0
        # Without a parser the connection was lost meanwhile.
        while start < len(data) and self.parser is not None:
            whole = self._deaf or (self._in_body and not self._chunked)
            end = len(data) if whole else start + STEP
            self._parse(data[start:end] if start or end < len(data) else data)
            start = end
            if start < len(data):
                yield True

    def _step(self, steps: Iterator[bool]) -> bool:
        if next(steps, False):
            return True
        lingering = cast(LingeringTransport, self.transport)
        if lingering.held and self.parser is not None and not self._answering:
            lingering.release(reading=not self.flow.read_paused)
        return False

    def _parse(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        lingering = cast(LingeringTransport, self.transport)
        if self._deaf or lingering.lingering:
            if lingering.lingering:
                lingering.drained(len(data))
            return
        if self._in_body:
            left = self._body_until - self.loop.time()
            self._wait(min(self._bounds.body_seconds, max(left, 0.0)))
        self._size += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            if self._should_upgrade():
                self.handle_websocket_upgrade()
            self._deaf = True
            return
        except httptools.HttpParserError:
            self._refuse(*(self._refusal or (400, "the request is not valid HTTP/1.1")))
            return
        if self._in_head and self._size > self._bounds.header_size:
            self._refuse(431, self._too_long())
        elif self._in_body and self._size > FRAMING + 2 * self._content:
            self._refuse(400, SPARSE)
        elif self._in_body and self.cycle.response_complete and self._size > DRAIN_BODY:
            self.transport.abort()

    def on_message_begin(self) -> None:
        self._in_head, self._size = True, 0
        self._wait(self._bounds.header_seconds)
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > self._bounds.url_size:
            self._fail(414, f"the URL is longer than {self._bounds.url_size} bytes {limit_note('url_size')}")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_body:
            # A trailer is ignored, because the headers have already been checked.
            return
        super().on_header(name, value)
        if len(self.headers) > HEADERS:
            self._fail(431, f"the request has more than {HEADERS} headers")

    def on_headers_complete(self) -> None:
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > self._bounds.header_size:
            self._fail(431, self._too_long())
        wrong = _wrong(self.url, self.headers, self.parser.get_http_version())
        if wrong is not None:
            self._fail(*wrong)
        self._in_head, self._in_body = False, True
        self._size = self._content = self._pieces = 0
        self._chunked = any(name == b"transfer-encoding" for name, _ in self.headers)
        self._body_until = self.loop.time() + BODY_SECONDS
        self._wait(self._bounds.body_seconds)
        if self._connection is not None:
            self._connections.note_busy(self._connection, busy=True)
            cast(dict[str, Any], self.scope)[KEY] = cast(LingeringTransport, self.transport).known
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is before:
            return
        if self.expect_100_continue or self.parser.should_upgrade():
            # The next data on this connection may be the body or a request.
            self.cycle.keep_alive = False
        if len(self.pipeline) > AHEAD:
            self.pipeline[0] = self.cycle, cast(Any, _too_many)
            # The request that is too many need not be sent to its end.
            self._in_body = False
            self._fail(429, "")

    def on_body(self, body: bytes) -> None:
        self._content += len(body)
        self._pieces += 1
        if self._chunked and self._pieces > PIECES and self._content < PIECE * self._pieces:
            self._fail(400, SPARSE)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_head = self._in_body = False
        self._size = 0
        self._stop()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.pipeline and self.cycle.response_complete:
            if self._connection is not None and not self._in_body:
                self._connections.note_busy(self._connection, busy=False)
            if self._last_words:
                self.transport.write(self._last_words)
                self.transport.close()

    def handle_websocket_upgrade(self) -> None:
        self._stop()
        self._in_head = self._in_body = False
        super().handle_websocket_upgrade()

    def _too_long(self) -> str:
        return f"the request's headers are longer than {self._bounds.header_size} bytes {limit_note('header_size')}"

    def _fail(self, status: int, text: str) -> None:
        """Stop the parser from one of its callbacks."""
        self._refusal = status, text
        raise ValueError(text)

    def _refuse(self, status: int, text: str) -> None:
        """Stop reading, and send the refusal after the responses to all earlier requests."""
        self._deaf = True
        self._stop()
        words = _raw(status, text) if text else b""
        cycle = self.cycle
        if self._in_body and cycle is not None and cycle.response_complete:
            # The response has already been sent.
            self.transport.abort()
            return
        if self._in_body and words and cycle is not None:
            queued = next((item for item in self.pipeline if item[0] is cycle), None)
            if queued is None and cycle.response_started:
                self.transport.abort()
                return
            if queued is None:
                cycle.disconnected = True
                cycle.message_event.set()
                self._say(words)
                return
            self.pipeline.remove(queued)
        if cycle is None or cycle.response_complete:
            self._say(words)
        else:
            self._last_words = words
            # More is read, and discarded, only after the earlier responses, which the peer may not read.
            self._answering = True
            cast(LingeringTransport, self.transport).hold()

    def _say(self, words: bytes) -> None:
        self.transport.write(words)
        self.transport.close()

    def _sending(self) -> int:
        return DRAIN_BODY if self._in_body else DRAIN_HEAD if self._in_head or self._deaf else 0

    def resume_writing(self) -> None:
        cast(LingeringTransport, self.transport).taken()
        super().resume_writing()

    def _waits(self, size: int) -> None:
        if self._connection is not None:
            self._connections.backlog.note(self._connection, size)

    def _left(self) -> None:
        if self._connection is not None:
            self._connections.leave(self._connection)

    def _wait(self, seconds: float) -> None:
        self._stop()
        self._clock = self.loop.call_later(seconds, self._late)

    def _stop(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _late(self) -> None:
        if self.transport.is_closing():
            return
        if cast(LingeringTransport, self.transport).held or (self._in_body and self.flow.read_paused):
            # The service itself has paused reading.
            self._wait(self._bounds.body_seconds)
            return
        name = "body_seconds" if self._in_body else "header_seconds"
        self._refuse(408, f"timed out while receiving the request {limit_note(name)}")


async def _too_many(scope: Scope, receive: Receive, send: Send) -> None:
    text = f"more than {AHEAD} pipelined requests on one connection"
    await message(text, 429, {"Connection": "close"})(scope, receive, send)


def _wrong(url: bytes, headers: list[tuple[bytes, bytes]], version: str) -> tuple[int, str] | None:
    """The status and message for a well-formed request with an invalid request line or headers, or None."""
    codings = [value for name, value in headers if name == b"transfer-encoding"]
    if codings and (codings != [b"chunked"] or version != "1.1"):
        return 501, "Transfer-Encoding: only chunked is supported, once, in HTTP/1.1"
    if not url.startswith((b"/", b"*")):
        hosts = [value for name, value in headers if name == b"host"]
        with contextlib.suppress(ValueError):
            if hosts != [urlsplit(url).netloc]:
                return 400, "the URL and the header Host name different hosts"
    return None


def _raw(status: int, text: str) -> bytes:
    """A raw HTTP response to a request that does not reach the application."""
    body = msgspec.json.encode({"message": text})
    head = b"Content-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
    return STATUS_LINE[status] + head + body
