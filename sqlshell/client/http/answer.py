"""Responses as they arrive, and what sends requests: a pool of connections, or the service in this process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Protocol

from msgspec import Struct

Content = bytes | AsyncIterator[bytes] | None


class Answer(Struct, frozen=True):
    """The head of a response; `pieces` are its body as sent, perhaps compressed, and raise ConnectionBroken.

    The names of `headers` are in lower case; values of the same name are joined by commas.
    """

    status: int
    headers: Mapping[str, str]
    pieces: AsyncGenerator[bytes]
    _close: Callable[[], Awaitable[None]]

    async def aclose(self) -> None:
        """End the response, also in the middle of its body."""
        await self.pieces.aclose()
        await self._close()


class Connections(Protocol):
    """What sends requests to one service."""

    async def send(self, method: str, where: str, headers: Mapping[str, str], content: Content) -> Answer:
        """Send a request for `where`, a path with its query, and return the head of the response.

        Raises ConnectionFailed and UsageError.
        """

    async def aclose(self) -> None: ...


def read_headers(given: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The headers of a response by name."""
    headers: dict[str, str] = {}
    for name, value in given:
        key = name.decode("latin-1").lower()
        text = _text(value)
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
