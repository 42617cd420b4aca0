"""Names of types in a header: the exact one where there is room, and something sensible where there is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqlshell.output.text.cells import cells
from sqlshell.output.text.type_names import (
    LONGEST,
    fitting_type,
    line_widths,
    short_type,
    simple_type,
    type_lines,
    whole_types,
)
from sqlshell.output.writer import Screen, WriterOptions
from sqlshell.output.writers.table import TableWriter
from sqlshell.result import Column
from tests.output.test_table import STEERING
from tests.output.writing import drawn

NESTED = 'STRUCT<Street VARCHAR NOT NULL, geo STRUCT<lat DOUBLE, "a b" ARRAY<ROW<x INTEGER, y INTEGER>>>> NOT NULL'


@pytest.mark.parametrize(
    ("type_name", "width", "name"),
    [
        ("DECIMAL(10,2) NOT NULL", 13, "decimal(10,2)"),
        ("DECIMAL(10,2)", 12, "decimal"),
        ("TIMESTAMP(6)", 11, "timestamp"),
        ("TIMESTAMP(6)", 5, "ts"),
        ("MAP<VARCHAR, DECIMAL(9,2)>", 80, "map<varchar, decimal(9,2)>"),
        ("ARRAY<INTEGER NOT NULL>", 80, "array<integer>"),
        ("ROW<INTEGER, VARCHAR>", 16, "row<integer, …>"),
        ("timestamp(3) with time zone", 27, "timestamp(3) with time zone"),
        ("timestamp(3) with time zone", 15, "timestamptz(3)"),
        ("timestamp without time zone", 8, "ts"),
        ("double precision", 15, "float8"),
        ("character varying(20)[]", 13, "varchar(20)[]"),
        ("integer[]", 8, "int[]"),
        ('"Odd Type"', 80, '"Odd Type"'),
        (NESTED, 120, 'struct<Street varchar, geo struct<lat double, "a b" array<row<x integer, y integer>>>>'),
        (NESTED, 70, 'struct<Street varchar, geo struct<lat double, "a b" array<row<…>>>>'),
        (NESTED, 62, 'struct<Street varchar, geo struct<lat double, "a b" array<…>>>'),
        (NESTED, 40, "struct<Street varchar, geo struct<…>>"),
        (NESTED, 30, "struct<Street varchar, …>"),
        (NESTED, 20, "struct<…>"),
        (NESTED, 8, "struct"),
        (f"STRUCT<{'a INTEGER, ' * LONGEST}b INTEGER>", 80, "struct"),
        ("", 5, ""),
    ],
)
def test_the_most_exact_name_that_fits(type_name: str, width: int, name: str) -> None:
    assert fitting_type(type_name, width, "…") == name


@pytest.mark.parametrize(
    ("type_name", "width", "lines"),
    [
        ("ARRAY<VARCHAR>", 14, ["array<varchar>"]),
        ("MAP<VARCHAR, BIGINT>", 20, ["map<varchar, bigint>"]),
        ("MAP<VARCHAR, BIGINT>", 19, ["map<varchar,", "  bigint>"]),
        ("MAP<VARCHAR, DECIMAL(9, 2)>", 17, ["map<varchar,", "  decimal(9, 2)>"]),
        (NESTED, 48, ["struct<Street varchar, geo struct<lat double,", '  "a b" array<row<x integer, y integer>>>>']),
        (NESTED, 30, ["struct<Street varchar, …>"]),
    ],
)
def test_a_nested_type_over_lines(type_name: str, width: int, lines: list[str]) -> None:
    assert type_lines(type_name, width, "…") == lines
    assert len(lines) == 1 or max(map(cells, lines)) >= line_widths(type_name, 100)[len(lines) - 1]


@given(st.text('AB<>(),"` \x1b\n1漢STRUCTROWARRAYMAP', max_size=60), st.integers(0, 40))
def test_any_text_of_a_service(type_name: str, width: int) -> None:
    name = fitting_type(type_name, width, "...")
    assert cells(name) <= width or name == short_type(type_name)
    lines = type_lines(type_name, width, "...")
    assert lines == [name] or all(cells(line) <= width for line in lines)
    assert not STEERING & set("".join([name, *lines, *whole_types(type_name, "...")]))


def test_columns_are_widened_while_the_table_fits() -> None:
    columns = [Column("a", "DECIMAL(10,2)"), Column("b", "INTEGER"), Column("c", "TIMESTAMP(3)")]
    heads = {
        42: "│ decimal(10,2) │ integer │ timestamp(3) │",
        41: "│ decimal(10,2) │ integer │ timestamp │",
        38: "│ decimal(10,2) │ integer │ ts │",
        31: "│ decimal │ integer │ ts │",
        25: "│ decimal │ int │ ts │",
        10: "│ decimal │ int │ ts │",
    }
    for width, head in heads.items():
        options = WriterOptions(screen=Screen(width))
        assert drawn(TableWriter(options), columns, []).split("\n")[2] == head


@pytest.mark.parametrize(
    ("type_name", "shown"),
    [
        ("MAP(VARCHAR, INTEGER)", "map(varchar, integer)"),
        (
            'STRUCT(A INTEGER, "B c" VARCHAR[], D STRUCT(X DECIMAL(8,2)))[]',
            'struct(A integer, "B c" varchar[], D struct(X decimal(8,2)))[]',
        ),
        ("UNION(Num INTEGER, Str VARCHAR)", "union(Num integer, Str varchar)"),
        ("ENUM('X', 'y''(Z')", "enum('X', 'y''(Z')"),
        ("STRUCT(", "struct("),
        ("Weird Type", "Weird Type"),
    ],
)
def test_types_of_duckdb_are_small_but_for_their_names(type_name: str, shown: str) -> None:
    assert simple_type(type_name) == shown
