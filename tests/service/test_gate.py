"""Under `serve`, SQL can access only the databases of its organization and the allowed stores."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases import lines
from tests.conftest import Served, serve, stop
from tests.service.client import Client

SECRET = "the-content-of-a-file-that-nobody-granted"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gate")
    (folder / "secret.csv").write_text(f"a\n{SECRET}\n")
    (folder / "secret.txt").write_text(SECRET)
    (folder / "out").mkdir()
    return folder


@pytest.fixture(scope="module")
def gated(place: Path) -> Iterator[Served]:
    running = serve(place, "--data", str(place / "data"), "--max-sessions", "1000")
    with Client(running) as client:
        assert client.state("create table t as select 1 as a") == "00000"
    yield running
    stop(running)


READS = lines("gate", "reads")

WRITES = lines("gate", "writes")


@pytest.mark.parametrize("template", READS + WRITES)
def test_nothing_outside_is_reached(gated: Served, place: Path, template: str) -> None:
    before = sorted(place.joinpath("out").iterdir())
    with Client(gated) as client:
        answer = client.run(template.format(p=place))
        assert answer["sqlState"][:2] not in {"00", "01", "02"}, answer
        assert SECRET not in str(answer)
    assert sorted(place.joinpath("out").iterdir()) == before


@pytest.mark.parametrize("template", [sql for sql in READS if "read_" in sql or "glob(" in sql or "query" in sql])
def test_refusals_are_42501(gated: Served, place: Path, template: str) -> None:
    with Client(gated) as client:
        assert client.state(template.format(p=place)) == "42501"


def test_the_services_own_files_cannot_be_read(gated: Served, place: Path) -> None:
    own = next(place.glob("data/organizations/*/databases/*.data"))
    with Client(gated) as client:
        for sql in (f"select * from read_blob('{own}')", f"from '{own}'", f'from "{own}"', f"from t, '{own}'"):
            assert client.state(sql)[:2] != "00", sql
        copies = f"copy (select 1) to '{own}' (format csv, use_tmp_file false)"
        assert client.state(copies) == "42501"
        assert client.state(f"with x as ({copies}) select 1") == "42501"
        assert client.rows("select a from t") == [["1"]]


def test_the_services_own_files_are_not_found_behind_backslashes(gated: Served, place: Path) -> None:
    folder = next(place.glob("data/organizations/*"))
    (folder / "copies" / "planted.csv").write_text("a\nseen\n")
    (folder / "system" / "planted.json").write_text('{"a": "seen"}')
    forms = [
        f"{folder.parent}\\{folder.name}\\copies\\p*.csv",
        f"{folder.parent}\\{folder.name}/system/p*.json",
        f"file:{folder.parent}/x\\..\\{folder.name}\\copies\\*.csv",
        f"{folder.parent}\\{folder.name}\\[.csv?0-9a-z_]*",
        f"{folder.parent}//{folder.name}\\**",
    ]
    with Client(gated) as client:
        for form in forms:
            for sql in (f"from '{form}'", f'select * from "{form}"', f"list databases where exists (from '{form}')"):
                assert client.state(sql) == "42501", sql
        assert client.rows("list queries where false") == [], "such texts are in the list itself"


def test_no_macro_changes_how_results_are_written(gated: Served) -> None:
    names = {"to_json": 1, "concat": 4, "replace": 3, "contains": 2, "list_transform": 2, "strlen": 1, "isfinite": 1}
    forged = """'"1"]],"sqlState":"00000","message":"FORGED","data":[["2"'"""
    sql = "select [1.5::float], 'a\"b', 1.5, {'a': [i]}, 'x' || i from range(2) t(i)"
    with Client(gated) as client:
        expected = client.run(sql)["data"]
        for name, number in names.items():
            parameters = ", ".join("abcdefgh"[:number])
            client.rows_of_nothing(f"create or replace temp macro {name}({parameters}) as {forged}")
        answer = client.run(sql)
        assert "FORGED" not in str(answer)
        assert answer["data"] == expected


def test_words_are_not_refused_where_they_are_only_words(gated: Served) -> None:
    with Client(gated) as client:
        rows = client.rows(
            "select 'read_csv(' as glob, 'copy' as query, \"t\".a as \"read_text\" from t -- from 'x.csv'"
        )
        assert rows == [["read_csv(", "copy", "1"]]
        assert client.rows("select 'a', 'from ''x.csv''', $$copy t to 'x'$$") == [
            ["a", "from 'x.csv'", "copy t to 'x'"]
        ]


ALLOWED = lines("gate", "allowed")


def test_ordinary_statements_run(gated: Served) -> None:
    with Client(gated, session="ordinary") as client:
        answers = [(sql, client.run(sql)) for sql in ALLOWED]
    assert [(sql, answer) for sql, answer in answers if answer["sqlState"] != "00000"] == []


READER = lines("gate", "reader")
DATA = lines("gate", "data")
OBJECTS = lines("gate", "objects")


def test_roles(gated: Served) -> None:
    with Client(gated) as owner:
        tokens = {
            role: str(owner.rows(f"create api_token t_{role} with ('role' = '{role}')")[0][1])
            for role in ("reader", "writer")
        }
        with Client(gated, tokens["reader"]) as reader:
            assert [(sql, reader.state(sql)) for sql in READER] == [(sql, "00000") for sql in READER]
            refused = DATA + OBJECTS
            assert [(sql, reader.state(sql)) for sql in refused] == [(sql, "42501") for sql in refused]
        with Client(gated, tokens["writer"]) as writer:
            assert [(sql, writer.state(sql)) for sql in OBJECTS] == [(sql, "42501") for sql in OBJECTS]
            assert [(sql, writer.state(sql)) for sql in DATA] == [(sql, "00000") for sql in DATA]
            assert writer.state("use role owner") == "42501"
            assert writer.state("select 1", role="owner") == "42501"
            assert writer.state("use role nobody") == "3D001"
        assert owner.state("use role reader") == "00000"
        assert owner.state("insert into t values (1)") == "42501"


@pytest.mark.parametrize("sql", ["set global timezone = 'Asia/Tokyo'", 'reset global "TimeZone"'])
def test_a_zone_for_all_sessions_is_refused_as_elsewhere(gated: Served, sql: str) -> None:
    with Client(gated) as client:
        answer = client.run(sql)
    assert answer["sqlState"] == "0A000"
    assert "use SET TimeZone" in answer["message"]


def test_stores_are_read_and_nothing_beside_them(gated: Served, place: Path) -> None:
    granted = place / "granted"
    granted.mkdir()
    (granted / "a b.csv").write_text("x,y\n1,two\n")
    (granted / "rows.jsonl").write_text('{"k": {"n": [1]}}\n')
    (granted / "link.csv").symlink_to(place / "secret.csv")
    with Client(gated) as client:
        assert client.state(f"create store gr with ('type' = 'files', 'uri' = '{granted}')") == "00000"
        assert [row[0] for row in client.rows("list entities in store gr")] == ["a b.csv", "rows.jsonl"]
        assert client.rows('select * from gr."a b.csv"') == [["1", "two"]]
        assert client.rows('print entity gr."rows.jsonl"') == [['{"n":[1]}']]
        assert client.state('select * from gr."link.csv"') == "3D020"
        assert client.state('select * from gr."../secret.csv"')[:2] != "00"
        (granted / "a b.csv").write_text("x,y\n1,two\n2,three\n")
        assert client.rows('select count(*) from gr."a b.csv"') == [["2"]]
        client.rows('create table copied as from gr."a b.csv"')
        assert client.state('insert into gr."a b.csv" values (1, 2)') == "0A000"
        for uri in (place / "data", place / "data" / "organizations", place, "relative", "/no/such/folder"):
            assert client.state(f"create store bad with ('uri' = '{uri}')") in {"42501", "22023"}, uri
        assert client.state("create store bad with ('type' = 's3', 'uri' = 's3://x')") == "0A000"
        assert client.state("use store gr") == "00000"
        assert client.run("select 1")["metadata"]["context"]["storeName"] == "gr"
        assert client.state("drop store gr") == "00000"
        assert client.state('select * from gr."a b.csv"')[:2] != "00"


def token_of(owner: Client, role: str) -> str:
    return str(owner.rows(f"create api_token made_{uuid.uuid4().hex} with ('role' = '{role}')")[0][1])


def test_temporary_objects_are_made_by_every_role(gated: Served) -> None:
    with Client(gated) as owner:
        tokens = [token_of(owner, role) for role in ("reader", "writer", "owner")]
    for token in tokens:
        with Client(gated, token) as client:
            client.rows_of_nothing("create temp table own as select 1 as i")
            client.rows_of_nothing("create or replace temp macro twice(x) as 2 * x")
            for sql in ("insert into own values (2)", "update own set i = 5 where i = 2"):
                client.rows_of_nothing(sql)
            client.rows_of_nothing("begin")
            client.rows_of_nothing("insert into own values (1)")
            client.rows_of_nothing("commit")
            client.rows_of_nothing("begin")
            client.rows_of_nothing("delete from own")
            client.rows_of_nothing("rollback")
            assert client.rows("select sum(twice(i)), count(*) from own") == [["14", "3"]]
            assert client.rows("with q as (delete from own where i = 5 returning i) from q") == [["5"]]
            assert client.rows("select count(*) from own") == [["2"]]
            client.rows_of_nothing("drop table own")
            assert client.state("from own") == "3D020"


def test_a_writer_drops_only_what_is_temporary(gated: Served) -> None:
    with Client(gated) as owner:
        owner.rows_of_nothing("create table lasting as select 1 as i")
        token = token_of(owner, "writer")
        with Client(gated, token) as writer:
            for begin in (False, True):
                if begin:
                    writer.rows_of_nothing("begin")
                for sql in (
                    "drop table lasting",
                    "drop table if exists local.main.lasting",
                    "drop /* temp. */ table lasting cascade",
                    "explain analyze drop table lasting",
                ):
                    assert writer.state(sql) == "42501", sql
                    if begin:
                        writer.rows_of_nothing("rollback")
                        writer.rows_of_nothing("begin")
                writer.rows_of_nothing("create temp table passing (i int)")
                writer.rows_of_nothing('drop table if exists "temp".main.passing')
                if begin:
                    writer.rows_of_nothing("commit")
        assert owner.rows("select i from lasting") == [["1"]]
        owner.rows_of_nothing("drop table lasting")


def test_a_role_does_not_change_within_a_transaction(gated: Served) -> None:
    """Its transaction began with the rights of the other role."""
    with Client(gated) as owner:
        owner.rows_of_nothing("begin")
        assert owner.state("use role reader") == "25001"
        assert owner.state("select 1", role="reader") == "25001"
        assert owner.state("select 1", role="owner") == "00000"
        owner.rows_of_nothing("commit")
        owner.rows_of_nothing("use role reader")
        owner.rows_of_nothing("begin")
        assert owner.state("insert into t values (2)") == "42501"
        owner.rows_of_nothing("rollback")


def test_the_condition_of_a_list_writes_nothing_in_a_transaction(gated: Served) -> None:
    writing = "exists (with x as (insert into t values (9) returning 1) from x)"
    for in_transaction in (False, True):
        with Client(gated) as owner:
            if in_transaction:
                owner.rows_of_nothing("begin")
                assert owner.names("list databases where name = 'local'") == ["local"]
            assert owner.state(f"list databases where {writing}") != "00000"
            assert owner.state("list databases where nextval('s') > 0") != "00000"
            owner.run("commit")
            assert owner.rows("select count(*) from t where a = 9") == [["0"]]


def test_a_large_result_is_where_no_statement_finds_it(gated: Served, place: Path) -> None:
    with Client(gated) as owner, Client(gated, token_of(owner, "reader")) as reader:
        answer = owner.run(f"select '{SECRET}' || i as s from range(60000) r(i)")
        assert len(answer["metadata"]["partitionInfo"]) > 1
        organization = next((place / "data" / "organizations").iterdir())
        assert (organization / "results" / answer["statementID"]).exists()
        assert list((organization / "spool").iterdir()) == []
        for client in (owner, reader):
            for name in (
                f"{organization}/results/[.parquet?0-9a-f-]*",
                f"{organization}/./results/{answer['statementID']}",
                f"{organization}/spool/../results/[.parquet?0-9a-f-]*",
                f"{organization.parent}//{organization.name}/results/[.parquet?0-9a-f-]*",
                f"file:{organization}/results/[.parquet?0-9a-f-]*",
                f"{organization}/databases/[.csv?0-9a-z.-]*",
                f"{organization}/temporary/[.csv?0-9a-z_.-]*",
            ):
                for sql in (f"from '{name}'", f'describe "{name}"', f"from read_parquet('{name}')"):
                    refused = client.run(sql)
                    assert refused["sqlState"] == "42501" and SECRET not in str(refused), sql
        path = f"/v2/statements/{answer['statementID']}"
        assert owner.http.get(path, params={"partitionID": 1}).json()["data"][0] == [f"{SECRET}10000"]
