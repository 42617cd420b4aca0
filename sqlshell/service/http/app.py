"""The interface's endpoints as an ASGI application."""

from __future__ import annotations

import asyncio
import contextlib
import re
import uuid
import zoneinfo
from collections.abc import Collection, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp
from starlette.websockets import WebSocket

from sqlshell.errors import reason
from sqlshell.interface.models import PARQUET, Version
from sqlshell.service.failure import (
    Failure,
    InvalidRequest,
    InvalidToken,
    Refusal,
    RequestTooLarge,
    ShuttingDown,
    TooManyRequests,
)
from sqlshell.service.http.auth import LEGACY, Gate, caller_of
from sqlshell.service.http.bodies import NOT_ZONES, Bodies, check_timezone
from sqlshell.service.http.budget import Budget
from sqlshell.service.http.dataplane import STATEMENTS, STREAMS, DataPlane, stream
from sqlshell.service.http.responses import (
    JSON,
    NOT_RUN,
    UNAVAILABLE,
    BadRequest,
    Content,
    file_response,
    json_response,
    message,
    prefers,
)
from sqlshell.service.http.results import Responses, combined_response
from sqlshell.service.objects.attachments import SOURCES, path_of
from sqlshell.service.objects.names import name_pattern
from sqlshell.service.settings import Settings
from sqlshell.service.statements.service import StatementService
from sqlshell.service.statements.statement import wait_for_response
from sqlshell.service.storage.storage import Unavailable
from sqlshell.text import any_of
from sqlshell.version import __version__

if TYPE_CHECKING:
    from sqlshell.service.http.forwarding import Forwarding

GRACE_SECONDS = 0.1
"""How long a submission waits for its statement before the response says that it is running."""

BATCH_SECONDS = 0.2
"""The same for a batch: most have finished by then, and each lookup takes time from the statements."""

LOOK_SECONDS = 4.0
"""How long a lookup with a partitionID waits for its statement to finish. Some clients poll without a pause, some
accept only one response that says that the statement is running, and some give up after five seconds without a
response.
"""

PREFERRED = re.compile(r"\s*wait\s*=\s*([0-9]{1,9})\s*(?:;.*)?", re.I)
"""The header Prefer (RFC 7240): the maximum number of seconds that a client wants to wait."""


_MAY_HAVE_SECRET = re.compile(r"\bapi_tokens?\b", re.I)
"""In a statement whose secret may not be delivered yet: the process that ran it has it."""

REFUSED: Mapping[type[Refusal], int] = {
    InvalidRequest: 400,
    InvalidToken: 401,
    RequestTooLarge: 413,
    TooManyRequests: 429,
    ShuttingDown: 503,
}
"""The HTTP status for each reason of a refusal."""


def make_app(statements: StatementService, token: str, settings: Settings, hosts: Collection[str] = ()) -> ASGIApp:
    """Build the application. `token` is the operator's. If `hosts` are given, requests for other hosts are refused."""
    endpoints = Endpoints(statements, settings)
    errors = (BadRequest, Refusal, Failure, HTTPException, Unavailable, ClientDisconnect, Exception)
    app = Starlette(routes=endpoints.routes(), exception_handlers=dict.fromkeys(errors, _error))
    engine = statements.organizations.server
    return Gate(
        app,
        statements.organizations.catalog,
        endpoints.plane,
        token,
        hosts,
        anonymous=settings.legacy and settings.legacy_anonymous,
        engine=engine.name if engine is not None else "",
    )


