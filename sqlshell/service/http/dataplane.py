"""The data plane: serves results and streams of single statements, each with a separate token."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import secrets
import time
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, field
from starlette.requests import Request
from starlette.websockets import WebSocket, WebSocketDisconnect

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo, DataplaneRequest
from sqlshell.service.catalog import Caller, Catalog
from sqlshell.service.failure import Failure
from sqlshell.service.http.budget import Budget, Lease
from sqlshell.service.http.responses import connection_of
from sqlshell.service.organizations.organizations import Organization
from sqlshell.service.organizations.streams import Query
from sqlshell.service.settings import Settings
from sqlshell.service.statements.service import StatementService
from sqlshell.service.statements.statement import Statement

STATEMENTS, STREAMS = "/v2/statements/", "/v2/streams/"
"""Path prefixes of results and of streams; the statement's ID follows."""

BASE = "sqlshell.base"
"""Key in the scope of a request that another process of the service has passed on: the URL to which it was sent."""

TOKEN_SECONDS = 3600
AUTH_SECONDS = 10.0
DROPPED_SECONDS = 0.5
"""How often it is checked whether the token of a stream's reader was dropped."""

LARGE = 1 << 20
"""With `--data-plane large`, results of at least this many bytes of JSON go to the data plane."""

SMALL = 64 << 10
"""Up to this many characters of rows are sent to a reader without a reservation of memory."""

NORMAL, REFUSED, UNAUTHORIZED, INTERNAL, TRY_LATER = 1000, 1008, 4401, 1011, 1013


class _AuthFrame(Struct, tag_field="type", tag="auth"):
    """The frame that opens a stream."""

    token: str = field(name="accessToken")
    session: Any = field(name="sessionId", default="")


_decode_frame = msgspec.json.Decoder(_AuthFrame).decode


class DataPlane:
    """Makes and checks tokens of the data plane.

    A token is valid for one statement, for TOKEN_SECONDS, and only while the API token that received it may read the
    statement. `key` is b"" for a new one.
    """

    def __init__(self, catalog: Catalog, settings: Settings, key: bytes = b"") -> None:
        self._catalog = catalog
        self._settings = settings
        self._key = key or secrets.token_bytes(32)

    def alone_sends(self, record: Statement, caller: Caller) -> bool:
        """Return whether only the data plane sends the rows of a finished result, but not to this caller yet."""
        mode = self._settings.data_plane
        return not caller.by_plane and (mode == "always" or (mode == "large" and record.spool.layout.size >= LARGE))

    def result_set(self, record: Statement, request: Request, caller: Caller) -> DataplaneRequest:
        uri = f"{self._base(request)}{STATEMENTS}{record.statement_id}"
        token = self._token(record.statement_id, caller)
        return DataplaneRequest(token, uri, record.statement_id, None, "result-set")

    def streaming(self, record: Statement, request: Request, caller: Caller) -> DataplaneRequest:
        # https becomes wss, and http becomes ws.
        uri = f"{self._base(request)}{STREAMS}{record.statement_id}".replace("http", self._settings.stream_scheme, 1)
        name = record.statement_id
        return DataplaneRequest(self._token(name, caller), uri, name, name, "streaming")

    def caller(self, token: str, statement_id: str) -> Caller | None:
        """Return the caller to whom a token was issued, or None if it is not valid for this statement or too old."""
        until, _, rest = token.partition(".")
        token_id, _, _ = rest.rpartition(".")
        expected = self._sign(until, token_id, statement_id).encode("utf-8", "surrogatepass")
        if not hmac.compare_digest(token.encode("utf-8", "surrogatepass"), expected) or int(until) < time.time():
            return None
        return self._catalog.holder(token_id)

    def _base(self, request: Request) -> str:
        if self._settings.public_url:
            return self._settings.public_url.rstrip("/")
        parts = urlsplit(request.scope.get(BASE) or str(request.url))
        return f"{parts.scheme}://{parts.netloc}"

    def _token(self, statement_id: str, caller: Caller) -> str:
        return self._sign(str(int(time.time()) + TOKEN_SECONDS), caller.token_id, statement_id)

    def _sign(self, until: str, token_id: str, statement_id: str) -> str:
        signed = f"{until}:{token_id}:{statement_id}".encode("utf-8", "surrogatepass")
        return f"{until}.{token_id}.{hmac.new(self._key, signed, hashlib.sha256).hexdigest()}"


