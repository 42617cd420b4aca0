"""Lets a client of httpx, which can do more than ours, send its requests to an application in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx

from sqlshell.client.http.answer import Answer
from sqlshell.client.http.in_process import InProcess, OpenApp
from sqlshell.client.target import parse


class ByHttpx(httpx.AsyncBaseTransport):
    def __init__(self, open_app: OpenApp) -> None:
        self._connections = InProcess(open_app, parse("http://x"), 60)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        assert isinstance(request.stream, httpx.AsyncByteStream)
        where, pieces = request.url.raw_path.decode(), aiter(request.stream)
        answer = await self._connections.send(request.method, where, dict(request.headers), pieces)
        return httpx.Response(answer.status, headers=dict(answer.headers), stream=_Body(answer))


class _Body(httpx.AsyncByteStream):
    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._answer.pieces

    async def aclose(self) -> None:
        await self._answer.aclose()
