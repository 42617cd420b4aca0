"""The data plane: results and streams of single statements, each with a token that is good for it alone."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.websockets import WebSocket, WebSocketDisconnect

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo, DataplaneRequest
from sqlshell.service.engines.engine import Failure
from sqlshell.service.objects.catalog import Caller, Catalog
from sqlshell.service.organizations.organizations import Organization
from sqlshell.service.organizations.streams import Query
from sqlshell.service.statements.ledger import Record
from sqlshell.service.statements.statements import Statements
from sqlshell.service.wire.budget import Budget
from sqlshell.service.wire.connections import refusal

STATEMENTS, STREAMS = "/v2/statements/", "/v2/streams/"
"""Where results and streams are, in front of their statement's id."""

TOKEN_SECONDS = 3600
AUTH_SECONDS = 10.0
LARGE = 1 << 20
"""Bytes from which a result goes by the data plane where that is `large`."""

SMALL = 64 << 10
"""Characters of rows that are sent to a reader without asking whether there is room for them."""

NORMAL, REFUSED, UNAUTHORIZED, INTERNAL, TRY_LATER = 1000, 1008, 4401, 1011, 1013


class DataPlane:
    """Makes and checks the tokens. `mode` is off, large or always; `public_url` is where a proxy has the service, and
    `stream_scheme` is ws or http: how the uris of streams begin, for some clients take only the one, some the other.

    A token is good for one statement, for so long, and as long as the API token to which it was given may read that.
    """

    def __init__(self, catalog: Catalog, mode: str, public_url: str, stream_scheme: str = "ws") -> None:
        self._catalog = catalog
        self._mode = mode
        self._stream_scheme = stream_scheme
        self._public_url = public_url.rstrip("/")
        self._key = secrets.token_bytes(32)

    def wants(self, record: Record) -> bool:
        """Whether a finished result is to be read here and not from the control plane."""
        return self._mode == "always" or (self._mode == "large" and record.spool.size >= LARGE)

    def result_set(self, record: Record, request: Request, caller: Caller) -> DataplaneRequest:
        uri = f"{self._base(request)}{STATEMENTS}{record.statement_id}"
        token = self._token(record.statement_id, caller)
        return DataplaneRequest(token, uri, record.statement_id, None, "result-set")

    def streaming(self, record: Record, request: Request, caller: Caller) -> DataplaneRequest:
        # https is wss, http is ws.
        uri = f"{self._base(request)}{STREAMS}{record.statement_id}".replace("http", self._stream_scheme, 1)
        name = record.statement_id
        return DataplaneRequest(self._token(name, caller), uri, name, name, "streaming")

    def caller(self, token: str, statement_id: str) -> Caller | None:
        """To whom a token was given, where it is this statement's and still good."""
        until, _, rest = token.partition(".")
        token_id, _, _ = rest.rpartition(".")
        expected = self._sign(until, token_id, statement_id).encode("utf-8", "surrogatepass")
        if not hmac.compare_digest(token.encode("utf-8", "surrogatepass"), expected) or int(until) < time.time():
            return None
        return self._catalog.holder(token_id)

    def _base(self, request: Request) -> str:
        if self._public_url:
            return self._public_url
        parts = urlsplit(str(request.url))
        return f"{parts.scheme}://{parts.netloc}"

    def _token(self, statement_id: str, caller: Caller) -> str:
        return self._sign(str(int(time.time()) + TOKEN_SECONDS), caller.token_id, statement_id)

    def _sign(self, until: str, token_id: str, statement_id: str) -> str:
        signed = f"{until}:{token_id}:{statement_id}".encode("utf-8", "surrogatepass")
        return f"{until}.{token_id}.{hmac.new(self._key, signed, hashlib.sha256).hexdigest()}"


