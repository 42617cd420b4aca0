"""The reasons that the service gives when it refuses something, and that nothing has changed."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.conftest import Served, serve, stop
from tests.service.client import Client

PREDEFINED = "the roles owner, writer, reader are predefined"

MADE = (
    "create table t (i int)",
    "create view v as select * from t",
    "create stream s (a int)",
    "create store st with ('uri' = '{folder}', 'writable' = TRUE)",
    "create entity st.made",
    "create secret bare with ('type' = generic_string, 'other' = 'v')",
    "create secret foreign_ with ('type' = generic_string, 'secret_string' = 'é')",
    "create schema_registry of_bare with ('uris' = 'http://127.0.0.1:1', 'secret' = 'bare')",
    "create schema_registry of_foreign with ('uris' = 'http://127.0.0.1:1', 'secret' = 'foreign_')",
    "create schema_registry closed with ('uris' = 'http://127.0.0.1:1')",
)


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with an object of each kind that statements below name."""
    home = tmp_path_factory.mktemp("refusing")
    folder = home / "files"
    folder.joinpath("d").mkdir(parents=True)
    folder.joinpath("x.csv").write_text("a\n1\n")
    folder.joinpath("list.json").write_text("[1]\n")
    running = serve(home, "--store-root", str(folder))
    with Client(running) as client:
        for sql in MADE:
            client.rows_of_nothing(sql.format(folder=folder)) if "stream" not in sql else client.rows(sql)
    yield running
    stop(running)


@pytest.fixture(scope="module")
def client(refusing: Served) -> Iterator[Client]:
    with Client(refusing) as made:
        yield made


@pytest.mark.parametrize(
    ("sql", "state", "message"),
    [
        ("create role r", "0A000", f"cannot create a role: {PREDEFINED}"),
        ("drop role r", "0A000", f"cannot drop a role: {PREDEFINED}"),
        ("drop database other.memory", "42601", 'at or near "database"'),
        ("use compute_pool other.default", "42601", 'at or near "other"'),
        ("drop api_token other.k", "42601", 'at or near "api_token"'),
        ("create api_token a with ('role' = 'reader', 'roles' = 'owner')", "42601", "'role' or 'roles', not both"),
        ("create compute_pool p with ('queue' = 1, 'queue' = 2)", "42601", "expected option 'queue' once"),
        ("create api_token a with ('x' = 'y')", "42601", "unknown option 'x' of an API token"),
        ("drop organization local", "2BP01", "cannot drop the last organization"),
        ("describe drop_nothing", "3D020", "drop_nothing"),
        ("list relations where name = 'x')", "42601", 'near ")" in the condition of WHERE'),
        ("list nothings", "0A000", "LIST NOTHINGS is not supported by this service"),
        ("list relations in schema nope", "3D003", "schema 'nope' does not exist"),
        ("list relations in database nope", "3D002", "database 'nope' does not exist"),
        ("truncate stream s", "0A000", "cannot truncate stream 's': a stream is append-only"),
        ("truncate relation v", "0A000", "cannot truncate 'v': it is a view"),
        ("alter stream t set description = 'x'", "3D020", "stream 't' does not exist"),
        ("alter stream s set description = 'x', b = 'c'", "0A000", "can set only 'description', not 'b'"),
        ("drop stream t", "3D020", "stream 't' does not exist"),
        ("drop table s", "0A000", "local.main.s is a stream; use DROP STREAM local.main.s"),
        ("update s set a = 1", "0A000", "a stream is append-only; use INSERT INTO"),
        ("create table x as select * from s", "0A000", "a statement that reads a stream would never end"),
        ("copy s to stdout", "0A000", "a statement that reads a stream would never end"),
        ("select * from s a join s b on a.a = b.a", "0A000", "a join of streams is not supported"),
        ("select sum(a) from s", "0A000", "the aggregate sum is not supported"),
        ("select * from s order by a", "0A000", "ORDER is not supported"),
        ("select '1' is json", "0A000", "IS JSON is not supported; use json_valid(value)"),
        ("explain vacuum", "42501", "EXPLAIN of VACUUM is not allowed"),
        ("explain (analyze) vacuum", "42501", "EXPLAIN of VACUUM is not allowed"),
        ("explain (format nope) select 1", "22023", '"nope" is not a valid FORMAT argument'),
        ("explain drop table t", "42501", "EXPLAIN of DROP is not allowed"),
        ("create function f(1 int) returns int language java", "42601", "syntax error at '1 int': expected name TYPE"),
        (
            f"create function f(a {'x' * 100_000}) returns int language java",
            "53000",
            "the arguments of the function are longer than ",
        ),
        ("create compute_pool default", "42P019", "compute pool 'default' already exists"),
        ("drop compute_pool default", "2BP01", "cannot drop compute pool 'default': it is predefined"),
        ("start compute_pool nope", "3D023", "compute pool 'nope' does not exist"),
        ("stop compute_pool nope", "3D023", "compute pool 'nope' does not exist"),
        ("use compute_pool nope", "3D023", "compute pool 'nope' does not exist"),
        ("drop api_token nope", "3D020", "api token 'nope' does not exist"),
        ("describe organization nope", "3D004", "organization 'nope' does not exist"),
        ("describe user nope", "0A000", "DESCRIBE USER is not supported: this service has API tokens instead of users"),
        ("create user u", "0A000", "CREATE USER is not supported: this service has API tokens instead of users"),
        ("drop user u", "0A000", "DROP USER is not supported: this service has API tokens instead of users"),
        ("describe create table t (i int)", "42P017", "table 't' already exists"),
        ("describe create database local", "42P04", "database 'local' already exists"),
        ("create database system", "42P04", "the name 'system' is reserved; choose another name for the database"),
        ("create database ST", "42P04", "store 'st' already exists; databases and stores share one namespace"),
        ("create store LOCAL with ('uri' = '/')", "42501", "directory '/' is not allowed"),
    ],
)
def test_of_objects_and_relations(client: Client, sql: str, state: str, message: str) -> None:
    answer = client.run(sql)
    assert (answer["sqlState"], message in answer["message"]) == (state, True), answer


