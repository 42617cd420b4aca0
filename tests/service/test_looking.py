"""LIST, SHOW, DESCRIBE, CAN I and the system relations, as other clients read them: by name, by position, by type."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from sqlshell.service.catalog import ORGANIZATION_ID, TIDIED, Catalog
from sqlshell.service.engines.duckdb.instance import DuckdbEngine
from sqlshell.service.engines.engine import CatalogQuery, Limits
from sqlshell.service.storage.sqlite import SqliteStorage
from sqlshell.service.storage.storage import Storage
from tests.conftest import Served, serve, stop
from tests.service.client import Client
from tests.service.test_catalog import INSTANT, OWNED, check_described, check_list


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = tmp_path_factory.mktemp("looking")
    store = home / "store"
    (store / "inner").mkdir(parents=True)
    (store / "top.csv").write_text("a,b\n1,x\n")
    (store / "inner" / "deep.csv").write_text("a\n1\n")
    running = serve(home)
    with Client(running) as made:
        made.rows("create table keyed (id int, part int, name varchar not null, primary key (id, part))")
        made.rows("create view seen as select * from keyed")
        made.rows("create stream flow (a int) with ('topic' = 't')")
        made.rows(f"create store files with ('type' = 'files', 'uri' = '{store}')")
        made.rows("create compute_pool small with ('compute_pool.size' = 'small', 'compute_pool.timeout_min' = 5)")
        made.rows("create function_source jar with ('file' = 'f.jar')", [("f.jar", b"jar")])
        made.rows("create macro twice(x) as x * 2")
        made.rows("create database other")
    yield running
    stop(running)


@pytest.fixture
def client(own: Served) -> Iterator[Client]:
    with Client(own) as made:
        yield made


@pytest.fixture(scope="module")
def reader(own: Served) -> Iterator[Client]:
    with Client(own) as made:
        token = str(made.rows("create api_token looks with ('role' = 'reader')")[0][1])
    with Client(own, token) as made:
        yield made


LISTS: dict[str, list[str]] = {
    "show schemas in database local": ["Name", "IsDefault", *OWNED],
    "list streams": ["Name", "Type", "Owner", "State", "Properties", "CreatedAt", "UpdatedAt"],
    'show relations in schema "local"."main"': ["Name", "Type", "Owner", "State", "Properties", *OWNED[1:]],
    "list queries with ('all')": ["ID", "Name", "Version", "IntendedState", "ActualState", "Query", *OWNED],
}


@pytest.mark.parametrize("sql", LISTS)
def test_lists_have_the_columns_that_clients_read(reader: Client, sql: str) -> None:
    check_list(reader, sql, LISTS[sql], Version="INTEGER")
    assert reader.rows(sql)


def test_entities_have_two_columns_and_are_found_by_folders(client: Client) -> None:
    answer = client.run("list entities in store files")
    assert [(column["name"], column["type"]) for column in answer["metadata"]["columns"]] == [
        ("Name", "VARCHAR"),
        ("IsLeaf", "BOOLEAN"),
    ]
    assert sorted(answer["data"]) == [["inner/deep.csv", "true"], ["top.csv", "true"]]
    assert client.rows('list entities in "inner" in store files') == [["deep.csv", "true"]]
    assert client.rows('list entities in files."inner"') == [["deep.csv", "true"]]
    assert client.state("list entities in store nowhere") == "3D006"


def test_a_store_that_is_gone_hides_no_other(client: Client, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    client.rows(f"create store a_gone with ('uri' = '{tmp_path}/gone')")
    (tmp_path / "gone").rmdir()
    assert client.state("list entities in store a_gone") == "3E001"
    assert "top.csv" in client.names("list entities")
    assert ["top.csv", "true", "files"] in client.rows("list entities")
    assert client.rows("list entities where name = 'top.csv' and store = 'files'") == [["top.csv", "true", "files"]]
    asked = "select name from deltastream.sys.\"entities\" where store_name = 'files' order by 1"
    assert client.names(asked) == ["inner/deep.csv", "top.csv"]
    assert client.described('describe entity "top.csv"')["Store"] == "files"
    client.rows("drop store a_gone")


DESCRIBED = {
    'schema "other"."main"': {"Name": "main", "Database": "other", "IsDefault": "true"},
    'relation "local"."main"."keyed"': {"Name": "keyed", "Type": "table", "PrimaryKey": "id, part", "State": "created"},
    "relation seen": {"Type": "view", "Schema": "main"},
    "stream flow": {"Type": "stream", "FQN": '"local"."main"."flow"'},
    'entity "top.csv" in store "files"': {"Name": "top.csv", "IsLeaf": "true", "Store": "files", "Size": "8"},
    'entity "top.csv"': {"Store": "files"},
    'entity "inner"."deep.csv" in store files': {"Path": "inner/deep.csv", "IsLeaf": "true"},
    "entity inner in store files": {"Name": "inner", "IsLeaf": "false"},
}


@pytest.mark.parametrize("what", DESCRIBED)
def test_an_object_is_described_by_its_properties(client: Client, what: str) -> None:
    check_described(client, what, DESCRIBED[what])


def test_a_store_is_described_by_one_row(client: Client) -> None:
    answer = client.run('describe store "files"')
    assert [(column["name"], column["type"]) for column in answer["metadata"]["columns"]] == [
        ("Metadata", "VARCHAR"),
        ("Uri", "VARCHAR"),
        ("Details", "VARCHAR"),
        ("TlsEnabled", "BOOLEAN"),
        ("VerifyHostName", "BOOLEAN"),
        ("SchemaRegistryName", "VARCHAR"),
        ("Path", "VARCHAR"),
    ]
    (row,) = answer["data"]
    listed = next(item for item in client.listed("list stores") if item["Name"] == "files")
    metadata = json.loads(row[0])
    assert metadata | {"IsDefault": str(metadata["IsDefault"]).lower()} == {
        name: value for name, value in listed.items() if name not in {"Uri", "Writable"}
    }
    assert row[1:] == [listed["Uri"], '{"Writable": false}', "false", "false", "", listed["Uri"]]


@pytest.mark.parametrize("what", ["entity nowhere in store files", "entity nowhere"])
def test_what_is_not_there_has_its_own_code(client: Client, what: str) -> None:
    assert client.state(f"describe {what}") == "3D008"


def test_columns_of_a_relation_are_name_type_and_whether_nullable(client: Client) -> None:
    asked = 'describe relation columns "local"."main"."keyed"'
    assert client.rows(asked)[1:] == [["part", "INTEGER", "false"], ["name", "VARCHAR", "false"]]
    assert client.rows("describe entity columns top.csv in store files") == [
        ["a", "BIGINT", "true"],
        ["b", "VARCHAR", "true"],
    ]


CONDITIONS = {
    "list streams where database_name = 'local' and schema_name = 'main'": ["flow"],
    "list streams where database_name = 'other'": [],
    "list stores where type = 'files'": ["files"],
    "list relations where relation_type <> 'view' and name like 'k%'": ["keyed"],
    "list schemas where created_at <= now() order": None,
    "list relations where created_at > timestamptz '2100-01-01'": [],
    "list organizations where name = 'no such'": [],
    "list queries where ActualState = 'running' and Query like '%no such%'": [],
}


@pytest.mark.parametrize("sql", CONDITIONS)
def test_a_condition_chooses_rows(reader: Client, sql: str) -> None:
    wanted = CONDITIONS[sql]
    if wanted is None:
        assert reader.state(sql) == "42601"
    else:
        assert reader.names(sql) == wanted


def test_a_materialized_view_is_listed_as_a_view(client: Client) -> None:
    client.rows("create materialized view always as select 1 as one")
    assert "always" in client.names("list materialized_views")
    client.rows("drop materialized view always")
    assert "always" not in client.names("list materialized_views")


def test_a_condition_may_do_what_a_readers_select_may(client: Client, reader: Client) -> None:
    for who in (client, reader):
        assert who.state("list stores where (select count(*) from read_csv('/etc/passwd')) > 0") == "42501"
        assert who.state("list stores where nosuch = 1") == "42703"
    client.rows("create sequence counted")
    assert client.state("list stores where nextval('counted') > 0") == "42501"
    assert client.rows("select nextval('counted')") == [["1"]]


def test_a_condition_shows_no_statement_of_others(client: Client, reader: Client) -> None:
    client.rows("select 'a private text' as p")
    assert reader.names("list queries where Query like '%a private text%' and Owner = 'operator'") == []
    assert client.names("list queries where Query = 'select ''a private text'' as p'")


def test_show_is_the_engines_where_it_has_it(client: Client) -> None:
    assert client.rows("show tables") != []
    assert {column["name"] for column in client.run("show databases")["metadata"]["columns"]} == {"database_name"}
    assert "schema_name" in {column["name"] for column in client.run("show schemas")["metadata"]["columns"]}
    assert client.names("show stores") == ["files"]
    client.rows("create temporary table mine (i int)")
    client.rows("create table other.main.stores (only_here int)")
    client.rows("use database other")
    assert client.names("show stores") == ["only_here"]


SYSTEM = {
    "databases": 'name, "owner", created_at',
    "schemas": 'database_name, name, "owner", created_at',
    "relations": 'database_name, schema_name, name, fqn, relation_type, primary_key, "owner", "state", created_at, '
    "updated_at",
    "stores": 'name, type, status, "owner", created_at, updated_at',
    "schema_registries": 'name, type, "status", "owner", created_at, updated_at',
    "secrets": 'name, type, "description", "region", "status", "owner", created_at, updated_at',
    "queries": 'id, name, "version", intended_state, current_state, "owner", created_at, updated_at',
    "compute_pools": "name, size, intended_state, actual_state, created_at",
    "function_sources": "name, file, created_at",
    "functions": "name, signature, created_at",
    "entities": "store_name, name, modified_at",
}


@pytest.mark.parametrize("name", SYSTEM)
def test_system_relations_have_what_clients_select(reader: Client, name: str) -> None:
    answer = reader.run(f'select {SYSTEM[name]} from deltastream.sys."{name}" limit 100')
    assert answer["sqlState"] == "00000", answer
    types = {column["name"]: column["type"] for column in answer["metadata"]["columns"]}
    assert {kind for column, kind in types.items() if column.endswith("_at")} == {INSTANT}
    assert types.get("version", "INTEGER") == "INTEGER"
    assert answer["data"] or name in {"schema_registries", "secrets"}
    assert all(value is not None for row in answer["data"] for value in row)


def test_a_relation_is_found_by_its_whole_name(client: Client) -> None:
    asked = 'select name, relation_type, "owner", "state", primary_key from deltastream.sys."relations" where fqn = '
    place = '"local"."main".'
    assert client.rows(f"{asked}'{place}\"keyed\"'") == [["keyed", "table", "owner", "created", "id, part"]]
    client.rows('create table "Odd ""one""" (i int)')
    assert client.names(f'{asked}\'{place}"Odd ""one"""\'') == ['Odd "one"']


