"""Bearer tokens: asked for before anything of a request's body is read."""

from __future__ import annotations

import hmac

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send


class BearerAuth:
    """Lets requests through that carry the token; others get 401 in the interface's shape."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = b"Bearer " + token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in {"http", "websocket"}:
            given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
            if not hmac.compare_digest(
                b"Bearer " + given[7:] if given[:7].lower() == b"bearer " else b"", self._expected
            ):
                message = b'{"message":"a bearer token is missing"}' if not given else b'{"message":"unknown token"}'
                refusal = Response(
                    message, 401, {"WWW-Authenticate": "Bearer", "Connection": "close"}, "application/json"
                )
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)