@pytest.mark.parametrize(
    ("sql", "verb"),
    [
        ("create database d", "CREATE DATABASE"),
        ("create database if not exists local", "CREATE DATABASE"),
        ("drop database local", "DROP DATABASE"),
        ("create store t with ('uri' = '{folder}')", "CREATE STORE"),
        ("update store st with ('writable' = FALSE)", "UPDATE STORE"),
        ("drop store st", "DROP STORE"),
        ("create entity st.e", "CREATE ENTITY"),
        ("drop entity st.made", "DROP ENTITY"),
        ("insert into entity st.made value ('{}')", "INSERT INTO ENTITY"),
        ("create stream s2 (a int)", "CREATE STREAM"),
        ("create changelog c2 (a int)", "CREATE CHANGELOG"),
        ("drop stream s", "DROP STREAM"),
        ("create role r", "CREATE ROLE"),
        ("create api_token a", "CREATE API_TOKEN"),
        ("drop api_token a", "DROP API_TOKEN"),
        ("create organization o", "CREATE ORGANIZATION"),
        ("create secret u with ('type' = generic_string, 'secret_string' = 'v')", "CREATE SECRET"),
        ("drop secret bare", "DROP SECRET"),
        ("create schema_registry u with ('uris' = 'http://127.0.0.1:1')", "CREATE SCHEMA_REGISTRY"),
        ("drop schema_registry closed", "DROP SCHEMA_REGISTRY"),
        ("create compute_pool p", "CREATE COMPUTE_POOL"),
        ("update compute_pool default with ('concurrency' = 3)", "UPDATE COMPUTE_POOL"),
        ("stop compute_pool default", "STOP COMPUTE_POOL"),
        ("create function_source f with ('file' = 'f.jar')", "CREATE FUNCTION_SOURCE"),
        (
            "create function f (x bigint) returns bigint language java with ('source.name' = 'f')",
            "CREATE FUNCTION",
        ),
        ("drop function f(bigint)", "DROP FUNCTION"),
    ],
)
def test_of_what_cannot_be_rolled_back(client: Client, sql: str, verb: str) -> None:
    kinds = ("databases", "stores", "entities in store st", "streams", "api_tokens", "compute_pools", "secrets")
    before = [client.rows(f"list {kind}") for kind in kinds]
    client.rows_of_nothing("begin")
    answer = client.run(sql)
    assert (answer["sqlState"], answer["message"]) == (
        "25001",
        f"{verb} cannot run in a transaction; COMMIT or ROLLBACK first",
    )
    client.rows_of_nothing("rollback")
    assert [client.rows(f"list {kind}") for kind in kinds] == before


