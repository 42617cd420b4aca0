"""Streams: append-only relations whose new rows reach each reader once and in order.

The position of a row is its rowid, which never changes in an append-only table. Each reader has its own position, so
that a slow one delays nobody. A query keeps the rows that were read last, for its readers at the same position.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator
from typing import cast

from msgspec import Struct, field

from sqlshell.interface import sqlstate
from sqlshell.service.engines.engine import Engine, Relation, StreamEngine, StreamQuery
from sqlshell.service.failure import Failure
from sqlshell.service.organizations.workers import Workers

SEGMENT = 2000
SEGMENT_SIZE = 4 << 20
"""The maximum number of rows that are read at once, and the approximate maximum of their JSON in characters."""

SEGMENT_SECONDS = 1.0
"""Approximate maximum time to evaluate a segment, in seconds: the evaluation continues even if the query has no reader
left.
"""

FIRST = 64
"""Rows that are read at once until their width is known."""

Rows = tuple[int, list[str]]
"""The position after some rows of a stream, and the query's rows for them as JSON."""

Place = tuple[int, int]
"""The progress of a reader: a position, and the number of rows from there that it has already received."""


class Query(Struct, eq=False):
    """A SELECT on a stream: its start position, its readers, and how it `ended` (None while it runs).

    `table` counts the tables with the stream's name: a stream that is dropped and created again is a different one.
    """

    query_id: str
    feed: StreamQuery
    start: int
    table: int
    places: dict[str, Place] = field(default_factory=dict)
    reading: set[str] = field(default_factory=set)
    readers: int = 0
    idle_since: float = 0.0
    ended: tuple[str, str] | None = None
    head: int = 0
    """The position after the last row that is known."""
    looked: int = -1
    """The number of changes after which that was looked up."""
    looking: asyncio.Lock = field(default_factory=asyncio.Lock)
    most: int = FIRST
    """The number of rows to read at once."""
    segment: tuple[int, asyncio.Future[Rows]] | None = None
    """The position and the rows of the latest read."""
    evaluating: set[int] = field(default_factory=set)
    """The numbers of the running calls of the engine."""


class Streams:
    """The streams of one organization. begin(), changed() and end() are called in the event loop."""

    def __init__(self, engine: Engine, known: set[Relation], workers: Workers) -> None:
        self.known = known
        self._workers = workers
        self._engine = cast(StreamEngine, engine)
        self._queries: dict[str, Query] = {}
        self._news = asyncio.Condition()
        self._version = 0
        """The number of changes."""
        self._tables: dict[Relation, int] = {}
        self._numbers = itertools.count()

    def forget(self, relation: Relation) -> None:
        """Remove a dropped stream: its readers fail, and a new stream of this name is different. For any thread."""
        self._tables[relation] = self._tables.get(relation, 0) + 1
        self.known.discard(relation)

    def find(self, query_id: str) -> Query | None:
        return self._queries.get(query_id)

    def queries(self) -> list[Query]:
        return list(self._queries.values())

    def begin(self, query_id: str, feed: StreamQuery, start: int) -> Query:
        table = self._tables.get(feed.stream, 0)
        query = self._queries[query_id] = Query(query_id, feed, start, table, idle_since=_now())
        return query

    async def changed(self) -> None:
        """Wake all waiting readers, because there may be new rows."""
        self._version += 1
        if self._queries:
            async with self._news:
                self._news.notify_all()

    async def end(self, query_id: str, state: str, message: str) -> None:
        """End a query for all its readers."""
        query = self._queries.pop(query_id, None)
        if query is not None:
            query.ended = (state, message)
            for number in query.evaluating:
                self._engine.cancel_rows(number)
            async with self._news:
                self._news.notify_all()

    @contextlib.asynccontextmanager
    async def reader(self, query: Query, session: str) -> AsyncIterator[Place]:
        """Register a reader; yields its start position.

        A session that read this query before continues after the last row that was sent to it.
        """
        known = session if session and session not in query.reading else ""
        if known:
            query.reading.add(known)
        query.readers += 1
        try:
            yield query.places.get(known, (query.start, 0))
        finally:
            query.readers -= 1
            if not query.readers:
                query.segment = None
            query.idle_since = _now()
            query.reading.discard(known)

    async def next(self, query: Query, position: int) -> Rows | None:
        """Wait for rows from `position` on; returns the next position and the rows, or None if the query has ended.

        Raises Failure if the stream can no longer be read.
        """
        while query.ended is None:
            version = self._version
            if query.table != self._tables.get(query.feed.stream, 0):
                raise Failure(sqlstate.NO_RELATION, f"stream {query.feed.stream[2]!r} was dropped")
            try:
                await self._look(query, position, version)
                if position < query.head:
                    return await self._segment(query, position)
            except Failure:
                if query.ended is None:
                    raise
                break
            query.segment = None
            async with self._news:
                while self._version == version and query.ended is None:
                    await self._news.wait()
        return None

    async def _look(self, query: Query, position: int, version: int) -> None:
        """Look for rows from `position` on, unless that was done since the change `version`."""
        async with query.looking:
            if position >= query.head and query.looked < version:
                looked = self._version
                least = max(query.head, query.start)
                query.head = await self._workers.run_other(self._engine.head, query.feed.stream, least)
                query.looked = looked

    async def _segment(self, query: Query, position: int) -> Rows:
        if query.segment is None or query.segment[0] != position:
            end = min(query.head, position + query.most)
            reading = asyncio.ensure_future(self._read(query, position, end))
            # Its readers may have left when it fails.
            reading.add_done_callback(lambda done: done.cancelled() or done.exception())
            query.segment = position, reading
        segment = query.segment
        try:
            return await asyncio.shield(segment[1])
        except Failure:
            if query.segment is segment:
                query.segment = None
            raise

    async def _read(self, query: Query, start: int, end: int) -> Rows:
        while True:
            try:
                return await self._evaluated(query, start, end)
            except Failure as failure:
                if failure.sql_state != sqlstate.TOO_LARGE or end - start == 1:
                    raise
                end = start + (end - start) // 2

    async def _evaluated(self, query: Query, start: int, end: int) -> Rows:
        count = end - start
        number = next(self._numbers)
        query.evaluating.add(number)
        try:
            rows, seconds = await self._workers.stream(query.query_id, self._timed, query, start, end, number)
        finally:
            query.evaluating.discard(number)
        fitting = SEGMENT_SIZE * count // max(1, sum(map(len, rows)))
        in_time = int(SEGMENT_SECONDS * count / max(seconds, 1e-6))
        # The next rows may be wider.
        query.most = max(1, min(SEGMENT, fitting, in_time, 4 * count))
        return end, rows

    def _timed(self, query: Query, start: int, end: int, number: int) -> tuple[list[str], float]:
        if query.ended is not None:
            raise Failure(*query.ended)
        began = time.monotonic()
        return self._engine.rows(query.feed, start, end, number), time.monotonic() - began


def _now() -> float:
    return asyncio.get_running_loop().time()
