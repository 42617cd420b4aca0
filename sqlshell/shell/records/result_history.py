"""The results of the last statements, fetched again by their IDs: showing a result stores no rows."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from sqlshell.client.statements.client import Client, Observer
from sqlshell.context import SessionContext
from sqlshell.errors import UsageError
from sqlshell.interface import sqlstate
from sqlshell.output.copy import ResultHandler
from sqlshell.output.writer import Summary
from sqlshell.result import Column, Result, Rows
from sqlshell.text import format_count

KEPT = 10
MAX_KEPT_ROWS = 200_000
"""Maximum rows that are stored of a result that its service does not keep."""
NAMES = ("_", *(f"_{number}" for number in range(1, KEPT)))
"""`_` is the last result, `_1` the one before it."""


class ResultSource(Protocol):
    """A service with results, and the current context for requesting them."""

    @property
    def client(self) -> Client: ...

    @property
    def context(self) -> SessionContext: ...


class KeptResult(NamedTuple):
    """One result: its statementID, its service, and the row limit that it reached, if any.

    `copy` is the result itself if its service does not keep it.
    """

    key: str
    source: ResultSource
    limit: int | None
    copy: tuple[list[Column], Rows] | None = None


class ResultHistory:
    """The last results with columns, the latest first."""

    def __init__(self) -> None:
        self._entries: deque[KeptResult] = deque(maxlen=KEPT)

    def __bool__(self) -> bool:
        return bool(self._entries)

    def recording(self, show: ResultHandler, source: ResultSource) -> ResultHandler:
        """The same handler, whose results are remembered: `source` has them."""

        async def shown(result: Result) -> Summary:
            if not source.client.can_refetch:
                return await self._show_and_keep(result, show, source)
            summary = await show(result)
            if result.columns and result.endless is None and result.statement_id:
                short = result.row_count if result.limited else None
                if not (self._entries and self._entries[0].key == result.statement_id):
                    self._entries.appendleft(KeptResult(result.statement_id, source, short))
            return summary

        return shown

    async def _show_and_keep(self, result: Result, show: ResultHandler, source: ResultSource) -> Summary:
        """Show the result and store its rows, because the service does not keep them."""
        from uuid import uuid4

        from sqlshell.shell.results.rows import KeptRows

        kept = KeptRows(result.batches, MAX_KEPT_ROWS)
        summary = await show(replace(result, batches=kept))
        if result.columns:
            limit = None if summary.complete and kept.whole else len(kept.rows)
            self._entries.appendleft(KeptResult(uuid4().hex, source, limit, (result.columns, kept.rows)))
        return summary

    def keys(self) -> frozenset[str]:
        """Keys that identify the remembered results."""
        return frozenset(entry.key for entry in self._entries)

    def key(self, name: str) -> str:
        """The key of the result with that name. Raises UsageError if there is none."""
        return self.entry(name).key

    @asynccontextmanager
    async def open(self, name: str = "_") -> AsyncIterator[Result]:
        """Open a result from its first row. Raises UsageError if there is none, and the errors of fetching it."""
        entry = self.entry(name)
        if entry.copy is not None:
            from sqlshell.shell.results.rows import result_of

            columns, rows = entry.copy
            whole = result_of(columns, rows)
            yield whole if entry.limit is None else replace(whole, sql_state=sqlstate.ROW_LIMIT)
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

    def shortfall(self, name: str) -> str:
        """A sentence that says which rows a result lacks; "" if it is complete. Raises UsageError if there is none."""
        limit = self.entry(name).limit
        if limit is None:
            return ""
        return (
            f"{name} contains only the first {format_count(limit, 'row')}; to get all, use \\pset rowlimit 0 "
            "and run the statement again"
        )

    def entry(self, name: str) -> KeptResult:
        """Raises UsageError if there is no such result."""
        if name not in NAMES:
            raise UsageError(f"unknown result {name}", f"expected {NAMES[0]}, {NAMES[1]}, … or {NAMES[-1]}")
        number = NAMES.index(name)
        kept = len(self._entries)
        if not kept:
            raise UsageError("no statement has returned rows yet", "run a statement first: select …;")
        if number >= kept:
            there = f"there {'is' if kept == 1 else 'are'} only {format_count(kept, 'result')}"
            last = f" to {NAMES[kept - 1]}" if kept > 1 else ""
            raise UsageError(f"{name} is not available: {there}", f"use {NAMES[0]}{last}")
        return self._entries[number]
