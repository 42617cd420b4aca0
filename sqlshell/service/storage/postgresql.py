"""A storage in a PostgreSQL database, which several processes of the service can share."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import math
import queue
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

import psycopg
from psycopg import errors

from sqlshell.service.storage import libpq
from sqlshell.service.storage.storage import TABLES, Duplicate, StorageError, Unreachable

T = TypeVar("T")
Row = tuple[Any, ...]

START_SECONDS: Final = 60.0
"""How long the main thread waits for the database before it runs an event loop, to connect and for each call."""

CALL_SECONDS: Final = 10.0
"""The same for other threads."""

LOOP_SECONDS: Final = 3.0
"""The same for the thread of an event loop, which serves no other request meanwhile."""

PAUSE_SECONDS: Final = 1.0
"""After a call without a response, how long other calls fail at once before a thread tries again."""

CONNECTIONS: Final = 8
"""How many calls of threads are made at the same time, each on a connection of its own."""

NO_RESPONSE: Final = "the database of the service does not respond"

LOCK: Final = 0x73716C7368656C6C
"""The advisory lock under which the tables are created."""


class _Connection(psycopg.Connection[Row]):  # type: ignore[misc]
    """A connection that is closed if the database has not responded by `until`, a time of time.monotonic()."""

    until = math.inf

    def wait(self, gen: Generator[Any, Any, T], *given: Any, **named: Any) -> T:
        result: T = super().wait(self._bounded(gen), *given, **named)
        return result

    def _bounded(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        # psycopg's generator receives what the socket is ready for, and nothing when an interval has passed.
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and time.monotonic() > self.until:
                    self.pgconn.finish()
                    raise psycopg.OperationalError("the database did not respond in time")
                wanted = gen.send(ready)
        except StopIteration as done:
            result: T = done.value
            return result


class PostgresqlStorage:
    """`url` is libpq's. Raises UsageError if it is malformed, StorageError if the database cannot be used.

    A connection that was lost is opened again. A change whose outcome is unknown is not repeated. Threads share
    CONNECTIONS connections, which are opened when they are needed. The thread of an event loop has a connection of its
    own and waits for LOOP_SECONDS at most. Once the database has not responded, calls fail at once until a call of
    another thread finds that it responds again.
    """

    durable = True

    def __init__(self, url: str) -> None:
        given = libpq.parsed(url, "the URL of --state-url")
        self.address = libpq.address(given)
        """The host and port, for messages to the operator."""
        self._password = str(given.get("password") or "")
        self.last_error = ""
        """Why the database last did not respond, for the operator."""
        self._url = url
        self._of_threads = _unopened(CONNECTIONS)
        self._of_loops = _unopened(1)
        self._responded = 0.0
        """When a call last got a response, as a time of time.monotonic()."""
        self._executor = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="database")
        self._retry = 0.0
        """Until when calls of threads fail at once, as a time of time.monotonic(); 0 while the database responds."""
        self.create(TABLES.format(real="DOUBLE PRECISION", bytes="BYTEA"))

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        def work(connection: _Connection) -> list[tuple[Any, ...]]:
            rows: list[Row] = connection.execute(_translated(sql), [*map(_stored, values)]).fetchall()
            return rows

        return self._run(work, again=True)

    def write(self, sql: str, values: Sequence[Any] = ()) -> int:
        def work(connection: _Connection) -> int:
            changed: int = connection.execute(_translated(sql), [*map(_stored, values)]).rowcount
            return changed

        return self._run(work)

    def write_all(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        self.write_each(sql, rows)

    def write_each(self, sql: str, rows: Sequence[Sequence[Any]]) -> list[int]:
        """Write rows, all or none; returns the number of changed rows for each."""
        if len(rows) == 1:
            return [self.write(sql, rows[0])]

        def work(connection: _Connection) -> list[int]:
            with connection.pipeline():
                text = _translated(sql)
                done = [connection.execute(text, [_stored(value) for value in row]) for row in rows]
            return [cursor.rowcount for cursor in done]

        return self._run(work)

    async def run_async(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    def size_of(self, column: str) -> str:
        return f"octet_length({column})"

    def close(self) -> None:
        self._executor.shutdown()
        for free in (self._of_threads, self._of_loops):
            for connection in [free.get() for _ in range(CONNECTIONS if free is self._of_threads else 1)]:
                if connection is not None:
                    connection.close()
                free.put(None)

    def server(self) -> str:
        """What distinguishes the server and the database from others, as of an engine on PostgreSQL."""
        [(allowed, database)] = self.read(libpq.MAY_IDENTIFY)
        [(server,)] = self.read(libpq.SYSTEM if allowed else libpq.ADDRESS)
        return f"{server}/{database}"

    def alone(self, work: Callable[[], T]) -> T:
        """Do work while no other process does such work."""

        def locked(connection: _Connection) -> T:
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK + 1])
                return work()

        return self._run(locked)

    def create(self, tables: str) -> None:
        """Create tables that do not exist yet; `tables` are statements that end with semicolons."""

        def work(connection: _Connection) -> None:
            with connection.transaction():
                # CREATE … IF NOT EXISTS fails if another process creates the same at the same time.
                connection.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
                connection.execute(tables.encode())

        self._run(work)

    def _run(self, work: Callable[[_Connection], T], *, again: bool = False) -> T:
        """Work with a connection; `again` makes work that only reads once more if the connection was lost."""
        on_loop = _is_on_loop()
        free, seconds = (self._of_loops, LOOP_SECONDS) if on_loop else (self._of_threads, CALL_SECONDS)
        if not on_loop and threading.current_thread() is threading.main_thread():
            seconds = START_SECONDS
        if self._retry and (on_loop or time.monotonic() < self._retry):
            raise Unreachable(NO_RESPONSE)
        if self._retry:
            # Only this call tries, until it has failed too.
            self._retry = time.monotonic() + CALL_SECONDS
        with _errors():
            connection = free.get(timeout=seconds)
            try:
                while True:
                    began, reused = time.monotonic(), connection is not None and not connection.closed
                    try:
                        if connection is None or connection.closed:
                            connection = None
                            connection = self._connect(seconds)
                        connection.until = began + seconds
                        result = work(connection)
                    except psycopg.OperationalError as error:
                        self.last_error = libpq.without(libpq.stated(str(error)), self._password)
                        is_silent = connection is None or time.monotonic() > began + seconds
                        if self._retry or (is_silent and self._responded < began):
                            self._retry = time.monotonic() + PAUSE_SECONDS
                        is_lost = connection is not None and connection.closed
                        if not (again and reused and is_lost) or self._retry:
                            raise
                    except psycopg.Error:
                        self._note_response()
                        raise
                    else:
                        self._note_response()
                        return result
            finally:
                free.put(connection)

    def _connect(self, seconds: float) -> _Connection:
        connection: _Connection = _Connection.connect(
            self._url,
            autocommit=True,
            connect_timeout=math.ceil(seconds),
            tcp_user_timeout=int(CALL_SECONDS * 1000),
            keepalives_idle=5,
            keepalives_interval=2,
            keepalives_count=3,
        )
        connection.until = time.monotonic() + seconds
        # The database soon ends a statement that is no longer awaited.
        connection.execute(f"SET statement_timeout = {int(START_SECONDS * 1000)}".encode())
        return connection

    def _note_response(self) -> None:
        self._responded, self._retry = time.monotonic(), 0.0


def _unopened(count: int) -> queue.LifoQueue[_Connection | None]:
    """Connections that no call uses, the one that was used last is the next; None is one that is opened when needed."""
    free: queue.LifoQueue[_Connection | None] = queue.LifoQueue()
    for _ in range(count):
        free.put(None)
    return free


def _is_on_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@functools.lru_cache(256)
def _translated(sql: str) -> bytes:
    """SQL with psycopg's placeholders. No statement of the service has a question mark in a string."""
    return sql.replace("%", "%%").replace("?", "%s").encode()


def _stored(value: Any) -> Any:
    """A value that PostgreSQL can store: its texts have neither NUL nor halves of surrogate pairs."""
    if isinstance(value, str) and (not value.isascii() or "\0" in value):
        return value.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
    return value


@contextlib.contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except errors.UniqueViolation as error:
        raise Duplicate(str(error)) from error
    except (psycopg.OperationalError, queue.Empty) as error:
        raise Unreachable(NO_RESPONSE) from error
    except psycopg.Error as error:
        raise StorageError(str(error).partition("\n")[0]) from error
