"""Who may send a request: its host and origin, and its token, which is checked before its body is read."""

from __future__ import annotations

import hmac
from collections.abc import Collection, Sequence

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sqlshell.service.catalog import ANONYMOUS, OPERATOR, Caller, Catalog, digest, least_role
from sqlshell.service.http.connections import note_token
from sqlshell.service.http.dataplane import STATEMENTS, STREAMS, DataPlane
from sqlshell.service.http.responses import NOT_RUN, UNAVAILABLE, message
from sqlshell.service.storage.storage import Unavailable

OPEN = frozenset({"/openapi.json"})
"""The paths that need no token."""

BY_PLANE = "sqlshell.by_plane"
"""Key in the scope of a request: whether it carries a token of the data plane."""

LEGACY = ("/run-statement", "/copy/", "/version")


class _Dropped(Exception):
    """The token of a request was dropped before the end of the response; `begun` says whether the
    response had started.
    """

    def __init__(self, begun: bool) -> None:
        super().__init__()
        self.begun = begun


class BearerAuth:
    """Passes on requests with a valid token and sets `scope["caller"]`; all others get 401.

    `token` is the operator's, who may see every organization; all other tokens are in the catalog. A token of the data
    plane is valid only for the lookup of its statement; streams receive it in a frame. `anonymous` allows requests
    without a token to use the legacy endpoints as the operator.
    """

    def __init__(
        self,
        app: ASGIApp,
        catalog: Catalog,
        plane: DataPlane,
        token: str,
        *,
        anonymous: bool,
    ) -> None:
        self._app = app
        self._plane = plane
        self._catalog = catalog
        self._operator = digest(token)
        self._anonymous = anonymous

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in {"http", "websocket"} and not self._open(scope):
            given = Headers(scope=scope).getlist("authorization")
            try:
                caller = await self._authenticated(scope, given)
            except Unavailable:
                await message(UNAVAILABLE, 503, NOT_RUN | {"Retry-After": "2"})(scope, receive, send)
                return
            if caller is None:
                problem = "invalid token" if any(given) else "a bearer token is required"
                if len(given) > 1:
                    problem = "the request has more than one Authorization header"
                headers = {"WWW-Authenticate": "Bearer", "Connection": "close"}
                await message(problem, 401, headers)(scope, receive, send)
                return
            if caller.token_id == ANONYMOUS and not scope["path"].startswith(LEGACY):
                headers = {"WWW-Authenticate": "Bearer", "Connection": "close"}
                await message("a bearer token is required", 401, headers)(scope, receive, send)
                return
            refusal = note_token(scope, caller.token_id)
            if refusal:
                await message(refusal, 429, {"Connection": "close"})(scope, receive, send)
                return
            scope["caller"] = caller
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            await self._app(scope, receive, self._until_dropped(scope, send))
        except _Dropped as dropped:
            # If the response has started, the server closes the connection.
            if not dropped.begun:
                headers = {"WWW-Authenticate": "Bearer", "Connection": "close"}
                await message("invalid token", 401, headers)(scope, receive, send)

    async def _authenticated(self, scope: Scope, given: Sequence[str]) -> Caller | None:
        """The caller of a request, None if it has no valid token. Raises Unavailable."""
        if self._catalog.remote and not self._is_operator(given):
            # The event loop does not wait for a database that may not respond.
            return await self._catalog.run_async(lambda: self._caller(given) or self._by_plane(scope, given))
        return self._caller(given) or self._by_plane(scope, given)

    def _is_operator(self, given: Sequence[str]) -> bool:
        return hmac.compare_digest(digest(bearer(given)), self._operator)

    def _until_dropped(self, scope: Scope, send: Send) -> Send:
        """Sends a response while the token of its `caller` exists; a long response is cut off when the token is
        dropped.

        The response to a submission is always sent, because that statement may have dropped the token. The data plane
        sets `caller` later.
        """
        sent = 0

        async def sending(message: Message) -> None:
            nonlocal sent
            caller = scope.get("caller")
            dropped = isinstance(caller, Caller) and caller.token_id in self._catalog.dropped
            # A short response consists of its start and one body.
            if dropped and (scope["method"] != "POST" or sent > 1):
                raise _Dropped(sent > 0)
            sent += 1
            await send(message)

        return sending

    @staticmethod
    def _open(scope: Scope) -> bool:
        return scope["path"] in OPEN or (scope["type"] == "websocket" and scope["path"].startswith(STREAMS))

    def _by_plane(self, scope: Scope, given: Sequence[str]) -> Caller | None:
        """The owner of a data plane's token, if the request looks up the statement of this token."""
        if scope["type"] != "http" or scope["method"] not in {"GET", "HEAD"}:
            return None
        place, statement_id = scope["path"][: len(STATEMENTS)], scope["path"][len(STATEMENTS) :]
        if place != STATEMENTS:
            return None
        caller = self._plane.caller(bearer(given), statement_id.lower())
        scope[BY_PLANE] = caller is not None
        return caller

    def _caller(self, given: Sequence[str]) -> Caller | None:
        if not given and self._anonymous:
            return Caller(ANONYMOUS)
        token = bearer(given)
        if not token:
            return None
        if self._is_operator(given):
            return Caller(OPERATOR)
        return self._catalog.caller(token)


def caller_of(request: Request) -> Caller:
    """The caller that BearerAuth authenticated; nobody, with the lowest role, if it did not see the request."""
    caller = request.scope.get("caller")
    return caller if isinstance(caller, Caller) else Caller("nobody", "-", (least_role(),))


def bearer(given: Sequence[str]) -> str:
    """The bearer token of a request, or "".

    Several Authorization headers count as none: a proxy in front may have checked another one.
    """
    kind, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    return token.strip() if kind.lower() == "bearer" else ""


class Guard:
    """Passes on requests if Host is one of `hosts` and Origin, if present, is the service's own."""

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(f"{scheme}://{host}" for host in self._hosts for scheme in ("http", "https"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in {"http", "websocket"}:
            headers = Headers(scope=scope)
            refusal = ""
            status = 421
            hosts = headers.getlist("host")
            if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
                refusal = f"host {', '.join(hosts)[:100]!r} is not allowed; allow it with sqlshell serve --allow-host"
            elif any(origin.lower() not in self._origins for origin in headers.getlist("origin")):
                refusal, status = "cross-origin requests are not allowed", 403
            if refusal:
                await message(refusal, status, {"Connection": "close"})(scope, receive, send)
                return
        await self._app(scope, receive, send)


def loopback(port: int) -> set[str]:
    """The Host values of a service on a loopback port."""
    names = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
    return names | {name.rpartition(":")[0] for name in names} if port == 80 else names