class Endpoints:
    """The handlers of requests."""

    def __init__(self, statements: StatementService, settings: Settings) -> None:
        self._statements = statements
        self._settings = settings
        self._bodies = Bodies(statements, settings)
        self._unread = Budget(settings.unread_size)
        self._forwarding: Forwarding | None = None
        key = b""
        if statements.cluster is not None:
            # httpx is large, and most services have one process.
            from sqlshell.service.http.forwarding import Forwarding

            self._forwarding = Forwarding(statements.cluster)
            key = statements.cluster.key("data plane")
        self.plane = DataPlane(statements.organizations.catalog, settings, key)
        self._responses = Responses(statements.organizations, self.plane, self._unread)
        self._document = b""

    def routes(self) -> list[BaseRoute]:
        routes: list[BaseRoute] = [
            Route("/v2/statements", self.submit, methods=["POST"]),
            Route(STATEMENTS + "{statement_id}", self.look_up, methods=["GET"]),
            Route("/v2/version", self.version, methods=["GET"]),
            Route("/v2/download/{kind}/{organization}/{name:path}", self.download, methods=["GET"]),
            Route("/openapi.json", self.document, methods=["GET"]),
            WebSocketRoute(STREAMS + "{statement_id}", self.stream),
        ]
        if self._settings.legacy:
            from sqlshell.service.http.legacy import Legacy

            legacy = Legacy(self._statements, self._settings, self._bodies, self._responses)
            routes += [
                Route("/run-statement", legacy.run, methods=["POST"]),
                Route("/copy/{kind}/{organization}/{name:path}", self.download, methods=["GET"]),
                Route("/version", self.version, methods=["GET"]),
            ]
        return routes

    async def version(self, request: Request) -> Response:
        major, minor, patch = (int(part) for part in __version__.split(".")[:3])
        return json_response(msgspec.json.encode(Version(major, minor, patch)))

    async def submit(self, request: Request) -> Response:
        """Handle POST /v2/statements."""
        asked, attachments = await self._bodies.submission(request)
        if self._forwarding is not None and not self._statements.draining:
            elsewhere = await self._forwarding.submission(request, asked, attachments)
            if elsewhere is not None:
                attachments.close()
                return elsewhere
        timezone = (asked.parameters.timezone if asked.parameters else None) or ""
        caller = caller_of(request)
        if asked.statements is not None:
            batch = await self._statements.submit_batch(asked, caller, attachments)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(BATCH_SECONDS):
                    await batch.finished.wait()
            return await self._responses.batch(batch, 0, timezone, request)
        records = await self._statements.submit(asked, caller, attachments)
        await wait_for_response(records[-1], GRACE_SECONDS)
        if len(records) > 1:
            return combined_response(records)
        return await self._responses.one(records[0], 0, timezone, request)

    async def look_up(self, request: Request) -> Response:
        """Handle GET /v2/statements/{statementID}, for the control plane and the data plane."""
        statement_id, partition, timezone = _asked(request)
        caller = caller_of(request)
        record = await self._statements.find(statement_id, caller)
        if record is None:
            raise BadRequest(f"statement {statement_id} does not exist", 404)
        start = "" if caller.by_plane else request.query_params.get("batch", "")
        may_have_secret = not record.spool.size and bool(_MAY_HAVE_SECRET.search(record.sql))
        was_forwarded = self._forwarding is not None and self._forwarding.was_forwarded(request)
        if self._forwarding is not None and not was_forwarded and (record.running or start or may_have_secret):
            elsewhere = await self._forwarding.look_up(request, record)
            if elsewhere is not None:
                return elsewhere
        batch = self._statements.find_batch(statement_id, caller) if start else None
        if batch is not None:
            if not (start.isascii() and start.isdecimal() and len(start) <= 10 and int(start) <= len(batch.statements)):
                raise BadRequest(f"batch: expected the number of a statement in the batch, not {start[:100]!r}")
            return await self._responses.batch(batch, int(start), timezone, request)
        if start:
            raise BadRequest(f"the service has no batch that begins with statement {statement_id}", 404)
        if record.running and request.method == "GET" and "partitionID" in request.query_params:
            await wait_for_response(record, min([LOOK_SECONDS, *_preferred(request)]))
        if "partitionID" not in request.query_params and prefers(request, PARQUET, JSON):
            whole = await self._responses.whole(record, request)
            if whole is not None:
                return whole
        return await self._responses.one(record, partition, timezone, request)

    async def stream(self, socket: WebSocket) -> None:
        await stream(socket, self._statements, self.plane, self._unread)

    async def download(self, request: Request) -> Response:
        """Return the bytes of a resource, whole or a range."""
        kind, name = request.path_params["kind"], request.path_params["name"]
        organization_id, caller = request.path_params["organization"].lower(), caller_of(request)
        if kind not in SOURCES:
            raise BadRequest(f"resourceType: expected {any_of(list(SOURCES))}, not {kind[:100]!r}")
        try:
            uuid.UUID(organization_id)
        except ValueError:
            raise BadRequest(f"organizationID: {organization_id[:100]!r} is not a valid UUID") from None
        catalog = self._statements.organizations.catalog
        resource = None
        if caller.may_see(organization_id):
            resource = await catalog.run_async(lambda: catalog.find(organization_id, kind, name))
        if resource is None:
            raise BadRequest(f'{kind} "{name[:100]}" does not exist in organization {organization_id}', 404)
        organization = await asyncio.to_thread(self._statements.organizations.get, organization_id)
        try:
            path = await asyncio.to_thread(path_of, organization, resource)
            content = Content(resource.detail["size"], file=await asyncio.to_thread(path.open, "rb"))
        except OSError as error:
            status = 503 if isinstance(error, TimeoutError) else 500
            raise BadRequest(f"cannot read the file: {reason(error)}", status) from error
        headers = {
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(resource.detail['file'], safe='')}",
            "X-Content-Type-Options": "nosniff",
        }
        tag = f'"{resource.detail["sha256"]}"'
        return await file_response(request, content, tag, "application/octet-stream", headers)

    async def document(self, request: Request) -> Response:
        # Built once, because clients without a token may request it.
        self._document = self._document or msgspec.json.encode(await asyncio.to_thread(document, self._settings))
        return json_response(self._document)


