"""Downloads of resources: written to a temporary file, resumed after an interruption, verified, then renamed."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

from msgspec import Struct

from sqlshell.client.http.lean_httpx import httpx
from sqlshell.client.http.retries import Retries
from sqlshell.client.http.transport import Transport
from sqlshell.client.statements.protocol import read_lookup
from sqlshell.errors import ConnectionBroken, OutputError, ProtocolError, ServiceError, ShellError, UsageError

TYPES = ("function_source", "descriptor_source")
ERROR_BYTES = 1 << 20

_SHA256 = re.compile(r'^(?:W/)?"?(?:sha256[:=-])?([0-9a-f]{64})"?$', re.I)
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)")

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
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", kind):
        raise UsageError(f"unknown resource type {kind!r}", f"expected {' or '.join(TYPES)}")
    head = "/copy" if legacy else "/v2/download"
    return f"{head}/{kind}/{quote(organization, safe='')}/{quote(name, safe='')}"


async def download(transport: Transport, path: str, place: Path, *, force: bool, progress: Progress) -> Download:
    """GET `path` and write it to the file `place`.

    Raises UsageError if the file exists and `force` is not set, OutputError, and the errors of the transport. An
    incomplete download is kept next to the file as `.NAME.part`, and the next call resumes it if the service still has
    the same version.
    """
    part = _Part(place, force=force)
    tries = Retries(transport.network, idempotent=True, known=True)
    resumed = part.size
    while True:
        try:
            await _attempt(transport, path, part, progress)
            break
        except ShellError as error:
            wait = tries.after_error(error)
            if wait is None:
                raise
            transport.say(
                f"{error.message}: resuming in {wait:.1f} s (attempt {tries.attempts} of {transport.network.retries})"
            )
            await asyncio.sleep(wait)
    digest = part.sha256()
    told = _SHA256.match(part.etag) if part.etag else None
    checksum = part.checksum or (told[1] if told else "")
    if checksum and checksum.lower() != digest:
        part.drop()
        raise ProtocolError(
            f"{place.name} is corrupt: its SHA-256 is {digest}; expected {checksum[:64]}",
            "the download was discarded; try again",
        )
    size = part.size
    part.finish(force=force)
    return Download(place, size, digest, bool(checksum), min(resumed, size))


class _Part:
    """A file that is being downloaded, with the ETag that identifies its version."""

    def __init__(self, place: Path, *, force: bool) -> None:
        if place.is_dir():
            raise UsageError(f"{place} is a directory")
        if place.exists() and not force:
            raise UsageError(f"{place} already exists", "use --force to overwrite it")
        if not place.parent.is_dir():
            raise UsageError(f"{place.parent} is not a directory")
        self._place = place
        self._path = place.with_name(f".{place.name}.part")
        self._tag = place.with_name(f".{place.name}.part.etag")
        self.etag = ""
        self.checksum = ""
        if self._path.is_symlink() or self._tag.is_symlink():
            raise OutputError(f"{self._path} is a symbolic link; refusing to write through it")
        with contextlib.suppress(OSError, UnicodeDecodeError):
            self.etag = self._tag.read_text().strip()
        if not self.etag:
            self.drop()

    @property
    def size(self) -> int:
        try:
            return self._path.stat().st_size
        except OSError:
            return 0

    def begin(self, etag: str) -> None:
        """Start again from the first byte."""
        self.drop()
        self.etag = etag
        with self._failing():
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            if etag:
                self._tag.write_text(etag)

    def add(self, piece: bytes) -> None:
        with self._failing(), self._path.open("ab") as file:
            file.write(piece)

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
            self._tag.unlink(missing_ok=True)

    def drop(self) -> None:
        for path in (self._path, self._tag):
            with contextlib.suppress(OSError):
                path.unlink()

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except FileExistsError:
            raise UsageError(f"{self._place} already exists", "use --force to overwrite it") from None
        except OSError as error:
            raise OutputError(f"cannot write {self._place}: {error.strerror or error}") from error


async def _attempt(transport: Transport, path: str, part: _Part, progress: Progress) -> None:
    had = part.size if _strong(part.etag) else 0
    headers = {"Accept": "application/octet-stream", "Accept-Encoding": "identity"}
    if had:
        headers |= {"Range": f"bytes={had}-", "If-Range": part.etag}
    async with transport.stream(path, headers) as response:
        status = response.status_code
        if status == 416 and had:
            whole = _CONTENT_RANGE.sub("", response.headers.get("content-range", "")).rpartition("/")[2]
            if whole == str(had):
                return
            part.drop()
            raise ConnectionBroken(f"{transport.target.name} changed the resource during the download")
        if status not in {200, 206}:
            raise await _refused(transport, response.status_code, response)
        if response.headers.get("content-encoding", "identity") not in {"", "identity"}:
            raise ProtocolError(f"{transport.target.name} sent the resource with an unsupported Content-Encoding")
        if status == 206:
            _check_range(response.headers, had, transport.target.name)
        else:
            part.begin(response.headers.get("etag", ""))
            had = 0
        part.checksum = _checksum(response.headers)
        length = response.headers.get("content-length", "")[:20]
        whole_size = had + int(length) if length.isdecimal() else None
        done = had
        limit = transport.network.download_limit
        if whole_size is not None:
            _check_size(whole_size, limit, part, transport.target.name)
        async for piece in response.aiter_raw():
            done += len(piece)
            _check_size(done, limit, part, transport.target.name)
            part.add(piece)
            share = done / whole_size if whole_size else None
            progress(share, f"{done:,} of {whole_size:,} bytes" if whole_size else f"{done:,} bytes")
        if whole_size is not None and done != whole_size:
            raise ConnectionBroken(
                f"{transport.target.name} closed the connection after {done:,} of {whole_size:,} bytes"
            )


def _check_size(size: int, limit: int, part: _Part, base: str) -> None:
    """Raises ServiceError if the file is larger than the limit, and removes it. A limit of 0 is none."""
    if limit and size > limit:
        part.drop()
        said = f"the resource from {base} is larger than the download limit of {limit >> 20:,} MiB"
        raise ServiceError(said, "the download was discarded; raise the limit with --download-limit MIB (0 = no limit)")


async def _refused(transport: Transport, status: int, response: httpx.Response) -> ShellError:
    body = b""
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > ERROR_BYTES:
            break
    if status in {408, 429, 500, 502, 503, 504}:
        return ConnectionBroken(f"{transport.target.name} responded with {status}")
    if status == 404:
        return ServiceError(
            f"{transport.target.name} has no such resource",
            "list resources with LIST FUNCTION_SOURCES; or LIST DESCRIPTOR_SOURCES;",
        )
    step = read_lookup(status, response.headers, body, transport.target.name, "")
    error = getattr(step, "error", None)
    return error if isinstance(error, ShellError) else ServiceError(f"{transport.target.name} responded with {status}")


def _strong(etag: str) -> bool:
    return etag.startswith('"')


def _check_range(headers: Mapping[str, str], had: int, base: str) -> None:
    found = _CONTENT_RANGE.fullmatch(headers.get("content-range", ""))
    if found is None or int(found[1]) != had:
        raise ProtocolError(f"{base} did not resume the download at byte {had:,}")


def _checksum(headers: Mapping[str, str]) -> str:
    """The SHA-256 in a header, in hex; "" if there is none."""
    if plain := _SHA256.match(headers.get("x-checksum-sha256", "")):
        return plain[1]
    for name in ("repr-digest", "content-digest", "digest"):
        found = re.search(r"sha-256=:?([A-Za-z0-9+/]{43}=):?", headers.get(name, ""), re.I)
        if found and (name != "content-digest" or "content-range" not in headers):
            import base64

            return base64.b64decode(found[1]).hex()
    return ""
