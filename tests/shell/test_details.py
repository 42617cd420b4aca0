"""The details of a relation are the same in all ways of requesting them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from http.server import HTTPServer
from pathlib import Path

import duckdb
import pytest

from sqlshell.errors import StatementError
from sqlshell.result import Column, Rows
from sqlshell.shell.metadata.relation_details import Details, Inspector, ddl
from sqlshell.sql.completion.catalog import Relation
from tests.conftest import Program
from tests.http_servers import QuietHandler, listening

MADE = """
create table customer (id integer primary key, name varchar not null default 'nobody', email varchar unique);
create table bought (
  a integer, b integer, buyer integer references customer(id), total decimal(9,2) check (total > 0), primary key (a, b)
);
create table "Other T" ("A b" varchar default 'it''s');
create view rich as select id, name from customer where id > 1;
"""
NAMES = ("customer", "bought", "Other T", "rich")


@pytest.fixture
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute(MADE)
        yield connection


def told(database: duckdb.DuckDBPyConnection, name: str, *unknown: str) -> Details:
    """The details of a relation from a service that does not know statements with one of these words in them."""

    async def ask(sql: str) -> tuple[list[Column], Rows]:
        if any(word in sql for word in unknown):
            raise StatementError("not known here")
        try:
            found = database.execute(sql)
        except duckdb.Error as error:
            raise StatementError(str(error)) from None
        columns = [Column(item[0], "VARCHAR") for item in found.description or []]
        return columns, [[None if value is None else str(value) for value in row] for row in found.fetchall()]

    return asyncio.run(Inspector(ask).details(Relation("memory", "main", name, "table")))


@pytest.mark.parametrize("name", NAMES)
def test_the_ways_agree(database: duckdb.DuckDBPyConnection, name: str) -> None:
    functions, standard = told(database, name), told(database, name, "duckdb_")
    assert (functions.source, standard.source) == ("catalog", "information_schema")
    assert functions.columns == standard.columns
    for kind in ("PRIMARY KEY", "UNIQUE", "FOREIGN KEY", "CHECK"):
        keys = [
            [(item.name, item.columns, item.target) for item in found.constraints if item.kind == kind]
            for found in (functions, standard)
        ]
        if kind == "CHECK":
            keys = [[(found_name, (), "") for found_name, _, _ in found] for found in keys]
        assert sorted(keys[0]) == sorted(keys[1]), kind
    assert functions.definition == standard.definition


@pytest.mark.parametrize("unknown", [(), ("duckdb_",)])
def test_the_sql_makes_the_same_again(database: duckdb.DuckDBPyConnection, unknown: tuple[str, ...]) -> None:
    before = [told(database, name, *unknown) for name in NAMES]
    texts = [ddl(Relation("memory", "main", name, "table"), found) for name, found in zip(NAMES, before, strict=True)]
    for kind, name in (("view", "rich"), ("table", "bought"), ("table", "customer"), ("table", '"Other T"')):
        database.execute(f"drop {kind} {name}")
    for text in texts:
        database.execute(text)
    for name, found in zip(NAMES, before, strict=True):
        again = told(database, name, *unknown)
        assert again.columns == found.columns
        assert sorted(item.definition for item in again.constraints) == sorted(
            item.definition for item in found.constraints
        )


@pytest.mark.parametrize(
    "row",
    [
        *(
            ["x"],
            ["column", "x"],
            ["column", "[]"],
            ["column", "{}"],
            ["made", "[1]"],
            ["made", "7"],
            ["constraint", "{}"],
        ),
        *(
            ["column", '{"column_index": "x"}'],
            ["column", '{"column_index": NaN}'],
            ["column", '{"column_index": 1e999}'],
        ),
        *(["column", "[" * 100_000], ["sequence", '"x"'], ["a", "b", "c"], ["a", "b", "c", "d"], []),
    ],
    ids=lambda row: str(row)[:40],
)
def test_a_service_may_answer_anything(row: list[str]) -> None:
    async def ask(sql: str) -> tuple[list[Column], Rows]:
        return [Column(f"c{number}", "VARCHAR") for number in range(len(row))], [list(row)]

    found = asyncio.run(Inspector(ask).details(Relation("memory", "main", "x", "table")))
    assert found.source in {"information_schema", "described"}


class OneColumn(QuietHandler):
    """A service whose every result is one row of one column."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        column = {"name": "x", "type": "VARCHAR", "nullable": True}
        metadata = {"encoding": "json", "partitionInfo": [{"rowCount": 1}], "columns": [column], "context": {}}
        answer = {"sqlState": "00000", "statementID": "1", "createdOn": 1, "metadata": metadata, "data": [["x"]]}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def test_commands_take_any_answer(program: Program, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\n")
    server = HTTPServer(("127.0.0.1", 0), OneColumn)
    with listening(server):
        url = f"http://127.0.0.1:{server.server_port}"
        loaded = program(url, "-c", "\\copy t from 't.csv' with (format csv, header)")
        described = program(url, "-c", "\\d x")
    assert (loaded.code, described.code) == (3, 0), loaded.err + described.err
    assert "does not have the names and types of columns" in loaded.err
    assert "Relation x" in described.out
