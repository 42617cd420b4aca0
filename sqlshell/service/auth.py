"""Bearer tokens: asked for before anything of a request's body is read."""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sqlshell.service.answers import message
from sqlshell.service.catalog import ANONYMOUS, OPERATOR, Caller, Catalog, digest
from sqlshell.service.dataplane import PREFIX
from sqlshell.service.wire.connections import refusal
from sqlshell.service.wire.turns import Turns

OPEN = frozenset({"/openapi.json"})
LEGACY = ("/run-statement", "/copy/", "/version")


class _Dropped(Exception):
    """The token of a request was dropped while it was answered."""


class BearerAuth:
    """Lets requests through that carry a token, and says in `scope["caller"]` whose; others get 401.

    `token` is the operator's, who may see every organization; the others are the catalog's. The data plane has tokens
    of its own. `anonymous` lets strangers use the legacy endpoints, as the operator.
    """

    def __init__(self, app: ASGIApp, catalog: Catalog, token: str, turns: Turns, *, anonymous: bool) -> None:
        self._app = app
        self._turns = turns
        self._catalog = catalog
        self._operator = digest(token)
        self._anonymous = anonymous

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in {"http", "websocket"} and not self._open(scope["path"]):
            given = Headers(scope=scope).getlist("authorization")
            caller = self._caller(given)
            if caller is None:
                said = "unknown token" if any(given) else "a bearer token is missing"
                if len(given) > 1:
                    said = "there is more than one Authorization header"
                if scope["type"] == "websocket":
                    await send({"type": "websocket.close", "code": 4401, "reason": said})
                    return
                headers = {"WWW-Authenticate": "Bearer", "Connection": "close"}
                await message(said, 401, headers)(scope, receive, send)
                return
            if caller.token_id == ANONYMOUS and not scope["path"].startswith(LEGACY):
                headers = {"WWW-Authenticate": "Bearer", "Connection": "close"}
                await message("a bearer token is missing", 401, headers)(scope, receive, send)
                return
            said = refusal(scope, caller.token_id)
            if said:
                if scope["type"] == "websocket":
                    await send({"type": "websocket.close", "code": 1013, "reason": said})
                else:
                    await message(said, 429, {"Connection": "close"})(scope, receive, send)
                return
            await self._turns.take(caller.organization, caller.token_id)
            scope["caller"] = caller
            send = self._until_dropped(caller, send)
        try:
            await self._app(scope, receive, send)
        except _Dropped:
            # The server closes the connection of an answer that is not complete.
            return

    def _until_dropped(self, caller: Caller, send: Send) -> Send:
        """Sends an answer as long as the caller's token is there: a long one ends in the middle."""
        sent = False

        async def sending(message: Message) -> None:
            nonlocal sent
            if message["type"] == "http.response.body":
                if sent and caller.token_id in self._catalog.dropped:
                    raise _Dropped
                sent = True
            await send(message)

        return sending

    @staticmethod
    def _open(path: str) -> bool:
        return path in OPEN or path.startswith(PREFIX + "/")

    def _caller(self, given: Sequence[str]) -> Caller | None:
        if not given and self._anonymous:
            return Caller(ANONYMOUS)
        token = bearer(given)
        if not token:
            return None
        if hmac.compare_digest(digest(token), self._operator):
            return Caller(OPERATOR)
        return self._catalog.caller(token)


def bearer(given: Sequence[str]) -> str:
    """The token of a request's Authorization headers, "" for none; of several, none counts: a proxy in front may have
    judged another one."""
    kind, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    return token.strip() if kind.lower() == "bearer" else ""
