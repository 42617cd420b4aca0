"""One service as the shell uses it: statements, version, resources."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from sqlshell.client.http.transport import Transport
from sqlshell.client.statements.client import Client, Observer, Submission
from sqlshell.context import SessionContext
from sqlshell.errors import ServiceError, UsageError

if TYPE_CHECKING:
    from sqlshell.client.resources import Download, Progress

LISTS_ENGINES = "engines"
"""The extension that LIST ENGINES is supported."""

DESCRIBES = "describe"
"""The extension that a SELECT with the rowLimit 0 is not run."""

COPIES_DATA = frozenset({"postgresql"})
"""The engines that read the data of COPY … FROM STDIN, an attachment of that name, by their own rules, and return the
lines that COPY … TO STDOUT writes; they describe every statement without running it."""

_ID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")


class Service(Struct):
    """The clients that share one transport."""

    transport: Transport
    statements: Client
    _asked: bool = False
    """Whether the service was asked for its version, and so for its extensions."""

    async def version(self) -> str:
        """The service's version. Raises ServiceError and the errors of the transport."""
        from sqlshell.client.api import version

        return await version(self.transport, legacy=await self.statements.is_legacy())

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
        with contextlib.suppress(ServiceError):
            return DESCRIBES in await self.extensions() and await self.engine() in COPIES_DATA
        return False

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

        legacy = await self.statements.is_legacy()
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
