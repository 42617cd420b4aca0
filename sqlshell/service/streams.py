"""Streams: append-only relations whose new rows reach everyone who reads them, in order and once.

A row's position is its place in the table, which an append-only table never changes. A reader has a position of its
own, so that a slow one holds back nobody; readers of the same query at the same position share what is read.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator

from msgspec import Struct, field

from sqlshell.service.engines.engine import Engine, Failure, Feed, Relation

SEGMENT = 2000
"""Rows that are read at once."""

SHARED = 64
"""Segments that are kept for others at the same position."""


class Query(Struct, eq=False):
    """One endless SELECT: where it began, who reads it, and how it ended ("" while it goes on)."""

    query_id: str
    feed: Feed
    start: int
    places: dict[str, int] = field(default_factory=dict)
    reading: set[str] = field(default_factory=set)
    readers: int = 0
    idle_since: float = 0.0
    ended: tuple[str, str] | None = None


class Streams:
    """The streams of one organization. begin(), changed() and end() are called in the event loop."""

    def __init__(self, engine: Engine, known: set[Relation]) -> None:
        self.known = known
        self._engine = engine
        self._queries: dict[str, Query] = {}
        self._news = asyncio.Condition()
        self._version = 0
        self._heads: dict[Relation, tuple[int, int, asyncio.Future[int]]] = {}
        self._segments: OrderedDict[tuple[str, int], asyncio.Future[tuple[int, list[str]]]] = OrderedDict()

    def find(self, query_id: str) -> Query | None:
        return self._queries.get(query_id)

    def queries(self) -> list[Query]:
        return list(self._queries.values())

    def begin(self, query_id: str, feed: Feed, start: int) -> Query:
        query = self._queries[query_id] = Query(query_id, feed, start, idle_since=_now())
        return query

    async def changed(self) -> None:
        """Rows may have come: whoever waits looks."""
        if not self._queries:
            return
        self._version += 1
        async with self._news:
            self._news.notify_all()

    async def end(self, query_id: str, state: str, message: str) -> None:
        """End a query for all who read it."""
        query = self._queries.pop(query_id, None)
        if query is not None:
            query.ended = (state, message)
            async with self._news:
                self._news.notify_all()

    @contextlib.asynccontextmanager
    async def reader(self, query: Query, session: str) -> AsyncIterator[int]:
        """Count a reader; gives the position at which it begins.

        A session that read this query before goes on behind the last row that was sent to it.
        """
        known = session if session and session not in query.reading else ""
        if known:
            query.reading.add(known)
        query.readers += 1
        try:
            yield query.places.get(known, query.start) if known else query.start
        finally:
            query.readers -= 1
            query.idle_since = _now()
            query.reading.discard(known)

    async def next(self, query: Query, position: int) -> tuple[int, list[str]] | None:
        """Wait for rows from `position` on: the position behind them, and the rows. None when the query has ended.

        Raises Failure when the stream cannot be read any more.
        """
        while query.ended is None:
            version = self._version
            head = await self._head(query.feed.stream)
            if head > position:
                return await self._segment(query.feed, position, min(head, position + SEGMENT))
            async with self._news:
                while self._version == version and query.ended is None:
                    await self._news.wait()
        return None

    async def _head(self, stream: Relation) -> int:
        version, head, looking = self._heads.get(stream, (-1, 0, None))
        if looking is None or version != self._version:
            looking = asyncio.ensure_future(asyncio.to_thread(self._engine.head, stream, head))
            self._heads[stream] = (self._version, head, looking)
        found = await asyncio.shield(looking)
        version, head, now = self._heads[stream]
        if now is looking:
            self._heads[stream] = (version, found, looking)
        return found

    async def _segment(self, feed: Feed, position: int, end: int) -> tuple[int, list[str]]:
        key = (feed.sql, position)
        found = self._segments.get(key)
        if found is None:
            found = self._segments[key] = asyncio.ensure_future(self._read(feed, position, end))
            if len(self._segments) > SHARED:
                self._segments.popitem(last=False)
        try:
            return await asyncio.shield(found)
        except Failure:
            self._segments.pop(key, None)
            raise

    async def _read(self, feed: Feed, start: int, end: int) -> tuple[int, list[str]]:
        return end, await asyncio.to_thread(self._engine.rows, feed, start, end)


def _now() -> float:
    return asyncio.get_running_loop().time()
