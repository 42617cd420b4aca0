"""Downloads of resources: written to a temporary file, resumed after an interruption, verified, then renamed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

import httpx
from msgspec import Struct

from sqlshell.client.http.downloads import download as run_download
from sqlshell.client.http.transport import Transport
from sqlshell.client.statements.protocol import read_refusal
from sqlshell.errors import OutputError, ProtocolError, ServiceError, ShellError, UsageError, reason

TYPES = ("function_source", "descriptor_source")
ERROR_BYTES = 1 << 20

_SHA256 = re.compile(r'^(?:W/)?"?(?:sha256[:=-])?([0-9a-f]{64})"?$', re.I)

Progress = Callable[[float | None, str], None]


class Download(Struct, frozen=True):
    path: Path
    size: int
    sha256: str
    checked: bool
    """Whether the service sent a checksum, which was then verified."""
    resumed: int
    """Bytes that an earlier attempt had downloaded."""


def resource_path(kind: str, organization: str, name: str, *, legacy: bool) -> str:
    """The path of a resource at the service. Raises UsageError for an unknown type."""
    if kind not in TYPES:
        raise UsageError(f"unknown resource type {kind!r}", f"expected {' or '.join(TYPES)}")
    head = "/copy" if legacy else "/v2/download"
    return f"{head}/{kind}/{quote(organization, safe='')}/{quote(name, safe='')}"


async def download(transport: Transport, path: str, place: Path, *, force: bool, progress: Progress) -> Download:
    """GET `path` and write it to the file `place`.

    Raises UsageError if the file exists and `force` is not set, OutputError, and the errors of the transport. An
    incomplete download is kept next to the file as `.NAME.part`, and the next call resumes it if the service still has
    the same version.
    """
    part = _Part(place, transport, progress, force=force)
    await run_download(transport, path, "application/octet-stream", part, transport.say)
    digest = part.sha256()
    match = _SHA256.match(part.tag) if part.tag else None
    checksum = part.checksum or (match[1] if match else "")
    if checksum and checksum.lower() != digest:
        part.drop()
        raise ProtocolError(
            f"{place.name} is corrupt: its SHA-256 is {digest}; expected {checksum[:64]}",
            "the download was discarded; try again",
        )
    size = part.size
    part.finish(force=force)
    return Download(place, size, digest, bool(checksum), part.resumed)


class _Part:
    """A file that is being downloaded, up to the download limit, with the ETag that identifies its version."""

    def __init__(self, place: Path, transport: Transport, progress: Progress, *, force: bool) -> None:
        if place.is_dir():
            raise UsageError(f"{place} is a directory")
        if place.exists() and not force:
            raise UsageError(f"{place} already exists", "use --force to overwrite it")
        if not place.parent.exists():
            raise UsageError(f"directory {place.parent} does not exist", "create the directory first")
        if not place.parent.is_dir():
            raise UsageError(f"{place.parent} is not a directory")
        self._place = place
        self._path = place.with_name(f".{place.name}.part")
        self._tag_path = place.with_name(f".{place.name}.part.etag")
        self._transport = transport
        self._progress = progress
        self._done = 0
        self._whole: int | None = None
        self.tag = ""
        self.checksum = ""
        """The SHA-256 that the service sent, in hex; "" if it sent none."""
        if self._path.is_symlink() or self._tag_path.is_symlink():
            raise OutputError(f"{self._path} is a symbolic link; refusing to write through it")
        with contextlib.suppress(OSError, UnicodeDecodeError):
            self.tag = self._tag_path.read_text().strip()
        if not self.tag:
            self.drop()
        self.resumed = self.size
        """The bytes of an earlier program that have been kept."""

    @property
    def size(self) -> int:
        try:
            return self._path.stat().st_size
        except OSError:
            return 0

    def check(self, headers: Mapping[str, str], kept: int, left: int | None) -> None:
        self._done, self._whole = kept, None if left is None else kept + left
        self._check_size(self._whole or 0)
        self.checksum = _checksum(headers)

    def restart(self, tag: str) -> None:
        self.drop()
        self.tag, self.resumed = tag, 0
        with self._failing():
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            if tag:
                self._tag_path.write_text(tag)

    def add(self, piece: bytes) -> None:
        self._done += len(piece)
        self._check_size(self._done)
        with self._failing(), self._path.open("ab") as file:
            file.write(piece)
        whole = f" of {self._whole:,}" if self._whole else ""
        self._progress(self._done / self._whole if self._whole else None, f"{self._done:,}{whole} bytes")

    async def refusal(self, response: httpx.Response) -> ShellError:
        return await _refused(self._transport, response)

    def sha256(self) -> str:
        with self._failing(), self._path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def finish(self, *, force: bool) -> None:
        with self._failing():
            with self._path.open("rb") as file:
                os.fsync(file.fileno())
            if force:
                self._path.replace(self._place)
            else:
                # Fails if the file has been created in the meantime.
                os.link(self._path, self._place)
                self._path.unlink()
            self._tag_path.unlink(missing_ok=True)

    def drop(self) -> None:
        for path in (self._path, self._tag_path):
            with contextlib.suppress(OSError):
                path.unlink()

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except FileExistsError:
            raise UsageError(f"{self._place} already exists", "use --force to overwrite it") from None
        except OSError as error:
            raise OutputError(f"cannot write to {self._place}: {reason(error)}") from error

    def _check_size(self, size: int) -> None:
        """Raises ServiceError if the file is larger than the limit, and removes it. 0 means no limit."""
        limit = self._transport.network.download_limit
        if limit and size > limit:
            self.drop()
            raise ServiceError(
                f"the resource from {self._transport.target.name} is larger than the download limit of"
                f" {limit >> 20:,} MiB",
                "the download was discarded; raise the limit with --download-limit MIB (0 = no limit)",
            )


async def _refused(transport: Transport, response: httpx.Response) -> ShellError:
    body, status = b"", response.status_code
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > ERROR_BYTES:
            break
    if status == 404:
        return ServiceError(
            f"{transport.target.name} has no such resource",
            "list resources with LIST FUNCTION_SOURCES; or LIST DESCRIPTOR_SOURCES;",
        )
    return read_refusal(status, response.headers, body, transport.target.name, response.url.path)


def _checksum(headers: Mapping[str, str]) -> str:
    """The SHA-256 in a header, in hex; "" if there is none."""
    if plain := _SHA256.match(headers.get("x-checksum-sha256", "")):
        return plain[1]
    for name in ("repr-digest", "content-digest", "digest"):
        match = re.search(r"sha-256=:?([A-Za-z0-9+/]{43}=):?", headers.get(name, ""), re.I)
        if match and (name != "content-digest" or "content-range" not in headers):
            import base64

            return base64.b64decode(match[1]).hex()
    return ""