def test_times_tell_when_something_was_made_and_changed(client: Client) -> None:
    before = client.rows("select now()")[0][0]
    client.rows("create table timed (i int)")
    client.rows("create schema timed")
    client.rows("create -- a comment\n table timed.inner (i int)")
    where = f"created_at > timestamptz '{before}' and created_at = updated_at"
    asked = f'select name from deltastream.sys."relations" where {where} order by name'
    assert client.names(asked) == ["inner", "timed"]
    assert client.names(f"list schemas where {where}") == ["timed"]
    client.rows("alter table timed add column j int")
    assert client.names(asked) == ["inner"]
    batch = {"statements": ["create table batched (i int)"], "parameters": {"sessionID": client.session}}
    client.http.post("/v2/statements", json=batch)
    assert client.names(asked) == ["batched", "inner"]
    assert client.names("list relations where updated_at > created_at") == ["timed"]
    made = client.described("describe relation batched")["CreatedAt"]
    client.rows("create table if not exists batched (i int)")
    assert client.described("describe relation batched")["CreatedAt"] == made
    client.rows("drop table batched")
    client.rows("create table if not exists batched (i int)")
    assert str(client.described("describe relation batched")["CreatedAt"]) > str(made)


PRIVILEGES = {
    "CREATE_QUERY": ("00000", "00000", "42501"),
    "CREATE_DATABASE": ("00000", "42501", "42501"),
    "CREATE_STREAM ON SCHEMA x": ("00000", "42501", "42501"),
    "SELECT": ("00000", "00000", "00000"),
    "CREATE_ROLE": ("42501", "42501", "42501"),
    "FLY": ("0A000", "0A000", "0A000"),
}


