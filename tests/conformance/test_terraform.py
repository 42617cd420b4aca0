"""The statements of a Terraform provider: each resource is created, looked up, changed and dropped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conformance.outcomes import Row, works
from tests.conftest import Served, serve, stop
from tests.service.client import Answer, Client


class Life(NamedTuple):
    """`look` gives one row while there is the resource, and none behind that: its columns are `columns`, and the first
    ones have the values `values`. `describe` gives 00000, and then `gone`."""

    create: str
    look: str
    columns: tuple[str, ...]
    values: tuple[str, ...]
    drop: str
    again: str
    """The sqlState of making it twice."""
    update: str = ""
    describe: str = ""
    gone: str = ""


ROLE = "sysadmin"
"""The role that the provider sends if none is configured, and expects as the owner of what it has made."""

SYS = "deltastream.sys."
LIVES = {
    "database": Life(
        'CREATE DATABASE "tf_db";',
        f'SELECT name, "owner", created_at FROM {SYS}"databases" WHERE name = \'tf_db\';',
        ("name", "owner", "created_at"),
        ("tf_db",),
        'DROP DATABASE "tf_db";',
        "42P04",
        describe='DESCRIBE DATABASE "tf_db";',
        gone="3D002",
    ),
    "schema": Life(
        'CREATE SCHEMA "tf_schema" IN DATABASE "kept";',
        f'SELECT database_name, name, "owner", created_at FROM {SYS}"schemas" '
        "WHERE database_name = 'kept' AND name = 'tf_schema';",
        ("database_name", "name", "owner", "created_at"),
        ("kept", "tf_schema"),
        'DROP SCHEMA "kept"."tf_schema";',
        "42P06",
        describe='DESCRIBE SCHEMA "kept"."tf_schema";',
        gone="3D003",
    ),
    "store": Life(
        "CREATE STORE \"tf_store\" WITH ('type' = FILES, 'uri' = '{folder}', 'writable' = TRUE);",
        f'SELECT name, type, status, "owner", created_at, updated_at FROM {SYS}"stores" WHERE name = \'tf_store\';',
        ("name", "type", "status", "owner", "created_at", "updated_at"),
        ("tf_store", "files"),
        'DROP STORE "tf_store";',
        "42P05",
        update="UPDATE STORE \"tf_store\" WITH ('writable' = FALSE);",
        describe='DESCRIBE STORE "tf_store";',
        gone="3D006",
    ),
    "schema registry": Life(
        "CREATE SCHEMA_REGISTRY \"tf_registry\" WITH ('type' = CONFLUENT, 'uris' = 'http://127.0.0.1:9/', "
        "'confluent.username' = 'u', 'confluent.password' = 'p');",
        f'SELECT name, type, "status", "owner", created_at, updated_at FROM {SYS}"schema_registries" '
        "WHERE name = 'tf_registry';",
        ("name", "type", "status", "owner", "created_at", "updated_at"),
        ("tf_registry", "CONFLUENT"),
        'DROP SCHEMA_REGISTRY "tf_registry";',
        "42P018",
        update="UPDATE SCHEMA_REGISTRY \"tf_registry\" WITH ('uris' = 'http://127.0.0.1:8/');",
        describe='DESCRIBE SCHEMA_REGISTRY "tf_registry";',
        gone="3D009",
    ),
    "secret": Life(
        "CREATE SECRET \"tf_secret\" WITH ('type' = generic_string, 'description' = 'told', "
        "'secret_string' = 'wonderland');",
        f'SELECT name, type, "description", "status", "owner", created_at, updated_at FROM {SYS}"secrets" '
        "WHERE name = 'tf_secret';",
        ("name", "type", "description", "status", "owner", "created_at", "updated_at"),
        ("tf_secret", "generic_string", "told"),
        'DROP SECRET "tf_secret";',
        "42P014",
        describe='DESCRIBE SECRET "tf_secret";',
        gone="3D016",
    ),
    "compute pool": Life(
        "CREATE COMPUTE_POOL \"tf_pool\" WITH ('compute_pool.size' = 'small', 'compute_pool.timeout_min' = 5);",
        "LIST COMPUTE_POOLS WHERE name = 'tf_pool';",
        (),
        ("tf_pool",),
        'DROP COMPUTE_POOL "tf_pool";',
        "42P019",
        update="UPDATE COMPUTE_POOL \"tf_pool\" WITH ('compute_pool.timeout_min' = 10);",
        describe='DESCRIBE COMPUTE_POOL "tf_pool";',
        gone="3D023",
    ),
    "relation": Life(
        'CREATE STREAM "kept"."public"."tf_stream" (`id` BIGINT, `tags` ARRAY<VARCHAR>, `at` TIMESTAMP_LTZ(6)) '
        "WITH ('topic' = 'tf', 'value.format' = 'json', 'timestamp' = 'at');",
        'SELECT database_name, schema_name, name, fqn, relation_type, primary_key, "owner", "state", created_at, '
        f'updated_at FROM {SYS}"relations" WHERE database_name = \'kept\' AND schema_name = \'public\' '
        "AND name = 'tf_stream';",
        ("database_name", "schema_name", "name", "fqn", "relation_type", "primary_key", "owner", "state", "created_at",
         "updated_at"),
        ("kept", "public", "tf_stream", '"kept"."public"."tf_stream"'),
        'DROP RELATION "kept"."public"."tf_stream";',
        "42P017",
        update='ALTER RELATION "kept"."public"."tf_stream" SET description = \'clicks\';',
        describe='DESCRIBE RELATION "kept"."public"."tf_stream";',
        gone="3D020",
    ),
    "entity": Life(
        'CREATE ENTITY "tf.jsonl" IN STORE "outside";',
        'LIST ENTITIES IN STORE "outside" WHERE name = \'tf.jsonl\';',
        (),
        ("tf.jsonl",),
        'DROP ENTITY "tf.jsonl" IN STORE "outside";',
        "42710",
        update="INSERT INTO ENTITY \"tf.jsonl\" IN STORE \"outside\" VALUE('{{\"id\": 1}}');",
        describe='DESCRIBE ENTITY "tf.jsonl" IN STORE "outside";',
        gone="3D008",
    ),
    "function": Life(
        'CREATE FUNCTION "tf_twice" (x BIGINT) RETURNS BIGINT LANGUAGE JAVA '
        "WITH ('source.name' = 'jar', 'class.name' = 'org.example.Twice');",
        "LIST FUNCTIONS WHERE SourceName = 'jar';",
        (),
        ("tf_twice", "tf_twice(x BIGINT) BIGINT"),
        'DROP FUNCTION "tf_twice" (x BIGINT);',
        "42P015",
    ),
}  # fmt: skip


ROWS = [Row(f"{resource}: create, look up, update, describe, delete", works()) for resource in LIVES]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("outside")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[Client]:
    running: Served = serve(tmp_path_factory.mktemp("terraform"), "--store-root", str(folder))
    with Client(running) as made:
        made.rows_of_nothing("CREATE DATABASE kept;")
        made.rows_of_nothing(f"CREATE STORE outside WITH ('type' = FILES, 'uri' = '{folder}', 'writable' = TRUE);")
        made.rows_of_nothing("CREATE FUNCTION_SOURCE jar WITH ('file' = '@/elsewhere/f.jar');", [("f.jar", b"PK")])
        yield made
    stop(running)


def looked(client: Client, life: Life) -> list[dict[str, Any]]:
    """The rows of the provider's look-up, by the names of their columns."""
    answer = client.run(life.look, role=ROLE)
    assert answer["sqlState"] == "00000", answer
    columns = [item["name"] for item in answer["metadata"]["columns"]]
    assert not life.columns or tuple(columns) == life.columns, columns
    return [dict(zip(columns, row, strict=True)) for row in answer["data"]]


