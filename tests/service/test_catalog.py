"""LIST, SHOW and DESCRIBE on every engine: its own databases, schemas and relations, and the service's objects."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import datetime

import pytest

from tests.conftest import Served
from tests.service.client import Client
from tests.service.tested_engines import OnEngine

INSTANT, TRUTH = "TIMESTAMP_LTZ(6)", "BOOLEAN"
OWNED = ["Owner", "CreatedAt", "UpdatedAt"]
TYPES = {"IsDefault": TRUTH, "CreatedAt": INSTANT, "UpdatedAt": INSTANT, "Timeout": "INTEGER"}


def check_list(client: Client, sql: str, names: list[str], **types: str) -> None:
    """Check the columns of a list, of which clients read some by name and the first ones by their positions."""
    answer = client.run(sql)
    assert answer["sqlState"] == "00000", answer
    columns = {column["name"]: column["type"] for column in answer["metadata"]["columns"]}
    assert [name for name in names if name in columns] == names
    assert next(iter(columns)) == names[0]
    expected = {name: type_ for name, type_ in (TYPES | types).items() if name in names}
    assert {name: columns[name] for name in expected} == expected
    assert not [column for column in answer["metadata"]["columns"] if column["nullable"]]
    assert all(value is not None for row in answer["data"] for value in row)


def check_described(client: Client, what: str, properties: dict[str, str]) -> None:
    answer = client.run(f"describe {what}")
    assert [column["name"] for column in answer["metadata"]["columns"]] == ["property", "value"]
    told = dict(answer["data"])
    assert {name: told[name] for name in properties} == properties
    for name in {"CreatedAt", "UpdatedAt"} & told.keys():
        assert datetime.strptime(told[name], "%Y-%m-%d %H:%M:%S.%f %z").tzinfo


@pytest.fixture(scope="module")
def own(engine: OnEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with engine.serve(tmp_path_factory.mktemp("catalog")) as running:
        with Client(running) as made:
            made.rows("create compute_pool small with ('compute_pool.size' = 'small', 'compute_pool.timeout_min' = 5)")
            made.rows("create function_source jar with ('file' = 'f.jar')", [("f.jar", b"jar")])
            made.rows("create descriptor_source proto with ('file' = 'g.proto')", [("g.proto", b"proto")])
            made.rows("create secret hidden with ('type' = generic_string, 'secret_string' = 'value')")
            made.rows("create api_token watching with ('role' = 'reader')")
        yield running


@pytest.fixture
def client(own: Served) -> Iterator[Client]:
    with Client(own) as made:
        yield made


@pytest.fixture
def table(client: Client) -> str:
    """A table with rows, and a view of it, in the session's schema: a server may show them to this session alone."""
    name = f"t{uuid.uuid4().hex[:12]}"
    client.rows_of_nothing(f"create table {name} (a int, b decimal(8,2), c boolean, d date)")
    client.rows_of_nothing(f"insert into {name} values (1, 2.50, true, date '2024-02-29')")
    return name


LISTS: dict[str, list[str]] = {
    "list databases": ["Name", "IsDefault", *OWNED, "Type", "State"],
    "list schemas": ["Name", "IsDefault", *OWNED, "Type", "State"],
    "list schemas in database {home}": ["Name", "IsDefault", *OWNED],
    "list stores": ["Name", "Type", "State", "IsDefault", *OWNED],
    'list relations in schema "{home}"."{schema}"': ["Name", "Type", "Owner", "State", "Properties", *OWNED[1:]],
    "list compute_pools": ["Name", "Size", "IntendedState", "ActualState", "ErrorMessages", "Timeout", *OWNED],
    "list function_sources": ["Name", "Language", "State", "Description", "Url", *OWNED],
    "list functions": ["Name", "Signature", "SourceName", "ClassName", "EgressAllowURIs", "Properties", *OWNED],
    "list descriptor_sources": ["Name", "Type", "Url", "Tags", *OWNED],
    "list schema_registries": ["Name", "Type", "State", "Url", *OWNED],
    "list secrets": ["Name", "Type", "Description", *OWNED],
    "list queries": ["ID", "Name", "Version", "IntendedState", "ActualState", "Query", *OWNED],
    "list engines": ["Name", "Version", "State", "Supported", "NotSupported"],
}


