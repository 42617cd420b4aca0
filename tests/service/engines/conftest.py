"""Sessions of the engines PostgreSQL and Spark on real servers."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.engine import RunOptions
from sqlshell.service.failure import Failure
from sqlshell.service.results.results import Discard, Spool
from tests.service import sail, spark
from tests.service.postgresql import database

if TYPE_CHECKING:
    from sqlshell.service.engines.postgresql.engine import PostgresqlEngine
    from sqlshell.service.engines.postgresql.session import PostgresqlSession


class Rows(Discard):
    """A sink that keeps all rows as text."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def keep(self, rows: Any) -> None:
        self.texts += rows


@dataclass(frozen=True)
class Told:
    """What came of a statement."""

    columns: list[ColumnInfo] | None
    rows: list[list[str | None]]
    message: str
    state: str

    @property
    def names(self) -> list[str | None]:
        return [column.name for column in self.columns or ()]

    @property
    def types(self) -> list[str | None]:
        return [column.type for column in self.columns or ()]


@dataclass
class Runner:
    """Runs statements in one session."""

    session: PostgresqlSession
    options: RunOptions = field(default_factory=RunOptions)

    def run(self, sql: str, **options: Any) -> Told:
        sink = Rows()
        outcome = self.session.run(sql, RunOptions(**options) if options else self.options, sink)
        return Told(outcome.columns, [json.loads(row) for row in sink.texts], outcome.message, outcome.sql_state)

    def value(self, sql: str, **options: Any) -> str | None:
        ((found,),) = self.run(sql, **options).rows
        return found

    def fails(self, sql: str, **options: Any) -> tuple[str, str]:
        """The sqlState and message of a statement that fails."""
        with pytest.raises(Failure) as caught:
            self.run(sql, **options)
        return caught.value.sql_state, caught.value.message


def stored(runner: Runner, engine: PostgresqlEngine, sql: str, place: Path, **options: Any) -> list[list[str | None]]:
    """The rows of a statement whose result is a file, as its partitions have them."""
    spool = Spool(lambda: place, 10_000)
    outcome = runner.session.run(sql, RunOptions(**options), spool)
    assert outcome.filed is not None
    spool.finish(outcome.filed)
    assert (spool.layout.form, spool.layout.typed) == ("engine", True)
    bodies = engine.read(place, 0, spool.layout.counts)
    assert len(bodies) == len(outcome.filed)
    return [row for body in bodies for row in json.loads(b"[" + body + b"]")]


Connect = Callable[[], Runner]


@pytest.fixture(scope="module")
def postgresql_url(postgresql_server: str) -> Iterator[str]:
    """The URL of a database for the tests of a module."""
    with database(postgresql_server) as url:
        yield url


@pytest.fixture(scope="module")
def postgresql(postgresql_url: str) -> Iterator[PostgresqlEngine]:
    from sqlshell.service.engines.postgresql.engine import PostgresqlEngine

    with contextlib.closing(PostgresqlEngine(postgresql_url)) as engine:
        yield engine


@pytest.fixture
def connect(postgresql: PostgresqlEngine) -> Iterator[Connect]:
    """Makes sessions, which are closed at the end of the test."""
    with contextlib.ExitStack() as stack:

        def made() -> Runner:
            session = postgresql.connect()
            stack.callback(session.close)
            return Runner(session)

        yield made


@pytest.fixture
def runner(connect: Connect) -> Runner:
    return connect()


@pytest.fixture(scope="session")
def spark_url() -> Iterator[str]:
    """The URL of a Spark Connect server."""
    if spark.GIVEN:
        yield spark.GIVEN
        return
    with sail.running() as url:
        yield url


@pytest.fixture(scope="module")
def spark_engine(spark_url: str) -> Iterator[Any]:
    from sqlshell.service.engines.spark.engine import SparkEngine

    engine = SparkEngine(spark_url)
    yield engine
    engine.close()


@pytest.fixture
def session(spark_engine: Any, tmp_path: Path) -> Iterator[spark.Session]:
    """A new session on a Spark Connect server."""
    made = spark.Session(spark_engine, tmp_path)
    yield made
    made.connection.close()
