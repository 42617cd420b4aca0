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
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from sqlshell.interface.models import PARQUET, Version
from sqlshell.service.failure import Failure
from sqlshell.service.http.auth import BY_PLANE, LEGACY, BearerAuth, Guard, caller_of
from sqlshell.service.http.bodies import NOT_ZONES, Bodies, check_timezone
from sqlshell.service.http.budget import Budget
from sqlshell.service.http.dataplane import STATEMENTS, STREAMS, DataPlane, stream
from sqlshell.service.http.responses import (
    JSON,
    NOT_RUN,
    UNAVAILABLE,
    BadRequest,
    Content,
    ContentResponse,
    conditional_response,
    json_response,
    message,
    prefers,
    without_bytes,
)
from sqlshell.service.http.results import Partitions, Responses, combined_response
from sqlshell.service.objects import source
from sqlshell.service.objects.names import name_pattern
from sqlshell.service.refusals import (
    InvalidRequest,
    InvalidToken,
    Refusal,
    RequestTooLarge,
    ShuttingDown,
    TooManyRequests,
)
from sqlshell.service.settings import Settings
from sqlshell.service.statements.service import StatementService
from sqlshell.service.statements.statement import wait_for_response
from sqlshell.service.storage.storage import Unavailable
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
    catalog = statements.organizations.catalog
    cluster = statements.cluster
    key = cluster.key("data plane") if cluster is not None else b""
    plane = DataPlane(catalog, settings.data_plane, settings.public_url, settings.stream_scheme, key)
    unread = Budget(settings.unread_size)
    partitions = Partitions(statements.organizations, unread)
    responses = Responses(partitions, plane, statements.canceller.undelivered_secrets)
    bodies = Bodies(statements, settings)
    api = Endpoints(statements, bodies, responses, plane, settings, unread, _forwarding_of(statements))
    routes = [
        Route("/v2/statements", api.submit, methods=["POST"]),
        Route(STATEMENTS + "{statement_id}", api.look_up, methods=["GET"]),
        Route("/v2/version", version, methods=["GET"]),
        Route("/v2/download/{kind}/{organization}/{name:path}", api.download, methods=["GET"]),
        Route("/openapi.json", api.document, methods=["GET"]),
        WebSocketRoute(STREAMS + "{statement_id}", api.stream),
    ]
    if settings.legacy:
        from sqlshell.service.http.legacy import Legacy

        legacy = Legacy(statements, settings, bodies, partitions)
        routes += [
            Route("/run-statement", legacy.run, methods=["POST"]),
            Route("/copy/{kind}/{organization}/{name:path}", api.download, methods=["GET"]),
            Route("/version", version, methods=["GET"]),
        ]
    app: ASGIApp = Starlette(
        routes=routes,
        exception_handlers={
            BadRequest: _bad_request,
            Refusal: _refused,
            HTTPException: _http_error,
            Unavailable: _unavailable,
            ClientDisconnect: _gone,
            Exception: _broken,
        },
    )
    if (engine := statements.organizations.server) is not None:
        app = EngineAnnouncement(app, engine.name)
    anonymous = settings.legacy and settings.legacy_anonymous
    app = BearerAuth(app, catalog, plane, token, anonymous=anonymous)
    return Guard(app, hosts) if hosts else app


def _forwarding_of(statements: StatementService) -> Forwarding | None:
    if statements.cluster is None:
        return None
    # httpx is large, and most services have one process.
    from sqlshell.service.http.forwarding import Forwarding

    return Forwarding(statements.cluster)


async def version(request: Request) -> Response:
    major, minor, patch = (int(part) for part in __version__.split(".")[:3])
    return json_response(msgspec.json.encode(Version(major, minor, patch)))


