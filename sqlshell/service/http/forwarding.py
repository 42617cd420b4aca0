"""Forwards requests about sessions and statements of another process of the service to that process."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
from collections.abc import AsyncIterator, Coroutine, Mapping
from typing import Any, Final

import httpx
import msgspec
from starlette.requests import Request
from starlette.responses import Response

from sqlshell.interface.models import StatementRequest
from sqlshell.service.cluster.cluster import BEAT_SECONDS, Cluster, Peer
from sqlshell.service.http.auth import caller_of
from sqlshell.service.http.dataplane import BASE
from sqlshell.service.http.responses import JSON, NOT_RUN, Content, ContentResponse, message
from sqlshell.service.objects.attachments import Attachments
from sqlshell.service.statements.statement import Statement
from sqlshell.service.storage.storage import StorageError

_log = logging.getLogger("sqlshell.service")

FORWARDED: Final = "sqlshell-forwarded"
"""The header of a request that was passed on, with a key; it is not passed on again."""

BASE_URL: Final = "sqlshell-base-url"
"""The header of a request that was passed on, with the URL of the service that the client used."""

PROCESS: Final = "sqlshell-process"
"""The header of a submission that was passed on, with the ID of the process that has the session."""

_REQUEST: Final = ("authorization", "accept", "prefer")
_DROPPED: Final = {
    *("connection", "content-length", "content-type", "date", "keep-alive", "server", "sqlshell-extensions"),
    *("transfer-encoding", "vary"),
}
"""The headers of a response that are not passed on, because each response gets its own."""

_SUBMITTING: Final = httpx.Timeout(connect=2.0, read=60.0, write=60.0, pool=10.0)
_LOOKING_UP: Final = httpx.Timeout(connect=2.0, read=8.0, write=8.0, pool=10.0)
"""A process that holds its lease but does not respond, such as a suspended one, does not hold up lookups."""


LOST: Final = (
    "the service process that held this session stopped responding: the session is lost, and the statement may have "
    "started; check LIST QUERIES before you run it again"
)

RESTARTED: Final = (
    "the service process that held this session has exited, and the statement was not run; "
    "try again in about 10 seconds"
)


SILENT: Final = "the service process that holds this session does not respond, and the statement was not run; try again"

BATCH_SILENT: Final = "the service process that has this batch does not respond; try again"


class _LeaseEnded(Exception):
    """The process to which a request was passed on is considered dead."""


class Forwarding:
    """Forwards requests with their sender's token, which the other process checks again."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._key = cluster.key("forwarding").hex()
        self._client = httpx.AsyncClient(trust_env=False, limits=httpx.Limits(max_connections=None))
        self._silent: set[str] = set()
        """The addresses of processes that the last request did not reach."""

    async def submission(self, request: Request, asked: StatementRequest, files: Attachments) -> Response | None:
        """Return the response of the process that has the session of a submission; None if it is this one.

        Raises StorageError.
        """
        name = (asked.parameters.session_id if asked.parameters else None) or ""
        if self.was_forwarded(request):
            # A process that was started again at the same address has no session of the one before it.
            if request.headers.get(PROCESS) != self._cluster.id:
                return message(RESTARTED, 503, NOT_RUN | {"Retry-After": "2"})
            return None
        peer = await self._cluster.run_async(self._cluster.place_of_session, caller_of(request).token_id, name)
        if peer is None:
            return None
        body = msgspec.json.encode(asked)
        with contextlib.ExitStack() as stack:
            parts: list[Any] = [("request", (None, body, JSON))]
            for item in files.files:
                parts.append(("attachments", (item.name, stack.enter_context(item.path.open("rb")))))
            headers = {PROCESS: peer.process}
            work = self._passed_on(request, "POST", peer, "/v2/statements", headers, _SUBMITTING, files=parts)
            try:
                return await self._while_alive(work, peer)
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.InvalidURL):
                return message(SILENT, 503, NOT_RUN | {"Retry-After": "2"})
            except _LeaseEnded:
                return message(LOST, 503, {"Retry-After": "2"})
            except httpx.HTTPError:
                reason = (
                    "the service process that holds this session stopped responding; the statement may have started"
                )
                return message(reason, 502)

    async def look_up(self, request: Request, record: Statement) -> Response | None:
        """Return the response of the process that has a statement; None if it is this one, or does not respond.

        Only the process that has a batch knows its statements: if it does not respond, the response is a 503.

        Raises StorageError.
        """
        peer = await self._cluster.run_async(self._cluster.peer, record.process)
        if peer is None:
            return None
        path = f"{request.url.path}{f'?{request.url.query}' if request.url.query else ''}"
        try:
            return await self._passed_on(request, request.method, peer, path, {}, _LOOKING_UP)
        except (httpx.HTTPError, httpx.InvalidURL):
            return message(BATCH_SILENT, 503, {"Retry-After": "2"}) if "batch" in request.query_params else None

    async def _while_alive(self, work: Coroutine[Any, Any, Response], peer: Peer) -> Response:
        """Wait for the response of a process. Raises _LeaseEnded if it is considered dead meanwhile: it then runs
        nothing that it has not begun.
        """
        task = asyncio.ensure_future(work)
        try:
            while not (await asyncio.wait({task}, timeout=BEAT_SECONDS))[0]:
                with contextlib.suppress(StorageError):
                    if not await self._cluster.run_async(self._cluster.is_member, peer.process):
                        raise _LeaseEnded
            return await task
        finally:
            task.cancel()

    def was_forwarded(self, request: Request) -> bool:
        """Return whether another process passed the request on, which then says which URL its client used. Only
        processes know the key.
        """
        given = request.headers.get(FORWARDED, "")
        known = hmac.compare_digest(given.encode("utf-8", "replace"), self._key.encode())
        if known:
            request.scope[BASE] = request.headers.get(BASE_URL)
        return known

    async def _passed_on(
        self,
        request: Request,
        method: str,
        peer: Peer,
        path: str,
        headers: Mapping[str, str],
        timeout: httpx.Timeout,
        files: Any = None,
    ) -> Response:
        """The response of another process. Raises httpx.HTTPError and httpx.InvalidURL."""
        given = {name: request.headers[name] for name in _REQUEST if name in request.headers}
        base = f"{request.url.scheme}://{request.url.netloc}"
        given |= {**headers, FORWARDED: self._key, BASE_URL: base, "accept-encoding": "identity"}
        url = f"{peer.address}{path}"
        asked = self._client.build_request(method, url, headers=given, files=files, timeout=timeout)
        try:
            answer = await self._client.send(asked, stream=True)
        except httpx.TransportError as error:
            if peer.address not in self._silent:
                # Once, until it responds again: clients repeat their requests.
                self._silent.add(peer.address)
                text = "the process with --peer-url %s does not respond: %s"
                _log.warning(text, peer.address, type(error).__name__)
            raise
        self._silent.discard(peer.address)
        kept = {name: value for name, value in answer.headers.items() if name.lower() not in _DROPPED}
        return ContentResponse(_Answer(answer), answer.status_code, kept, answer.headers.get("content-type", JSON))


class _Answer(Content):
    """The content of another process's response, passed on as fast as the client reads."""

    def __init__(self, answer: httpx.Response) -> None:
        super().__init__(int(answer.headers.get("content-length", 0)))
        self._answer = answer

    async def pieces(self) -> AsyncIterator[bytes | memoryview]:
        try:
            async for piece in self._answer.aiter_raw():
                yield piece
        except httpx.HTTPError as error:
            raise OSError("the other process does not send the rest") from error

    async def aclose(self) -> None:
        await self._answer.aclose()
