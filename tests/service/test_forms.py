"""Every form of statement that public clients send is supported, or refused with a clear reason; it is never reported
as the client's error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sqlshell.service.catalog import ORGANIZATION_ID
from sqlshell.service.dialect.forms import compiled
from sqlshell.service.failure import Failure
from sqlshell.service.objects.grammar import FOR_ENGINE, INTERFACE, SERVER
from sqlshell.service.objects.relation import without_key
from sqlshell.sql.script.items import Statement
from sqlshell.sql.script.splitting import split
from tests.cases import params, texts
from tests.conftest import Served, serve, stop
from tests.service.client import Client

FORMS = Path(__file__).parent.parent / "data" / "forms.sql"
"""A statement a line; a line that begins with a blank goes on with the one before."""

EXAMPLES = FORMS.parent / "splits" / "deltastream-examples.jsonl"
MALFORMED = "FROM json_response) \n  -- Parse the"
"""One of the examples lacks a comma here."""

CLIENTS_ERROR = {"42601", "42000", "XX000", "25P02"}


def examples() -> list[str]:
    """The statements of published examples."""
    texts = [json.loads(line)["text"] for line in EXAMPLES.read_text().splitlines()]
    return [item.text for text in texts for item in split(text) if isinstance(item, Statement)]


def test_every_form_can_be_read() -> None:
    # Forms are compiled when a statement may have them.
    for dialect in (INTERFACE, SERVER):
        for forms in dialect.forms.values():
            for form in forms:
                compiled(form.text)
                assert not FOR_ENGINE.match(f"{form.first} ")


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("create or replace changelog c (a int)", "changelog"),
        ("Create /* a */ Or -- b\n Replace Compute Pool p", "compute_pool"),
        ("create schema registry r", "schema_registry"),
        ("drop materialized view v", "materialized_view"),
        ('drop "stream" s', ""),
        ("create or stream s (a int)", ""),
        ("drop", ""),
    ],
)
def test_a_form_is_found_by_the_words_that_tell_its_kind(sql: str, kind: str) -> None:
    assert getattr(INTERFACE.read(sql), "kind", "") == kind


def statements() -> list[str]:
    return [text.replace("\v", "\n ") for text in FORMS.read_text().strip().replace("\n ", "\v").split("\n")]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    running = serve(tmp_path_factory.mktemp("forms"))
    with Client(running) as client:
        client.rows_of_nothing("create table t (i integer, s varchar)")
        client.rows_of_nothing("insert into t values (1, 'a'), (2, 'b')")
        client.rows("create stream s (a bigint)")
        client.rows_of_nothing("create table typed (a timestamptz)")
    yield running
    stop(running)


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with Client(served) as made:
        yield made


def refused(sql: str) -> str:
    """What is wrong with a statement."""
    with pytest.raises(Failure) as raised:
        INTERFACE.read(sql)
    return f"{raised.value.sql_state} {raised.value.message}"


@pytest.mark.slow("starts a service")
def test_no_form_is_the_clients_error(client: Client) -> None:
    """Those of the interface, in the interface's words: DuckDB's parser says nothing of them."""
    wrong = []
    for sql in [*statements(), *(text for text in examples() if MALFORMED not in text)]:
        answer = client.submit(sql)
        if (answer.get("metadata") or {}).get("dataplaneRequest"):
            # It never ends.
            client.session += "1"
            continue
        answer = client.wait(answer)
        message = answer.get("message") or ""
        is_told = answer["sqlState"] != "0A000" or ("\n" not in message and len(message) > 20)
        if answer["sqlState"] in CLIENTS_ERROR or "Parser Error" in message or not is_told:
            wrong.append((sql, answer["sqlState"], message))
    assert wrong == []


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ("'type' = KAFKA, 'a.b' = 'x''y', \"c\" = \"D d\"", {"type": "KAFKA", "a.b": "x'y", "c": "D d"}),
        ("a.b.c=-1.5,d=+2 , e = 5m,f=us-east-1", {"a.b.c": "-1.5", "d": "+2", "e": "5m", "f": "us-east-1"}),
        ("'T' = TRUE, u = false -- , v = 1\n, w /* = */ = ''", {"t": "TRUE", "u": "false", "w": ""}),
        ("uris = http://h:1/p.q, `x` = `y`", {"uris": "http://h:1/p.q", "x": "y"}),
        ("", {}),
    ],
)
def test_options_are_read_as_they_are_written(given: str, options: dict[str, str]) -> None:
    for verb in ("create store s", "UPDATE STORE `s`", 'create /**/ Store "s"'):
        asked: Any = INTERFACE.read(f"{verb} with({given}) ;")
        assert (asked.kind, asked.names, asked.options) == ("store", ("s",), options)


@pytest.mark.parametrize(
    ("sql", "message"),
    params("forms", "syntax-errors"),
)
def test_a_syntax_error_has_its_place(sql: str, message: str) -> None:
    assert refused(sql) == f"42601 {message}"


@pytest.mark.parametrize(
    "sql",
    [
        "create table with_ (i int)", "create table t as select 1", "create secret (type s3)",
        "create secret x (type s3)", "create schema s", "create function f(x) as x + 1", "drop table t",
        "update store set a = 1", "update entity e set schema = 1", "insert into entity values (1)",
        "insert into entity select 1", "truncate relation", "alter table t rename to u",
        "copy function_source to 'x'", "set x = 1", "show t", "show tables", "describe stream",
        "describe t", "describe select 1", "describe relation", "begin", "use a.b", "select 1", "",
    ],
)  # fmt: skip
def test_what_is_the_engines_stays_so(sql: str) -> None:
    assert INTERFACE.read(sql) is None


def test_names_are_bare_or_in_quotes_of_either_kind() -> None:
    asked: Any = INTERFACE.read('DROP relation `a``B` . "C""d" /* e */ . Fg')
    assert asked.names == ("a`B", 'C"d', "fg")
    asked = INTERFACE.read('list entities in "db"."schema" in store `S`;')
    assert (asked.what, asked.names, asked.store) == ("entities", ("db", "schema"), "S")
    asked = INTERFACE.read("print entity orders.2024.csv in store s with ( 'from_beginning' )")
    assert (asked.names, asked.store, asked.from_beginning) == (("orders", "2024.csv"), "s", True)


@pytest.mark.parametrize("what", ["compute_pools", "schema_registries", "function_sources", "api_tokens", "no_kind"])
def test_what_is_listed_may_be_two_words(what: str) -> None:
    asked: Any = INTERFACE.read(f"list {what}")
    assert asked.what == what
    if what != "no_kind":
        assert INTERFACE.read(f"LIST {what.replace('_', ' ')} where x = 1") == INTERFACE.read(
            f"list {what} where x = 1"
        )


def test_a_key_is_taken_out_of_columns() -> None:
    columns = '(`a b` map<int, int>, c decimal(3, 1), primary key (c, "a b"))'
    assert without_key(columns) == ("(`a b` map<int, int>, c decimal(3, 1))", ["c", "a b"])
    assert without_key("(a int primary key, b int)") == ("(a int , b int)", ["a"])
    assert without_key("(a int)") == ("(a int)", [])
    # Columns may have these names.
    assert without_key("(primary int, key int)") == ("(primary int, key int)", [])
    assert without_key("(primary int, key int primary key)") == ("(primary int, key int )", ["key"])
    assert without_key("(a int primary key not null, primary key (b, c))") == ("(a int  not null)", ["a", "b", "c"])
    # More tokens than are read.
    long = f"({'a int, ' * 20_000}b int primary key)"
    assert without_key(long) == (long, [])


@pytest.mark.parametrize(
    ("sql", "kind", "command", "name", "summary"),
    texts("forms", "made"),
)
def test_what_was_made_is_told_in_a_row(
    client: Client, sql: str, kind: str, command: str, name: str, summary: str
) -> None:
    if kind == "query":
        client.rows_of_nothing("create table made (a int)")
    answer = client.run(sql.format("made"))
    client.rows_of_nothing("drop relation made")
    assert [item["name"] for item in answer["metadata"]["columns"]] == ["type", "name", "command", "summary", "path"]
    expected = [kind, name or answer["statementID"], command, summary]
    assert answer["data"] == [[*expected, json.dumps(["local", "main", "made"])]]
    assert answer["message"] == summary


@pytest.mark.parametrize(
    "sql", ["create table made (a int)", "insert into t values (1, 'x')", "insert into t default values"]
)
def test_others_have_no_row(client: Client, sql: str) -> None:
    client.rows_of_nothing("begin")
    answer = client.run(sql)
    client.rows_of_nothing("rollback")
    assert (answer["sqlState"], answer["metadata"]["columns"], answer["data"]) == ("00000", [], [])


def test_a_batch_tells_the_same(client: Client) -> None:
    texts = [
        "create table b1 as select 1 as i",
        "insert into main.b1 select 2",
        "insert into b1 values (3)",
        "drop table b1",
    ]
    request = {"statements": texts, "parameters": {"sessionID": client.session}}
    first = client.http.post("/v2/statements", json=request).json()
    while first["sqlState"] == "03000":
        first = client.http.get(f"/v2/statements/{first['statementID']}", params={"batch": 0}).json()
    rows = [item.get("data") for item in first["statements"]]
    assert [row[0][0] if row else None for row in rows] == ["table", "query", None, None]
    assert json.loads(rows[1][0][4]) == ["local", "main", "b1"]


@pytest.mark.parametrize(
    ("sql", "kind", "made", "columns", "sources"),
    [
        (
            "create stream z (a int not null, b decimal(3,1)[], c struct(x int)) with ('store' = 'k')",
            "CREATE_STREAM", "z", ["a INTEGER", "b ARRAY<DECIMAL(3,1)>", "c STRUCT<x INTEGER>"], [],
        ),
        ("create changelog z (a int, primary key(a))", "CREATE_CHANGELOG", "z", ["a INTEGER"], []),
        ("create table z as select i + 1 as n, s from t;", "CREATE_TABLE", "z", ["n INTEGER", "s VARCHAR"], ["t"]),
        ("create table z with ('a'='b') as select s from t", "CREATE_TABLE", "z", ["s VARCHAR"], ["t"]),
        ("create table z (m map(varchar, timestamptz))", "CREATE_TABLE", "z", ["m MAP<VARCHAR, TIMESTAMP_LTZ(6)>"], []),
        ("create materialized view z as select i from t", "CREATE_MATERIALIZED_VIEW", "z", ["i INTEGER"], ["t"]),
        ("insert into typed by name select now() as a", "INSERT_INTO", "typed", ["a TIMESTAMP_LTZ(6)"], []),
        ("insert into main.t select * from t", "INSERT_INTO", "t", ["i INTEGER", "s VARCHAR"], ["t"]),
        ("insert into t values (nextval('seq'), 'x')", "INSERT_INTO", "t", ["i INTEGER", "s VARCHAR"], []),
    ],
)  # fmt: skip
def test_describe_tells_what_a_statement_would_make(
    client: Client, sql: str, kind: str, made: str, columns: list[str], sources: list[str]
) -> None:
    client.run("create sequence if not exists seq")
    before = client.rows("select count(*), (select count(*) from t) from duckdb_tables()")
    row = client.rows(f"DESCRIBE {sql}")[0]
    told = json.loads(str(row[1]))
    target = told["ddl" if kind != "INSERT_INTO" else "sink"]
    assert row[0] == kind and ("ddl" in told) == (kind != "INSERT_INTO")
    assert target["fqn"] == f'"{ORGANIZATION_ID}"."local"."main"."{made}"'
    assert (target["db_name"], target["schema_name"], target["name"]) == ("local", "main", made)
    assert target["store_name"] == ("k" if "'k'" in sql else "")
    assert [f"{item['name']} {item['type']}" for item in target["columns"]] == columns
    assert [item["name"] for item in told.get("sources", [])] == sources
    assert kind in {"CREATE_STREAM", "CREATE_CHANGELOG"} or told["plan"][0]["name"]
    # Nothing was made, and no sequence has advanced.
    assert client.rows("select count(*), (select count(*) from t) from duckdb_tables()") == before
    assert client.rows("select last_value from duckdb_sequences() where sequence_name = 'seq'") == [[None]]


@pytest.mark.parametrize(
    ("sql", "state"),
    [
        ("create table t as select 1", "42P017"), ("create stream s (a int)", "42P017"),
        ("insert into nowhere select 1", "3D020"),
        ("create table z as select * from nowhere", "3D020"), ("create stream z as select * from s", "0A000"),
        ("insert into t select a, 'x' from s", "0A000"), ("create table z (a nosuchtype)", "42704"),
        ("create database d", "00000"), ("create store z with ('type' = files)", "00000"),
        ("create view z as select 1", "00000"),
    ],
)  # fmt: skip
def test_describe_fails_as_the_statement_would(client: Client, sql: str, state: str) -> None:
    assert client.state(f"describe {sql}") == state


def test_describe_needs_the_rights_of_the_statement(served: Served, client: Client) -> None:
    tokens = {
        role: str(client.rows(f"create api_token {role}_d with ('role' = '{role}')")[0][1])
        for role in ("reader", "writer")
    }
    with Client(served, tokens["reader"]) as reader, Client(served, tokens["writer"]) as writer:
        for sql in (
            "create table z as select 1",
            "create stream z (a int)",
            "create database z",
            "insert into t select 1, 'x'",
        ):
            assert reader.state(f"describe {sql}") == "42501", sql
        assert writer.state("describe insert into t select 1, 'x'") == "00000"
        assert writer.state("describe create table z as select 1") == "42501"
        assert writer.state("create table z with ('a'='b') as select 1") == "42501"
        assert writer.state("create schema z in database local") == "42501"


def test_a_changelog_keeps_every_change_of_a_key(client: Client) -> None:
    client.rows("create changelog log (k int, v varchar, primary key(k)) with ('topic' = 'x')")
    client.rows_of_nothing("insert into log values (1, 'a'), (1, 'b')")
    listed = "select relation_type, primary_key from deltastream.sys.relations where name = 'log'"
    assert client.rows(listed) == [["changelog", "k"]]
    assert client.state("drop stream log") == "3D020"
    assert client.state("update log set v = 'c'") == "0A000"
    assert client.state("create stream log (k int)") == "42P017"
    client.rows("create or replace changelog log (k bigint)")
    client.rows_of_nothing("drop changelog log")
    assert client.state("drop changelog log") == "3D020"


def test_schemas_are_made_in_a_database_that_is_named(client: Client) -> None:
    client.rows_of_nothing("create database elsewhere")
    client.rows_of_nothing('create schema "Sch" in database elsewhere;')
    assert client.state("create schema sch in database elsewhere") == "42P06"
    client.rows_of_nothing("create schema if not exists sch in database elsewhere")
    assert client.state("create schema x in database nowhere") == "3D002"
    client.rows_of_nothing('drop schema "Sch" in database elsewhere')
    assert client.state('drop schema "elsewhere"."Sch"') == "3D003"
    client.rows_of_nothing("drop database elsewhere")
