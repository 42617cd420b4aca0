"""The legacy interface: POST /run-statement responds after the statements have finished, with all their rows."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import uuid
from collections.abc import AsyncIterator, Sequence

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from sqlshell.interface import sqlstate
from sqlshell.interface.models import Rows, StatementRequest
from sqlshell.service.catalog import Caller
from sqlshell.service.http.auth import caller_of
from sqlshell.service.http.bodies import Bodies, Form, check_names, check_statement
from sqlshell.service.http.responses import BadRequest, message
from sqlshell.service.http.results import Responses
from sqlshell.service.settings import Settings
from sqlshell.service.statements.executor import is_creation_row
from sqlshell.service.statements.service import StatementService
from sqlshell.service.statements.statement import Statement

WAIT_SECONDS = 300.0
"""How long a request waits for its statements. After that, the response is 408, and the statements continue."""

FIELDS = ("orgID", "databaseName", "schemaName", "storeName", "statement")
WITH_TARGET = frozenset({"create", "drop", "alter", "list", "describe", "use", "start", "stop", "terminate", "print"})
"""Statements that name a kind of object in their second word."""

_ROWS = msgspec.json.Decoder(Rows)
_WORDS = re.compile(r"\s*(\w+)(?:\s+(?:or\s+replace\s+|temp(?:orary)?\s+)*(\w+))?", re.I)


class Legacy:
    """Serves the legacy endpoints."""

    def __init__(self, statements: StatementService, settings: Settings, bodies: Bodies, responses: Responses) -> None:
        self._statements = statements
        self._settings = settings
        self._bodies = bodies
        self._responses = responses

    async def run(self, request: Request) -> Response:
        """Handle POST /run-statement."""
        form = await self._bodies.form(request, FIELDS, "attachment")
        try:
            asked = self._read(form)
        except BadRequest:
            form.attachments.close()
            raise
        caller = caller_of(request)
        records = await self._statements.submit(asked, caller, form.attachments)
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                for record in records:
                    await record.ready.wait()
        except TimeoutError:
            return message(f"statement {records[-1].statement_id} is still running", 408)
        failed = next((record for record in records if sqlstate.failed(record.sql_state)), None)
        if failed is not None:
            return message(f"{failed.sql_state}: {failed.message}", 400)
        if any(record.feed is not None for record in records):
            return message(f"{sqlstate.UNSUPPORTED}: a SELECT on a stream requires the /v2 endpoints", 400)
        return StreamingResponse(self._elements(records, caller), media_type="application/json")

    def _read(self, form: Form) -> StatementRequest:
        texts: dict[str, str] = {}
        for name in FIELDS:
            try:
                texts[name] = form.fields.get(name, bytearray()).decode()
            except UnicodeDecodeError:
                raise BadRequest(f"{name} is not valid UTF-8") from None
        check_statement(texts["statement"], "statement", self._settings)
        if texts["orgID"]:
            try:
                uuid.UUID(texts["orgID"])
            except ValueError:
                raise BadRequest(f"orgID: {texts['orgID'][:100]!r} is not a valid UUID") from None
        asked = StatementRequest(
            texts["statement"],
            texts["orgID"] or None,
            None,
            texts["databaseName"] or None,
            texts["schemaName"] or None,
            texts["storeName"] or None,
        )
        check_names(asked, self._settings)
        return asked

    async def _elements(self, records: Sequence[Statement], caller: Caller) -> AsyncIterator[bytes]:
        """One element for each statement, with its rows one partition at a time."""
        for number, record in enumerate(records):
            match = _WORDS.match(record.sql[:1000])
            action = match[1].lower() if match else ""
            target = (match[2] or "").lower() if match and action in WITH_TARGET else ""
            head: dict[str, str] = {"id": record.statement_id, "action": action, "target": target}
            outcome = record.outcome
            secret = record.take_secret() if record.owner == caller.token_id else None
            if secret is not None:
                head["secret"] = secret.value
            yield (b"," if number else b"[") + json.dumps(head).encode()[:-1] + b', "data": ['
            # The row of a statement that created something is omitted: `action` and `target` describe it.
            if outcome is not None and outcome.columns and not is_creation_row(outcome):
                names = _distinct([column.name or "" for column in outcome.columns])
                for partition in range(len(record.spool.layout.counts)):
                    async with contextlib.aclosing(await self._responses.rows(record, partition, "UTC")) as rows:
                        body = b"".join([piece async for piece in rows.pieces()])
                        objects = await asyncio.to_thread(_objects, names, body)
                        if objects:
                            yield (b"," if partition else b"") + objects
            yield b"]}"
        yield b"]"


def _objects(names: Sequence[str], body: bytes) -> bytes:
    rows = _ROWS.decode(b"[" + body + b"]")
    return b",".join(msgspec.json.encode(dict(zip(names, row, strict=True))) for row in rows)


def _distinct(names: Sequence[str]) -> list[str]:
    """Column names made unique: repeated names get a number."""
    unique: dict[str, None] = {}
    numbers: dict[str, int] = {}
    for name in names:
        number, candidate = numbers.get(name, 1), name
        while candidate in unique:
            number += 1
            candidate = f"{name}_{number}"
        numbers[name] = number
        unique[candidate] = None
    return list(unique)
