"""The results of the last statements: asked for again by their ids, so that showing a result keeps nothing of it."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from sqlshell.client.statements.client import Client, Observer
from sqlshell.context import SessionContext
from sqlshell.errors import UsageError
from sqlshell.output.copy import Consumer
from sqlshell.output.writer import Summary
from sqlshell.result import Column, Result, Rows

KEPT = 10
MOST_ROWS = 200_000
"""Rows that are kept here of a result that its service does not keep."""
NAMES = ("_", *(f"_{number}" for number in range(1, KEPT)))
"""`_` is the last result, `_1` the one before it."""


class Source(Protocol):
    """The service that has results, and the context to ask for them in, as it is when they are asked for."""

    @property
    def client(self) -> Client: ...

    @property
    def context(self) -> SessionContext: ...


class Entry(NamedTuple):
    """One result: its statementID, where it is, and the row limit that it reached, if any.

    `kept` is the result itself, where its service does not keep it.
    """

    key: str
    source: Source
    limit: int | None
    kept: tuple[list[Column], Rows] | None = None


class Past:
    """The last results that had columns, the latest first."""

    def __init__(self) -> None:
        self._known: deque[Entry] = deque(maxlen=KEPT)

    def noting(self, show: Consumer, source: Source, limit: int | None = None) -> Consumer:
        """The same consumer, whose results are remembered: `source` has them, `limit` rows were asked for."""

        async def shown(result: Result) -> Summary:
            if not source.client.can_refetch:
                return await self._copied(result, show, source)
            summary = await show(result)
            if result.columns and result.endless is None and result.statement_id:
                short = limit if limit is not None and result.row_count == limit else None
                if not (self._known and self._known[0].key == result.statement_id):
                    self._known.appendleft(Entry(result.statement_id, source, short))
            return summary

        return shown

    async def _copied(self, result: Result, show: Consumer, source: Source) -> Summary:
        """Show it, and keep its rows: nobody else does."""
        from uuid import uuid4

        from sqlshell.shell.results.rows import Kept

        kept = Kept(result.batches, MOST_ROWS)
        summary = await show(replace(result, batches=kept))
        if result.columns:
            limit = None if summary.complete and kept.whole else len(kept.rows)
            columns = [Column(column.name, column.type) for column in result.columns]
            self._known.appendleft(Entry(uuid4().hex, source, limit, (columns, kept.rows)))
        return summary

    def keys(self) -> frozenset[str]:
        """What tells the results that are remembered from others."""
        return frozenset(entry.key for entry in self._known)

    def key(self, name: str) -> str:
        """What tells the result of that name from others. Raises UsageError where there is none."""
        return self.entry(name).key

    @asynccontextmanager
    async def opened(self, name: str = "_") -> AsyncIterator[Result]:
        """A result, from its first row. Raises UsageError where there is none, and what fetching it raises."""
        entry = self.entry(name)
        if entry.kept is not None:
            from sqlshell.shell.results.rows import table_of

            columns, rows = entry.kept
            yield table_of([(column.name, column.type) for column in columns], rows)
            return
        fetched = entry.source.client.fetch(entry.key, entry.source.context, Observer())
        try:
            async for result in fetched:
                if result.columns:
                    yield result
                    return
            raise UsageError(f"result {name} has no rows")
        finally:
            await fetched.aclose()

    def entry(self, name: str) -> Entry:
        """Raises UsageError if there is no such result."""
        if name not in NAMES:
            raise UsageError(f"unknown result {name}", f"expected {NAMES[0]}, {NAMES[1]}, … or {NAMES[-1]}")
        number = NAMES.index(name)
        if number >= len(self._known):
            raise UsageError(
                "no statement has returned rows yet"
                if not self._known
                else f"{name} is not available: results available: {len(self._known)}",
                "run a statement first: select …;",
            )
        return self._known[number]
