"""The frames of a stream of the service in this process."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import httpx

from sqlshell.client.http.in_process import Exchange, Message, OpenApp, scope_of
from sqlshell.client.results.stream import NO_CLOSE_CODE, ClosedWhileSending
from sqlshell.errors import ConnectionFailed


class LocalFrames:
    """The frames that an application sends on a websocket; see stream.Frames."""

    def __init__(self, exchange: Exchange, messages: list[Message]) -> None:
        self._exchange = exchange
        self._messages = messages
        self.ended = False
        self.close_code = NO_CLOSE_CODE
        self.close_reason = ""

    async def send_first(self, frame: str) -> None:
        """Send the first frame. Raises ClosedWhileSending."""
        try:
            await self._exchange.requests.put({"type": "websocket.receive", "text": frame})
        except BrokenPipeError as error:
            raise ClosedWhileSending(str(error)) from error

    async def frames(self, timeout: float | None) -> list[bytes]:
        """All frames that have arrived, at least one; none at the end, or if none arrives within `timeout` seconds."""
        if not self._messages and not self.ended:
            with contextlib.suppress(TimeoutError):
                self._messages = await self._exchange.responses.take(timeout)
                self.ended = not self._messages
        taken, self._messages = self._messages, []
        frames = list[bytes]()
        for message in taken:
            if message["type"] == "websocket.close":
                self.close_code, self.close_reason = message.get("code", 1000), message.get("reason") or ""
                self.ended = True
                break
            frames.append(message["text"].encode())
        return frames


@contextlib.asynccontextmanager
async def open_local_stream(
    uri: str, open_app: OpenApp, name: str, *, session_id: str = ""
) -> AsyncIterator[LocalFrames]:
    """A stream of the application; `name` is the service's. Raises ConnectionFailed, and what `open_app` raises."""
    url = httpx.URL(uri)
    headers = httpx.Headers({"host": url.netloc.decode("ascii")})
    if session_id:
        headers["ds-session-id"] = session_id
    own = {"type": "websocket", "scheme": url.scheme, "subprotocols": []}
    try:
        exchange = Exchange(open_app(), scope_of(url, headers) | own)
    except httpx.ConnectError as error:
        raise ConnectionFailed(f"cannot connect to {name}: {error}") from error
    try:
        # An application that refuses at once does not hear this.
        with contextlib.suppress(BrokenPipeError):
            await exchange.requests.put({"type": "websocket.connect"})
        messages = await exchange.responses.take()
        if not messages or messages[0]["type"] != "websocket.accept":
            raise ConnectionFailed(f"{name} did not open the stream")
        yield LocalFrames(exchange, messages[1:])
    finally:
        exchange.close()
