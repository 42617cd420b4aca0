"""Fixtures for tests of the service."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from sqlshell.service.storage.sqlite import SqliteStorage
from tests.service.postgresql import database, running


@pytest.fixture
def storage() -> Iterator[SqliteStorage]:
    """A storage that keeps nothing, and is closed."""
    with contextlib.closing(SqliteStorage()) as made:
        yield made


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The directory of the socket of a PostgreSQL server."""
    with running() as folder:
        yield folder


@pytest.fixture
def postgresql_database(postgresql_server: str) -> Iterator[str]:
    """The URL of a new database of PostgreSQL."""
    with database(postgresql_server) as url:
        yield url
