"""Charts of results: which columns and points are drawn, and what is left out and reported."""

from __future__ import annotations

import asyncio
import datetime
import math
from collections.abc import Sequence
from itertools import pairwise

import pytest

from sqlshell.errors import UsageError
from sqlshell.result import Column, Rows
from sqlshell.shell.charts import charts, drawn_rows
from sqlshell.shell.charts.charts import Chart, bin_label
from sqlshell.shell.charts.drawing import as_text, moment, ticks, time_ticks
from sqlshell.shell.commands.results import _chart_of_rows

CITY, DAY, N, M = Column("city"), Column("day", "DATE"), Column("n", "BIGINT"), Column("m", "DOUBLE")


def of(columns: Sequence[Column], rows: Rows, *words: str) -> Chart:
    return asyncio.run(_chart_of_rows(columns, rows, words))


@pytest.mark.parametrize(
    ("columns", "words", "kind", "x", "y"),
    [
        ([CITY, N], "", "bar", "city", "n"),
        ([N, CITY], "", "bar", "city", "n"),
        ([CITY, N, M], "", "bar", "city", "n, m"),
        ([CITY, N, M], "city m", "bar", "city", "m"),
        ([DAY, CITY, N], "", "line", "day", "n"),
        ([N, M], "", "line", "n", "m"),
        ([N], "", "hist", "n", "rows"),
        ([CITY, N, M], "m", "hist", "m", "rows"),
        ([CITY, N], "scatter n n", "scatter", "n", "n"),
        ([CITY, N], "BAR", None, "", ""),
    ],
)
def test_the_columns_that_fit(columns: list[Column], words: str, kind: str | None, x: str, y: str) -> None:
    row: list[str | None] = [{"DATE": "2024-01-02", "VARCHAR": "a"}.get(column.type, "3") for column in columns]
    if kind is None:
        with pytest.raises(UsageError, match='no column "BAR"'):
            of(columns, [row], *words.split())
        return
    made = of(columns, [row, row], *words.split())
    assert (made.kind, made.x, made.y) == (kind, x, y)