async def stream(socket: WebSocket, statements: StatementService, plane: DataPlane, unread: Budget) -> None:
    """Serve one reader of a SELECT on a stream, from its first frame to the end of the query."""
    query_id = socket.path_params["statement_id"].lower()
    await socket.accept()
    try:
        async with asyncio.timeout(AUTH_SECONDS):
            first = await socket.receive()
    except TimeoutError:
        await socket.close(REFUSED, "no auth frame was received in time")
        return
    if first["type"] == "websocket.disconnect":
        return
    try:
        frame = _decode_frame(first.get("text") or "")
    except (msgspec.DecodeError, RecursionError):
        text = 'the first frame must be {"type": "auth", "accessToken": "…", "sessionId": "…"}'
        await socket.close(UNAUTHORIZED, text)
        return
    caller = plane.caller(frame.token, query_id)
    if caller is None:
        await socket.close(UNAUTHORIZED, "the token is not valid for this statement")
        return
    session = frame.session if isinstance(frame.session, str) else ""
    session = session or socket.headers.get("ds-session-id", "")
    if session:
        # A session ID is unique only within its token.
        session = f"{caller.token_id} {session}"
    record = await statements.find(query_id, caller)
    organization = statements.organizations.find_open(record.organization) if record is not None else None
    query = organization.streams.find(query_id) if organization is not None else None
    if record is None or organization is None or query is None:
        state, message = (
            (record.sql_state, record.message)
            if record is not None
            else (sqlstate.NO_QUERY, "the query does not exist")
        )
        await _error(socket, message or "the query has finished", state)
        return
    connection = connection_of(socket.scope)
    if connection is not None and (refusal := connection.connections.note_token(connection, caller.token_id)):
        await socket.close(TRY_LATER, refusal)
        return
    sending = asyncio.ensure_future(_send(socket, statements, organization, query, session, unread))
    listening = asyncio.ensure_future(_gone(socket))
    tasks, dropped = (sending, listening), statements.organizations.catalog.dropped
    try:
        while not any(task.done() for task in tasks) and caller.token_id not in dropped:
            await asyncio.wait(tasks, timeout=DROPPED_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    if not dropped.isdisjoint((caller.token_id, record.owner)):
        with contextlib.suppress(WebSocketDisconnect, RuntimeError, OSError):
            await socket.close(UNAUTHORIZED, "the token was revoked")
    elif not sending.cancelled() and sending.exception() is None and sending.result():
        state, message = query.ended or (sqlstate.INTERNAL, "the query has finished")
        await _error(socket, message, state)


async def _send(
    socket: WebSocket,
    statements: StatementService,
    organization: Organization,
    query: Query,
    session: str,
    unread: Budget,
) -> bool:
    """Send a reader its rows; returns whether that went on to the end of the query."""
    lease = Lease(unread, organization.id)
    try:
        await socket.send_text(_metadata(query.feed.columns))
        async with organization.streams.reader(query, session) as (position, skip):
            while True:
                try:
                    news = await organization.streams.next(query, position)
                except Failure as failure:
                    statements.control.fail_stream_query(query.query_id, failure)
                    news = None
                if news is None:
                    break
                end, rows = news
                size = sum(map(len, rows))
                if size > SMALL and not lease.size:
                    # The rows are read again once memory is available.
                    del news, rows
                    lease = await unread.wait(organization.id, size)
                    continue
                for number, row in enumerate(rows[skip:], skip + 1):
                    # Waits for a slow reader; the rows that it has not read remain in the table.
                    await socket.send_text(f'{{"type":"data","headers":{{}},"data":{row}}}')
                    if session:
                        query.places[session] = (position, number)
                lease.close()
                position, skip = end, 0
                if session:
                    query.places[session] = (position, skip)
        return True
    except (WebSocketDisconnect, RuntimeError, OSError):
        return False
    finally:
        lease.close()


async def _gone(socket: WebSocket) -> None:
    """Wait until the reader disconnects; ignore what it sends."""
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):
        while (await socket.receive())["type"] != "websocket.disconnect":
            pass


async def _error(socket: WebSocket, message: str, code: str) -> None:
    with contextlib.suppress(WebSocketDisconnect, RuntimeError, OSError):
        await socket.send_text(json.dumps({"type": "error", "message": message, "sqlCode": code, "headers": {}}))
        await socket.close(NORMAL)


def _metadata(columns: list[ColumnInfo]) -> str:
    fields = []
    for column in columns:
        head, _, inside = (column.type or "").partition("(")
        numbers = [int(part) for part in inside.rstrip(")").split(",") if part.strip().isdecimal()]
        fields.append(
            {
                "name": column.name,
                "type": column.type,
                "nullable": column.nullable,
                "length": None,
                "precision": numbers[0] if numbers and head != "VARCHAR" else None,
                "scale": numbers[1] if len(numbers) > 1 else None,
            }
        )
    return json.dumps({"type": "metadata", "headers": {}, "columns": fields}, ensure_ascii=False)
