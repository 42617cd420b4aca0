"""Reads the bodies of requests, JSON or a form, within limits of size, memory and disk space, and checks their fields.

Every function raises BadRequest; its message names the field.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import tempfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
from python_multipart.multipart import MultipartParser, MultipartState, parse_options_header
from starlette.requests import Request

from sqlshell.context import is_timezone
from sqlshell.errors import reason
from sqlshell.interface.models import StatementRequest
from sqlshell.service.failure import Failure
from sqlshell.service.http.auth import caller_of
from sqlshell.service.http.budget import Budget, Lease
from sqlshell.service.http.responses import JSON, BadRequest
from sqlshell.service.objects.attachments import Attachment, Attachments
from sqlshell.service.objects.names import check_name
from sqlshell.service.settings import Settings, limit_note
from sqlshell.service.statements.service import StatementService

# python_multipart logs each form that it cannot read. The client gets an error instead, so that clients cannot fill the
# log of the service.
logging.getLogger("python_multipart").setLevel(logging.ERROR)

FORM = "multipart/form-data"

STATEMENT_BYTES = 2
"""Bytes of JSON that a character of a statement may take. Decoding blocks all threads, so the whole is limited."""

BODY_PART = 8
"""One body may use 1/8 of the memory for all bodies."""

OVERHEAD = 64 << 10
"""The maximum size of a request without its statements, in bytes."""

ESCAPED = 12
"""Bytes of JSON that one character takes at most."""

BATCH = 1000
"""The maximum number of statements of a batch."""

STRINGS = BATCH + 4000
"""The maximum number of strings of a request: statements, keys and other values."""

CONTROL_SIZE = 4 << 10
"""A request of up to this many bytes may be about statements, and is accepted when others are refused."""

PARTS = 100
"""The maximum number of parts of a form besides its attachments."""

LARGE = 256 << 10
"""What is larger, in bytes, is decoded or stored in a thread."""

NOT_ZONES = frozenset({"localtime", "posixrules"})
"""Files in the system's time zone database that are not time zones."""

_decode = msgspec.json.Decoder(StatementRequest).decode


class Bodies:
    """Reads the bodies of requests. submission() also raises Refusal."""

    def __init__(self, statements: StatementService, settings: Settings) -> None:
        self._statements = statements
        self._settings = settings
        self._memory = Budget(settings.bodies_size)
        self._uploads = Budget(settings.uploads_size)

    async def submission(self, request: Request) -> tuple[StatementRequest, Attachments]:
        """Read the body of a submission: JSON, or a form with the part "request" and attachments."""
        kind = media_type(request, (FORM, JSON))
        size = request.headers.get("content-length", "0")
        # Checked before the body is read: refusing early is cheaper.
        may_be_control = not size.isdecimal() or int(size) <= CONTROL_SIZE
        self._statements.check_room(caller_of(request), 2 if may_be_control else 1)
        if kind == FORM:
            form = await self.form(request, ("request",), "attachments")
            try:
                if "request" not in form.fields:
                    raise BadRequest("part 'request' is missing")
                return await decoded(form.fields["request"], self._settings), form.attachments
            except BaseException:
                form.attachments.close()
                raise
        with contextlib.closing(Lease(self._memory, caller_of(request).organization)) as lease:
            return await decoded(await read_body(request, self._settings, lease), self._settings), Attachments()

    async def form(self, request: Request, fields: Collection[str], files: str) -> Form:
        """Read a form with these text fields, and files in the parts named `files`."""
        media_type(request, (FORM,))
        holder, folder = caller_of(request).organization, self._statements.organizations.uploads
        with contextlib.closing(Lease(self._memory, holder)) as lease:
            form = Form(self._settings, fields, files, folder, lease, Lease(self._uploads, holder))
            await form.read(request)
        return form


def media_type(request: Request, known: Collection[str]) -> str:
    """Return the media type of a body. Raises BadRequest (415) if it is not one of `known`, or if the body is
    compressed.
    """
    encoding = request.headers.get("content-encoding", "")
    if encoding.strip().lower() not in {"", "identity"}:
        raise BadRequest(f"Content-Encoding: {encoding[:40]!r} is not supported; send the body uncompressed", 415)
    kind = parse_options_header(request.headers.get("content-type", ""))[0].decode("latin-1").lower()
    if kind not in known:
        raise BadRequest(f"Content-Type: expected {' or '.join(known)}", 415)
    return kind


