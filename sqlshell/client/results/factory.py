"""Creates results from final responses: inline rows, partitions, a result-set data plane or a stream."""

from __future__ import annotations

import json
import weakref
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from msgspec import Struct, field

from sqlshell.client.http.transport import Transport
from sqlshell.client.results.partitions import PartitionFetcher, PartitionReader, statement_path
from sqlshell.client.statements.client import Observer, StreamLimits
from sqlshell.client.statements.protocol import COLUMN_LIMIT, Done, check_count, columns_of, count_rows, merged_head
from sqlshell.client.target import Target
from sqlshell.errors import ProtocolError, Where
from sqlshell.interface import sqlstate
from sqlshell.interface.models import DataplaneRequest, StatementHead
from sqlshell.result import Batch, Column, Partitions, Result
from sqlshell.sql.engine_types import as_on_engine

if TYPE_CHECKING:
    from sqlshell.client.http.in_process import OpenApp
    from sqlshell.client.http.network import CheckAddress
    from sqlshell.client.results.dataplane import DataPlane
    from sqlshell.client.results.stream import Frames
    from sqlshell.client.results.whole import WholeReader

EXTENSION = "whole-result"
LARGE_BYTES = 16 << 20
"""The size of a result, as bytes of JSON, from which its rows are read from its file: fetching it and importing DuckDB
have to be worth it."""

UNKNOWN = 1 << 62
"""The size of a result whose first rows were left out: only the embedded service is asked to, and only large results
have none."""

MOST_COLUMNS = 100
"""With more columns DuckDB takes longer to plan a query than to run it, so that partitions are faster."""

READ_AHEAD = 4
"""Partitions that are fetched before the reader requests them."""

MOST_PLANES = 8
"""Maximum open connections to data planes: one for each result that is being read."""

Again = Callable[[], Awaitable[Done]]
Explain = Callable[[str], Awaitable[str]]
Query = Mapping[str, str | int]


class ResultFactory(Struct):
    """Creates results. `open_app` returns the embedded service, `limits` says when an unbounded result ends.
    `for_people` names the types of columns as the engine does, if it is not DuckDB.

    aclose() closes the results that are still being read.
    """

    transport: Transport
    open_app: OpenApp | None = None
    limits: Callable[[], StreamLimits] | None = None
    for_people: bool = False
    _planes: list[Transport] = field(default_factory=list)
    _unfinished: weakref.WeakSet[Partitions] = field(default_factory=weakref.WeakSet)

    async def create(self, done: Done, query: Query, again: Again, explain: Explain, observer: Observer) -> Result:
        """The result in a final response.

        `query` is sent with lookups, `again` looks the statement up once more (the token of a data plane may have
        expired), `explain` returns why a query failed. Raises ProtocolError and the errors of reading the rows.
        """
        metadata = done.head.metadata
        request = metadata.dataplane_request if metadata is not None else None
        if request is not None and (request.uri or request.token or request.request_type):
            from sqlshell.client.results.dataplane import STREAMING

            if request.request_type == STREAMING:
                return await self._from_stream(done, request, query, again, explain, observer)
            return await self._from_plane(done, request, query, again)
        return await self._from_partitions(done, self._fetcher(done, query))

    async def aclose(self) -> None:
        for batches in list(self._unfinished):
            await batches.aclose()
        planes, self._planes = self._planes, []
        for plane in planes:
            await plane.aclose()

    def _fetcher(self, done: Done, query: Query) -> PartitionFetcher:
        counts = _row_counts(done)
        statement_id = done.head.statement_id or ""
        if not statement_id and counts is not None and len(counts) > 1:
            raise ProtocolError(f"{self.transport.target.name} announced more partitions but sent no statementID")
        return PartitionFetcher(self.transport, statement_path(statement_id), query, statement_id, counts)

    async def _from_partitions(self, done: Done, pages: PartitionFetcher) -> Result:
        counts, first = pages.counts, None
        if done.minimal and counts and done.head.statement_id:
            columns = columns_of(done.head, 0)
        else:
            first, columns = _first_batch(done, counts, pages.transport.target.name)
            if first is None:
                # If the number of rows is wrong, look up once more: the response may have been damaged.
                first = Batch(len(columns), body=await pages.body(0), count=counts[0] if counts else None)

        async def fetch(number: int) -> Batch:
            count = counts[number] if counts and number < len(counts) else None
            return Batch(len(columns), body=await pages.body(number), number=number, count=count)

        batches = PartitionReader(fetch, first, len(counts) if counts else 1, READ_AHEAD)
        whole = _whole_reader(done, columns, pages, first, batches)
        self._unfinished.add(whole or batches)
        named = [as_on_engine(column, self.transport.engine) for column in columns] if self.for_people else columns
        result = _result(done.head, named, whole or batches)
        result.whole, result.row_counts, result.partition, result.elapsed = whole, counts, fetch, done.head.elapsed
        return result

    async def _from_plane(self, done: Done, request: DataplaneRequest, query: Query, again: Again) -> Result:
        pages = self._fetcher(done, query)
        plane = self._plane(done, request)
        pages.path = plane.path
        if request.statement_id:
            pages.statement_id = request.statement_id
        pages.transport = await self._open_transport(plane)

        async def refresh() -> Transport:
            fresh = await again()
            given = fresh.head.metadata.dataplane_request if fresh.head.metadata else None
            return await self._open_transport(self._plane(fresh, given or request))

        pages.refresh = refresh
        body = await pages.body(0)
        done = Done(merged_head(done.head, body, plane.target.name), body)
        pages.counts = _row_counts(done)
        return await self._from_partitions(done, pages)

    def _plane(self, done: Done, request: DataplaneRequest) -> DataPlane:
        from sqlshell.client.results.dataplane import data_plane

        secrets = self.transport.trace.secrets
        secrets.add(request.token or "", from_service=True)
        try:
            return data_plane(request, self.transport.target, done.head.statement_id or "")
        except ProtocolError as error:
            error.where = Where(statement_id=done.head.statement_id or "")
            error.message = secrets.text(error.message)
            raise

    async def _open_transport(self, plane: DataPlane) -> Transport:
        target, open_app, check_address = self._way_to(plane)
        transport = Transport(
            target.at(plane.target),
            plane.token,
            open_app=open_app,
            network=self.transport.network,
            check_address=check_address,
            trace=self.transport.trace,
            say=self.transport.say,
            from_service=True,
        )
        self._planes.append(transport)
        if len(self._planes) > MOST_PLANES:
            await self._planes.pop(0).aclose()
        return transport

    async def _from_stream(
        self, done: Done, request: DataplaneRequest, query: Query, again: Again, explain: Explain, observer: Observer
    ) -> Result:
        from sqlshell.client.results.stream import Stream

        head, api, network = done.head, self.transport.target, self.transport.network
        session_id = str(query.get("sessionID", ""))
        plane = self._plane(done, request)
        query_id = request.query_id or ""
        fresh = True
        secrets = self.transport.trace.secrets

        async def open_() -> AbstractAsyncContextManager[Frames]:
            nonlocal plane, fresh
            if not fresh:
                renewed = await again()
                given = renewed.head.metadata.dataplane_request if renewed.head.metadata else None
                if given is None:
                    raise ProtocolError(f"{api.name} no longer has a stream for this statement")
                plane = self._plane(renewed, given)
            fresh = False
            target, open_app, check_address = self._way_to(plane)
            if open_app is not None:
                from sqlshell.client.results.local_frames import open_local_stream

                return open_local_stream(plane.websocket, open_app, target.name, session_id=session_id)
            from sqlshell.client.results.frames import open_stream

            return open_stream(
                plane.websocket,
                target,
                network,
                session_id=session_id,
                check_address=check_address,
                secrets=secrets,
            )

        def hello() -> str:
            return json.dumps({"type": "auth", "accessToken": plane.token, "sessionId": session_id or None})

        stream = Stream(
            open_,
            hello,
            self.limits() if self.limits is not None else StreamLimits(),
            network,
            lambda: explain(query_id or (head.statement_id or "")),
            observer.say,
            Where(statement_id=head.statement_id or ""),
            query_id,
        )
        observer.query_id(query_id)
        await stream.begin()
        self._unfinished.add(stream)
        result = _result(head, stream.columns, stream)
        result.endless = stream
        return result

    def _way_to(self, plane: DataPlane) -> tuple[Target, OpenApp | None, CheckAddress | None]:
        """How to connect to a data plane: as to the service itself if both have the same origin."""
        from sqlshell.client.results.dataplane import address_check

        api = self.transport.target
        if plane.same and (self.open_app is not None or api.uds):
            return api, self.open_app, None
        allowed = self.transport.network.private_data_plane
        return plane.target, None, address_check(plane, api, self.transport.peers, allowed=allowed)