def test_what_the_engine_keeps_is_rolled_back(client: Client) -> None:
    client.rows_of_nothing("begin")
    for sql in ("create schema n in database local", "create materialized view m as select 1", "drop relation t"):
        client.rows_of_nothing(sql)
    client.rows_of_nothing("rollback")
    assert ["n", "local"] not in [row[:2] for row in client.rows("list schemas")]
    assert {"t"} <= set(client.names("list relations")) and "m" not in client.names("list relations")


def test_a_transaction_keeps_its_organization(client: Client) -> None:
    client.rows_of_nothing("create organization elsewhere")
    client.rows_of_nothing("begin")
    assert client.state("use organization elsewhere") == "25001"
    client.rows_of_nothing("commit")


@pytest.mark.parametrize(
    ("options", "state", "message"),
    [
        ("'type' = 'S3', 'uri' = '/x'", "0A000", "stores of type 'S3' are not supported"),
        ("'type' = 'files'", "22023", "a store requires a directory: 'uri' = '/path'"),
        ("'uri' = '/nope/x'", "22023", "directory '/nope/x' does not exist"),
        ("'uri' = 'nope/x'", "22023", "'nope/x' is not an absolute path"),
        ("'uri' = '{folder}', 'nope' = '1'", "3D008", "unknown option 'nope' of a file store"),
        ("'uri' = '{folder}', 'writable' = 'perhaps'", "22023", "'writable': expected TRUE or FALSE, not 'perhaps'"),
        ("'uri' = '/'", "42501", "directory '/' is not allowed (sqlshell serve --store-root)"),
    ],
)
def test_of_stores(client: Client, options: str, state: str, message: str) -> None:
    folder = client.listed("list stores")[0]["Uri"] if "{folder}" in options else ""
    answer = client.run(f"create store other with ({options.format(folder=folder)})")
    assert (answer["sqlState"], message in answer["message"]) == (state, True), answer
    assert client.names("list stores") == ["st"]


