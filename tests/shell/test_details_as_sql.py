"""The details of relations as SQL and in words, and the statements that ask for them, as whole texts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from sqlshell.errors import StatementError
from sqlshell.result import Column, Rows
from sqlshell.shell.metadata.relation_details import ColumnDetails, Constraint, Details, Inspector, ddl, key_of
from sqlshell.sql.completion.catalog import Relation

KEY = Constraint("PRIMARY KEY", "k", "PRIMARY KEY (a)", ("a",))
COLUMNS = [
    ColumnDetails("a", "INTEGER", "false", None, "it's"),
    ColumnDetails("B c", "VARCHAR", "true", "'x'"),
    ColumnDetails("d", "DATE", ""),
]


@pytest.mark.parametrize(
    ("relation", "details", "sql"),
    [
        (
            Relation("d", "main", "t", "table"),
            Details(
                "catalog",
                COLUMNS,
                [KEY],
                [("i", "CREATE INDEX i ON t (d);"), ("j", "CREATE INDEX j ON t (a)")],
                comment="all",
            ),
            "CREATE TABLE t (\n  a INTEGER NOT NULL,\n  \"B c\" VARCHAR DEFAULT 'x',\n  d DATE,\n"
            "  PRIMARY KEY (a)\n);\n"
            "CREATE INDEX i ON t (d);\n"
            "CREATE INDEX j ON t (a);\n"
            "COMMENT ON TABLE t IS 'all';\n"
            "COMMENT ON COLUMN t.a IS 'it''s';",
        ),
        (
            Relation("d", "", "T t", ""),
            Details("described", [ColumnDetails("a", "INTEGER")]),
            'CREATE TABLE "T t" (\n  a INTEGER\n);',
        ),
        (
            Relation("d", "S", "t", "stream"),
            Details("described", [ColumnDetails("a", "INTEGER")]),
            'CREATE STREAM "S".t (\n  a INTEGER\n);',
        ),
        (
            Relation("d", "s", "v", "view"),
            Details("information_schema", COLUMNS[1:], definition=" select 1;\n", comment="c"),
            "CREATE VIEW s.v AS\n select 1;\nCOMMENT ON VIEW s.v IS 'c';".replace("\n select", "\nselect"),
        ),
        (
            Relation("d", "s", "v", "view"),
            Details("catalog", [], definition="create view s.v as select 1;"),
            "create view s.v as select 1;",
        ),
        (
            Relation("d", "s", "t", "table"),
            Details("catalog", COLUMNS[1:], ddl="CREATE TABLE s.t(x); "),
            "CREATE TABLE s.t(x);",
        ),
    ],
)
def test_the_sql_of_a_relation(relation: Relation, details: Details, sql: str) -> None:
    assert ddl(relation, details) == sql


def test_the_keys_of_a_column_in_words() -> None:
    constraints = [
        KEY,
        Constraint("UNIQUE", "u", "UNIQUE (a, b)", ("a", "b")),
        Constraint("FOREIGN KEY", "f", "FOREIGN KEY (b) REFERENCES o(x)", ("b",), "o(x)"),
        Constraint("CHECK", "c", "CHECK (a > 0)", ("a",)),
    ]
    assert [key_of(name, constraints) for name in "abc"] == ["primary key, unique", "unique, references o(x)", ""]


class Answers:
    """Answers statements that contain a text; any other fails."""

    def __init__(self, answers: Mapping[str, Rows]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def __call__(self, sql: str) -> tuple[list[Column], Rows]:
        self.asked.append(sql)
        for text, rows in self.answers.items():
            if text in sql:
                return [], rows
        raise StatementError("unknown")

    def details(self, relation: Relation) -> Details:
        return asyncio.run(Inspector(self).details(relation))


def row(what: str, **told: Any) -> list[str | None]:
    return [what, json.dumps(told)]


def test_what_the_catalog_functions_tell() -> None:
    rows: Rows = [
        row("column", column_index=2, column_name="b", data_type="VARCHAR", is_nullable=True, column_default="'x'"),
        row("column", column_index=1, column_name="a", data_type="INTEGER", is_nullable=False, comment="it"),
        row(
            "column",
            column_index=10,
            column_name="c",
            data_type="INTEGER",
            is_generated=True,
            generation_expression="a + 1",
            column_default="x",
        ),
        row("column", column_index=11, column_name="d", data_type="INTEGER", is_generated=True, column_default="a + 2"),
        row("constraint", constraint_type="NOT NULL", constraint_text="NOT NULL"),
        row(
            "constraint",
            constraint_type="FOREIGN KEY",
            constraint_name=None,
            constraint_text="FOREIGN KEY (a) …",
            constraint_column_names=["a"],
            referenced_table="O t",
            referenced_column_names=["x", "Y"],
        ),
        row("constraint", constraint_type="CHECK", constraint_name="c", constraint_text="CHECK (a)"),
        row("index", index_name="i", sql="CREATE INDEX i"),
        row("referenced", table_name="other", constraint_text="FOREIGN KEY (x)"),
        row("made", sql="CREATE TABLE t(CREATE TABLE)", comment="the table", estimated_size=0, table_oid=7),
    ]
    found = Answers({"duckdb_": rows}).details(Relation("d", "s", "t", "table"))
    expected = Details(
        "catalog",
        [
            ColumnDetails("a", "INTEGER", "false", None, "it"),
            ColumnDetails("b", "VARCHAR", "true", "'x'"),
            ColumnDetails("c", "INTEGER", "true", "generated always as (a + 1)"),
            ColumnDetails("d", "INTEGER", "true", "generated always as (a + 2)"),
        ],
        [
            Constraint("FOREIGN KEY", "", "FOREIGN KEY (a) …", ("a",), '"O t"(x, "Y")'),
            Constraint("CHECK", "c", "CHECK (a)"),
        ],
        [("i", "CREATE INDEX i")],
        [("other", "FOREIGN KEY (x)")],
        "",
        "CREATE TABLE t(CREATE TABLE)",
        "the table",
        "0",
        7,
    )
    assert found == expected
    stream = Answers({"duckdb_": rows}).details(Relation("d", "s", "t", "stream"))
    assert stream.ddl == "CREATE STREAM t(CREATE TABLE)"


def test_what_the_catalog_functions_tell_of_a_view_and_of_a_sequence() -> None:
    column = row("column", column_index=1, column_name="a", data_type="INTEGER")
    view = row("made", view_name="v", sql="CREATE VIEW v AS select 1", view_oid=9)
    found = Answers({"duckdb_": [column, view]}).details(Relation("", "", "v", "view"))
    assert (found.definition, found.ddl, found.rows, found.age) == (
        *("CREATE VIEW v AS select 1", "CREATE VIEW v AS select 1"),
        *("", 9),
    )
    sequence = row(
        "sequence",
        start_value=1,
        min_value=0,
        max_value=9,
        increment_by=2,
        cycle=False,
        last_value=None,
        sql="CREATE SEQUENCE q",
    )
    found = Answers({"duckdb_": [sequence]}).details(Relation("", "", "q", "sequence"))
    assert found.ddl == "CREATE SEQUENCE q"
    assert found.sequence == {
        "start": "1",
        "minimum": "0",
        "maximum": "9",
        "increment": "2",
        "cycles": "false",
        "last": "",
    }


def test_the_statement_of_the_catalog_functions() -> None:
    asked = Answers({"duckdb_": [], "DESCRIBE": [["a", "INTEGER", "TRUE"]], "information_schema": []})
    asked.details(Relation("d", "it's", "t", "table"))
    there = "database_name = 'd' AND schema_name = 'it''s'"
    parts = [
        ("column", "columns", f"{there} AND table_name = 't'"),
        ("constraint", "constraints", f"{there} AND table_name = 't'"),
        ("referenced", "constraints", f"constraint_type = 'FOREIGN KEY' AND referenced_table = 't' AND {there}"),
        ("index", "indexes", f"{there} AND table_name = 't'"),
        ("made", "tables", f"{there} AND table_name = 't'"),
        ("made", "views", f"{there} AND view_name = 't'"),
        ("sequence", "sequences", f"{there} AND sequence_name = 't'"),
    ]
    assert asked.asked[0].split(" UNION ALL ") == [
        f"SELECT '{what}' AS what, to_json(c)::VARCHAR AS told FROM duckdb_{function}() c WHERE {condition}"
        for what, function, condition in parts
    ]
    assert asked.asked[-1] == 'DESCRIBE RELATION COLUMNS "d"."it\'s"."t"'


def test_what_the_information_schema_tells() -> None:
    answers: dict[str, Rows] = {
        "pg_indexes": [["i", "CREATE INDEX i"], ["too", "many", "values"]],
        "information_schema.views": [["select 1"]],
        "check_constraints": [["c", "(a > 0)"], ["d", "CHECK (b)"], ["n", "a IS NOT NULL"]],
        "referential_constraints": [["f", "O t", "x"], ["f", "O t", "Y"], ["f", "O t", "x"]],
        "key_column_usage": [
            ["u", "UNIQUE", "b"],
            ["p", "PRIMARY KEY", "a"],
            ["f", "FOREIGN KEY", "a"],
            ["f", "FOREIGN KEY", "B"],
        ],
        "information_schema.columns": [
            ["a", "INTEGER", "NO", None],
            ["b", "VARCHAR", "yes", "'x'"],
            ["short"],
            [None, None, None, None],
        ],
    }
    found = Answers(answers).details(Relation("d", "s", "t", "table"))
    assert found == Details(
        "information_schema",
        [ColumnDetails("a", "INTEGER", "false"), ColumnDetails("b", "VARCHAR", "true", "'x'"), ColumnDetails("", "")],
        [
            Constraint("UNIQUE", "u", "UNIQUE (b)", ("b",)),
            Constraint("PRIMARY KEY", "p", "PRIMARY KEY (a)", ("a",)),
            Constraint(
                "FOREIGN KEY", "f", 'FOREIGN KEY (a, "B") REFERENCES "O t"(x, "Y")', ("a", "B"), '"O t"(x, "Y")'
            ),
            Constraint("CHECK", "c", "CHECK ((a > 0))"),
            Constraint("CHECK", "d", "CHECK (b)"),
        ],
        [("i", "CREATE INDEX i")],
        definition="select 1",
    )


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        ([["a", "INTEGER", "TRUE"], ["b", None]], [ColumnDetails("a", "INTEGER", "true"), ColumnDetails("b", "")]),
        ([[]], [ColumnDetails("", "")]),
    ],
)
def test_what_describe_tells(rows: Rows, columns: Sequence[ColumnDetails]) -> None:
    assert Answers({"DESCRIBE": rows}).details(Relation("", "s", "t", "")) == Details("described", list(columns))


@pytest.mark.parametrize(
    ("name", "said"),
    [("t", "relation t does not exist"), ("t; drop table t", "t; drop table t is not a valid relation name")],
)
def test_what_cannot_be_described(name: str, said: str) -> None:
    with pytest.raises(StatementError) as told:
        asyncio.run(Inspector(Answers({"DESCRIBE": []})).describe(name))
    assert (told.value.message, told.value.where.sql_state) == (said, "3D020")


@pytest.mark.parametrize(("rows", "size"), [([["4096"]], 4096), ([[None]], 0), ([], 0), ([["x"]], 0), (None, 0)])
def test_the_size_of_a_table(rows: Rows | None, size: int) -> None:
    answers = Answers({"pragma_storage_info": rows} if rows is not None else {})
    assert asyncio.run(Inspector(answers).size(Relation("d", "", "it's", "table"))) == size
    assert "pragma_storage_info('\"d\".\"it''s\"')" in answers.asked[0]
