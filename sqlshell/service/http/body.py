"""Reads request bodies, a multipart form or JSON, as they arrive; attachments are written to disk."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import tempfile
import zoneinfo
from collections.abc import AsyncIterator, Collection, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct, field
from python_multipart.multipart import MultipartParser, parse_options_header

from sqlshell.interface.models import StatementRequest
from sqlshell.service.bounds import UNLIMITED, limit_note
from sqlshell.service.failure import Failure
from sqlshell.service.http.decoding import RunInThread, TooManyStrings, decode_request
from sqlshell.service.objects.attachments import Attachment, Attachments
from sqlshell.service.objects.valid_names import check_name
from sqlshell.service.wire.budget import Lease

# python_multipart logs each form that it cannot read. The client gets an error instead, so that clients cannot fill the
# log of the service.
logging.getLogger("python_multipart").setLevel(logging.ERROR)

ESCAPED = 6
"""The maximum number of bytes of one character in JSON, such as \\u0000."""

BODY_PART = 8
"""One body may use 1/8 of the memory for all bodies, because decoding it delays all other requests."""

MEMBERS = 4000
"""The maximum number of strings of a request besides its statements: keys and values."""

PARTS = 100
"""The maximum number of parts of a form besides its attachments."""

PIECE = 256 << 10
"""Bytes of a form that are read in the event loop; the rest is read in threads."""

OVERHEAD = 64 << 10
"""The maximum size of a request without its statement, in bytes."""

HEADERS = 16 << 10
"""The maximum size of the headers of a form's part, in bytes."""

BATCH = 1000
"""The maximum number of statements of a batch."""


