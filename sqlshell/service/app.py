"""The interface's endpoints as an ASGI application."""

from __future__ import annotations

import asyncio
import uuid

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from sqlshell import __version__
from sqlshell.interface import sqlstate
from sqlshell.interface.models import Metadata, PartitionInfo, StatementResponse, Version
from sqlshell.service.auth import BearerAuth
from sqlshell.service.body import BODY_LIMIT, BadRequest, check_timezone, read_request
from sqlshell.service.engines.engine import Failure
from sqlshell.service.results import in_zone
from sqlshell.service.statements import Record, Statements

GRACE_SECONDS = 0.1
"""How long a submission is waited for before it is answered as running."""


def make_app(statements: Statements, token: str) -> ASGIApp:
    """The application. Every request carries `token`."""
    api = _Endpoints(statements)
    app = Starlette(
        routes=[
            Route("/v2/statements", api.submit, methods=["POST"]),
            Route("/v2/statements/{statement_id}", api.look_up, methods=["GET"]),
            Route("/v2/version", version, methods=["GET"]),
        ],
        exception_handlers={
            BadRequest: _bad_request,
            HTTPException: _http_error,
            ClientDisconnect: _gone,
            Exception: _broken,
        },
    )
    return BearerAuth(app, token)


async def version(request: Request) -> Response:
    major, minor, patch = (int(part) for part in __version__.split(".")[:3])
    return _json(msgspec.json.encode(Version(major, minor, patch)))


class _Endpoints:
    def __init__(self, statements: Statements) -> None:
        self._statements = statements

    async def submit(self, request: Request) -> Response:
        """POST /v2/statements."""
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > BODY_LIMIT:
                raise BadRequest(f"the body is larger than {BODY_LIMIT >> 20} MiB", 413)
        asked = read_request(request.headers.get("content-type", ""), bytes(body))
        try:
            records = await self._statements.submit(asked)
        except Failure as failure:
            raise BadRequest(f"request.statement: {failure.message}") from None
        last = records[-1]
        try:
            async with asyncio.timeout(GRACE_SECONDS):
                await last.done.wait()
        except TimeoutError:
            pass
        timezone = (asked.parameters.timezone if asked.parameters else None) or "UTC"
        if len(records) == 1:
            return await _answer(records[0], 0, timezone)
        return _several(records)

    async def look_up(self, request: Request) -> Response:
        """GET /v2/statements/{statementID}."""
        given = request.path_params["statement_id"]
        try:
            statement_id = str(uuid.UUID(given))
        except ValueError:
            raise BadRequest(f"statementID: {given[:100]!r} is not a uuid") from None
        timezone = request.query_params.get("timezone") or "UTC"
        check_timezone(timezone, "timezone")
        text = request.query_params.get("partitionID") or "0"
        if not (text.isascii() and text.isdecimal()) or len(text) > 10:
            raise BadRequest(f"partitionID: {text[:100]!r} is not a partition's number")
        record = self._statements.find(statement_id)
        if record is None:
            raise BadRequest(f"there is no statement {statement_id}", 404)
        return await _answer(record, int(text), timezone)


async def _answer(record: Record, partition: int, timezone: str) -> Response:
    """A record as the interface answers it: status while it runs, failure, or a result set with one partition."""
    head = StatementResponse(
        sql_state=record.state,
        message=record.message or None,
        statement_id=record.statement_id,
        created_on=int(record.created),
        metadata=Metadata(context=record.context),
    )
    if record.running:
        head.message = "the statement is running"
        connection = record.connection
        head.progress = connection.progress() if connection is not None else None
        return _json(msgspec.json.encode(head), 202)
    outcome = record.outcome
    if outcome is None or sqlstate.failed(record.state):
        return _json(msgspec.json.encode(head))
    counts = record.spool.row_counts or [0]
    if partition >= len(counts):
        raise BadRequest(f"partitionID: {partition} is out of range, there are {len(counts)} partitions")
    head.metadata = Metadata(
        encoding="json",
        partition_info=[PartitionInfo(count) for count in counts],
        columns=outcome.columns or [],
        context=record.context,
    )
    if outcome.zoned and timezone != "UTC":
        rows = await asyncio.to_thread(in_zone, record.spool.partition(partition), outcome.zoned, timezone)
    else:
        rows = record.spool.partition(partition)
    return _json(msgspec.json.encode(head)[:-1] + b',"data":[' + rows + b"]}")


def _several(records: list[Record]) -> Response:
    """The answer to several statements: their ids, and how far they are as a whole."""
    failed = next((record for record in records if sqlstate.failed(record.state)), None)
    running = failed is None and any(record.running for record in records)
    first = records[0]
    head = StatementResponse(
        sql_state=sqlstate.RUNNING if running else failed.state if failed else sqlstate.DONE,
        message=failed.message if failed else None,
        statement_id=first.statement_id,
        statement_ids=[record.statement_id for record in records],
        created_on=int(first.created),
        metadata=Metadata(context=records[-1].context),
    )
    return _json(msgspec.json.encode(head), 202 if running else 200)


def _json(body: bytes, status: int = 200) -> Response:
    return Response(body, status, media_type="application/json")


def _message(text: str, status: int) -> Response:
    return _json(msgspec.json.encode({"message": text}), status)


async def _bad_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, BadRequest)
    return _message(error.message, error.status)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _message(f"{error.detail}: {request.method} {request.url.path}", error.status_code)


async def _gone(request: Request, error: Exception) -> Response:
    return _message("the client left", 400)


async def _broken(request: Request, error: Exception) -> Response:
    return _message("internal error", 500)
