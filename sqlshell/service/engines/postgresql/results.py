"""Statements that return rows: SELECTs by COPY, all others by the ordinary protocol, one row at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Final

from psycopg import pq

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.duckdb.results.rows import bounded, check_columns
from sqlshell.service.engines.engine import Outcome, RunOptions, Sink
from sqlshell.service.engines.postgresql.catalog import catalog_sql, type_names
from sqlshell.service.engines.postgresql.connection import PgConnection
from sqlshell.service.engines.postgresql.rows import CopiedLines, RowReader, lines_of_copy
from sqlshell.service.engines.postgresql.statement_traits import called, locks_rows, message_of, returns_rows
from sqlshell.service.engines.postgresql.types import engine_type, interface_type, selected
from sqlshell.service.engines.server.result_writer import ResultWriter
from sqlshell.service.failure import Failure

_BEFORE: Final = "COPY (\n"
KEPT: Final = 500
"""The number of rows that are passed on together."""


async def describe(link: PgConnection, sql: str, options: RunOptions) -> Outcome:
    """The columns of a statement's result, by parsing it: the server does not run it."""
    _, columns = await _described(link, sql, options)
    return Outcome(columns or None)


async def run_select(
    link: PgConnection,
    sql: str,
    options: RunOptions,
    new_writer: Callable[[CopiedLines], ResultWriter[bytes]],
    check_canceled: Callable[[], None],
) -> Outcome | None:
    """Run a SELECT by COPY and pass its lines to what `new_writer` returns; None for one without columns."""
    kinds, columns = await _described(link, sql, options)
    if not columns:
        # A statement without columns may be a SELECT … INTO.
        return None
    check_canceled()
    limit = options.row_limit
    # As in psql, a function with effects is called for every row, and every row is locked, however few are shown.
    ends_early = limit is not None and not locks_rows(sql) and not await calls_with_effects(link, sql)
    before, after = _around(kinds, limit if ends_early else None)
    kept, more, filed = 0, False, None
    writer = new_writer(CopiedLines(columns))
    blocks = link.copy_out(f"{before}{sql}{after}", len(before), sql)
    async with contextlib.aclosing(writer), contextlib.aclosing(blocks):
        async for block in blocks:
            lines, rows = block, block.count(b"\n")
            if limit is not None and kept + rows > limit:
                lines, rows, more = _first(block, limit - kept), limit - kept, True
            if rows:
                await writer.add(lines, rows, len(lines))
            kept += rows
        filed = await writer.finish()
    if more:
        return Outcome(columns, (), f"stopped after {limit:,} rows", sqlstate.ROW_LIMIT, filed)
    return Outcome(columns, filed=filed)


async def run_other(link: PgConnection, sql: str, options: RunOptions, sink: Sink) -> Outcome:
    """Run any statement. Its rows, if it has some, arrive one at a time."""
    if returns_rows(sql):
        # Too many columns are an error before the statement has changed anything.
        described = await link.describe(sql)
        _check_parameters(described)
        check_columns(described.nfields, options)
    taker = _Taker(sink, options)
    last = await link.run(sql, taker.take)
    taker.end()
    tag = message_of((last.command_status or b"").decode("utf-8", "replace"))
    if taker.copied:
        message, state = taker.limited()
        return Outcome([ColumnInfo("copy", "VARCHAR", False)], (), message or tag, state)
    if last.status == pq.ExecStatus.TUPLES_OK:
        check_columns(last.nfields, options)
        columns = bounded(await _columns(link, last), options)
        return Outcome(columns, (), *taker.limited())
    return Outcome(message=tag)


class _Taker:
    """Keeps the rows of PGresults and the data of a COPY, up to the row limit."""

    def __init__(self, sink: Sink, options: RunOptions) -> None:
        self.copied = False
        self._sink = sink
        self._left = options.row_limit
        self._limit = options.row_limit
        self._more = False
        self._reader: RowReader | None = None
        self._rows: list[str] = []
        self._size = 0

    def take(self, received: Any) -> None:
        if isinstance(received, bytes):
            self.copied = True
            rows = lines_of_copy(received)
        else:
            if self._reader is None:
                self._reader = RowReader([received.ftype(number) for number in range(received.nfields)])
            rows = self._reader.rows(received) if self._left != 0 else []
            self._more = self._more or self._left == 0
        if self._left is not None:
            self._more = self._more or len(rows) > self._left
            rows = rows[: self._left]
            self._left -= len(rows)
        self._rows += rows
        self._size += sum(map(len, rows))
        if len(self._rows) >= KEPT or self._size >= 1 << 20:
            self.end()

    def end(self) -> None:
        """Pass the remaining rows to the sink."""
        if self._rows:
            self._sink.keep(self._rows)
        self._rows, self._size = [], 0

    def limited(self) -> tuple[str, str]:
        """Message and sqlState of the result."""
        return (f"stopped after {self._limit:,} rows", sqlstate.ROW_LIMIT) if self._more else ("", sqlstate.DONE)


def _around(oids: Sequence[int], limit: int | None) -> tuple[str, str]:
    """The text before and after a SELECT in the COPY of its rows."""
    names = [f"c{number}" for number in range(len(oids))]
    values = [selected(oid, name) for oid, name in zip(oids, names, strict=True)]
    if limit is None and values == names:
        return _BEFORE, "\n) TO STDOUT"
    bound = f" LIMIT {limit + 1}" if limit is not None else ""
    return f"COPY (SELECT {', '.join(values)} FROM (\n", f"\n) AS t ({', '.join(names)}){bound}) TO STDOUT"


def _first(lines: bytes, count: int) -> bytes:
    """The first lines of several."""
    return b"".join(line + b"\n" for line in lines.split(b"\n", count)[:count])


async def calls_with_effects(link: PgConnection, sql: str) -> bool:
    """Whether a statement calls a volatile function by its name, other than PostgreSQL's own without effects."""
    names = called(sql)
    return bool(
        names and await link.ask(catalog_sql("has effects"), "{" + ",".join(f'"{name}"' for name in names) + "}")
    )


async def _described(link: PgConnection, sql: str, options: RunOptions) -> tuple[list[int], list[ColumnInfo]]:
    """The OIDs of the types of a statement's columns, and the columns; none if it returns no rows."""
    described = await link.describe(sql)
    _check_parameters(described)
    check_columns(described.nfields, options)
    kinds = [described.ftype(number) for number in range(described.nfields)]
    return kinds, bounded(await _columns(link, described), options)


async def _columns(link: PgConnection, described: Any) -> list[ColumnInfo]:
    """The columns of a PGresult. Types of extensions and of users have the names that the server gives them."""
    kinds = [(described.ftype(number), described.fmod(number)) for number in range(described.nfields)]
    asked = {kind for kind in kinds if engine_type(*kind) == ""}
    names = await type_names(link, asked) if asked else {}
    return [
        ColumnInfo(
            (described.fname(number) or b"").decode("utf-8", "replace"),
            interface_type(*kind),
            True,
            engine_type=names.get(kind) or engine_type(*kind),
        )
        for number, kind in enumerate(kinds)
    ]


def _check_parameters(described: Any) -> None:
    if described.nparams:
        raise Failure("42P02", "there is no parameter $1")