@pytest.mark.parametrize("resource", LIVES)
def test_the_life_of_a_resource(client: Client, folder: Path, resource: str) -> None:
    life = LIVES[resource]
    life = life._replace(create=life.create.format(folder=folder), update=life.update.format())
    assert looked(client, life) == []
    assert not life.describe or client.state(life.describe) == life.gone
    made = client.run(life.create, role=ROLE)
    assert made["sqlState"] == "00000", made
    (row,) = looked(client, life)
    assert row.get("owner", ROLE) == row.get("Owner", ROLE) == ROLE
    assert tuple(row.values())[: len(life.values)] == life.values, row
    assert client.state(life.create) == life.again
    if life.update:
        changed = client.run(life.update, role=ROLE)
        assert changed["sqlState"] == "00000", changed
        assert len(looked(client, life)) == 1
    if life.describe:
        described = client.run(life.describe, role=ROLE)
        assert (described["sqlState"], bool(described["data"])) == ("00000", True), described
    assert "wonderland" not in str((row, made))
    assert client.state(life.drop) == "00000"
    assert looked(client, life) == []
    assert not life.describe or client.state(life.describe) == life.gone
    assert client.state(life.drop)[:2] == "3D"


def test_a_query_is_planned_and_refused_where_it_would_run_for_ever(client: Client) -> None:
    """The provider describes what it is about to make, makes it, and follows it in the system's queries."""
    client.rows_of_nothing('CREATE STREAM "kept"."public"."source" (`id` BIGINT);')
    client.rows_of_nothing('CREATE TABLE "kept"."public"."known" (id BIGINT);')
    sql = 'INSERT INTO "kept"."public"."source" SELECT id FROM "kept"."public"."known"'
    planned = client.run(f"DESCRIBE {sql};")
    assert planned["sqlState"] == "00000", planned
    assert len(planned["metadata"]["columns"]) == 2
    (row,) = planned["data"]
    assert row[0] == "INSERT_INTO"
    relations = [json.loads(row[1])["sink"], *json.loads(row[1])["sources"]]
    for relation in relations:
        # The provider puts its organization in front of the fqn that it knows, and compares.
        organization, _, fqn = relation["fqn"].partition(".")
        assert organization.strip('"') == planned["metadata"]["context"]["organizationID"]
        assert client.rows(f"SELECT name FROM {SYS}\"relations\" WHERE fqn = '{fqn}';") == [[relation["name"]]]
    inserted = client.run(f"{sql};", role=ROLE)
    assert (inserted["sqlState"], len(inserted["metadata"]["columns"])) == ("00000", 5), inserted
    for made in ("STREAM", "CHANGELOG", "MATERIALIZED VIEW"):
        answer: Answer = client.run(f'CREATE {made} "kept"."public"."q" AS SELECT id FROM "kept"."public"."source";')
        assert answer["sqlState"] == "0A000", answer
    columns = 'id, name, "version", intended_state, current_state, "owner", created_at, updated_at'
    followed = f"WHERE id = '{inserted['statementID']}'"
    assert client.rows(f'SELECT {columns} FROM {SYS}"queries" {followed};')[0][5] == ROLE


def test_a_compute_pool_is_started_and_stopped(client: Client) -> None:
    client.rows_of_nothing('CREATE COMPUTE_POOL "tf_switched";')
    for verb, state in (("STOP", "stopped"), ("START", "running")):
        client.rows_of_nothing(f'{verb} COMPUTE_POOL "tf_switched";')
        answer = client.run("LIST COMPUTE_POOLS WHERE name = 'tf_switched';")
        names = [item["name"] for item in answer["metadata"]["columns"]]
        row = dict(zip(names, answer["data"][0], strict=True))
        assert (row["IntendedState"], row["ActualState"]) == (state, state)
    client.rows_of_nothing('DROP COMPUTE_POOL "tf_switched";')
