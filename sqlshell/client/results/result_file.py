"""A large result as one file, downloaded from the service that has it."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from sqlshell.client.http.retries import Retries
from sqlshell.client.http.transport import Transport
from sqlshell.errors import ConnectionBroken, ShellError
from sqlshell.interface.models import PARQUET
from sqlshell.result import Column
from sqlshell.runtime.download_file import DownloadFile

SLACK_BYTES = 64 << 20
"""A file may be larger than the JSON of its rows by this many bytes."""

_RANGE = re.compile(r"bytes ([0-9]{1,18})-[0-9]{1,18}/[0-9]{1,18}")


class Unavailable(Exception):
    """The result is not available as a file, only as partitions."""


class ResultFile(Struct):
    """Where the file of a result is, and what is known of the result: `rows` and, approximately, `size` in bytes of
    JSON. `zone` is the time zone of its instants, "" if it is not known."""

    transport: Callable[[], Transport]
    path: str
    statement_id: str
    columns: Sequence[Column]
    rows: int
    size: int
    zone: str
    downloaded: Path | None = None
    """Where the file has been downloaded to."""

    async def fetch(self, place: Path) -> None:
        """Download the file to `place`. Raises Unavailable."""
        if self.downloaded is not None:
            await asyncio.to_thread(_link_or_copy, self.downloaded, place)
            return
        with DownloadFile(place) as file:
            try:
                await self._download(file)
            except (ShellError, OSError) as error:
                raise Unavailable from error

    async def keep(self, file: DownloadFile) -> None:
        """Download the file, or the missing part of it, for fetch().

        Raises Unavailable, OSError and what the transport raises.
        """
        await self._download(file)
        self.downloaded = file.place

    async def _download(self, file: DownloadFile) -> None:
        tries = Retries(self.transport().network, idempotent=True, known=True)
        while True:
            try:
                return await self._attempt(file)
            except ShellError as error:
                wait = tries.after_error(error)
                if wait is None:
                    raise
                await asyncio.sleep(wait)

    async def _attempt(self, file: DownloadFile) -> None:
        """Download the file, or the rest of it. Raises Unavailable, OSError and what the transport raises."""
        transport = self.transport()
        had = file.tell() if file.tag else 0
        headers = {"Accept": f"{PARQUET}, application/json;q=0.5", "Accept-Encoding": "identity"}
        if had:
            headers |= {"Range": f"bytes={had}-", "If-Range": file.tag}
        async with transport.stream(self.path, headers) as response:
            if response.status_code in {408, 429, 500, 502, 503, 504}:
                raise ConnectionBroken(f"{transport.target.name} responded with {response.status_code}")
            if had and response.status_code == 416 and response.headers.get("content-range", "") == f"bytes */{had}":
                # Nothing is missing.
                return
            if response.status_code not in {200, 206} or response.headers.get("content-type", "") != PARQUET:
                raise Unavailable
            begun = _RANGE.fullmatch(response.headers.get("content-range", "")) if response.status_code == 206 else None
            if response.status_code == 200:
                had = 0
                tag = response.headers.get("etag", "")
                file.restart(tag if tag.startswith('"') else "")
            elif begun is None or int(begun[1]) != had:
                raise Unavailable
            length = response.headers.get("content-length", "")
            if not length.isdecimal() or response.headers.get("content-encoding", "identity") != "identity":
                raise Unavailable
            left = int(length[:18])
            disk = os.fstatvfs(file.fileno())
            if had + left > self.size * 2 + SLACK_BYTES or left > disk.f_bavail * disk.f_frsize:
                raise Unavailable
            async for piece in response.aiter_raw():
                left -= len(piece)
                if left < 0:
                    raise Unavailable
                file.write(piece)
            if left:
                raise ConnectionBroken(f"{transport.target.name} closed the connection in the middle of a result")


def _link_or_copy(file: Path, place: Path) -> None:
    try:
        place.hardlink_to(file)
    except OSError:
        # Another file system.
        shutil.copyfile(file, place)
