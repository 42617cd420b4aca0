"""Every DuckDB type: its name in the interface, and its values as strings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.duckdb.instance import DuckdbEngine
from sqlshell.service.engines.engine import RunOptions
from sqlshell.service.results.results import Discard
from tests.cases import rows

TABLE = [
    *((str(value), str(name), text) for value, name, text in rows("types", "values")),
    ("chr(0) || 'x'", "VARCHAR", "\0x"),
]


class Kept(Discard):
    """A sink that holds the rows."""

    def __init__(self, rows: list[str]) -> None:
        self._rows = rows

    def keep(self, rows: Sequence[str]) -> None:
        self._rows.extend(rows)

    def file(self) -> Path:
        raise AssertionError("no result of these is large")


def answer(sql: str, options: RunOptions | None = None) -> tuple[list[ColumnInfo], list[list[str | None]], str]:
    engine = DuckdbEngine()
    connection = engine.connect()
    kept: list[str] = []
    try:
        outcome = connection.run(sql, options or RunOptions(), Kept(kept))
    finally:
        connection.close()
        engine.close()
    return outcome.columns or [], [json.loads(row) for row in kept], outcome.message


@pytest.mark.parametrize(("value", "name", "text"), TABLE)
def test_each_type(value: str, name: str, text: str | None) -> None:
    columns, found, _ = answer(f"select {value} as v")
    assert (columns[0].type, found) == (name, [[text]])


def test_statements_without_rows_say_what_they_did() -> None:
    engine = DuckdbEngine()
    connection = engine.connect()
    message = [
        connection.run(sql, RunOptions(), Kept([])).message
        for sql in (
            "create table t (i int)",
            "insert into t values (1), (2)",
            "update t set i = 3",
            "drop table t",
            "create or replace temp table t (i int)",
            "prepare p as select 1",
            "deallocate p",
            "checkpoint",
        )
    ]
    connection.close()
    engine.close()
    objects = ["CREATE TABLE", "INSERT 2", "UPDATE 2", "DROP TABLE", "CREATE TABLE"]
    assert message == [*objects, "PREPARE", "DEALLOCATE", "CHECKPOINT"]
