"""The details of a relation are the same in all ways of requesting them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import duckdb
import pytest

from sqlshell.errors import StatementError
from sqlshell.result import Column, Rows
from sqlshell.shell.metadata.relation_details import Details, Inspector, ddl
from sqlshell.sql.completion.catalog import Relation

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
