"""HTTP requests to one origin, with its token, limits and retries. Translates httpx's errors."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import httpx
from msgspec import Struct

from sqlshell.client.http.decompress import BodyReader, size_limit
from sqlshell.client.http.failures import FAILURES, failure_of
from sqlshell.client.http.options import NetworkOptions
from sqlshell.client.http.retries import Retries
from sqlshell.client.http.trace import Request, Trace
from sqlshell.client.http.upload import Upload
from sqlshell.client.target import Target
from sqlshell.errors import (
    ConnectionBroken,
    ProtocolError,
    ShellError,
    UsageError,
)
from sqlshell.result import Body
from sqlshell.version import __version__

if TYPE_CHECKING:
    from sqlshell.client.http.in_process import OpenApp
    from sqlshell.client.http.network import CheckAddress
    from sqlshell.client.http.pool import Pool

ENGINE = "engine="
"""The extension that names an engine other than DuckDB."""

REPORTED_SECONDS = 1.0
"""Shorter waits before a retry are not reported, in seconds."""

SLOWEST = 16 << 10
"""Bytes of a body that give a request one second more than its time."""

Params = Mapping[str, str | int]
NewToken = Callable[[], Awaitable[str]]
Build = Callable[[Callable[[int], None]], tuple[httpx.Request, Request | None]]
"""Makes a request and its trace. It gets what takes the sizes of the pieces of its body."""
Parsed = TypeVar("Parsed")


def _ignore(text: str) -> None:
    return None


class Response(Struct, frozen=True):
    """One HTTP response with its whole body."""

    status: int
    headers: Mapping[str, str]
    body: Body


class Transport:
    """Requests to one target, with its token, on persistent connections.

    `open_app` returns the service if it runs in this process. Neither it nor a loopback target is reached by a proxy;
    redirects are never followed, so that the token stays with its origin. `renew` returns a token if there is none yet,
    and another one after a 401; `refused` returns only another one, or "" if there is none. `say` reports retries,
    `warn` unsafe settings. `from_service` says that the token came from a service, for this target.
    """

    def __init__(
        self,
        target: Target,
        token: str,
        *,
        open_app: OpenApp | None = None,
        network: NetworkOptions | None = None,
        check_address: CheckAddress | None = None,
        trace: Trace | None = None,
        renew: NewToken | None = None,
        refused: NewToken | None = None,
        say: Callable[[str], None] = _ignore,
        warn: Callable[[str], None] = _ignore,
        from_service: bool = False,
    ) -> None:
        self.target = target
        self.network = network or NetworkOptions()
        self.trace = trace or Trace(_ignore, lambda: 0)
        self.say = say
        self._token = _check_token(token)
        self._secrets = self.trace.secrets
        self._secrets.add(token, from_service=from_service)
        self._from_service = from_service
        self._renew = renew
        self._refused = refused or renew
        self._renewing = asyncio.Lock()
        self._renewals = 0
        self._has_responded = self.in_process = open_app is not None
        self.extensions: frozenset[str] = frozenset()
        """The extensions that the service announced (`Sqlshell-Extensions`)."""
        self.refused: set[str] = set()
        """Those whose use it refused nevertheless."""
        local = target.loopback or self.in_process
        if token and target.scheme == "http" and not local:
            warn(f"sending the token unencrypted to {target.name}; use https")
        self._headers = {
            "User-Agent": f"sqlshell/{__version__}",
            "Accept": "application/json",
            # Every lookup reports the progress, and this module makes the pauses.
            "Prefer": "wait=0",
            "Accept-Encoding": "identity" if local else "gzip",
        }
        self._secrets.add(target.token)
        self._pool: Pool | None = None
        if open_app is not None:
            from sqlshell.client.http.in_process import InProcess

            connections: httpx.AsyncBaseTransport = InProcess(open_app)
        else:
            # httpcore is large, and the service in this process does not need it.
            from sqlshell.client.http.pool import Pool

            connections = self._pool = Pool(target, self.network, check_address=check_address)
            for secret in self._pool.secrets:
                self._secrets.add(secret)
        timeout = httpx.Timeout(
            self.network.read_timeout or None, connect=self.network.connect_timeout or None, pool=None
        )
        try:
            self._client: httpx.AsyncClient = httpx.AsyncClient(
                base_url=target.base, timeout=timeout, follow_redirects=False, trust_env=False, transport=connections
            )
        except httpx.InvalidURL as error:
            kind: type[ShellError] = ProtocolError if from_service else UsageError
            raise kind(f"invalid URL {target.base}: {error}") from error

    def prefer(self, what: str) -> None:
        """Send another preference (header Prefer) with each request; services may ignore it."""
        self._headers["Prefer"] += f", {what}"

    @property
    def engine(self) -> str:
        """The name of the engine that the service has announced, "" for DuckDB and before its first response."""
        named = (item for item in self.extensions if item.startswith(ENGINE))
        return next(named, "").removeprefix(ENGINE)

    @property
    def peers(self) -> set[str]:
        """The IP addresses of the service that connections were made to."""
        return self._pool.peers if self._pool is not None else set()

    async def get(self, path: str) -> Response:
        """The whole response to a GET, whatever its status. Raises the errors of call()."""
        return await self.call("GET", path, lambda answer: answer)

    async def call(
        self,
        method: str,
        path: str,
        read: Callable[[Response], Parsed],
        *,
        params: Params | None = None,
        content: bytes | Upload | None = None,
        content_type: str = "",
        idempotent: bool | None = None,
        rows: int | None = None,
        preference: str = "",
    ) -> Parsed:
        """Send a request and return what `read` makes of its response, whatever its status. If `read` raises
        ProtocolError, an idempotent request is sent once more.

        `idempotent` says whether the service may receive it twice; by default only a GET is repeated. `rows` is the
        announced number of rows, `preference` another one than those of all requests. Raises ConnectionFailed,
        ProtocolError.
        """
        headers = {"Content-Type": content_type} if content_type else {}
        if preference:
            headers["Prefer"] = f"{self._headers['Prefer']}, {preference}"
        tries = Retries(
            self.network, idempotent=method == "GET" if idempotent is None else idempotent, known=self._has_responded
        )
        renewal = _Renewal(self)
        build = partial(self._request, method, path, params, content, headers)
        with self._secrets.redacting():
            while True:
                try:
                    await renewal.begin()
                    answer = await self._attempt(build, rows)
                    self._has_responded = True
                    if await renewal.repeats(answer.status):
                        continue
                    wait = tries.after_status(answer.status, answer.headers)
                    if wait is None:
                        return read(answer)
                    why = f"{self.target.name} responded with {answer.status}"
                except ShellError as error:
                    wait = tries.after_error(error)
                    if wait is None:
                        raise
                    why = error.message
                if wait >= REPORTED_SECONDS:
                    self.say(tries.named(self._secrets.text(why), wait))
                await asyncio.sleep(wait)

    @contextlib.asynccontextmanager
    async def stream(
        self, path: str, headers: Mapping[str, str]
    ) -> AsyncIterator[tuple[httpx.Response, Callable[[int], None]]]:
        """A GET whose body the caller streams, and a function that takes the size of each piece. It is repeated only
        with a new token after a 401."""
        renewal, repeated = _Renewal(self), True
        build = partial(self._request, "GET", path, None, None, headers)
        with self._secrets.redacting():
            while repeated:
                await renewal.begin()
                async with self._exchange(build) as (response, traced, moved):
                    if traced is not None:
                        traced.record_response(response.status_code, response.headers, b"", 0)
                    repeated = await renewal.repeats(response.status_code)
                    if not repeated:
                        yield response, moved

    def redacted(self, body: Body) -> Body:
        """A received text without the secrets that the service was sent. The embedded service is trusted with them."""
        return body if self.in_process else self._secrets.body(body, from_service=self._from_service)

    def secrets_in_rows(self) -> list[str]:
        """The texts that redacted() removes from a large response."""
        return [] if self.in_process else self._secrets.in_rows(from_service=self._from_service)

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _renew_token(self, renew: NewToken, used: str) -> bool:
        """Get a token other than `used`; False if there is none. Concurrent requests ask only once."""
        before = self._renewals
        async with self._renewing:
            if self._token == used and self._renewals == before:
                try:
                    token = _check_token(await renew())
                finally:
                    self._renewals += 1
                self._secrets.add(token)
                self._token = token or used
            return self._token != used

    def _request(
        self,
        method: str,
        path: str,
        params: Params | None,
        content: bytes | Upload | None,
        headers: Mapping[str, str],
        moved: Callable[[int], None],
    ) -> tuple[httpx.Request, Request | None]:
        """A request with our headers, and its trace. `moved` gets the sizes of the pieces of an upload."""
        given = dict(self._headers)
        if self._token:
            given["Authorization"] = f"Bearer {self._token}"
        given.update(headers)
        body: bytes | AsyncIterator[bytes] | None
        if isinstance(content, Upload):
            given["Content-Length"] = str(content.size)
            body, shown = content.pieces(moved), content.head
        else:
            body, shown = content, content or b""
        request = self._client.build_request(method, path, params=params, content=body, headers=given)
        if not self.trace.on:
            return request, None
        return request, self.trace.begin(request.method, str(request.url), request.headers, shown)

    @contextlib.asynccontextmanager
    async def _exchange(
        self, build: Build
    ) -> AsyncIterator[tuple[httpx.Response, Request | None, Callable[[int], None]]]:
        """Send a request; its response, whose body is to be read, its trace, and what takes the sizes of pieces."""
        traced, answering = None, False
        try:
            try:
                async with self._bounded() as moved:
                    request, traced = build(moved)
                    response = await self._client.send(request, stream=True)
                    answering = True
                    try:
                        yield response, traced, moved
                    finally:
                        await response.aclose()
            except FAILURES as error:
                raise self._explained(error, answering=answering) from error
        except ShellError as error:
            if traced is not None:
                traced.record_failure(error.message)
            raise

    async def _attempt(self, build: Build, rows: int | None) -> Response:
        async with self._exchange(build) as (response, traced, moved):
            answer, received = await self._receive(response, rows, moved)
        if self._pool is not None:
            await self._pool.drop_stale()
        if traced is not None:
            traced.record_response(answer.status, answer.headers, answer.body, received)
        if announced := answer.headers.get("sqlshell-extensions"):
            self.extensions = frozenset(item.strip() for item in announced.split(","))
        return answer

    async def _receive(
        self, response: httpx.Response, rows: int | None, moved: Callable[[int], None]
    ) -> tuple[Response, int]:
        status, headers = response.status_code, response.headers
        # The service in this process shares the memory of this process.
        limit = self.network.answer_limit
        limit = (limit or sys.maxsize) if self.in_process else size_limit(limit, rows)
        failed = status if status >= 300 and not self.in_process else 0
        body = BodyReader(headers.get("content-encoding", ""), limit, self.target.name, failed=failed)
        received = 0
        async for piece in response.aiter_raw():
            received += len(piece)
            moved(len(piece))
            body.take(piece)
        whole: Body = body.end()
        if not self.in_process:
            whole = self.redacted(whole)
            values = "\n".join(headers.values())
            if self._secrets.text(values) != values:
                headers = httpx.Headers([(name, self._secrets.text(value)) for name, value in headers.multi_items()])
        return Response(status, headers, whole), received

    @contextlib.asynccontextmanager
    async def _bounded(self) -> AsyncIterator[Callable[[int], None]]:
        """End a request that takes too long, such as one with endless interim responses, or a byte a second. Gives a
        function that takes the sizes of pieces of bodies, which add time. Raises ConnectionBroken."""
        network = self.network
        limit = network.timeout or None if network.read_timeout and not self.in_process else None
        try:
            async with asyncio.timeout(limit) as clock:

                def moved(size: int) -> None:
                    if (end := clock.when()) is not None and not clock.expired():
                        clock.reschedule(end + size / SLOWEST)

                yield moved
        except TimeoutError as error:
            raise ConnectionBroken(
                f"no complete response from {self.target.name} within {limit:g} s", "use a longer --retry-timeout"
            ) from error

    def _explained(self, error: Exception, *, answering: bool) -> ShellError:
        return failure_of(
            error,
            self.target.name,
            self.network,
            answering=answering,
            known=self._has_responded,
            local=bool(self.target.uds),
        )


class _Renewal:
    """The new token that one request may get: the first one, or another one after a 401."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._renewed = False
        self._used = ""

    async def begin(self) -> None:
        """Before the request is sent. Raises UsageError if none may be sent."""
        transport = self._transport
        if transport.network.offline:
            raise UsageError("--offline sends nothing", "omit it to run this command")
        if transport._renew is not None and not transport._token:
            self._renewed = True
            await transport._renew_token(transport._renew, "")
        self._used = transport._token

    async def repeats(self, status: int) -> bool:
        """Whether the request is to be sent again with another token, after a response with `status`."""
        transport = self._transport
        if status != 401 or transport._refused is None or self._renewed:
            return False
        self._renewed = True
        return await transport._renew_token(transport._refused, self._used)


def _check_token(token: str) -> str:
    try:
        token.encode("ascii")
    except UnicodeEncodeError:
        raise UsageError(
            "the token contains characters that HTTP headers do not allow", "check the source of the token"
        ) from None
    if any(char in token for char in "\r\n\0"):
        raise UsageError("the token contains a line break", "a token must be a single line")
    return token
