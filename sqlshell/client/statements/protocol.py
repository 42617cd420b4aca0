"""Decides what a response means and what to do next. Does no I/O.

A response to a submission or a lookup becomes one of
    Poll    still running: look it up again after a pause
    Done    finished: head and body, the first partition inside
    Follow  several statements: look each up, in order
    Fail    an error
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sqlshell.client.http.retries import says_not_run
from sqlshell.client.statements.client import Timing
from sqlshell.errors import (
    NotAuthenticated,
    ProtocolError,
    ServiceError,
    ShellError,
    StatementError,
    UnknownStatement,
    UsageError,
    WaitTimeout,
    Where,
)
from sqlshell.interface import sqlstate
from sqlshell.interface.models import (
    MINIMAL,
    BatchResponse,
    ContextEcho,
    ErrorBody,
    Metadata,
    Model,
    StatementHead,
    StatementRequest,
)
from sqlshell.result import Body, Column
from sqlshell.text import format_count

POLL_SHORTEST = 0.003
POLL_LONGEST = 1.0
MESSAGE_LIMIT = 2_000
COLUMN_LIMIT = 100_000
PARTITION_LIMIT = 1_000_000
"""The maximum number of columns and of partitions of a result: a compressed response of a few KiB may have millions."""

CHECK_URL = "check the URL: it must be the base URL, such as https://host/v2"


class _Counted(Model):
    """A response whose rows are counted but not decoded."""

    sql_state: str | None = None
    message: str | None = None
    statement_id: str | None = msgspec.field(default=None, name="statementID")
    data: list[msgspec.Raw] | None = None


class _UnreadMetadata(Model):
    columns: msgspec.Raw = msgspec.Raw()
    partition_info: msgspec.Raw = msgspec.Raw()


class _UnreadHead(Model):
    """A response whose lists are not decoded."""

    metadata: _UnreadMetadata | None = None


UNCERTAIN = frozenset({408, 500, 502, 503, 504})
"""Statuses after which a submitted statement may run nevertheless, unless the response says that it does not."""

_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")
"""A statementID: it becomes part of paths, of statements, and of commands that are suggested to the user."""

_PARTITION = re.compile(r"[?&]partitionID=([0-9]{1,18})\b")
_HEAD = msgspec.json.Decoder(StatementHead)
_ROWS = msgspec.json.Decoder(_Counted)
_UNREAD = msgspec.json.Decoder(_UnreadHead)
_BATCH = msgspec.json.Decoder(BatchResponse)
_ERROR = msgspec.json.Decoder(ErrorBody)
_REQUEST = msgspec.json.Encoder()


_TIMED = re.compile(r"(?<![\w-])(queue|run);dur=([0-9]{1,12}(?:\.[0-9]{1,9})?)(?![\w.])")
"""A metric of `Server-Timing` in milliseconds, as the local service writes it."""


class Poll(Struct, frozen=True):
    statement_id: str
    share: float | None
    message: str


class Done(Struct, frozen=True):
    """`minimal` says that the service left out the first rows, as it was asked."""

    head: StatementHead
    body: Body
    timing: Timing | None = None
    minimal: bool = False


class Follow(Struct, frozen=True):
    statement_ids: tuple[str, ...]
    head: StatementHead
    body: Body


class Fail(Struct, frozen=True):
    error: ShellError
    context: ContextEcho | None = None
    timing: Timing | None = None


class BatchStatus(Struct, frozen=True):
    """A response to a batch: the outcomes in order, the running statement, and whether more statements will run."""

    statement_id: str
    ended: list[Done | Fail]
    running: Poll | None
    over: bool


State = Poll | Done | Fail
"""The outcome of a lookup; a submission may also find several statements."""

Step = State | Follow


def poll_wait(elapsed: float) -> float:
    """Seconds to wait before the next lookup: a tenth of the time elapsed, between 3 ms and 1 s."""
    return min(POLL_LONGEST, max(POLL_SHORTEST, elapsed / 10))


def may_have_run(status: int, headers: Mapping[str, str]) -> bool:
    """Whether a submission with this response may run nevertheless."""
    return status in UNCERTAIN and not says_not_run(headers)


def timing_of(headers: Mapping[str, str]) -> Timing | None:
    """How long a finished statement was queued and ran, from the header `Server-Timing`; None if it does not say."""
    if (given := headers.get("server-timing")) is None:
        return None
    seconds = {name: float(value) / 1000 for name, value in _TIMED.findall(given)}
    return Timing(seconds["queue"], seconds["run"]) if {"queue", "run"} <= seconds.keys() else None


def request_part(request: StatementRequest) -> bytes:
    """The part `request` of a submission. Raises UsageError."""
    try:
        return _REQUEST.encode(request)
    except UnicodeEncodeError:
        raise UsageError("the statement is not valid Unicode", "check that the script is encoded in UTF-8") from None


def read_submission(status: int, headers: Mapping[str, str], body: Body, base: str) -> Step:
    """Read the response to POST /v2/statements; `base` names the service in messages."""
    return _read(status, headers, body, base, "")


def read_lookup(status: int, headers: Mapping[str, str], body: Body, base: str, statement_id: str) -> State:
    """Read the response to GET /v2/statements/{statementID}."""
    step = _read(status, headers, body, base, statement_id)
    if isinstance(step, Follow):
        return Done(step.head, step.body)
    return step


def _read(status: int, headers: Mapping[str, str], body: Body, base: str, statement_id: str) -> Step:
    if status not in {200, 202}:
        return _http_failure(status, headers, body, base, statement_id)
    try:
        head = _head(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        what = "an HTML page" if _looks_like_html(headers, body) else unreadable(error)
        return Fail(ProtocolError(f"{base} responded with {what}", CHECK_URL))
    wrong_id = next(
        (name for name in (head.statement_id, *(head.statement_ids or ())) if not _is_identifier(name)), None
    )
    if wrong_id is not None:
        return Fail(ProtocolError(f"{base} sent the invalid statementID {wrong_id[:64]!r}"))
    known = head.statement_id or statement_id
    if statement_id and known.lower() != statement_id.lower():
        message = f"requested statement {statement_id} from {base}, but the response is for {known[:64]}"
        return Fail(ProtocolError(message, where=Where(statement_id=statement_id)))
    context = head.metadata.context if head.metadata else None
    state = head.sql_state or (sqlstate.RUNNING if status == 202 else "")
    if not state:
        return Fail(
            ProtocolError(
                f"the response from {base} has no sqlState",
                "check that the URL belongs to a statement-execution service",
            )
        )
    if len(head.statement_ids or ()) > 1:
        return Follow(tuple(head.statement_ids or ()), head, body)
    if status == 202 or sqlstate.running(state):
        if not known:
            return Fail(ProtocolError(f"{base} is running the statement but sent no statementID"))
        return Poll(known, head.progress, head.message or "")
    if sqlstate.failed(state):
        return Fail(
            StatementError(
                head.message or sqlstate.meaning(state) or "the statement failed",
                where=Where(sql_state=state, statement_id=known),
            ),
            context=context,
            timing=timing_of(headers),
        )
    if wrong := _wrong_metadata(head):
        return Fail(ProtocolError(f"{base} {wrong}", where=Where(statement_id=known)))
    return Done(head, body, timing_of(headers), headers.get("preference-applied", "") == MINIMAL)


def _head(body: Body) -> StatementHead:
    """The head of a response. Raises the errors of decoding it, also if it has too many columns or partitions."""
    if body.count(b"{") > COLUMN_LIMIT and (metadata := _UNREAD.decode(body).metadata) is not None:
        for limit, what, listed in (
            (COLUMN_LIMIT, "columns", metadata.columns),
            (PARTITION_LIMIT, "partitions", metadata.partition_info),
        ):
            # Each of them is an object.
            if bytes(listed).count(b"{") > limit:
                raise msgspec.ValidationError(f"the result has more than {limit:,} {what}")
    return _HEAD.decode(body)


def _is_identifier(name: str | None) -> bool:
    return not name or _IDENTIFIER.fullmatch(name) is not None


def read_refusal(status: int, headers: Mapping[str, str], body: Body, base: str, path: str) -> ShellError:
    """The error for a response other than 200 to a request for `path` that is no statement."""
    step = _read(status, headers, body, base, "")
    return step.error if isinstance(step, Fail) else ProtocolError(f"{base} responded to {path} with {status}")


def read_batch(
    status: int, headers: Mapping[str, str], body: Body, base: str, most: int, batch_id: str = ""
) -> BatchStatus | Fail:
    """Read the response to a batch, or to a lookup of the batch `batch_id`, with at most `most` statements."""
    if status == 404 and batch_id:
        # The caller adds what to do.
        return Fail(UnknownStatement(f"{base} does not know the batch {batch_id}", where=Where(statement_id=batch_id)))
    if status not in {200, 202}:
        return _http_failure(status, headers, body, base, "")
    try:
        batch = _BATCH.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return Fail(ProtocolError(f"{base} responded to a batch with {unreadable(error)}"))
    over = status == 200 and not sqlstate.running(batch.sql_state or "")
    if batch.statements is None or not batch.statement_id or not _is_identifier(batch.statement_id):
        return Fail(ProtocolError(f"the response to a batch from {base} has no statements"))
    steps = [_read(200, headers, bytes(item), base, "") for item in batch.statements]
    ended = [step for step in steps if isinstance(step, Done | Fail)]
    running = steps[-1] if steps and isinstance(steps[-1], Poll) else None
    wrong = next((step.error for step in ended if isinstance(step, Fail) and not step.error.where.sql_state), None)
    if wrong is not None:
        return Fail(wrong)
    if len(steps) != len(ended) + (running is not None) or len(steps) > most or (over and running is not None):
        return Fail(ProtocolError(f"{base} responded with statements that were not sent"))
    return BatchStatus(batch.statement_id, ended, running, over)


def read_partition(
    status: int, headers: Mapping[str, str], body: Body, base: str, statement_id: str, number: int, count: int | None
) -> bool:
    """Whether the response to GET …?partitionID=N contains the partition; False while the service prepares it.

    Raises ProtocolError if the number of rows is wrong or the response is invalid, and the errors that it reports.
    """
    if status != 200:
        match _read(status, headers, body, base, statement_id):
            case Fail(error):
                error.message = f"partition {number}: {error.message}"
                raise error
            case _:
                return False
    try:
        partition = _ROWS.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(
            f"{base}: partition {number} is not a result: {unreadable(error)}", where=Where(statement_id=statement_id)
        ) from None
    state = partition.sql_state or sqlstate.DONE
    if sqlstate.running(state):
        return False
    if sqlstate.failed(state):
        raise StatementError(partition.message or sqlstate.meaning(state), where=Where(state, statement_id))
    named = _PARTITION.search(headers.get("content-location", ""))
    if named is not None and int(named[1]) != number:
        raise ProtocolError(
            f"requested partition {number} from {base}, but received partition {named[1]}",
            where=Where("", statement_id),
        )
    about = partition.statement_id or statement_id
    if about.lower() != statement_id.lower():
        raise ProtocolError(
            f"requested partition {number} of {statement_id} from {base}, but the response is for {about[:64]}"
        )
    check_count(len(partition.data or ()), count, number, base, statement_id)
    return True


def check_count(rows: int, count: int | None, number: int, base: str, statement_id: str) -> None:
    """Raises ProtocolError if a partition does not have the announced number of rows."""
    if count is not None and rows != count:
        raise ProtocolError(
            f"{base}: partition {number} has {format_count(rows, 'row')}; expected {count:,}",
            "the result would be incomplete: run the statement again",
            Where(statement_id=statement_id),
        )


def count_rows(body: Body) -> int:
    """The number of rows in a valid response. Raises ProtocolError."""
    try:
        return len(_ROWS.decode(body).data or ())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(f"cannot read the rows: {unreadable(error)}") from None


def unreadable(error: Exception) -> str:
    """Why a response cannot be decoded, in a few words."""
    if isinstance(error, RecursionError):
        return "JSON nested too deeply"
    if isinstance(error, msgspec.ValidationError):
        return f"unexpected JSON: {error}"
    return f"invalid JSON: {error}"


def _wrong_metadata(head: StatementHead) -> str:
    metadata = head.metadata
    if metadata is None:
        return ""
    if (metadata.encoding or "json").lower() != "json":
        return f"sent rows in the unknown encoding {(metadata.encoding or '')[:40]!r}"
    if any(part.row_count < 0 for part in metadata.partition_info or ()):
        return "announced a partition with a negative row count"
    return ""


def merged_head(head: StatementHead, body: Body, plane: str) -> StatementHead:
    """The head of a result on a data plane: what the service omitted is taken from the data plane's response.

    `body` is the data plane's response with partition 0, `plane` its address. Raises ProtocolError if the two have
    different columns or partitions, or the response is invalid.
    """
    where = Where(statement_id=head.statement_id or "")
    try:
        latest = _head(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(f"{plane}: partition 0 is not a result: {unreadable(error)}", where=where) from None
    if wrong := _wrong_metadata(latest):
        raise ProtocolError(f"{plane} {wrong}", where=where)
    ours, theirs = head.metadata or Metadata(), latest.metadata or Metadata()
    for what, same in (
        ("partitions", _same(_counts(ours), _counts(theirs))),
        ("columns", _same(_described(ours), _described(theirs))),
    ):
        if not same:
            raise ProtocolError(
                f"the data plane {plane} and the service disagree on the {what} of the result",
                "the result would be incomplete: run the statement again",
                where,
            )
    metadata = replace(
        ours,
        partition_info=ours.partition_info or theirs.partition_info,
        columns=ours.columns or theirs.columns,
    )
    return replace(head, metadata=metadata)


def _counts(metadata: Metadata) -> list[int]:
    return [part.row_count for part in metadata.partition_info or ()]


def _described(metadata: Metadata) -> list[tuple[str | None, str | None]]:
    return [
        (column.name, column.type.partition(";")[0].strip().upper() if column.type else None)
        for column in metadata.columns or ()
    ]


def _same(one: Any, other: Any) -> bool:
    """Whether two values agree: a member that one of them omits, at any depth, is ignored."""
    if one is None or other is None or one == other:
        return True
    if isinstance(one, list):
        return not one or not other or (len(one) == len(other) and all(map(_same, one, other)))
    return isinstance(one, tuple) and all(map(_same, one, other))


def columns_of(head: StatementHead, width: int) -> list[Column]:
    """The columns of a result. If the service omits them, they are `column1`… of VARCHAR, `width` in number."""
    given = head.metadata.columns if head.metadata else None
    if not given:
        return [Column(f"column{number}") for number in range(1, width + 1)]
    columns = []
    for number, info in enumerate(given, 1):
        name, _, hint = (info.type or "VARCHAR").partition(";")
        columns.append(
            Column(
                info.name if info.name is not None else f"column{number}",
                name.strip() or "VARCHAR",
                info.nullable,
                info.display_hint or hint.strip(),
                info.engine_type or "",
            )
        )
    return columns


def _http_failure(status: int, headers: Mapping[str, str], body: Body, base: str, statement_id: str) -> Fail:
    detail, trace = read_error(headers, body)
    where = Where(statement_id=statement_id)
    traced = f" (traceID {trace})" if trace else ""
    tail = f": {detail}{traced}" if detail else traced
    match status:
        case 400:
            return Fail(ServiceError(f"{base} refused the request{tail or ' (400)'}", where=where))
        case 401:
            hint = "set SQLSHELL_TOKEN, or use --token-file FILE, with the URL as TARGET"
            # RFC 6750, section 3.1: there is an error code where a token was sent, and only there.
            sent = "error=" in headers.get("www-authenticate", "error=")
            said = f"rejected the token{tail}" if sent else f"requires a token{traced}"
            return Fail(NotAuthenticated(f"{base} {said}", hint, where))
        case 403:
            hint = "the token may lack the required permission: use another role or token"
            return Fail(NotAuthenticated(f"{base} denied the request{tail}", hint, where))
        case 404 if statement_id:
            hint = "the result may have expired: run the statement again"
            return Fail(UnknownStatement(f"{base} does not know statement {statement_id}{tail}", hint, where))
        case 404:
            hint = CHECK_URL
            return Fail(ServiceError(f"{base} has no statement-execution service at that path{tail}", hint, where))
        case 408:
            hint = "the statement may still be running on the service"
            return Fail(WaitTimeout(f"{base} reported a timeout (408){tail}", hint, where))
        case 413:
            return Fail(
                ServiceError(f"the statement is too large for {base}{tail}", "split it into smaller statements", where)
            )
        case 421:
            hint = "check the URL; for sqlshell serve, add --allow-host NAME"
            return Fail(ServiceError(f"{base} does not serve this host name{tail}", hint, where))
        case 429 | 503:
            hint = "try again in a moment"
            return Fail(ServiceError(f"{base} is busy or unavailable ({status}){tail}", hint, where))
    if 300 <= status < 400:
        hint = "redirects are not followed, to protect the token"
        if location := headers.get("location"):
            hint += "; use that URL if you trust it"
            return Fail(ServiceError(f"{base} redirects to {location!r}{traced}", hint, where))
        return Fail(ServiceError(f"{base} sent a redirect without a location{traced or f' ({status})'}", hint, where))
    if status >= 500:
        return Fail(ServiceError(f"{base} responded with {status}{tail}", "try again later", where))
    return Fail(ServiceError(f"{base} responded with {status}{tail}", where=where))


def read_error(headers: Mapping[str, str], body: Body) -> tuple[str, str]:
    """The message and traceID in an error body: JSON of the interface, other JSON, HTML from a proxy, or nothing."""
    try:
        error = _ERROR.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = body.decode(errors="replace")
        if _looks_like_html(headers, body):
            import html

            title = re.search(r"<title[^<>]*+>([^<]*+)</title>", text[:20_000], re.I)
            return (" ".join(html.unescape(title.group(1)).split())[:200] if title else "an HTML page", "")
        return " ".join(text.split())[:200], ""
    message = error.message if isinstance(error.message, str) else json.dumps(error.message) if error.message else ""
    return message[:MESSAGE_LIMIT], str(error.trace_id or "")[:200]


def _looks_like_html(headers: Mapping[str, str], body: Body) -> bool:
    return "html" in headers.get("content-type", "") or body[:200].lstrip()[:1] == b"<"
