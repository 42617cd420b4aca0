"""What there is: on the embedded service and on one that is served, by patterns."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from sqlshell.sql.names import Pattern
from tests.conftest import Program, Served

MAKE = """
create table "My Table" (id integer not null, name varchar);
create view seen as select 1 as x;
create schema other;
create table other.orders (id integer, total decimal(9,2));
"""


@pytest.fixture
def look(program: Program, tmp_path: Path) -> object:
    assert program("-q", "work.duckdb", "-c", MAKE).code == 0

    def run(*commands: str) -> list[list[list[str]]]:
        found = []
        for command in commands:
            done = program("-q", "work.duckdb", "--format", "csv", "-c", command)
            assert done.code == 0, done.err
            found.append(list(csv.reader(io.StringIO(done.out)))[1:])
        return found

    return run


def test_relations(look: object) -> None:
    tables, everywhere, views, all_here, exact, prefix = look(  # type: ignore[operator]
        "\\dt", "\\dt *.*", "\\dv", "\\d", '\\dt "My Table"', "\\dt my*"
    )
    assert tables == [["main", "My Table", "table"]]
    assert everywhere == [["main", "My Table", "table"], ["other", "orders", "table"]]
    assert views == [["main", "seen", "view"]]
    assert all_here == [["main", "My Table", "table"], ["main", "seen", "view"]]
    assert exact == prefix == tables


def test_a_relation(look: object) -> None:
    columns, other, more = look('\\d "My Table"', "\\d other.o*", "\\d+ seen")  # type: ignore[operator]
    assert columns == [["id", "INTEGER", "false"], ["name", "VARCHAR", "true"]]
    assert other == [["id", "INTEGER", "true"], ["total", "DECIMAL(9,2)", "true"]]
    assert more[0][:2] == ["x", "INTEGER"]


def test_everything_else(look: object) -> None:
    databases, schemas, functions, pools, roles, stores, streams = look(  # type: ignore[operator]
        "\\l", "\\dn", "\\df abs", "\\dp", "\\dr", "\\ds", "\\dm"
    )
    assert ["work", "database", "*"] in databases
    assert ["local", "organization", "*"] in databases
    assert {row[0] for row in schemas} >= {"main", "other"}
    assert [row[0] for row in functions] == ["abs"]
    assert [row[0] for row in pools] == ["default"]
    assert [row[0] for row in roles] == ["owner", "writer", "reader"]
    assert stores == streams == []


def test_what_is_not_there(program: Program) -> None:
    done = program("-q", "-c", "create table orders (a int); \\d ordrs")
    assert done.code == 1
    assert "orders" in done.err
    assert "3D020" in done.err
    assert program("-q", "-c", "\\d a b").code == 2


def test_a_served_service(program: Program, served: Served) -> None:
    env = {"SQLSHELL_URL": served.url, "SQLSHELL_TOKEN": served.token}
    made = program("-q", "-c", "create or replace table looked_at (a integer)", env=env)
    assert made.code == 0, made.err
    assert ",looked_at,table" in program("-q", "--format", "csv", "-c", "\\dt look*", env=env).out
    assert "a,INTEGER" in program("-q", "--format", "csv", "-c", "\\d looked_at", env=env).out
    for command in ("\\l", "\\dn", "\\ds", "\\df abs", "\\dp", "\\dr", "\\dq"):
        done = program("-q", "-c", command, env=env)
        assert done.code == 0, (command, done.err)


@pytest.mark.parametrize(
    ("pattern", "names", "matches"),
    [
        ("*", ("a",), True),
        ("ab?", ("abc",), True),
        ("ab?", ("ab",), False),
        ("AB*", ("abc",), True),
        ('"AB"', ("ab",), False),
        ('"AB"', ("AB",), True),
        ('"a*"', ("ab",), False),
        ('"a.b"', ("a.b",), True),
        ("s.t", ("d", "s", "t"), True),
        ("s.t", ("d", "x", "t"), False),
        ("*.t", ("d", "x", "t"), True),
        ("d.*.t", ("d", "x", "t"), True),
        ("d.s.t", ("s", "t"), False),
        ("s.", ("d", "s", "anything"), True),
        ("a+b", ("a+b",), True),
        ("a[b]", ("ab",), False),
        ('"it""s"', ('it"s',), True),
    ],
)
def test_patterns(pattern: str, names: tuple[str, ...], matches: bool) -> None:
    assert Pattern(pattern).matches(*names) is matches
