"""Deadlines of requests, which uvicorn does not have: for the headers, and for a body that stands still."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADER_SECONDS = 15.0
"""From a connection's first byte, or a request's, to the end of the headers."""

BODY_IDLE_SECONDS = 30.0
BODY_SECONDS = 3600.0
"""For a whole body, however slowly it comes."""

LATE = (
    b"HTTP/1.1 408 Request Timeout\r\nContent-Type: application/json\r\nContent-Length: 37\r\nConnection: close\r\n\r\n"
    b'{"message":"the request came slowly"}'
)


class Deadlines(HttpToolsProtocol):
    """uvicorn's protocol, which closes connections that keep it waiting."""

    _clock: asyncio.TimerHandle | None = None
    _body_until = 0.0
    _in_body = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait(HEADER_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._in_body:
            left = self._body_until - self.loop.time()
            self._wait(min(BODY_IDLE_SECONDS, max(left, 0.0)))
        super().data_received(data)

    def on_message_begin(self) -> None:
        self._wait(HEADER_SECONDS)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_body = True
        self._body_until = self.loop.time() + BODY_SECONDS
        self._wait(BODY_IDLE_SECONDS)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_body = False
        self._stop()
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        self._stop()
        super().handle_websocket_upgrade()

    def _wait(self, seconds: float) -> None:
        self._stop()
        self._clock = self.loop.call_later(seconds, self._late)

    def _stop(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _late(self) -> None:
        transport = cast(Any, self.transport)
        if transport.is_closing():
            return
        if self._in_body and getattr(self, "flow", None) is not None and self.flow.read_paused:
            # It is us who do not read.
            self._wait(BODY_IDLE_SECONDS)
            return
        if not (self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete):
            transport.write(LATE)
        transport.close()
