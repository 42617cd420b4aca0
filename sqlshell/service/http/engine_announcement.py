"""Adds the engine's name to the responses of a service on an external server."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADER = b"sqlshell-extensions"


class EngineAnnouncement:
    """Adds `engine=NAME` to the extensions that a response announces: clients translate SQL only for DuckDB."""

    def __init__(self, app: ASGIApp, engine: str) -> None:
        self._app = app
        self._name = engine.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def announce(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [
                    (name, value + b", engine=" + self._name if name.lower() == _HEADER else value)
                    for name, value in message["headers"]
                ]
                message = {**message, "headers": headers}
            await send(message)

        await self._app(scope, receive, announce)