@pytest.mark.parametrize(
    ("sql", "state", "message"),
    [
        ("create entity e", "3D006", "no store selected for entity 'e'; add IN STORE name, or run USE STORE"),
        ("create entity st.made", "42710", "entity 'st.made' already exists"),
        ('create entity st."MADE"', "42710", "entity 'st.MADE' already exists"),
        ('create entity st."a.csv"', "3D008", "only JSON files can be created"),
        ('create entity st."a.b"', "3D008", "a name with a dot must end with one of .json, .jsonl, .ndjson"),
        ('create entity st."a\\b"', "3D008", "control characters and backslashes are not allowed"),
        ('create entity st.".x"', "3D008", "no part may be empty or begin with a dot"),
        ('create entity st."d//x"', "3D008", "no part may be empty or begin with a dot"),
        ('create entity st."nowhere/x"', "3D008", "directory 'nowhere' does not exist in store 'st'"),
        ("create entity st.d", "42710", "file 'd' already exists in the directory of store 'st'"),
        (
            f'create entity st."{"x" * 256}"',
            "42622",
            "the name is longer than 255 characters",
        ),
        ("create entity st.e with ('a' = 'b')", "0A000", "option 'a' is not supported"),
        ("drop entity st.nope", "3D008", "entity 'st.nope' does not exist"),
        ("update entity st.nope with ('topic.x' = '1')", "3D008", "entity 'st.nope' does not exist"),
        ("update entity st.made with ('x' = '1')", "0A000", "option 'x' is not supported"),
        ("insert into entity st.nope value ('{}')", "3D008", "entity 'st.nope' does not exist"),
        ("insert into entity st.\"x.csv\" value ('{}')", "0A000", "it is not a JSON entity"),
        ("insert into entity st.\"list.json\" value ('{}')", "0A000", "does not contain one JSON object per line"),
        ("insert into entity s value ('{}')", "0A000", "'s' is a stream, not an entity of a store"),
        ("insert into entity st.made value ('[1]')", "22032", 'expected an object such as {"key": 1}'),
        ('insert into entity st.made value (\'{"a":1,"a":2}\')', "22032", "an object contains a duplicate key"),
        ('insert into entity st.made value (\'{"a":{"b":1,"b":2}}\')', "22032", "an object contains a duplicate key"),
        ("insert into entity st.made value ('{\"a\":')", "22032", "not a valid JSON record: Input data was truncated"),
        (
            f"insert into entity st.made value ('{{\"a\":{'[' * 100}{']' * 100}}}')",
            "22032",
            "objects and lists are nested more than 100 levels deep",
        ),
        (f'insert into entity st.made value (\'{{"a":"{"x" * 1_000_000}"}}\')', "53000", "the maximum is 1000000"),
        ("insert into entity st.made value ('{}'), ('{}')", "0A000", "INSERT INTO ENTITY accepts one record"),
        ("insert into entity made in store nope value ('{}')", "3D006", "store 'nope' does not exist"),
        (
            "insert into entity made in store st value ('{}') with ('store' = 'b')",
            "22023",
            "IN STORE 'st' and option 'store' = 'b' name different stores",
        ),
        ("select * from st.x.csv", "3D020", 'the name of the entity must be quoted: st."x.csv"'),
        ("select * from st.nope", "3D020", "entity 'st.nope' does not exist; run LIST ENTITIES IN STORE st"),
    ],
)
def test_of_entities(client: Client, sql: str, state: str, message: str) -> None:
    answer = client.run(sql)
    assert (answer["sqlState"], message in answer["message"]) == (state, True), answer
    assert sorted(map(str, client.names("list entities in store st"))) == ["list.json", "made", "x.csv"]


def test_what_an_insert_into_an_entity_would_do(client: Client) -> None:
    for sql in ("insert into entity st.made value ('{}')", "insert into entity made in store st value ('{}')"):
        kind, described = client.rows(f"describe {sql}")[0]
        sink = json.loads(str(described))["sink"]
        assert (kind, sink["type"]) == ("INSERT_INTO_ENTITY", "entity")
        assert (sink["name"], sink["store_name"]) in {("st.made", ""), ("made", "st")}
    assert client.rows("select count(*) from st.made where false") == [["0"]]


def test_a_token_of_an_organization_sees_no_other(refusing: Served, client: Client) -> None:
    client.rows_of_nothing("create organization apart")
    with Client(refusing) as other:
        other.rows_of_nothing("use organization apart")
        token = str(other.rows("create api_token t with ('role' = 'writer')")[0][1])
    with Client(refusing, token) as bound:
        answer = bound.run("describe organization local")
        assert (answer["sqlState"], answer["message"]) == ("3D004", "organization 'local' does not exist")
        answer = bound.run("create api_token more with ('role' = 'owner')")
        assert answer["sqlState"] == "42501", answer
    client.rows_of_nothing("drop organization apart")


def test_a_batch_takes_no_attachments(client: Client) -> None:
    parts = [("request", (None, b'{"statements":["select 1"]}')), ("attachments", ("a", b"x"))]
    answer = client.http.post("/v2/statements", files=parts)
    assert answer.status_code == 400
    assert answer.json()["message"] == (
        "a batch cannot have attachments; submit the statement that needs them separately"
    )


