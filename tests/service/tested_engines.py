"""The engines that the service's tests run against, each with how it spells what the tests need.

A test of the interface's behavior takes the fixture `engine` (or `served_on` and `on_engine`, which use it) and runs
once on each of them. It names the capabilities that it needs: `@pytest.mark.needs("transactions")`. An engine that does
not declare them is skipped. Nothing else decides what an engine is tested for: no test looks at an engine's name.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Final

from msgspec import Struct

from sqlshell.service.engines import duckdb, postgresql, spark
from sqlshell.service.engines.engine import Capabilities
from tests.conftest import Served, serve, stop
from tests.service import postgresql as postgresql_server
from tests.service import sail
from tests.service.spark import GIVEN

Options = tuple[str, ...]
"""Options of `sqlshell serve`."""

Places = Callable[[], AbstractContextManager[Options]]
"""Gives the options of a service whose data no other service uses."""


class Spelling(Struct, frozen=True):
    """How an engine spells what has no common SQL.

    `series` are {n} rows with the numbers from 0 on in the BIGINT column `i`. `endless` runs until it is ended, `long`
    for some tenths of a second, both with one row. `instant` is 2024-07-01 12:00:00.5 UTC. `schema` is the
    one in which a session begins. `no_relation` is the sqlState of the engine's statements that name an unknown
    relation, `no_schema` of those that need an unknown schema.
    """

    series: str
    endless: str
    long: str
    instant: str
    no_relation: str
    no_schema: str
    schema: str


class TestedEngine(Struct, frozen=True):
    """An engine. `missing` says what is not installed, "" if it can be used; `server` starts the server that is tested,
    if the engine is one, and gives its places."""

    __test__ = False

    name: str
    capabilities: Capabilities
    spelling: Spelling
    missing: Callable[[], str]
    server: Callable[[], AbstractContextManager[Places]]


class OnEngine:
    """A running engine, for the tests of one process."""

    def __init__(self, engine: TestedEngine, places: Places) -> None:
        self.capabilities = engine.capabilities
        self.sql = engine.spelling
        self.name = engine.name
        self.place = places

    def series(self, rows: int) -> str:
        """Rows with the numbers from 0 on in the column `i`, for FROM."""
        return self.sql.series.format(n=rows)

    @contextmanager
    def serve(self, folder: Path, *options: str, settings: Mapping[str, float] = {}) -> Iterator[Served]:
        """A service on data of its own, until the end of the context."""
        with self.place() as place:
            running = serve(folder, *options, *place, settings=settings)
            try:
                yield running
            finally:
                code = stop(running)
            assert code == 0


@contextmanager
def _no_server() -> Iterator[Places]:
    yield lambda: nullcontext(())


@contextmanager
def _postgresql() -> Iterator[Places]:
    with postgresql_server.running() as folder:

        @contextmanager
        def place() -> Iterator[Options]:
            with postgresql_server.database(folder) as url:
                yield ("--engine", "postgresql", "--engine-url", url)

        yield place


@contextmanager
def _sail() -> Iterator[Places]:
    with nullcontext(GIVEN) if GIVEN else sail.running() as url:
        # Each session of Sail has tables of its own.
        yield lambda: nullcontext(("--engine", "spark", "--engine-url", url))


def _postgresql_missing() -> str:
    if not postgresql_server.program("initdb"):
        return "PostgreSQL is not installed"
    found = all(map(importlib.util.find_spec, ("psycopg", "pyarrow")))
    return "" if found else "install it with: pip install 'psycopg[binary]' pyarrow"


def _sail_missing() -> str:
    return "" if sail.installed() else "install it with: pip install pyspark-client pysail"


ENGINES: Final = (
    TestedEngine(
        "duckdb",
        duckdb.CAPABILITIES,
        Spelling(
            series="range({n}) AS t(i)",
            endless="select count(*) as n from range(100000000000) a, range(1000) b",
            long="select count(*) as n from range(200000000) t(i) where i % 7 = 3",
            instant="timestamptz '2024-07-01 12:00:00.5+00'",
            no_relation="3D020",
            no_schema="3D003",
            schema="main",
        ),
        lambda: "",
        _no_server,
    ),
    TestedEngine(
        "postgresql",
        postgresql.CAPABILITIES,
        Spelling(
            series="generate_series(0::bigint, {n} - 1) AS t(i)",
            endless="select count(*) as n from pg_sleep(3600)",
            long="select count(*) as n from pg_sleep(0.7)",
            instant="timestamptz '2024-07-01 12:00:00.5+00'",
            no_relation="42P01",
            no_schema="3D003",
            schema="public",
        ),
        _postgresql_missing,
        _postgresql,
    ),
    TestedEngine(
        "spark",
        spark.CAPABILITIES,
        Spelling(
            series="range({n}) AS t(i)",
            endless="select count(*) as n from range(100000000000) as t(i) where i % 7 = 3",
            long="select count(*) as n from range(300000000) as t(i) where i % 7 = 3",
            instant="timestamp '2024-07-01 12:00:00.5+00:00'",
            no_relation="42P01",
            no_schema="42704",
            schema="default",
        ),
        _sail_missing,
        _sail,
    ),
)
