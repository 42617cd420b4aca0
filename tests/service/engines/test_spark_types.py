"""Values of Spark's types as those of the interface, from small results and from files."""

from __future__ import annotations

import pytest

from tests.service.spark import Session, needs_spark

pytestmark = needs_spark

MANY = 60_000
"""Rows of a result that is written to a file."""

VALUES = (
    ("true", "BOOLEAN", None, "true"),
    ("cast(-128 as tinyint)", "TINYINT", None, "-128"),
    ("cast(32767 as smallint)", "SMALLINT", None, "32767"),
    ("cast(-2147483648 as int)", "INTEGER", None, "-2147483648"),
    ("9223372036854775807L", "BIGINT", None, "9223372036854775807"),
    ("cast(0.1 as float)", "FLOAT", None, "0.1"),
    ("0.1d", "DOUBLE", None, "0.1"),
    ("double('NaN')", "DOUBLE", None, "NaN"),
    ("double('Infinity')", "DOUBLE", None, "Infinity"),
    ("float('-Infinity')", "FLOAT", None, "-Infinity"),
    ("cast('1.50' as decimal(10,2))", "DECIMAL(10,2)", None, "1.50"),
    (f"cast('{'9' * 38}' as decimal(38,0))", "DECIMAL(38,0)", None, "9" * 38),
    (f"cast('-{'9' * 28}.{'9' * 10}' as decimal(38,10))", "DECIMAL(38,10)", None, f"-{'9' * 28}.{'9' * 10}"),
    ("'x'", "VARCHAR", None, "x"),
    ("''", "VARCHAR", None, ""),
    ("'ä \\\\ \" \\n'", "VARCHAR", None, 'ä \\ " \n'),
    ("X'00FF'", "VARBINARY", None, "AP8="),
    ("cast('' as binary)", "VARBINARY", None, ""),
    ("date'0001-01-01'", "DATE", None, "0001-01-01"),
    ("date'9999-12-31'", "DATE", None, "9999-12-31"),
    ("timestamp_ntz'0001-01-01 00:00:00'", "TIMESTAMP(6)", None, "0001-01-01 00:00:00"),
    ("timestamp_ntz'9999-12-31 23:59:59.999999'", "TIMESTAMP(6)", None, "9999-12-31 23:59:59.999999"),
    ("timestamp'0001-01-01 00:00:00'", "TIMESTAMP_LTZ(6)", None, "0001-01-01 00:00:00Z"),
    ("timestamp'9999-12-31 23:59:59.999999'", "TIMESTAMP_LTZ(6)", None, "9999-12-31 23:59:59.999999Z"),
    ("interval '1 02:03:04.5' day to second", "VARCHAR", "INTERVAL DAY TO SECOND", "26:03:04.5"),
    ("-interval '5' hour", "VARCHAR", "INTERVAL DAY TO SECOND", "-05:00:00"),
    ("interval '1-2' year to month", "VARCHAR", "INTERVAL YEAR TO MONTH", "1 year 2 months"),
    ("make_interval(1,2,3,4,5,6,7.5)", "VARCHAR", "INTERVAL", "1 year 2 months 25 days 05:06:07.5"),
    ("null", "VARCHAR", None, None),
    ('parse_json(\'{"a":[1,null,"x"]}\')', "VARCHAR", "VARIANT", "{'a': [1, NULL, x]}"),
    ("array(1,null,3)", "ARRAY<INTEGER>", None, "[1,null,3]"),
    ("array('a',null,'')", "ARRAY<VARCHAR>", None, '["a",null,""]'),
    ("array(cast(0.1 as float), float('NaN'))", "ARRAY<FLOAT>", None, '[0.1,"NaN"]'),
    ("array(X'00FF')", "ARRAY<VARBINARY>", None, '["AP8="]'),
    ("map('a',1,'b',null)", "MAP<VARCHAR, INTEGER>", None, '{"a":1,"b":null}'),
    ("map(1,timestamp'2024-01-01 00:00:00')", "MAP<INTEGER, TIMESTAMP_LTZ(6)>", None, '{"1":"2024-01-01 00:00:00Z"}'),
    ("named_struct('x',1,'y z','a')", 'STRUCT<x INTEGER, "y z" VARCHAR>', None, '{"x":1,"y z":"a"}'),
    (
        f"array(named_struct('d', cast('{'9' * 38}' as decimal(38,0)), 'n', cast(null as string)))",
        "ARRAY<STRUCT<d DECIMAL(38,0), n VARCHAR>>",
        None,
        f'[{{"d":"{"9" * 38}","n":null}}]',
    ),
    (
        "array(interval '1' hour)",
        "ARRAY<VARCHAR>",
        "ARRAY<INTERVAL DAY TO SECOND>",
        '["01:00:00"]',
    ),
)


@pytest.mark.parametrize(("sql", "type_name", "own", "value"), VALUES, ids=[item[0][:40] for item in VALUES])
def test_a_value_keeps_its_type_and_text(
    session: Session, sql: str, type_name: str, own: str | None, value: str | None
) -> None:
    outcome = session.run(f"select {sql} as v")
    assert outcome.columns is not None
    [column] = outcome.columns
    assert (column.name, column.type, column.engine_type) == ("v", type_name, own)
    assert outcome.rows == [[value]]


def test_a_file_has_the_same_values(session: Session) -> None:
    values = ", ".join(sql for sql, *_ in VALUES)
    outcome = session.run(f"select id, {values} from range({MANY}) order by id")
    assert outcome.form == "engine"
    assert [column.type for column in outcome.columns or ()][1:] == [item[1] for item in VALUES]
    assert outcome.rows == [[str(number), *(item[3] for item in VALUES)] for number in range(MANY)]


def test_instants_are_noted_where_they_are(session: Session) -> None:
    outcome = session.run(
        "select 1, timestamp'2024-01-01 00:00:00', array(named_struct('a',1,'t',current_timestamp()))"
    )
    assert outcome.zoned == ((1, True), (2, {"each": {"parts": [False, True]}}))


def test_columns_may_have_the_same_name_or_none(session: Session) -> None:
    outcome = session.run("select 1 as a, 2 as a, 3 as `b c`")
    assert [column.name for column in outcome.columns or ()] == ["a", "a", "b c"]
    assert outcome.rows == [["1", "2", "3"]]


def test_a_result_without_rows_has_columns(session: Session) -> None:
    outcome = session.run("select id, cast(id as string) as s from range(3) where id > 5")
    assert [(column.name, column.type) for column in outcome.columns or ()] == [("id", "BIGINT"), ("s", "VARCHAR")]
    assert outcome.rows == []


def test_columns_tell_whether_they_can_be_null(session: Session) -> None:
    outcome = session.run("select * from (values (1, 2), (3, null)) t(a, b)")
    assert [column.nullable for column in outcome.columns or ()] == [False, True]
