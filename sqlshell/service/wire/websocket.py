"""Uvicorn's websocket protocol with limits on what a client may send, and a timeout for clients that do not read."""

from __future__ import annotations

from typing import Any, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request

from sqlshell.service.wire.connections import KEY
from sqlshell.service.wire.transport import LingeringTransport

BURST, RATE = 32 << 10, 1 << 10
"""Bytes that a client may send at once, and bytes per second over a longer time."""

PIECE = 2 << 10
"""Bytes that are parsed at once; a frame may be as small as six bytes."""

FRAMES = 64
"""The maximum number of frames of one message."""

TOO_MUCH, TOO_BIG = 1008, 1009


class BoundedSocket(WebSocketsSansIOProtocol):
    """One websocket, upgraded from a counted connection."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._sent = 0.0
        self._at = self.loop.time()

    def data_received(self, data: bytes) -> None:
        if not self.handshake_initiated:
            super().data_received(data)
            if self.conn.handshake_exc is not None and not self.transport.is_closing():
                # The headers are valid HTTP, but not a valid websocket handshake.
                self.handshake_complete = True
                self.transport.abort()
            return
        now = self.loop.time()
        self._sent = max(0.0, self._sent - (now - self._at) * RATE) + len(data)
        self._at = now
        if self._sent > BURST:
            self._fail(TOO_MUCH, "too much data after the first frame")
            return
        for start in range(0, len(data), PIECE):
            if self.transport.is_closing() or self.disconnected:
                break
            super().data_received(data[start : start + PIECE])

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if not self.handshake_complete:
            # The application is started after this call.
            cast(dict[str, Any], self.scope)[KEY] = cast(LingeringTransport, self.transport).known

    def handle_cont(self, event: Frame) -> None:
        if len(self.frames) >= FRAMES:
            self._fail(TOO_BIG, "the message has too many frames")
            return
        super().handle_cont(event)

    def resume_writing(self) -> None:
        cast(LingeringTransport, self.transport).taken()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        cast(LingeringTransport, self.transport).lost()
        super().connection_lost(exc)

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        # Otherwise closing would wait for the data that this client does not read.
        self.transport.abort()

    def _fail(self, code: int, reason: str) -> None:
        if self.close_sent or self.transport.is_closing():
            return
        self.conn.fail(code, reason)
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.transport.close()
