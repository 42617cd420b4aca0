"""Request bodies: a multipart form or bare JSON becomes a StatementRequest."""

from __future__ import annotations

import zoneinfo
from collections.abc import Mapping

import msgspec
from python_multipart.multipart import MultipartParser, parse_options_header

from sqlshell.interface.models import StatementRequest

STATEMENT_LIMIT = 16 << 20
"""Characters of a statement."""

BODY_LIMIT = 64 << 20
"""Bytes of a body: a statement of the longest length, escaped, and small attachments."""

_REQUEST = msgspec.json.Decoder(StatementRequest)


class BadRequest(Exception):
    """What is wrong with a request, for its sender; `status` is the HTTP status."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


def read_request(content_type: str, body: bytes) -> StatementRequest:
    """The request in a body. Raises BadRequest that names the field."""
    kind, options = parse_options_header(content_type)
    match kind:
        case b"application/json":
            text = body
        case b"multipart/form-data":
            if not options.get(b"boundary"):
                raise BadRequest("Content-Type: multipart/form-data without a boundary")
            parts = _parts(body, options[b"boundary"])
            if "request" not in parts:
                raise BadRequest("the part 'request' is missing")
            text = parts["request"]
        case _:
            raise BadRequest("Content-Type: multipart/form-data or application/json is expected", 415)
    try:
        request = _REQUEST.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"request: {error}") from None
    if not request.statement.strip():
        raise BadRequest("request.statement is empty")
    if len(request.statement) > STATEMENT_LIMIT:
        raise BadRequest(f"request.statement is longer than {STATEMENT_LIMIT >> 20} MiB", 413)
    if request.parameters is not None:
        check_timezone(request.parameters.timezone, "request.parameters.timezone")
        if request.parameters.row_limit is not None and request.parameters.row_limit < 0:
            raise BadRequest("request.parameters.rowLimit is negative")
    return request


def check_timezone(name: str | None, place: str) -> None:
    """Raises BadRequest for a time zone that nobody knows."""
    if name is None or name == "UTC":
        return
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise BadRequest(f"{place}: there is no time zone {name[:100]!r}") from None


def _parts(body: bytes, boundary: bytes) -> Mapping[str, bytes]:
    """The parts of a form by name; the first of each name counts. A form that is cut short is a BadRequest."""
    parts: dict[str, bytes] = {}
    header = [b"", b""]
    content: list[bytes] = []
    name = [""]
    ended: list[bool] = []

    def begin() -> None:
        name[0] = ""
        content.clear()

    def header_field(data: bytes, start: int, end: int) -> None:
        header[0] += data[start:end]

    def header_value(data: bytes, start: int, end: int) -> None:
        header[1] += data[start:end]

    def header_end() -> None:
        if header[0].lower() == b"content-disposition":
            _, options = parse_options_header(header[1])
            name[0] = options.get(b"name", b"").decode("utf-8", "replace")
        header[:] = [b"", b""]

    def data(chunk: bytes, start: int, end: int) -> None:
        content.append(chunk[start:end])

    def part_end() -> None:
        parts.setdefault(name[0], b"".join(content))

    parser = MultipartParser(
        boundary,
        {
            "on_part_begin": begin,
            "on_header_field": header_field,
            "on_header_value": header_value,
            "on_header_end": header_end,
            "on_part_data": data,
            "on_part_end": part_end,
            "on_end": lambda: ended.append(True),
        },
    )
    try:
        parser.write(body)
        parser.finalize()
    except ValueError as error:
        raise BadRequest(f"the form cannot be read: {error}") from None
    if not ended:
        raise BadRequest("the form ends before its closing boundary")
    return parts
