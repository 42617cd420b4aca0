"""Stores: what is in them is read and never changed, and what is not in them does not exist."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import Served, serve, stop
from tests.service.client import Client


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with a store `s` that has the entity x.csv and a link that leads out of it."""
    folder = tmp_path_factory.mktemp("stores")
    inside = folder / "inside"
    inside.mkdir()
    (inside / "x.csv").write_text("i\n1\n")
    outside = folder / "secret.csv"
    outside.write_text("i\n2\n")
    (inside / "link.csv").symlink_to(outside)
    running = serve(folder, "--data", str(folder / "data"))
    with Client(running) as made:
        made.rows(f"create store s with ('uri' = '{inside}')")
        made.rows("create table t (i int)")
    yield running
    stop(running)


@pytest.fixture
def client(stored: Served) -> Iterator[Client]:
    with Client(stored) as made:
        yield made


@pytest.mark.parametrize(
    "sql",
    [
        'select * from s."link.csv"',
        'select * from s.main."link.csv"',
        'select count(*) from (select * from S."link.csv")',
        'describe s."link.csv"',
        'insert into t select * from s."link.csv"',
        'select * from t join s."nowhere.csv" n on n.i = t.i',
        "from s.nowhere",
        'print entity s."link.csv"',
    ],
)
def test_what_a_store_has_not_does_not_exist(client: Client, sql: str) -> None:
    answer = client.run(sql)
    assert answer["sqlState"] == "3D020"
    assert answer["message"].startswith("entity 's.")
    assert "does not exist" in answer["message"]


def test_the_name_of_an_entity_is_quoted(client: Client) -> None:
    answer = client.run("select * from s.x.csv")
    assert (answer["sqlState"], answer["message"]) == ("3D020", 'the name of an entity is quoted: s."x.csv"')


@pytest.mark.parametrize(
    "sql",
    [
        'insert into s."x.csv" values (5)',
        'INSERT INTO "S".main."x.csv" select 5 returning i',
        "insert into s.new values (5)",
        'update s."x.csv" set i = 1',
        'delete from s.main."x.csv"',
        'truncate s."x.csv"',
        'merge into s."x.csv" using (select 1 as n) on i = n when matched then delete',
        'with q as (insert into s."x.csv" values (6) returning *) select * from q',
        'explain analyze delete from s."x.csv"',
        "create table s.made (i int)",
        "create or replace view s.main.made as select 1",
        "create schema s.made",
        'drop view if exists s."x.csv"',
        'alter view s."x.csv" rename to y',
        "comment on view s.\"x.csv\" is 'read only'",
    ],
)
def test_nothing_changes_a_store(client: Client, sql: str) -> None:
    answer = client.run(sql)
    assert (answer["sqlState"], answer["message"][:21]) == ("0A000", "store 's' is read onl")
    assert client.rows('select i from s."x.csv"') == [["1"]]


@pytest.mark.parametrize(
    "sql",
    ['create table copied as from s."x.csv"', 'insert into t from s."x.csv"', "select 'insert into s.x' as text"],
)
def test_what_reads_a_store_runs(client: Client, sql: str) -> None:
    assert client.state(sql) == "00000"


def test_a_failure_elsewhere_stays_what_it_is(client: Client) -> None:
    answer = client.run('select * from s."x.csv" s join missing m on m.i = s.i')
    assert answer["sqlState"] == "3D020"
    assert "missing" in answer["message"]
