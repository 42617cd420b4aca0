"""httpx over our own network backend: directly, by a unix socket, a dialled one, or a proxy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import httpcore

from sqlshell.client.http.lean_httpx import httpx
from sqlshell.client.http.network import AsyncioBackend, Dial
from sqlshell.client.http.options import Network
from sqlshell.client.http.proxies import proxy_for, secrets_of
from sqlshell.client.target import Target
from sqlshell.errors import UsageError

if TYPE_CHECKING:
    import ssl

KEPT_SECONDS = 2.0
"""How long an idle connection is kept: services close theirs later, so that a POST never meets a closing one."""

CONNECTIONS = 8

Admit = Callable[[str], None]


class Pool(httpx.AsyncHTTPTransport):
    """httpx's own mapping of requests and errors over a pool of httpcore's.

    `admit` is asked of each address before it is connected to, and raises for one that must not be; through a proxy,
    which looks names up itself, it is not asked.
    """

    def __init__(
        self, target: Target, network: Network, *, dial: Dial | None = None, admit: Admit | None = None
    ) -> None:
        backend = AsyncioBackend(dial=dial, uds=target.uds, admit=admit)
        context: ssl.SSLContext | None = network.tls() if target.scheme == "https" else None
        proxy = "" if dial is not None else proxy_for(target)
        self.peers = backend.peers
        self.secrets = secrets_of(proxy)
        """What nobody may see of the proxy's URL."""
        if proxy:
            # A proxy that is itself reached by TLS needs a context too.
            context = context or network.tls()
            try:
                given = httpx.Proxy(proxy)
                self._pool = httpcore.AsyncConnectionPool(
                    ssl_context=context,
                    max_connections=CONNECTIONS,
                    max_keepalive_connections=CONNECTIONS,
                    keepalive_expiry=KEPT_SECONDS,
                    network_backend=backend,
                    proxy=httpcore.Proxy(
                        httpcore.URL(
                            scheme=given.url.raw_scheme,
                            host=given.url.raw_host,
                            port=given.url.port,
                            target=given.url.raw_path,
                        ),
                        auth=given.raw_auth,
                        headers=given.headers.raw,
                    ),
                )
            except (ValueError, httpx.InvalidURL) as error:
                raise UsageError(f"the proxy {proxy.rpartition('@')[2]} cannot be used: {error}") from None
        else:
            self._pool = httpcore.AsyncConnectionPool(
                ssl_context=context,
                max_connections=CONNECTIONS,
                max_keepalive_connections=CONNECTIONS,
                keepalive_expiry=KEPT_SECONDS,
                network_backend=backend,
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
