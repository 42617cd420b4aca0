"""Reads the bodies of requests within shared limits of memory and disk space."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from functools import partial

from starlette.requests import Request

from sqlshell.interface.models import StatementRequest
from sqlshell.service.catalog import OPERATOR
from sqlshell.service.http.auth import caller_of
from sqlshell.service.http.body import (
    BadRequest,
    Form,
    Limits,
    check_encoding,
    media_type,
    pieces,
    read_form,
    read_request,
)
from sqlshell.service.http.decoding import RunInThread
from sqlshell.service.objects.attachments import Attachments
from sqlshell.service.options import Options
from sqlshell.service.statements.service import StatementService
from sqlshell.service.wire.budget import Budget, Lease

JSON = "application/json"
FORM = "multipart/form-data"


class Bodies:
    """Reads the bodies of requests. Every method raises BadRequest, and submission() also Refusal."""

    def __init__(self, statements: StatementService, options: Options) -> None:
        self._statements = statements
        bounds = options.bounds
        self._memory = Budget(bounds.bodies_size)
        self._uploads = Budget(bounds.uploads_size)
        self.limits = Limits(
            options.statement_limit,
            options.attachment_limit,
            options.attachments,
            bounds.name,
            bounds.statements,
            bounds.bodies_size,
        )

    def lease(self, request: Request) -> Lease:
        """The share of the memory for request bodies that this request uses."""
        return Lease(self._memory, caller_of(request).organization)

    async def submission(self, request: Request, lease: Lease) -> tuple[StatementRequest, Attachments]:
        """The body of a submission: JSON, or a form with the part "request" and attachments."""
        check_encoding(request.headers.get("content-encoding", ""))
        kind, caller = media_type(request.headers.get("content-type", ""), (FORM, JSON)), caller_of(request)
        size = request.headers.get("content-length", "0")
        elsewhere: RunInThread = partial(self._statements.thread.run, caller.organization or OPERATOR)
        # Checked before the body is read: refusing early is cheaper.
        self._statements.admission.check_room(caller, int(size) if size.isdecimal() else 0)
        if kind == JSON:
            return await read_request(request.stream(), self.limits, elsewhere, lease), Attachments()
        form = await self._read_form(request, ("request",), "attachments", lease)
        try:
            if "request" not in form.fields:
                raise BadRequest("part 'request' is missing")
            return await read_request(pieces(form.fields.pop("request")), self.limits, elsewhere), form.attachments
        except BaseException:
            form.attachments.close()
            raise

    async def form(self, request: Request, fields: Collection[str], files: str, lease: Lease) -> Form:
        """A form with these text fields, and files in the parts named `files`."""
        media_type(request.headers.get("content-type", ""), (FORM,))
        check_encoding(request.headers.get("content-encoding", ""))
        return await self._read_form(request, fields, files, lease)

    async def _read_form(self, request: Request, fields: Collection[str], files: str, lease: Lease) -> Form:
        folder = await asyncio.to_thread(self._statements.organizations.uploads)
        return await read_form(
            request.headers.get("content-type", ""),
            request.stream(),
            self.limits,
            fields=fields,
            files=files,
            folder=folder,
            lease=lease,
            files_lease=Lease(self._uploads, caller_of(request).organization),
        )