@pytest.mark.parametrize(
    ("columns", "rows", "words", "said"),
    [
        ([CITY, N], [], "", "the result has no rows to draw"),
        ([CITY], [["a"]], "", "a chart requires a numeric column"),
        ([CITY], [["a"]], "hist", "a histogram requires a numeric column"),
        ([CITY, N], [["a", None], ["b", "inf"]], "hist n", "n contains no numbers to count"),
        ([CITY, N], [["a", None]], "scatter city n", "city and n contain no points to draw"),
        ([CITY, N], [["a", "1"]], "heat", "a heat map requires two columns for its axes and a numeric column"),
        ([CITY, DAY], [["a", "2024-01-01"]], "heat", "a heat map requires two columns for its axes"),
    ],
)
def test_what_cannot_be_drawn(columns: list[Column], rows: Rows, words: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        of(columns, rows, *words.split())
    assert raised.value.message.startswith(said)
    if "rows" not in said and "points" not in said and "numbers" not in said:
        assert raised.value.hint.startswith("use \\chart ")


def test_a_heat_map_sums_what_meets() -> None:
    rows: Rows = [["a", "x", "1"], ["b", "x", "2"], ["a", "y", None], ["a", "x", "3.5"]]
    made = of([CITY, Column("kind"), N], rows)
    assert (made.kind, made.labels, made.rows) == ("heat", ["a", "b"], ["x", "y"])
    assert made.series[0].ys == [4.5, 2.0]
    assert all(map(math.isnan, made.series[1].ys))
    named = of([N, CITY, Column("kind")], [["1", "a", "x"]], "heat", "kind")
    assert (named.x, named.labels, named.rows) == ("kind", ["x"], ["a"])
    chosen = of([N, M, CITY], [["1", "2", "a"]], "heat", "m", "city")
    assert (chosen.labels, chosen.rows, chosen.series[0].ys) == (["2"], ["a"], [1.0])
    many: Rows = [[str(number), "x", "1"] for number in range(charts.MOST_CELLS + 1)]
    cut = of([CITY, Column("kind"), N], many)
    assert (len(cut.labels), cut.notes) == (
        charts.MOST_CELLS,
        [f"only the first {charts.MOST_CELLS} values of each axis are drawn"],
    )
    assert of([CITY, Column("kind"), N], many[:-1]).notes == []


def test_what_is_left_out_is_said() -> None:
    many: Rows = [[str(number), "1"] for number in range(charts.MOST_BARS + 2)]
    made = of([CITY, N], many)
    assert len(made.labels) == len(made.series[0].ys) == charts.MOST_BARS
    assert made.notes == ["2 more rows are not drawn; use ORDER BY and LIMIT to choose the rows"]
    one = of([CITY, N], many[:-1]).notes
    assert one == ["1 more row is not drawn; use ORDER BY and LIMIT to choose the rows"]
    assert of([CITY, N], many[: charts.MOST_BARS]).notes == []
    points = of([N, M], [["1", "2"], [None, "3"], ["4", "nan"], ["5", "1e400"]])
    assert (points.series[0].xs, points.series[0].ys) == ([1.0], [2.0])
    assert points.notes == ["3 values are not drawn: they are NULL, not numeric or too large"]
    counted = of([N], [["1"], [None], ["x"]])
    assert counted.notes == ["2 values are not counted: they are NULL, not numeric or too large"]
    assert of([N], [["1"]]).notes == []


@pytest.mark.parametrize("ago", [0, 4])
def test_a_period_that_has_not_ended_is_told(ago: int) -> None:
    today = datetime.datetime.now(datetime.UTC).date()
    rows: Rows = [[str(today - datetime.timedelta(ago + 7 * week)), "1"] for week in range(4)]
    told = ["the last period has not ended yet"]
    assert of([DAY, N], rows).notes == told
    assert of([DAY, N], rows[1:]).notes == of([DAY, N], rows[:2]).notes == of([DAY, N], rows, "bar").notes == []
    assert of([DAY, N], [*rows, [str(today - datetime.timedelta(3)), "1"]]).notes == []


def test_a_long_line_keeps_its_lowest_and_highest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawn_rows, "MOST_POINTS", 10)
    rows: Rows = [[str(number), "100" if number == 37 else "-100" if number == 71 else "0"] for number in range(100)]
    made = of([N, M], rows).series[0]
    assert len(made.xs) <= 10
    assert list(made.xs) == sorted(made.xs)
    assert (made.ys[list(made.xs).index(37.0)], made.ys[list(made.xs).index(71.0)]) == (100.0, -100.0)
    assert len(of([N, M], rows[:10]).series[0].xs) == 10
    assert of([N, M], [["2", "1"], ["1", "2"]]).series[0].xs == [1.0, 2.0]
    assert of([N, M], [["2", "1"], ["1", "2"]], "scatter").series[0].xs == [2.0, 1.0]


def test_moments_are_places_on_an_axis() -> None:
    rows: Rows = [["2024-01-02", "1"], ["2024-01-01", "2"], [None, "3"], ["soon", "4"]]
    made = of([DAY, N], rows)
    assert (made.series[0].xs, made.moments) == ([1_704_067_200.0, 1_704_153_600.0], True)
    for text, seconds in (
        ("1970-01-01T00:00:10Z", 10.0),
        ("1970-01-01 01:00:00+01:00", 0.0),
        ("1970-01-01 00:00:00.123456789", 0.123456),
        ("1970-01-01T00:00:00.123456-05:00", 18_000.123456),
        ("1970-01-01T00:00:00.5-05:00", 18_000.5),
        ("1970-01-01 00:00:00.5+05:00", -17_999.5),
        ("1970-01-01 00:00:00.5Z", 0.5),
    ):
        stamps = of([Column("t", "TIMESTAMP"), N], [[text, "1"]])
        assert stamps.series[0].xs == [seconds], text
    assert of([Column("t", "TIME"), N], [["01:00:00", "1"]]).series[0].xs == [3600.0]


