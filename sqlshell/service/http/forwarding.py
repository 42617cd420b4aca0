"""Requests about what another process of the service has are passed on to it."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
from collections.abc import Coroutine, Mapping
from typing import Any, Final

import httpx
import msgspec
from starlette.requests import Request
from starlette.responses import Response

from sqlshell.interface.models import StatementRequest
from sqlshell.service.cluster.cluster import BEAT_SECONDS, Cluster, Peer
from sqlshell.service.http.auth import caller_of
from sqlshell.service.objects.attachments import Attachments
from sqlshell.service.statements.ledger import Record
from sqlshell.service.storage.storage import StorageError
from sqlshell.service.wire.error_messages import message

_log = logging.getLogger("sqlshell.service")

FORWARDED: Final = "sqlshell-forwarded"
"""The header of a request that was passed on, with a key; it is not passed on again."""

PROCESS: Final = "sqlshell-process"
"""The header of a submission that was passed on, with the ID of the process that has the session."""

_REQUEST: Final = ("authorization", "accept", "prefer")
_DROPPED: Final = frozenset({"connection", "content-length", "date", "keep-alive", "server", "transfer-encoding"})
_SUBMITTING: Final = httpx.Timeout(connect=2.0, read=60.0, write=60.0, pool=10.0)
_LOOKING_UP: Final = httpx.Timeout(connect=2.0, read=8.0, write=8.0, pool=10.0)
"""A process that holds its lease but does not respond, such as a suspended one, does not hold up lookups."""


LOST: Final = (
    "the process of the service that has this session stopped responding: the session is lost, and the statement may "
    "have begun (see LIST QUERIES)"
)

RESTARTED: Final = (
    "the process of the service that had this session has ended: the statement was not run; "
    "try again when the service has noticed it, after about 10 seconds"
)


class _LeaseEnded(Exception):
    """The process to which a request was passed on is taken for dead."""


class Forwarding:
    """Passes requests on with the token of their sender, who is authorized there as here."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._key = cluster.key("forwarding").hex()
        self._client = httpx.AsyncClient(trust_env=False, limits=httpx.Limits(max_connections=None))
        self._silent: set[str] = set()
        """The addresses of processes that the last request did not reach."""

    async def submission(self, request: Request, asked: StatementRequest, files: Attachments) -> Response | None:
        """The response of the process that has the session of a submission; None if it is this one.

        Raises StorageError.
        """
        name = (asked.parameters.session_id if asked.parameters else None) or ""
        if self._was_forwarded(request):
            # A process that was started again at the same address has no session of the one before it.
            if request.headers.get(PROCESS) != self._cluster.id:
                return message(RESTARTED, 503, {"Retry-After": "2"})
            return None
        peer = await asyncio.to_thread(self._cluster.place_of_session, caller_of(request).token_id, name)
        if peer is None:
            return None
        body = msgspec.json.encode(asked)
        with contextlib.ExitStack() as stack:
            given: dict[str, Any] = {
                "content": body,
                "headers": {"content-type": "application/json", PROCESS: peer.process},
                "timeout": _SUBMITTING,
            }
            if files.files:
                parts: list[Any] = [("request", (None, body, "application/json"))]
                for item in files.files:
                    parts.append(("attachments", (item.name, stack.enter_context(item.path.open("rb")))))
                given = {"files": parts, "headers": {PROCESS: peer.process}, "timeout": _SUBMITTING}
            work = self._passed_on(request, "POST", peer.address, "/v2/statements", given)
            try:
                return await self._while_alive(work, peer)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                said = "the process of the service that has this session does not respond; try again"
                return message(said, 503, {"Retry-After": "2"})
            except _LeaseEnded:
                return message(LOST, 503, {"Retry-After": "2"})
            except httpx.HTTPError:
                return message("the process of the service that has this session stopped responding", 502)

    async def look_up(self, request: Request, record: Record) -> Response | None:
        """The response of the process that has a statement; None if it is this one, or does not respond.

        Raises StorageError.
        """
        if self._was_forwarded(request):
            return None
        place = await asyncio.to_thread(self._cluster.address_of, record.process)
        if not place:
            return None
        path = f"{request.url.path}{f'?{request.url.query}' if request.url.query else ''}"
        try:
            return await self._passed_on(request, request.method, place, path, {"headers": {}, "timeout": _LOOKING_UP})
        except httpx.HTTPError:
            return None

    async def _while_alive(self, work: Coroutine[Any, Any, Response], peer: Peer) -> Response:
        """Wait for the response of a process. Raises _LeaseEnded if it is taken for dead meanwhile: it then runs
        nothing that it has not begun.
        """
        task = asyncio.ensure_future(work)
        try:
            while not (await asyncio.wait({task}, timeout=BEAT_SECONDS))[0]:
                with contextlib.suppress(StorageError):
                    if not await asyncio.to_thread(self._cluster.is_member, peer.process):
                        raise _LeaseEnded
            return await task
        finally:
            task.cancel()

    def _was_forwarded(self, request: Request) -> bool:
        """Whether another process passed the request on. Only processes know the key."""
        given = request.headers.get(FORWARDED, "")
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._key.encode())

    async def close(self) -> None:
        await self._client.aclose()

    async def _passed_on(
        self, request: Request, method: str, place: str, path: str, given: Mapping[str, Any]
    ) -> Response:
        headers = {name: request.headers[name] for name in _REQUEST if name in request.headers}
        headers |= {**given["headers"], FORWARDED: self._key, "accept-encoding": "identity"}
        try:
            answer = await self._client.request(method, f"{place}{path}", **{**given, "headers": headers})
        except httpx.TransportError as error:
            if place not in self._silent:
                # Once, until it responds again: clients repeat their requests.
                self._silent.add(place)
                _log.warning("the process with --peer-url %s does not respond: %s", place, type(error).__name__)
            raise
        self._silent.discard(place)
        kept = {name: value for name, value in answer.headers.items() if name.lower() not in _DROPPED}
        return Response(answer.content, answer.status_code, kept)
