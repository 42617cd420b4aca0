"""Detects the interface of a service and requests its version."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence

import msgspec
from msgspec import Struct, field

from sqlshell.client.http.transport import Response, Transport
from sqlshell.client.statements.client import Client, Observer, StatementBatch, Submission
from sqlshell.client.statements.protocol import CHECK_URL, read_lookup, unreadable
from sqlshell.context import SessionContext
from sqlshell.errors import ProtocolError, ServiceError, ShellError
from sqlshell.interface.models import Version
from sqlshell.result import Result

_VERSION = msgspec.json.Decoder(Version)


async def version(transport: Transport, *, legacy: bool) -> str:
    """The service's version as `major.minor.patch`. Raises ServiceError and the errors of the transport."""
    path = "/version" if legacy else "/v2/version"

    def read(answer: Response) -> str:
        if answer.status != 200:
            step = read_lookup(answer.status, answer.headers, answer.body, transport.target.name, "")
            error = getattr(step, "error", None)
            if isinstance(error, ShellError):
                raise error
            raise ServiceError(f"{transport.target.name} responded to {path} with {answer.status}")
        try:
            version = _VERSION.decode(answer.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ProtocolError(f"{transport.target.name} responded to {path} with {unreadable(error)}") from None
        return f"{version.major}.{version.minor}.{version.patch}"

    return await transport.call("GET", path, read)


async def has_v2(transport: Transport) -> bool:
    """Whether the service has `/v2`; otherwise it has the legacy interface. Raises ServiceError if it has neither."""
    if (await transport.request("GET", "/v2/version")).status != 404:
        return True
    if (await transport.request("GET", "/version")).status != 404:
        return False
    raise ServiceError(f"{transport.target.name} has neither /v2/version nor /version", CHECK_URL)


class DetectingClient(Struct):
    """A client that detects the interface of the service at its first use."""

    transport: Transport
    v2: Client
    legacy: Client
    say: Callable[[str], None]
    _chosen: Client | None = field(default=None)

    async def chosen(self) -> Client:
        if self._chosen is None:
            self._chosen = self.v2 if await has_v2(self.transport) else self.legacy
            if self._chosen is self.legacy:
                self.say(
                    f"{self.transport.target.name} has only the legacy interface: earlier statements cannot be fetched,"
                    " and the context is not reported back"
                )
        return self._chosen

    async def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        results = (await self.chosen()).run(submission, context, observer)
        try:
            async for result in results:
                yield result
        finally:
            await results.aclose()

    async def fetch(
        self, statement_id: str, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        results = (await self.chosen()).fetch(statement_id, context, observer)
        try:
            async for result in results:
                yield result
        finally:
            await results.aclose()

    async def state(self, statement_id: str, context: SessionContext) -> tuple[str, str]:
        return await (await self.chosen()).state(statement_id, context)

    async def terminate(self, query_id: str, context: SessionContext) -> None:
        await (await self.chosen()).terminate(query_id, context)

    @property
    def supports_batches(self) -> bool | None:
        return None if self._chosen is None else self._chosen.supports_batches

    def begin_batch(self, submission: Sequence[Submission], *, stop: bool) -> StatementBatch | None:
        return None if self._chosen is None else self._chosen.begin_batch(submission, stop=stop)

    @property
    def wait_limit(self) -> float | None:
        return self.v2.wait_limit

    async def end_sessions(self, session_ids: Sequence[str]) -> None:
        if self._chosen is not None:
            await self._chosen.end_sessions(session_ids)

    @property
    def can_refetch(self) -> bool:
        return self._chosen is None or self._chosen.can_refetch

    @property
    def can_cancel(self) -> bool:
        return self._chosen is None or self._chosen.can_cancel

    async def is_legacy(self) -> bool:
        return await (await self.chosen()).is_legacy()

    async def aclose(self) -> None:
        await self.v2.aclose()
        await self.legacy.aclose()