def test_a_record_may_be_as_deep_and_as_long_as_it_is_said(client: Client) -> None:
    client.rows_of_nothing("create entity st.deep")
    client.rows_of_nothing(f'insert into entity st.deep value (\'{{"a":{"[" * 99}{"]" * 99}, "b": "]]{{{{"}}\')')
    longest = 1_000_000 - len('{"a":""}')
    client.rows_of_nothing(f'insert into entity st.deep value (\'{{"a":"{"x" * longest}"}}\')')
    client.rows_of_nothing("drop entity st.deep")


@pytest.mark.parametrize(
    "uris",
    [
        "",
        "http://[",
        "ftp://h",
        "http://u:p@h",
        "http://u@h",
        "http://h?",
        "http://h?x",
        "http://h#x",
        "http://h%41",
        "http://h\u200b",
        "http://h:0",
        "http://h:99999",
        "http://h/a b",
        pytest.param(f"http://h/{'x' * 1000}", id="long"),
    ],
)
def test_a_url_that_is_none(client: Client, uris: str) -> None:
    answer = client.run(f"create schema_registry r with ('uris' = '{uris}')")
    expected = "expected URLs such as https://registry.example.com:8081, without user, password, query and fragment"
    assert (answer["sqlState"], answer["message"]) == ("22023", f"'uris': {expected}")


def test_too_many_urls(client: Client) -> None:
    answer = client.run(f"create schema_registry r with ('uris' = '{','.join('abcdefghi')}')")
    assert (answer["sqlState"], answer["message"]) == ("22023", "'uris' has 9 URLs; the maximum is 8")


def test_as_many_urls_as_are_allowed(client: Client) -> None:
    client.rows_of_nothing(f"create schema_registry r with ('uris' = '{','.join('abcdefgh')}')")
    assert "r" in client.names("list schema_registries")
    client.rows_of_nothing("drop schema_registry r")
    assert "r" not in client.names("list schema_registries")


@pytest.mark.parametrize(
    ("sql", "state", "message"),
    [
        ("create schema_registry r with ('type' = 'X', 'uris' = 'h')", "0A000", "of type 'X' are not supported"),
        ("create schema_registry r with ('nope' = 'X', 'uris' = 'h')", "3D008", "unknown option 'nope' of a schema"),
        (
            "create schema_registry r with ('uris' = 'h', 'secret' = 'bare', 'password' = 'p')",
            "22023",
            "a password and 'secret' cannot be used together",
        ),
        ("test schema_registry of_bare", "22023", "secret 'bare' has no 'secret_string'"),
        ("test schema_registry of_foreign", "22023", "it contains characters other than printable ASCII"),
        ("test schema_registry closed", "57015", "127.0.0.1:1: connection refused"),
        ("test schema_registry nope", "3D009", "schema registry 'nope' does not exist"),
        ("drop secret bare", "2BP01", "secret 'bare' is in use by schema registry 'of_bare'"),
        ("create secret y with ('type' = generic_string)", "22023", "a secret requires a value: 'secret_string' = '…'"),
        ("create secret y with ('secret_string' = 'v')", "0A000", "a secret requires 'type' = generic_string"),
        ("update secret bare with ('type' = 'other')", "0A000", "a secret requires 'type' = generic_string"),
        ("create function f(a int) returns int language python", "0A000", "in language PYTHON are not supported"),
        (
            "create function f(a int) returns int language java with ('source.name' = 'x')",
            "22023",
            "requires option 'class.name'",
        ),
        (
            "create function f(a int) returns int language java with ('class.name' = 'x')",
            "22023",
            "requires option 'source.name'",
        ),
    ],
)
def test_of_secrets_registries_and_functions(client: Client, sql: str, state: str, message: str) -> None:
    answer = client.run(sql)
    assert (answer["sqlState"], message in answer["message"]) == (state, True), answer