def document(settings: Settings) -> dict[str, Any]:
    """Return the OpenAPI document of a service with these options: openapi.json with the service's own limits."""
    found: dict[str, Any] = msgspec.json.decode(files(__package__).joinpath("openapi.json").read_bytes())
    found["info"]["version"] = __version__
    if not settings.legacy:
        found["paths"] = {path: item for path, item in found["paths"].items() if not path.startswith(LEGACY)}
    schemas = found["components"]["schemas"]
    schemas["TimeZone"]["enum"] = sorted(zoneinfo.available_timezones() - NOT_ZONES)
    schemas["Name"]["maxLength"] = schemas["SessionID"]["maxLength"] = settings.name_length
    schemas["SessionID"]["pattern"] = name_pattern()
    schemas["StatementRequest"]["properties"]["statement"]["maxLength"] = settings.statement_limit
    return found


def _asked(request: Request) -> tuple[str, int, str]:
    """The statement ID, partition number and time zone of a lookup."""
    given = request.path_params["statement_id"]
    try:
        if not given.isascii():
            # uuid accepts the digits of every script, but a header, such as Content-Location, does not.
            raise ValueError
        statement_id = str(uuid.UUID(given))
    except ValueError:
        raise BadRequest(f"statementID: {given[:100]!r} is not a valid UUID") from None
    timezone = request.query_params.get("timezone") or ""
    check_timezone(timezone or None, "timezone")
    text = request.query_params.get("partitionID") or "0"
    if not (text.isascii() and text.isdecimal()) or len(text) > 10:
        raise BadRequest(f"partitionID: {text[:100]!r} is not a valid partition number")
    return statement_id, int(text), timezone


def _preferred(request: Request) -> list[int]:
    """The seconds that a client wants to wait: one value for each wish in the headers Prefer."""
    wishes = (PREFERRED.fullmatch(wish) for line in request.headers.getlist("prefer") for wish in line.split(","))
    return [int(wish[1]) for wish in wishes if wish]


async def _error(request: Request, error: Exception) -> Response:
    """The response to a request that raised an exception."""
    again = {"Retry-After": "2"}
    match error:
        case BadRequest():
            return message(error.message, error.status, again if error.status == 503 else {})
        case Refusal():
            status = REFUSED[type(error)]
            return message(error.message, status, NOT_RUN | (again if status == 503 else {}))
        case Failure():
            return message(error.message, 500)
        case HTTPException():
            text = f"{error.detail}: {request.method} {request.url.path}"
            return message(text, error.status_code, dict(error.headers or {}))
        case Unavailable():
            return message(UNAVAILABLE, 503, again)
        case ClientDisconnect():
            return message("the client disconnected", 400)
    return message("internal error", 500)
