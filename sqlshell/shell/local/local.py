"""SQL on the last results: tables in a DuckDB of this shell alone, behind the same interface as any service.

A result is loaded when a statement first names it, typed, and stays as long as the shell remembers the result. What the
database holds is in a folder that goes with the shell; how much memory it takes and how much disk is bounded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import OutputError, StatementError
from sqlshell.origin import Own
from sqlshell.output.copy import copy
from sqlshell.output.sinks.sink import FileSink
from sqlshell.output.writer import WriterOptions
from sqlshell.output.writers.column_names import distinct_names
from sqlshell.output.writers.delimited import CsvWriter
from sqlshell.result import Batch, BatchWrapper, Column
from sqlshell.shell.connection import Connection
from sqlshell.shell.front_end import FrontEnd
from sqlshell.shell.local.types import BYTES, TEXT, duckdb_type, is_nested, nested
from sqlshell.shell.metadata.queries import asked
from sqlshell.shell.records.result_history import NAMES, Past
from sqlshell.shell.results.outlet import Outlet
from sqlshell.shell.running.foreground import Foreground
from sqlshell.shell.session import Session, SessionState
from sqlshell.sql.analysis.tokens import tokens
from sqlshell.sql.identifiers import always_quoted, literal

MEMORY = "1GB"
DISK_BYTES = 16 << 30
"""What one result may take as text on its way in, and what the database may spill."""

LONGEST_LINE = 256 << 20
"""Bytes of a row."""


class Local:
    """The database at the end of `connection`; `folder` is for its files. `session` is its own, so that no other
    service's echo changes its context, with the options of the shell's."""

    def __init__(
        self,
        connection: Connection,
        folder: Path,
        session: Session,
        outlet: Outlet,
        front_end: FrontEnd,
        diagnostics: Diagnostics,
    ) -> None:
        self.session = replace(session, state=SessionState.on(connection, front_end.announce))
        self.foreground = Foreground(self.session, outlet, front_end, diagnostics)
        self._diagnostics = diagnostics
        self._tables: dict[str, str] = {}
        self._made = 0
        self._bounded = False
        self._folder = folder

    async def prepare(self, sql: str, past: Past) -> None:
        """Have the results that a statement names as tables. Raises what reading them raises."""
        if not self._bounded:
            await self._do(f"SET memory_limit = '{MEMORY}'")
            await self._do(f"SET temp_directory = {literal(str(self._folder / 'spilled'))}")
            await self._do(f"SET max_temp_directory_size = '{DISK_BYTES >> 30}GB'")
            self._bounded = True
        for name in named(sql):
            key = past.key(name)
            if key not in self._tables:
                await self._load(key, name, past)
            await self._do(f"CREATE OR REPLACE VIEW {always_quoted(name)} AS SELECT * FROM {self._tables[key]}")
        await self._forget(past)

    async def aclose(self) -> None:
        connection = self.session.connection
        await connection.service.aclose()
        await asyncio.to_thread(connection.release)

    async def _load(self, key: str, name: str, past: Past) -> None:
        self._made += 1
        table, path = f"result_{self._made}", self._folder / f"{self._made}.csv"
        async with past.opened(name) as result:
            columns = result.columns
            # A line of one NULL would be an empty line.
            padded = replace(result, columns=[*columns, Column("_pad", "INTEGER")], batches=_Padded(result.batches))
            sink = _Bounded(Own(str(path)))
            try:
                await copy(padded if len(columns) == 1 else result, CsvWriter(WriterOptions(header=False)), sink)
            finally:
                sink.close()
        try:
            await self._read(table, str(path), columns)
        finally:
            path.unlink(missing_ok=True)
        self._tables[key] = table

    async def _read(self, table: str, path: str, columns: Sequence[Column]) -> None:
        """Make a table of a file; values that their type does not hold leave the columns as text, and that is said."""
        names = _names(columns)
        exact = [duckdb_type(column.type) for column in columns]
        loose = ["JSON" if nested(column.type) else kind for column, kind in zip(columns, exact, strict=True)]
        failed: StatementError | None = None
        for types in (exact, loose, [TEXT] * len(names)):
            try:
                await self._do(_reading(table, path, names, types))
            except StatementError as error:
                failed = failed or error
            else:
                break
        if failed is not None:
            loaded = "all columns are loaded as text" if types is not loose else "nested columns are loaded as JSON"
            self._diagnostics.warn_here(f"{loaded}: {failed.message.splitlines()[0]}")

    async def _forget(self, past: Past) -> None:
        """Drop the tables of results that no name is left for."""
        known = past.keys()
        for key in [key for key in self._tables if key not in known]:
            await self._do(f"DROP TABLE IF EXISTS {self._tables.pop(key)}")

    async def _do(self, sql: str) -> None:
        await asked(self.session.connection.client, sql, self.session.context, self.session.adopt)


class _Padded(BatchWrapper):
    """Rows of one column, with a second column added."""

    def each(self, batch: Batch) -> Batch:
        return Batch(2, rows=[[row[0], "1"] for row in batch.rows])


class _Bounded(FileSink):
    """A file of DISK_BYTES at most."""

    def __init__(self, path: Own) -> None:
        super().__init__(path)
        self._left = DISK_BYTES

    def write(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            raise OutputError(f"the result is larger than {DISK_BYTES >> 30} GB", "select fewer rows or columns first")
        super().write(data)


def named(sql: str) -> list[str]:
    """The results that a statement names, each once."""
    found = (token.value for token in tokens(sql) if token.kind in {"word", "name"})
    return list(dict.fromkeys(name for name in found if name in NAMES))


def _names(columns: Sequence[Column]) -> list[str]:
    """Names that differ in more than the case of letters: to DuckDB that is none."""
    found: list[str] = []
    low: set[str] = set()
    for name in distinct_names(columns):
        number, made = 0, name or "column"
        while made.lower() in low:
            number += 1
            made = f"{name}_{number}"
        low.add(made.lower())
        found.append(made)
    return found


def _reading(table: str, path: str, names: Sequence[str], types: Sequence[str]) -> str:
    padding = [("_pad", "INTEGER")] if len(names) == 1 else []
    read = [
        (name, "JSON" if is_nested(kind) else TEXT if kind == BYTES else kind)
        for name, kind in zip(names, types, strict=True)
    ]
    columns = ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in [*read, *padding])
    chosen = ", ".join(_cast(always_quoted(name), given, kind) for (name, given), kind in zip(read, types, strict=True))
    return (
        f"CREATE TABLE {table} AS SELECT {chosen} FROM read_csv({literal(path)}, header = false, auto_detect = false, "
        f"delim = ',', quote = '\"', escape = '\"', nullstr = '', allow_quoted_nulls = false, "
        f"max_line_size = {LONGEST_LINE}, columns = {{{columns}}})"
    )


def _cast(name: str, given: str, kind: str) -> str:
    if kind == BYTES:
        return f"from_base64({name}) AS {name}"
    return name if kind == given else f"CAST(json({name}) AS {kind}) AS {name}"
