"""Responses about statements, and the rows of their results."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from bisect import bisect_left
from collections.abc import Iterator
from typing import BinaryIO

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from sqlshell.errors import reason
from sqlshell.interface import sqlstate
from sqlshell.interface.models import (
    ENGINE_TYPES,
    MINIMAL,
    PARQUET,
    ColumnInfo,
    ContextEcho,
    Metadata,
    PartitionInfo,
    StatementResponse,
)
from sqlshell.runtime.event_loops import IdleTimer, in_thread
from sqlshell.runtime.unused_memory import return_unused_memory
from sqlshell.service.engines.engine import RENDERING
from sqlshell.service.failure import Failure
from sqlshell.service.http.auth import caller_of
from sqlshell.service.http.budget import Budget
from sqlshell.service.http.dataplane import DataPlane
from sqlshell.service.http.responses import (
    JSON,
    PIECE,
    BadRequest,
    Content,
    ContentResponse,
    accepts,
    file_response,
    has_preference,
    json_response,
)
from sqlshell.service.organizations.organizations import Organizations
from sqlshell.service.results.results import PARTITION_BYTES, Layout, open_engine_file
from sqlshell.service.results.time_zones import in_zone
from sqlshell.service.statements.runner import Batch
from sqlshell.service.statements.statement import Statement
from sqlshell.text import format_count

BATCH_BYTES = 1 << 20
"""When a response to a batch has this many bytes, the rest goes into the next response."""

MINIMAL_BYTES = 1 << 20
"""The rows of a result with fewer bytes of JSON are always in the response."""

WINDOW_BYTES = 8 << 20
"""Partitions that begin within the same window of this many bytes of JSON are rendered together: one by one they take
2.4 times the CPU for rows of eight columns, and ten times for those of one.
"""

WINDOWS = 4
"""The number of rendered windows that are kept for the readers of other partitions."""

REST_SECONDS = 2.0
"""How long after the last read the memory for readers is released."""

CLOSED = b"]}"


class Responses:
    """Makes responses from records. `unread` is the budget for rows that are not sent yet."""

    def __init__(self, organizations: Organizations, plane: DataPlane, unread: Budget) -> None:
        self._organizations = organizations
        self._plane = plane
        self._unread = unread
        self._windows: dict[tuple[str, int], asyncio.Task[list[bytes]]] = {}
        self._idle = IdleTimer(REST_SECONDS, self._release_memory)

    async def one(self, record: Statement, partition: int, timezone: str, request: Request) -> Response:
        """Return the response for a record: a status while it runs, a failure, or a result set with one partition.

        Raises BadRequest for a partition out of range.
        """
        head = self._head(record, request)
        if record.running:
            return json_response(_encoded(head), 200 if record.feed is not None else 202)
        rows = await self._rows(head, record, partition, timezone, request)
        if isinstance(rows, Content):
            before = _encoded(head, b"").removesuffix(CLOSED)
            response: Response = ContentResponse(rows, before=before, behind=CLOSED)
        else:
            response = json_response(_encoded(head, rows))
        if record.seconds:
            queued = max(0.0, record.finished - record.created - record.seconds)
            response.headers["Server-Timing"] = f"queue;dur={queued * 1e3:.3f}, run;dur={record.seconds * 1e3:.3f}"
        if _minimal(record, request) and head.metadata is not None and head.metadata.partition_info:
            response.headers["Preference-Applied"] = MINIMAL
        if rows is not None:
            # Lets a client check that it got the partition that it requested.
            path = request.url.path.rstrip("/") if request.method == "GET" else f"/v2/statements/{record.statement_id}"
            response.headers["Content-Location"] = f"{path}?partitionID={partition}"
        return response

    async def whole(self, record: Statement, request: Request) -> Response | None:
        """Return the response for a record whose whole result is wanted as a Parquet file; None where the response is
        JSON: a statement that runs, failed or has no rows, rows that only the data plane gives, and a result that is
        kept as JSON, if JSON is accepted too. Otherwise a file with typed values is made of it.

        Raises BadRequest.
        """
        outcome = record.outcome
        if record.running or outcome is None or not outcome.columns or sqlstate.failed(record.sql_state):
            return None
        accepts_json = accepts(request, JSON)
        if self._plane.alone_sends(record, caller_of(request)) or (accepts_json and not record.spool.layout.typed):
            return None
        with _reading(record):
            content = await self._whole(record, typed=not accepts_json)
        return await file_response(request, content, f'"{record.statement_id}"', PARQUET)

    async def batch(self, batch: Batch, start: int, timezone: str, request: Request) -> Response:
        """Return the finished statements of a batch from number `start` on, as many as fit into one response.

        Each has the form of one() with its first partition; the rows of large results require lookups.
        """
        parts: list[bytes] = []
        size, failed, context = 0, "", None
        records = batch.statements[start:]
        for record in records:
            if (record.running and record.feed is None and not record.started) or size > BATCH_BYTES:
                break
            head = self._head(record, request)
            rows: bytes | Content | None = None
            if not record.running:
                head.elapsed = round(record.seconds, 6)
                failed = failed or (record.sql_state if sqlstate.failed(record.sql_state) else "")
                small = record.spool.layout.form == "record"
                rows = await self._rows(head, record, 0, timezone, request, wanted=small, context=context)
            parts.append(_encoded(head, rows if isinstance(rows, bytes) else None))
            size += len(parts[-1])
            context = record.context
            if record.running and record.feed is None:
                break
        ended = not any(record.running and record.feed is None for record in records)
        whole = batch.finished.is_set() and len(parts) == len(records) and ended
        first = batch.statements[0]
        head = StatementResponse(
            sql_state=(failed or sqlstate.DONE) if whole else sqlstate.RUNNING,
            statement_id=first.statement_id,
            created_on=int(first.created),
            metadata=_without_rows(context or first.context) if whole else None,
        )
        listed = b',"statements":[' + b",".join(parts) + b"]}"
        return json_response(_encoded(head)[:-1] + listed, 200 if whole else 202)

    def _head(self, record: Statement, request: Request) -> StatementResponse:
        """The response for a record without its result.

        A running statement has no `metadata`, because clients look for columns there. The data plane issues no new
        token, or a token could be renewed forever.
        """
        head = StatementResponse(
            sql_state=record.sql_state,
            message=record.message or None,
            statement_id=record.statement_id,
            created_on=int(record.created),
        )
        if record.running and record.feed is not None:
            head.sql_state = sqlstate.DONE
            head.metadata = _without_rows(record.context)
            caller = caller_of(request)
            if not caller.by_plane:
                head.metadata.dataplane_request = self._plane.streaming(record, request, caller)
        elif record.running:
            head.message = None if record.started else record.waiting
            connection = record.connection
            head.progress = connection.progress() if connection is not None else None
        return head

    async def _rows(
        self,
        head: StatementResponse,
        record: Statement,
        partition: int,
        timezone: str,
        request: Request,
        *,
        wanted: bool = True,
        context: ContextEcho | None = None,
    ) -> bytes | Content | None:
        """Complete the response for a finished record; returns its rows as JSON separated by commas, those of a large
        result to be sent in pieces, or None if the response has none.

        `wanted` says whether rows are wanted. A context equal to `context` is left out. Raises BadRequest.
        """
        echo = None if record.context == context else record.context
        outcome = record.outcome
        if outcome is None or sqlstate.failed(record.sql_state):
            head.metadata = _without_rows(echo)
            return None
        counts = record.spool.layout.counts
        if partition >= len(counts):
            many = format_count(len(counts), "partition")
            raise BadRequest(f"partitionID: {partition} is out of range: the result has {many}")
        caller = caller_of(request)
        secret = None
        if caller.token_id == record.owner and request.method != "HEAD" and not caller.by_plane:
            # Once, and not for HEAD, which would discard it.
            secret = record.take_secret()
        metadata = head.metadata = Metadata(
            encoding="json",
            partition_info=[PartitionInfo(count) for count in ([1] if secret else counts)],
            columns=columns_for(request, outcome.columns or []),
            context=echo,
        )
        if secret is not None:
            return msgspec.json.encode([secret.name, secret.value])
        if outcome.columns and self._plane.alone_sends(record, caller):
            metadata.dataplane_request = self._plane.result_set(record, request, caller)
            return None
        if not wanted or _minimal(record, request):
            return None
        if record.spool.layout.form == "record":
            return await self._partition(record, partition, record.zone(timezone))
        with _reading(record):
            return await self.rows(record, partition, record.zone(timezone))

    async def rows(self, record: Statement, number: int, timezone: str) -> Content:
        """Return the rows of a partition as JSON separated by commas; aclose() them.

        Waits while slow readers use the organization's share of the memory. Raises Failure and OSError.
        """
        layout = record.spool.layout
        filed = layout.form == "text" and bool(layout.ends) and not _moved(record, timezone)
        size = _size(layout, number)
        lease = await self._unread.wait(record.organization, min(size, PIECE) if filed else size)
        try:
            if filed:
                file, size = await asyncio.to_thread(record.spool.open, number)
                return Content(size, file=file, lease=lease)
            body = await self._partition(record, number, timezone)
            return Content(len(body), body, lease=lease)
        except BaseException:
            lease.close()
            raise

    async def _whole(self, record: Statement, *, typed: bool) -> Content:
        """The file of a result, or one made of a result that is kept as text; aclose() it. With `typed` also one made
        of a file that contains text.

        Waits as rows() does. Raises Failure and OSError.
        """
        lease = await self._unread.wait(record.organization, PIECE)
        try:
            server = self._organizations.server
            has_text = server is not None and server.traits.text_in_files
            if record.spool.layout.typed and not (typed and has_text):
                file, size = await asyncio.to_thread(record.spool.open_whole)
            else:
                file, size = await self._converted(record)
            return Content(size, file=file, lease=lease)
        except BaseException:
            lease.close()
            raise

    async def _converted(self, record: Statement) -> tuple[BinaryIO, int]:
        """A file of the engine's format made of a result that is kept as text; it no longer has a name."""
        organization = await asyncio.to_thread(self._organizations.get, record.organization)
        outcome, spool = record.outcome, record.spool
        assert outcome is not None
        target = organization.folder(RENDERING) / str(uuid.uuid4())
        rows = target.with_suffix(".rows") if spool.path is None else await asyncio.to_thread(spool.local_path)
        numbers = [number for number, _ in outcome.zoned]
        try:
            if spool.path is None:
                await asyncio.to_thread(rows.write_bytes, spool.body)
            convert = organization.engine.convert
            await organization.run(convert, rows, spool.layout.ends, outcome.columns or [], numbers, target)
            return await asyncio.to_thread(open_engine_file, target)
        finally:
            target.unlink(missing_ok=True)
            if spool.path is None:
                rows.unlink(missing_ok=True)

    async def _partition(self, record: Statement, number: int, timezone: str) -> bytes:
        """The rows of a partition as JSON separated by commas. Raises Failure and OSError."""
        layout, outcome = record.spool.layout, record.outcome
        if layout.form == "record":
            rows = record.spool.partition(number)
        elif layout.form == "text":
            rows = await asyncio.to_thread(record.spool.partition, number)
        else:
            rows = await self._rendered(record, number) if layout.rows else b""
        if outcome is not None and _moved(record, timezone):
            return await asyncio.to_thread(in_zone, rows, outcome.zoned, timezone)
        return rows

    async def _rendered(self, record: Statement, number: int) -> bytes:
        """The rows of a partition of a file, rendered with its window once for all readers."""
        first, last = window(record.spool.layout, number)
        key = (record.statement_id, first)
        rendering = self._windows.get(key)
        if rendering is None:
            rendering = self._windows[key] = asyncio.ensure_future(self._read(record, first, last))
            if len(self._windows) > WINDOWS:
                del self._windows[next(iter(self._windows))]
        keeps = False
        try:
            partitions = await asyncio.shield(rendering)
            keeps = sum(map(len, partitions)) <= 2 * WINDOW_BYTES
        finally:
            # Neither a failure, after which the next reader tries again, nor rows that take much memory.
            if not keeps and self._windows.get(key) is rendering:
                del self._windows[key]
            self._idle.restart()
        return partitions[number - first]

    async def _read(self, record: Statement, first: int, last: int) -> list[bytes]:
        organization = await asyncio.to_thread(self._organizations.get, record.organization)
        path = await asyncio.to_thread(record.spool.local_path)
        counts, read = record.spool.layout.counts, organization.engine.read
        partitions: list[bytes] = await organization.run(read, path, sum(counts[:first]), counts[first:last])
        return partitions

    def _release_memory(self) -> None:
        """Release the memory for readers."""
        self._windows.clear()
        in_thread(return_unused_memory)


