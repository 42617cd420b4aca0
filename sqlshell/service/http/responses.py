"""Responses: errors, JSON, and bytes that are sent as fast as the client reads them, whole or in part (RFC 9110)."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any, BinaryIO

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sqlshell.service.http.budget import Lease

CONNECTION = "sqlshell.connection"
"""Key of the connection in the state of a request's scope."""

JSON = "application/json"

NOT_RUN = {"Sqlshell-Not-Run": "true"}
"""A header: the request had no effect, so a client may send its statements again."""

PIECE = 256 << 10
"""Bytes that are passed to a connection at once; the next piece follows when these are sent."""

UNAVAILABLE = "the database of the service does not respond; try again"

TAG = re.compile(r'(?:W/)?("[^"]*")')


class BadRequest(Exception):
    """A request that is refused; `status` is the HTTP status of the response."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


def message(text: str, status: int, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode({"message": text}), status, headers, JSON)


def json_response(body: bytes, status: int = 200) -> Response:
    return Response(body, status, media_type=JSON)


def connection_of(scope: Scope) -> Any:
    """Return the Connection of a request; None in the embedded service, which has none and does not import it."""
    return scope.get("state", {}).get(CONNECTION)


class Content:
    """Bytes for one reader, `size` of them: a `body`, or the next bytes of a file. aclose() also ends the lease of
    their memory.
    """

    def __init__(self, size: int, body: bytes = b"", file: BinaryIO | None = None, lease: Lease | None = None) -> None:
        self.size = size
        self._body = body
        self._file = file
        self._lease = lease

    def limit(self, start: int, end: int) -> None:
        """Leave only the bytes [start, end) of the file. Raises OSError."""
        assert self._file is not None
        self._file.seek(start)
        self.size = end - start

    async def pieces(self) -> AsyncIterator[bytes | memoryview]:
        """Yield the bytes in pieces. Raises OSError."""
        if self._file is None:
            whole = memoryview(self._body)
            for start in range(0, self.size, PIECE):
                yield whole[start : start + PIECE]
            return
        left = self.size
        while left:
            piece = await asyncio.to_thread(self._file.read, min(left, PIECE))
            if not piece:
                raise OSError("the file is too short")
            left -= len(piece)
            yield piece

    async def aclose(self) -> None:
        if self._file is not None:
            self._file.close()
        if self._lease is not None:
            self._lease.close()


class ContentResponse(Response):
    """A response whose content is sent in pieces, as fast as the client reads."""

    def __init__(
        self,
        content: Content,
        status: int = 200,
        headers: Mapping[str, str] = {},
        media: str = JSON,
        *,
        before: bytes = b"",
        behind: bytes = b"",
    ) -> None:
        super().__init__(None, status, headers, media)
        self._content = content
        self._before, self._behind = before, behind
        self.headers["content-length"] = str(len(before) + content.size + len(behind))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = connection_of(scope)
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            if scope["method"] != "HEAD":
                await send({"type": "http.response.body", "body": self._before, "more_body": True})
                async for piece in self._content.pieces():
                    if connection is not None and connection.gone:
                        return
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": self._behind})
        except OSError:
            # The rest is missing: the connection is closed, because the response is incomplete.
            return
        finally:
            await self._content.aclose()


async def file_response(
    request: Request, content: Content, tag: str, media: str, headers: Mapping[str, str] = {}
) -> Response:
    """Make the response to a request for a file with the ETag `tag`, whole or in part: 200, 206, 304, 412 or 416."""
    own, span, refusal = {"ETag": tag, "Accept-Ranges": "bytes"}, None, None
    if "if-match" in request.headers and not _names(request, "if-match", tag, weak=False):
        refusal = message("the ETag of the file has changed", 412, own)
    elif _names(request, "if-none-match", tag, weak=True):
        refusal = Response(None, 304, own)
    elif request.headers.get("if-range", tag) == tag:
        try:
            span = read_range(request.headers.get("range", ""), content.size)
        except ValueError:
            text = "range not satisfiable: it starts after the end of the file"
            refusal = message(text, 416, {**own, "Content-Range": f"bytes */{content.size}"})
    if refusal is not None:
        await content.aclose()
        return refusal
    if span is None:
        return ContentResponse(content, 200, {**own, **headers}, media)
    own["Content-Range"] = f"bytes {span[0]}-{span[1] - 1}/{content.size}"
    content.limit(*span)
    return ContentResponse(content, 206, {**own, **headers}, media)


def prefers(request: Request, media: str, other: str) -> bool:
    """Return whether a request names the media type `media` in Accept, and does not prefer `other`."""
    weights = _weights(request)
    return weights.get(media, 0.0) > 0 and weights[media] >= weights.get(other, 0.0)


def has_preference(request: Request, name: str) -> bool:
    """Return whether the headers Prefer (RFC 7240) of a request contain a preference without a value."""
    return any(wish.strip().lower() == name for line in request.headers.getlist("prefer") for wish in line.split(","))


def accepts(request: Request, media: str) -> bool:
    """Return whether a request accepts a media type, by name or by a range such as */*."""
    weights = _weights(request)
    ranges = (media, f"{media.partition('/')[0]}/*", "*/*")
    return next((weights[name] for name in ranges if name in weights), 0.0) > 0


def read_range(header: str, size: int) -> tuple[int, int] | None:
    """Parse a Range header into the offsets of its first byte and behind its last; None for a form that may be ignored
    (several ranges).

    Raises ValueError for a range that cannot be satisfied.
    """
    match = re.fullmatch(r"\s*bytes\s*=\s*(\d{0,18})\s*-\s*(\d{0,18})\s*", header)
    if not match or not (match[1] or match[2]):
        return None
    if not match[1]:
        length = min(int(match[2]), size)
        if not length:
            raise ValueError(header)
        return size - length, size
    start, end = int(match[1]), min(int(match[2]) + 1, size) if match[2] else size
    if match[2] and int(match[2]) < start:
        return None
    if start >= size:
        raise ValueError(header)
    return start, end


def _names(request: Request, header: str, tag: str, *, weak: bool) -> bool:
    """Whether a condition lists the tag, or "*". A weak tag counts only if `weak` is set."""
    given = ",".join(request.headers.getlist(header))
    return given.strip() == "*" or any(
        match[1] == tag and (weak or not match[0].startswith("W/")) for match in TAG.finditer(given)
    )


def _weights(request: Request) -> dict[str, float]:
    """The media types in Accept with their weights."""
    weights: dict[str, float] = {}
    for item in ",".join(request.headers.getlist("accept")).split(","):
        name, *parameters = (part.strip().lower() for part in item.split(";"))
        weights[name] = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                with contextlib.suppress(ValueError):
                    weights[name] = float(parameter[2:])
    return weights
