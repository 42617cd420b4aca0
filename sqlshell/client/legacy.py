"""The legacy interface: POST /run-statement responds when the statements have run, with all results.

Statements cannot be looked up, and the context is not reported back: it is what the caller sends. Each element of the
response may have `id`, `action`, `target`, `secret` and `data` in any form; all are optional.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from sqlshell.client.http.transport import Response, Transport
from sqlshell.client.http.upload import Upload, upload_of
from sqlshell.client.statements.client import Observer, Submission, mark_uncertain, terminate
from sqlshell.client.statements.protocol import COLUMN_LIMIT, may_have_run, read_error, read_refusal, unreadable
from sqlshell.context import SessionContext
from sqlshell.errors import ConnectionBroken, ProtocolError, ShellError, StatementError, UsageError, WaitTimeout, Where
from sqlshell.result import Batch, Column, HeldBatches, Result

FIELDS = (
    ("orgID", "organization"),
    ("databaseName", "database"),
    ("schemaName", "schema"),
    ("storeName", "store"),
)
"""Form fields, and the parts of the context that they carry."""

VALUE_LIMIT = 10_000_000
"""The maximum number of values of a result: every row has a value for each name that any of them has."""

_STATE = re.compile(r"([0-9A-Z]{5,6}): (.*)", re.S)


class Element(msgspec.Struct):
    """One element of the response. Every member is optional."""

    id: Any = None
    action: Any = None
    target: Any = None
    secret: Any = None
    data: msgspec.Raw = msgspec.Raw(b"null")


_ANSWER = msgspec.json.Decoder(list[Element])
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_TEXT = msgspec.json.Decoder(str)


class LegacyClient(Struct):
    """A client of the legacy interface. `wait_limit` is in seconds; after it, WaitTimeout is raised."""

    transport: Transport
    wait_limit: float | None = None

    async def run(
        self, submission: Submission, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        """Run a submission and yield the result of each element of the response.

        Raises the same errors as Statements.run().
        """
        observer = observer or Observer()
        upload = self.body(submission, context, observer)
        try:
            async with asyncio.timeout(self.wait_limit):
                elements = await self.transport.call(
                    "POST",
                    "/run-statement",
                    lambda answer: self._read(answer, submission),
                    content=upload,
                    content_type=upload.content_type,
                    idempotent=submission.repeatable,
                )
        except TimeoutError:
            raise WaitTimeout(
                f"no response within {self.wait_limit:g} s",
                "the statement may still be running on the service; use a longer --timeout",
            ) from None
        except ConnectionBroken as error:
            if not submission.repeatable:
                mark_uncertain(error)
            raise
        for element in elements:
            yield _result(element)

    async def fetch(
        self, statement_id: str, context: SessionContext, observer: Observer | None = None
    ) -> AsyncGenerator[Result, None]:
        """Raises UsageError: the interface has no lookups."""
        raise _nothing_kept()
        yield

    async def state(self, statement_id: str, context: SessionContext) -> tuple[str, str]:
        """Raises UsageError: the interface has no lookups."""
        raise _nothing_kept()

    def begin_batch(self, submission: Sequence[Submission], *, stop: bool) -> None:
        return None

    async def end_sessions(self, session_ids: Sequence[str]) -> None:
        """Do nothing: the interface has no sessions."""

    supports_batches = False
    can_cancel = False
    can_refetch = False
    is_legacy = True
    terminate = terminate

    async def aclose(self) -> None:
        await self.transport.aclose()

    def body(self, submission: Submission, context: SessionContext, observer: Observer) -> Upload:
        """The form of a submission. Raises UsageError."""
        given = dict(context.parts())
        texts = [("statement", submission.text), *((name, given[part]) for name, part in FIELDS if given[part])]
        try:
            parts = [(f'Content-Disposition: form-data; name="{name}"', text.encode()) for name, text in texts]
        except UnicodeEncodeError:
            raise UsageError(
                "the statement is not valid Unicode", "check that the script is encoded in UTF-8"
            ) from None
        return upload_of(parts, submission.attachments, "attachment", observer.progress)

    def _read(self, answer: Response, submission: Submission) -> list[Element]:
        base = self.transport.target.name
        if answer.status != 200:
            raise _failure(answer, base, submission)
        try:
            return _ANSWER.decode(answer.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ProtocolError(
                f"{base} responded to /run-statement with {unreadable(error)}",
                "check that the service has the legacy interface, or use --api v2",
            ) from None


def _failure(answer: Response, base: str, submission: Submission) -> ShellError:
    error = read_refusal(answer.status, answer.headers, answer.body, base, "/run-statement")
    if answer.status == 400:
        message, _ = read_error(answer.headers, answer.body)
        # The body has no field for the sqlState: a service that knows it writes it before the message.
        match = _STATE.fullmatch(message)
        text = match[2] if match else message or error.message
        return StatementError(text, error.hint, Where(match[1] if match else ""))
    if answer.status == 404:
        error.message = f"{base} has no legacy interface"
        error.hint = "use --api v2"
    if not submission.repeatable and may_have_run(answer.status, answer.headers):
        mark_uncertain(error)
    return error


def _result(element: Element) -> Result:
    columns, rows = _table(element.data)
    label = " ".join(_word(item) for item in (element.action, element.target) if item not in (None, ""))
    secret = element.secret if isinstance(element.secret, str) else ""
    if secret and not rows:
        columns, rows, secret = [Column("secret")], [[secret]], ""
    batch = Batch(len(columns), rows=rows)
    return Result(
        columns=columns,
        batches=HeldBatches(batch),
        statement_id=_word(element.id) if element.id is not None else "",
        row_counts=[len(rows)],
        label=label,
        secret=secret,
    )


def _table(data: msgspec.Raw) -> tuple[list[Column], list[list[str | None]]]:
    """Columns and rows of `data` in any form: objects are rows, everything else is a column `value`."""
    try:
        items = [bytes(item) for item in _LIST.decode(data)]
    except msgspec.DecodeError:
        items = [] if bytes(data).strip() == b"null" else [bytes(data)]
    objects: list[dict[str, msgspec.Raw]] = []
    for item in items:
        try:
            objects.append(_OBJECT.decode(item))
        except msgspec.DecodeError:
            objects.append({"value": msgspec.Raw(item)})
    names = list(dict.fromkeys(name for row in objects for name in row))
    if len(names) > COLUMN_LIMIT or len(names) * len(objects) > VALUE_LIMIT:
        raise ProtocolError(f"the response has more than {COLUMN_LIMIT:,} columns or {VALUE_LIMIT:,} values")
    rows = [[_value(row[name]) if name in row else None for name in names] for row in objects]
    return [Column(name) for name in names], rows


def _value(raw: msgspec.Raw) -> str | None:
    """A string as it is, None for null, otherwise the JSON text, so that numbers keep every digit."""
    text = bytes(raw).strip()
    if text == b"null":
        return None
    if text.startswith(b'"'):
        return _TEXT.decode(text)
    return text.decode()


def _word(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text[:200]


def _nothing_kept() -> UsageError:
    return UsageError("the legacy interface cannot look up statements", "use --api v2 if the service has it")