def _size(layout: Layout, number: int) -> int:
    """The approximate size of a partition, in bytes."""
    if number >= len(layout.ends):
        return PARTITION_BYTES
    return layout.ends[number] - (layout.ends[number - 1] if number else 0)


def window(layout: Layout, number: int) -> tuple[int, int]:
    """Return the range of partitions that are rendered together with one: the first, and the last plus 1.

    The first partition, which comes with the statement's response, is rendered alone: the client may not need more, or
    fetch the others as a file.
    """
    ends = layout.ends
    if number == 0 or len(ends) <= number:
        # An earlier version did not record `ends`.
        return number, number + 1
    at = ends[number - 1] // WINDOW_BYTES
    first = bisect_left(ends, at * WINDOW_BYTES) + 1 if at else 1
    return first, min(len(ends), bisect_left(ends, (at + 1) * WINDOW_BYTES) + 1)


def _moved(record: Statement, timezone: str) -> bool:
    """Whether a result contains instants that must be converted from UTC."""
    return record.outcome is not None and bool(record.outcome.zoned) and timezone != "UTC"


def _minimal(record: Statement, request: Request) -> bool:
    """Whether the response leaves out the rows, which the client reads from the result's file."""
    layout = record.spool.layout
    return layout.typed and layout.size >= MINIMAL_BYTES and has_preference(request, MINIMAL)