@pytest.mark.parametrize("privilege", PRIVILEGES)
def test_can_i_tells_what_a_role_may(client: Client, reader: Client, privilege: str) -> None:
    asked = f"CAN I {privilege}"
    owner = client.run(asked)
    assert owner["message"]
    told = (owner["sqlState"], client.state(asked, role="writer"), reader.state(asked))
    assert told == PRIVILEGES[privilege]


def test_a_new_database_has_the_schema_public(client: Client) -> None:
    client.rows('create database "Fresh"')
    assert client.names('list schemas in database "Fresh"') == ["main", "public"]
    assert client.names("show schemas in database local")[:2] == ["main", "public"]
    client.rows("create table shown (i int)", database="Fresh", schema="public")
    assert client.names('list relations in schema "Fresh"."public"') == ["shown"]
    echo = client.run("use database other")["metadata"]["context"]
    assert (echo["databaseName"], echo["schemaName"]) == ("other", "main")


def test_a_database_of_before_keeps_its_schemas(tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    duckdb.connect(str(tmp_path / "old.data")).close()
    with contextlib.closing(DuckdbEngine(temporary=tmp_path / "temporary")) as engine:
        engine.lock(tmp_path, {name: tmp_path / f"{name}.data" for name in ("old", "new")}, Limits(threads=1))
        schemas = engine.catalog(CatalogQuery("schemas"))
    assert schemas == [("main", "new"), ("public", "new"), ("main", "old")]


def test_schemas_are_made_and_dropped_in_a_database(client: Client) -> None:
    client.rows("create database places")
    made = 'create schema "S" in database "places"'
    assert [client.state(made), client.state(made)] == ["00000", "42P06"]
    assert client.state('create schema if not exists "S" in database places') == "00000"
    assert client.state("create schema s in database nowhere") == "3D002"
    assert client.state("create schema nowhere.s") == "3D002"
    assert client.state("create schema s in database deltastream") == "3D002"
    client.rows('create table places."S".t (i int)')
    assert client.state('drop schema "places"."S"') == "2BP01"
    assert client.state('drop schema "places"."nowhere"') == "3D003"
    assert client.state('use schema "places"."nowhere"') == "3D003"
    assert client.state('drop schema "places"."S" cascade') == "00000"
    assert client.names("list schemas in database places") == ["main", "public"]


def test_a_reader_makes_no_schema(reader: Client) -> None:
    assert reader.state("create schema s in database local") == "42501"


def test_times_of_the_latest_relations_alone_are_kept(storage: Storage) -> None:
    catalog = Catalog(storage)
    for number in range(TIDIED + 5):
        catalog.note(ORGANIZATION_ID, "noted", f"t{number}", 10)
        # Each organization's are counted by themselves.
        catalog.note("another", "noted", f"t{number}", 10)
    kept = {item.name for item in catalog.objects(ORGANIZATION_ID, "noted")}
    assert f"t{TIDIED + 4}" in kept
    assert len(kept) <= 20


def test_a_data_folder_of_before_is_read(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "service.sqlite")) as before, before:
        before.execute(
            "CREATE TABLE objects (organization TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, "
            "detail TEXT NOT NULL, created REAL NOT NULL, PRIMARY KEY (organization, kind, name))"
        )
        before.execute("INSERT INTO objects VALUES (?, 'store', 's', '{}', 5.0)", (ORGANIZATION_ID,))
    for _ in range(2):
        with contextlib.closing(SqliteStorage(tmp_path / "service.sqlite")) as storage:
            found = Catalog(storage).get(ORGANIZATION_ID, "store", "s")
            assert (found.created, found.updated) == (5.0, 5.0)


