"""The protocol of a storage, its tables, and its errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

TABLES = """
CREATE TABLE IF NOT EXISTS organizations (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, created {real} NOT NULL);
CREATE TABLE IF NOT EXISTS tokens (
  digest TEXT PRIMARY KEY, id TEXT NOT NULL, name TEXT NOT NULL, organization TEXT NOT NULL, roles TEXT NOT NULL,
  created {real} NOT NULL);
CREATE INDEX IF NOT EXISTS tokens_by_id ON tokens (id);
UPDATE tokens SET name = name || '-' || substr(id, 1, 8) WHERE EXISTS (SELECT 1 FROM tokens older
  WHERE older.organization = tokens.organization AND older.name = tokens.name
  AND (older.created, older.digest) < (tokens.created, tokens.digest));
CREATE UNIQUE INDEX IF NOT EXISTS tokens_by_name ON tokens (organization, name);
CREATE TABLE IF NOT EXISTS objects (
  organization TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, detail TEXT NOT NULL, created {real} NOT NULL,
  updated {real} NOT NULL DEFAULT 0, PRIMARY KEY (organization, kind, name));
CREATE TABLE IF NOT EXISTS statements (
  id TEXT PRIMARY KEY, organization TEXT NOT NULL, owner TEXT NOT NULL, sql TEXT NOT NULL, created {real} NOT NULL,
  finished {real} NOT NULL DEFAULT 0, state TEXT NOT NULL, message TEXT NOT NULL DEFAULT '', context {bytes} NOT NULL,
  outcome {bytes}, body {bytes}, bytes BIGINT NOT NULL DEFAULT 0, process TEXT NOT NULL DEFAULT '',
  operation TEXT NOT NULL DEFAULT '', begun BOOLEAN NOT NULL DEFAULT TRUE);
CREATE INDEX IF NOT EXISTS statements_by_time ON statements (organization, created);
CREATE INDEX IF NOT EXISTS statements_of_organization_by_end ON statements (organization, finished)
  WHERE finished > 0;
CREATE INDEX IF NOT EXISTS statements_by_end ON statements (finished) WHERE finished > 0;
"""
"""The tables, for a dialect's types of floating-point numbers and of bytes.

Earlier versions could create two tokens of one name: all but the oldest get the first part of their ID as a suffix.
"""


class StorageError(Exception):
    """The storage failed. The message is the database's."""


class Duplicate(StorageError):
    """A row with this key exists already."""


class Unavailable(StorageError):
    """The storage cannot be read or written now: the disk is full, or the database does not respond."""


class Unreachable(Unavailable):
    """The database does not respond. The cause has the details, which are not for clients."""


class Storage(Protocol):
    """A database for any thread; each call is one transaction. SQL is what SQLite and PostgreSQL have in common, with
    `?` for values. Every method raises StorageError.
    """

    @property
    def durable(self) -> bool:
        """Whether it survives the end of the process."""

    def read(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]: ...

    def write(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Returns the number of changed rows. Raises Duplicate."""

    def write_all(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Write all rows or none."""

    async def run_async(self, work: Callable[[], T]) -> T:
        """Do work that calls the storage, while the event loop goes on if the storage is on another machine."""

    def size_of(self, column: str) -> str:
        """SQL for the number of bytes of a text or bytes."""

    def close(self) -> None: ...