@pytest.mark.parametrize(
    ("values", "edges", "counts"),
    [
        ([1.0, 1.0, 3.0], [0.5, 1.5, 2.5, 3.5], [2, 0, 1]),
        ([0.5], [0.5, 1.5], [1]),
        ([0.0, 0.5, 1.0, 2.0], [0.0, 1.0, 2.0], [2, 2]),
        ([0.0, 1000.0], [0.0, 500.0, 1000.0], [1, 1]),
        ([1e16, 1e16 + 2], [1e16, 1e16 + 2], [2]),
        ([1e16, 1e16], [1e16, 1e16 + 2], [2]),
        ([2.0**53 - 2, 2.0**53 + 6], [2.0**53 - 2, 2.0**53 + 2, 2.0**53 + 6], [1, 1]),
        ([-1e300, 1e300], [-1e300, 0.0, 1e300], [1, 1]),
    ],
)
def test_bins(values: list[float], edges: list[float], counts: list[int]) -> None:
    made = of([M], [[repr(value)] for value in values])
    assert made.series[0].ys == counts
    assert made.series[0].xs == pytest.approx([(low + high) / 2 for low, high in pairwise(edges)])


def test_the_labels_of_bins() -> None:
    assert [bin_label(low, high) for low, high in pairwise([0.5, 1.5, 2.5])] == ["1", "2"]
    assert (bin_label(0, 1), bin_label(0.5, 2.5)) == ("0 – 1", "0.5 – 2.5")


@pytest.mark.parametrize(
    ("seconds", "span", "said"),
    [
        (0, 3 * 86_400, "1970-01-01"),
        (0, 3 * 86_400 - 1, "01-01 00:00"),
        (0, 86_400, "01-01 00:00"),
        (1, 86_399, "00:00:01"),
        (0, 0, "1970-01-01"),
        (1, 0, "1970-01-01 00:00:01"),
        (-61_000_000_000, 1e10, "0036-12-26"),
        (1e20, 1, "1e+20"),
    ],
)
def test_ticks_of_times(seconds: float, span: float, said: str) -> None:
    assert moment(seconds, span) == said


def test_a_heat_map_is_drawn_in_shades() -> None:
    rows: Rows = [["a", "x", "0"], ["b", "x", "1"], ["a", "yy", "2"], ["b", "z", "4"]]
    made = of([CITY, Column("kind"), N], rows)
    lines = as_text(made, 40, 20, colors=False).splitlines()
    assert [line.split("│") for line in lines[:3]] == [
        [" x ", "░" * 8 + "▒" * 8, ""],
        ["yy ", "▓" * 8 + " " * 8, ""],
        [" z ", " " * 8 + "█" * 8, ""],
    ]
    assert lines[3] == "    a       b"
    assert lines[4].endswith("░ 0  ▒▓  █ 4")
    with pytest.raises(UsageError, match="no numbers to draw"):
        as_text(of([CITY, Column("kind"), N], [["a", "x", None]]), 40, 20, colors=False)


@pytest.mark.parametrize(("columns", "wide"), [(40, 8), (20, 8), (19, 7), (8, 2), (7, 1), (1, 1)])
def test_the_cells_of_a_heat_map_fill_the_width(columns: int, wide: int) -> None:
    rows: Rows = [["a", "x", "0"], ["b", "x", "4"]]
    text = as_text(of([CITY, Column("kind"), N], rows), columns, 20, colors=False)
    assert text.splitlines()[0] == f"x │{'░' * wide}{'█' * wide}│"


