"""Websockets as uvicorn speaks them, within bounds: what a reader may send, and one that reads nothing."""

from __future__ import annotations

from typing import Any, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request

from sqlshell.service.wire.connections import KEY
from sqlshell.service.wire.transport import Lingering

MESSAGE = 16 << 10
"""Bytes of a reader's message: there is one that says who it is, and pongs."""

BURST, RATE = 32 << 10, 1 << 10
"""Bytes that a reader may send at once, and those a second over a longer time."""

PIECE = 2 << 10
"""Bytes that are looked at together: a frame may have six."""

FRAMES = 64
"""Frames of one message."""

TOO_MUCH, TOO_BIG = 1008, 1009


class BoundedSocket(WebSocketsSansIOProtocol):
    """One websocket, upgraded from a connection that counts."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._sent = 0.0
        self._at = self.loop.time()

    def data_received(self, data: bytes) -> None:
        if not self.handshake_initiated:
            super().data_received(data)
            if self.conn.handshake_exc is not None and not self.transport.is_closing():
                # The form of its headers is good HTTP, but no websocket's.
                self.handshake_complete = True
                self.transport.abort()
            return
        now = self.loop.time()
        self._sent = max(0.0, self._sent - (now - self._at) * RATE) + len(data)
        self._at = now
        if self._sent > BURST:
            self._fail(TOO_MUCH, "a reader sends no more than its first frame")
            return
        for start in range(0, len(data), PIECE):
            if self.transport.is_closing() or self.disconnected:
                break
            super().data_received(data[start : start + PIECE])

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if not self.handshake_complete:
            # The application begins after this.
            cast(dict[str, Any], self.scope)[KEY] = cast(Lingering, self.transport).known

    def handle_cont(self, event: Frame) -> None:
        if len(self.frames) >= FRAMES:
            self._fail(TOO_BIG, "the message has too many frames")
            return
        super().handle_cont(event)

    def resume_writing(self) -> None:
        cast(Lingering, self.transport).taken()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        cast(Lingering, self.transport).lost()
        super().connection_lost(exc)

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        # It would wait for what this reader does not take.
        self.transport.abort()

    def _fail(self, code: int, said: str) -> None:
        if self.close_sent or self.transport.is_closing():
            return
        self.conn.fail(code, said)
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": said})
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.transport.close()
