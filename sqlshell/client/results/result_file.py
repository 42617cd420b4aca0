"""A large result as one file, downloaded from the service that has it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from sqlshell.client.http.downloads import download, is_strong
from sqlshell.client.http.lean_httpx import httpx
from sqlshell.client.http.transport import Transport
from sqlshell.errors import ShellError
from sqlshell.interface.models import PARQUET
from sqlshell.result import Column, FileUnavailable
from sqlshell.runtime.files import DownloadFile

SLACK_BYTES = 64 << 20
"""A file may be larger than the JSON of its rows by this many bytes."""


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

    async def fetch(self, place: Path) -> None:
        """Download the file to `place`. Raises FileUnavailable."""
        accept = f"{PARQUET}, application/json;q=0.5"
        with DownloadFile(place) as file:
            try:
                await download(self.transport(), self.path, accept, _Receiver(file, self.size * 2 + SLACK_BYTES))
            except (ShellError, OSError) as error:
                raise FileUnavailable from error


class _Receiver:
    """Writes a file of at most `limit` bytes. Methods raise OSError, and FileUnavailable if it is not a result's."""

    def __init__(self, file: DownloadFile, limit: int) -> None:
        self._file = file
        self._limit = limit
        self._left = 0

    @property
    def tag(self) -> str:
        return self._file.tag

    @property
    def size(self) -> int:
        return self._file.tell()

    def check(self, headers: Mapping[str, str], kept: int, left: int | None) -> None:
        disk = os.fstatvfs(self._file.fileno())
        room = min(self._limit - kept, disk.f_bavail * disk.f_frsize)
        if headers.get("content-type", "") != PARQUET or left is None or left > room:
            raise FileUnavailable
        self._left = left

    def restart(self, tag: str) -> None:
        self._file.restart(tag if is_strong(tag) else "")

    def add(self, piece: bytes) -> None:
        self._left -= len(piece)
        if self._left < 0:
            raise FileUnavailable
        self._file.write(piece)

    async def refusal(self, response: httpx.Response) -> Exception:
        return FileUnavailable()
