"""One service as the shell uses it: its statements, its interface and version, its resources."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from sqlshell.client.http.transport import Response, Transport
from sqlshell.client.statements.client import Client, Observer, Submission
from sqlshell.client.statements.protocol import CHECK_URL, read_refusal, unreadable
from sqlshell.context import SessionContext
from sqlshell.errors import ProtocolError, ServiceError, UsageError
from sqlshell.interface.models import Version

if TYPE_CHECKING:
    from sqlshell.client.resources import Download, Progress

LISTS_ENGINES = "engines"
"""The extension that LIST ENGINES is supported."""

DESCRIBES = "describe"
"""The extension that a SELECT with the rowLimit 0 is not run."""

COPIES_DATA = frozenset({"postgresql"})
"""The engines that read the data of COPY … FROM STDIN, an attachment of that name, by their own rules, and return the
lines that COPY … TO STDOUT writes; they describe every statement without running it."""

_VERSION = msgspec.json.Decoder(Version)
_ID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")


class Service(Struct):
    """The clients that share one transport. `statements` is that of the interface the service has; it is found out by
    choose() if there is also a `legacy` one. `note` tells a person that it is used.
    """

    transport: Transport
    statements: Client
    legacy: Client | None = None
    note: Callable[[str], None] = lambda text: None
    _asked: bool = False
    """Whether the service was asked for its version, and so for its extensions."""

    async def choose(self) -> None:
        """Find out which interface the service has, once, before the first statement. Raises ServiceError if it has
        neither."""
        legacy, name = self.legacy, self.transport.target.name
        if legacy is None:
            return
        if (await self.transport.get("/v2/version")).status == 404:
            if (await self.transport.get("/version")).status == 404:
                raise ServiceError(f"{name} has neither /v2/version nor /version", CHECK_URL)
            self.statements = legacy
            self.note(
                f"{name} has only the legacy interface: earlier statements cannot be fetched,"
                " and the context is not reported back"
            )
        self.legacy = None

    async def version(self) -> str:
        """The service's version. Raises ServiceError and the errors of the transport."""
        await self.choose()
        name = self.transport.target.name
        path = "/version" if self.statements.is_legacy else "/v2/version"

        def read(answer: Response) -> str:
            if answer.status != 200:
                raise read_refusal(answer.status, answer.headers, answer.body, name, path)
            try:
                version = _VERSION.decode(answer.body)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise ProtocolError(f"{name} responded to {path} with {unreadable(error)}") from None
            return f"{version.major}.{version.minor}.{version.patch}"

        return await self.transport.call("GET", path, read)

    async def extensions(self) -> frozenset[str]:
        """The extensions of the interface that the service announces. Raises the same errors as version()."""
        if not self.transport.extensions and not self._asked:
            # Any response announces them.
            await self.version()
            self._asked = True
        return self.transport.extensions

    async def engine(self) -> str:
        """The name of the engine that the service announces, "" for DuckDB and for other services. Raises as
        version()."""
        await self.extensions()
        return self.transport.engine

    async def describes(self) -> bool:
        """Whether a request for no rows gets the columns of any statement, which is not run. False as
        engine_copies_data()."""
        return await self.engine_copies_data() and DESCRIBES in self.transport.extensions

    async def engine_copies_data(self) -> bool:
        """Whether the engine itself reads the data of COPY … FROM STDIN, and writes those of COPY … TO STDOUT. False if
        the service does not answer: the next request says so.
        """
        with contextlib.suppress(ServiceError):
            return await self.engine() in COPIES_DATA
        return False

    async def download(
        self, kind: str, name: str, place: Path, context: SessionContext, *, force: bool, progress: Progress
    ) -> Download:
        """Download a resource of the context's organization to the file `place`.

        Raises the same errors as resources.download().
        """
        from sqlshell.client.resources import download, resource_path

        legacy = self.statements.is_legacy
        path = resource_path(kind, await self._organization(context, legacy=legacy), name, legacy=legacy)
        return await download(self.transport, path, place, force=force, progress=progress)

    async def _organization(self, context: SessionContext, *, legacy: bool) -> str:
        """The organization's ID, for a path; every response contains it."""
        if _ID.fullmatch(context.organization) or (legacy and context.organization):
            return context.organization
        echoed: list[str] = []
        if not legacy:
            observer = Observer(context=lambda echo: echoed.append((echo.organization_id if echo else None) or ""))
            async for result in self.statements.run(
                Submission("LIST ORGANIZATIONS", repeatable=True), context, observer
            ):
                await result.batches.aclose()
        organization = next((name for name in reversed(echoed) if name), context.organization)
        if not organization:
            raise UsageError("the service did not return an organization ID", "use --organization ID")
        return organization

    async def aclose(self) -> None:
        await self.statements.aclose()
        await self.transport.aclose()
