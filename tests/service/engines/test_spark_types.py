"""Values of Spark's types as those of the interface, from small results and from files."""

from __future__ import annotations

import pytest

from tests.cases import rows
from tests.service.spark import Session, needs_spark

pytestmark = needs_spark

MANY = 60_000
"""Rows of a result that is written to a file."""

VALUES: list[tuple[str, str | None, str | None, str | None]] = [
    *((str(sql), kind, own, text) for sql, kind, own, text in rows("spark", "values")),
    (f"cast('{'9' * 38}' as decimal(38,0))", "DECIMAL(38,0)", None, "9" * 38),
    (f"cast('-{'9' * 28}.{'9' * 10}' as decimal(38,10))", "DECIMAL(38,10)", None, f"-{'9' * 28}.{'9' * 10}"),
    ("''", "VARCHAR", None, ""),
    ("'ä \\\\ \" \\n'", "VARCHAR", None, 'ä \\ " \n'),
    ("cast('' as binary)", "VARBINARY", None, ""),
    (
        f"array(named_struct('d', cast('{'9' * 38}' as decimal(38,0)), 'n', cast(null as string)))",
        "ARRAY<STRUCT<d DECIMAL(38,0), n VARCHAR>>",
        None,
        f'[{{"d":"{"9" * 38}","n":null}}]',
    ),
]


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
