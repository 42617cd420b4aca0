"""Reads the bodies of requests, JSON or a form, within limits of size, memory and disk space."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import tempfile
from collections.abc import AsyncIterator, Collection, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct, field
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from sqlshell.interface.models import StatementRequest
from sqlshell.service.http.auth import caller_of
from sqlshell.service.http.budget import Budget, Lease
from sqlshell.service.http.checks import BATCH, Limits, check_request
from sqlshell.service.http.errors import JSON, BadRequest
from sqlshell.service.objects.attachments import Attachment, Attachments
from sqlshell.service.settings import Settings, limit_note
from sqlshell.service.statements.service import StatementService

# python_multipart logs each form that it cannot read. The client gets an error instead, so that clients cannot fill the
# log of the service.
logging.getLogger("python_multipart").setLevel(logging.ERROR)

FORM = "multipart/form-data"

STRINGS = BATCH + 4000
"""The maximum number of strings of a request: statements, keys and other values."""

PARTS = 100
"""The maximum number of parts of a form besides its attachments."""

LARGE = 256 << 10
"""What is larger, in bytes, is decoded or stored in a thread."""

_decode = msgspec.json.Decoder(StatementRequest).decode


class Form(Struct):
    """The fields of a form by name, and its files."""

    fields: dict[str, bytearray] = field(default_factory=dict)
    attachments: Attachments = field(default_factory=Attachments)


class Bodies:
    """Reads the bodies of requests. Every method raises BadRequest, and submission() also Refusal."""

    def __init__(self, statements: StatementService, settings: Settings) -> None:
        self._statements = statements
        self._memory = Budget(settings.bodies_size)
        self._uploads = Budget(settings.uploads_size)
        self.limits = Limits(
            settings.statement_limit,
            settings.attachment_limit,
            settings.attachments,
            settings.name_length,
            settings.statements,
            settings.bodies_size,
        )

    def lease(self, request: Request) -> Lease:
        """The share of the memory for request bodies that this request uses."""
        return Lease(self._memory, caller_of(request).organization)

    async def submission(self, request: Request, lease: Lease) -> tuple[StatementRequest, Attachments]:
        """The body of a submission: JSON, or a form with the part "request" and attachments."""
        kind = media_type(request, (FORM, JSON))
        size = request.headers.get("content-length", "0")
        # Checked before the body is read: refusing early is cheaper.
        self._statements.admission.check_room(caller_of(request), int(size) if size.isdecimal() else 0)
        if kind == JSON:
            body = await read_body(request.stream(), self.limits, lease)
            return await decoded(body, self.limits), Attachments()
        form = await self.form(request, ("request",), "attachments", lease)
        try:
            if "request" not in form.fields:
                raise BadRequest("part 'request' is missing")
            return await decoded(form.fields.pop("request"), self.limits), form.attachments
        except BaseException:
            form.attachments.close()
            raise

    async def form(self, request: Request, fields: Collection[str], files: str, lease: Lease) -> Form:
        """A form with these text fields, and files in the parts named `files`."""
        media_type(request, (FORM,))
        folder = await asyncio.to_thread(self._statements.organizations.uploads)
        uploads = Lease(self._uploads, caller_of(request).organization)
        reader = FormReader(self.limits, fields, files, folder, lease, uploads)
        return await reader.read(request.headers.get("content-type", ""), request.stream())


def media_type(request: Request, known: Collection[str]) -> str:
    """The media type of a body. Raises BadRequest (415) if it is not one of `known`, or if the body is compressed."""
    encoding = request.headers.get("content-encoding", "")
    if encoding.strip().lower() not in {"", "identity"}:
        raise BadRequest(f"Content-Encoding: {encoding[:40]!r} is not supported; send the body uncompressed", 415)
    kind = parse_options_header(request.headers.get("content-type", ""))[0].decode("latin-1").lower()
    if kind not in known:
        raise BadRequest(f"Content-Type: expected {' or '.join(known)}", 415)
    return kind


async def read_body(stream: AsyncIterator[bytes], limits: Limits, lease: Lease) -> bytearray:
    """Read a body of JSON. Raises BadRequest if it is too large, or has too many strings."""
    body = bytearray()
    async for chunk in stream:
        grow(lease, len(chunk))
        body += chunk
        if len(body) > limits.text:
            raise BadRequest(f"the body is larger than {limits.text} bytes {limit_note('bodies_size')}", 413)
    return body


async def decoded(body: bytearray, limits: Limits) -> StatementRequest:
    """Decode a statement request, in a thread if it is large. Raises BadRequest that names the field."""
    strings = 0
    for start in range(0, len(body), LARGE):
        # Unescaped quotes, of which each string has two. Looked at in pieces, because each look blocks all threads.
        piece = body[start : start + LARGE]
        strings += piece.count(b'"') - piece.count(b'\\"')
        if strings > 2 * STRINGS:
            raise BadRequest(f"request: the body has more than {STRINGS} strings", 413)
        await asyncio.sleep(0)
    try:
        request = await asyncio.to_thread(_decode, body) if len(body) > LARGE else _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        detail = str(error)
        if "truncated" in detail or "surrogate" in detail:
            detail += r"; the body may be incomplete, or contain half of a surrogate pair, such as \ud800 alone"
        raise BadRequest(f"request: {detail}") from None
    except RecursionError:
        raise BadRequest("request: the JSON is nested too deeply") from None
    check_request(request, limits)
    return request


def grow(lease: Lease, size: int, bound: str = "bodies_size") -> None:
    """Reserve more memory, or disk space, for a body. Raises BadRequest (503) if there is none."""
    if not lease.grow(size):
        raise BadRequest(f"too much data is being uploaded at once {limit_note(bound)}; try again later", 503)


class FormReader:
    """Reads a multipart form: each of `fields` once, and any number of files in parts named `files`.

    Files are written to `folder`; other parts are ignored. `lease` counts the memory of the fields, `uploads` the size
    of the files until the form is closed.

    Unlike Starlette's form(), it limits all texts together, and writes a file once, to its final place.
    """

    def __init__(
        self, limits: Limits, fields: Collection[str], files: str, folder: Path, lease: Lease, uploads: Lease
    ) -> None:
        self._limits = limits
        self._fields = fields
        self._files = files
        self._folder = folder
        self._lease = lease
        self._uploads = uploads
        self._form = Form()
        self._form.attachments.on_close = uploads.close
        self._parts = self._texts = self._bytes = 0
        self._ended = False
        self._header, self._disposition = bytearray(), bytearray()
        self._name = ""
        self._file: BinaryIO | None = None

    async def read(self, content_type: str, stream: AsyncIterator[bytes]) -> Form:
        """Raises BadRequest that names the part, or says that the disk is full."""
        boundary = parse_options_header(content_type)[1].get(b"boundary")
        if not boundary:
            raise BadRequest("Content-Type: multipart/form-data has no boundary")
        try:
            parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._begin,
                    "on_header_field": self._header_field,
                    "on_header_value": self._header_value,
                    "on_header_end": self._header.clear,
                    "on_headers_finished": self._headers_finished,
                    "on_part_data": self._data,
                    "on_part_end": self._end,
                    "on_end": self._finish,
                },
            )
            size = 0
            async for chunk in stream:
                size += len(chunk)
                if size <= LARGE:
                    parser.write(chunk)
                else:
                    await asyncio.to_thread(parser.write, chunk)
            parser.finalize()
            if not self._ended:
                raise BadRequest("the form ends without its closing boundary")
        except BaseException as error:
            if self._file is not None:
                # If the disk is full, what was not written yet cannot be written now either.
                with contextlib.suppress(OSError):
                    self._file.close()
            self._form.attachments.close()
            if isinstance(error, ValueError):
                raise BadRequest(f"cannot read the form: {error}") from None
            raise
        return self._form

    def _begin(self) -> None:
        self._parts += 1
        most = PARTS + self._limits.attachments
        if self._parts > most:
            raise BadRequest(f"the form has more than {most} parts", 413)
        self._name = ""
        self._disposition.clear()

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        if self._header.lower() == b"content-disposition":
            self._disposition += data[start:end]

    def _headers_finished(self) -> None:
        options = parse_options_header(bytes(self._disposition))[1]
        self._name = options.get(b"name", b"").decode("utf-8", "replace")
        if self._name != self._files:
            if self._name in self._form.fields:
                raise BadRequest(f"part {self._name!r} occurs more than once")
            if self._name in self._fields:
                self._form.fields[self._name] = bytearray()
            return
        name = base_name(options.get(b"filename", b""))
        if name in {"", ".", ".."}:
            raise BadRequest(f"part {self._files!r} has no file name")
        if len(self._form.attachments.files) >= self._limits.attachments:
            raise BadRequest(f"{self._files}: more than {self._limits.attachments} files", 413)
        with self._storing():
            handle, path = tempfile.mkstemp(dir=self._folder)
        self._file = os.fdopen(handle, "wb")
        self._form.attachments.files.append(Attachment(name, Path(path)))

    def _data(self, chunk: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self._bytes += end - start
            if self._bytes > self._limits.attachment:
                raise BadRequest(f"{self._files}: more than {self._limits.attachment} bytes", 413)
            grow(self._uploads, end - start, "uploads_size")
            with self._storing():
                self._file.write(chunk[start:end])
            return
        self._texts += end - start
        if self._texts > self._limits.text:
            raise BadRequest(f"{self._name}: more than {self._limits.text} bytes {limit_note('bodies_size')}", 413)
        if self._name in self._form.fields:
            grow(self._lease, end - start)
            self._form.fields[self._name] += chunk[start:end]

    def _end(self) -> None:
        if self._file is not None:
            with self._storing():
                self._file.close()
            self._file = None

    def _finish(self) -> None:
        self._ended = True

    @contextlib.contextmanager
    def _storing(self) -> Iterator[None]:
        """Raises BadRequest if a file cannot be written."""
        try:
            yield
        except OSError as error:
            # The message of the error would reveal where the service stores files.
            raise BadRequest(f"{self._files}: cannot store the file: {error.strerror or 'error'}", 507) from error


def base_name(given: bytes) -> str:
    """The last component of a file name, with slashes or backslashes."""
    return given.decode("utf-8", "replace").replace("\\", "/").rpartition("/")[2].replace("\0", "")
