"""Names in a request's context that do not exist: only statements that need them fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Program, Served
from tests.service import test_batches
from tests.service.client import Client
from tests.service.tested_engines import OnEngine

CONTEXTS: dict[str, dict[str, Any]] = {
    "3D002": {"database": "not_there", "schema": "not_there"},
    "3D003": {"schema": "not_there"},
    "3D006": {"store": "not_there"},
    "3D023": {"computePool": "not_there"},
}
RUNS = ("list databases", "list stores", "list compute_pools", "list organizations", "describe database {home}")
NEEDS = {
    "select 1": set(CONTEXTS),
    "list schemas": {"3D002"},
    "list relations": {"3D002", "3D003"},
    "list relations in schema {schema}": {"3D002"},
    "list entities": {"3D006"},
    "create schema not_there": {"3D002"},
    "use schema {schema}": {"3D002"},
}
NEEDS_OF_STREAMS = {
    "create stream astray (i int)": {"3D002", "3D003"},
    "drop stream main.astray": {"3D002"},
}


@pytest.fixture(scope="module")
def own(engine: OnEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with engine.serve(tmp_path_factory.mktemp("lost")) as running:
        yield running


@pytest.fixture
def client(own: Served) -> Iterator[Client]:
    with Client(own) as made:
        yield made


@pytest.mark.parametrize("state", CONTEXTS)
def test_what_needs_a_lost_name_fails_and_all_else_runs(client: Client, engine: OnEngine, state: str) -> None:
    given, names_of = CONTEXTS[state], {"home": client.home(), "schema": engine.sql.schema}
    for sql in RUNS:
        answer = client.run(sql.format(**names_of), **given)
        assert answer["sqlState"] == "00000", (sql, answer)
        echo = answer["metadata"]["context"]
        names = {
            "database": "databaseName",
            "schema": "schemaName",
            "store": "storeName",
            "computePool": "computePoolName",
        }
        assert not [part for part in given if echo.get(names[part])], (sql, echo)
    for sql, states in NEEDS.items():
        found = client.state(sql.format(**names_of), **given)
        assert (found == state) == (state in states), (sql, found)
        assert client.state("drop schema if exists not_there")[:2] in {"00", "01"}


@pytest.mark.needs("streams")
@pytest.mark.parametrize("state", CONTEXTS)
def test_streams_need_a_database_and_a_schema(client: Client, state: str) -> None:
    for sql, states in NEEDS_OF_STREAMS.items():
        found = client.state(sql, **CONTEXTS[state])
        assert (found == state) == (state in states), (sql, found)
        assert client.state("drop stream if exists astray") == "00000"


@pytest.mark.needs("store_entities")
def test_a_store_that_is_named_is_the_one_that_is_read(client: Client, tmp_path: Path) -> None:
    (tmp_path / "found.csv").write_text("a\n1\n")
    client.rows(f"create store named with ('type' = 'files', 'uri' = '{tmp_path}')")
    for sql in ("list entities in store named", 'describe entity "found.csv" in store named'):
        assert client.rows(sql, store="not_there"), sql
    client.rows("drop store named")


@pytest.mark.needs("databases")
def test_a_database_is_made_by_a_request_that_names_it_already(client: Client) -> None:
    assert client.state("create database ahead", database="ahead") == "00000"
    assert client.run("select 1", database="ahead")["metadata"]["context"]["databaseName"] == "ahead"


def test_a_pool_is_made_by_a_request_that_names_it_already(client: Client) -> None:
    assert client.state("create compute_pool ahead_pool", computePool="ahead_pool") == "00000"
    assert client.run("select 1", computePool="ahead_pool")["metadata"]["context"]["computePoolName"] == "ahead_pool"


@pytest.mark.needs("store_entities")
def test_a_store_is_made_by_a_request_that_names_it_already(client: Client, tmp_path: Path) -> None:
    made = f"create store ahead_files with ('type' = 'files', 'uri' = '{tmp_path}')"
    assert client.state(made, store="ahead_files") == "00000"
    assert client.run("select 1", store="ahead_files")["metadata"]["context"]["storeName"] == "ahead_files"


def test_use_leaves_what_is_lost(client: Client) -> None:
    answer = client.run(f"use database {client.home()}; select 1 as one", database="not_there")
    assert answer["sqlState"] == "00000", answer
    assert client.rows("select 1") == [["1"]]


def test_a_role_and_an_organization_are_never_left_out(client: Client) -> None:
    assert client.state("list stores", role="nobody") == "3D001"
    assert client.state("list stores", organization="nowhere") == "3D004"


@pytest.mark.needs("databases")
@pytest.mark.parametrize(
    "unknown",
    [{"role": "nobody"}, {"store": "not_there"}, {"computePool": "not_there"}, {"schema": "not_there"}],
    ids=lambda unknown: next(iter(unknown)),
)
@pytest.mark.parametrize("where", ["alone", "first", "batch"])
def test_a_request_that_fails_for_its_context_changes_nothing(
    client: Client, unknown: dict[str, Any], where: str
) -> None:
    for sql in ("create database if not exists other", "create compute_pool if not exists other_pool"):
        client.rows_of_nothing(sql)
    client.rows_of_nothing("create temporary table kept as select 1 as i")
    before = client.run("select * from kept")["metadata"]["context"]
    given = {"database": "other", "computePool": "other_pool", "role": "writer"} | unknown
    given["parameters"] = {"sessionID": client.session, "timezone": "Asia/Tokyo"}
    failed = {"store": "3D006", "role": "3D001", "computePool": "3D023", "schema": "3D003"}[next(iter(unknown))]
    if where == "batch":
        assert test_batches.states(test_batches.run(client, ["select 1", "select 2"], **given)) == [failed]
    else:
        assert client.state("select 1" if where == "alone" else "select 1; select 2", **given)[:2] in {"3D", "57"}
    after = client.run("select * from kept")
    assert (after["sqlState"], after["metadata"]["context"]) == ("00000", before)


@pytest.mark.needs("databases")
def test_a_request_of_which_a_statement_ran_keeps_its_context(client: Client) -> None:
    client.rows_of_nothing("create database if not exists other")
    sql = "list databases; select 1"
    assert client.state(sql, database="other", store="not_there") == "3D006"
    assert client.run("select 1")["metadata"]["context"]["databaseName"] == "other"


@pytest.mark.needs("databases")
def test_another_organization_is_not_left_behind_by_a_request_that_fails(client: Client) -> None:
    client.rows_of_nothing("create organization if not exists neighbour")
    client.rows_of_nothing("create temporary table kept as select 1 as i")
    unknowns: list[dict[str, Any]] = [{"role": "nobody"}, {"store": "not_there"}]
    for unknown in unknowns:
        assert client.state("select 1", organization="neighbour", **unknown)[:2] == "3D"
        assert client.rows("select * from kept") == [["1"]]


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        pytest.param("store", "store", marks=pytest.mark.needs("store_entities")),
        ("computePool", "compute_pool"),
        ("schema", "schema"),
    ],
)
def test_a_session_goes_on_that_dropped_what_it_was_in(client: Client, tmp_path: Path, part: str, kind: str) -> None:
    """Its client goes on naming what the echo has no more, as some do for ever."""
    name, rest = f"leaving_{kind}", f" with ('type' = 'files', 'uri' = '{tmp_path}')" if kind == "store" else ""
    named: dict[str, Any] = {part: name}
    other: dict[str, Any] = {part: "left"}
    client.rows_of_nothing(f"create {kind} {name}{rest}")
    client.rows_of_nothing(f"use {kind} {name}")
    gone = client.run(f"drop {kind} {name}", **named)
    assert gone["metadata"]["context"].get(f"{part}Name") != name
    assert client.state("select 1", **named) == "00000"
    assert client.state("select 1", **other)[:2] == "3D"


def test_sql_runs_without_a_session_whatever_store_is_named(client: Client) -> None:
    """Some clients have no session, and no way to leave a store but to another one."""
    assert client.rows("select 1", store="not_there", parameters={}) == [["1"]]
    assert client.state("list entities", store="not_there", parameters={}) == "3D006"


@pytest.mark.needs("databases")
def test_what_another_session_dropped_is_not_left_out(client: Client) -> None:
    """A statement that was meant for it would run somewhere else."""
    client.rows("create schema elsewhere")
    client.rows_of_nothing("use schema elsewhere")
    assert client.state("drop schema elsewhere", parameters={"sessionID": "another"}) == "00000"
    assert client.state("create table astray (i int)", schema="elsewhere") == "3D003"


@pytest.mark.needs("databases", "store_entities")
def test_what_another_session_dropped_is_left(client: Client, own: Served, engine: OnEngine, tmp_path: Path) -> None:
    """The next statement that names it is told, and the one behind it runs."""
    made = (
        ("store", "store", f" with ('type' = 'files', 'uri' = '{tmp_path}')", "3D006"),
        ("computePool", "compute_pool", "", "3D023"),
        ("schema", "schema", "", "3D003"),
    )
    with Client(own) as other:
        for part, kind, rest, state in made:
            name = f"shared_{kind}"
            client.rows_of_nothing(f"create {kind} {name}{rest}")
            for user in (client, other):
                user.rows_of_nothing(f"use {kind} {name}")
            client.rows_of_nothing(f"drop {kind} {name};")
            named: dict[str, Any] = {part: name}
            told = other.run("select 1", **named)
            assert (told["sqlState"], told["metadata"]["context"].get(f"{part}Name")) == (state, None)
            assert other.rows("select 1") == [["1"]]
            assert other.run("select 1")["metadata"]["context"]["schemaName"] == engine.sql.schema


@pytest.mark.needs("transactions")
def test_a_schema_that_is_rolled_back_is_left(client: Client, engine: OnEngine) -> None:
    for sql in ("begin", "create schema undone", "use schema undone", "rollback"):
        answer = client.run(sql)
    assert answer["metadata"]["context"]["schemaName"] in {"", engine.sql.schema}
    made = client.run("create table behind_undone (i int)")
    assert (made["sqlState"], made["metadata"]["context"]["schemaName"]) == ("00000", engine.sql.schema)
    batch = ["create schema undone", "use schema undone", "drop schema undone", "select 1"]
    found = client.http.post("/v2/statements", json={"statements": batch, "parameters": {"sessionID": client.session}})
    answer = found.json()
    while answer["sqlState"] == "03000":
        answer = client.http.get(f"/v2/statements/{answer['statementID']}", params={"batch": 0}).json()
    assert [item["sqlState"] for item in answer["statements"]] == ["00000"] * 4
    assert client.run("select 1")["metadata"]["context"]["schemaName"] == engine.sql.schema


UNKNOWN = [
    ("nope", "3D020"),
    ("{schema}.nope", "3D020"),
    ("{home}.{schema}.nope", "3D020"),
    ('"{home}"."{schema}"."nope"', "3D020"),
    ("nowhere.nope", "3D003"),
    ("{home}.nowhere.nope", "3D003"),
    ("nothing.{schema}.nope", "3D002"),
    ('"nothing"."nowhere"."nope"', "3D002"),
]


@pytest.mark.parametrize(("name", "state"), UNKNOWN)
def test_what_a_relation_lacks_is_told(client: Client, engine: OnEngine, name: str, state: str) -> None:
    whole = name.format(home=client.home(), schema=engine.sql.schema)
    for sql in ("describe relation {}", "describe relation columns {}", "describe relation {} columns"):
        assert client.state(sql.format(whole)) == state, sql
    assert client.state(f"drop relation {whole}") == state
    assert client.state(f"drop relation if exists {whole}") == "00000"


@pytest.mark.parametrize(("name", "state"), UNKNOWN)
def test_what_a_relation_of_duckdb_lacks_is_told(served: Served, name: str, state: str) -> None:
    whole = name.format(home="local", schema="main")
    made = ["create table {} (a int)", "create table {} as select 1", "create view {} as select 1"]
    made += ["create stream {} (a int)", "create materialized view {} as select 1 as a"]
    with Client(served) as client:
        for sql in ("select * from {}", "insert into {} values (1)", "drop table {}", "delete from {}"):
            assert client.state(sql.format(whole)) == state, sql
        for sql in made * (state != "3D020"):
            assert client.state(sql.format(whole)) == state, sql


@pytest.mark.needs("store_entities")
def test_the_shell_drops_what_is_gone(own: Served, program: Program, tmp_path: Path) -> None:
    script = (
        f"create store gone with ('type' = 'files', 'uri' = '{tmp_path}');\nuse store gone;\nselect 1 as a;\n"
        "drop store gone;&\n\\wait\nselect 2 as b;\nselect 3 as c;\n\\context\n"
    )
    env = {"SQLSHELL_URL": own.url, "SQLSHELL_TOKEN": own.token}
    found = program("--on-error", "continue", "--format", "csv", stdin=script, env=env)
    assert (found.code, found.out) == (1, "a\n1\nc\n3\n"), found.err
    assert found.err.count("3D006") == 1, found.err
    assert "no store is selected now" in found.err
    assert "select another with USE STORE NAME" in found.err
    assert not [line for line in found.err.splitlines() if line.split()[:2] == ["store", "gone"]]


@pytest.mark.parametrize(
    ("sql", "named"),
    [
        ("create stream s2 a int", {}),
        ("create stream", {}),
        ('create stream "unclosed', {}),
        ("create entity e in store s foo", {}),
        ("grant role x to y", {}),
        ("create stream; select 1", {}),
        ("select * from nope; select 1; select 2", {}),
        ("use schema main; use schema public; selec; use schema main", {}),
        ("\\d", {}),
        ("list queries", {}),
        ("terminate query 'none'", {}),
        ("select 1", {"role": "none"}),
        ("list sessions", {"role": "none"}),
    ],
)
@pytest.mark.needs("databases")
@pytest.mark.parametrize("session", [False, True])
def test_what_is_refused_echoes_what_was_asked_for(
    client: Client, sql: str, named: dict[str, str], session: bool
) -> None:
    for making in ("database refusing", "compute_pool refusing_pool"):
        client.run(f"create {making}")
    asked: dict[str, Any] = {
        "database": "refusing",
        "schema": "public",
        "role": "reader",
        "computePool": "refusing_pool",
    }
    asked |= named
    parameters = {"sessionID": f"never seen before {sql} {named}"} if session else {}
    echo = client.run(sql, parameters=parameters, **asked)["metadata"]["context"]
    names = {"database": "databaseName", "schema": "schemaName", "role": "roleName", "computePool": "computePoolName"}
    assert {part: echo[name] for part, name in names.items()} == asked
