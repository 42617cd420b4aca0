"""Under `serve`, SQL can access only the databases of its organization and the allowed stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from sqlshell.service.engines.duckdb.rights.functions import BY_STRING
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


READS = [
    "select * from '{p}/secret.csv'",
    'select * from "{p}/secret.csv"',
    "from '{p}/secret.csv'",
    "table '{p}/secret.csv'",
    "describe '{p}/secret.csv'",
    "summarize '{p}/secret.csv'",
    "pivot '{p}/secret.csv' on a",
    "select * from t, '{p}/secret.csv'",
    "select * from t join '{p}/secret.csv' on true",
    "select (select a from '{p}/secret.csv')",
    "with x as (from '{p}/secret.csv') select * from x",
    "select * from read_csv('{p}/secret.csv')",
    "select * from READ_CSV_AUTO('{p}/secret.csv')",
    "select * from \"read_csv\"('{p}/secret.csv')",
    "select * from read_csv/**/('{p}/secret.csv')",
    "select * from read_csv -- x\n('{p}/secret.csv')",
    "select * from main.read_text('{p}/secret.txt')",
    "select * from system.main.read_text('{p}/secret.txt')",
    "select * from read_text($${p}/secret.txt$$)",
    "select * from read_blob('{p}/secret.txt')",
    "select * from glob('{p}/*')",
    "select * from sniff_csv('{p}/secret.csv')",
    "select * from parquet_metadata('{p}/x.parquet')",
    "select * from query('from ''{p}/secret.csv''')",
    "select * from query_table('{p}/secret.csv')",
    "select * from query('select content from read_text(''{p}/secret.txt'')')",
    "select * from json_execute_serialized_sql(json_serialize_sql('from read_text(''{p}/secret.txt'')'))",
    "select * from read_json_objects('{p}/secret.txt')",
    "select * from read_duckdb('{p}/data/x')",
    "select * from duckdb_secrets()",
    "select * from duckdb_settings()",
    "select * from duckdb_databases()",
    "select * from pg_catalog.pg_settings",
    "from duckdb_databases",
    "select current_setting('temp_directory')",
    "create table q as from '{p}/secret.csv'",
    "create table q as select * from read_csv('{p}/secret.csv')",
    "create view q as from '{p}/secret.csv'",
    "create view q as select * from read_text('{p}/secret.txt')",
    "create macro q() as table from read_text('{p}/secret.txt')",
    "create macro q() as table from '{p}/secret.csv'",
    "create macro q(x) as (select content from read_text(x))",
    "insert into t from '{p}/secret.csv'",
    "insert into t select a from read_csv('{p}/secret.csv')",
    "update t set a = x.a from '{p}/secret.csv' x",
    "delete from t using '{p}/secret.csv' x",
    "merge into t using '{p}/secret.csv' x on true when matched then delete",
    "explain analyze select * from read_csv('{p}/secret.csv')",
    "explain select * from read_csv('{p}/secret.csv')",
    "copy t from '{p}/secret.csv'",
    "set variable x = (select content from read_text('{p}/secret.txt'))",
    "prepare x as select * from read_csv('{p}/secret.csv')",
    "import database '{p}'",
    "attach '{p}/data/service.sqlite' as q",
    "attach '{p}/new.duckdb' as q",
    "select * from st_read('{p}/secret.csv')",
    "select * from sqlite_scan('{p}/data/service.sqlite', 'tokens')",
    "call read_csv('{p}/secret.csv')",
    "call query('from ''{p}/secret.csv''')",
    "pragma database_list",
    "pragma show_databases",
]

WRITES = [
    "copy t to '{p}/out/x.csv'",
    "copy (select 1) to '{p}/out/x.csv' (format csv, use_tmp_file false)",
    "with x as (copy t to '{p}/out/x.csv') select 1",
    "with x as (COPY t to '{p}/out/x.csv') select * from x",
    "explain analyze copy t to '{p}/out/x.csv'",
    "export database '{p}/out/x'",
    "attach '{p}/out/x.duckdb'",
    "create secret x (type s3)",
    "create persistent secret x (type s3)",
    "install httpfs",
    "load httpfs",
    "load '{p}/out/x'",
    "force install httpfs from 'http://localhost'",
    "set temp_directory = '{p}/out'",
    "set enable_external_access = true",
    "set allowed_directories = ['/']",
    "set global search_path = 'main'",
    "set global memory_limit = '1GB'",
    "set memory_limit = '1GB'",
    "set threads = 1",
    "set lock_configuration = false",
    "reset lock_configuration",
    "pragma enable_profiling",
    "pragma profiling_output = '{p}/out/x'",
    "set log_query_path = '{p}/out/x'",
    "call enable_logging()",
    "select * from enable_logging()",
    "select write_log('x')",
    "checkpoint",
    "select * from checkpoint()",
    "vacuum into '{p}/out/x'",
    "detach local",
    "select * from register_external_resource('x')",
    "drop database deltastream",
    "create table deltastream.sys.x (i int)",
    "insert into deltastream.sys.x values (1)",
    "drop view deltastream.sys.relations",
    "update extensions",
    "use system",
]


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


def test_words_are_not_refused_where_they_are_only_words(gated: Served) -> None:
    with Client(gated) as client:
        rows = client.rows(
            "select 'read_csv(' as glob, 'copy' as query, \"t\".a as \"read_text\" from t -- from 'x.csv'"
        )
        assert rows == [["read_csv(", "copy", "1"]]
        assert client.rows("select 'a', 'from ''x.csv''', $$copy t to 'x'$$") == [
            ["a", "from 'x.csv'", "copy t to 'x'"]
        ]


ALLOWED = [
    "select * from range(2)",
    "select unnest([1, 2])",
    "create or replace table q (i int)",
    "create or replace temp table q2 as select 1 as i",
    "create or replace view q3 as select * from q",
    "create or replace macro plus(x) as x + 1",
    "create schema if not exists sc",
    "create index if not exists ix on q (i)",
    "create sequence if not exists sq",
    "alter table q add column if not exists j int",
    "comment on table q is 'x'",
    "insert into q values (1, 2)",
    "truncate q",
    "explain analyze select * from q",
    "describe q",
    "show tables",
    "summarize q",
    "set timezone = 'Europe/Berlin'",
    "set schema = 'main'",
    "set variable x = 3",
    "reset timezone",
    "begin",
    "commit",
    "with x as (select 1) select * from x",
    "from q",
    "table q",
    "values (1)",
    "(select 1)",
    "pivot t on a using count(*)",
    "analyze",
    "drop view q3",
    "select * from information_schema.tables",
    "select * from duckdb_tables()",
    "select nextval('sq')",
]


def test_ordinary_statements_run(gated: Served) -> None:
    with Client(gated, session="ordinary") as client:
        answers = [(sql, client.run(sql)) for sql in ALLOWED]
    assert [(sql, answer) for sql, answer in answers if answer["sqlState"] != "00000"] == []


READER = [
    "select 1",
    "from t",
    "describe t",
    "list relations",
    "explain select 1",
    "begin",
    "rollback",
    "set timezone = 'UTC'",
]
DATA = [
    "insert into t values (1)",
    "update t set a = 1",
    "delete from t where a = 7",
    "with x as (insert into t values (1) returning a) select * from x",
    "explain analyze insert into t values (1)",
    "merge into t using (select 99 as a) x on t.a = x.a when matched then delete",
    "truncate t",
    "create temp table n (i int)",
]
OBJECTS = [
    "create table n (i int)",
    "drop table t",
    "alter table t add column z int",
    "create database n",
    "create store n with ('uri' = '/tmp')",
    "create compute_pool n",
    "create stream n (i int)",
    "create api_token n",
    "create organization n",
    "drop database local",
    "stop compute_pool default",
    "explain analyze create table n (i int)",
]


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


@pytest.mark.parametrize(
    "sql",
    [
        "alter table judged alter a type varchar using (CALLED::varchar)",
        "create table made (a integer, b integer default (CALLED))",
        "alter table judged add column b integer default (CALLED)",
        "alter table judged alter a set default (CALLED)",
        "create table made (a integer, check (CALLED > 1))",
        "create table made (a integer, b integer generated always as (CALLED))",
        "create macro made(a) as CALLED",
        "create macro made(a) as table select CALLED",
        "create index made on judged ((CALLED + a))",
        "create view made as select CALLED",
        "pivot judged on a using max(CALLED)",
    ],
)
def test_an_aggregate_that_is_named_by_a_string_is_judged_without_a_plan(gated: Served, sql: str) -> None:
    functions = ("list_aggr", "LIST_AGGREGATE", "array_aggr", "array_aggregate", "aggregate")
    with Client(gated) as client:
        client.rows("create or replace table judged as select 1 as a")
        for function in functions:
            called = f"{function}([1], 'reservoir_quantile', 0.5, 100)"
            assert client.state(sql.replace("CALLED", called)) == "42501"
        if sql.startswith("create macro"):
            assert client.state(sql.replace("CALLED", "list_aggr([1], a)")) == "42501"


def test_all_functions_that_take_the_name_of_an_aggregate_are_known() -> None:
    asked = "select function_name from duckdb_functions() where coalesce(alias_of, function_name) = 'list_aggregate'"
    assert {row[0] for row in duckdb.connect().execute(asked).fetchall()} == BY_STRING


def test_aggregates_that_are_named_by_a_string(gated: Served) -> None:
    with Client(gated) as client:
        client.rows("create or replace table aggregated (a integer, b integer default (list_aggr([1, 2], 'max')))")
        client.rows("insert into aggregated (a) values (7)")
        client.rows("alter table aggregated alter a type varchar using (list_aggregate([a], 'min')::varchar)")
        assert client.rows("select a, b from aggregated") == [["7", "2"]]
        token = str(client.rows("create api_token aggregates with ('role' = 'reader')")[0][1])
        with Client(gated, token) as reader:
            for name in ("nextval", "setval", "md5", "nosuch"):
                assert reader.state(f"select list_aggregate([1], '{name}')") == "42883", name


def test_a_store_is_not_reached_through_links(gated: Served, place: Path) -> None:
    folder = place / "reached"
    folder.mkdir()
    (place / "a_link").symlink_to(folder)
    with Client(gated) as client:
        for path in (f"/proc/self/root{folder}", f"{place}/a_link", f"file://{place}/a_link"):
            assert client.state(f"create store lk with ('type' = 'files', 'uri' = '{path}')") == "42501"
        assert client.state(f"create store lk with ('type' = 'files', 'uri' = '/{folder}/../reached/')") == "00000"


@pytest.mark.parametrize("name", ["operator ", " operator", "ope\u200brator", "x\ny", "x\u202ey", "x\u00a0", "x\x7fy"])
def test_names_that_look_like_others_are_refused(gated: Served, place: Path, name: str) -> None:
    with Client(gated) as client:
        for kind in ("api_token", "compute_pool", "database", "organization", "store", "secret", "schema_registry"):
            made = client.run(f"create {kind} \"{name}\" with ('uri' = '{place / 'out'}')")
            if made["sqlState"] == "42601":
                made = client.run(f'create {kind} "{name}"')
            assert made["sqlState"] == "42602", (kind, made)
        assert client.state('create api_token "Zoë 2"') == "00000"
        assert client.state('drop api_token "Zoë 2"') == "00000"