@pytest.mark.parametrize("sql", LISTS)
def test_lists_have_the_columns_that_clients_read(client: Client, engine: OnEngine, sql: str) -> None:
    check_list(client, sql.format(home=client.home(), schema=engine.sql.schema), LISTS[sql])


def test_an_engine_says_what_it_declares(client: Client, engine: OnEngine) -> None:
    ((name, version, state, supported, lacking),) = client.rows("list engines")
    assert (name, state) == (engine.name, "ready")
    assert version
    # A server may turn out to have more than its engine declares.
    assert set(engine.capabilities.named(present=True)) <= set(str(supported).split(", "))
    assert set(str(lacking).split(", ")) <= set(engine.capabilities.named(present=False))


def test_relations_are_listed_and_described(client: Client, engine: OnEngine, table: str) -> None:
    place = f'"{client.home()}"."{engine.sql.schema}"'
    listed = {row["Name"]: row for row in client.listed(f"list relations in schema {place}")}
    assert [listed[table][name] for name in ("Type", "Database", "Schema")] == [
        "table",
        client.home(),
        engine.sql.schema,
    ]
    for name in (table, f'"{table}"', f"{engine.sql.schema}.{table}", f'{place}."{table}"'):
        told = client.described(f"describe relation {name}")
        assert {told[part] for part in ("Name", "Type", "Schema")} == {table, "table", engine.sql.schema}
        columns = client.rows(f"describe relation columns {name}")
        assert [row[:2] for row in columns] == [
            ["a", "INTEGER"], ["b", "DECIMAL(8,2)"], ["c", "BOOLEAN"], ["d", "DATE"]
        ]  # fmt: skip
    client.rows_of_nothing(f"drop table {table}")
    assert table not in client.names(f"list relations in schema {place}")
    assert client.state(f"describe relation {table}") == "3D020"


def test_tables_are_listed_beside_a_check_that_only_its_schema_can_bind(served: Served) -> None:
    with Client(served) as client:
        client.run("create schema if not exists apart")
        client.run("create sequence apart.counted")
        client.rows("use schema apart")
        client.run("create table checked (a integer check (nextval('counted') > 0))")
        client.rows("use schema public")
        assert "checked" in client.names("list relations in schema apart")
        assert client.state("list engine foreign_keys") == "00000"
        assert ["a"] in [row[:1] for row in client.rows("describe engine relation columns apart.checked")]
        client.run("drop schema apart cascade")


def test_a_view_is_a_view(client: Client, table: str) -> None:
    client.rows_of_nothing(f"create view v_{table} as select a, b from {table}")
    assert {row["Name"]: row["Type"] for row in client.listed("list relations")}[f"v_{table}"] == "view"
    assert client.described(f"describe relation v_{table}")["Type"] == "view"
    assert [row[0] for row in client.rows(f"describe relation columns v_{table}")] == ["a", "b"]
    client.rows_of_nothing(f"drop view v_{table}")


def test_a_schema_is_listed_used_and_dropped(client: Client, engine: OnEngine) -> None:
    name = f"s{uuid.uuid4().hex[:12]}"
    client.rows_of_nothing(f"create schema {name}")
    assert name in client.names("list schemas")
    assert client.described(f"describe schema {name}")["Database"] == client.home()
    client.rows_of_nothing(f"use schema {name}")
    client.rows_of_nothing("create table inside (i int)")
    assert client.names("list relations") == ["inside"]
    assert client.names(f"list relations in schema {engine.sql.schema}") != ["inside"]
    client.rows_of_nothing("drop table inside")
    client.rows_of_nothing(f"use schema {engine.sql.schema}")
    client.rows_of_nothing(f"drop schema {name}")
    assert name not in client.names("list schemas")


