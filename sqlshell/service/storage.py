"""The service's own records, as opposed to users' data: one SQLite file, or memory for a service without --data.

It uses write-ahead logging with synchronous=NORMAL: committed data survives kill -9, and the file stays consistent
after a loss of power.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SCHEMA = """
CREATE TABLE IF NOT EXISTS organizations (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, created REAL NOT NULL);
CREATE TABLE IF NOT EXISTS tokens (
  digest TEXT PRIMARY KEY, id TEXT NOT NULL, name TEXT NOT NULL, organization TEXT NOT NULL, roles TEXT NOT NULL,
  created REAL NOT NULL);
CREATE INDEX IF NOT EXISTS tokens_by_id ON tokens (id);
CREATE TABLE IF NOT EXISTS objects (
  organization TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, detail TEXT NOT NULL, created REAL NOT NULL,
  updated REAL NOT NULL DEFAULT 0, PRIMARY KEY (organization, kind, name));
CREATE TABLE IF NOT EXISTS statements (
  id TEXT PRIMARY KEY, organization TEXT NOT NULL, owner TEXT NOT NULL, sql TEXT NOT NULL, created REAL NOT NULL,
  finished REAL NOT NULL DEFAULT 0, state TEXT NOT NULL, message TEXT NOT NULL DEFAULT '', context BLOB NOT NULL,
  outcome BLOB, body BLOB, bytes INTEGER NOT NULL DEFAULT 0);
CREATE INDEX IF NOT EXISTS statements_by_time ON statements (organization, created);
CREATE INDEX IF NOT EXISTS statements_of_organization_by_end ON statements (organization, finished)
  WHERE finished > 0;
CREATE INDEX IF NOT EXISTS statements_by_end ON statements (finished) WHERE finished > 0;
"""


class Storage:
    """A SQLite database for any thread; each call is one transaction. Raises sqlite3.Error if it cannot be opened."""

    def __init__(self, path: Path | None = None) -> None:
        self.durable = path is not None
        """Whether it survives the end of the process."""
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(
            # An unnamed database is spilled to a private file of SQLite's when it grows.
            str(path or ""),
            timeout=10,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            if path is not None:
                self._connection.execute("PRAGMA journal_mode = wal")
                self._connection.execute("PRAGMA synchronous = normal")
            self._connection.executescript(SCHEMA)
            if "updated" not in {row[1] for row in self._connection.execute("PRAGMA table_info(objects)")}:
                self._connection.execute("ALTER TABLE objects ADD COLUMN updated REAL NOT NULL DEFAULT 0")
        except sqlite3.Error:
            self._connection.close()
            raise

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._connection.execute(sql, values).fetchall()

    def write(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Returns the number of changed rows. Raises sqlite3.IntegrityError for a duplicate."""
        with self._lock:
            return self._connection.execute(sql, values).rowcount

    def write_all(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Write all rows or none."""
        with self._lock:
            self._connection.execute("BEGIN")
            try:
                self._connection.executemany(sql, rows)
                self._connection.execute("COMMIT")
            except BaseException:
                # SQLite may have rolled back already, for example when the disk is full.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        with self._lock:
            self._connection.close()
