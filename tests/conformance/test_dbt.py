"""dbt-deltastream from PyPI with a real service: a small project is built from scratch, and again."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conformance.environments import python_with
from tests.conformance.outcomes import Expected, Row, fault, refused, works
from tests.conftest import Served, serve, stop
from tests.service.client import Client

pytestmark = pytest.mark.conformance

VERSIONS = ("dbt-deltastream==1.10.2", "dbt-core==1.11.16", "deltastream-connector==0.3.1")
DRIVER = Path(__file__).with_name("drive_dbt.py")
PROJECT = Path(__file__).with_name("project")

FOR_EVER = "DuckDB does not support continuous queries"
DATABASE = "relation.py:15 lacks the relation type that materializations/database.sql:18 uses for the new database"
FUNCTION = "materializations/function.sql:19 does not name the function's statement 'main', which dbt requires"
FUNCTIONS = "impl.py:525 and 532 read agate rows in an unsupported way, so no function is ever found"
SOURCE = "materializations/function_source.sql:14 drops and recreates the source although functions depend on it"
COUNT = (
    "only if fail_calc returns no integer (use cast(count(*) as double)): connections.py:109 lets agate guess "
    "types, which treats counts of 0 and 1 as booleans"
)
CELL = "materializations/seeds/helpers.sql:38 uses null, which Jinja does not know"

INCREMENTAL = (
    "materializations/incremental.sql:2 is not implemented, and reports this with a name that dbt does not have"
)

FIRST = ["outside", "orders_file", "workers"]
REST = ["clicks", "customers", "orders", "totals", "spare", "jar", "shapes", "registry", "checked"]
TESTS = ["only_what_was_paid", "not_null_orders_id", "unique_orders_id", "no_negative_amounts"]
ENDLESS = ["clicks_of_one", "clicks_by_what", "clicks_so_far"]


class Command(NamedTuple):
    """What dbt is asked for; what comes of it, and of each node that it runs."""

    words: Sequence[str]
    expected: Expected
    nodes: Mapping[str, Expected] = {}


def all_of(names: Sequence[str], expected: Expected) -> dict[str, Expected]:
    return dict.fromkeys(names, expected)


COMMANDS: dict[str, Command] = {
    "run-operation create_deltastream_database": Command(
        ["run-operation", "create_deltastream_database", "--args", "{database_name: shop}"], works()
    ),
    "debug": Command(["debug"], works()),
    "run, first": Command(["run", "--select", *FIRST], works(), all_of(FIRST, works())),
    "seed": Command(["seed"], fault(CELL), {"raw_orders": works(), "empty_cells": fault(CELL)}),
    "run, rest": Command(
        ["run", "--exclude", "tag:continuous", *FIRST],
        fault("three models"),
        all_of(REST, works()) | {"archive": fault(DATABASE), "twice": fault(FUNCTION), "grown": fault(INCREMENTAL)},
    ),
    "test": Command(["test"], works(note=COUNT), all_of(TESTS, works())),
    "docs generate": Command(["docs", "generate"], works()),
    "run, again": Command(
        ["run", "--exclude", "tag:continuous"],
        fault("three models"),
        all_of(FIRST, works())
        | all_of(REST, works())
        | {"archive": fault(DATABASE), "jar": fault(SOURCE), "twice": fault(FUNCTIONS)},
    ),
    "run, continuous": Command(
        ["run", "--select", "tag:continuous"], refused(FOR_EVER), all_of(ENDLESS, refused(FOR_EVER))
    ),
}


MATERIALIZATIONS = {
    "outside": "store",
    "orders_file": "entity",
    "workers": "compute_pool",
    "archive": "database",
    "clicks": "stream",
    "customers": "changelog",
    "orders": "table",
    "totals": "materialized_view over a table",
    "checked": "table with a contract",
    "grown": "incremental",
    "spare": "function_source",
    "jar": "function_source that a function uses",
    "twice": "function",
    "shapes": "descriptor_source",
    "registry": "schema_registry",
    "clicks_of_one": "stream … as select",
    "clicks_by_what": "changelog … as select",
    "clicks_so_far": "materialized_view over a stream",
    "raw_orders": "a csv file",
    "empty_cells": "a csv file with an empty cell",
}


def _rows() -> Iterator[Row]:
    for name, command in COMMANDS.items():
        made = {node: expected for node, expected in command.nodes.items() if node in MATERIALIZATIONS}
        again = " again" if name == "run, again" else ""
        if not made:
            yield Row(f"dbt {name}", command.expected)
        for node, expected in made.items():
            verb = "seed" if name == "seed" else "run"
            yield Row(f"dbt {verb}{again}: {MATERIALIZATIONS[node]}", expected)


ROWS = list(_rows())


class Ran(NamedTuple):
    outcomes: dict[str, dict[str, Any]]
    project: Path
    client: Client
    message: str
    """What dbt printed."""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    with running(COMMANDS, tmp_path_factory) as made:
        yield made


@contextlib.contextmanager
def running(commands: Mapping[str, Command], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """What came of commands in a copy of the project, and the service that they ran against. The word QUERY stands for
    the id of a query that has ended."""
    python = python_with(*VERSIONS)
    folder, room = tmp_path_factory.mktemp("outside"), tmp_path_factory.mktemp("dbt")
    project = room / "project"
    shutil.copytree(PROJECT, project)
    served = serve(room, "--store-root", str(folder))
    with Client(served) as client:
        organization = client.rows("list organizations")[0]
        (project / "profiles.yml").write_text(json.dumps(profiles(served, str(organization[1]))))
        query = client.run("select 1")["statementID"]
        given = json.dumps([list(command.words) for command in commands.values()]).replace("QUERY", query)
        environment = os.environ | {
            "HOME": str(room),
            "DBT_PROFILES_DIR": str(project),
            "CONFORMANCE_FOLDER": str(folder),
            "CONFORMANCE_REGISTRY": "http://127.0.0.1:9/",
        }
        message = room / "message"
        with message.open("w") as output:
            done = subprocess.run(
                [python, DRIVER, room / "outcomes"],
                input=given,
                text=True,
                timeout=300,
                check=False,
                cwd=project,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        assert done.returncode == 0, message.read_text()[-2000:]
        outcomes = json.loads((room / "outcomes").read_text())
        yield Ran(dict(zip(commands, outcomes, strict=True)), project, client, message.read_text())
    stop(served)


def profiles(served: Served, organization: str) -> dict[str, Any]:
    """The database, schema, store and pool are what the project makes."""
    output = {
        "type": "deltastream",
        "url": f"{served.url}/v2",
        "token": served.token,
        "organization_id": organization,
        "database": "shop",
        "schema": "analytics",
        "store": "outside",
        "compute_pool": "workers",
        "threads": 2,
    }
    return {"conformance": {"target": "local", "outputs": {"local": output}}}


def test_a_project_is_run_from_nothing_and_again(ran: Ran) -> None:
    """One test, so that processes that share the tests do not run dbt twice."""
    check_commands(COMMANDS, ran)
    check_what_was_made(ran.client)
    check_that_the_second_run_changed_nothing(ran.client)
    check_the_catalog(ran.project)


def check_commands(commands: Mapping[str, Command], ran: Ran) -> None:
    for name, command in commands.items():
        found = ran.outcomes[name]
        assert found["success"] == (command.expected.word == "works"), (name, found)
        for node, expected in command.nodes.items():
            status, message = found["nodes"][node]
            assert (status in {"success", "pass"}) == (expected.word == "works"), (name, node, message)


def check_what_was_made(client: Client) -> None:
    assert client.rows('select id, amount from shop.analytics."orders" order by id') == [["1", "10.5"], ["2", "20.0"]]
    assert client.rows("select n, amount from shop.analytics.totals") == [["2", "30.5"]]
    assert client.rows('select what, paid from outside."orders.jsonl" where id = 2') == [["two, quoted", "0"]]
    made = {row[0] for row in client.rows("list relations in schema shop.analytics")}
    assert made == {"clicks", "customers", "orders", "totals", "checked"}


def check_that_the_second_run_changed_nothing(client: Client) -> None:
    """Each entity, store and pool is there once, and has what the first run made of it."""
    assert len(client.rows('select * from outside."orders.jsonl"')) == 3
    assert [row[0] for row in client.rows("list stores")] == ["outside"]
    assert [row[0] for row in client.rows("list compute_pools")] == ["default", "workers"]
    assert [row[0] for row in client.rows("list databases")] == ["archive", "local", "shop"]


def check_the_catalog(project: Path) -> None:
    catalog = json.loads((project / "target" / "catalog.json").read_text())
    assert {"model.conformance.orders", "model.conformance.clicks"} <= catalog["nodes"].keys(), catalog["errors"]
    assert catalog["nodes"]["model.conformance.orders"]["metadata"]["schema"] == "analytics"
