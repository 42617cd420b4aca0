"""One connection to a database of a PostgreSQL server, by libpq's rules."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from typing import Any, Final

import psycopg
from psycopg.conninfo import make_conninfo

from sqlshell.service.engines.engine import Listing
from sqlshell.service.engines.postgresql.failures import ConnectionLost, notice_of, reason
from sqlshell.service.engines.postgresql.wire import Wire
from sqlshell.service.failure import Failure
from sqlshell.service.storage.libpq import parsed, stated, without

CANCEL_SECONDS: Final = 10.0
"""How long a request to cancel may take."""

READ_ONLY: Final = "SET default_transaction_read_only = on"

_NOTICES: Final = 4 << 10
"""Characters of the first, and as many of the latest, notices that are kept of one statement."""

UNREACHABLE: Final = "08001"
NO_PASSWORD: Final = "28P01"
"""The server requires a password, and none is configured."""

PASSWORD_HINT: Final = (
    "put the password into ~/.pgpass (host:port:database:user:password), or set PGPASSWORD or PGPASSFILE"
)

CONNECT_SECONDS: Final = 30
"""How long a server may take to accept a connection, unless the URL or PGCONNECT_TIMEOUT says it."""

DESCRIBED: Final = ("User", "Server", "Tls", "ProcessID", "Host", "Port", "Version", "VersionNumber")
"""The columns of a connection's description."""

LISTED: Final = {16: "BOOLEAN", 20: "BIGINT", 23: "INTEGER"}
"""The interface's types of listings by PostgreSQL's OID; all others are VARCHAR."""

_BOOLEANS: Final = {"t": "true", "f": "false"}

Values = list[tuple[str | None, ...]]


class Server:
    """How to connect to the databases of one server. Raises UsageError for a URL that libpq does not accept."""

    def __init__(self, url: str, password: str = "", *, read_only: bool = False) -> None:
        """With `read_only`, the transactions of all connections are read-only."""
        self.read_only = read_only
        given = parsed(url, "the URL of the PostgreSQL server")
        self._given: dict[str, Any] = {"fallback_application_name": "sqlshell", **given, "client_encoding": "UTF8"}
        if "PGCONNECT_TIMEOUT" not in os.environ:
            self._given.setdefault("connect_timeout", CONNECT_SECONDS)
        if password:
            self._given["password"] = password

    async def open(self, database: str = "") -> Link:
        """Connect to a database, "" for that of the URL. Raises Failure."""
        place = {"dbname": database} if database else {}
        try:
            connection = await psycopg.AsyncConnection.connect(
                make_conninfo(**{**self._given, **place}), autocommit=True
            )
        except (psycopg.Error, OSError, UnicodeError) as error:
            message = stated(str(error))
            password = str(self._given.get("password") or "")
            pgconn = getattr(error, "pgconn", None)
            if pgconn is not None and pgconn.needs_password:
                raise Failure(NO_PASSWORD, f"the PostgreSQL server requires a password: {message}") from None
            raise Failure(UNREACHABLE, without(message, password)) from None
        link = Link(connection)
        try:
            if self.read_only:
                await link.ask(READ_ONLY)
        except ConnectionLost as error:
            raise Failure(UNREACHABLE, reason(error)) from None
        return link