def test_a_scatter_of_texts_names_its_places() -> None:
    rows: Rows = [[f"c{number}", str(number)] for number in range(12)]
    made = of([CITY, N], rows, "scatter")
    assert (made.series[0].xs, made.labels[3]) == ([float(number) for number in range(12)], "c3")
    text = as_text(made, 80, 20, colors=False)
    assert [name for name in text.split() if name[0] == "c" and name[1:].isdecimal()] == [
        "c0",
        "c2",
        "c4",
        "c6",
        "c8",
        "c10",
    ]


def test_labels_are_cut() -> None:
    long = "x" * charts.LONGEST_LABEL
    made = of([CITY, N], [[long, "1"], [f"{long}y", "2"], [None, "3"], ["\x1b[1m", "4"]])
    assert made.labels[:3] == [long, f"{long[:-1]}…", "NULL"]
    assert "\x1b" not in made.labels[3]


def test_a_bar_of_a_histogram_stands_in_the_middle_of_its_values() -> None:
    found = of([N], [["1"], ["3"], ["3"], [None], ["2"]])
    (bars,) = found.series
    assert (bars.xs, bars.ys) == ([1.0, 2.0, 3.0], [1.0, 1.0, 2.0])
    assert (found.x, found.labels) == ("n", ["1", "2", "3"])
    assert found.notes == ["1 value is not counted: it is NULL, not numeric or too large"]


@pytest.mark.parametrize(
    ("low", "high", "marks"),
    [
        (0.0, 93_480.0, [0, 20_000, 40_000, 60_000, 80_000, 100_000]),
        (-0.3, 1.1, [-0.5, 0.0, 0.5, 1.0, 1.5]),
        (5.0, 5.0, []),
        (1e16, 1e16 + 2, []),
    ],
)
def test_ticks_are_round(low: float, high: float, marks: list[float]) -> None:
    assert ticks(low, high) == pytest.approx(marks)


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        ("2023-01-01", "2025-12-01", ["2023-01-01", "2024-01-01", "2025-01-01"]),
        ("2024-01-01", "2024-01-09", ["2024-01-02", "2024-01-04", "2024-01-06", "2024-01-08"]),
        ("2024-03-05", "2024-09-05", ["2024-04-01", "2024-07-01"]),
        ("0001-01-01", "9999-01-01", ["2000-01-01", "4000-01-01", "6000-01-01", "8000-01-01"]),
        ("2024-01-01", "2024-01-01", ["2024-01-01"]),
    ],
)
def test_times_have_marks_at_beginnings(low: str, high: str, said: list[str]) -> None:
    first, last = (datetime.datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp() for day in (low, high))
    assert [moment(tick, 1e9) for tick in time_ticks(first, last)] == said


def test_series_of_very_different_sizes_have_panels() -> None:
    rows: Rows = [[str(number), str(number), str(number * 1000)] for number in range(5)]
    text = as_text(of([N, M, Column("k", "BIGINT")], rows, "line"), 60, 20, colors=False)
    assert text.count("┌") == 2
    assert [line.split()[-1] for line in text.splitlines() if line.endswith((" m", " k"))] == ["m", "k"]


def test_at_most_some_series_are_drawn() -> None:
    many = [Column(f"n{number}", "BIGINT") for number in range(charts.MOST_SERIES + 2)]
    rows: Rows = [[str(number + row) for number in range(len(many))] for row in range(3)]
    assert [item.name for item in of(many, rows).series] == [f"n{at}" for at in range(1, charts.MOST_SERIES + 1)]


def test_what_is_no_number_has_no_bar_and_is_told() -> None:
    made = of([CITY, M], [["a", "2"], ["b", None], ["c", "inf"], ["d", "2e300"]], "bar")
    assert made.notes == ["3 values are not drawn: they are NULL, not numeric or too large"]
    lines = as_text(made, 40, 20, colors=False).splitlines()
    assert lines[2:] == ["   b", "   c", "   d"]
