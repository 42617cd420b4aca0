"""Plans that DuckDB draws in boxes become trees of lines."""

from __future__ import annotations

import duckdb
import pytest

from sqlshell.output.writer import Screen, WriterOptions, written
from sqlshell.output.writers.plan import Operator, PlanWriter, operators
from sqlshell.result import Column


def tree(sql: str) -> list[tuple[int, str]]:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE a AS SELECT range AS i, 'n' || range AS name FROM range(5000)")
        connection.execute("CREATE TABLE b AS SELECT range % 7 AS i, range * 1.5 AS x FROM range(90000)")
        ((_, plan),) = connection.execute(f"EXPLAIN {sql}").fetchall()
    found = operators(plan)
    assert sum(part in {"Projection"} for part in plan.split()) >= sum(one.title == "Projection" for one in found)
    assert "__internal" not in repr(found)
    return [(one.depth, one.title) for one in found]


def test_operators_stand_below_those_that_they_feed() -> None:
    assert tree("SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT i FROM a WHERE i > 3 UNION ALL SELECT 4") == [
        (0, "Union"),
        *[(1, "Projection"), (2, "Dummy Scan")] * 2,
        (1, "Seq Scan"),
        *[(1, "Projection"), (2, "Dummy Scan")],
    ]
    assert tree("SELECT 1 FROM a JOIN (b JOIN a c USING (i)) USING (i) WHERE a.name LIKE 'n%' AND c.name > ''") == [
        (0, "Projection"),
        (1, "Hash Join"),
        (2, "Seq Scan"),
        (2, "Hash Join"),
        *[(3, "Seq Scan"), (3, "Seq Scan")],
    ]


def test_projections_that_prepare_values_for_others_are_left_out() -> None:
    assert tree("SELECT name, count(*) FROM a GROUP BY name ORDER BY name") == [
        (0, "Order By"),
        (1, "Hash Group By"),
        (2, "Projection"),
        (3, "Seq Scan"),
    ]


BOXES = """\
╭─ Filter ───────────────────╮
│ Expression:                │
│ (name = 'n5') OR (name =   │
│ 'n7')                      │
│ Projections: a,            │
│              b             │
│ 12 rows                0µs │
╰─────────────┒┎─────────────╯
╭─ Table Scan ┚┖─────────────╮
╰────────────────────────────╯"""


def test_fields_of_several_lines_are_joined() -> None:
    details = ["Expression: (name = 'n5') OR (name = 'n7')", "Projections: a, b"]
    assert operators(BOXES) == [Operator("Filter", details, "12 rows 0µs", 0), Operator("Table Scan", [], "", 1)]
    options = WriterOptions(screen=Screen(44), paint=lambda text, role: f"<{role}>{text}</>")
    shown = written(PlanWriter(options), [Column("plan")], [[BOXES]]).decode()
    assert shown == (
        "<header>Filter</>  <dim>12 rows 0µs</>  Expression: (name =\n"
        "    'n5') OR (name = 'n7') · Projections: a,\n    b\n"
        "  <header>Table Scan</>\n"
    )


@pytest.mark.parametrize("text", ["Seq Scan on t", "", "╭─ Half", "a ╭─ Scan ─╮ in a text with another ╭"])
def test_what_is_no_drawing_is_written_as_it_is(text: str) -> None:
    assert operators(text) == []
    assert written(PlanWriter(WriterOptions(screen=Screen(44))), [Column("plan")], [[text]]).decode() == f"{text}\n"
