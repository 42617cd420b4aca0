"""Runs statements and passes their rows on: SELECTs by COPY, all others by the ordinary protocol, one row at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Final

from psycopg import pq

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.engine import Outcome, RunOptions
from sqlshell.service.engines.files.result_writer import ResultWriter
from sqlshell.service.engines.files.texts import bounded
from sqlshell.service.engines.postgresql.catalog import catalog_sql, type_names
from sqlshell.service.engines.postgresql.connection import PgConnection
from sqlshell.service.engines.postgresql.failures import decoded
from sqlshell.service.engines.postgresql.rows import CopiedLines, lines_of, lines_of_values, selected
from sqlshell.service.engines.postgresql.statement_traits import (
    called,
    can_be_copied,
    locks_rows,
    message_of,
    returns_rows,
)
from sqlshell.service.engines.postgresql.types import engine_type, interface_type
from sqlshell.service.failure import Failure
from sqlshell.sql.analysis.tokens import first_word
from sqlshell.text import format_count

BINARY: Final = "the binary format of COPY … TO STDOUT is not supported; use csv or text"
KEPT: Final = 64 << 10
"""Bytes of rows that are passed on together."""

_COPIED: Final = [ColumnInfo("copy", "VARCHAR", False)]
_ROWS: Final = {pq.ExecStatus.SINGLE_TUPLE, pq.ExecStatus.TUPLES_OK}

NewWriter = Callable[[CopiedLines], ResultWriter[bytes]]


async def describe(link: PgConnection, sql: str, options: RunOptions) -> tuple[list[int], list[ColumnInfo] | None]:
    """Return the OIDs of the types of a statement's columns, and the columns, by parsing it: the server does not run
    it; None if it returns no rows."""
    parsed = await link.describe(sql)
    if parsed.nparams:
        raise Failure("42P02", "there is no parameter $1")
    kinds = _kinds(parsed)
    await type_names(link, {kind for kind in kinds if engine_type(*kind) == ""})
    return [oid for oid, _ in kinds], _columns(link, parsed, options) or None


async def run_statement(link: PgConnection, sql: str, options: RunOptions, new_writer: NewWriter) -> Outcome:
    """Run a statement and pass its rows, if it has some, to what `new_writer` returns."""
    word = first_word(sql)
    columns, before, after = None, "", ""
    if returns_rows(sql, word):
        # Too many columns are an error before the statement has changed anything.
        oids, columns = await describe(link, sql, options)
        # One without columns may be a SELECT … INTO.
        if columns and can_be_copied(sql, word):
            before, after = await _around(link, sql, oids, options.row_limit)
    rows = _Rows(options.row_limit, new_writer, columns)
    results = link.results(f"{before}{sql}{after}", start=len(before), shown=sql)
    async with contextlib.aclosing(rows), contextlib.aclosing(results):
        async for result in results:
            if isinstance(result, bytes):
                await rows.take(result if before else lines_of_values(result))
            elif result.status == pq.ExecStatus.COPY_OUT:
                if result.binary_tuples:
                    raise Failure(sqlstate.UNSUPPORTED, BINARY)
                rows.columns = rows.columns or _COPIED
            else:
                if rows.columns is None and result.status in _ROWS:
                    # Those of a rule, which may have types whose names are not known.
                    rows.columns = _columns(link, result, options)
                await rows.take(lines_of(result))
        return await rows.outcome(message_of(decoded(result.command_status)))


class _Rows:
    """Passes lines of COPY's text format to a writer, as many as the limit allows. Close it."""

    def __init__(self, limit: int | None, new_writer: NewWriter, columns: list[ColumnInfo] | None) -> None:
        self.columns = columns
        self._limit = self._left = limit
        self._more = False
        self._new_writer = new_writer
        self._writer: ResultWriter[bytes] | None = None
        self._held = bytearray()

    async def take(self, lines: bytes) -> None:
        if self._left is not None:
            rows = lines.count(b"\n")
            if rows > self._left:
                lines = b"".join(line + b"\n" for line in lines.split(b"\n", self._left)[: self._left])
                rows, self._more = self._left, True
            self._left -= rows
        self._held += lines
        if len(self._held) >= KEPT:
            await self._pass_on()

    async def outcome(self, tag: str) -> Outcome:
        """The outcome of a statement with this message, after all its rows."""
        await self._pass_on()
        filed = await self._writer.finish() if self._writer is not None else None
        if self._more:
            stopped = f"stopped after {format_count(self._limit or 0, 'row')}"
            return Outcome(self.columns, (), stopped, sqlstate.ROW_LIMIT, filed)
        return Outcome(self.columns, message=tag if self.columns in (None, _COPIED) else "", filed=filed)

    async def aclose(self) -> None:
        if self._writer is not None:
            await self._writer.aclose()

    async def _pass_on(self) -> None:
        if self._held:
            lines = bytes(self._held)
            self._held.clear()
            self._writer = self._writer or self._new_writer(CopiedLines(self.columns or ()))
            await self._writer.add(lines, lines.count(b"\n"), len(lines))


async def _around(link: PgConnection, sql: str, oids: Sequence[int], limit: int | None) -> tuple[str, str]:
    """The text before and after a SELECT in the COPY of its rows."""
    names = [f"c{number}" for number in range(len(oids))]
    values = [selected(oid, name) for oid, name in zip(oids, names, strict=True)]
    bound = ""
    # As in psql, a function with effects is called for every row, and every row is locked, however few are shown.
    if limit is not None and not locks_rows(sql) and not await calls_with_effects(link, sql):
        bound = f" LIMIT {limit + 1}"
    if not bound and values == names:
        return "COPY (\n", "\n) TO STDOUT"
    return f"COPY (SELECT {', '.join(values)} FROM (\n", f"\n) AS t ({', '.join(names)}){bound}) TO STDOUT"


async def calls_with_effects(link: PgConnection, sql: str) -> bool:
    """Tell whether a statement calls a volatile function by its name, other than PostgreSQL's own without effects."""
    names = called(sql)
    return bool(
        names and await link.ask(catalog_sql("has effects"), "{" + ",".join(f'"{name}"' for name in names) + "}")
    )


def _kinds(result: Any) -> list[tuple[int, int]]:
    """The OIDs and modifiers of the types of a PGresult's columns."""
    return [(result.ftype(number), result.fmod(number)) for number in range(result.nfields)]


def _columns(link: PgConnection, result: Any, options: RunOptions) -> list[ColumnInfo]:
    """The columns of a PGresult. Types of extensions and of users have the names that the server gives them."""
    columns = (
        ColumnInfo(
            decoded(result.fname(number)),
            interface_type(*kind),
            True,
            engine_type=link.type_names.get(kind) or engine_type(*kind),
        )
        for number, kind in enumerate(_kinds(result))
    )
    return bounded(columns, options)
