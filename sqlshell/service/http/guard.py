"""Keeps web pages from using the service: refuses requests for another host or from another origin."""

from __future__ import annotations

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from sqlshell.service.http.errors import message


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
