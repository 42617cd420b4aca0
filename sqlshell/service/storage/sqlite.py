"""A storage in one SQLite file, or in memory for a service without --data.

It uses write-ahead logging with synchronous=NORMAL: committed data survives kill -9, and the file stays consistent
after a loss of power.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from sqlshell.service.storage.storage import TABLES, Duplicate, StorageError, Unavailable

T = TypeVar("T")

LATER = (
    ("objects", "updated", "REAL NOT NULL DEFAULT 0"),
    ("statements", "process", "TEXT NOT NULL DEFAULT ''"),
    ("statements", "operation", "TEXT NOT NULL DEFAULT ''"),
    ("statements", "begun", "BOOLEAN NOT NULL DEFAULT TRUE"),
)
"""Columns that files of earlier versions lack: table, name, type."""


class SqliteStorage:
    """Raises StorageError if the file cannot be opened."""

    def __init__(self, path: Path | None = None) -> None:
        self.durable = path is not None
        """Whether it survives the end of the process."""
        self._lock = threading.Lock()
        with _errors():
            self._connection = sqlite3.connect(
                # An unnamed database is spilled to a private file of SQLite's when it grows.
                str(path or ""),
                timeout=10,
                isolation_level=None,
                check_same_thread=False,
            )
            self._create(path)

    def _create(self, path: Path | None) -> None:
        try:
            if path is not None:
                self._connection.execute("PRAGMA journal_mode = wal")
                self._connection.execute("PRAGMA synchronous = normal")
            self._connection.executescript(TABLES.format(real="REAL", bytes="BLOB"))
            for table, column, kind in LATER:
                if column not in {row[1] for row in self._connection.execute(f"PRAGMA table_info({table})")}:
                    self._connection.execute(f"ALTER TABLE {table} ADD COLUMN {column} {kind}")
        except BaseException:
            self._connection.close()
            raise

    async def run_async(self, work: Callable[[], T]) -> T:
        return work()

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._lock, _errors():
            return self._connection.execute(sql, values).fetchall()

    def write(self, sql: str, values: Sequence[Any] = ()) -> int:
        with self._lock, _errors():
            return self._connection.execute(sql, values).rowcount

    def write_all(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        with self._lock, _errors():
            self._connection.execute("BEGIN")
            try:
                self._connection.executemany(sql, rows)
                self._connection.execute("COMMIT")
            except BaseException:
                # SQLite may have rolled back already, for example when the disk is full.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def size_of(self, column: str) -> str:
        return f"length(CAST({column} AS BLOB))"

    def close(self) -> None:
        with self._lock:
            self._connection.close()


@contextlib.contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise Duplicate(str(error)) from error
    except sqlite3.OperationalError as error:
        raise Unavailable(str(error)) from error
    except sqlite3.Error as error:
        raise StorageError(str(error)) from error
