"""Fixtures for tests of the service."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from sqlshell.service.storage.sqlite import SqliteStorage
from tests.conftest import Served
from tests.service.postgresql import MISSING, database, running
from tests.service.required import required
from tests.service.tested_engines import ENGINES, OnEngine, TestedEngine


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


SERVERS = {"postgresql_server", "spark_url"}
"""Fixtures that start a server."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        tested = item.callspec.params.get("engine") if hasattr(item, "callspec") else None
        on_server = isinstance(tested, TestedEngine) and tested is not ENGINES[0]
        if on_server or SERVERS & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.engines)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    # Before any fixture starts a server. All skips are at one place, so that pytest reports each reason in one line.
    reasons = [reason for mark in item.iter_markers("requires") for reason in mark.args if reason]
    if MISSING and "postgresql_server" in getattr(item, "fixturenames", ()):
        reasons.append(MISSING)
    if reasons:
        pytest.skip(reasons[0])
    tested = item.callspec.params.get("engine") if hasattr(item, "callspec") else None
    if not isinstance(tested, TestedEngine):
        return
    reason = f"engine {tested.name}: {missing}" if (missing := tested.missing()) else ""
    if reason and required(tested.name):
        pytest.fail(reason, pytrace=False)
    needed = {name for mark in item.iter_markers("needs") for name in mark.args}
    lacking = sorted(name for name in needed if not getattr(tested.capabilities, name))
    if reason or lacking:
        pytest.skip(reason or f"engine {tested.name} has no {', '.join(lacking)}")


@pytest.fixture(scope="session", params=[pytest.param(engine, id=engine.name) for engine in ENGINES])
def engine(request: pytest.FixtureRequest) -> Iterator[OnEngine]:
    """Each engine in turn, running."""
    tested: TestedEngine = request.param
    with tested.server() as places:
        yield OnEngine(tested, places)


@pytest.fixture(scope="session")
def served_on(engine: OnEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One service on each engine, for all tests that do not change it; partitions of 1,000 rows."""
    with engine.serve(tmp_path_factory.mktemp("service"), "--partition-rows", "1000") as running:
        yield running