class BadRequest(Exception):
    """A request that is refused; `status` is the HTTP status of the response."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


class Form(Struct):
    """The fields of a form by name, and its files."""

    fields: dict[str, bytes] = field(default_factory=dict)
    attachments: Attachments = field(default_factory=Attachments)


class Limits(Struct, frozen=True):
    """Limits for request bodies.

    `statement` is in characters; `attachment` is bytes of all files together; `attachments` is the number of files;
    `name` is characters of a field of the context; `statements` is the size of a batch; `bodies` is bytes of all bodies
    that are being received.
    """

    statement: int
    attachment: int
    attachments: int
    name: int = 255
    statements: int = BATCH
    bodies: int = UNLIMITED

    @property
    def text(self) -> int:
        """The maximum size of a form's fields or of a JSON body, in bytes."""
        return min(self.statement * ESCAPED, self.bodies // BODY_PART) + OVERHEAD


async def read_form(
    content_type: str,
    stream: AsyncIterator[bytes],
    limits: Limits,
    *,
    fields: Collection[str],
    files: str,
    folder: Path,
    lease: Lease | None = None,
    files_lease: Lease | None = None,
) -> Form:
    """Read a multipart form: each of `fields` once, and any number of files in parts named `files`.

    Files are written to `folder`; other parts are ignored. `lease` counts the memory of the fields, `files_lease` the
    size of the files until the form is closed. Raises BadRequest that names the part, or says that the disk is full.
    """
    _, options = parse_options_header(content_type)
    if not options.get(b"boundary"):
        raise BadRequest("Content-Type: multipart/form-data has no boundary")
    parts = _Parts(limits, fields, files, folder, lease, files_lease)
    try:
        parser = MultipartParser(options[b"boundary"], parts.callbacks())  # type: ignore[arg-type]
        size = 0
        async for chunk in stream:
            size += len(chunk)
            if size <= PIECE:
                parser.write(chunk)
            else:
                await asyncio.to_thread(parser.write, chunk)
        parser.finalize()
        if not parts.ended:
            raise BadRequest("the form ends without its closing boundary")
    except ValueError as error:
        parts.abort()
        raise BadRequest(f"cannot read the form: {error}") from None
    except BaseException:
        parts.abort()
        raise
    return parts.form


def _grow(lease: Lease | None, size: int, bound: str = "bodies_size") -> None:
    if lease is not None and not lease.grow(size):
        raise BadRequest(f"too much data is being uploaded at once {limit_note(bound)}; try again later", 503)


def check_encoding(encoding: str) -> None:
    """Raises BadRequest (415) for a compressed body."""
    if encoding.strip().lower() not in {"", "identity"}:
        raise BadRequest(f"Content-Encoding: {encoding[:40]!r} is not supported; send the body uncompressed", 415)


async def read_request(
    stream: AsyncIterator[bytes], limits: Limits, elsewhere: RunInThread, lease: Lease | None = None
) -> StatementRequest:
    """Decode a statement request; long steps are run by `elsewhere`. Raises BadRequest that names the field."""
    try:
        request = await decode_request(_bounded(stream, limits, lease), BATCH + MEMBERS, elsewhere)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        detail = str(error)
        if "truncated" in detail or "surrogate" in detail:
            detail += r"; the body may be incomplete, or contain half of a surrogate pair, such as \ud800 alone"
        raise BadRequest(f"request: {detail}") from None
    except RecursionError:
        raise BadRequest("request: the JSON is nested too deeply") from None
    except TooManyStrings as error:
        raise BadRequest(f"request: {error}", 413) from None
    _check_request(request, limits)
    return request


async def _bounded(stream: AsyncIterator[bytes], limits: Limits, lease: Lease | None) -> AsyncIterator[bytes]:
    size = 0
    async for chunk in stream:
        _grow(lease, len(chunk))
        size += len(chunk)
        if size > limits.text:
            raise BadRequest(f"the body is larger than {limits.text} bytes {limit_note('bodies_size')}", 413)
        yield chunk


async def pieces(text: bytes) -> AsyncIterator[bytes]:
    """Yield a field of a form in chunks."""
    for start in range(0, len(text), PIECE):
        yield text[start : start + PIECE]


def _check_request(request: StatementRequest, limits: Limits) -> None:
    """Raises BadRequest that names the field."""
    if request.statements is None:
        check_statement(request.statement, "request.statement", limits)
    else:
        _check_batch(request, limits)
    check_names(request, limits.name)
    if request.parameters is not None:
        check_timezone(request.parameters.timezone, "request.parameters.timezone")
        if request.parameters.row_limit is not None and request.parameters.row_limit < 0:
            raise BadRequest("request.parameters.rowLimit must not be negative")
        if request.parameters.transaction not in {None, "open", "failed"}:
            raise BadRequest(
                f"request.parameters.transaction: expected open or failed, not {request.parameters.transaction[:40]!r}"
            )


def _check_batch(request: StatementRequest, limits: Limits) -> None:
    statements = request.statements or []
    if request.statement:
        raise BadRequest("request.statement and request.statements cannot be used together")
    most = min(BATCH, limits.statements)
    if not 0 < len(statements) <= most:
        detail = f"request.statements has {len(statements)} statements; 1 to {most} are allowed"
        raise BadRequest(f"{detail} {limit_note('statements')}" if statements and most < BATCH else detail)
    if not all(map(str.strip, statements)):
        number = next(number for number, text in enumerate(statements) if not text.strip())
        raise BadRequest(f"request.statements[{number}] is empty")
    if sum(map(len, statements)) > limits.statement:
        raise BadRequest(f"request.statements is longer than {limits.statement} characters", 413)
    if request.on_error not in {None, "stop", "continue"}:
        raise BadRequest(f"request.onError: expected stop or continue, not {request.on_error[:40]!r}")


def check_names(request: StatementRequest, most: int) -> None:
    """Raises BadRequest if a field of the context or the session's ID is longer than `most` characters, or if the ID
    could be shown as another one.
    """
    parameters = request.parameters
    given = {
        "organization": request.organization,
        "role": request.role,
        "database": request.database,
        "schema": request.schema,
        "store": request.store,
        "computePool": request.compute_pool,
        "parameters.timezone": parameters.timezone if parameters is not None else None,
        "parameters.sessionID": parameters.session_id if parameters is not None else None,
    }
    for name, text in given.items():
        if text is not None and len(text) > most:
            raise BadRequest(f"request.{name} is longer than {most} characters {limit_note('name')}")
    try:
        check_name((parameters.session_id if parameters is not None else None) or "")
    except Failure as failure:
        raise BadRequest(f"request.parameters.sessionID: {failure.message}") from None


def check_statement(text: str, place: str, limits: Limits) -> None:
    if not text.strip():
        raise BadRequest(f"{place} is empty")
    if len(text) > limits.statement:
        raise BadRequest(f"{place} is longer than {limits.statement} characters", 413)


NOT_ZONES = frozenset({"localtime", "posixrules"})
"""Files in the system's time zone database that are not time zones."""


def check_timezone(name: str | None, place: str) -> None:
    """Raises BadRequest for an unknown time zone."""
    if name is None or name == "UTC":
        return
    try:
        if name in NOT_ZONES:
            raise ValueError
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise BadRequest(f"{place}: unknown time zone {name[:100]!r}") from None


def base_name(given: bytes) -> str:
    """The last component of a file name, with slashes or backslashes."""
    return given.decode("utf-8", "replace").replace("\\", "/").rpartition("/")[2].replace("\0", "")


class _Parts:
    """The callbacks of the multipart parser."""

    def __init__(
        self,
        limits: Limits,
        fields: Collection[str],
        files: str,
        folder: Path,
        lease: Lease | None,
        files_lease: Lease | None,
    ) -> None:
        self._lease = lease
        self._files_lease = files_lease
        self._parts = 0
        self._fields = fields
        self.form = Form()
        if files_lease is not None:
            self.form.attachments.on_close = files_lease.close
        self.ended = False
        self._limits = limits
        self._files = files
        self._folder = folder
        self._field, self._value = b"", b""
        self._name, self._filename = "", b""
        self._text = bytearray()
        self._texts = 0
        self._bytes = 0
        self._headers = 0
        self._file: BinaryIO | None = None

    def callbacks(self) -> dict[str, object]:
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._header_field,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_headers_finished": self._headers_end,
            "on_part_data": self._data,
            "on_part_end": self._end,
            "on_end": self._finish,
        }

    def abort(self) -> None:
        if self._file is not None:
            # If the disk is full, what was not written yet cannot be written now either.
            with contextlib.suppress(OSError):
                self._file.close()
        self.form.attachments.close()

    def _begin(self) -> None:
        self._parts += 1
        if self._parts > PARTS + self._limits.attachments:
            raise BadRequest(f"the form has more than {PARTS + self._limits.attachments} parts", 413)
        self._name, self._filename = "", b""
        self._text = bytearray()
        self._headers = 0

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._count(end - start)
        self._field += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._count(end - start)
        self._value += data[start:end]

    def _count(self, number: int) -> None:
        self._headers += number
        if self._headers > HEADERS:
            raise BadRequest("the headers of a part are too long")

    def _header_end(self) -> None:
        if self._field.lower() == b"content-disposition":
            _, options = parse_options_header(self._value)
            self._name = options.get(b"name", b"").decode("utf-8", "replace")
            self._filename = options.get(b"filename", b"")
        self._field, self._value = b"", b""

    def _headers_end(self) -> None:
        if self._name != self._files:
            if self._name in self.form.fields and self._name in self._fields:
                raise BadRequest(f"part {self._name!r} occurs more than once")
            return
        name = base_name(self._filename)
        if name in {"", ".", ".."}:
            raise BadRequest(f"part {self._files!r} has no file name")
        if len(self.form.attachments.files) >= self._limits.attachments:
            raise BadRequest(f"{self._files}: more than {self._limits.attachments} files", 413)
        with self._storing():
            handle, path = tempfile.mkstemp(dir=self._folder)
        self._file = os.fdopen(handle, "wb")
        self.form.attachments.files.append(Attachment(name, Path(path)))

    def _data(self, chunk: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self._bytes += end - start
            if self._bytes > self._limits.attachment:
                raise BadRequest(f"{self._files}: more than {self._limits.attachment} bytes", 413)
            _grow(self._files_lease, end - start, "uploads_size")
            with self._storing():
                self._file.write(chunk[start:end])
            return
        self._texts += end - start
        if self._texts > self._limits.text:
            raise BadRequest(f"{self._name}: more than {self._limits.text} bytes {limit_note('bodies_size')}", 413)
        if self._name in self._fields:
            _grow(self._lease, end - start)
            self._text += chunk[start:end]

    def _end(self) -> None:
        if self._file is not None:
            with self._storing():
                self._file.close()
            self._file = None
        elif self._name in self._fields:
            self.form.fields[self._name] = bytes(self._text)

    def _finish(self) -> None:
        self.ended = True

    @contextlib.contextmanager
    def _storing(self) -> Iterator[None]:
        """Raises BadRequest if a file cannot be written."""
        try:
            yield
        except OSError as error:
            # The message of the error would reveal where the service stores files.
            raise BadRequest(f"{self._files}: cannot store the file: {error.strerror or 'error'}", 507) from error


def media_type(content_type: str, known: Collection[str]) -> str:
    """The media type of a body. Raises BadRequest (415) if it is not one of `known`."""
    kind = parse_options_header(content_type)[0].decode("latin-1").lower()
    if kind not in known:
        raise BadRequest(f"Content-Type: expected {' or '.join(known)}", 415)
    return kind
