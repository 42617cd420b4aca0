"""SQL on the last results: a separate DuckDB of this shell, used through the same interface as a service.

A result is loaded with its types when a statement first names it, and stays loaded as long as the shell remembers the
result. The files of the database are in a directory that is removed with the shell; its memory and disk space are
limited.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from sqlshell.errors import StatementError, UsageError
from sqlshell.interface.types import Kind
from sqlshell.origin import Trusted, trusted_text
from sqlshell.output.typed.text_table import DISK_BYTES, text_table
from sqlshell.output.writers.column_names import distinct_names
from sqlshell.result import Column, StoredColumn, Table
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.connection import Connection
from sqlshell.shell.metadata.service_queries import fetch_rows
from sqlshell.shell.records.result_history import NAMES, ResultHistory
from sqlshell.shell.running.statement import submission_of
from sqlshell.shell.session import SessionState
from sqlshell.sql.analysis.files import refuse_files
from sqlshell.sql.analysis.lexed import Sql, lexed
from sqlshell.sql.duckdb_types import TEXT, UNSIZED, digits, distinct_for_duckdb, exact_type, sized, value_of
from sqlshell.sql.identifiers import always_quoted, literal
from sqlshell.sql.script.items import Statement
from sqlshell.sql.script.splitting import split

MEMORY = "1GB"


class LocalDatabase:
    """The database behind `connection`; `folder` is for its files. `session` is separate, so that its context is not
    changed by another service, and has the options of the shell's session.
    """

    def __init__(
        self,
        connection: Connection,
        folder: Path,
        components: ShellComponents,
    ) -> None:
        self.session = replace(components.session, state=SessionState.on(connection, components.front_end.announce))
        self._diagnostics = components.diagnostics
        self._tables: dict[str, str] = {}
        self._files: dict[str, Path] = {}
        """The files of the tables that are views of files."""
        self._table_count = 0
        self._limits_set = False
        self._folder = folder

    async def prepare(self, sql: Sql, history: ResultHistory) -> None:
        """Load the results that a statement names as tables. Raises the errors of reading them."""
        if not self._limits_set:
            await self._execute(f"SET memory_limit = '{MEMORY}'")
            await self._execute(f"SET temp_directory = {literal(str(self._folder / 'spilled'))}")
            await self._execute(f"SET max_temp_directory_size = '{DISK_BYTES >> 30}GB'")
            self._limits_set = True
        for name in named(sql):
            key, shortfall = history.key(name), history.shortfall(name)
            if shortfall:
                self._diagnostics.note(shortfall, always=True)
            if key not in self._tables:
                await self._load(key, name, history)
            await self._execute(f"CREATE OR REPLACE VIEW {always_quoted(name)} AS SELECT * FROM {self._tables[key]}")
        await self._drop_unreferenced(history)

    async def aclose(self) -> None:
        connection = self.session.connection
        await connection.service.aclose()
        await asyncio.to_thread(connection.release)

    async def _load(self, key: str, name: str, history: ResultHistory) -> None:
        self._table_count += 1
        table = f"result_{self._table_count}"
        async with history.open(name) as result:
            given = await result.whole.table(typed=True) if result.whole is not None else None
            if given is not None:
                try:
                    await self._create(table, given, _exact)
                except StatementError:
                    # A string does not fit its type, so that the texts of all values are needed.
                    given = None
            if given is None:
                await self._create(table, await text_table(result), _exact, _with_json, _texts)
        self._tables[key] = table

    async def _create(self, table: str, given: Table, *choices: Callable[[Column], str]) -> None:
        """Create a table of a result with the first choice of types that its values fit; a warning says if that is
        another one. If the file has the types that the table shall have, the table is a view of it.

        Raises StatementError if the values fit none.
        """
        stored, path = given.columns, self._folder / f"{table}.parquet"
        decimals = await _decimals(given)
        try:
            await asyncio.to_thread(given.place.rename, path)
        finally:
            given.close()
        kept = all(not item.is_text or _exact(item.column) == TEXT for item in stored)
        failed: StatementError | None = None
        try:
            for choice in choices:
                sql = f"CREATE {'VIEW' if kept else 'TABLE'} {table} AS {_typed(str(path), stored, choice, decimals)}"
                try:
                    await self._execute(sql)
                except StatementError as error:
                    failed = failed or error
                    continue
                if kept:
                    self._files[table] = path
                if failed is not None:
                    loaded = "nested columns are loaded as JSON" if choice is _with_json else _AS_TEXT
                    self._diagnostics.warn_here(f"{loaded}: {failed.message.splitlines()[0]}")
                return
        finally:
            if table not in self._files:
                await asyncio.to_thread(path.unlink, missing_ok=True)
        assert failed is not None
        raise failed

    async def _drop_unreferenced(self, history: ResultHistory) -> None:
        """Drop the tables of results that no longer have a name."""
        known = history.keys()
        for key in [key for key in self._tables if key not in known]:
            table = self._tables.pop(key)
            path = self._files.pop(table, None)
            await self._execute(f"DROP {'TABLE' if path is None else 'VIEW'} IF EXISTS {table}")
            if path is not None:
                await asyncio.to_thread(path.unlink, missing_ok=True)

    async def _execute(self, sql: str) -> None:
        await fetch_rows(self.session.connection.client, sql, self.session.context, self.session.adopt)


class LocalStatements:
    """The statements of \\local. A connection's local database begins when it is first used."""

    def __init__(self, components: ShellComponents) -> None:
        self._components = components
        self._database: tuple[SessionState, LocalDatabase] | None = None

    async def run(self, sql: Trusted) -> None:
        """Run a statement, or the query buffer if `sql` is empty. Raises ShellError."""
        components, session = self._components, self._components.session
        pending = None if sql else components.buffer.scanner.take()
        text = pending.whole if pending is not None else trusted_text(sql)
        if not text.text.strip():
            raise UsageError("\\local requires a statement", "example: \\local select count(*) from _")
        local = await self._local_database()
        filled = components.variables.substitute(text)
        alone = filled.text.strip().removesuffix(";")
        if filled.foreign and len(split(alone, commands=False)) > 1:
            raise UsageError(
                f"{filled.source} came from the service and contains several statements", "\\local runs one statement"
            )
        start = filled.text.index(alone)
        foreign = filled.part(start, start + len(alone)).foreign
        statement = Statement(alone, 0, 0, True, foreign=foreign)
        refuse_files(statement.lexed)
        # The statement may write files, and its input came from the service.
        await session.connection.policy.check(statement.lexed, components.front_end.ask)
        history = session.state.result_history
        await components.statement_runner.interruptible(local.prepare(statement.lexed, history), "local")
        components.buffer.remember(statement, local=True)
        seen = session.interactive and not components.result_output.exporting
        limit = (session.options.rowlimit or None) if seen else None
        show = history.recording(components.result_output.show, local.session.state)
        with components.statement_runner.on(local.session):
            await components.statement_runner.run(
                submission_of(statement.lexed, row_limit=limit), local.session.context, show
            )

    async def _local_database(self) -> LocalDatabase:
        state = self._components.session.state
        if self._database is not None and self._database[0] is state:
            return self._database[1]
        connection, folder = await self._components.environment.local(state.connection)
        local = LocalDatabase(connection, folder, self._components)
        state.cleanup.push_async_callback(local.aclose)
        self._database = state, local
        return local


