"""Streams: append-only relations whose new rows reach each reader once and in order.

The position of a row is its rowid, which never changes in an append-only table. Each reader has its own position, and
reads from there by itself, so that a slow one delays nobody.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, cast

from msgspec import Struct, field

from sqlshell.interface import sqlstate
from sqlshell.runtime.event_loops import interrupt_until_done, spawn
from sqlshell.service.engines.engine import CatalogQuery, Engine, LocalEngine, LocalSession, Relation, StreamQuery
from sqlshell.service.failure import Failure
from sqlshell.service.settings import limit_note
from sqlshell.text import format_count

SEGMENT = 2000
SEGMENT_SIZE = 4 << 20
"""The maximum number of rows that are read at once, and the approximate maximum of their JSON in characters."""

SEGMENT_SECONDS = 1.0
"""Approximate maximum time to evaluate a segment, in seconds, so that the readers of other queries have their turn."""

FIRST = 64
"""Rows that are read at once until their width is known."""

AGAIN_SECONDS = 0.05
"""How often it is looked whether an evaluation has to be interrupted."""

TOGETHER = 2
"""The number of segments that are evaluated at the same time."""

Rows = tuple[int, list[str]]
"""The position after some rows of a stream, and the query's rows for them as JSON."""

Place = tuple[int, int]
"""The progress of a reader: a position, and the number of rows from there that it has already received."""


class Stream(Struct, eq=False):
    """A stream; one that is dropped and created again is a different one.

    `table` is an ID that distinguishes its table from others of its name while the engine is open.
    """

    table: str = ""
    dropped: bool = False


class Query(Struct, eq=False):
    """A SELECT on a stream: its start position, its readers, and how it `ended` (None while it runs)."""

    query_id: str
    feed: StreamQuery
    stream: Stream
    start: int
    idle_since: float
    places: dict[str, Place] = field(default_factory=dict)
    reading: set[str] = field(default_factory=set)
    readers: int = 0
    ended: tuple[str, str] | None = None
    head: int = 0
    """The position after the last row that is known."""
    most: int = FIRST
    """The number of rows to read at once."""
    sessions: list[LocalSession] = field(default_factory=list)
    """Sessions of the engine that evaluate nothing now."""


class Streams:
    """The streams of one organization, whose threads `run` calls. An evaluation may take `seconds` (0: any time).

    `known` is replaced when it changes, so that any thread can go through it; one thread at a time changes it. All else
    is used from the event loop.
    """

    def __init__(
        self, engine: Engine, known: Iterable[Relation], run: Callable[..., Awaitable[Any]], seconds: float
    ) -> None:
        self._seconds = seconds
        self._engine = cast(LocalEngine, engine)
        self.known = {relation: Stream(self._table(relation)) for relation in known}
        self._run = run
        self._queries: dict[str, Query] = {}
        self._news = asyncio.Event()
        """Set, and replaced by another one, at the next change."""
        self._turns = asyncio.Semaphore(TOGETHER)
        self._abandoned: set[asyncio.Task[None]] = set()
        """The ends of evaluations whose readers have left."""

    def add(self, relation: Relation) -> None:
        """Add a new stream."""
        self.known = {**self.known, relation: Stream(self._table(relation))}

    def forget_dropped(self) -> list[Relation]:
        """Remove the streams whose table was dropped or replaced, and return them: their readers fail."""
        kept = {}
        for relation, stream in self.known.items():
            if stream.table and self._table(relation) == stream.table:
                kept[relation] = stream
            else:
                stream.dropped = True
        gone = [relation for relation in self.known if relation not in kept]
        self.known = kept
        return gone

    def look_again(self) -> None:
        """Read the IDs of all tables again, because they change when the engine is opened."""
        for relation, stream in self.known.items():
            stream.table = self._table(relation)

    def _table(self, relation: Relation) -> str:
        rows = self._engine.catalog(CatalogQuery("relation", *relation))
        return rows[0][0] if rows else ""

    def find(self, query_id: str) -> Query | None:
        return self._queries.get(query_id)

    def queries(self) -> list[Query]:
        return list(self._queries.values())

    def begin(self, query_id: str, feed: StreamQuery, start: int) -> Query:
        stream = self.known.get(feed.stream) or Stream()
        query = self._queries[query_id] = Query(query_id, feed, stream, start, _now())
        return query

    def changed(self) -> None:
        """Wake all waiting readers, because there may be new rows."""
        if self._queries:
            self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def end(self, query_id: str, state: str, message: str) -> None:
        """End a query for all its readers."""
        query = self._queries.pop(query_id, None)
        if query is not None:
            query.ended = (state, message)
            while query.sessions:
                query.sessions.pop().close()
            self._wake()

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

    async def next(self, query: Query, position: int) -> Rows | None:
        """Wait for rows from `position` on; returns the next position and the rows, or None if the query has ended.

        Raises Failure if the stream can no longer be read.
        """
        while query.ended is None:
            news = self._news
            if query.stream.dropped:
                raise Failure(sqlstate.NO_RELATION, f'stream "{query.feed.stream[2]}" was dropped')
            try:
                if position >= query.head:
                    query.head = await self._run(self._engine.head, query.feed.stream, position)
                if position < query.head:
                    return await self._read(query, position, min(query.head, position + query.most))
            except Failure:
                if query.ended is None:
                    raise
                break
            if query.ended is None:
                await news.wait()
        return None

    async def _read(self, query: Query, start: int, end: int) -> Rows:
        while True:
            try:
                async with self._turns:
                    return await self._evaluated(query, start, end)
            except Failure as failure:
                if failure.sql_state != sqlstate.TOO_LARGE or end - start == 1:
                    raise
                end = start + (end - start) // 2

    async def _evaluated(self, query: Query, start: int, end: int) -> Rows:
        count, began = end - start, time.monotonic()
        if query.sessions:
            session = query.sessions.pop()
        else:
            session = cast(LocalSession, await self._run(self._engine.connect))
        running = asyncio.ensure_future(self._run(session.rows, query.feed, start, end))
        late = False
        try:
            while not (await asyncio.wait({running}, timeout=AGAIN_SECONDS))[0]:
                late = 0 < self._seconds < time.monotonic() - began
                if late or query.ended is not None:
                    # Repeatedly: an interrupt between two steps may be lost.
                    session.cancel()
            rows: list[str] = running.result()
        except Failure as failure:
            if late and failure.sql_state == sqlstate.CANCELED:
                chunk, most = format_count(count, "row"), format_count(self._seconds, "second")
                cause = f"evaluating {chunk} of the stream took longer than {most}"
                raise Failure(sqlstate.TIMEOUT, f"{cause} {limit_note('seconds')}") from failure
            raise
        finally:
            if not running.done():
                # Its reader has left, and nobody wants its result.
                spawn(_abandon(session, running), self._abandoned)
            elif query.ended is None:
                query.sessions.append(session)
            else:
                session.close()
        fitting = SEGMENT_SIZE * count // max(1, sum(map(len, rows)))
        in_time = int(SEGMENT_SECONDS * count / max(time.monotonic() - began, 1e-6))
        # The next rows may be wider.
        query.most = max(1, min(SEGMENT, fitting, in_time, 4 * count))
        return end, rows


async def _abandon(session: LocalSession, running: asyncio.Future[Any]) -> None:
    """Cancel rows until their evaluation has ended, and close their session."""
    await interrupt_until_done(running, session.cancel)
    session.close()


def _now() -> float:
    return asyncio.get_running_loop().time()
