"""Connections over the network: a pool of httpcore on our network backend, direct, through a unix socket or a proxy."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import AsyncGenerator, AsyncIterable, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

import httpcore

from sqlshell.client.http.answer import Answer, Content, read_headers
from sqlshell.client.http.failures import connection_failed, connection_lost
from sqlshell.client.http.network import AsyncioBackend, CheckAddress
from sqlshell.client.http.options import NetworkOptions, proxy_for, secrets_of
from sqlshell.client.target import DEFAULT_PORTS, Target
from sqlshell.errors import ConnectionBroken, ConnectionFailed, NotHttp, ShellError, UsageError

if TYPE_CHECKING:
    import ssl

KEPT_SECONDS = 2.0
"""How long an idle connection is kept, in seconds: less than services keep it, so that no POST is sent on a closing
connection.
"""

CONNECTIONS = 8

_FAILURES: Final = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
    UnicodeError,
    ImportError,
)
"""The errors of sending a request and receiving its response. A host's name may be none (UnicodeError), a proxy may
require a package (ImportError).
"""

_IPV4: Final = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+")


class Pool:
    """Sends requests to one service; see answer.Connections.

    `check_address` is called with each address before a connection, and raises if it is not allowed. It is not called
    for a proxy, which resolves names itself.
    """

    def __init__(
        self,
        target: Target,
        network: NetworkOptions,
        *,
        check_address: CheckAddress | None = None,
    ) -> None:
        """Raises ValueError for a host that does not exist, and UsageError for files or a proxy that cannot be used."""
        context: ssl.SSLContext | None = network.tls() if target.scheme == "https" else None
        url = proxy_for(target)
        # The address of a proxy is not that of the service.
        backend = AsyncioBackend(uds=target.uds, check_address=None if url else check_address)
        self.peers: set[str] = set() if url else backend.peers
        self.secrets = secrets_of(url)
        """Parts of the proxy's URL that must not be shown."""
        proxy = None
        if url:
            # A proxy that is reached over TLS needs a context too.
            context = context or network.tls()
            proxy = _proxy(url)
        self._target = target
        self._network = network
        port = None if target.port == DEFAULT_PORTS[target.scheme] else target.port
        self._place: dict[str, Any] = {"scheme": target.scheme, "host": host_of(target.host), "port": port}
        self._known = False
        read = network.read_timeout or None
        self._timeout = {"connect": network.connect_timeout or None, "read": read, "write": read, "pool": None}
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=context,
            max_connections=CONNECTIONS,
            max_keepalive_connections=CONNECTIONS,
            keepalive_expiry=KEPT_SECONDS,
            network_backend=backend,
            proxy=proxy,
        )

    async def send(self, method: str, where: str, headers: Mapping[str, str], content: Content) -> Answer:
        """Raises ConnectionFailed, UsageError, and the errors of `check_address`."""
        try:
            request = httpcore.Request(
                method,
                httpcore.URL(**self._place, target=where),
                headers=[(name.encode(), value.encode()) for name, value in headers.items()],
                content=content,
                extensions={"timeout": self._timeout},
            )
            response = await self._pool.handle_async_request(request)
        except _FAILURES as error:
            raise self._failed(error, answering=False) from error
        self._known = True
        return Answer(response.status, read_headers(response.headers), self._pieces(response), response.aclose)

    async def aclose(self) -> None:
        await self._pool.aclose()

    async def drop_stale(self) -> None:
        """Close idle connections that received data after a response: it would be read as the next response."""
        for connection in self._pool.connections:
            if connection.is_idle() and _read_ahead(connection):
                await connection.aclose()

    async def _pieces(self, response: httpcore.Response) -> AsyncGenerator[bytes]:
        assert isinstance(response.stream, AsyncIterable)
        try:
            async for piece in response.stream:
                yield piece
        except _FAILURES as error:
            raise self._failed(error, answering=True) from error

    def _failed(self, error: Exception, *, answering: bool) -> ShellError:
        """The error for one of _FAILURES; `answering` says that the head of the response has been received."""
        base, network = self._target.name, self._network
        match error:
            case httpcore.ConnectTimeout():
                hint = "check the host and port, or use a longer --connect-timeout"
                return ConnectionFailed(f"connection to {base} timed out after {network.connect_timeout:g} s", hint)
            case httpcore.ReadTimeout():
                return ConnectionBroken(
                    f"no data from {base} for {network.read_timeout:g} s", "use a longer --read-timeout"
                )
            case httpcore.ConnectError():
                return connection_failed(base, error, local=bool(self._target.uds))
            case httpcore.RemoteProtocolError() if answering:
                return ConnectionBroken(f"{base} closed the connection in the middle of the response: {error}")
            # Errors of h11 mean invalid HTTP; a closed connection has no further cause.
            case httpcore.RemoteProtocolError(__cause__=None):
                doubt = "" if self._known else "; it may not be an HTTP server"
                return ConnectionBroken(f"{base} closed the connection without a response{doubt}")
            case httpcore.RemoteProtocolError():
                hint = "check whether the URL should start with http:// or https://"
                return NotHttp(f"{base} did not send an HTTP response: {error}", hint)
            case httpcore.PoolTimeout():
                hint = "wait for other statements to finish, or try again"
                return ConnectionFailed(f"no free connection to {base}", hint)
            case httpcore.TimeoutException():
                return ConnectionBroken(f"sending the request to {base} timed out")
            case httpcore.ProxyError():
                hint = "check HTTP_PROXY, HTTPS_PROXY and ALL_PROXY"
                return ConnectionFailed(f"the proxy for {base} refused the connection: {error}", hint)
            case httpcore.UnsupportedProtocol() | UnicodeError():
                return UsageError(f"invalid URL {base}: {error}")
            case ImportError():
                message = f"the proxy for {base} requires a package that is not installed: {error}"
                return UsageError(message, "run: pip install 'httpx[socks]'")
        return connection_lost(base, error)


def host_of(host: str) -> str:
    """The host of a URL as it is sent. Raises ValueError that says why it cannot be one."""
    if _IPV4.fullmatch(host) or ":" in host:
        kind = "IPv6" if ":" in host else "IPv4"
        try:
            ipaddress.ip_address(host)
        except ValueError:
            raise ValueError(f"Invalid {kind} address: {host!r}") from None
        return host
    if host.isascii() and not host.startswith("xn--"):
        return host
    import idna

    try:
        return idna.encode(idna.decode(host)).decode("ascii")
    except idna.IDNAError:
        raise ValueError(f"Invalid IDNA hostname: {host!r}") from None


def _read_ahead(connection: Any) -> bool:
    """Whether a connection has received more than its response.

    httpcore has no public name for this. Raises AttributeError if a version of httpcore stores it elsewhere, so that
    additional data never goes unnoticed.
    """
    while connection is not None and not isinstance(connection, httpcore.AsyncHTTP11Connection):
        connection = connection._connection
    return connection is not None and bool(connection._h11_state.trailing_data[0])


def _proxy(url: str) -> httpcore.Proxy:
    try:
        parts = urlsplit(url)
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        place = httpcore.URL(scheme=parts.scheme, host=host_of(parts.hostname or ""), port=parts.port, target="/")
        return httpcore.Proxy(place, auth=(user, password) if user or password else None)
    except ValueError as error:
        raise UsageError(f"cannot use the proxy {url.rpartition('@')[2]}: {error}") from None
