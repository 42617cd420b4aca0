"""A storage in a PostgreSQL database, which several processes of the service can share."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

import psycopg
from psycopg import errors

from sqlshell.service.storage.storage import TABLES, Duplicate, StorageError, Unreachable

T = TypeVar("T")

CONNECT_SECONDS: Final = 10

LOCK: Final = 0x73716C7368656C6C
"""The advisory lock under which the tables are created."""


class PostgresqlStorage:
    """`url` is libpq's. Raises StorageError if the database cannot be used.

    A connection that was lost is opened again. A change whose outcome is unknown is not repeated, except for one that
    has no further effect when it is made twice.
    """

    durable = True

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self.create(TABLES.format(real="DOUBLE PRECISION", bytes="BYTEA"))

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        def work(connection: psycopg.Connection[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
            rows: list[tuple[Any, ...]] = connection.execute(_translated(sql), [*map(_stored, values)]).fetchall()
            return rows

        with self._lock:
            return self._run(work, again=True)

    def write(self, sql: str, values: Sequence[Any] = ()) -> int:
        def work(connection: psycopg.Connection[tuple[Any, ...]]) -> int:
            changed: int = connection.execute(_translated(sql), [*map(_stored, values)]).rowcount
            return changed

        with self._lock:
            return self._run(work)

    def write_all(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        def work(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
            with connection.transaction(), connection.cursor() as cursor:
                cursor.executemany(_translated(sql), [[_stored(value) for value in row] for row in rows])

        with self._lock:
            self._run(work)

    def size_of(self, column: str) -> str:
        return f"octet_length({column})"

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()

    def create(self, tables: str) -> None:
        """Create tables that do not exist yet; `tables` are statements that end with semicolons."""

        def work(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
            with connection.transaction():
                # CREATE … IF NOT EXISTS fails if another process creates the same at the same time.
                connection.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
                connection.execute(tables.encode())

        with self._lock:
            self._run(work)

    def _run(self, work: Callable[[psycopg.Connection[tuple[Any, ...]]], T], *, again: bool = False) -> T:
        """Work with the connection; `again` makes work that only reads once more if the connection was lost."""
        with _errors():
            was_open = self._connection is not None and not self._connection.closed
            try:
                return work(self._opened())
            except psycopg.OperationalError:
                if not (again and was_open and self._connection is not None and self._connection.closed):
                    raise
                return work(self._opened())

    def _opened(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._connection is None or self._connection.closed:
            # A network that no longer carries anything is noticed: the event loop may be waiting.
            noticing = {
                "keepalives_idle": 5,
                "keepalives_interval": 2,
                "keepalives_count": 3,
                "tcp_user_timeout": 10_000,
            }
            self._connection = psycopg.connect(self._url, autocommit=True, connect_timeout=CONNECT_SECONDS, **noticing)
        return self._connection


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
    except psycopg.OperationalError as error:
        raise Unreachable("the database of the service does not respond") from error
    except psycopg.Error as error:
        raise StorageError(str(error).partition("\n")[0]) from error
