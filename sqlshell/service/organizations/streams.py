"""Streams: append-only relations whose new rows reach each reader once and in order.

The position of a row is its rowid, which never changes in an append-only table. Each reader has its own position, so
that a slow one delays nobody; readers of the same query at the same position share the rows that are read.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from functools import partial
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

SHARED = 64
SHARED_SIZE = 16 << 20
"""The maximum number of cached segments for readers at the same position, and of their characters of JSON."""

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


class Streams:
    """The streams of one organization. begin(), changed() and end() are called in the event loop."""

    def __init__(self, engine: Engine, known: set[Relation], workers: Workers) -> None:
        self.known = known
        self._workers = workers
        self._engine = cast(StreamEngine, engine)
        self._queries: dict[str, Query] = {}
        self._news = asyncio.Condition()
        self._version = 0
        self._tables: dict[Relation, int] = {}
        self._heads: dict[tuple[Relation, int], tuple[int, int, asyncio.Future[int]]] = {}
        self._segments: OrderedDict[tuple[int, str, int], asyncio.Future[tuple[int, list[str]]]] = OrderedDict()
        self._sizes: dict[tuple[int, str, int], int] = {}
        self._rows: dict[tuple[int, str], int] = {}
        self._evaluating: dict[int, tuple[int, str]] = {}
        """The running evaluations by the number of the call: the query's table and SELECT."""
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
            self._rows.pop((query.table, query.feed.sql), None)
            self._leave(query)
            query.ended = (state, message)
            async with self._news:
                self._news.notify_all()

    def _leave(self, query: Query) -> None:
        """Interrupt the evaluation of rows for a query that has ended, unless another query is of the same SELECT."""
        same = query.table, query.feed.sql
        if any((other.table, other.feed.sql) == same for other in self._queries.values()):
            return
        for key, read in list(self._segments.items()):
            if key[:2] == same and not read.done():
                del self._segments[key]
        for number, evaluated in self._evaluating.items():
            if evaluated == same:
                self._engine.cancel_rows(number)

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
            query.idle_since = _now()
            query.reading.discard(known)

    async def next(self, query: Query, position: int) -> tuple[int, list[str]] | None:
        """Wait for rows from `position` on; returns the next position and the rows, or None if the query has ended.

        Raises Failure if the stream can no longer be read.
        """
        while query.ended is None:
            version = self._version
            if query.table != self._tables.get(query.feed.stream, 0):
                raise Failure(sqlstate.NO_RELATION, f"stream {query.feed.stream[2]!r} was dropped")
            head = await self._head(query.feed.stream, query.table)
            if head > position:
                most = self._rows.get((query.table, query.feed.sql), FIRST)
                try:
                    return await self._segment(query, position, min(head, position + most))
                except Failure:
                    if query.ended is None:
                        raise
                    break
            async with self._news:
                while self._version == version and query.ended is None:
                    await self._news.wait()
        return None

    async def _head(self, stream: Relation, table: int) -> int:
        key = stream, table
        version, head, looking = self._heads.get(key, (-1, 0, None))
        if looking is None or version != self._version:
            looking = asyncio.ensure_future(self._workers.run_other(self._engine.head, stream, head))
            self._heads[key] = (self._version, head, looking)
        newest = await asyncio.shield(looking)
        version, head, now = self._heads[key]
        if now is looking:
            self._heads[key] = (version, newest, looking)
        return newest

    async def _segment(self, query: Query, position: int, end: int) -> tuple[int, list[str]]:
        key = (query.table, query.feed.sql, position)
        segment = self._segments.get(key)
        if segment is None:
            segment = self._segments[key] = asyncio.ensure_future(self._read(query, position, end))
            segment.add_done_callback(partial(self._count, key))
        try:
            return await asyncio.shield(segment)
        except Failure:
            self._segments.pop(key, None)
            raise

    def _count(self, key: tuple[int, str, int], read: asyncio.Future[tuple[int, list[str]]]) -> None:
        """Count a segment that has been read, and remove the oldest if there are too many."""
        if self._segments.get(key) is read and not read.cancelled() and read.exception() is None:
            self._sizes[key] = sum(map(len, read.result()[1]))
        while self._segments and (len(self._segments) > SHARED or sum(self._sizes.values()) > SHARED_SIZE):
            self._sizes.pop(self._segments.popitem(last=False)[0], None)

    async def _read(self, query: Query, start: int, end: int) -> tuple[int, list[str]]:
        while True:
            try:
                return await self._evaluated(query, start, end)
            except Failure as failure:
                if failure.sql_state != sqlstate.TOO_LARGE or end - start == 1:
                    raise
                end = start + (end - start) // 2

    async def _evaluated(self, query: Query, start: int, end: int) -> tuple[int, list[str]]:
        count = end - start
        number = next(self._numbers)
        self._evaluating[number] = query.table, query.feed.sql
        try:
            rows, seconds = await self._workers.stream(query.query_id, self._timed, query, start, end, number)
        finally:
            del self._evaluating[number]
        fitting = SEGMENT_SIZE * count // max(1, sum(map(len, rows)))
        in_time = int(SEGMENT_SECONDS * count / max(seconds, 1e-6))
        # The next rows may be wider.
        self._rows[query.table, query.feed.sql] = max(1, min(SEGMENT, fitting, in_time, 4 * count))
        return end, rows

    def _timed(self, query: Query, start: int, end: int, number: int) -> tuple[list[str], float]:
        if query.ended is not None:
            raise Failure(*query.ended)
        began = time.monotonic()
        return self._engine.rows(query.feed, start, end, number), time.monotonic() - began


def _now() -> float:
    return asyncio.get_running_loop().time()
