"""Downloads whose bytes are kept, so that they continue where an earlier attempt ended."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Protocol

import httpx

from sqlshell.client.http.retries import Retries, is_retried
from sqlshell.client.http.transport import Transport
from sqlshell.errors import Busy, ConnectionBroken, ProtocolError, ShellError

_RANGE = re.compile(r"bytes ([0-9]{1,18})-[0-9]{1,18}/(?:[0-9]{1,18}|\*)")


class Destination(Protocol):
    """What a download is written to. An error that a method raises ends the download, unless it is one that is retried.

    `tag` is the ETag of the version that the bytes belong to; "" if it is not known.
    """

    @property
    def tag(self) -> str: ...

    @property
    def size(self) -> int:
        """The number of bytes that are there."""

    def check(self, headers: Mapping[str, str], kept: int, left: int | None) -> None:
        """Raise an error if the response is not to be written: `kept` bytes stay, and `left` bytes follow, None if the
        service does not say how many."""

    def restart(self, tag: str) -> None:
        """Remove all bytes; those that follow are of the version `tag`."""

    def add(self, piece: bytes) -> None: ...

    async def refusal(self, response: httpx.Response) -> Exception:
        """The error for a response without the file."""


async def download(
    transport: Transport, path: str, accept: str, into: Destination, say: Callable[[str], None] | None = None
) -> None:
    """GET `path` and write the body, or the missing part of it. `say` reports retries.

    Raises the errors of the transport and of `into`.
    """
    tries = Retries(transport.network, idempotent=True, known=True)
    while True:
        try:
            return await _attempt(transport, path, accept, into)
        except ShellError as error:
            wait = tries.after_error(error)
            if wait is None:
                raise
            if say is not None:
                say(tries.named(error.message, wait, "resuming"))
            await asyncio.sleep(wait)


async def _attempt(transport: Transport, path: str, accept: str, into: Destination) -> None:
    name = transport.target.name
    had = into.size if is_strong(into.tag) else 0
    headers = {"Accept": accept, "Accept-Encoding": "identity"}
    if had:
        headers |= {"Range": f"bytes={had}-", "If-Range": into.tag}
    async with transport.stream(path, headers) as (response, moved):
        status, given = response.status_code, response.headers
        if is_retried(status):
            raise Busy(f"{name} responded with {status}", status, given)
        if status == 416 and had:
            if given.get("content-range", "") == f"bytes */{had}":
                # Nothing is missing.
                return
            into.restart("")
            raise ConnectionBroken(f"{name} changed the file during the download")
        if status not in {200, 206}:
            raise await into.refusal(response)
        if given.get("content-encoding", "") not in {"", "identity"}:
            raise ProtocolError(f"{name} sent the file with an unsupported Content-Encoding")
        kept = had if status == 206 else 0
        if status == 206 and _begin(given) != had:
            raise ProtocolError(f"{name} did not resume the download at byte {had:,}")
        length = given.get("content-length", "")[:20]
        left = int(length) if length.isdecimal() else None
        into.check(given, kept, left)
        if not kept:
            into.restart(given.get("etag", ""))
        received = 0
        async for piece in response.aiter_raw():
            received += len(piece)
            moved(len(piece))
            into.add(piece)
        if left is not None and received != left:
            progress = f"{kept + received:,} of {kept + left:,} bytes"
            raise ConnectionBroken(f"{name} closed the connection after {progress}")


def is_strong(tag: str) -> bool:
    """Whether files of this ETag have the same bytes."""
    return tag.startswith('"')


def _begin(headers: Mapping[str, str]) -> int | None:
    """The index of the first byte of a part; None if unknown."""
    match = _RANGE.fullmatch(headers.get("content-range", ""))
    return int(match[1]) if match else None
