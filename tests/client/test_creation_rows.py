"""The row that describes what a statement created is a message; the same columns of a query are data."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sqlshell.client.results.creation_rows import creates_object, is_creation_result, tag_of
from sqlshell.result import Result
from sqlshell.shell.results.rows import table_of
from tests.conftest import Program, Served

NAMES = ["type", "name", "command", "summary", "path"]


def result(names: list[str], *rows: list[str | None], message: str = "") -> Result:
    made = table_of([(name, "VARCHAR") for name in names], list(rows))
    made.message, made.row_counts = message, [len(rows)]
    return made


@pytest.mark.parametrize(
    ("sql", "number", "expected"),
    [
        ("create stream s as select * from t", 0, True),
        ("-- a\nCREATE OR REPLACE TABLE t AS SELECT 1", 0, True),
        ("insert into t select 'returning'", 0, True),
        ("with a as (select 1) insert into t from a", 0, True),
        ("begin application a create table t as select 1; end application", 0, True),
        ("insert into t select 1 returning type, name, command, summary, path", 0, False),
        ("select * from artifacts", 0, False),
        ("with a as (select 1) select * from a", 0, False),
        ("list relations", 0, False),
        ("execute p", 0, False),
        ("select 1; create table t as select 1", 0, False),
        ("select 1; create table t as select 1", 1, True),
        ("", 0, False),
        ("create table t as select 1", 1, False),
    ],
)
def test_what_makes_something(sql: str, number: int, expected: bool) -> None:
    assert creates_object(sql, number) is expected


def test_only_these_columns_of_one_row() -> None:
    row: list[str | None] = ["stream", "s", "CREATE", "made", "[]"]
    assert is_creation_result(result(NAMES, row))
    assert is_creation_result(result([name.title() for name in NAMES], row))
    assert not is_creation_result(result(NAMES, row, row))
    assert not is_creation_result(result(NAMES))
    assert not is_creation_result(result(NAMES[:4], row[:4]))
    assert not is_creation_result(result(NAMES[::-1], row))


@pytest.mark.parametrize(
    ("row", "message", "expected"),
    [
        (["stream", "s", "CREATE", "the stream was made", "[]"], "CREATE STREAM", "CREATE STREAM"),
        (["stream", "s", "CREATE", "the stream was made", "[]"], "", "the stream was made"),
        (["stream", "s", "create", None, None], "", "CREATE STREAM s"),
    ],
)
def test_the_tag(row: list[str | None], message: str, expected: str) -> None:
    tagged = asyncio.run(tag_of(result(NAMES, row, message=message)))
    assert (tagged.columns, tagged.message) == ([], expected)


def test_no_format_shows_the_row(program: Program, served: Served, tmp_path: Path) -> None:
    env = served.environment
    query = "select 'a' as type, 'b' as name, 'c' as command, 'd' as summary, 'e' as path"
    script = (
        "create or replace table made as select 1 as i;\ninsert into made select 2\\; insert into made values (3);\n"
        "\\echo :ROW_COUNT\ncreate or replace table made as select 1 as i \\g made.csv\n"
        f"insert into made select 5 \\gset\n{query};\nselect 7 as n\\; insert into made select 4;\n"
        "create or replace table made as select 1 as i;&\n\\wait\n\\fetch\n"
    )
    forms = ("csv", "json", "jsonl", "tsv", "vertical")
    whole = "".join(f"\\format {form}\n{script}" for form in forms)
    found = program("--on-error", "continue", "-v", stdin=whole, env=env)
    assert found.err.count("did not return a result set") == found.err.count("error") == len(forms), found.err
    assert ("CREATE" in found.out, "INSERT" in found.out, found.out.count("7")) == (False, False, len(forms))
    assert found.err.count("INSERT 1") == 3 * len(forms)
    assert not list(tmp_path.glob("made*"))
