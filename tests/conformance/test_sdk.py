"""deltastream-sdk from PyPI with a real service."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.environments import python_with
from tests.conformance.outcomes import Expected, Row, fault, holds, refused, works
from tests.conftest import serve, stop

pytestmark = pytest.mark.conformance

VERSIONS = ("deltastream-sdk==0.2.1", "deltastream-connector==0.3.1")
DRIVER = Path(__file__).with_name("drive_sdk.py")
LIBRARY = Path(__file__).with_name("project") / "files" / "lib.jar"

Call = tuple[str, dict[str, Any], Expected]

COLUMNS = [
    {"name": "id", "type": "INTEGER"},
    {"name": "what", "type": "VARCHAR"},
    {"name": "at", "type": "TIMESTAMP_LTZ(3)"},
]
FOR_EVER = "DuckDB does not support continuous queries"
NOT_HERE = "only stores of type files are supported"
NO_FILE = "resources/function_sources.py:29 and descriptor_sources.py:29 name a file but do not attach it"
COMMENT = "its _get_update_sql, such as resources/databases.py:40, sends a comment instead of a statement"

CALLS: list[Call] = [
    ("test_connection", {}, works(True)),
    ("databases.create", {"name": "shop"}, works({"name": "shop"})),
    ("databases.list", {}, works([{"name": "local", "is_default": True}, {"name": "shop", "is_default": False}])),
    ("databases.get", {"name": "shop"}, works({"name": "shop", "owner": "owner"})),
    ("databases.exists", {"name": "shop"}, works(True)),
    ("databases.exists", {"name": "none"}, works(False)),
    ("databases.update", {"name": "shop"}, fault(COMMENT)),
    ("get_current_database", {}, works("local")),
    ("use_database", {"database": "shop"}, works()),
    ("schemas.list", {}, works([{"name": "public"}])),
    ("schemas.create", {"name": "sales"}, works({"name": "sales"})),
    ("schemas.list", {}, works([{"name": "public"}, {"name": "sales", "is_default": False}])),
    ("schemas.get", {"name": "sales"}, works({"name": "sales"})),
    ("use_schema", {"schema": "sales"}, works()),
    ("get_current_schema", {}, works("sales")),
    ("stores.create", {"name": "files", "type": "files", "parameters": {"uri": "FOLDER"}}, works({"name": "files"})),
    (
        "stores.create_kafka_store",
        {"name": "k", "parameters": {"uris": "k:9092", "tls.disabled": True}},
        refused(NOT_HERE),
    ),
    ("stores.create_kinesis_store", {"name": "k", "parameters": {"uris": "https://k"}}, refused(NOT_HERE)),
    ("stores.create_s3_store", {"name": "k", "parameters": {"uris": "https://k"}}, refused(NOT_HERE)),
    ("stores.list", {}, works([{"name": "files", "is_default": False}])),
    ("stores.list", {"type": "files"}, works([{"name": "files"}])),
    ("stores.list", {"type": "KAFKA"}, works([])),
    (
        "stores.get",
        {"name": "files"},
        works({"name": "files"}, "without the owner, which DESCRIBE STORE does not have"),
    ),
    ("stores.test_connection", {"name": "files"}, works({"Status": "ready"})),
    ("stores.update", {"name": "files", "parameters": {"writable": "true"}}, works({"name": "files"})),
    ("use_store", {"store": "files"}, works()),
    ("get_current_store", {}, works("files")),
    (
        "entities.create",
        {"name": "o.jsonl", "store": "files", "params": {"topic.partitions": 1}},
        works({"name": "o.jsonl"}),
    ),
    (
        "entities.insert_values",
        {
            "name": "o.jsonl",
            "values": [{"id": 1, "t": "it's"}],
            "store": "files",
            "with_params": {"key.format": "json"},
        },
        works(),
    ),
    ("entities.insert_values", {"name": "o.jsonl", "values": [{"id": 2, "t": "two"}, '{"id": 3, "t": null}']}, works()),
    (
        "query_sql",
        {"sql": 'select id, t from files."o.jsonl" order by id'},
        works([{"id": "1", "t": "it's"}, {"id": "3", "t": None}]),
    ),
    ("entities.list", {}, works([{"name": "o.jsonl", "is_leaf": True}])),
    ("entities.list_entities", {"store": "files"}, works([{"name": "o.jsonl", "is_leaf": True}])),
    ("entities.get", {"name": "o.jsonl"}, works({"name": "o.jsonl"})),
    ("entities.exists", {"name": "none.jsonl"}, works(False)),
    (
        "entities.update",
        {"name": "o.jsonl", "schema_definition": "id BIGINT"},
        refused("the columns of an entity are those of its file"),
    ),
    ("entities.delete", {"name": "o.jsonl"}, works()),
    ("compute_pools.create", {"name": "small", "auto_suspend_minutes": 5}, works({"name": "small"})),
    (
        "compute_pools.list",
        {},
        works([{"name": "default"}, {"name": "small", "size": "small", "timeout": 5, "actual_state": "running"}]),
    ),
    ("compute_pools.get", {"name": "small"}, works({"name": "small"})),
    ("compute_pools.update", {"name": "small", "size": "LARGE", "auto_suspend": False}, works({"name": "small"})),
    ("compute_pools.stop", {"name": "small"}, works()),
    ("compute_pools.list", {}, works([{"name": "small", "size": "large", "actual_state": "stopped"}])),
    ("compute_pools.start", {"name": "small"}, works()),
    ("compute_pools.delete", {"name": "small"}, works()),
    (
        "streams.create_with_schema",
        {
            "name": "clicks",
            "columns": COLUMNS,
            "store": "files",
            "topic": "clicks",
            "value_format": "JSON",
            "timestamp_column": "at",
        },
        works({"name": "clicks"}),
    ),
    ("streams.list", {}, works([{"name": "clicks", "owner": "owner"}])),
    ("streams.list", {"database": "shop", "schema": "sales"}, works([{"name": "clicks"}])),
    ("streams.list", {"database": "local"}, works([])),
    ("streams.get", {"name": "clicks"}, works({"name": "clicks"})),
    ("streams.exists", {"name": "none"}, works(False)),
    (
        "streams.create_from_select",
        {"name": "c", "sql_definition": "SELECT * FROM clicks", "store": "files", "topic": "c"},
        refused(FOR_EVER),
    ),
    ("streams.start", {"name": "clicks"}, refused("a stream cannot be started or stopped")),
    ("streams.stop", {"name": "clicks"}, refused("a stream cannot be started or stopped")),
    (
        "streams.get_status",
        {"name": "clicks"},
        fault("resources/streams.py:151 runs DESCRIBE QUERY with a stream's name", "3D019"),
    ),
    ("streams.update", {"name": "clicks"}, fault("resources/streams.py:92 rejects every update itself")),
    ("execute_sql", {"sql": "insert into clicks values (1, 'a', now())"}, works()),
    ("streams.delete", {"name": "clicks"}, works()),
    (
        "changelogs.create",
        {"name": "c", "sql_definition": "SELECT id, count(*) AS n FROM clicks GROUP BY id"},
        refused(FOR_EVER),
    ),
    ("execute_sql", {"sql": "create changelog people (id bigint, name varchar, primary key(id))"}, works()),
    ("changelogs.list", {}, works([{"name": "people"}])),
    ("changelogs.get", {"name": "people"}, works({"name": "people"})),
    ("changelogs.delete", {"name": "people"}, works()),
    ("changelogs.exists", {"name": "people"}, works(False)),
    (
        "connection.exec_with_files",
        {"query": "create function_source lib with ('file' = 'lib.jar')", "file_paths": [str(LIBRARY)]},
        works(),
    ),
    ("function_sources.list", {}, works([{"name": "lib"}])),
    ("function_sources.get", {"name": "lib"}, works({"name": "lib"})),
    ("function_sources.create", {"name": "lib2", "file_path": "lib.jar"}, fault(NO_FILE, "0A000")),
    (
        "execute_sql",
        {
            "sql": "CREATE FUNCTION twice (x BIGINT) RETURNS BIGINT LANGUAGE JAVA "
            "WITH ('source.name' = 'lib', 'class.name' = 'a.B')"
        },
        works(),
    ),
    ("functions.list", {}, works([{"name": "twice(x BIGINT) BIGINT", "source_name": "lib", "class_name": "a.B"}])),
    ("functions.get", {"name": "twice"}, works({})),
    (
        "functions.create",
        {"name": "f", "definition": "x + 1"},
        fault("resources/functions.py:25 does not name the arguments", "0A000"),
    ),
    ("functions.delete", {"name": "twice"}, works()),
    ("function_sources.delete", {"name": "lib"}, works()),
    (
        "connection.exec_with_files",
        {"query": "create descriptor_source shapes with ('file' = 'lib.jar')", "file_paths": [str(LIBRARY)]},
        works(),
    ),
    ("descriptor_sources.list", {}, works([{"name": "shapes"}])),
    ("descriptor_sources.get", {"name": "shapes"}, works({"name": "shapes"})),
    ("descriptor_sources.create", {"name": "d", "file_path": "lib.jar"}, fault(NO_FILE, "0A000")),
    ("descriptor_sources.delete", {"name": "shapes"}, works()),
    (
        "schema_registries.create",
        {"name": "sr", "url": "http://127.0.0.1:9/", "username": "u", "password": "p"},
        works({"name": "sr"}),
    ),
    ("schema_registries.list", {}, works([{"name": "sr"}])),
    ("schema_registries.get", {"name": "sr"}, works({"name": "sr"})),
    ("schema_registries.update", {"name": "sr", "url": "http://127.0.0.1:8/"}, works({"name": "sr"})),
    ("schema_registries.delete", {"name": "sr"}, works()),
    ("stores.delete", {"name": "files"}, works()),
    (
        "query_sql",
        {"sql": "select 1 as one, cast(null as varchar) as nothing, 'x' as x"},
        works([{"one": 1, "nothing": None, "x": "x"}]),
    ),
    ("schemas.delete", {"name": "sales"}, works()),
    ("schemas.list", {}, works([{"name": "public"}])),
    ("use_database", {"database": "local"}, works()),
    ("databases.delete", {"name": "shop"}, works()),
    ("databases.exists", {"name": "shop"}, works(False)),
]
"""In this order. The client goes on naming a store and a schema that it has dropped."""

ROWS = [Row(name, expected) for name, _, expected in CALLS]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    python = python_with(*VERSIONS)
    folder, room = tmp_path_factory.mktemp("outside"), tmp_path_factory.mktemp("sdk")
    running = serve(room, "--store-root", str(folder))
    calls = json.dumps([[name, arguments] for name, arguments, _ in CALLS]).replace("FOLDER", str(folder))
    given = f'{{"url": "{running.url}/v2", "token": "{running.token}", "calls": {calls}}}'
    try:
        subprocess.run(
            [python, DRIVER, room / "outcomes"], input=given, text=True, timeout=120, check=True, cwd=room,
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
    finally:
        stop(running)
    return list(json.loads((room / "outcomes").read_text()))


def test_each_call_comes_to_what_the_table_says(outcomes: list[dict[str, Any]]) -> None:
    """One test, so that processes that share the tests do not run the client twice."""
    for (name, arguments, expected), found in zip(CALLS, outcomes, strict=True):
        assert found["state"] == expected.state, (name, arguments, found)
        if expected.value is not None:
            assert holds(found["value"], expected.value), (name, arguments, found)
            # An empty list is wanted as it is.
            assert expected.value != [] or found["value"] == [], (name, arguments, found)