async def stream(socket: WebSocket, statements: Statements, plane: DataPlane, unread: Budget) -> None:
    """One reader of an endless SELECT, from its first frame to the query's end."""
    query_id = socket.path_params["statement_id"].lower()
    await socket.accept()
    try:
        async with asyncio.timeout(AUTH_SECONDS):
            first = await socket.receive()
    except TimeoutError:
        await socket.close(REFUSED, "the auth frame did not come")
        return
    if first["type"] == "websocket.disconnect":
        return
    frame = _auth_frame(first.get("text") or "")
    if frame is None:
        await socket.close(
            UNAUTHORIZED, 'the first frame is not {"type": "auth", "accessToken": "…", "sessionId": "…"}'
        )
        return
    opened = _authorised(frame, query_id, plane)
    if opened is None:
        await socket.close(UNAUTHORIZED, "the token is not this statement's")
        return
    caller, session = opened
    session = session or socket.headers.get("ds-session-id", "")
    if session:
        # A session id means something beside its token alone.
        session = f"{caller.token_id} {session}"
    record = statements.find(query_id, caller)
    found = _find(statements, query_id)
    if record is None or found is None:
        state, said = (
            (record.state, record.message) if record is not None else (sqlstate.NO_QUERY, "there is no such query")
        )
        await _error(socket, said or "the query has ended", state)
        return
    organization, query = found
    said = refusal(socket.scope, caller.token_id)
    if said:
        await socket.close(TRY_LATER, said)
        return
    with statements.endings.reading(record, caller.token_id) as gone:
        sending = asyncio.ensure_future(_send(socket, statements, organization, query, session, unread))
        listening = asyncio.ensure_future(_gone(socket))
        dropped = asyncio.ensure_future(gone.wait())
        try:
            await asyncio.wait({sending, listening, dropped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, listening, dropped):
                task.cancel()
            await asyncio.gather(sending, listening, dropped, return_exceptions=True)
    if gone.is_set():
        with contextlib.suppress(WebSocketDisconnect, RuntimeError, OSError):
            await socket.close(UNAUTHORIZED, "the token was dropped")


async def _send(
    socket: WebSocket,
    statements: Statements,
    organization: Organization,
    query: Query,
    session: str,
    unread: Budget,
) -> None:
    taken = 0
    try:
        await socket.send_text(_metadata(query.feed.columns))
        async with organization.streams.reader(query, session) as (position, skip):
            while True:
                try:
                    news = await organization.streams.next(query, position)
                except Failure as failure:
                    await statements.endings.fail_feed(query.query_id, failure)
                    news = None
                if news is None:
                    break
                end, rows = news
                size = sum(map(len, rows))
                if size > SMALL and not taken:
                    # They are read again when there is room for them.
                    del news, rows
                    taken = await unread.wait(organization.id, size)
                    continue
                for number, row in enumerate(rows[skip:], skip + 1):
                    # Waits where this reader is slow: what it has not taken stays in the table.
                    await socket.send_text(f'{{"type":"data","headers":{{}},"data":{row}}}')
                    if session:
                        query.places[session] = (position, number)
                unread.give(organization.id, taken)
                taken = 0
                position, skip = end, 0
                if session:
                    query.places[session] = (position, skip)
        state, message = query.ended or (sqlstate.INTERNAL, "the query ended")
        await _error(socket, message, state)
    except (WebSocketDisconnect, RuntimeError, OSError):
        return
    finally:
        unread.give(organization.id, taken)


async def _gone(socket: WebSocket) -> None:
    """Until the reader leaves; what else it sends means nothing."""
    with contextlib.suppress(WebSocketDisconnect, RuntimeError):
        while (await socket.receive())["type"] != "websocket.disconnect":
            pass


async def _error(socket: WebSocket, message: str, code: str) -> None:
    with contextlib.suppress(WebSocketDisconnect, RuntimeError, OSError):
        await socket.send_text(json.dumps({"type": "error", "message": message, "sqlCode": code, "headers": {}}))
        await socket.close(NORMAL)


def _auth_frame(text: str) -> dict[str, Any] | None:
    """The frame that opens a stream; None for a text that is no such frame."""
    try:
        frame = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(frame, dict) or frame.get("type") != "auth" or not isinstance(frame.get("accessToken"), str):
        return None
    return frame


def _authorised(frame: Mapping[str, Any], query_id: str, plane: DataPlane) -> tuple[Caller, str] | None:
    """Who reads, and the reader's session id; None where the frame's token is not this statement's."""
    caller, session = plane.caller(frame["accessToken"], query_id), frame.get("sessionId")
    return (caller, session if isinstance(session, str) else "") if caller is not None else None


def _find(statements: Statements, query_id: str) -> tuple[Organization, Query] | None:
    for organization in statements.organizations.opened():
        query = organization.streams.find(query_id)
        if query is not None:
            return organization, query
    return None


def _metadata(columns: list[ColumnInfo]) -> str:
    told = []
    for column in columns:
        head, _, inside = (column.type or "").partition("(")
        numbers = [int(part) for part in inside.rstrip(")").split(",") if part.strip().isdecimal()]
        told.append(
            {
                "name": column.name,
                "type": column.type,
                "nullable": column.nullable,
                "length": None,
                "precision": numbers[0] if numbers and head != "VARCHAR" else None,
                "scale": numbers[1] if len(numbers) > 1 else None,
            }
        )
    return json.dumps({"type": "metadata", "headers": {}, "columns": told}, ensure_ascii=False)