def named(sql: Sql) -> list[str]:
    """The results that a statement names, each once."""
    names = (token.value for token in lexed(sql) if token.kind in {"word", "name"})
    return list(dict.fromkeys(name for name in names if name in NAMES))


def _exact(column: Column) -> str:
    return exact_type(column.type)


def _with_json(column: Column) -> str:
    return "JSON" if column.kind is Kind.NESTED else _exact(column)


def _texts(column: Column) -> str:
    return TEXT


_AS_TEXT = "all columns are loaded as text"


async def _decimals(given: Table) -> Mapping[str, str]:
    """The types of the decimals of any size, by the digits that their values have."""
    names = [item.name for item in given.columns if item.is_text and _exact(item.column) == UNSIZED]
    if not names:
        return {}
    return dict(zip(names, sized((await given.query(digits(names, given.source)))[0]), strict=True))


def _typed(
    path: str, stored: Sequence[StoredColumn], choice: Callable[[Column], str], decimals: Mapping[str, str]
) -> str:
    chosen: list[str] = []
    names = distinct_for_duckdb(distinct_names([item.column for item in stored]))
    for name, column in zip(names, stored, strict=True):
        kind = choice(column.column)
        kind = decimals.get(column.name, kind) if kind == UNSIZED else kind
        value = value_of(column.name, kind, is_text=column.is_text)
        chosen.append(f"{value} AS {always_quoted(name)}")
    return f"SELECT {', '.join(chosen)} FROM read_parquet({literal(path)})"
