"""One connection to a database of a PostgreSQL server: psycopg's, with statements whose rows are taken as they arrive.

psycopg waits for the socket; what is sent and taken is decided here, by libpq's calls. Rows are taken one at a time, so
that memory holds one row at most, and nothing is read from the server while the caller is busy with a row.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Sequence
from typing import Any, Final, TypeVar

import psycopg
from psycopg import pq
from psycopg.conninfo import make_conninfo
from psycopg.waiting import Wait

from sqlshell.interface import sqlstate
from sqlshell.service.engines.engine import Listing
from sqlshell.service.engines.postgresql.failures import ConnectionLost, Notices, decoded, error_of, notice_of, reason
from sqlshell.service.failure import Failure
from sqlshell.service.storage.libpq import parsed, stated, without

BLOCK: Final = 256 << 10
"""Bytes of rows that are passed on together."""

NO_DATA: Final = "no data is attached to this COPY … FROM STDIN"

CANCEL_SECONDS: Final = 10.0
"""How long a request to cancel may take."""

READ_ONLY: Final = "SET default_transaction_read_only = on"

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

_LISTED: Final = {16: "BOOLEAN", 20: "BIGINT", 23: "INTEGER"}
"""The interface's types of listings by PostgreSQL's OID; all others are VARCHAR."""

_BOOLEANS: Final = {"t": "true", "f": "false"}

_FAILED: Final = {pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE, pq.ExecStatus.PIPELINE_ABORTED}

_INTERVAL: Final = 3600.0
"""Seconds after which psycopg looks for Ctrl-C while it waits, which no loop of an engine gets."""

Values = list[tuple[str | None, ...]]

T = TypeVar("T")
Steps = Generator[Any, Any, T]
"""Calls of libpq: yields what to wait for where they would block."""


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

    async def open(self, database: str = "") -> PgConnection:
        """Connect to a database, "" for that of the URL. Raises Failure."""
        place = {"dbname": database} if database else {}
        try:
            opened = await psycopg.AsyncConnection.connect(make_conninfo(**{**self._given, **place}), autocommit=True)
        except (psycopg.Error, OSError, UnicodeError) as error:
            message = stated(str(error))
            password = str(self._given.get("password") or "")
            pgconn = getattr(error, "pgconn", None)
            if pgconn is not None and pgconn.needs_password:
                raise Failure(NO_PASSWORD, f"the PostgreSQL server requires a password: {message}") from None
            raise Failure(UNREACHABLE, without(message, password)) from None
        connection = PgConnection(opened)
        try:
            if self.read_only:
                await connection.ask(READ_ONLY)
        except ConnectionLost as error:
            raise Failure(UNREACHABLE, reason(error)) from None
        return connection


class PgConnection:
    """Runs one statement at a time. Methods raise Failure for errors of the server, ConnectionLost for a lost
    connection."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.pgconn = connection.pgconn
        self.notices = Notices()
        self.type_names: dict[tuple[int, int], str] = {}
        """PostgreSQL's names of types by OID and modifier, as far as they are known."""
        self._turn = asyncio.Lock()
        self._aborted = self._ended = False
        connection.add_notice_handler(self._took)

    @property
    def usable(self) -> bool:
        """Whether the connection is still there, as far as is known without asking the server."""
        if self._aborted or self.pgconn.status != pq.ConnStatus.OK:
            return False
        try:
            # Messages of an idle server: that it shuts down, or the end of the connection.
            while select.select([self.pgconn.socket], [], [], 0)[0]:
                self.pgconn.consume_input()
        except (psycopg.Error, OSError, ValueError):
            return False
        return self.pgconn.status == pq.ConnStatus.OK and not self._ended

    @property
    def transaction(self) -> pq.TransactionStatus:
        return pq.TransactionStatus(self.pgconn.transaction_status)

    def status(self, name: str) -> str:
        """Return the value of a setting that the server reports; "" for another, or on a version that does not report
        it."""
        return decoded(self.pgconn.parameter_status(name.encode()))

    def described(self) -> list[str]:
        """Return the row of DESCRIBED: "tls" is true or false, the ID is that of the server's process, and the number
        of the version is libpq's, such as 150004 for 15.4."""
        user, host, port = map(decoded, (self.pgconn.user, self.pgconn.host, self.pgconn.port))
        address = f"{host}/.s.PGSQL.{port}" if host.startswith(("/", "@")) else f"{host}:{port}"
        tls, process = str(bool(self.pgconn.ssl_in_use)).lower(), str(self.pgconn.backend_pid)
        return [user, address, tls, process, host, port, self.status("server_version"), str(self.pgconn.server_version)]

    async def ask(self, sql: str, *values: str) -> Values:
        """Return the rows of the service's own statement, as strings."""
        return (await self._all(sql, *values))[0]

    async def listing(self, sql: str, *values: str) -> Listing:
        """Return the result of the service's own statement."""
        rows, last = await self._all(sql, *values)
        kinds = [_LISTED.get(last.ftype(number), "VARCHAR") for number in range(last.nfields)]
        names = [decoded(last.fname(number)) for number in range(last.nfields)]
        readers = [_BOOLEANS if kind == "BOOLEAN" else {} for kind in kinds]
        shown = [[read.get(value or "", value or "") for read, value in zip(readers, row, strict=True)] for row in rows]
        return Listing(list(zip(names, kinds, strict=True)), shown)

    async def describe(self, sql: str) -> Any:
        """Parse one statement without running it; the PGresult has its columns and parameters."""
        results = await self._wait(self._description(sql.encode()))
        for result in results:
            if result.status in _FAILED:
                raise error_of(result, sql)
        return results[-1]

    async def results(self, sql: str, *values: str, start: int = 0, shown: str = "") -> AsyncGenerator[Any]:
        """Run one statement: its PGresults, each with one row at most, and the data of a COPY … TO STDOUT in blocks of
        whole lines. One that is closed before its end is canceled.

        In errors its text is `shown`, if it is another one, which begins at character `start`.
        """
        failed: Exception | None = None
        try:
            await self._wait(self._sent(sql.encode(), [value.encode() for value in values]))
            while (result := await self._wait(self._next())) is not None:
                if result.status in _FAILED:
                    failed = failed or error_of(result, shown or sql, start)
                elif result.status == pq.ExecStatus.COPY_IN:
                    failed = Failure(sqlstate.UNSUPPORTED, NO_DATA)
                else:
                    yield result
                ended = result.status != pq.ExecStatus.COPY_OUT
                while not ended:
                    lines = bytearray()
                    ended = await self._wait(self._block(lines))
                    if lines:
                        yield bytes(lines)
                    # Other sessions have their turn.
                    await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.abort()
            raise
        finally:
            await self._settle()
        if failed is not None:
            raise failed

    async def copy_in(self, sql: str, blocks: AsyncIterator[bytes]) -> str:
        """Run a COPY … FROM STDIN with the data of `blocks`; returns its command tag. An exception of `blocks` undoes
        it."""
        # A binary cursor uses the extended protocol, which refuses a second statement.
        cursor = self._connection.cursor(binary=True)
        try:
            async with self._turn, cursor.copy(sql.encode()) as copy:
                async for block in blocks:
                    await copy.write(block)
        except psycopg.Error as error:
            if error.pgresult is not None:
                raise error_of(error.pgresult, sql) from None
            raise ConnectionLost("" if self._aborted else str(error)) from None
        return cursor.statusmessage or ""

    async def cancel(self) -> None:
        """Ask the server to cancel the running statement. Raises nothing."""
        with contextlib.suppress(psycopg.Error, OSError):
            await self._connection.cancel_safe(timeout=CANCEL_SECONDS)

    def take_notices(self) -> list[str]:
        """Return the notices and notifications since the last call."""
        while (sent := self.pgconn.notifies()) is not None:
            channel, payload = decoded(sent.relname), decoded(sent.extra)
            self.notices.add(f"NOTIFY {channel}{': ' * bool(payload)}{payload} (from server process {sent.be_pid})")
        taken, self.notices = self.notices, Notices()
        return taken.texts()

    def abort(self) -> None:
        """Fail what is being waited for with ConnectionLost, and everything after it."""
        self._aborted = True
        with contextlib.suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(self.pgconn.socket)) as place:
            place.shutdown(socket.SHUT_RDWR)

    async def close(self) -> None:
        """Close the connection; a running statement fails with ConnectionLost."""
        self.abort()
        async with self._turn:
            with contextlib.suppress(psycopg.Error, OSError):
                await self._connection.close()

    def _took(self, notice: Any) -> None:
        # The last that an idle connection hears of a server that ends it.
        self._ended = self._ended or notice.severity_nonlocalized == "FATAL"
        self.notices.add(notice_of(notice))

    async def _all(self, sql: str, *values: str) -> tuple[Values, Any]:
        """All rows of a statement as strings, and its last PGresult."""
        rows: Values = []
        last = None
        async with contextlib.aclosing(self.results(sql, *values)) as results:
            async for last in results:
                rows += _texts(last)
        return rows, last

    async def _settle(self) -> None:
        """End the running statement, if there is one, whose results nobody reads."""
        if self.transaction != pq.TransactionStatus.ACTIVE or self._aborted:
            return
        await self.cancel()
        with contextlib.suppress(ConnectionLost):
            while (result := await self._wait(self._next())) is not None:
                while result.status == pq.ExecStatus.COPY_OUT and not await self._wait(self._block(bytearray())):
                    pass

    async def _wait(self, steps: Steps[T]) -> T:
        """Take these steps, of which each has its turn."""
        async with self._turn:
            if self._aborted:
                raise ConnectionLost("")
            try:
                taken: T = await self._connection.wait(steps, interval=_INTERVAL)
            except psycopg.Error as error:
                if self.pgconn.status != pq.ConnStatus.OK or isinstance(error, psycopg.OperationalError):
                    raise ConnectionLost("" if self._aborted else str(error)) from None
                raise
            return taken

    def _sent(self, sql: bytes, values: Sequence[bytes]) -> Steps[None]:
        """Send a statement."""
        if b";" in sql or values:
            # The extended protocol refuses a second statement.
            self.pgconn.send_query_params(sql, values)
        else:
            # The simple protocol also returns the rows that a rule adds to a statement.
            self.pgconn.send_query(sql)
        self.pgconn.set_single_row_mode()
        yield from self._flushed()

    def _description(self, sql: bytes) -> Steps[list[Any]]:
        """The PGresults of parsing and describing a statement, which take one round trip in a pipeline."""
        self.pgconn.enter_pipeline_mode()
        self.pgconn.send_prepare(b"", sql)
        self.pgconn.send_describe_prepared(b"")
        self.pgconn.pipeline_sync()
        yield from self._flushed()
        results: list[Any] = []
        while (result := (yield from self._next())) is None or result.status != pq.ExecStatus.PIPELINE_SYNC:
            results += [result] if result is not None else []
        self.pgconn.exit_pipeline_mode()
        return results

    def _flushed(self) -> Steps[None]:
        """Send what libpq holds. The server may have to send something before it takes more."""
        while self.pgconn.flush():
            yield Wait.RW
            self.pgconn.consume_input()

    def _next(self) -> Steps[Any]:
        """The next PGresult; None at the end of a statement. A COPY … FROM STDIN gets no data."""
        while self.pgconn.is_busy():
            self.pgconn.consume_input()
            if self.pgconn.is_busy():
                yield Wait.R
        result = self.pgconn.get_result()
        if self.pgconn.status != pq.ConnStatus.OK:
            raise ConnectionLost((result if result is not None else self.pgconn).get_error_message())
        if result is not None and result.status == pq.ExecStatus.COPY_IN:
            self.pgconn.put_copy_end(NO_DATA.encode())
        return result

    def _block(self, lines: bytearray) -> Steps[bool]:
        """Add about BLOCK bytes of lines; returns whether they are the last."""
        get, idle = self.pgconn.get_copy_data, False
        while len(lines) < BLOCK:
            number, line = get(1)
            if number > 0:
                # To keep a million of them and join them would take three times as long as to read them.
                lines += line
                idle = False
            elif number < 0:
                return True
            else:
                # Mostly something has arrived meanwhile: to ask the event loop each time would take as long as to read.
                if idle:
                    yield Wait.R
                self.pgconn.consume_input()
                idle = True
        return False


def _texts(result: Any) -> Values:
    """The rows of a PGresult as strings."""
    rows = [[result.get_value(row, column) for column in range(result.nfields)] for row in range(result.ntuples)]
    return [tuple(None if item is None else decoded(item) for item in row) for row in rows]
