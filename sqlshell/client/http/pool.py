"""httpx over our own network backend: directly, by a unix socket, a dialled one, or a proxy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpcore

from sqlshell.client.http.lean_httpx import httpx
from sqlshell.client.http.network import AsyncioBackend, CheckAddress, Dial
from sqlshell.client.http.options import NetworkOptions
from sqlshell.client.http.proxies import proxy_for, secrets_of
from sqlshell.client.target import Target
from sqlshell.errors import UsageError

if TYPE_CHECKING:
    import ssl

KEPT_SECONDS = 2.0
"""How long an idle connection is kept: services close theirs later, so that a POST never meets a closing one."""

CONNECTIONS = 8


class Pool(httpx.AsyncHTTPTransport):
    """httpx's own mapping of requests and errors over a pool of httpcore's.

    `admit` is asked of each address before it is connected to, and raises for one that must not be; through a proxy,
    which looks names up itself, it is not asked.
    """

    def __init__(
        self,
        target: Target,
        network: NetworkOptions,
        *,
        dial: Dial | None = None,
        check_address: CheckAddress | None = None,
    ) -> None:
        context: ssl.SSLContext | None = network.tls() if target.scheme == "https" else None
        url = "" if dial is not None else proxy_for(target)
        # The address of a proxy is not the service's.
        backend = AsyncioBackend(dial=dial, uds=target.uds, check_address=None if url else check_address)
        self.peers = backend.peers
        self.secrets = secrets_of(url)
        """Parts of the proxy's URL that must not be shown."""
        proxy = None
        if url:
            # A proxy that is itself reached by TLS needs a context too.
            context = context or network.tls()
            proxy = _proxy(url)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=context,
            max_connections=CONNECTIONS,
            max_keepalive_connections=CONNECTIONS,
            keepalive_expiry=KEPT_SECONDS,
            network_backend=backend,
            proxy=proxy,
        )

    async def drop_stale(self) -> None:
        """Close idle connections on which more came than the answer: it would be read as that of the next request."""
        for connection in self._pool.connections:
            if connection.is_idle() and _read_ahead(connection):
                await connection.aclose()


def _read_ahead(connection: Any) -> bool:
    """Whether a connection has read more than its answer.

    httpcore has no public name for this. Raises AttributeError where a version of it keeps it elsewhere, so that a
    further answer in a connection can never pass unnoticed.
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