async def read_body(request: Request, settings: Settings, lease: Lease) -> bytearray:
    """Read a body of JSON."""
    body, most = bytearray(), text_limit(settings)
    async for chunk in request.stream():
        grow(lease, len(chunk))
        body += chunk
        if len(body) > most:
            raise BadRequest(f"the body is larger than {most} bytes {limit_note('bodies_size')}", 413)
    return body


def text_limit(settings: Settings) -> int:
    """Return the maximum size of a form's fields together, or of a JSON body, in bytes."""
    return min(settings.statement_limit * STATEMENT_BYTES, settings.bodies_size // BODY_PART) + OVERHEAD


async def decoded(body: bytearray, settings: Settings) -> StatementRequest:
    """Decode a statement request, in a thread if it is large."""
    quotes = body.count(b'"')
    if quotes > 2 * STRINGS and quotes - body.count(b'\\"') > 2 * STRINGS:
        raise BadRequest(f"request: the body has more than {STRINGS} strings", 413)
    try:
        request = await asyncio.to_thread(_decode, body) if len(body) > LARGE else _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        detail = str(error)
        if "truncated" in detail or "surrogate" in detail:
            detail += r"; the body may be incomplete, or contain half of a surrogate pair, such as \ud800 alone"
        raise BadRequest(f"request: {detail}") from None
    except RecursionError:
        raise BadRequest("request: the JSON is nested too deeply") from None
    if not request.statement and request.statements is None:
        _check_members(body)
    check_request(request, settings)
    if len(body) > OVERHEAD + ESCAPED * sum(map(len, request.statements or [request.statement])):
        raise BadRequest(f"request: more than {OVERHEAD} bytes besides the statements", 413)
    return request


def _check_members(body: bytearray) -> None:
    """Raises BadRequest for a request without a member `statement` that has an unknown one, perhaps mistyped."""
    known = {field.encode_name for field in msgspec.structs.fields(StatementRequest)}
    members = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    unknown = next((name for name in members if name not in known), "")
    if unknown and "statement" not in members:
        raise BadRequest(f"request.statement is missing; unknown member {unknown[:40]!r}")


def grow(lease: Lease, size: int, bound: str = "bodies_size") -> None:
    """Reserve more memory, or disk space, for a body. Raises BadRequest (503) if there is none."""
    if not lease.grow(size):
        raise BadRequest(f"too much data is being uploaded at once {limit_note(bound)}; try again later", 503)


class Form:
    """A multipart form: each of the fields `known` once, and any number of files in parts named `files`.

    Files are written to the folder that `folder` returns; other parts are ignored. `lease` counts the memory of the
    fields, `uploads` the size of the files until the attachments are closed.

    Unlike Starlette's form(), it limits all texts together, and writes a file once, to its final place.
    """

    def __init__(
        self,
        settings: Settings,
        known: Collection[str],
        files: str,
        folder: Callable[[], Path],
        lease: Lease,
        uploads: Lease,
    ) -> None:
        self.fields: dict[str, bytearray] = {}
        self.attachments = Attachments(on_close=uploads.close)
        self._settings = settings
        self._text_limit = text_limit(settings)
        self._known = known
        self._files = files
        self._folder = folder
        self._lease = lease
        self._uploads = uploads
        self._parts = self._texts = self._bytes = 0
        self._header, self._disposition = bytearray(), bytearray()
        self._name = ""
        self._file: BinaryIO | None = None

    async def read(self, request: Request) -> None:
        boundary = parse_options_header(request.headers.get("content-type", ""))[1].get(b"boundary")
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
                },
            )
            size = 0
            async for chunk in request.stream():
                size += len(chunk)
                if size <= LARGE:
                    parser.write(chunk)
                else:
                    await asyncio.to_thread(parser.write, chunk)
            parser.finalize()
            if parser.state is not MultipartState.END:
                raise BadRequest("the form ends without its closing boundary")
        except BaseException as error:
            if self._file is not None:
                # If the disk is full, what was not written yet cannot be written now either.
                with contextlib.suppress(OSError):
                    self._file.close()
            self.attachments.close()
            if isinstance(error, ValueError):
                raise BadRequest(f"cannot read the form: {error}") from None
            raise

    def _begin(self) -> None:
        self._parts += 1
        most = PARTS + self._settings.attachments
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
            if self._name in self.fields:
                raise BadRequest(f"part {self._name!r} occurs more than once")
            if self._name in self._known:
                self.fields[self._name] = bytearray()
            return
        name = base_name(options.get(b"filename", b""))
        if name in {"", ".", ".."}:
            raise BadRequest(f"part {self._files!r} has no file name")
        if len(self.attachments.files) >= self._settings.attachments:
            raise BadRequest(f"{self._files}: more than {self._settings.attachments} files", 413)
        with self._storing():
            handle, path = tempfile.mkstemp(dir=self._folder())
        self._file = os.fdopen(handle, "wb")
        self.attachments.files.append(Attachment(name, Path(path)))

    def _data(self, chunk: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self._bytes += end - start
            if self._bytes > self._settings.attachment_limit:
                raise BadRequest(f"{self._files}: more than {self._settings.attachment_limit} bytes", 413)
            grow(self._uploads, end - start, "uploads_size")
            with self._storing():
                self._file.write(chunk[start:end])
            return
        self._texts += end - start
        if self._texts > self._text_limit:
            raise BadRequest(f"{self._name}: more than {self._text_limit} bytes {limit_note('bodies_size')}", 413)
        if self._name in self.fields:
            grow(self._lease, end - start)
            self.fields[self._name] += chunk[start:end]

    def _end(self) -> None:
        if self._file is not None:
            with self._storing():
                self._file.close()
            self._file = None

    @contextlib.contextmanager
    def _storing(self) -> Iterator[None]:
        """Raises BadRequest if a file cannot be written."""
        try:
            yield
        except OSError as error:
            # The message of the error would reveal where the service stores files.
            why = reason(error) if error.strerror else "error"
            raise BadRequest(f"{self._files}: cannot store the file: {why}", 507) from error


def base_name(given: bytes) -> str:
    """Return the last component of a file name, with slashes or backslashes."""
    return given.decode("utf-8", "replace").replace("\\", "/").rpartition("/")[2].replace("\0", "")


def check_request(request: StatementRequest, settings: Settings) -> None:
    if request.statements is None:
        check_statement(request.statement, "request.statement", settings)
    else:
        _check_batch(request, settings)
    check_names(request, settings)
    if request.parameters is not None:
        check_timezone(request.parameters.timezone, "request.parameters.timezone")
        if request.parameters.row_limit is not None and request.parameters.row_limit < 0:
            raise BadRequest("request.parameters.rowLimit must not be negative")
        if request.parameters.transaction not in {None, "open", "failed"}:
            raise BadRequest(
                f"request.parameters.transaction: expected open or failed, not {request.parameters.transaction[:40]!r}"
            )


def _check_batch(request: StatementRequest, settings: Settings) -> None:
    statements = request.statements or []
    if request.statement:
        raise BadRequest("request.statement and request.statements cannot be used together")
    most = min(BATCH, settings.statements)
    if not 0 < len(statements) <= most:
        raise BadRequest(f"request.statements has {len(statements)} statements; 1 to {most} are allowed")
    if not all(map(str.strip, statements)):
        number = next(number for number, text in enumerate(statements) if not text.strip())
        raise BadRequest(f"request.statements[{number}] is empty")
    if sum(map(len, statements)) > settings.statement_limit:
        raise BadRequest(f"request.statements is longer than {settings.statement_limit} characters", 413)
    if request.on_error not in {None, "stop", "continue"}:
        raise BadRequest(f"request.onError: expected stop or continue, not {request.on_error[:40]!r}")


def check_names(request: StatementRequest, settings: Settings) -> None:
    """Check the length of the fields of the context and of the session's ID, and that nothing in the ID could be shown
    as another one.
    """
    most, parameters = settings.name_length, request.parameters
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
            raise BadRequest(f"request.{name} is longer than {most} characters")
    try:
        check_name((parameters.session_id if parameters is not None else None) or "")
    except Failure as failure:
        raise BadRequest(f"request.parameters.sessionID: {failure.message}") from None


def check_statement(text: str, place: str, settings: Settings) -> None:
    if not text.strip():
        raise BadRequest(f"{place} is empty")
    if len(text) > settings.statement_limit:
        raise BadRequest(f"{place} is longer than {settings.statement_limit} characters", 413)


def check_timezone(name: str | None, place: str) -> None:
    if name is not None and name != "UTC" and (name in NOT_ZONES or not is_timezone(name)):
        raise BadRequest(f"{place}: unknown time zone {name[:100]!r}")
