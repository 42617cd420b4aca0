"""One session on a PostgreSQL server: its connection, its transaction, and the place that it returns to when the
connection is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec.structs import replace
from psycopg import pq

from sqlshell.interface import sqlstate
from sqlshell.interface.models import ColumnInfo
from sqlshell.runtime.event_loops import LoopThread
from sqlshell.service.engines.engine import (
    CANCELED_BEFORE_START,
    Listing,
    ObjectQuery,
    Outcome,
    Relation,
    Rows,
    RunOptions,
    Sink,
)
from sqlshell.service.engines.files.result_files import ResultFiles
from sqlshell.service.engines.files.result_writer import ResultWriter
from sqlshell.service.engines.postgresql import catalog
from sqlshell.service.engines.postgresql.catalog import catalog_sql
from sqlshell.service.engines.postgresql.connection import DESCRIBED, READ_ONLY, PgConnection, Server
from sqlshell.service.engines.postgresql.failures import ConnectionLost, is_canceled, reason
from sqlshell.service.engines.postgresql.loading import copy_data
from sqlshell.service.engines.postgresql.results import calls_with_effects, describe, run_statement
from sqlshell.service.engines.postgresql.statement_traits import (
    COMMITS,
    ENDS,
    changes_place,
    may_change_and_return,
)
from sqlshell.service.engines.server_engine import ServerSession
from sqlshell.service.failure import Failure, ResultLost, check_unicode
from sqlshell.sql.analysis.tokens import first_word
from sqlshell.sql.identifiers import always_quoted, literal

ROLLED_BACK: Final = "the transaction had failed and was rolled back; none of its changes were committed"
LOST: Final = "the connection to the PostgreSQL server was lost"
CONNECTION_LOST: Final = (
    "the connection to the PostgreSQL server was lost while the session was idle: its role, settings, temporary tables "
    "and prepared statements are gone, and the statement was not run; run it again to continue without them"
)
UNESCAPED: Final = (
    "standard_conforming_strings must remain on, because otherwise the shell and the service would split statements "
    "differently from the server; write E'…' for a string with escapes"
)
TO_UTF8: Final = (
    "convert a script in this encoding (iconv -f ENCODING -t UTF-8 FILE) and remove the statement, or dump the "
    "database with pg_dump -E UTF8"
)
BLOCK: Final = 256 << 10
"""Bytes of COPY's data that are sent at once."""

_FAIL: Final = 'ROLLBACK TO SAVEPOINT "sqlshell: the result of a statement could not be stored"'
"""The missing savepoint makes this statement, and the transaction, fail."""

_IGNORED: Final = "current transaction is aborted, commands ignored until end of transaction block"

_TRANSACTIONS: Final = {
    pq.TransactionStatus.INTRANS: "open",
    pq.TransactionStatus.INERROR: "failed",
}

T = TypeVar("T")


