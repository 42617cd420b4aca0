"""Conditions and ranges of requests for files (RFC 9110)."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from starlette.requests import Request

CHUNK = 1 << 20
TAG = re.compile(r'(?:W/)?("[^"]*")')


class Span(Struct, frozen=True):
    """The bytes in [start, end)."""

    start: int
    end: int


class ConditionalResponse(Struct, frozen=True):
    """The response to a request for a file: its status and headers, and the bytes; None for a response without them."""

    status: int
    headers: dict[str, str]
    span: Span | None = None


def conditional_response(request: Request, tag: str, size: int) -> ConditionalResponse:
    """The response to a request for a file of `size` bytes with the ETag `tag`: 200, 206, 304, 412 or 416."""
    headers = {"ETag": tag, "Accept-Ranges": "bytes"}
    if "if-match" in request.headers and not _names(request, "if-match", tag, weak=False):
        return ConditionalResponse(412, headers)
    if _names(request, "if-none-match", tag, weak=True):
        return ConditionalResponse(304, headers)
    span = None
    if request.headers.get("if-range", tag) == tag:
        try:
            span = read_range(request.headers.get("range", ""), size)
        except ValueError:
            return ConditionalResponse(416, {**headers, "Content-Range": f"bytes */{size}"})
    if span is None:
        return ConditionalResponse(200, {**headers, "Content-Length": str(size)}, Span(0, size))
    headers["Content-Range"] = f"bytes {span.start}-{span.end - 1}/{size}"
    return ConditionalResponse(206, {**headers, "Content-Length": str(span.end - span.start)}, span)


def prefers(request: Request, media: str, other: str) -> bool:
    """Whether a request names the media type `media` in Accept, and does not prefer `other`."""
    weights = _weights(request)
    return weights.get(media, 0.0) > 0 and weights[media] >= weights.get(other, 0.0)


def has_preference(request: Request, name: str) -> bool:
    """Whether the headers Prefer (RFC 7240) of a request contain a preference without a value."""
    return any(wish.strip().lower() == name for line in request.headers.getlist("prefer") for wish in line.split(","))


def accepts(request: Request, media: str) -> bool:
    """Whether a request accepts a media type, by name or by a range such as */*."""
    weights = _weights(request)
    ranges = (media, f"{media.partition('/')[0]}/*", "*/*")
    return next((weights[name] for name in ranges if name in weights), 0.0) > 0


def chunks(path: Path, span: Span) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(span.start)
        left = span.end - span.start
        while left and (chunk := file.read(min(CHUNK, left))):
            left -= len(chunk)
            yield chunk


def read_range(header: str, size: int) -> Span | None:
    """Parse a Range header; None for a form that may be ignored (several ranges).

    Raises ValueError for a range that cannot be satisfied.
    """
    match = re.fullmatch(r"\s*bytes\s*=\s*(\d{0,18})\s*-\s*(\d{0,18})\s*", header)
    if not match or not (match[1] or match[2]):
        return None
    if not match[1]:
        length = min(int(match[2]), size)
        if not length:
            raise ValueError(header)
        return Span(size - length, size)
    start, end = int(match[1]), min(int(match[2]) + 1, size) if match[2] else size
    if match[2] and int(match[2]) < start:
        return None
    if start >= size:
        raise ValueError(header)
    return Span(start, end)


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
