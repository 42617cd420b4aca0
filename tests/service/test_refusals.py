"""The reasons that the service gives when it refuses something, and that nothing has changed."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.cases import params
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
        *params("refusals", "objects"),
        ("create role r", "0A000", f"cannot create a role: {PREDEFINED}"),
        ("drop role r", "0A000", f"cannot drop a role: {PREDEFINED}"),
        (
            f"create function f(a {'x' * 100_000}) returns int language java",
            "53000",
            "the arguments of the function are longer than ",
        ),
    ],
)
def test_a_refusal_says_why(client: Client, sql: str, state: str, message: str) -> None:
    answer = client.run(sql)
    assert (answer["sqlState"], message in answer["message"]) == (state, True), answer


@pytest.mark.parametrize(
    ("sql", "verb"),
    params("refusals", "transactions"),
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
    # Another test in this process wants the last organization.
    client.rows_of_nothing("drop organization elsewhere")


@pytest.mark.parametrize(
    ("options", "state", "message"),
    params("refusals", "stores"),
)
def test_of_stores(client: Client, options: str, state: str, message: str) -> None:
    folder = client.listed("list stores")[0]["Uri"] if "{folder}" in options else ""
    answer = client.run(f"create store other with ({options.format(folder=folder)})")
    assert (answer["sqlState"], message in answer["message"]) == (state, True), answer
    assert client.names("list stores") == ["st"]


@pytest.mark.parametrize(
    ("sql", "state", "message"),
    [
        *params("refusals", "entities"),
        (
            f'create entity st."{"x" * 256}"',
            "42622",
            "the name is longer than 255 characters",
        ),
        (
            f"insert into entity st.made value ('{{\"a\":{'[' * 100}{']' * 100}}}')",
            "22032",
            "objects and lists are nested more than 100 levels deep",
        ),
        (f'insert into entity st.made value (\'{{"a":"{"x" * 1_000_000}"}}\')', "53000", "the maximum is 1000000"),
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
        assert (answer["sqlState"], answer["message"]) == ("3D004", 'organization "local" does not exist')
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
    expected = "expected URLs such as https://registry.example.com:8081, without a user, password, query or fragment"
    assert (answer["sqlState"], answer["message"]) == ("22023", f"'uris': {expected}")


def test_too_many_urls(client: Client) -> None:
    answer = client.run(f"create schema_registry r with ('uris' = '{','.join('abcdefghi')}')")
    assert (answer["sqlState"], answer["message"]) == ("22023", "'uris' has 9 URLs; the maximum is 8")


def test_as_many_urls_as_are_allowed(client: Client) -> None:
    client.rows_of_nothing(f"create schema_registry r with ('uris' = '{','.join('abcdefgh')}')")
    assert "r" in client.names("list schema_registries")
    client.rows_of_nothing("drop schema_registry r")
    assert "r" not in client.names("list schema_registries")
