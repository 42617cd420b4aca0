"""The frames of a streaming data plane: a websocket with a bounded queue of text frames."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import deque
from collections.abc import AsyncIterator, Iterator
from typing import Any

import websockets
from websockets.asyncio.client import ClientConnection, connect
from websockets.frames import Frame, Opcode

from sqlshell.client.http.failures import connection_failed
from sqlshell.client.http.network import CheckAddress, open_socket
from sqlshell.client.http.options import NetworkOptions, proxy_for, secrets_of
from sqlshell.client.http.retries import is_retried
from sqlshell.client.results.stream import NO_CLOSE_CODE, ClosedWhileSending
from sqlshell.client.secret_values import Secrets
from sqlshell.client.target import Target
from sqlshell.errors import Busy, ConnectionFailed, NotAuthenticated, ProtocolError, ServiceError
from sqlshell.version import __version__

FRAME_LIMIT = 16 << 20
QUEUE_BYTES = 8 << 20
QUEUE_FRAMES = 20_000
"""Limits of the queue. When they are reached, the socket is not read, which slows the service down."""

LOST_SECONDS = 60


class StreamConnection(ClientConnection):
    """A connection of websockets whose queue is taken as a whole instead of frame by frame."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._frames: deque[bytes] = deque()
        self._queued_bytes = 0
        self._parts: list[bytes] = []
        self._paused = False
        self._ended = False
        self._wake = asyncio.Event()
        self.secrets = Secrets()
        """The secrets that are removed from received messages."""

    def process_event(self, event: Any) -> None:
        if not isinstance(event, Frame) or event.opcode not in {Opcode.TEXT, Opcode.CONT, Opcode.BINARY}:
            super().process_event(event)
            return
        if event.data:
            self._parts.append(bytes(event.data))
        if not event.fin:
            return
        frame = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts = []
        self._frames.append(frame)
        self._queued_bytes += len(frame)
        self._wake.set()
        if not self._paused and (self._queued_bytes > QUEUE_BYTES or len(self._frames) > QUEUE_FRAMES):
            self._paused = True
            self.transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._ended = True
        self._wake.set()

    async def send_first(self, frame: str) -> None:
        """Send the first frame. Raises ClosedWhileSending."""
        try:
            await self.send(frame)
        except websockets.ConnectionClosed as error:
            raise ClosedWhileSending(str(error)) from error

    async def frames(self, timeout: float | None) -> list[bytes]:
        """All frames that have arrived, at least one; none at the end, or if none arrives within `timeout` seconds."""
        if not self._frames and not self._ended:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._wake.wait()
        taken = list(self._frames)
        self._frames.clear()
        self._queued_bytes = 0
        if not self._ended:
            self._wake.clear()
        if self._paused:
            self._paused = False
            with contextlib.suppress(RuntimeError):
                self.transport.resume_reading()
        return self._without_secrets(taken)

    def _without_secrets(self, taken: list[bytes]) -> list[bytes]:
        joined = b"\0".join(taken)
        if self.secrets.body(joined) == joined:
            return taken
        return [bytes(self.secrets.body(frame)) for frame in taken]

    @property
    def ended(self) -> bool:
        """Whether the connection is closed and all its frames have been taken."""
        return self._ended and not self._frames

    @property
    def close_code(self) -> int:
        """The close code; 1006 if there is none."""
        theirs, ours = self.protocol.close_rcvd, self.protocol.close_sent
        if ours is not None and not (theirs is not None and self.protocol.close_rcvd_then_sent):
            return int(ours.code)
        return int(theirs.code) if theirs is not None else NO_CLOSE_CODE

    @property
    def close_reason(self) -> str:
        """The reason that the service gave when it closed the connection."""
        return self.secrets.text(self.protocol.close_rcvd.reason)[:200] if self.protocol.close_rcvd is not None else ""


class _NoRedirects(connect):
    """The connect of websockets, without following redirects: the token belongs to one origin."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


@contextlib.asynccontextmanager
async def open_stream(
    uri: str,
    target: Target,
    network: NetworkOptions,
    *,
    session_id: str = "",
    check_address: CheckAddress | None = None,
    secrets: Secrets | None = None,
) -> AsyncIterator[StreamConnection]:
    """A websocket to `uri` at `target`, with the same certificates and proxies as other requests.

    `secrets` are removed from everything that is received. Raises ConnectionFailed, NotAuthenticated and ServiceError.
    """
    given: dict[str, Any] = {}
    proxy = ""
    if target.uds:
        given |= {"unix": True, "path": target.uds}
    else:
        proxy = proxy_for(target)
        given["proxy"] = proxy or None
    if target.scheme == "https":
        given["ssl"] = network.tls()
    if session_id:
        given["additional_headers"] = {"ds-session-id": session_id}
    secrets = secrets or Secrets()
    for secret in secrets_of(proxy):
        secrets.add(secret)
    with secrets.redacting(), _translating_errors(target):
        async with asyncio.timeout(network.connect_timeout or None):
            if not (given.keys() & {"sock", "unix"} or proxy):
                given["sock"] = await open_socket(target.host, target.port, check_address)
            connection = await _NoRedirects(
                uri,
                create_connection=StreamConnection,
                compression=None,
                user_agent_header=f"sqlshell/{__version__}",
                open_timeout=None,
                close_timeout=2,
                max_size=FRAME_LIMIT,
                ping_interval=20,
                # No keepalive pings: while our reader waits for its own reader, no pongs are read. The kernel detects a
                # lost service.
                ping_timeout=None,
                **({"proxy": None} | given),
            )
    assert isinstance(connection, StreamConnection)
    connection.secrets = secrets
    _detect_lost_service(connection)
    try:
        yield connection
    finally:
        await connection.close()


@contextlib.contextmanager
def _translating_errors(target: Target) -> Iterator[None]:
    name = f"the data plane {target.name}"
    try:
        yield
    except TimeoutError as error:
        raise ConnectionFailed(f"connection to {name} timed out") from error
    except websockets.InvalidStatus as error:
        status = error.response.status_code
        message = f"{name} responded with {status} instead of opening the stream"
        if status in {401, 403}:
            raise NotAuthenticated(
                message, "the token of the data plane may have expired: run the statement again"
            ) from error
        if is_retried(status):
            raise Busy(message, status, error.response.headers) from error
        if 300 <= status < 400:
            raise ServiceError(message, "redirects are not followed, to protect the token") from error
        raise ServiceError(message) from error
    except (websockets.InvalidHandshake, websockets.InvalidMessage, EOFError) as error:
        raise ConnectionFailed(f"{name} did not open the stream: {error}") from error
    except OSError as error:
        raise connection_failed(name, error, local=bool(target.uds)) from error
    except (websockets.InvalidURI, ValueError) as error:
        raise ProtocolError(f"cannot open {name}: {error}") from error


def _detect_lost_service(connection: StreamConnection) -> None:
    given = connection.transport.get_extra_info("socket")
    if given is not None and hasattr(socket, "TCP_USER_TIMEOUT"):
        with contextlib.suppress(OSError):
            given.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, LOST_SECONDS * 1000)