class Endpoints:
    """The handlers of requests."""

    def __init__(
        self,
        statements: StatementService,
        bodies: Bodies,
        responses: Responses,
        plane: DataPlane,
        settings: Settings,
        unread: Budget,
        forwarding: Forwarding | None,
    ) -> None:
        self._statements = statements
        self._forwarding = forwarding
        self._bodies = bodies
        self._responses = responses
        self._plane = plane
        self._settings = settings
        self._unread = unread
        self._document = b""

    async def submit(self, request: Request) -> Response:
        """POST /v2/statements."""
        asked, attachments = await self._bodies.submission(request)
        if self._forwarding is not None and not self._statements.draining:
            elsewhere = await self._forwarding.submission(request, asked, attachments)
            if elsewhere is not None:
                attachments.close()
                return elsewhere
        timezone = (asked.parameters.timezone if asked.parameters else None) or ""
        caller = caller_of(request)
        try:
            if asked.statements is not None:
                batch = await self._statements.submit_batch(asked, caller, attachments)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(BATCH_SECONDS):
                        await batch.finished.wait()
                return await self._responses.batch(batch, 0, timezone, request, caller)
            records = await self._statements.submit(asked, caller, attachments)
        except Failure as failure:
            raise BadRequest(failure.message, 500) from failure
        await wait_for_response(records[-1], GRACE_SECONDS)
        if len(records) > 1:
            return combined_response(records)
        return await self._responses.one(records[0], 0, timezone, request, caller)

    async def look_up(self, request: Request) -> Response:
        """GET /v2/statements/{statementID}, for the control plane and the data plane."""
        statement_id, partition, timezone = _asked(request)
        caller = caller_of(request)
        record = await self._statements.find(statement_id, caller)
        if record is None:
            raise BadRequest(f"statement {statement_id} does not exist", 404)
        by_plane = bool(request.scope.get(BY_PLANE))
        start = "" if by_plane else request.query_params.get("batch", "")
        may_have_secret = not record.spool.size and bool(_MAY_HAVE_SECRET.search(record.sql))
        was_forwarded = self._forwarding is not None and self._forwarding.was_forwarded(request)
        if self._forwarding is not None and not was_forwarded and (record.running or start or may_have_secret):
            elsewhere = await self._forwarding.look_up(request, record)
            if elsewhere is not None:
                return elsewhere
        batch = self._statements.find_batch(statement_id, caller) if start else None
        if batch is not None:
            if not (start.isascii() and start.isdecimal() and len(start) <= 10 and int(start) <= len(batch.records)):
                raise BadRequest(f"batch: expected the number of a statement in the batch, not {start[:100]!r}")
            return await self._responses.batch(batch, int(start), timezone, request, caller)
        if start:
            raise BadRequest(f"the service has no batch that begins with statement {statement_id}", 404)
        if record.running and request.method == "GET" and "partitionID" in request.query_params:
            await wait_for_response(record, min([LOOK_SECONDS, *_preferred(request)]))
        if "partitionID" not in request.query_params and prefers(request, PARQUET, JSON):
            whole = await self._responses.whole(record, request, by_plane=by_plane)
            if whole is not None:
                return whole
        return await self._responses.one(record, partition, timezone, request, caller, by_plane=by_plane)

    async def stream(self, socket: WebSocket) -> None:
        await stream(socket, self._statements, self._plane, self._unread)

    async def download(self, request: Request) -> Response:
        """The bytes of a resource, whole or a range."""
        kind, name = request.path_params["kind"], request.path_params["name"]
        organization_id, caller = request.path_params["organization"].lower(), caller_of(request)
        if kind not in source.KINDS:
            raise BadRequest(f"resourceType: expected one of {', '.join(source.KINDS)}, not {kind[:100]!r}")
        try:
            uuid.UUID(organization_id)
        except ValueError:
            raise BadRequest(f"organizationID: {organization_id[:100]!r} is not a valid UUID") from None
        catalog = self._statements.organizations.catalog
        resource = None
        if caller.may_see(organization_id):
            resource = await catalog.run_async(lambda: catalog.find(organization_id, kind, name))
        if resource is None:
            raise BadRequest(f"{kind} {name[:100]!r} does not exist in organization {organization_id}", 404)
        organization = await asyncio.to_thread(self._statements.organizations.get, organization_id)
        try:
            path = await asyncio.to_thread(source.path_of, organization, resource)
            content = Content(resource.detail["size"], file=await asyncio.to_thread(path.open, "rb"))
        except OSError as error:
            status = 503 if isinstance(error, TimeoutError) else 500
            raise BadRequest(f"cannot read the file: {error.strerror or error}", status) from error
        part = conditional_response(request, f'"{resource.detail["sha256"]}"', content.size)
        headers = {
            **part.headers,
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(resource.detail['file'], safe='')}",
            "X-Content-Type-Options": "nosniff",
        }
        if part.span is None:
            content.close()
            return without_bytes(part)
        return ContentResponse(content.limit(part.span), part.status, headers, "application/octet-stream")

    async def document(self, request: Request) -> Response:
        # Built once, because clients without a token may request it.
        self._document = self._document or await asyncio.to_thread(self._encoded)
        return json_response(self._document)

    def _encoded(self) -> bytes:
        return msgspec.json.encode(document(self._settings))


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


class EngineAnnouncement:
    """Adds `engine=NAME` to the extensions that a response announces: clients translate SQL only for DuckDB."""

    def __init__(self, app: ASGIApp, engine: str) -> None:
        self._app = app
        self._name = engine.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def announce(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [
                    (name, value + b", engine=" + self._name if name.lower() == b"sqlshell-extensions" else value)
                    for name, value in message["headers"]
                ]
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, announce)


async def _bad_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, BadRequest)
    return message(error.message, error.status, {"Retry-After": "2"} if error.status == 503 else {})


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    status = REFUSED[type(error)]
    return message(error.message, status, NOT_RUN | ({"Retry-After": "2"} if status == 503 else {}))


async def _unavailable(request: Request, error: Exception) -> Response:
    return message(UNAVAILABLE, 503, {"Retry-After": "2"})


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text = f"{error.detail}: {request.method} {request.url.path}"
    return message(text, error.status_code, dict(error.headers or {}))


async def _gone(request: Request, error: Exception) -> Response:
    return message("the client disconnected", 400)


async def _broken(request: Request, error: Exception) -> Response:
    return message("internal error", 500)
