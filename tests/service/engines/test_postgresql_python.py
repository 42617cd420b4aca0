"""Python's values as parameters on PostgreSQL, and PostgreSQL's values in Python, compared with psycopg."""

from __future__ import annotations

import asyncio
import datetime
import math
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import sqlshell
from sqlshell.dbapi import Connection, DataError, NotSupportedError, ProgrammingError
from sqlshell.dbapi.literals import literals_for

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
        with pytest.raises(DataError, match="JSON cannot represent"):
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


def test_sqlalchemy_creates_and_reflects_tables(postgresql_database: str) -> None:
    sa = pytest.importorskip("sqlalchemy")
    postgresql = pytest.importorskip("sqlalchemy.dialects.postgresql")
    engine = sa.create_engine(f"sqlshell+{postgresql_database}&timeout=30")
    metadata = sa.MetaData()
    owners = sa.Table("owners", metadata, sa.Column("id", sa.Integer, primary_key=True), sa.Column("tags", sa.JSON))
    sa.Table("things", metadata, sa.Column("made", sa.DateTime, index=True), sa.Column("o", sa.ForeignKey("owners.id")))
    try:
        metadata.create_all(engine)
        with engine.begin() as connection:
            assert connection.execute(owners.insert(), {"tags": ["?"]}).inserted_primary_key == (1,)
            found = sa.cast(owners.c.tags, postgresql.JSONB).has_key("?")
            assert connection.execute(sa.select(found, sa.literal_column("'?'"))).one() == (True, "?")
        inspector = sa.inspect(engine)
        assert inspector.get_schema_names() == ["information_schema", "public"]
        assert sorted(inspector.get_table_names()) == ["owners", "things"]
        assert [str(column["type"]) for column in inspector.get_columns("things")] == ["TIMESTAMP", "INTEGER"]
        assert inspector.get_pk_constraint("owners")["constrained_columns"] == ["id"]
        assert inspector.get_foreign_keys("things")[0]["referred_table"] == "owners"
        assert inspector.get_indexes("things")[0]["column_names"] == ["made"]
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            assert connection.get_isolation_level() == "AUTOCOMMIT"
        metadata.drop_all(engine)
        assert sa.inspect(engine).get_table_names() == []
    finally:
        engine.dispose()


def test_pandas_writes_and_reads_tables_through_a_profile(
    postgresql_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sa, pandas = pytest.importorskip("sqlalchemy"), pytest.importorskip("pandas")
    (tmp_path / "config.toml").write_text(f'[profiles.pg]\nurl = "{postgresql_database}"\n')
    (tmp_path / "config.toml").chmod(0o600)
    monkeypatch.setenv("SQLSHELL_CONFIG_DIR", str(tmp_path))
    engine = sa.create_engine("sqlshell://?profile=pg")
    try:
        frame = pandas.DataFrame({"n": [1, 2], "s": ["a?", None], "x": [0.5, 1.5]})
        frame.to_sql("t", engine, index=False)
        frame.to_sql("t", engine, index=False, if_exists="replace")
        assert pandas.read_sql("select n, x from t order by n", engine).equals(frame[["n", "x"]])
        assert next(iter(pandas.read_sql_table("t", engine)["s"])) == "a?"
    finally:
        engine.dispose()


def test_the_dialect_of_duckdb_names_the_engine_that_it_cannot_reflect(postgresql_database: str) -> None:
    sa = pytest.importorskip("sqlalchemy")
    engine = sa.create_engine("sqlshell://", creator=lambda: sqlshell.connect(postgresql_database))
    try:
        with engine.connect() as connection:
            with pytest.raises(NotSupportedError, match="the service's engine is postgresql") as caught:
                sa.inspect(connection).has_table("t")
            assert caught.value.hint == "add engine=postgresql to the URL's parameters"
            assert connection.scalar(sa.text("select 1")) == 1
    finally:
        engine.dispose()
    given = sa.create_engine("sqlshell://?engine=postgresql", creator=lambda: sqlshell.connect(postgresql_database))
    assert sa.inspect(given).has_table("t") is False
    given.dispose()