class PostgresqlSession(ServerSession):
    """Connects when it is first used."""

    def __init__(
        self, loop: LoopThread, server: Server, place: tuple[str, str], threads: Executor, reader: ResultFiles
    ) -> None:
        """`place` is the database and schema of a new connection. `threads` write large results for `reader`."""
        super().__init__(loop, *place)
        self._threads = threads
        self._reader = reader
        self._server = server
        self._link: PgConnection | None = None
        self._remade = self._has_run = False
        """Whether the connection was made again since the latest statement, and whether there was one before."""
        self._search_path: str | None = None
        """The value to which the search path was last set, None for the server's default."""
        self._asked = ""
        """The time zone of the latest request that had one."""
        self._keeps_timezone = False
        """Whether the time zone was requested or SET: a new connection gets it instead of its own."""
        self._lost_transaction = False
        """Whether a transaction was open when the connection was lost: only COMMIT and ROLLBACK are accepted."""
        self._placed = True
        """Whether schema and search path are known."""
        self._running = self._canceled = False
        self._cancellation: asyncio.Task[None] | None = None

    def resolve(self, names: Sequence[str]) -> Relation:
        relation = super().resolve(names)
        if relation[0] != self.database or self.transaction == "failed" or self._link is None:
            return relation
        schema = names[-2] if len(names) > 1 else ""
        try:
            rows = self._loop.run(self._guarded(self._ask(catalog_sql("schema of relation"), schema, relation[2])))
        except Failure:
            return relation
        return (self.database, str(rows[0][0]), relation[2]) if rows else relation

    def load(self, names: Sequence[str], columns: Sequence[str], path: Path, options: RunOptions) -> Outcome:
        relation = ".".join(map(always_quoted, names))
        listed = f" ({', '.join(map(always_quoted, columns))})" if columns else ""
        return self._loop.run(self._guarded(self._load(relation, listed, copy_data(path), options)))

    def lose_transaction(self) -> None:
        self._lost_transaction = True
        self._look_at_transaction()

    def objects(self, query: ObjectQuery) -> Listing:
        """Objects of the session's database, with temporary tables and what the open transaction made. Raises
        Failure."""
        return self._loop.run(self._guarded(catalog.described(query, self._listing)))

    def described(self) -> Listing:
        """Return the session's connection, in one row. Raises Failure."""
        described = self._loop.run(self._guarded(self._connected())).described()
        return Listing([(name, "VARCHAR") for name in DESCRIBED], [described])

    def asked(self, sql: str, *values: str) -> Rows:
        """Return the rows of the service's own statement, with "" for NULL. Raises Failure."""
        rows = self._loop.run(self._guarded(self._ask(sql, *values)))
        return [tuple(item or "" for item in row) for row in rows]

    async def _execute(self, sql: str, options: RunOptions, sink: Sink) -> Outcome:
        return await self._guarded(self._ran(sql, options, sink))

    async def _guarded(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a statement: it can be canceled, and a lost connection becomes a failure."""
        self._running, self._canceled = True, False
        try:
            return await work
        except ConnectionLost as error:
            raise self._lost(reason(error)) from None
        except Failure as failure:
            notices = self._link.take_notices() if self._link is not None else []
            if self._canceled and is_canceled(failure):
                raise Failure(sqlstate.CANCELED, "the statement was canceled") from None
            if notices:
                raise Failure(failure.sql_state, "\n".join([failure.message, *notices])) from None
            raise
        except asyncio.CancelledError:
            # The statement may still run: only the end of its connection is certain to end it.
            await self.disconnect()
            raise
        finally:
            await self._end_cancellation()
            self._look_at_transaction()

    async def _ran(self, sql: str, options: RunOptions, sink: Sink) -> Outcome:
        _check_text(sql)
        word = first_word(sql)
        if self._lost_transaction:
            return self._leave_lost_transaction(word)
        link = await self._ready(options)
        if self._remade:
            self._remade = False
            if self._has_run:
                # The state that it relied on, such as a role with fewer rights, is lost.
                raise Failure(sqlstate.SESSION_LOST, CONNECTION_LOST)
        self._has_run = True
        before = self.transaction
        outcome = await self._stored(link, sql, options, sink)
        await self._end_cancellation()
        self._canceled = False
        self._look_at_transaction()
        if before == "failed" and word in COMMITS and not self.transaction:
            outcome = replace(outcome, message=ROLLED_BACK, sql_state=sqlstate.WARNING)
        await self._look_at_place(link, sql, word)
        warnings = await self._keep_settings(link) if self.transaction != "failed" else []
        notices = [*link.take_notices(), *warnings]
        if notices and outcome.sql_state == sqlstate.DONE:
            if outcome.message[-1:].isdecimal():
                # The number of changed rows is for programs too.
                notices.append(outcome.message)
            return replace(outcome, message="\n".join(notices), sql_state=sqlstate.NOTICES)
        return outcome

    async def _keep_settings(self, link: PgConnection) -> list[str]:
        """Undo changes of settings that the service relies on; returns warnings. Raises Failure."""
        if link.status("standard_conforming_strings") == "off":
            await link.ask("SET standard_conforming_strings = on")
            raise Failure(sqlstate.UNSUPPORTED, UNESCAPED)
        if self._server.read_only and link.status("default_transaction_read_only") != "on":
            # RESET ALL does this, and so can a function that a SELECT calls.
            await link.ask(READ_ONLY)
        encoding = link.status("client_encoding")
        if encoding == "UTF8":
            return []
        await link.ask("SET client_encoding = 'UTF8'")
        if encoding != "SQL_ASCII":
            raise Failure(sqlstate.UNSUPPORTED, f"client_encoding must be UTF8, not {encoding}; {TO_UTF8}")
        return ["WARNING: client_encoding remains UTF8, because the service always sends UTF-8"]

    async def _stored(self, link: PgConnection, sql: str, options: RunOptions, sink: Sink) -> Outcome:
        """Run a statement and store its rows. If they cannot be stored, it is undone: a statement that changes data and
        returns rows has a transaction of its own, and an open transaction fails.
        """
        if options.row_limit == 0:
            return Outcome((await describe(link, sql, options))[1])
        word = first_word(sql)
        wrapped = not self.transaction and may_change_and_return(sql, word)
        if wrapped:
            await link.ask("BEGIN")
        outcome = None
        try:
            outcome = await self._outcome(link, sql, options, sink)
            # Small rows of other statements are stored with the record.
            now = wrapped or self.transaction or outcome.filed is not None
            if now and outcome.columns is not None:
                await asyncio.to_thread(sink.finish, outcome.filed)
                self._check_canceled()
            if wrapped:
                await link.ask("COMMIT")
        except (ConnectionLost, asyncio.CancelledError):
            raise
        except BaseException as error:
            await self._undo(link, wrapped=wrapped)
            # The server's own errors end the statement, and are never of this general code.
            is_ours = not isinstance(error, Failure) or error.sql_state == sqlstate.LIMIT
            is_alone = not wrapped and not self.transaction and not self._canceled
            if is_ours and is_alone and (word == "call" or await calls_with_effects(link, sql)):
                raise ResultLost(error, certain=outcome is not None) from error
            raise
        return outcome

    async def _outcome(self, link: PgConnection, sql: str, options: RunOptions, sink: Sink) -> Outcome:
        """Run a statement and pass its rows to the sink."""
        if options.data is not None and first_word(sql) == "copy":
            with options.data.open("rb") as file:
                return Outcome(message=await link.copy_in(sql, _in_thread(iter(lambda: file.read(BLOCK), b""))))
        new_writer = partial(ResultWriter, sink, options, self._threads, self._reader)
        return await run_statement(link, sql, options, new_writer)

    async def _undo(self, link: PgConnection, *, wrapped: bool) -> None:
        """Undo a statement that failed, if it was `wrapped` in a transaction of its own; otherwise make the open
        transaction fail."""
        await self._end_cancellation()
        if not wrapped and link.transaction == pq.TransactionStatus.INTRANS:
            with contextlib.suppress(Failure):
                await link.ask(_FAIL)
        while wrapped and link.transaction in _TRANSACTIONS:
            with contextlib.suppress(Failure):
                await link.ask("ROLLBACK")

    async def _load(self, relation: str, listed: str, data: Iterator[bytes], options: RunOptions) -> Outcome:
        link = await self._ready(options)
        return Outcome(message=await link.copy_in(f"COPY {relation}{listed} FROM STDIN", _in_thread(data)))

    async def _use(self, database: str, schema: str) -> None:
        await self._guarded(self._used(database, schema))

    async def _used(self, database: str, schema: str) -> None:
        if database != self.database:
            await self._go_to_database(database)
        if schema == self.schema and schema:
            return
        if schema and not await self._ask(catalog_sql("has schema"), schema):
            raise Failure(sqlstate.NO_SCHEMA, f'schema "{schema}" does not exist in database "{self.database}"')
        if schema:
            # As in psql, what extensions made in public can still be found.
            path = ", ".join(dict.fromkeys(map(always_quoted, (schema, "public"))))
            await self._ask(catalog_sql("set"), "search_path", path)
        else:
            await self._ask("RESET search_path")
        await self._find_place()

    async def _go_to_database(self, database: str) -> None:
        if self.transaction:
            raise Failure("25001", "a transaction is open; COMMIT or ROLLBACK before you change the database")
        if not await self._ask(catalog_sql("has database"), database):
            raise Failure(sqlstate.NO_DATABASE, f'database "{database}" does not exist')
        link = await self._server.open(database)
        former, self._link = self._link, link
        self.database, self._search_path = database, None
        if former is not None:
            await former.close()
        await self._restore(link)
        await self._find_place()

    async def _columns(self, relation: Relation) -> list[ColumnInfo]:
        rows = await self._guarded(self._ask(catalog_sql("columns of relation"), relation[1], relation[2]))
        return catalog.columns_of(rows)

    async def _ask(self, sql: str, *values: str) -> Any:
        """The rows of the service's own statement."""
        return await (await self._connected()).ask(sql, *values)

    async def _listing(self, sql: str, *values: str) -> Listing:
        return await (await self._connected()).listing(sql, *values)

    async def _ready(self, options: RunOptions) -> PgConnection:
        """The connection, with the time zone of the request, if it has one."""
        link = await self._connected()
        if options.timezone and options.timezone != self._asked and self.transaction != "failed":
            # Set only if another one is requested: until then the session's own SET TimeZone applies. A client that
            # adopted the session's time zone requests what is set: another SET would outlast a SET LOCAL.
            if options.timezone != link.status("TimeZone") or not self._has_run:
                # A SELECT would begin the snapshot of an open transaction.
                await link.ask(f"SET TimeZone = {literal(options.timezone)}")
                self._keeps_timezone = True
            self._asked, self.timezone = options.timezone, link.status("TimeZone")
        return link

    async def _connected(self) -> PgConnection:
        """The connection, made again if it was lost outside of a transaction. Raises Failure if it was canceled."""
        if self._link is None or not self._link.usable:
            if self._link is not None and self.transaction:
                raise ConnectionLost("")
            await self.disconnect()
            self._link = await self._server.open(self.database)
            await self._restore(self._link)
        self._check_canceled()
        return self._link

    async def _restore(self, link: PgConnection) -> None:
        """Give a new connection the session's search path and time zone."""
        if self._search_path is not None:
            await link.ask(catalog_sql("set"), "search_path", self._search_path)
        if self._keeps_timezone:
            await link.ask(catalog_sql("set"), "TimeZone", self.timezone)
        self.timezone = link.status("TimeZone")

    def _lost(self, detail: str) -> Failure:
        """The failure of a statement whose connection was lost."""
        if self._link is not None:
            self._link.abort()
        # The next statement need not report it again.
        self._has_run = False
        message = f"{LOST}{f': {detail}' if detail else ''}"
        if self.transaction and not self._lost_transaction:
            self._lost_transaction = True
            message += "; the open transaction was lost, and none of its changes were committed"
        else:
            message += "; it is unknown whether the statement took effect"
        return Failure(sqlstate.SESSION_LOST, message)

    def _leave_lost_transaction(self, word: str) -> Outcome:
        if word not in ENDS:
            raise Failure("25P02", _IGNORED)
        self._lost_transaction = False
        self._look_at_transaction()
        if word in COMMITS:
            return Outcome(message=ROLLED_BACK, sql_state=sqlstate.WARNING)
        return Outcome(message="ROLLBACK")

    def _look_at_transaction(self) -> None:
        if self._lost_transaction:
            self.transaction = "failed"
        elif self._link is not None:
            self.transaction = _TRANSACTIONS.get(self._link.transaction, "")
        else:
            self.transaction = ""

    async def _look_at_place(self, link: PgConnection, sql: str, word: str) -> None:
        """Update what a statement may have changed: time zone, schema and search path."""
        # The server reports each change.
        self._keeps_timezone = self._keeps_timezone or self.timezone != link.status("TimeZone")
        self.timezone = link.status("TimeZone")
        self._placed = self._placed and not changes_place(sql, word)
        if not self._placed and self.transaction != "failed":
            await self._find_place()

    async def _find_place(self) -> None:
        rows = await self._ask(catalog_sql("place"))
        self.schema, self._search_path = rows[0][0] or "", rows[0][1] or ""
        self._placed = True

    def _check_canceled(self) -> None:
        if self._canceled:
            raise Failure(sqlstate.CANCELED, CANCELED_BEFORE_START)

    async def _cancel(self) -> None:
        if not self._running:
            return
        self._canceled = True
        if self._link is not None and (self._cancellation is None or self._cancellation.done()):
            self._cancellation = asyncio.create_task(self._link.cancel())

    async def _end_cancellation(self) -> None:
        """Wait for a request to cancel, and take no further one: it would cancel what follows."""
        self._running = False
        if self._cancellation is not None:
            await self._cancellation
            self._cancellation = None

    async def disconnect(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            self._remade = True
            await link.close()


def _check_text(sql: str) -> None:
    """Raises Failure for a text that PostgreSQL cannot be sent."""
    check_unicode(sql)
    if "\0" in sql:
        message = "the statement contains a NUL character, which PostgreSQL does not accept; remove it"
        raise Failure(sqlstate.SYNTAX, message)


async def _in_thread(data: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The items of an iterator that blocks."""
    while (block := await asyncio.to_thread(next, data, None)) is not None:
        yield block
