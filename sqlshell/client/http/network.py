"""Connections for httpcore on plain asyncio streams: TCP or a Unix socket.

httpcore's own asyncio backend uses anyio, which costs start-up time and about a third of each small request.
"""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import httpcore

CheckAddress = Callable[[str], None]
"""Called with an address before a connection to it; raises if it is not allowed."""

_BUFFER = 1 << 20


@contextlib.asynccontextmanager
async def _within(
    timeout: float | None, late: type[httpcore.TimeoutException], failed: type[httpcore.NetworkError]
) -> AsyncIterator[None]:
    """Raises `late` after `timeout` seconds, and `failed` for an error of the network."""
    try:
        async with asyncio.timeout(timeout):
            yield
    except TimeoutError as error:
        raise late(str(error)) from error
    except OSError as error:
        raise failed(str(error)) from error


class AsyncioStream(httpcore.AsyncNetworkStream):
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._tls = False

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        async with _within(timeout, httpcore.ReadTimeout, httpcore.ReadError):
            return await self._reader.read(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if not buffer:
            return
        async with _within(timeout, httpcore.WriteTimeout, httpcore.WriteError):
            self._writer.write(buffer)
            await self._writer.drain()

    async def aclose(self) -> None:
        transport = self._writer.transport
        self._writer.close()
        if self._tls or transport.get_write_buffer_size():
            # Otherwise asyncio waits until the peer has read everything, and up to 30 s for its close_notify of TLS.
            transport.abort()
        # In a task: raised again here, the error of read() would lose its place in the chain of causes.
        await asyncio.gather(self._writer.wait_closed(), return_exceptions=True)

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        async with _within(timeout, httpcore.ConnectTimeout, httpcore.ConnectError):
            await self._writer.start_tls(ssl_context, server_hostname=server_hostname)
        self._tls = True
        return self

    def get_extra_info(self, info: str) -> Any:
        match info:
            case "ssl_object":
                return self._writer.get_extra_info("ssl_object")
            case "is_readable":
                return self._unasked() or self._writer.is_closing()
            case "socket":
                return self._writer.get_extra_info("socket")
        return None

    def _unasked(self) -> bool:
        """Whether unread data has arrived, or the peer has closed the connection."""
        if self._reader.at_eof() or vars(self._reader)["_buffer"]:
            return True
        given = self._writer.get_extra_info("socket")
        if given is None:
            return False
        poll = select.poll()
        poll.register(given.fileno(), select.POLLIN)
        return bool(poll.poll(0))


async def open_socket(host: str, port: int, check_address: CheckAddress | None = None) -> socket.socket:
    """A TCP connection to the first address of `host` that accepts one.

    `check_address` is called with every address before any is tried, and raises for one that is not allowed. The
    connection uses the address that was checked, because a second lookup might return another one. Raises OSError;
    socket.gaierror if the name cannot be resolved.
    """
    loop = asyncio.get_running_loop()
    try:
        try:
            # A numeric address needs no lookup, and so no thread; as bytes it needs no module for names.
            addresses = socket.getaddrinfo(host.encode(), port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        except socket.gaierror:
            addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        # No name of a host, such as `a..b`.
        raise socket.gaierror(socket.EAI_NONAME, str(error)) from error
    if check_address is not None:
        for *_, address in addresses:
            check_address(str(address[0]))
    failures: list[OSError] = []
    for family, kind, protocol, _, address in addresses:
        sock = None
        try:
            sock = socket.socket(family, kind, protocol)
            sock.setblocking(False)
            await loop.sock_connect(sock, address)
        except OSError as error:
            failures.append(error)
        except BaseException:
            if sock is not None:
                sock.close()
            raise
        else:
            return sock
        if sock is not None:
            sock.close()
    # A refused connection is more informative than an unreachable network.
    raise next((error for error in failures if isinstance(error, ConnectionRefusedError)), failures[-1])


class AsyncioBackend(httpcore.AsyncNetworkBackend):
    """Connects by TCP or to a Unix socket. `check_address` is as in open_socket()."""

    def __init__(self, check_address: CheckAddress | None = None) -> None:
        self._admit = check_address
        self.peers: set[str] = set()
        """The addresses that were connected to."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        async with _within(timeout, httpcore.ConnectTimeout, httpcore.ConnectError):
            sock = await open_socket(host, port, self._admit)
            reader, writer = await asyncio.open_connection(sock=sock, limit=_BUFFER)
            self.peers.add(str((writer.get_extra_info("peername") or ("",))[0]))
            return AsyncioStream(reader, writer)

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.AsyncNetworkStream:
        async with _within(timeout, httpcore.ConnectTimeout, httpcore.ConnectError):
            return AsyncioStream(*await asyncio.open_unix_connection(path, limit=_BUFFER))
