"""Names in a request's context that do not exist: only statements that need them fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Program, Served, serve, stop
from tests.service.client import Client

CONTEXTS: dict[str, dict[str, Any]] = {
    "3D002": {"database": "not_there", "schema": "not_there"},
    "3D003": {"schema": "not_there"},
    "3D006": {"store": "not_there"},
    "3D023": {"computePool": "not_there"},
}
RUNS = ("list databases", "list stores", "list compute_pools", "list organizations", "describe database local")
NEEDS = {
    "select 1": set(CONTEXTS),
    "list schemas": {"3D002"},
    "list relations": {"3D002", "3D003"},
    "list relations in schema main": {"3D002"},
    "list entities": {"3D006"},
    "create schema not_there": {"3D002"},
    "use schema main": {"3D002"},
    "create stream astray (i int)": {"3D002", "3D003"},
    "drop stream main.astray": {"3D002"},
}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    running = serve(tmp_path_factory.mktemp("lost"))
    yield running
    stop(running)


@pytest.fixture
def client(own: Served) -> Iterator[Client]:
    with Client(own) as made:
        yield made


@pytest.mark.parametrize("state", CONTEXTS)
def test_what_needs_a_lost_name_fails_and_all_else_runs(client: Client, state: str) -> None:
    given = CONTEXTS[state]
    for sql in RUNS:
        answer = client.run(sql, **given)
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
        found = client.state(sql, **given)
        assert (found == state) == (state in states), (sql, found)
        assert client.state("drop stream if exists astray") == "00000"
        assert client.state("drop schema if exists not_there") == "00000"


def test_a_store_that_is_named_is_the_one_that_is_read(client: Client, tmp_path: Path) -> None:
    (tmp_path / "found.csv").write_text("a\n1\n")
    client.rows(f"create store named with ('type' = 'files', 'uri' = '{tmp_path}')")
    for sql in ("list entities in store named", 'describe entity "found.csv" in store named'):
        assert client.rows(sql, store="not_there"), sql
    client.rows("drop store named")


def test_an_object_is_made_by_a_request_that_names_it_already(client: Client, tmp_path: Path) -> None:
    making = {
        "database": "create database ahead",
        "store": f"create store ahead_files with ('type' = 'files', 'uri' = '{tmp_path}')",
        "computePool": "create compute_pool ahead_pool",
    }
    for part, sql in making.items():
        name = sql.split()[2]
        given: dict[str, Any] = {part: name}
        assert client.state(sql, **given) == "00000", sql
        assert client.run("select 1", **given)["metadata"]["context"][f"{part}Name"] == name


def test_use_leaves_what_is_lost(client: Client) -> None:
    answer = client.run("use database local; select 1 as one", database="not_there")
    assert answer["sqlState"] == "00000", answer
    assert client.rows("select 1") == [["1"]]


def test_a_role_and_an_organization_are_never_left_out(client: Client) -> None:
    assert client.state("list stores", role="nobody") == "3D001"
    assert client.state("list stores", organization="nowhere") == "3D004"


def test_a_session_goes_on_that_dropped_what_it_was_in(client: Client, tmp_path: Path) -> None:
    """Its client goes on naming what the echo has no more, as some do for ever."""
    made = (
        ("store", "store", f" with ('type' = 'files', 'uri' = '{tmp_path}')"),
        ("computePool", "compute_pool", ""),
        ("schema", "schema", ""),
    )
    for part, kind, rest in made:
        name = f"leaving_{kind}"
        named: dict[str, Any] = {part: name}
        other: dict[str, Any] = {part: "left"}
        client.rows_of_nothing(f"create {kind} {name}{rest}")
        client.rows_of_nothing(f"use {kind} {name}")
        gone = client.run(f"drop {kind} {name}", **named)
        assert gone["metadata"]["context"].get(f"{part}Name") != name
        assert client.state("select 1", **named) == "00000", kind
        assert client.state("select 1", **other)[:2] == "3D", kind


def test_sql_runs_without_a_session_whatever_store_is_named(client: Client) -> None:
    """Some clients have no session, and no way to leave a store but to another one."""
    assert client.rows("select 1", store="not_there", parameters={}) == [["1"]]
    assert client.state("list entities", store="not_there", parameters={}) == "3D006"


def test_what_another_session_dropped_is_not_left_out(client: Client) -> None:
    """A statement that was meant for it would run somewhere else."""
    client.rows("create schema elsewhere")
    client.rows_of_nothing("use schema elsewhere")
    assert client.state("drop schema elsewhere", parameters={"sessionID": "another"}) == "00000"
    assert client.state("create table astray (i int)", schema="elsewhere") == "3D003"


def test_what_another_session_dropped_is_left(client: Client, own: Served, tmp_path: Path) -> None:
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
            other.rows_of_nothing(f"create table left_{kind} (i int)")
            assert client.rows(f"describe relation main.left_{kind}")


def test_a_schema_that_is_rolled_back_is_left(client: Client) -> None:
    for sql in ("begin", "create schema undone", "use schema undone", "rollback"):
        answer = client.run(sql)
    assert answer["metadata"]["context"]["schemaName"] == ""
    made = client.run("create table behind_undone (i int)")
    assert (made["sqlState"], made["metadata"]["context"]["schemaName"]) == ("00000", "main")
    batch = ["create schema undone", "use undone", "drop schema undone", "select 1"]
    found = client.http.post("/v2/statements", json={"statements": batch, "parameters": {"sessionID": client.session}})
    assert found.json()["sqlState"] == "00000"
    assert client.run("select 1")["metadata"]["context"]["schemaName"] == "main"


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("nope", "3D020"),
        ("main.nope", "3D020"),
        ("local.main.nope", "3D020"),
        ('"local"."main"."nope"', "3D020"),
        ("nowhere.nope", "3D003"),
        ("local.nowhere.nope", "3D003"),
        ("nothing.main.nope", "3D002"),
        ('"nothing"."nowhere"."nope"', "3D002"),
    ],
)
def test_what_a_relation_lacks_is_told(client: Client, name: str, state: str) -> None:
    for sql in ("describe relation {}", "describe relation columns {}", "describe relation {} columns"):
        assert client.state(sql.format(name)) == state, sql
    assert client.state(f"drop relation {name}") == state
    assert client.state(f"drop relation if exists {name}") == "00000"
    for sql in ("select * from {}", "insert into {} values (1)", "drop table {}", "delete from {}"):
        assert client.state(sql.format(name)) == state, sql
    for sql in ("create table {} (a int)", "create table {} as select 1", "create view {} as select 1") * (
        state != "3D020"
    ):
        assert client.state(sql.format(name)) == state, sql
    for sql in ("create stream {} (a int)", "create materialized view {} as select 1 as a") * (state != "3D020"):
        assert client.state(sql.format(name)) == state, sql


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
