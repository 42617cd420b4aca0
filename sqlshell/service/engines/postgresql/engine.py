"""The engine PostgreSQL: the databases of one server."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterator

from msgspec.structs import replace

from sqlshell.errors import PasswordMissing, ServiceError
from sqlshell.interface import sqlstate
from sqlshell.service.engines.engine import CatalogQuery, EngineSession, Listing, ObjectQuery, Rows
from sqlshell.service.engines.postgresql import CAPABILITIES, TRAITS, catalog
from sqlshell.service.engines.postgresql.catalog import catalog_sql
from sqlshell.service.engines.postgresql.connection import NO_PASSWORD, PASSWORD_HINT, Server
from sqlshell.service.engines.postgresql.session import PostgresqlSession
from sqlshell.service.engines.server_engine import ServerEngine
from sqlshell.service.failure import Failure
from sqlshell.service.storage import libpq


class PostgresqlEngine(ServerEngine):
    """Sessions have connections of their own; one more session is for what the service asks itself.

    Raises UsageError for a malformed URL, PasswordMissing, and ServiceError if there is no connection.
    """

    name = "postgresql"
    capabilities = CAPABILITIES
    inline = staticmethod(catalog.inline)

    def __init__(self, url: str, password: str = "", *, read_only: bool = False) -> None:
        self._server = Server(url, password, read_only=read_only)
        super().__init__()
        self._first, self._schema = "", ""
        self._sessions: weakref.WeakSet[PostgresqlSession] = weakref.WeakSet()
        self._turn = threading.Lock()
        self._own = self.connect()
        try:
            [(self._first, self._schema, version)] = self._own.asked(catalog_sql("current names"))
            templates = self._own.asked(catalog_sql("templates"))
        except Failure as failure:
            self.close()
            if failure.sql_state == NO_PASSWORD:
                raise PasswordMissing(failure.message, PASSWORD_HINT) from None
            raise ServiceError(failure.message) from None
        except BaseException:
            self.close()
            raise
        self._own.database = self._first
        self._version = version.partition(" on ")[0].partition(",")[0].strip()
        self.traits = replace(TRAITS, hidden_databases=tuple(sorted(name for (name,) in templates)))

    @property
    def version(self) -> str:
        return self._version

    def server(self) -> str:
        [(allowed, database)] = self._asked("", libpq.MAY_IDENTIFY)
        [(server,)] = self._asked("", libpq.SYSTEM if allowed else libpq.ADDRESS)
        return f"{server}/{database}"

    def connect(self) -> PostgresqlSession:
        session = self._session(self._first, self._schema)
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
        used = {session.database for session in list(self._sessions)}
        places = [query.database] if query.database else sorted(used - set(query.hidden))
        return [row for place in places for row in self._asked(place, sql, *values)]

    def objects(self, query: ObjectQuery, seen: EngineSession) -> Listing:
        assert isinstance(seen, PostgresqlSession)
        if query.kind == "connections":
            return seen.described()
        database = query.names[-3] if len(query.names) > 2 else seen.database
        if database == seen.database:
            return seen.objects(query)
        with self._in(database) as session:
            return session.objects(query)

    async def _close(self) -> None:
        for session in list(self._sessions):
            await session.disconnect()

    def _session(self, database: str, schema: str) -> PostgresqlSession:
        return PostgresqlSession(self._loop, self._server, (database, schema), self._threads, self)

    def _asked(self, database: str, sql: str, *values: str) -> Rows:
        """The rows of a statement in a database, "" for the first. Raises Failure."""
        with self._in(database) as session:
            return session.asked(sql, *values)

    @contextlib.contextmanager
    def _in(self, database: str) -> Iterator[PostgresqlSession]:
        """A session of the service's own in a database, "" for the first. Raises Failure."""
        if database in ("", self._first):
            with self._turn:
                yield self._own
            return
        if not self._asked("", catalog_sql("has database"), database):
            raise Failure(sqlstate.NO_DATABASE, f'database "{database}" does not exist')
        with contextlib.closing(self._session(database, "")) as session:
            yield session
