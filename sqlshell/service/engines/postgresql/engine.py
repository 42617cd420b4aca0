"""The engine PostgreSQL: the databases of one server."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import AsyncIterator, Iterator

from msgspec.structs import replace

from sqlshell.errors import PasswordMissing, ServiceError
from sqlshell.interface import sqlstate
from sqlshell.service.engines.engine import CatalogQuery, EngineSession, Listing, ObjectQuery, Rows
from sqlshell.service.engines.postgresql import CAPABILITIES, TRAITS, catalog
from sqlshell.service.engines.postgresql.catalog import catalog_sql
from sqlshell.service.engines.postgresql.connection import NO_PASSWORD, PASSWORD_HINT, PgConnection, Server, Values
from sqlshell.service.engines.postgresql.failures import ConnectionLost, reason
from sqlshell.service.engines.postgresql.session import LOST, PostgresqlSession
from sqlshell.service.engines.server.engine import ServerEngine
from sqlshell.service.failure import Failure
from sqlshell.service.storage import libpq


class PostgresqlEngine(ServerEngine):
    """Sessions have connections of their own; one more is for what the service asks itself.

    Raises UsageError for a malformed URL, PasswordMissing, and ServiceError if there is no connection.
    """

    name = "postgresql"
    capabilities = CAPABILITIES

    def __init__(self, url: str, password: str = "", *, read_only: bool = False) -> None:
        self._server = Server(url, password, read_only=read_only)
        super().__init__()
        self._link: PgConnection | None = None
        self._sessions: weakref.WeakSet[PostgresqlSession] = weakref.WeakSet()
        try:
            self._loop.call(self._open())
        except Failure as failure:
            self.close()
            if failure.sql_state == NO_PASSWORD:
                raise PasswordMissing(failure.message, PASSWORD_HINT) from None
            raise ServiceError(failure.message) from None
        except BaseException:
            self.close()
            raise

    async def _open(self) -> None:
        self._turn = asyncio.Lock()
        self._link = link = await self._server.open()
        with _explained():
            [(database, schema, version)] = await link.ask(catalog_sql("current names"))
            templates = await link.ask(catalog_sql("templates"))
        self._first, self._schema = str(database), schema or ""
        number = link.pgconn.server_version
        product = (version or "").partition(" on ")[0].partition(",")[0].strip()
        self._version = product or f"PostgreSQL {number // 10_000}.{number % 10_000}"
        self.traits = replace(TRAITS, hidden_databases=tuple(sorted(str(name) for (name,) in templates)))

    @property
    def version(self) -> str:
        return self._version

    def server(self) -> str:
        [(allowed, database)] = self._asked("", libpq.MAY_IDENTIFY)
        [(server,)] = self._asked("", libpq.SYSTEM if allowed else libpq.ADDRESS)
        return f"{server}/{database}"

    def connect(self) -> PostgresqlSession:
        place = self._first, self._schema
        session = PostgresqlSession(self._loop, self._server, place, self._threads, self)
        self._sessions.add(session)
        return session

    def catalog(self, query: CatalogQuery, seen: EngineSession | None = None) -> Rows:
        if query.kind == "databases":
            return [row for row in self._asked("", catalog_sql("service databases")) if row[0] not in query.hidden]
        if query.kind == "function":
            return self._asked("", catalog_sql("has function"), query.name.lower())
        if query.kind == "relation":
            return self._asked(query.database, catalog_sql("has relation"), query.schema, query.name)
        sql = catalog_sql(f"service {query.kind}")
        values = (query.schema, query.name) if query.kind == "relations" else ()
        # Each database needs a connection of its own: only those that somebody uses are listed.
        used = {self._first, *(session.database for session in list(self._sessions))}
        places = [query.database] if query.database else sorted(used - set(query.hidden))
        return [row for place in places for row in self._asked(place, sql, *values)]

    def objects(self, query: ObjectQuery, seen: EngineSession) -> Listing:
        assert isinstance(seen, PostgresqlSession)
        if query.kind == "connections":
            return seen.described()
        database = query.names[-3] if len(query.names) > 2 else seen.database
        return seen.objects(query) if database == seen.database else self._loop.call(self._objects(database, query))

    def inline(self, rows: Listing) -> str:
        return catalog.inline(rows)

    async def _close(self) -> None:
        for session in list(self._sessions):
            await session.disconnect()
        if self._link is not None:
            await self._link.close()

    def _asked(self, database: str, sql: str, *values: str) -> Rows:
        """The rows of a statement in a database, "" for the first. Raises Failure."""
        return catalog.strings_of(self._loop.call(self._ask(database or self._first, sql, *values)))

    async def _objects(self, database: str, query: ObjectQuery) -> Listing:
        async with self._in(database) as link:
            return await catalog.described(query, link.listing)

    @contextlib.asynccontextmanager
    async def _in(self, database: str) -> AsyncIterator[PgConnection]:
        """A connection to another database than the first. Raises Failure."""
        if not await self._ask(self._first, catalog_sql("has database"), database):
            raise Failure(sqlstate.NO_DATABASE, f"database {database!r} does not exist")
        link = await self._server.open(database)
        try:
            with _explained():
                yield link
        finally:
            await link.close()

    async def _ask(self, database: str, sql: str, *values: str) -> Values:
        if database != self._first:
            async with self._in(database) as link:
                return await link.ask(sql, *values)
        with _explained():
            async with self._turn:
                return await self._ask_again(sql, *values)

    async def _ask_again(self, sql: str, *values: str) -> Values:
        """Ask on the service's own connection, and on a new one if it was lost: the statement only reads."""
        if self._link is not None and self._link.usable:
            try:
                return await self._link.ask(sql, *values)
            except ConnectionLost:
                pass
        if self._link is not None:
            await self._link.close()
        self._link = await self._server.open(self._first)
        return await self._link.ask(sql, *values)


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except ConnectionLost as error:
        raise Failure(sqlstate.SESSION_LOST, f"{LOST}: {reason(error)}") from None