class Link:
    """A connection, its statements, and the server's notices and notifications."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.pgconn = connection.pgconn
        self.wire = Wire(self.pgconn)
        self.type_names: dict[tuple[int, int], str] = {}
        """PostgreSQL's names of types by OID and modifier, as far as they are known."""
        self._notices: list[str] = []
        self._latest: deque[str] = deque()
        """Those after the first ones, the latest of them."""
        self._size = self._latest_size = self._dropped = 0
        self._ended = False
        connection.add_notice_handler(self._took)

    @property
    def usable(self) -> bool:
        # wire.usable reads the pending messages of the server, and may set _ended.
        return self.wire.usable and not self._ended

    @property
    def timezone(self) -> str:
        return self._status(b"TimeZone")

    @property
    def encoding(self) -> str:
        return self._status(b"client_encoding")

    @property
    def is_read_only(self) -> bool:
        """Whether the next transactions are read-only; False if the server does not say, as before PostgreSQL 14."""
        return self._status(b"default_transaction_read_only") == "on"

    @property
    def escapes_strings(self) -> bool:
        """Whether a backslash escapes the next character of each string."""
        return self._status(b"standard_conforming_strings") == "off"

    def described(self) -> list[str]:
        """The row of DESCRIBED: "tls" is true or false, the ID is that of the server's process, and the number of the
        version is libpq's, such as 150004 for 15.4.
        """
        given = self.pgconn.user, self.pgconn.host, self.pgconn.port
        user, host, port = ((item or b"").decode("utf-8", "replace") for item in given)
        address = f"{host}/.s.PGSQL.{port}" if host.startswith(("/", "@")) else f"{host}:{port}"
        tls, process = str(bool(self.pgconn.ssl_in_use)).lower(), str(self.pgconn.backend_pid)
        return [
            user,
            address,
            tls,
            process,
            host,
            port,
            self._status(b"server_version"),
            str(self.pgconn.server_version),
        ]

    async def ask(self, sql: str, *values: str) -> Values:
        """The rows of the service's own statement, as strings. Raises Failure and ConnectionLost."""
        rows: Values = []
        await self.wire.run(sql, lambda result: rows.extend(texts_of(result)), *values)
        return rows

    async def listing(self, sql: str, *values: str) -> Listing:
        """The result of the service's own statement. Raises the same as ask()."""
        rows: Values = []
        last = await self.wire.run(sql, lambda result: rows.extend(texts_of(result)), *values)
        kinds = [LISTED.get(last.ftype(number), "VARCHAR") for number in range(last.nfields)]
        names = [(last.fname(number) or b"").decode("utf-8", "replace") for number in range(last.nfields)]
        readers = [_BOOLEANS if kind == "BOOLEAN" else {} for kind in kinds]
        shown = [[read.get(value or "", value or "") for read, value in zip(readers, row, strict=True)] for row in rows]
        return Listing(list(zip(names, kinds, strict=True)), shown)

    def take_notices(self) -> list[str]:
        """The notices and notifications since the last call."""
        while (sent := self.pgconn.notifies()) is not None:
            channel, payload = sent.relname.decode("utf-8", "replace"), sent.extra.decode("utf-8", "replace")
            self._note(f"NOTIFY {channel}{': ' * bool(payload)}{payload} (from server process {sent.be_pid})")
        omitted = [f"… {self._dropped:,} notices omitted …"] if self._dropped else []
        notices = [*self._notices, *omitted, *self._latest]
        self._notices, self._size = [], 0
        self._latest.clear()
        self._latest_size = self._dropped = 0
        return notices

    async def cancel(self) -> None:
        """Ask the server to cancel the running statement. Raises nothing."""
        with contextlib.suppress(psycopg.Error, OSError):
            await self._connection.cancel_safe(timeout=CANCEL_SECONDS)

    async def close(self) -> None:
        """Close the connection; a running statement fails with ConnectionLost."""
        self.wire.abort()
        with contextlib.suppress(psycopg.Error, OSError):
            await self._connection.close()

    def _took(self, notice: Any) -> None:
        # The last that an idle connection hears of a server that ends it.
        self._ended = self._ended or notice.severity_nonlocalized == "FATAL"
        self._note(notice_of(notice))

    def _status(self, name: bytes) -> str:
        return (self.pgconn.parameter_status(name) or b"").decode("utf-8", "replace")

    def _note(self, text: str) -> None:
        text = text if len(text) <= _NOTICES else f"{text[:_NOTICES]}…"
        if not self._latest and self._size + len(text) <= _NOTICES:
            self._size += len(text)
            self._notices.append(text)
            return
        self._latest.append(text)
        self._latest_size += len(text)
        while self._latest_size > _NOTICES and len(self._latest) > 1:
            self._latest_size -= len(self._latest.popleft())
            self._dropped += 1


def texts_of(result: Any) -> Values:
    """The rows of a PGresult as strings."""
    texts = [[result.get_value(row, column) for column in range(result.nfields)] for row in range(result.ntuples)]
    return [tuple(None if item is None else item.decode("utf-8", "replace") for item in row) for row in texts]
