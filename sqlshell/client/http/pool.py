"""Connections for httpx: a pool of httpcore on our network backend, direct, through a Unix socket or a proxy."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from typing import TYPE_CHECKING, Any, Final

import httpcore
import httpx

from sqlshell.client.http.network import AsyncioBackend, CheckAddress
from sqlshell.client.http.options import NetworkOptions, proxy_for, secrets_of
from sqlshell.client.target import Target
from sqlshell.errors import UsageError

if TYPE_CHECKING:
    import ssl

KEPT_SECONDS = 2.0
"""How long an idle connection is kept, in seconds: less than services keep it, so that no POST is sent on a closing
connection.
"""

CONNECTIONS = 8

_ERRORS: Final = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.ProxyError,
    httpcore.UnsupportedProtocol,
)


class Pool(httpx.AsyncBaseTransport):
    """Sends httpx's requests by a pool of httpcore, whose errors become httpx's of the same names.

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
        context: ssl.SSLContext | None = network.tls() if target.scheme == "https" else None
        url = proxy_for(target)
        # The address of a proxy is not that of the service.
        backend = AsyncioBackend(None if url else check_address)
        self.peers: set[str] = set() if url else backend.peers
        self.secrets = secrets_of(url)
        """Parts of the proxy's URL that must not be shown."""
        proxy = None
        if url:
            # A proxy that is reached over TLS needs a context too.
            context = context or network.tls()
            proxy = _proxy(url)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=context,
            max_connections=CONNECTIONS,
            max_keepalive_connections=CONNECTIONS,
            keepalive_expiry=KEPT_SECONDS,
            uds=target.uds or None,
            network_backend=backend,
            proxy=proxy,
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Raises httpx's errors, and those of `check_address`."""
        url = request.url
        asked = httpcore.Request(
            method=request.method,
            url=httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        try:
            response = await self._pool.handle_async_request(asked)
        except _ERRORS as error:
            raise _of_httpx(error) from error
        return httpx.Response(response.status, headers=response.headers, stream=_Body(response))

    async def aclose(self) -> None:
        await self._pool.aclose()

    async def drop_stale(self) -> None:
        """Close idle connections that received data after a response: it would be read as the next response."""
        for connection in self._pool.connections:
            if connection.is_idle() and _read_ahead(connection):
                await connection.aclose()


class _Body(httpx.AsyncByteStream):
    """The body of a response."""

    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        assert isinstance(self._response.stream, AsyncIterable)
        try:
            async for piece in self._response.stream:
                yield piece
        except _ERRORS as error:
            raise _of_httpx(error) from error

    async def aclose(self) -> None:
        await self._response.aclose()


def _of_httpx(error: Exception) -> Exception:
    kind: type[Exception] = getattr(httpx, type(error).__name__)
    return kind(str(error))


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
        proxy = httpx.Proxy(url)
        parts = proxy.url
        return httpcore.Proxy(
            httpcore.URL(scheme=parts.raw_scheme, host=parts.raw_host, port=parts.port, target=parts.raw_path),
            auth=proxy.raw_auth,
            headers=proxy.headers.raw,
        )
    except (ValueError, httpx.InvalidURL) as error:
        raise UsageError(f"cannot use the proxy {url.rpartition('@')[2]}: {error}") from None