@pytest.mark.parametrize(
    ("what", "properties"),
    [
        ("database {home}", {"Owner": "owner", "State": "ready", "IsDefault": "true"}),
        ('schema "{home}"."{schema}"', {"Name": "{schema}", "Database": "{home}"}),
        ("compute_pool small", {"Size": "small", "Timeout": "5", "IntendedState": "running", "ErrorMessages": ""}),
        ("function_source jar", {"Name": "jar", "Language": "JAVA", "File": "f.jar"}),
        ("descriptor_source proto", {"Name": "proto", "File": "g.proto"}),
        ("secret hidden", {"Name": "hidden"}),
        ("api_token watching", {"Name": "watching"}),
        ("role writer", {"Name": "writer", "Granted": "true"}),
    ],
)
def test_an_object_is_described_by_its_properties(
    client: Client, engine: OnEngine, what: str, properties: dict[str, str]
) -> None:
    names = {"home": client.home(), "schema": engine.sql.schema}
    expected = {name: value.format(**names) for name, value in properties.items()}
    check_described(client, what.format(**names), expected)


@pytest.mark.parametrize(
    ("what", "state"),
    [
        ("database nowhere", "3D002"),
        ("schema nowhere", "3D003"),
        ("schema nowhere.{schema}", "3D002"),
        ("store nowhere", "3D006"),
        ("compute_pool nowhere", "3D023"),
        ("function_source nowhere", "3D018"),
        ("descriptor_source nowhere", "3D011"),
        ("entity x in store nowhere", "3D006"),
        ("relation nowhere", "3D020"),
        ("table nowhere", "3D020"),
        ("api_token nowhere", "3D020"),
        ("role nowhere", "3D001"),
    ],
)
def test_what_is_not_there_has_its_own_code(client: Client, engine: OnEngine, what: str, state: str) -> None:
    assert client.state(f"describe {what.format(schema=engine.sql.schema)}") == state


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("list databases where IsDefault", None),
        ("list compute_pools where Timeout > 0", ["small"]),
        ("list compute_pools where Name like 'd%'", ["default"]),
        ("list function_sources where Name = 'jar' and File = 'f.jar'", ["jar"]),
        ("list stores where Type = 'KAFKA'", []),
    ],
)
def test_a_condition_chooses_rows(client: Client, sql: str, names: list[str] | None) -> None:
    assert client.names(sql) == ([client.home()] if names is None else names)


@pytest.mark.parametrize("sql", ["list stores where nosuch = 1", "list compute_pools where Name ="])
def test_a_condition_that_is_wrong_is_an_error_of_the_statement(client: Client, sql: str) -> None:
    assert client.state(sql)[:2] == "42"


@pytest.mark.needs("streams")
def test_streams_are_listed(client: Client) -> None:
    client.rows("create stream flow (a int)")
    assert client.names("list streams") == ["flow"]
    client.rows("drop stream flow")


def test_an_engine_without_streams_says_so(client: Client, engine: OnEngine) -> None:
    expected = "00000" if engine.capabilities.streams else "0A000"
    answer = client.run("create stream perhaps (a int)")
    assert answer["sqlState"] == expected
    client.run("drop stream if exists perhaps")


def test_a_query_is_described_by_its_properties(client: Client, engine: OnEngine) -> None:
    failed = client.run("select * from nowhere_at_all")["statementID"]
    answer = client.run(f"describe query {failed}")
    assert [column["name"] for column in answer["metadata"]["columns"]] == ["Property", "Value"]
    told = dict(answer["data"])
    assert (told["state"], told["sqlState"], told["query"]) == (
        "failed", engine.sql.no_relation, "select * from nowhere_at_all"
    )  # fmt: skip
    assert "nowhere_at_all" in str(told["error"])


def test_times_are_shown_in_the_zone_that_is_asked_for(client: Client) -> None:
    assert str(client.listed("list databases")[0]["CreatedAt"]).endswith("Z")
    there = client.listed("list databases", parameters={"timezone": "Asia/Tokyo"})[0]["CreatedAt"]
    assert str(there).endswith("+09:00")


def test_a_table_and_its_lists_inside_a_transaction_that_failed(client: Client, engine: OnEngine) -> None:
    """What the service keeps itself is listed whatever state the session is in."""
    client.run("begin")
    client.run("select nope")
    assert client.state("list compute_pools") == "00000"
    assert client.state("list queries") == "00000"
    client.run("rollback")
    assert client.rows("select 1") == [["1"]]
