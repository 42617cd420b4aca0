"""A scripted websocket server: a streaming data plane that behaves as the local one never does."""

from __future__ import annotations

import asyncio
import contextlib
import http
import json
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from websockets.asyncio.server import ServerConnection, serve, unix_serve
from websockets.http11 import Request, Response

METADATA = {
    "type": "metadata",
    "headers": {},
    "columns": [{"name": "a", "type": "INTEGER"}, {"name": "p", "type": "DECIMAL", "precision": 10, "scale": 2}],
}

Act = Callable[[ServerConnection], Awaitable[None]]


class Plane:
    """One act for each connection, the last one for all that follow. `hellos` are the first frames that came."""

    def __init__(self, acts: list[Act]) -> None:
        self._acts = acts
        self.hellos: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""
        self.dies = False
        """Whether nobody answers after the first connection."""

    async def serve(self, socket: ServerConnection) -> None:
        assert socket.request is not None
        self.headers.append(dict(socket.request.headers))
        with contextlib.suppress(Exception):
            self.hellos.append(json.loads(await socket.recv()))
            if self.dies and len(self.hellos) > 1:
                socket.transport.abort()
                return
            act = self._acts.pop(0) if len(self._acts) > 1 else self._acts[0]
            await act(socket)


@contextmanager
def plane(
    *acts: Act, tls: ssl.SSLContext | None = None, uds: str = "", refuse: int = 0, retry_after: str = ""
) -> Iterator[Plane]:
    """`refuse` is a status that is answered instead of opening any websocket, `retry_after` its Retry-After."""
    state = Plane(list(acts))
    loop = asyncio.new_event_loop()
    ready = threading.Event()

    async def work() -> None:
        def refused(socket: ServerConnection, request: Request) -> Response | None:
            if not refuse:
                return None
            response = socket.respond(http.HTTPStatus(refuse), "no")
            response.headers["Location"] = "ws://127.0.0.1:1/elsewhere"
            if retry_after:
                response.headers["Retry-After"] = retry_after
            state.headers.append(dict(request.headers))
            return response

        given: dict[str, Any] = {"compression": None, "max_size": None, "close_timeout": 0.5, "ssl": tls}
        given["process_request"] = refused
        async with (
            unix_serve(state.serve, uds, **given) if uds else serve(state.serve, "127.0.0.1", 0, **given) as made
        ):
            host = "localhost" if uds else f"127.0.0.1:{next(iter(made.sockets)).getsockname()[1]}"
            state.url = f"{'wss' if tls else 'ws'}://{host}/streams/1"
            ready.set()
            await ended.wait()

    ended = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(work()))
    thread.start()
    ready.wait(10)
    try:
        yield state
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(10)
        loop.close()


def rows(first: int, last: int) -> list[dict[str, Any]]:
    return [{"type": "data", "headers": {}, "data": [str(n), None]} for n in range(first, last + 1)]


def sends(*frames: Any, code: int | None = 1000, reason: str = "", wait: float = 0.0) -> Act:
    """Send frames (bytes as they are, else as JSON), then close with `code`; None breaks off without a close."""

    async def act(socket: ServerConnection) -> None:
        for frame in frames:
            await socket.send(frame if isinstance(frame, str | bytes) else json.dumps(frame))
        await asyncio.sleep(wait)
        if code is None:
            await asyncio.sleep(0.05)
            socket.transport.abort()
            return
        await socket.close(code, reason)

    return act


def stays(*frames: Any) -> Act:
    """Send frames, then nothing until the reader leaves."""

    async def act(socket: ServerConnection) -> None:
        for frame in frames:
            await socket.send(json.dumps(frame))
        await socket.wait_closed()

    return act