def columns_for(request: Request, columns: list[ColumnInfo]) -> list[ColumnInfo]:
    """Return the columns as the request wants them: with the engine's types if it prefers that."""
    if all(column.engine_type is None for column in columns) or has_preference(request, ENGINE_TYPES):
        return columns
    return [replace(column, engine_type=None) for column in columns]


@contextlib.contextmanager
def _reading(record: Statement) -> Iterator[None]:
    """Raises BadRequest if the result of a record cannot be read."""
    try:
        yield
    except FileNotFoundError as error:
        text = "the result's file was removed from the storage of results; run the statement again"
        raise BadRequest(text, 404) from error
    except OSError as error:
        # The message of the error would reveal where the service stores results.
        status = 503 if isinstance(error, TimeoutError) else 500
        raise BadRequest(f"cannot read the result: {reason(error) if error.strerror else 'error'}", status) from error
    except Failure as error:
        # An engine names the file, whose path is the service's own.
        raise BadRequest(f"cannot read the result: {error}".replace(str(record.spool.path), "its file"), 500) from error


def _without_rows(context: ContextEcho | None) -> Metadata:
    """The metadata of a response without rows: clients with strict models require all of these members."""
    return Metadata(encoding="json", partition_info=[], columns=[], context=context)


def _encoded(head: StatementResponse, rows: bytes | None = None) -> bytes:
    body = msgspec.json.encode(head)
    return body if rows is None else body[:-1] + b',"data":[' + rows + CLOSED


def combined_response(records: list[Statement]) -> Response:
    """Return the response to several statements: their IDs and their common state.

    `statementID` is that of the first statement that failed, otherwise of the last one. A client that polls it learns
    when all statements have finished, and whether one failed.
    """
    failed = next((record for record in records if sqlstate.failed(record.sql_state)), None)
    running = failed is None and any(record.running and record.feed is None for record in records)
    reported = failed or records[-1]
    head = StatementResponse(
        sql_state=sqlstate.RUNNING if running else failed.sql_state if failed else sqlstate.DONE,
        message=failed.message if failed else None,
        statement_id=reported.statement_id,
        statement_ids=[record.statement_id for record in records],
        created_on=int(reported.created),
        metadata=None if running else _without_rows(records[-1].context),
    )
    return json_response(_encoded(head), 202 if running else 200)
