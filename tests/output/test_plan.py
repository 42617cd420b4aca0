"""Plans that DuckDB draws in boxes become trees of lines."""

from __future__ import annotations

import re

import duckdb
import pytest

from sqlshell.output.writer import Screen, WriterOptions, written
from sqlshell.output.writers.plan import MOST, PlanWriter, operators
from sqlshell.result import Column


def drawn(plan: str, width: int = 60) -> str:
    options = WriterOptions(screen=Screen(width), paint=lambda text, role: f"<{text}>")
    return written(PlanWriter(options), [Column("plan")], [[plan]]).decode()


def explained(sql: str) -> str:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE a AS SELECT range AS i, 'n' || range AS name FROM range(5000)")
        connection.execute("CREATE TABLE b AS SELECT range % 7 AS i, range * 1.5 AS x FROM range(90000)")
        ((_, plan),) = connection.execute(f"EXPLAIN {sql}").fetchall()
    return drawn(plan)


def tree(sql: str) -> list[tuple[int, str]]:
    """The depths and names of the operators of a plan."""
    titles = re.findall(r"^( *)(?:-> )?<([\w ]+?)(?: on .*)?>", explained(sql), re.M)
    return [((len(indent) + 3) // 4, title) for indent, title in titles]


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


def test_columns_have_names_behind_projections_that_are_left_out() -> None:
    shown = explained("SELECT name, count(*), sum(i) FROM a WHERE i > 3 GROUP BY name ORDER BY sum(i)")
    assert "__internal" not in shown and "#" not in shown
    assert re.sub(r"~[\d,]+ rows", "~N rows", shown).split("\n")[:9] == [
        "<Order By>  <~N rows>",
        "  sum(i) ASC",
        " -> <Hash Group By>  <~N rows>",
        "      Groups: name",
        "      Aggregates: count_star(), sum_no_overflow(i)",
        "     -> <Projection>  <~N rows>",
        "          Projections: name, i",
        "         -> <Seq Scan on memory.main.a>  <~N rows>",
        "              Filters: i > 3",
    ]


def test_many_columns_of_many_operators_are_drawn_at_once() -> None:
    source = "(SELECT " + ", ".join(f"i + {column} AS c{column}" for column in range(30)) + " FROM a)"
    for _ in range(5):
        sums = ", ".join(f"c{column} + c{(column + 1) % 30} AS c{column}" for column in range(30))
        source = f"(SELECT {sums} FROM {source} ORDER BY random() LIMIT 500)"
    assert explained(f"SELECT * FROM {source}").count("<Projection>") >= 5


@pytest.mark.parametrize("number", [MOST, MOST + 1, 3000])
def test_only_a_plan_that_can_be_read_is_drawn_as_a_tree(number: int) -> None:
    plan = "\n".join(["╭─ A ─╮\n╰──┬──╯"] * number)
    assert drawn(plan).count("<A>") == (number if number == MOST else 0)


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
│ Table: t                   │
│ Type: Sequential Scan      │
╰────────────────────────────╯"""


def test_fields_of_several_lines_are_joined() -> None:
    assert drawn(BOXES, 44) == (
        "<Filter>  <12 rows 0µs>\n  Expression: (name = 'n5') OR (name =\n    'n7')\n  Projections: a, b\n"
        " -> <Table Scan on t>\n"
    )


@pytest.mark.parametrize("text", ["Seq Scan on t", "", "╭─ Half", "a ╭─ Scan ─╮ in a text with another ╭"])
def test_what_is_no_drawing_is_written_as_it_is(text: str) -> None:
    assert operators(text) == []
    assert drawn(text) == f"{text}\n"