def test_names_inside_a_database_ignore_case(client: Client) -> None:
    for sql in (
        "create database cased",
        "use database cased",
        "use schema main",
        "create table MyT2 as select 1 as Col",
        "create view MyV as select 1 as Col",
        'create stream "MySt" (a int)',
        "create schema MyS",
        "create table MyS.inside (a int)",
    ):
        client.rows_of_nothing(sql)
    try:
        for sql in (
            "describe relation MyT2",
            'describe relation "cased"."main"."myt2"',
            'describe relation "MyT2"',
            'describe relation columns "MYT2"',
            "describe table MyT2",
            "describe view MyV",
            "describe stream myst",
            "describe relation MyS.inside",
        ):
            assert client.rows(sql), sql
        assert client.names("list relations in schema cased.mys") == ["inside"]
        assert client.run("use schema MyS")["metadata"]["context"]["schemaName"] == "MyS"
        assert client.state("describe relation nosuch") == "3D020"
        assert client.state("use schema nosuch") == "3D003"
    finally:
        client.rows_of_nothing("use database local")
        client.rows_of_nothing("drop database cased")


@pytest.mark.parametrize("kind", ["function_source", "descriptor_source"])
def test_the_url_of_a_source_is_that_of_its_file(client: Client, kind: str) -> None:
    for name in ("a", "a?b", "a%41#c", "Dé s/x"):
        client.rows_of_nothing(f"create {kind} \"{name}\" with ('file' = 'f.jar')", [("f.jar", name.encode())])
    try:
        for item in client.listed(f"list {kind}s"):
            if item["Name"] != "jar":
                url = str(item["Url"])
                assert url.isascii() and " " not in url
                assert client.http.get(url).text == item["Name"]
                assert client.described(f'describe {kind} "{item["Name"]}"')["Url"] == url
    finally:
        for name in ("a", "a?b", "a%41#c", "Dé s/x"):
            client.rows_of_nothing(f'drop {kind} "{name}"')
