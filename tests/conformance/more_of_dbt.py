"""Slow commands and macros of dbt, which test_dbt.py omits: `python -m pytest tests/conformance/more_of_dbt.py`."""

from __future__ import annotations

import pytest

from tests.conformance.outcomes import Expected, Row, fault, works
from tests.conformance.test_dbt import FIRST, SOURCE, Command, check_commands, running

SNAPSHOT = "the macro deltastream__current_timestamp, which snapshots need, is missing"


DONE = works()


def operation(name: str, arguments: str = "", expected: Expected = DONE) -> Command:
    return Command(["run-operation", name, *(["--args", arguments] if arguments else [])], expected)


APPLICATION = "{application_name: app, statements: ['create table shop.analytics.inside (id int)', 'select 1;']}"

COMMANDS: dict[str, Command] = {
    "a database": operation("create_deltastream_database", "{database_name: shop}"),
    "the first models": Command(["run", "--select", *FIRST], works()),
    "seed --select": Command(["seed", "--select", "raw_orders", "--full-refresh"], works()),
    "build": Command(["build", "--select", "orders", "totals"], works()),
    "run --full-refresh": Command(["run", "--select", "orders", "--full-refresh"], works()),
    "run --empty": Command(["run", "--select", "checked", "--empty"], works()),
    "show --select": Command(["show", "--select", "orders"], works()),
    "show --inline": Command(["show", "--inline", "select * from shop.analytics.orders"], works()),
    "list": Command(["list"], works()),
    "parse": Command(["parse"], works()),
    "compile": Command(["compile"], works()),
    "snapshot": Command(["snapshot"], fault(SNAPSHOT)),
    "run-operation create_sources": operation("create_sources"),
    "run-operation create_sources, again": operation("create_sources", "", fault(SOURCE)),
    "run-operation create_source_by_name": operation("create_source_by_name", "{source_name: source_pool}"),
    "run-operation application": operation("application", APPLICATION),
    "run-operation describe_query": operation("describe_query", "{query_id: QUERY}"),
    "run-operation restart_query": operation("restart_query", "{query_id: QUERY}"),
    "run-operation terminate_query": operation("terminate_query", "{query_id: QUERY}"),
    "run-operation list_all_queries": operation("list_all_queries"),
    "run-operation terminate_all_queries": operation("terminate_all_queries", "{state: running}"),
    "run-operation terminate_all_queries, ended ones too": operation("terminate_all_queries"),
    "run-operation deltastream_get_relations": operation("deltastream_get_relations"),
    "source freshness": Command(["source", "freshness"], works(note="only if no source has a freshness check")),
    "docs generate --select": Command(["docs", "generate", "--select", "orders"], works()),
    "debug --connection": Command(["debug", "--connection"], works()),
    "clean": Command(["clean"], works()),
}

ROWS = [Row(f"dbt {name}", command.expected) for name, command in COMMANDS.items() if name[:2] not in {"a ", "th"}]


def test_each_command_comes_to_what_the_table_says(tmp_path_factory: pytest.TempPathFactory) -> None:
    with running(COMMANDS, tmp_path_factory) as ran:
        check_commands(COMMANDS, ran)
        assert "State: completed" in ran.message
        assert {"source_stream", "source_changelog", "inside"} <= {
            row[0] for row in ran.client.rows("list relations in schema shop.analytics")
        }
