"""Every DuckDB type: its name in the interface, and its values as strings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.duckdb.instance import DuckdbEngine
from sqlshell.service.engines.engine import RunOptions

TABLE = [
    ("true", "BOOLEAN", "true"),
    ("(-128)::tinyint", "TINYINT", "-128"),
    ("1::smallint", "SMALLINT", "1"),
    ("1::integer", "INTEGER", "1"),
    ("9223372036854775807::bigint", "BIGINT", "9223372036854775807"),
    ("255::utinyint", "SMALLINT", "255"),
    ("65535::usmallint", "INTEGER", "65535"),
    ("4294967295::uinteger", "BIGINT", "4294967295"),
    ("18446744073709551615::ubigint", "DECIMAL(20,0)", "18446744073709551615"),
    (
        "(-170141183460469231731687303715884105728)::hugeint",
        "DECIMAL(39,0)",
        "-170141183460469231731687303715884105728",
    ),
    ("340282366920938463463374607431768211455::uhugeint", "DECIMAL(39,0)", "340282366920938463463374607431768211455"),
    ("1.10::decimal(38,10)", "DECIMAL(38,10)", "1.1000000000"),
    ("0.1::float", "FLOAT", "0.1"),
    ("(1/3)::double", "DOUBLE", "0.3333333333333333"),
    ("'nan'::double", "DOUBLE", "NaN"),
    ("'inf'::float", "FLOAT", "Infinity"),
    ("'-inf'::double", "DOUBLE", "-Infinity"),
    ("'é\U0001f600'", "VARCHAR", "é\U0001f600"),
    ("chr(0) || 'x'", "VARCHAR", "\0x"),
    ("'ab\\xff'::blob", "VARBINARY", "YWL/"),
    ("'0101'::bit", "VARCHAR", "0101"),
    ("date '2024-02-29'", "DATE", "2024-02-29"),
    ("'infinity'::date", "DATE", "infinity"),
    ("time '12:34:56.5'", "TIME(6)", "12:34:56.5"),
    ("'12:34:56+02'::timetz", "VARCHAR", "12:34:56+02"),
    ("timestamp '2023-12-30 03:37:45.123'", "TIMESTAMP(6)", "2023-12-30 03:37:45.123"),
    ("'2023-12-30 03:37:45'::timestamp_s", "TIMESTAMP(0)", "2023-12-30 03:37:45"),
    ("'2023-12-30 03:37:45.123'::timestamp_ms", "TIMESTAMP(3)", "2023-12-30 03:37:45.123"),
    ("'2023-12-30 03:37:45.123456789'::timestamp_ns", "TIMESTAMP(9)", "2023-12-30 03:37:45.123456789"),
    ("timestamptz '2023-12-30 03:37:45.123+01'", "TIMESTAMP_LTZ(6)", "2023-12-30 02:37:45.123Z"),
    ("'infinity'::timestamptz", "TIMESTAMP_LTZ(6)", "infinity"),
    ("'0199-01-01 (BC)'::timestamp", "TIMESTAMP(6)", "0199-01-01 (BC) 00:00:00"),
    ("interval '1 month 2 days'", "VARCHAR", "1 month 2 days"),
    ("'00000000-0000-4000-8000-000000000001'::uuid", "VARCHAR", "00000000-0000-4000-8000-000000000001"),
    ("'b'::enum('a', 'b')", "VARCHAR", "b"),
    ("union_value(k := 5)", "VARCHAR", "5"),
    ("null", "VARCHAR", None),
    ("'{\"a\": 1}'::json", "VARCHAR", '{"a": 1}'),
    ("[1, null, 3]", "ARRAY<INTEGER>", "[1,null,3]"),
    ("[1.5, 2]::double[2]", "ARRAY<DOUBLE>", "[1.5,2.0]"),
    ("['nan'::double]", "ARRAY<DOUBLE>", '["NaN"]'),
    ("[123456789012345678901234567890::hugeint]", "ARRAY<DECIMAL(39,0)>", '["123456789012345678901234567890"]'),
    ("{'a': 1, 'b c': 'x'}", 'STRUCT<a INTEGER, "b c" VARCHAR>', '{"a":1,"b c":"x"}'),
    ("{'a': 'ab'::blob, 'n': null::int}", "STRUCT<a VARBINARY, n INTEGER>", '{"a":"YWI=","n":null}'),
    ("null::struct(a blob)", "STRUCT<a VARBINARY>", None),
    ("map {'k': [1]}", "MAP<VARCHAR, ARRAY<INTEGER>>", '{"k":[1]}'),
    ("map {'k': 'ab'::blob}", "MAP<VARCHAR, VARBINARY>", '{"k":"YWI="}'),
    ("[{'d': 1.5::decimal(38,2)}]", "ARRAY<STRUCT<d DECIMAL(38,2)>>", '[{"d":"1.50"}]'),
    ("['0.1'::float]", "ARRAY<FLOAT>", "[0.1]"),
    ("timestamptz_ns '2023-12-30 03:37:45.123456789+01'", "TIMESTAMP_LTZ(9)", "2023-12-30 02:37:45.123456789Z"),
    ("(1, 'nan'::double, 'ab'::blob)", "STRUCT<INTEGER, DOUBLE, VARBINARY>", '[1,"NaN","YWI="]'),
    ("[(null, 'ab'::blob)]", "ARRAY<STRUCT<VARCHAR, VARBINARY>>", '[[null,"YWI="]]'),
    ("row()", "STRUCT<>", "[]"),
    ("{'a,b': 1}", 'STRUCT<"a,b" INTEGER>', '{"a,b":1}'),
    ("union_value(k := 'ab'::blob)", "VARCHAR", "YWI="),
    ("union_value(k := 'nan'::double)", "VARCHAR", "NaN"),
    ("union_value(k := ['nan'::double])", "VARCHAR", '["NaN"]'),
    ("[union_value(k := 5)]", "ARRAY<VARCHAR>", '["5"]'),
    ("'ab'::blob::variant", "VARCHAR", "YWI="),
    ("1.50::decimal(4,2)::variant", "VARCHAR", "1.50"),
    ("['inf'::double::variant]", "ARRAY<VARCHAR>", '["Infinity"]'),
    ("map {'ab'::blob: 1}", "MAP<VARBINARY, INTEGER>", '{"YWI=":1}'),
    ("map {'nan'::double: 1}", "MAP<DOUBLE, INTEGER>", '{"NaN":1}'),
    ("map {['ab'::blob]: 1}", "MAP<ARRAY<VARBINARY>, INTEGER>", '{"[\\"YWI=\\"]":1}'),
    (
        "map {5::union(n integer, s varchar): 1, '5'::varchar::union(n integer, s varchar): 2}",
        "MAP<VARCHAR, INTEGER>",
        '{"5":1,"5":2}',
    ),
    ("['{\"a\":  1.00}'::json]", "ARRAY<VARCHAR>", '["{\\"a\\":  1.00}"]'),
    ("[timestamptz '0044-03-15 (BC) 10:00:00.5+00']", "ARRAY<TIMESTAMP_LTZ(6)>", '["0044-03-15 (BC) 10:00:00.5Z"]'),
    ("(select sum(i) export_state from range(3) t(i))", "VARCHAR", "3"),
    ("(select avg(i) export_state from range(3) t(i))", "VARCHAR", "{'count': 3, 'value': 3}"),
    ("ST_SetCRS('POINT (1 2)'::geometry, 'EPSG:4326')", "VARCHAR", "POINT (1 2)"),
    ("[ST_SetCRS('POINT (1 2)'::geometry, 'EPSG:4326')]", "ARRAY<VARCHAR>", '["POINT (1 2)"]'),
]


class Kept:
    """A sink that holds the rows."""

    def __init__(self, rows: list[str]) -> None:
        self._rows = rows

    def keep(self, rows: Sequence[str]) -> None:
        self._rows.extend(rows)

    def file(self) -> Path:
        raise AssertionError("no result of these is large")

    def grown(self, size: int) -> None:
        return


def answer(sql: str, options: RunOptions | None = None) -> tuple[list[ColumnInfo], list[list[str | None]], str]:
    engine = DuckdbEngine()
    connection = engine.connect()
    rows: list[str] = []
    try:
        outcome = connection.run(sql, options or RunOptions(), Kept(rows))
    finally:
        connection.close()
        engine.close()
    return outcome.columns or [], [json.loads(row) for row in rows], outcome.message


@pytest.mark.parametrize(("value", "name", "text"), TABLE)
def test_each_type(value: str, name: str, text: str | None) -> None:
    columns, rows, _ = answer(f"select {value} as v")
    assert (columns[0].type, rows) == (name, [[text]])


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
