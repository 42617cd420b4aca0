"""Bearer tokens: asked for before anything of a request's body is read."""

from __future__ import annotations

import hmac

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from sqlshell.service.answers import message
from sqlshell.service.catalog import Caller, Catalog, digest
from sqlshell.service.dataplane import PREFIX

OPEN = frozenset({"/openapi.json"})
LEGACY = ("/run-statement", "/copy/", "/version")


class BearerAuth:
    """Lets requests through that carry a token, and says in `scope["caller"]` whose; others get 401.

    `token` is the operator's, who may see every organization; the others are the catalog's. The data plane has tokens
    of its own. `anonymous` lets strangers use the legacy endpoints, as the operator.
    """

    def __init__(self, app: ASGIApp, catalog: Catalog, token: str, *, anonymous: bool) -> None:
        self._app = app
        self._catalog = catalog
        self._operator = digest(token)
        self._anonymous = anonymous

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in {"http", "websocket"} and not self._open(scope["path"]):
            given = Headers(scope=scope).get("authorization", "")
            caller = self._caller(given)
            if caller is None:
                said = "unknown token" if given else "a bearer token is missing"
                if scope["type"] == "websocket":
                    await send({"type": "websocket.close", "code": 4401, "reason": said})
                    return
                headers = {"WWW-Authenticate": "Bearer", "Connection": "close"}
                await message(said, 401, headers)(scope, receive, send)
                return
            if caller.token_id == "anonymous" and not scope["path"].startswith(LEGACY):
                headers = {"WWW-Authenticate": "Bearer", "Connection": "close"}
                await message("a bearer token is missing", 401, headers)(scope, receive, send)
                return
            scope["caller"] = caller
        await self._app(scope, receive, send)

    @staticmethod
    def _open(path: str) -> bool:
        return path in OPEN or path.startswith(PREFIX + "/")

    def _caller(self, given: str) -> Caller | None:
        if not given and self._anonymous:
            return Caller("anonymous")
        kind, _, token = given.partition(" ")
        token = token.strip()
        if kind.lower() != "bearer" or not token:
            return None
        if hmac.compare_digest(digest(token), self._operator):
            return Caller("operator")
        return self._catalog.caller(token)
