"""HTTP to one origin: the token, the limits, and the one place where httpx's errors become ours."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

import httpcore

from sqlshell import __version__
from sqlshell.client.http import httpx
from sqlshell.client.network import AsyncioBackend, Dial
from sqlshell.client.target import Target
from sqlshell.errors import ConnectionFailed, ProtocolError, ServiceError, UsageError
from sqlshell.result import Body

KEPT_SECONDS = 2.0
"""How long an idle connection is kept: services close theirs later, so that a POST never meets a closing one."""

CONNECTIONS = 8
ANSWER_LIMIT = 1 << 30
"""Bytes of one answer: more than this is not a partition."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer with its whole body."""

    status: int
    headers: Mapping[str, str]
    body: Body


class Transport:
    """Requests to one target, with its token, on kept connections.

    `dial` gives a connected socket instead of TCP (the embedded service). Loopback targets and dialled ones never use a
    proxy; redirects are never followed, so that the token stays with its origin.
    """

    def __init__(
        self,
        target: Target,
        token: str,
        *,
        dial: Dial | None = None,
        connect_timeout: float = 10.0,
        read_timeout: float = 120.0,
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.target = target
        try:
            token.encode("ascii")
        except UnicodeEncodeError:
            raise UsageError("the token has characters that no token has", "look at where it comes from") from None
        if any(char in token for char in "\r\n\0"):
            raise UsageError("the token has a line break in it", "a token file holds one line")
        headers = {"User-Agent": f"sqlshell/{__version__}", "Accept": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
            if target.scheme == "http" and not target.loopback and dial is None:
                warn(f"the token travels unencrypted to {target.base}: use https")
        limits = httpx.Limits(
            max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS, keepalive_expiry=KEPT_SECONDS
        )
        timeout = httpx.Timeout(read_timeout, connect=connect_timeout)
        local = target.loopback or dial is not None
        if local:
            headers["Accept-Encoding"] = "identity"
        self._client: httpx.AsyncClient = httpx.AsyncClient(
            base_url=target.base,
            headers=headers,
            timeout=timeout,
            limits=limits,
            follow_redirects=False,
            trust_env=not local,
            transport=_near(target, dial) if local else None,
        )

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str | int] | None = None,
        content: bytes | None = None,
        content_type: str = "",
    ) -> Answer:
        """One request and its whole answer, whatever its status. Raises ConnectionFailed, ProtocolError."""
        headers = {"Content-Type": content_type} if content_type else None
        async with self._translated():
            request = self._client.build_request(method, path, params=params, content=content, headers=headers)
            response = await self._client.send(request, stream=True)
            try:
                body = bytearray()
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > ANSWER_LIMIT:
                        raise ProtocolError(f"{self.target.base} sent more than {ANSWER_LIMIT >> 20} MiB in one answer")
                return Answer(response.status_code, response.headers, body)
            finally:
                await response.aclose()

    async def aclose(self) -> None:
        await self._client.aclose()

    @contextlib.asynccontextmanager
    async def _translated(self) -> AsyncIterator[None]:
        base = self.target.base
        try:
            yield
        except httpx.ConnectTimeout as error:
            raise ConnectionFailed(
                f"{base} did not answer in time", "is the host right, and is a firewall in between?"
            ) from error
        except httpx.ReadTimeout as error:
            raise ConnectionFailed(f"{base} took the request and then fell silent") from error
        except httpx.ConnectError as error:
            raise _unreachable(base, error) from error
        except (httpx.RemoteProtocolError, httpx.DecodingError) as error:
            raise ConnectionFailed(
                f"{base} broke off or does not speak HTTP: {error}", "is it http where you wrote https, or the reverse?"
            ) from error
        except httpx.TimeoutException as error:
            raise ConnectionFailed(f"{base}: no connection became free in time") from error
        except httpx.ProxyError as error:
            raise ConnectionFailed(f"the proxy before {base} refused: {error}", "look at HTTPS_PROXY") from error
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise UsageError(f"{base} is not a URL that can be asked: {error}") from error
        except httpx.TransportError as error:
            raise ConnectionFailed(f"the connection to {base} broke: {error or type(error).__name__}") from error


def _near(target: Target, dial: Dial | None) -> httpx.AsyncBaseTransport:
    """A transport for this machine: plain asyncio streams, no proxy, an SSL context only where https asks for it."""

    class NearTransport(httpx.AsyncHTTPTransport):
        """httpx's own mapping of requests and errors over a pool with our network backend."""

        def __init__(self) -> None:
            self._pool = httpcore.AsyncConnectionPool(
                ssl_context=ssl.create_default_context() if target.scheme == "https" else None,
                max_connections=CONNECTIONS,
                max_keepalive_connections=CONNECTIONS,
                keepalive_expiry=KEPT_SECONDS,
                network_backend=AsyncioBackend(dial=dial, uds=target.uds),
            )

    return NearTransport()


def _unreachable(base: str, error: Exception) -> ServiceError:
    chain: list[str] = []
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return ConnectionFailed(
                f"the certificate of {base} is not trusted: {cause.verify_message}",
                "SSL_CERT_FILE names a file with further authorities",
            )
        if isinstance(cause, ssl.SSLError):
            return ConnectionFailed(f"{base} does not speak TLS", "write http:// if the service has no TLS")
        chain.append(str(cause))
        cause = cause.__cause__ or cause.__context__
    text = " ".join(chain).lower()
    if "refused" in text or "errno 111" in text or "errno 61" in text:
        return ConnectionFailed(f"nobody listens at {base}", "is the service running, and is the port right?")
    if ("name" in text and ("resol" in text or "known" in text or "nodename" in text)) or "getaddrinfo" in text:
        return ConnectionFailed(f"the host of {base} is not known", "is the name spelt right?")
    return ConnectionFailed(f"cannot reach {base}: {next((item for item in chain if item), type(error).__name__)}")
