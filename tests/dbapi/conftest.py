"""Connections to the service, apart from the configuration of whoever runs the tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlshell.dbapi import Connection, connect
from tests.conftest import Served


@pytest.fixture(autouse=True)
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of this test's config.toml, which does not exist; no setting comes from the environment."""
    for name in list(os.environ):
        if name.startswith("SQLSHELL_"):
            monkeypatch.delenv(name)
    folder = tmp_path / "config"
    monkeypatch.setenv("SQLSHELL_CONFIG_DIR", str(folder))
    return folder


@pytest.fixture(scope="module")
def embedded() -> Iterator[Connection]:
    """A database in memory that the tests of a module share, without transactions."""
    with connect(":memory:", autocommit=True) as connection:
        yield connection


@pytest.fixture
def remote(served: Served) -> Iterator[Connection]:
    """A session at the service of all tests, which is rolled back."""
    connection = connect(served.url, token=served.token)
    yield connection
    connection.close()
