"""Statements that change data, and whose rows cannot be stored: they change nothing, or their error says it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Served, serve, stop
from tests.service.client import Client
from tests.service.cluster import Processes, needs_cluster, on_postgresql, processes
from tests.service.postgresql import database, needs_postgresql

ROWS = "select g, md5(g::text) || md5((-g)::text) from generate_series(1, 40000) g"

WRITES = (
    f"insert into t {ROWS} returning *",
    f"with w as (insert into t {ROWS} returning *) select * from w",
    f"with w as (insert into t {ROWS}) select g, md5(g::text) || md5((-g)::text) from generate_series(1, 40000) g",
    f"copy (insert into t {ROWS} returning *) to stdout",
    "execute p",
)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, postgresql_server: str) -> Iterator[Served]:
    """A service that stores results of at most 1 MiB in total."""
    with database(postgresql_server) as url:
        options = ("--engine", "postgresql", "--engine-url", url, "--quota", "0.001")
        served = serve(tmp_path_factory.mktemp("small"), *options)
        yield served
        stop(served)


@pytest.fixture
def client(small: Served) -> Iterator[Client]:
    with Client(small) as made:
        made.run("drop table if exists t")
        made.rows_of_nothing("create table t (i int, s text)")
        made.rows_of_nothing(f"prepare p as insert into t {ROWS} returning *")
        yield made
        made.run("rollback")


@needs_postgresql
@pytest.mark.parametrize("sql", WRITES)
def test_a_statement_whose_rows_do_not_fit_changes_nothing(small: Served, client: Client, sql: str) -> None:
    answer = client.run(sql)
    assert answer["sqlState"] == "53000", answer
    assert "--quota" in answer["message"] and "took effect" not in answer["message"]
    assert client.rows("select count(*) from t") == [["0"]]
    assert client.rows("insert into t values (1, 'a') returning i") == [["1"]]
    with Client(small) as other:
        assert other.rows("select count(*) from t") == [["1"]]


@needs_postgresql
@pytest.mark.parametrize("sql", [*WRITES, ROWS])
def test_a_transaction_fails_with_rows_that_do_not_fit(client: Client, sql: str) -> None:
    client.run("begin")
    client.run("insert into t values (0, 'before')")
    assert client.run(sql)["sqlState"] == "53000"
    assert client.run("insert into t values (0, 'after')")["sqlState"] == "25P02"
    assert client.run("commit")["sqlState"] == "01000"
    assert client.rows("select count(*) from t") == [["0"]]


@needs_postgresql
def test_an_error_at_the_commit_is_that_of_the_statement(client: Client) -> None:
    client.rows_of_nothing("create temp table late (i int unique deferrable initially deferred)")
    answer = client.run("insert into late values (1), (1) returning i")
    assert answer["sqlState"] == "23505", answer
    assert client.rows("insert into late values (1) returning i") == [["1"]]


@needs_postgresql
def test_a_function_with_effects_is_said_to_have_run(client: Client) -> None:
    client.rows_of_nothing(
        "create or replace function adds(n int) returns text language plpgsql as "
        "$$ begin insert into t values (n, 'f'); return md5(n::text) || md5((-n)::text); end $$"
    )
    answer = client.run("select adds(g) from generate_series(1, 40000) g")
    assert answer["sqlState"] == "53000"
    said = "the statement (took|may have taken) effect, but its result could not be stored: "
    assert re.match(said, answer["message"])


@needs_postgresql
def test_a_procedure_is_said_to_have_taken_effect(client: Client) -> None:
    client.rows_of_nothing(
        "create or replace procedure adds_one(inout s text) language plpgsql as "
        "$$ begin insert into t values (1, 'p'); commit; "
        "s := (select string_agg(md5(g::text), '') from generate_series(1, 100000) g); end $$"
    )
    answer = client.run("call adds_one('')")
    assert answer["sqlState"] == "53000"
    assert re.match("the statement (took|may have taken) effect", answer["message"]), answer
    assert client.rows("select count(*) from t") == [["1"]]


@pytest.fixture
def shared(tmp_path: Path, postgresql_server: str) -> Iterator[Processes]:
    with (
        database(postgresql_server) as engine_url,
        database(postgresql_server) as state_url,
        processes(tmp_path, on_postgresql(engine_url), state_url, 1) as made,
    ):
        yield made


@needs_postgresql
@needs_cluster
def test_a_statement_whose_rows_cannot_be_shared_changes_nothing(shared: Processes) -> None:
    """The storage of results is gone: a file is where its directory was."""
    with Client(shared.served[0]) as client:
        client.rows_of_nothing("create table t (i int, s text)")
        shutil.rmtree(shared.folder / "shared")
        (shared.folder / "shared").write_text("")
        answer = client.run(f"insert into t {ROWS} returning *")
        assert answer["sqlState"] == "53000", answer
        assert client.rows("select count(*) from t") == [["0"]]
        client.run("begin")
        client.run("insert into t values (1, 'a')")
        assert client.run(f"insert into t {ROWS} returning *")["sqlState"] == "53000"
        assert client.run("commit")["sqlState"] == "01000"
        assert client.rows("select count(*) from t") == [["0"]]
