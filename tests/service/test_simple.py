"""Rows that Python renders equal those that DuckDB renders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Context, Decimal

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlshell.service.engines.duckdb import rows
from sqlshell.service.engines.duckdb.connection import DuckdbConnection
from sqlshell.service.engines.engine import Outcome, RunOptions
from sqlshell.service.failure import Failure
from sqlshell.service.results.results import Discard
from sqlshell.sql.identifiers import literal
from tests.cases import lines

CONNECTION = DuckdbConnection(duckdb.connect())


class Kept(Discard):
    def __init__(self) -> None:
        self.rows: list[list[str | None]] = []

    def keep(self, rows: Sequence[str]) -> None:
        self.rows += [json.loads(row) for row in rows]

    def file(self) -> None:
        raise AssertionError("a small result needs no file")


def ran(sql: str, *, in_python: bool) -> tuple[Outcome, list[list[str | None]]]:
    """What a statement gives; the other way is DuckDB's own rendering."""
    kept = Kept()
    with pytest.MonkeyPatch.context() as patch:
        if not in_python:
            patch.setattr(rows, "writers", lambda kinds: None)
        return CONNECTION.run(sql, RunOptions(), kept), kept.rows


EXACT = Context(prec=60)
integers = st.sampled_from(
    [("TINYINT", 7), ("SMALLINT", 15), ("INTEGER", 31), ("BIGINT", 63), ("HUGEINT", 127)]
).flatmap(lambda kind: st.integers(-(2 ** kind[1]), 2 ** kind[1] - 1).map(lambda value: f"({value})::{kind[0]}"))
naturals = st.sampled_from([("UTINYINT", 8), ("UBIGINT", 64), ("UHUGEINT", 128)]).flatmap(
    lambda kind: st.integers(0, 2 ** kind[1] - 1).map(lambda value: f"{value}::{kind[0]}")
)
sizes = st.integers(1, 38).flatmap(lambda width: st.tuples(st.just(width), st.sampled_from([0, width // 2, width])))
decimals = sizes.flatmap(
    lambda size: st.integers(-(10 ** size[0]) + 1, 10 ** size[0] - 1).map(
        lambda digits: f"'{Decimal(digits).scaleb(-size[1], EXACT):f}'::DECIMAL({size[0]},{size[1]})"
    )
)
constants = st.sampled_from([".5", "-.5", "0.5", "-0.25", "00.10", ".0", "-.000", "1.50", "100.0"])
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")).map(literal)
values = st.one_of(
    integers,
    naturals,
    decimals,
    constants,
    texts,
    st.sampled_from(["NULL", "true", "false", "NULL::INTEGER", "'[1]'::JSON"]),
)


@pytest.mark.slow("many generated cases")
@settings(max_examples=60, deadline=None)
@given(st.lists(values, min_size=1, max_size=5))
def test_python_writes_what_duckdb_renders(items: list[str]) -> None:
    sql = "select " + ", ".join(items)
    assert ran(sql, in_python=True) == ran(sql, in_python=False)


@pytest.mark.parametrize(
    "sql",
    lines("simple", "both"),
)
def test_both_ways_give_the_same_columns_and_rows(sql: str) -> None:
    assert ran(sql, in_python=True) == ran(sql, in_python=False)


@pytest.mark.parametrize(
    ("value", "text"),
    [("0.5::decimal(3,3)", ".500"), ("-0.5::decimal(3,3)", "-.500"), (".0", ".0"), ("-.5", "-.5"), ("0.5", "0.5")],
)
def test_a_decimal_without_digits_before_its_point_is_written_as_duckdb_writes_it(value: str, text: str) -> None:
    several = f"select {value} from range(2)"
    stored = f"select * from (values ({value}), ({value}))"
    beside = f"select {value}, 1.5::double"
    assert {row[0] for sql in (f"select {value}", several, stored, beside) for row in ran(sql, in_python=True)[1]} == {
        text
    }
    assert ran(f"select ({value})::varchar", in_python=True)[1] == [[text]]


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_rows_of_constants_are_limited(limit: int) -> None:
    kept = Kept()
    sql = "select 1 as a union all select 2 union all select 3"
    outcome = CONNECTION.run(sql, RunOptions(row_limit=limit), kept)
    assert ([column.name for column in outcome.columns or ()], len(kept.rows)) == (["a"], limit)
    assert outcome.sql_state == ("01R01" if limit else "00000")


def test_a_query_is_described_without_being_run() -> None:
    with duckdb.connect() as database:
        made = DuckdbConnection(database)
        kept = Kept()
        for sql in ("create sequence s", "create macro n() as nextval('s')", "create view v as select nextval('s')"):
            made.run(sql, RunOptions(), kept)
        for sql in ("select nextval('s')", "select n(), 1.5::double", "select n ()", "from v", "select * from v"):
            made.run(sql, RunOptions(), kept)
        assert [row[0] for row in kept.rows] == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize("sql", ["select 1; select 2", "select 1;\n;drop table t;", "select 1;; select 2 ;"])
def test_one_statement_is_one(sql: str) -> None:
    with pytest.raises(Failure, match="expected one statement, found 2"):
        ran(sql, in_python=True)


@pytest.mark.parametrize("sql", ["select 1;", "select 1 ; ;\n", "select ';' as a"])
def test_semicolons_that_separate_nothing(sql: str) -> None:
    assert len(ran(sql, in_python=True)[1]) == 1
