"""PostgreSQL's types and values by way of the engine: each as PostgreSQL prints it, whichever way its rows arrive."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.service.engines.conftest import Runner, stored

if TYPE_CHECKING:
    from sqlshell.service.engines.postgresql.engine import PostgresqlEngine

pytestmark = pytest.mark.usefixtures("postgresql_server")

CASES = {
    # SQL: (interface type, PostgreSQL's name if the type does not tell it, value)
    "true": ("BOOLEAN", None, "true"),
    "false": ("BOOLEAN", None, "false"),
    "1::int2": ("SMALLINT", None, "1"),
    "'-2147483648'::int4": ("INTEGER", None, "-2147483648"),
    "9223372036854775807::int8": ("BIGINT", None, "9223372036854775807"),
    "1::float4": ("FLOAT", None, "1"),
    "1e20::float8": ("DOUBLE", None, "1e+20"),
    "'NaN'::float8": ("DOUBLE", None, "NaN"),
    "'-Infinity'::float4": ("FLOAT", None, "-Infinity"),
    "1.50::numeric(10,2)": ("DECIMAL(10,2)", None, "1.50"),
    "1.50::numeric": ("DECIMAL", None, "1.50"),
    "1234::numeric(5,-2)": ("DECIMAL", "numeric(5,-2)", "1200"),
    "0.001::numeric(2,4)": ("DECIMAL", "numeric(2,4)", "0.0010"),
    "'NaN'::numeric(10,2)": ("DECIMAL(10,2)", None, "NaN"),
    "'Infinity'::numeric": ("DECIMAL", None, "Infinity"),
    "repeat('9', 100)::numeric(1000,0)": ("DECIMAL(1000,0)", None, "9" * 100),
    "'é\"\\\t'::text": ("VARCHAR", None, 'é"\\\t'),
    "'ab'::varchar(5)": ("VARCHAR(5)", None, "ab"),
    "'ab'::varchar": ("VARCHAR", "character varying", "ab"),
    "'ab'::bpchar": ("VARCHAR", "bpchar", "ab"),
    "'ab'::char(4)": ("CHAR(4)", None, "ab  "),
    "'pg_class'::name": ("VARCHAR", "name", "pg_class"),
    "'x'": ("VARCHAR", None, "x"),
    "null": ("VARCHAR", None, None),
    "'\\x00ff'::bytea": ("VARBINARY", None, base64.b64encode(b"\0\xff").decode()),
    "decode(repeat('ab', 100), 'hex')": ("VARBINARY", None, base64.b64encode(b"\xab" * 100).decode()),
    "date '2024-02-29'": ("DATE", None, "2024-02-29"),
    "date '0044-03-15 BC'": ("DATE", None, "0044-03-15 BC"),
    "date 'infinity'": ("DATE", None, "infinity"),
    "time '12:34:56.7'": ("TIME(6)", None, "12:34:56.7"),
    "time(2) '12:34:56.789'": ("TIME(2)", None, "12:34:56.79"),
    "timetz '12:34:56+02'": ("VARCHAR", "TIMETZ", "12:34:56+02"),
    "timestamp '2024-01-02 03:04:05.000001'": ("TIMESTAMP(6)", None, "2024-01-02 03:04:05.000001"),
    "timestamp(0) '2024-01-02 03:04:05.6'": ("TIMESTAMP(0)", None, "2024-01-02 03:04:06"),
    "timestamp '-infinity'": ("TIMESTAMP(6)", None, "-infinity"),
    "timestamptz '2024-07-01 00:00:00+00'": ("TIMESTAMP_LTZ(6)", None, "2024-07-01 02:00:00+02"),
    "timestamptz(3) '0001-01-01 00:00:00+00 BC'": ("TIMESTAMP_LTZ(3)", None, "0001-01-01 00:53:28+00:53:28 BC"),
    "interval '1 mon 2 days 03:04:05'": ("VARCHAR", "INTERVAL", "1 mon 2 days 03:04:05"),
    "'{\"a\":  1}'::json": ("VARCHAR", "JSON", '{"a":  1}'),
    "'{\"a\":  1}'::jsonb": ("VARCHAR", "JSONB", '{"a": 1}'),
    "'<a/>'::xml": ("VARCHAR", "XML", "<a/>"),
    "'00000000-0000-0000-0000-000000000001'::uuid": ("VARCHAR", "UUID", "00000000-0000-0000-0000-000000000001"),
    "12.5::money": ("VARCHAR", "MONEY", "$12.50"),
    "B'101'::bit(3)": ("VARCHAR", "bit(3)", "101"),
    "B'101'::varbit": ("VARCHAR", "bit varying", "101"),
    "inet '10.0.0.1/8'": ("VARCHAR", "inet", "10.0.0.1/8"),
    "cidr '10.0.0.0/8'": ("VARCHAR", "cidr", "10.0.0.0/8"),
    "macaddr '08:00:2b:01:02:03'": ("VARCHAR", "macaddr", "08:00:2b:01:02:03"),
    "point '(1,2)'": ("VARCHAR", "point", "(1,2)"),
    "int4range(1, 5)": ("VARCHAR", "int4range", "[1,5)"),
    "int4multirange(int4range(1, 2))": ("VARCHAR", "int4multirange", "{[1,2)}"),
    "'a b'::tsvector": ("VARCHAR", "tsvector", "'a' 'b'"),
    "26::oid": ("BIGINT", "oid", "26"),
    "'pg_class'::regclass": ("VARCHAR", "regclass", "pg_class"),
    "'3'::xid": ("VARCHAR", "xid", "3"),
    "'c'::refcursor": ("VARCHAR", "refcursor", "c"),
    "array[1, null]": ("VARCHAR", "integer[]", "{1,NULL}"),
    "array[[1, 2], [3, 4]]": ("VARCHAR", "integer[]", "{{1,2},{3,4}}"),
    "array['a \"b\"', 'NULL', '']": ("VARCHAR", "text[]", '{"a \\"b\\"","NULL",""}'),
    "'[0:1]={1,2}'::int[]": ("VARCHAR", "integer[]", "[0:1]={1,2}"),
    "array[1.5::numeric(3,1)]": ("VARCHAR", "numeric(3,1)[]", "{1.5}"),
    "array[true]": ("VARCHAR", "boolean[]", "{t}"),
    "row(1, 'a b')": ("VARCHAR", "record", '(1,"a b")'),
    "'sad'::mood": ("VARCHAR", "mood", "sad"),
    "'sad'::schema_of_types.feeling": ("VARCHAR", "schema_of_types.feeling", "sad"),
    "row(1, 'x')::pair": ("VARCHAR", "pair", "(1,x)"),
    "7::positive": ("INTEGER", None, "7"),
    "pg_sleep(0)": ("VARCHAR", "void", ""),
}

SETUP = (
    "create type mood as enum ('sad', 'ok')",
    "create schema schema_of_types",
    "create type schema_of_types.feeling as enum ('sad')",
    "create type pair as (a int, b text)",
    "create domain positive as int check (value > 0)",
)


@pytest.fixture(scope="module", autouse=True)
def _types(postgresql: PostgresqlEngine) -> None:
    session = postgresql.connect()
    runner = Runner(session)
    for sql in SETUP:
        runner.run(sql)
    session.close()


def test_each_type_has_its_name_and_its_value(runner: Runner) -> None:
    names = list(CASES)
    selected = ", ".join(names)
    for sql in (
        f"select {selected}",
        f"select {selected} -- ;",
        f"with x as (select 'update') select {selected} from x",
    ):
        told = runner.run(sql, timezone="Europe/Berlin")
        shown = {
            name: (column.type, column.engine_type, value)
            for name, column, value in zip(names, told.columns or (), told.rows[0], strict=True)
        }
        assert shown == CASES


def test_each_type_has_the_same_value_in_a_large_result(
    runner: Runner, postgresql: PostgresqlEngine, tmp_path: Path
) -> None:
    selected = f"select {', '.join(CASES)} from generate_series(1, 2000)"
    found = stored(runner, postgresql, selected, tmp_path / "result", timezone="Europe/Berlin")
    assert found == [[value for _, _, value in CASES.values()]] * 2000


def test_the_columns_of_a_table_have_the_types_of_its_results(runner: Runner) -> None:
    told = [sql for sql in CASES if not sql.startswith(("row(1, 'a b')", "pg_sleep"))]
    runner.run("create table of_all as select " + ", ".join(f"{sql} as c{at}" for at, sql in enumerate(told)))
    described = runner.session.columns(runner.session.resolve(("of_all",)), runner.options)
    selected = runner.run("table of_all").columns or []
    for column, other, sql in zip(described, selected, told, strict=True):
        # A domain is described by its name.
        assert column.type == other.type and (column.engine_type == other.engine_type or "positive" in sql), sql


def test_bytes_are_the_same_in_both_forms_that_postgresql_prints(runner: Runner) -> None:
    runner.run("set bytea_output = 'escape'")
    assert runner.value("select '\\x00615cff'::bytea -- ;") == base64.b64encode(b"\0a\\\xff").decode()
    assert runner.value("select '\\x00615cff'::bytea") == base64.b64encode(b"\0a\\\xff").decode()


@pytest.mark.parametrize("number", range(1, 128))
def test_every_character_arrives(runner: Runner, number: int) -> None:
    assert runner.value(f"select 'a' || chr({number}) || '\\N' || chr({number})") == f"a{chr(number)}\\N{chr(number)}"


@pytest.mark.parametrize(
    "text",
    ["", "\\N", '"\\N"', "\\", "\\\\", '"', "\\v", "\\\v", "\t\\t", "\n\r\b\f\v", "\\.", ",", "\x7f\x80 \U0001f600"],
)
def test_awkward_texts_arrive_beside_nulls(runner: Runner, text: str) -> None:
    literal = "'" + text.replace("'", "''") + "'"
    expected = [[None, text, None], [text, None, text]]
    assert runner.run(f"values (null, {literal}, null), ({literal}, null, {literal})").rows == expected
    assert runner.run(f"values (null, {literal}, null), ({literal}, null, {literal}) -- ;").rows == expected


def test_bytes_that_are_no_text_are_replaced() -> None:
    from sqlshell.service.engines.postgresql.rows import rows_of_copy

    assert rows_of_copy(b"a\xffb\n") == ['["a�b"]']
