"""Counts the connections of a service, by token, and chooses which one to close for a new one."""

from __future__ import annotations

import asyncio
import resource
from collections import Counter, deque
from typing import Protocol

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sqlshell.service.settings import Settings, limit_note

KEY = "sqlshell.connection"
"""Key of the connection in the state of a request's scope."""

FILES = 100
"""File descriptors that are reserved for other uses than connections: a number, and below a fraction of all."""
PART = 0.2

REQUESTS = 4
"""Requests of one token that begin in one iteration of the event loop; of those without a token, one does."""


class Connection(Protocol):
    """A connection, as far as it is counted and as the application sees it."""

    connections: Connections
    gone: bool
    responding: bool
    """Whether a response has begun, and not ended."""

    def abort(self) -> None: ...

    def end_response(self) -> None: ...


class Connections:
    """The connections of a service.

    A token may have a number of them. If there are more than file descriptors for them, the one that has been open for
    the longest time without a valid token is closed for a new one. If all have one, the new one is refused. Requests
    begin in turn by token, so that many of one client do not delay those of others.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._tokens: dict[Connection, str] = {}
        """All connections, with the last valid token of each, or ""."""
        self._counts: Counter[str] = Counter()
        self._strangers: dict[Connection, None] = {}
        self._begun: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def enter(self, connection: Connection) -> bool:
        """Count a connection, if there is room for it."""
        if len(self._tokens) >= self.settings.connections:
            oldest = next(iter(self._strangers), None)
            if oldest is None:
                return False
            self.leave(oldest)
            oldest.abort()
        self._tokens[connection] = ""
        self._strangers[connection] = None
        return True

    def leave(self, connection: Connection) -> None:
        """Count a connection no more. Has no effect if it is not counted."""
        token = self._tokens.pop(connection, "")
        self._strangers.pop(connection, None)
        if token:
            self._counts[token] -= 1
            if not self._counts[token]:
                del self._counts[token]

    def note_token(self, connection: Connection, token: str) -> str:
        """Note that a request has a valid token; returns "", or the message of a refusal."""
        if self._tokens.get(connection, token) == token:
            return ""
        bound = self.settings.token_connections
        if self._counts[token] >= bound:
            return f"too many connections of this token: {bound} {limit_note('token_connections')}"
        self.leave(connection)
        self._tokens[connection] = token
        self._counts[token] += 1
        return ""

    async def take_turn(self, token: str) -> None:
        """Wait until a request of this token may begin, "" for one without."""
        if self._begun[token] < _most(token) and token not in self._waiting:
            self._begin(token)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(token, deque()).append(turn)
        await turn

    def _begin(self, token: str) -> None:
        if not self._begun:
            asyncio.get_running_loop().call_soon(self._next_turns)
        self._begun[token] += 1

    def _next_turns(self) -> None:
        """Begin the requests of the next iteration of the event loop."""
        self._begun.clear()
        for token, turns in list(self._waiting.items()):
            while turns and self._begun[token] < _most(token):
                turn = turns.popleft()
                if not turn.done():
                    turn.set_result(None)
                    self._begin(token)
            if not turns:
                del self._waiting[token]

    def abort(self) -> None:
        """Close all connections at once."""
        for connection in list(self._tokens):
            connection.abort()


def _most(token: str) -> int:
    return REQUESTS if token else 1


def raise_descriptor_limit() -> int:
    """Raise the limit of open files as far as the system allows; returns the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # macOS accepts at most 10240 if the hard limit is unlimited.
    for wanted in (hard, min(10240, hard) if hard != resource.RLIM_INFINITY else 10240):
        if wanted == soft:
            break
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            continue
        break
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return soft if soft != resource.RLIM_INFINITY else 1 << 30


def fitting_connections(connections: int, files: int) -> int:
    """The number of connections that fit into a limit of open files."""
    return max(1, min(connections, files - max(FILES, int(files * PART))))


class NoteResponses:
    """Tells the connection of a request when its response begins and when it has been sent."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = connection_of(scope)
        if connection is None or scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Behind these, the next data may be a body or a request.
        last = scope["method"] == "CONNECT" or any(name in {b"expect", b"upgrade"} for name, _ in scope["headers"])

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                connection.responding = True
                if last:
                    message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                connection.end_response()

        await self._app(scope, receive, sending)


def connection_of(scope: Scope) -> Connection | None:
    """The connection of a request; None in the embedded service."""
    connection: Connection | None = scope.get("state", {}).get(KEY)
    return connection


def note_token(scope: Scope, token: str) -> str:
    """Note the valid token of a request for its connection; returns "", or the message of a refusal."""
    connection = connection_of(scope)
    return connection.connections.note_token(connection, token) if connection is not None else ""


async def take_turn(scope: Scope, token: str = "") -> None:
    """Wait until a request of this token may begin."""
    connection = connection_of(scope)
    if connection is not None:
        await connection.connections.take_turn(token)


def is_disconnected(scope: Scope) -> bool:
    """Whether the client of a request has disconnected."""
    connection = connection_of(scope)
    return connection is not None and connection.gone
