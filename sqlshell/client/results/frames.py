"""The frames of a streaming data plane: a websocket with a bounded queue of text frames."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

import websockets
from websockets.asyncio.client import ClientConnection, connect

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
"""When the frames that wait are larger, no more are received, which slows the service down."""

QUEUE_FRAMES = 2
"""Frames beyond those of one read of the socket that websockets keeps until they are received."""

LOST_SECONDS = 60


class StreamConnection:
    """The frames of a websocket, taken together instead of one by one. `secrets` are removed from them."""

    def __init__(self, connection: ClientConnection, secrets: Secrets) -> None:
        self._connection = connection
        self._secrets = secrets
        self._frames: list[bytes] = []
        self._size = 0
        self._ended = False
        self._wake = asyncio.Event()
        self._taken = asyncio.Event()
        self.close_code = NO_CLOSE_CODE
        self.close_reason = ""
        self._receiving = asyncio.ensure_future(self._receive())

    async def send_first(self, frame: str) -> None:
        """Send the first frame. Raises ClosedWhileSending."""
        try:
            await self._connection.send(frame)
        except websockets.ConnectionClosed as error:
            self._note_close(error)
            raise ClosedWhileSending(str(error)) from error

    async def frames(self, timeout: float | None) -> list[bytes]:
        """All frames that have arrived, at least one; none at the end, or if none arrives within `timeout` seconds."""
        if not self._frames and not self._ended:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._wake.wait()
        taken, self._frames, self._size = self._frames, [], 0
        if not self._ended:
            self._wake.clear()
        self._taken.set()
        joined = b"\0".join(taken)
        if self._secrets.body(joined) == joined:
            return taken
        return [bytes(self._secrets.body(frame)) for frame in taken]

    @property
    def ended(self) -> bool:
        """Whether the connection is closed and all its frames have been taken."""
        return self._ended and not self._frames

    async def aclose(self) -> None:
        self._receiving.cancel()
        await asyncio.gather(self._receiving, return_exceptions=True)
        await self._connection.close()

    async def _receive(self) -> None:
        """Receive until the connection is closed. Frames that have arrived are received without a pause."""
        try:
            while True:
                frame = await self._connection.recv(decode=False)
                self._frames.append(frame)
                self._size += len(frame)
                self._wake.set()
                if self._size > QUEUE_BYTES:
                    self._taken.clear()
                    await self._taken.wait()
        except websockets.ConnectionClosed as error:
            self._note_close(error)
        finally:
            self._ended = True
            self._wake.set()

    def _note_close(self, error: websockets.ConnectionClosed) -> None:
        theirs, ours = error.rcvd, error.sent
        if ours is not None and not (theirs is not None and error.rcvd_then_sent):
            self.close_code = int(ours.code)
        elif theirs is not None:
            self.close_code = int(theirs.code)
        if theirs is not None:
            self.close_reason = self._secrets.text(theirs.reason)[:200]


class _OneConnection:
    """Makes the connection of websockets, and no other for a redirect: the token belongs to one origin."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._made = False

    def __call__(self, *given: Any, **named: Any) -> ClientConnection:
        """Raises ServiceError for a redirect."""
        if self._made:
            raise ServiceError(f"{self._name} redirects instead of opening the stream", REDIRECTED)
        self._made = True
        return ClientConnection(*given, **named)


REDIRECTED = "redirects are not followed, to protect the token"


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
            connection = await connect(
                uri,
                create_connection=cast("type[ClientConnection]", _OneConnection(f"the data plane {target.name}")),
                compression=None,
                user_agent_header=f"sqlshell/{__version__}",
                open_timeout=None,
                close_timeout=2,
                max_size=FRAME_LIMIT,
                max_queue=QUEUE_FRAMES,
                ping_interval=20,
                # No keepalive pings: while our reader waits for its own reader, no pongs are read. The kernel detects a
                # lost service.
                ping_timeout=None,
                **({"proxy": None} | given),
            )
    _detect_lost_service(connection)
    stream = StreamConnection(connection, secrets)
    try:
        yield stream
    finally:
        await stream.aclose()


@contextlib.contextmanager
def _translating_errors(target: Target) -> Iterator[None]:
    name = f"the data plane {target.name}"
    try:
        yield
    except TimeoutError as error:
        raise ConnectionFailed(f"connection to {name} timed out") from error
    except websockets.InvalidStatus as error:
        raise _refused(name, error) from error
    except (websockets.InvalidHandshake, websockets.InvalidMessage, EOFError) as error:
        raise ConnectionFailed(f"{name} did not open the stream: {error}") from error
    except OSError as error:
        raise connection_failed(name, error, local=bool(target.uds)) from error
    except (websockets.InvalidURI, ValueError) as error:
        if isinstance(error.__cause__, websockets.InvalidStatus):
            # A redirect that websockets cannot follow.
            raise _refused(name, error.__cause__) from error
        raise ProtocolError(f"cannot open {name}: {error}") from error


def _refused(name: str, error: websockets.InvalidStatus) -> ServiceError:
    """The error for a response that does not open the stream."""
    status = error.response.status_code
    message = f"{name} responded with {status} instead of opening the stream"
    if status in {401, 403}:
        return NotAuthenticated(message, "the token of the data plane may have expired: run the statement again")
    if is_retried(status):
        return Busy(message, status, error.response.headers)
    return ServiceError(message, REDIRECTED if 300 <= status < 400 else "")


def _detect_lost_service(connection: ClientConnection) -> None:
    given = connection.transport.get_extra_info("socket")
    if given is not None and hasattr(socket, "TCP_USER_TIMEOUT"):
        with contextlib.suppress(OSError):
            given.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, LOST_SECONDS * 1000)
