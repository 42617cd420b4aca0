"""Who may send a request: its host and origin, and its token, which is checked before its body is read."""

from __future__ import annotations

import hmac
from collections.abc import Collection, Sequence

from msgspec.structs import replace
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sqlshell.service.catalog import ANONYMOUS, OPERATOR, Caller, Catalog, digest
from sqlshell.service.http.dataplane import STATEMENTS, STREAMS, DataPlane
from sqlshell.service.http.responses import NOT_RUN, UNAVAILABLE, connection_of, message
from sqlshell.service.storage.storage import Unavailable

OPEN = frozenset({"/openapi.json"})
"""The paths that need no token."""

EXTENSIONS = b"batch, sessions, copy, whole-result, engines, describe"
"""What this service supports beyond the interface, which each response announces."""

LEGACY = ("/run-statement", "/copy/", "/version")


class _Dropped(Exception):
    """The token of a request was dropped before the end of the response."""


class Gate:
    """Passes on requests with an allowed host and origin and a valid token, and sets `scope["caller"]`; their responses
    announce the name of an `engine` that is not DuckDB, for which clients translate SQL.

    If `hosts` are given, Host must be one of them, and Origin, if present, the service's own. `token` is the
    operator's, who may see every organization; all other tokens are in the catalog. A token of the data plane is valid
    only for the lookup of its statement; streams receive it in a frame. `anonymous` allows requests without a token to
    use the legacy endpoints as the operator.
    """

    def __init__(
        self,
        app: ASGIApp,
        catalog: Catalog,
        plane: DataPlane,
        token: str,
        hosts: Collection[str],
        *,
        anonymous: bool,
        engine: str,
    ) -> None:
        self._app = app
        self._plane = plane
        self._catalog = catalog
        self._operator = digest(token)
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(f"{scheme}://{host}" for host in self._hosts for scheme in ("http", "https"))
        self._anonymous = anonymous
        announced = EXTENSIONS + (f", engine={engine}".encode() if engine else b"")
        # Vary names what chooses the form of a result.
        self._headers = [(b"sqlshell-extensions", announced), (b"vary", b"Accept, Prefer")]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sent = 0

        async def sending(message: Message) -> None:
            nonlocal sent
            caller = scope.get("caller")
            # A long response is cut off when the token is dropped; a short one consists of its start and one body. The
            # response to a submission is always sent, because that statement may have dropped the token.
            dropped = caller is not None and caller.token_id in self._catalog.dropped
            if dropped and scope["type"] == "http" and (scope["method"] != "POST" or sent > 1):
                raise _Dropped
            if message["type"].endswith("response.start"):
                message = {**message, "headers": [*message["headers"], *self._headers]}
            sent += 1
            await send(message)

        headers = Headers(scope=scope)
        refusal = self._misdirected(headers) if self._hosts else None
        refusal = refusal or await self._unauthorized(scope, headers.getlist("authorization"))
        try:
            await (refusal or self._app)(scope, receive, sending)
        except _Dropped:
            # If the response has started, the server closes the connection.
            if not sent:
                del scope["caller"]
                await _denied("invalid token")(scope, receive, sending)

    def _misdirected(self, headers: Headers) -> Response | None:
        """The refusal of a request for another host, or from another origin."""
        close = {"Connection": "close"}
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            named = ", ".join(hosts)[:100]
            return message(f"host {named!r} is not allowed; allow it with sqlshell serve --allow-host HOST", 421, close)
        if any(origin.lower() not in self._origins for origin in headers.getlist("origin")):
            return message("cross-origin requests are not allowed", 403, close)
        return None

    async def _unauthorized(self, scope: Scope, given: Sequence[str]) -> Response | None:
        """The refusal of a request that has no valid token and needs one."""
        connection = connection_of(scope)
        if scope["path"] in OPEN or (scope["type"] == "websocket" and scope["path"].startswith(STREAMS)):
            if connection is not None:
                await connection.connections.take_turn("")
            return None
        token = _bearer_token(given)
        try:
            caller = await self._caller(scope, token, anonymous=self._anonymous and not given)
        except Unavailable:
            return message(UNAVAILABLE, 503, NOT_RUN | {"Retry-After": "2"})
        if connection is not None:
            await connection.connections.take_turn(caller.token_id if caller is not None else "")
        if len(given) > 1:
            return _denied("the request has more than one Authorization header")
        if caller is None:
            return _denied("invalid token") if token else _denied("a bearer token is required", error="")
        if connection is not None and (refusal := connection.connections.note_token(connection, caller.token_id)):
            return message(refusal, 429, {"Connection": "close"})
        scope["caller"] = caller
        return None

    async def _caller(self, scope: Scope, token: str, *, anonymous: bool) -> Caller | None:
        """The caller of a request with this token, "" for none; None if it has no valid one. Raises Unavailable."""
        if anonymous and scope["path"].startswith(LEGACY):
            return Caller(ANONYMOUS)
        if not token:
            return None
        if hmac.compare_digest(digest(token), self._operator):
            return Caller(OPERATOR)
        return await self._catalog.run_async(lambda: self._catalog.caller(token) or self._by_plane(scope, token))

    def _by_plane(self, scope: Scope, token: str) -> Caller | None:
        """The owner of a data plane's token, if the request looks up the statement of this token."""
        path = scope["path"]
        if scope["type"] != "http" or scope["method"] not in {"GET", "HEAD"} or not path.startswith(STATEMENTS):
            return None
        caller = self._plane.caller(token, path.removeprefix(STATEMENTS).lower())
        return replace(caller, by_plane=True) if caller is not None else None


def _bearer_token(given: Sequence[str]) -> str:
    """The bearer token in the Authorization headers of a request, "" for none."""
    # Several headers count as none: a proxy in front may have checked another one.
    kind, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    return token.strip() if kind.lower() == "bearer" else ""


def _denied(text: str, *, error: str = ' error="invalid_token"') -> Response:
    # Without an error code if no bearer token was sent (RFC 6750, section 3.1).
    return message(text, 401, {"WWW-Authenticate": f"Bearer{error}", "Connection": "close"})


def caller_of(request: Request) -> Caller:
    """Return the authenticated caller of a request."""
    caller: Caller = request.scope["caller"]
    return caller


def loopback(port: int) -> set[str]:
    """Return the Host values of a service on a loopback port."""
    names = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
    return names | {name.rpartition(":")[0] for name in names} if port == 80 else names
