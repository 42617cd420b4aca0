"""Checks the fields of a request. An error names the field."""

from __future__ import annotations

import zoneinfo

from msgspec import Struct

from sqlshell.interface.models import StatementRequest
from sqlshell.service.failure import Failure
from sqlshell.service.http.errors import BadRequest
from sqlshell.service.objects.names import check_name
from sqlshell.service.settings import UNLIMITED

STATEMENT_BYTES = 2
"""Bytes of JSON that a character of a statement may take. Decoding blocks all threads, so the whole is limited."""

BODY_PART = 8
"""One body may use 1/8 of the memory for all bodies."""

OVERHEAD = 64 << 10
"""The maximum size of a request without its statement, in bytes."""

BATCH = 1000
"""The maximum number of statements of a batch."""

NOT_ZONES = frozenset({"localtime", "posixrules"})
"""Files in the system's time zone database that are not time zones."""


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
        """The maximum size of a form's fields together, or of a JSON body, in bytes."""
        return min(self.statement * STATEMENT_BYTES, self.bodies // BODY_PART) + OVERHEAD


def check_request(request: StatementRequest, limits: Limits) -> None:
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
        raise BadRequest(f"request.statements has {len(statements)} statements; 1 to {most} are allowed")
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
            raise BadRequest(f"request.{name} is longer than {most} characters")
    try:
        check_name((parameters.session_id if parameters is not None else None) or "")
    except Failure as failure:
        raise BadRequest(f"request.parameters.sessionID: {failure.message}") from None


def check_statement(text: str, place: str, limits: Limits) -> None:
    if not text.strip():
        raise BadRequest(f"{place} is empty")
    if len(text) > limits.statement:
        raise BadRequest(f"{place} is longer than {limits.statement} characters", 413)


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