def _result(head: StatementHead, columns: list[Column], batches: Partitions) -> Result:
    return Result(
        columns=columns,
        batches=batches,
        statement_id=head.statement_id or "",
        sql_state=head.sql_state or sqlstate.DONE,
        message=head.message or "",
        context=head.metadata.context if head.metadata else None,
    )


def _whole_reader(
    done: Done,
    columns: list[Column],
    pages: PartitionFetcher,
    first: Batch | None,
    batches: PartitionReader,
) -> WholeReader | None:
    """A reader that can use the file of the result, if the service announces files and there are more partitions."""
    counts = pages.counts
    if (
        not counts
        or len(counts) < 2
        or not counts[0]
        or len(columns) > MOST_COLUMNS
        or EXTENSION not in pages.transport.extensions
    ):
        return None
    size = first.size * sum(counts) // counts[0] if first is not None else UNKNOWN
    from sqlshell.client.results.result_file import ResultFile
    from sqlshell.client.results.whole import WholeReader

    context = done.head.metadata.context if done.head.metadata is not None else None
    zone = str(pages.query.get("timezone") or (context.timezone if context is not None else "") or "")
    file = ResultFile(lambda: pages.transport, pages.path, pages.statement_id, columns, sum(counts), size, zone)
    return WholeReader(batches, file, counts, counts[0] if first is not None else 0, large=size >= LARGE_BYTES)


def _row_counts(done: Done) -> list[int] | None:
    """The number of rows of each partition; None if it is unknown."""
    partitions = done.head.metadata.partition_info if done.head.metadata is not None else None
    return None if partitions is None else [part.row_count for part in partitions]


def _first_batch(done: Done, counts: list[int] | None, base: str) -> tuple[Batch | None, list[Column]]:
    """The partition in a final response, and the columns. The partition is None if its number of rows is wrong and it
    can be requested again. If the service names no columns, there are as many as the widest row has values.
    """
    head = done.head
    count = counts[0] if counts else None
    if head.metadata is not None and head.metadata.columns:
        rows, columns = count_rows(done.body) if count is not None else None, columns_of(head, 0)
    else:
        batch = Batch.decode(done.body, 0)
        width = max(map(len, batch), default=0)
        if width > COLUMN_LIMIT:
            raise ProtocolError(f"{base} sent a row with more than {COLUMN_LIMIT:,} values")
        rows, columns = len(batch), columns_of(head, width)
    if count is not None and rows != count:
        if not head.statement_id:
            check_count(rows or 0, count, 0, base, "")
        return None, columns
    return Batch(len(columns), body=done.body, count=count), columns
