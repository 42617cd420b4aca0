"""Python's values as parameters on PostgreSQL, and PostgreSQL's values in Python, compared with psycopg."""

from __future__ import annotations

import asyncio
import datetime
import math
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

import sqlshell
from sqlshell.dbapi import Connection, DataError, ProgrammingError
from sqlshell.dbapi.values.engine_literals import literals_for

pytestmark = pytest.mark.usefixtures("postgresql_server")

TWO_HOURS = datetime.timezone(datetime.timedelta(hours=2))


@pytest.fixture
def connection(postgresql_database: str) -> Iterator[Connection]:
    with sqlshell.connect(postgresql_database, autocommit=True) as made:
        yield made


VALUES = [
    (None, "unknown"),
    (True, "boolean"),
    (-5, "integer"),
    (2**40, "bigint"),
    (-1.5e300, "double precision"),
    (-math.inf, "double precision"),
    (Decimal("1.10"), "numeric"),
    (Decimal("Infinity"), "numeric"),
    (Decimal("1" * 50 + ".5"), "numeric"),
    ("it's", "unknown"),
    ("\\' \\x41 $$ -- \n", "unknown"),
    (b"\0\xff\\'", "bytea"),
    (datetime.date(1, 1, 1), "date"),
    (datetime.time(1, 2, 3, 4), "time without time zone"),
    (datetime.time(1, tzinfo=TWO_HOURS), "time with time zone"),
    (datetime.datetime(2024, 1, 2, 3, 4, 5, 6), "timestamp without time zone"),
    (datetime.datetime(2024, 1, 2, 3, 4, 5, 6, TWO_HOURS), "timestamp with time zone"),
    (datetime.timedelta(-1, 5, 6), "interval"),
    (uuid.UUID(int=7), "uuid"),
    ([1, None, 2], "integer[]"),
    ([[Decimal("1.5")], [Decimal("NaN")]], "numeric[]"),
    (["a", None, "b'\\"], "text[]"),
    ([b"\0\\"], "bytea[]"),
    ([datetime.date(2024, 1, 2)], "date[]"),
    ({"a": [1, Decimal("1.5"), None], "it's": "\\"}, "jsonb"),
    ([{"a": 1}], "jsonb[]"),
]


@pytest.mark.parametrize(("value", "type_name"), VALUES, ids=str)
def test_a_parameter_has_the_type_of_postgresql_and_comes_back(
    connection: Connection, value: Any, type_name: str
) -> None:
    found = connection.execute("select ? as v, pg_typeof(?)::text as t", [value, value]).fetchone()
    assert repr(found) == repr((value, type_name)) or found == (value, type_name)


def test_parameters_do_not_depend_on_settings(connection: Connection, postgresql_database: str) -> None:
    day = datetime.timedelta(-1, 5)
    connection.execute("set intervalstyle = sql_standard")
    assert connection.execute("select extract(epoch from ?)", [day]).fetchall() == [(Decimal("-86395.000000"),)]
    connection.execute("set datestyle = 'sql, mdy'")
    found = connection.execute("select ? = make_date(2024, 2, 3)", [datetime.date(2024, 2, 3)])
    assert found.fetchall() == [(True,)]


def test_without_standard_strings_a_backslash_remains_a_backslash() -> None:
    literals = literals_for("postgresql")
    assert literals.of("a\\'b") == "E'a\\\\''b'"
    assert literals.of(b"\\") == "CAST(E'\\\\x5c' AS bytea)"


def test_what_has_no_literal_is_refused() -> None:
    literals = literals_for("postgresql")
    for value in ({"a": math.nan}, {"a": [Decimal("Infinity")]}):
        with pytest.raises(DataError, match="JSON has no"):
            literals.of(value)
    with pytest.raises(ProgrammingError, match="as JSON"):
        literals.of({"a": object()})


@pytest.mark.parametrize("value", [[], [None]])
def test_lists_without_values_take_the_type_that_is_expected(connection: Connection, value: Any) -> None:
    assert connection.execute("select ?::date[]", [value]).fetchall() == [(value,)]


def test_a_doubled_question_mark_is_the_operator(connection: Connection) -> None:
    sql = "select j ?? ?, j ??| ?, j ??& array['a'] from (values ('{\"a\": 1}'::jsonb)) t(j)"
    assert connection.execute(sql, ["a", ["b"]]).fetchall() == [(True, False, True)]
    connection.execute("create table t (j jsonb, n int unique)")
    upsert = "insert into t values (?, ?) on conflict (n) do update set j = excluded.j where excluded.j ?? 'b'"
    connection.cursor().executemany(upsert, [({"a": 1}, 1), ({"a": 2}, 2)])
    connection.cursor().executemany(upsert, [({"a": 3}, 1), ({"b": 4}, 2)])
    assert connection.execute("select j from t order by n").fetchall() == [({"a": 1},), ({"b": 4},)]


@pytest.mark.parametrize("rows", [3, 5000])
def test_many_rows_are_inserted(connection: Connection, rows: int) -> None:
    connection.execute("create table t (i bigint, b bytea, s text, x float8, d date, n numeric, t timestamp)")
    made = [
        (i, b"\0\\", "\\x41\t\\N'", math.inf, datetime.date(2024, 1, 2), Decimal("1.50"), datetime.datetime(2024, 1, 2))
        for i in range(rows)
    ]
    connection.cursor().executemany("insert into t values (?, ?, ?, ?, ?, ?, ?)", made)
    assert connection.execute("select * from t order by i").fetchall() == made


def test_the_asyncio_twin_does_the_same(postgresql_database: str) -> None:
    async def work() -> Any:
        async with await sqlshell.aconnect(postgresql_database, autocommit=True) as connection:
            await connection.execute("create table t (b bytea)")
            cursor = connection.cursor()
            await cursor.executemany("insert into t values (:b)", [{"b": b"\0\xff"}])
            return await (await connection.execute("select b, ? from t", [[1]])).fetchall()

    assert asyncio.run(work()) == [(b"\0\xff", [1])]


def test_sqlalchemy_binds_values_of_postgresql(postgresql_database: str) -> None:
    sa = pytest.importorskip("sqlalchemy")
    engine = sa.create_engine("sqlshell://", creator=lambda: sqlshell.connect(postgresql_database))
    try:
        with engine.begin() as connection:
            query = sa.text("select :b, :d, '{}'::jsonb ?? 'a'")
            given = {"b": b"\0", "d": datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC)}
            assert connection.execute(query, given).fetchall() == [(b"\0", given["d"], False)]
    finally:
        engine.dispose()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ("date 'infinity'|'2024-01-02'|'0044-03-15 BC'|'12345-01-01'|null", [datetime.date(2024, 1, 2), None]),
        ("timestamptz '-infinity'|'2024-01-02 00:00+00'", [datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC)]),
        ("time '24:00'|'12:00'", [datetime.time(12)]),
        ("interval '1 mon'|'3 days'", [datetime.timedelta(3)]),
        ("_int4 '[0:2]={1,2,3}'|'{1}'", [[1]]),
    ],
)
def test_a_value_that_python_does_not_have_is_its_text_alone(
    connection: Connection, values: str, expected: list[Any]
) -> None:
    rows = "), (".join(values.split("|"))
    found = connection.execute(f"select v, v::text from (values ({rows})) t(v)").fetchall()
    assert [value for value, text in found if value != text or value is None] == expected
