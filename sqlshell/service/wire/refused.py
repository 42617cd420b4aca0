"""Reads the bodies of refused requests before the error is sent."""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY = 16 << 20
"""The maximum number of bytes of a body that are read before its request is refused."""

SECONDS, IDLE_SECONDS = 10.0, 1.0
"""The maximum time for reading a body, and the maximum pause."""

TOGETHER = 256
"""The maximum number of such bodies that are read at once; other requests are refused immediately."""


class ReadBodyFirst:
    """Delays an error until the body of its request has been read, within limits.

    Many clients read no response before they have sent the whole body, and report a broken connection otherwise.
    `body_seconds` is the maximum pause of any body.
    """

    def __init__(self, app: ASGIApp, body_seconds: float) -> None:
        self._app = app
        self._idle_seconds = min(IDLE_SECONDS, body_seconds / 2)
        self._reading = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _worth_reading(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        ended = False

        async def receiving() -> Message:
            nonlocal ended
            message = await receive()
            ended = message["type"] != "http.request" or not message.get("more_body", False)
            return message

        async def sending(message: Message) -> None:
            if not ended and message["type"] == "http.response.start" and message["status"] >= 400:
                await self._read(receiving)
            await send(message)

        await self._app(scope, receiving, sending)

    async def _read(self, receive: Receive) -> None:
        """Read a body to its end, or to the limits."""
        if self._reading >= TOGETHER:
            return
        self._reading += 1
        now = asyncio.get_running_loop().time
        end, left, ended = now() + SECONDS, BODY, False
        try:
            async with asyncio.timeout(None) as clock:
                while left > 0 and not ended:
                    clock.reschedule(min(end, now() + self._idle_seconds))
                    message = await receive()
                    ended = not message.get("more_body", False)
                    left -= len(message.get("body", b""))
        except TimeoutError:
            pass
        finally:
            self._reading -= 1


def _worth_reading(headers: Headers) -> bool:
    """Whether a request has a body that should be read; a client that waits for 100 Continue has not sent any."""
    if "expect" in headers:
        return False
    length = headers.get("content-length", "0")
    return "transfer-encoding" in headers or 0 < int(length) <= BODY
