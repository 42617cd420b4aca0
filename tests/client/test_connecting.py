"""Connections that cannot be opened or break: which error says so, and whether a retry can help."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpcore
import httpx
import pytest

from sqlshell.client.http.failures import connection_failed
from sqlshell.client.http.network import AsyncioBackend, AsyncioStream, open_socket
from sqlshell.client.http.options import NetworkOptions
from sqlshell.client.http.transport import Transport
from sqlshell.client.target import parse
from sqlshell.errors import ConnectionBroken, ConnectionFailed, NotHttp, ShellError, Unreachable, UsageError


@pytest.mark.parametrize(
    ("error", "local", "kind", "words", "hint"),
    [
        (ConnectionRefusedError(), False, ConnectionFailed, "connection refused by NAME", "the port is correct"),
        (ConnectionRefusedError(), True, ConnectionFailed, "connection refused by NAME", "service is running"),
        (socket.gaierror(-2, "unknown"), False, Unreachable, "host name of NAME", "spelling"),
        (FileNotFoundError(), True, Unreachable, "no such socket", "sqlshell serve --uds"),
        (FileNotFoundError(), False, ConnectionFailed, "no such socket", ""),
        (PermissionError(), True, Unreachable, "permission denied", "owner and mode"),
        (PermissionError(), False, ConnectionFailed, "permission denied", ""),
        (OSError(errno.ENETUNREACH, "x"), False, ConnectionFailed, "unreachable", ""),
    ],
)
def test_what_prevented_a_connection(
    error: OSError, local: bool, kind: type[ShellError], words: str, hint: str
) -> None:
    found = connection_failed("NAME", error, local=local)
    assert type(found) is kind
    assert words in found.message
    assert hint in found.hint
    assert bool(hint) == bool(found.hint)
    assert "port" not in found.hint or not local


def failing(raised: Exception, *, known: bool = False, network: NetworkOptions | None = None) -> ShellError:
    """The error of a request whose connection raises `raised`; `known` says that the service has responded before."""

    class Raises(httpx.AsyncBaseTransport):
        count = 0

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            self.count += 1
            raise raised

    async def work() -> ShellError:
        transport = Transport(parse("http://host:1"), "", network=network or NetworkOptions(retries=0))
        transport._has_responded = known
        transport._client = httpx.AsyncClient(base_url="http://host:1", transport=Raises())
        try:
            await transport.get("/v2/version")
        except ShellError as error:
            return error
        finally:
            await transport.aclose()
        raise AssertionError("no error")

    return asyncio.run(work())


@pytest.mark.parametrize(
    ("raised", "kind", "words"),
    [
        (httpx.ConnectTimeout("x"), ConnectionFailed, "timed out after 7 s"),
        (httpx.ReadTimeout("x"), ConnectionBroken, "no data from http://host:1 for 9 s"),
        (httpx.WriteTimeout("x"), ConnectionBroken, "sending the request to http://host:1 timed out"),
        (httpx.PoolTimeout("x"), ConnectionFailed, "no free connection"),
        (httpx.ProxyError("407"), ConnectionFailed, "the proxy for http://host:1 refused the connection: 407"),
        (httpx.InvalidURL("bad"), UsageError, "invalid URL http://host:1: bad"),
        (httpx.UnsupportedProtocol("bad"), UsageError, "invalid URL"),
        (UnicodeError("bad"), UsageError, "invalid URL"),
        (httpx.WriteError(""), ConnectionBroken, "lost: WriteError"),
        (ImportError("socksio"), UsageError, "requires a package that is not installed: socksio"),
        (httpx.RemoteProtocolError("x"), ConnectionBroken, "without a response; it may not be an HTTP server"),
    ],
)
def test_each_error_of_the_network_is_explained(raised: Exception, kind: type[ShellError], words: str) -> None:
    error = failing(raised, network=NetworkOptions(retries=0, connect_timeout=7, read_timeout=9))
    assert type(error) is kind
    assert words in error.message


def test_a_service_that_has_responded_before_is_an_http_server() -> None:
    assert "may not be" not in failing(httpx.RemoteProtocolError("x"), known=True).message


def test_a_response_that_is_not_http() -> None:
    invalid = httpx.RemoteProtocolError("illegal status line")
    invalid.__cause__ = httpcore.RemoteProtocolError("illegal status line")
    invalid.__cause__.__cause__ = ValueError("of h11")
    error = failing(invalid)
    assert type(error) is NotHttp
    assert "http:// or https://" in error.hint


def with_pair(work: Callable[[AsyncioStream, socket.socket], Awaitable[None]]) -> None:
    """Run `work` with a stream and its other end."""

    async def whole() -> None:
        ours, theirs = socket.socketpair()
        stream = AsyncioStream(*await asyncio.open_connection(sock=ours))
        try:
            await work(stream, theirs)
        finally:
            theirs.close()
            await stream.aclose()

    asyncio.run(whole())


def test_a_silent_service_is_a_timeout() -> None:
    async def work(stream: AsyncioStream, theirs: socket.socket) -> None:
        with pytest.raises(httpcore.ReadTimeout):
            await stream.read(1, timeout=0.001)
        with pytest.raises(httpcore.WriteTimeout):
            await stream.write(bytes(32 << 20), timeout=0.001)

    with_pair(work)


def test_a_connection_is_closed_when_that_is_said() -> None:
    async def work() -> None:
        ours, theirs = socket.socketpair()
        stream = AsyncioStream(*await asyncio.open_connection(sock=ours))
        await stream.write(b"")
        await stream.aclose()
        assert ours.fileno() == -1
        assert theirs.recv(1) == b""
        theirs.close()

    asyncio.run(work())


def test_a_service_that_does_not_speak_tls_is_left() -> None:
    async def work(stream: AsyncioStream, theirs: socket.socket) -> None:
        theirs.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        with pytest.raises(httpcore.ConnectError):
            await stream.start_tls(ssl.create_default_context(), "host", timeout=60)
        assert stream._writer.is_closing()

    with_pair(work)


def test_the_addresses_of_a_service_are_known() -> None:
    async def work() -> None:
        server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
        backend = AsyncioBackend()
        stream = await backend.connect_tcp("127.0.0.1", server.sockets[0].getsockname()[1])
        assert backend.peers == {"127.0.0.1"}
        await stream.aclose()
        server.close()

    asyncio.run(work())


def test_a_service_that_has_gone_is_an_error_of_the_network() -> None:
    async def work(stream: AsyncioStream, theirs: socket.socket) -> None:
        theirs.close()
        with pytest.raises(httpcore.WriteError):
            while True:
                await stream.write(b"x" * 1024)
                await asyncio.sleep(0)

    with_pair(work)


def test_a_connection_is_readable_once_something_arrived_that_nobody_asked_for() -> None:
    async def work(stream: AsyncioStream, theirs: socket.socket) -> None:
        assert stream.get_extra_info("is_readable") is False
        assert stream.get_extra_info("socket").fileno() > 0
        assert stream.get_extra_info("ssl_object") is None
        theirs.send(b"x")
        assert stream.get_extra_info("is_readable") is True
        assert await stream.read(9) == b"x"
        assert stream.get_extra_info("is_readable") is False
        theirs.close()
        assert stream.get_extra_info("is_readable") is True

    with_pair(work)


def test_a_unix_socket_is_reached_by_its_path_only(tmp_path: Path) -> None:
    path = str(tmp_path / "s")

    async def work() -> None:
        accepted = asyncio.Event()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted.set()
            writer.close()

        backend = AsyncioBackend()
        with pytest.raises(httpcore.ConnectError):
            await backend.connect_unix_socket(path)
        server = await asyncio.start_unix_server(accept, path)
        stream = await backend.connect_unix_socket(path)
        await accepted.wait()
        await stream.aclose()
        server.close()

    asyncio.run(work())
    assert parse(f"unix://{path}").base == "http://localhost"


def test_an_interrupted_connection_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[socket.socket] = []

    class Watched(socket.socket):
        def close(self) -> None:
            closed.append(self)
            super().close()

    async def work() -> None:
        started = asyncio.Event()

        async def never(*_: object) -> None:
            started.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(asyncio.get_running_loop(), "sock_connect", never)
        monkeypatch.setattr(socket, "socket", Watched)
        task = asyncio.create_task(open_socket("127.0.0.1", 9))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        monkeypatch.undo()

    asyncio.run(work())
    assert len(closed) == 1


@pytest.mark.parametrize(("host", "kind"), [("0177.0.0.1", UsageError), ("a..b", Unreachable), ("xn--", UsageError)])
def test_a_host_that_cannot_be_one_is_named(host: str, kind: type[ShellError]) -> None:
    async def work() -> None:
        transport = Transport(parse(f"http://{host}"), "", network=NetworkOptions(retries=0))
        await transport.get("/")

    with pytest.raises(kind, match=host):
        asyncio.run(work())


def test_the_next_address_is_tried_and_a_refusal_is_the_reason() -> None:
    """A name may have addresses that do not answer; all are checked, and the first that accepts is used."""

    async def work() -> None:
        server = socket.create_server(("127.0.0.1", 0))
        port = server.getsockname()[1]
        checked: list[str] = []
        loop = asyncio.get_running_loop()

        async def found(host: str, port: int, **_: object) -> list[object]:
            addresses = [("127.0.0.1", 1), ("127.0.0.1", port)]
            return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", address) for address in addresses]

        loop.getaddrinfo = found  # type: ignore[method-assign, assignment]
        sock = await open_socket("a.name.invalid", port, checked.append)
        assert sock.getpeername()[1] == port
        assert sock.gettimeout() == 0
        sock.close()
        server.close()
        assert checked == ["127.0.0.1", "127.0.0.1"]
        with pytest.raises(ConnectionRefusedError):
            await open_socket("a.name.invalid", 1)

    asyncio.run(work())
