"""The whole SVG picture of small charts of each kind."""

from __future__ import annotations

import math

import pytest

from sqlshell.shell.charts.charts import Chart, Series
from sqlshell.shell.charts.picture import svg

EMPTY = math.nan
BARS = Chart("bar", "city", [Series("n", [0, 1], [2.0, -1.0]), Series("<m>", [0, 1], [0.5, 1.25])], ["Paris", "a&b"])
NO_BARS = Chart("bar", "city", [Series("n", [0], [0.0])], ["x" * 40])
LINE = Chart("line", "day", [Series("n", [0.0, 345600.0], [1.0, 3.0]), Series("m", [86400.0], [2.0])], moments=True)
TEXTS = Chart("scatter", "city", [Series("n", [0.0, 1.0, 2.0], [-1.0, 5.0, 1.0])], ["a", "b", "c"])
ONE_POINT = Chart("scatter", "x", [Series("y", [7.0], [1234567.0])])
HEAT = Chart(
    "heat",
    "x",
    [Series("up", [0, 1], [1.0, EMPTY]), Series("down", [0, 1], [2.0, 4.0])],
    ["a", "b"],
    rows=["up", "down"],
)
EQUAL_HEAT = Chart(
    "heat", "x", [Series("r" * 40, range(10), [5.0] * 10)], [f"c{at}" for at in range(10)], rows=["r" * 40]
)
NO_HEAT = Chart("heat", "x", [Series("r", [0], [EMPTY])], ["a"], rows=["r"])


@pytest.mark.parametrize(
    ("drawn", "expected"),
    [
        pytest.param(
            BARS,
            """\
<line x1="55.0" y1="30.0" x2="55.0" y2="400.0" stroke="#ddd"/>
<text x="55.0" y="416.0" text-anchor="middle">-1</text>
<line x1="236.2" y1="30.0" x2="236.2" y2="400.0" stroke="#ddd"/>
<text x="236.2" y="416.0" text-anchor="middle">-0.25</text>
<line x1="417.5" y1="30.0" x2="417.5" y2="400.0" stroke="#ddd"/>
<text x="417.5" y="416.0" text-anchor="middle">0.5</text>
<line x1="598.8" y1="30.0" x2="598.8" y2="400.0" stroke="#ddd"/>
<text x="598.8" y="416.0" text-anchor="middle">1.25</text>
<line x1="780.0" y1="30.0" x2="780.0" y2="400.0" stroke="#ddd"/>
<text x="780.0" y="416.0" text-anchor="middle">2</text>
<text x="49.0" y="126.5" text-anchor="end">Paris</text>
<rect x="296.7" y="48.5" width="483.3" height="74.0" fill="#4477aa"/>
<rect x="296.7" y="122.5" width="120.8" height="74.0" fill="#ee6677"/>
<text x="49.0" y="311.5" text-anchor="end">a&amp;b</text>
<rect x="55.0" y="233.5" width="241.7" height="74.0" fill="#4477aa"/>
<rect x="296.7" y="307.5" width="302.1" height="74.0" fill="#ee6677"/>
<text x="417.5" y="440.0" text-anchor="middle">n, &lt;m&gt;</text>
""",
            id="bars",
        ),
        pytest.param(
            NO_BARS,
            """\
<line x1="260.0" y1="30.0" x2="260.0" y2="400.0" stroke="#ddd"/>
<text x="260.0" y="416.0" text-anchor="middle">0</text>
<line x1="260.0" y1="30.0" x2="260.0" y2="400.0" stroke="#ddd"/>
<text x="260.0" y="416.0" text-anchor="middle">0</text>
<line x1="260.0" y1="30.0" x2="260.0" y2="400.0" stroke="#ddd"/>
<text x="260.0" y="416.0" text-anchor="middle">0</text>
<line x1="260.0" y1="30.0" x2="260.0" y2="400.0" stroke="#ddd"/>
<text x="260.0" y="416.0" text-anchor="middle">0</text>
<line x1="260.0" y1="30.0" x2="260.0" y2="400.0" stroke="#ddd"/>
<text x="260.0" y="416.0" text-anchor="middle">0</text>
<text x="254.0" y="219.0" text-anchor="end">xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx</text>
<rect x="260.0" y="67.0" width="0.0" height="296.0" fill="#4477aa"/>
<text x="520.0" y="440.0" text-anchor="middle">n</text>
""",
            id="no bars",
        ),
        pytest.param(
            LINE,
            """\
<line x1="90.0" y1="400.0" x2="780.0" y2="400.0" stroke="#ddd"/>
<text x="84.0" y="404.0" text-anchor="end">1</text>
<line x1="90.0" y1="307.5" x2="780.0" y2="307.5" stroke="#ddd"/>
<text x="84.0" y="311.5" text-anchor="end">1.5</text>
<line x1="90.0" y1="215.0" x2="780.0" y2="215.0" stroke="#ddd"/>
<text x="84.0" y="219.0" text-anchor="end">2</text>
<line x1="90.0" y1="122.5" x2="780.0" y2="122.5" stroke="#ddd"/>
<text x="84.0" y="126.5" text-anchor="end">2.5</text>
<line x1="90.0" y1="30.0" x2="780.0" y2="30.0" stroke="#ddd"/>
<text x="84.0" y="34.0" text-anchor="end">3</text>
<text x="90.0" y="416.0" text-anchor="middle">1970-01-01</text>
<text x="262.5" y="416.0" text-anchor="middle">1970-01-02</text>
<text x="435.0" y="416.0" text-anchor="middle">1970-01-03</text>
<text x="607.5" y="416.0" text-anchor="middle">1970-01-04</text>
<text x="780.0" y="416.0" text-anchor="middle">1970-01-05</text>
<polyline points="90.0,400.0 780.0,30.0" fill="none" stroke="#4477aa" stroke-width="1.5"/>
<rect x="90" y="8" width="10" height="10" fill="#4477aa"/>
<text x="105.0" y="17.0" text-anchor="start">n</text>
<polyline points="262.5,215.0" fill="none" stroke="#ee6677" stroke-width="1.5"/>
<rect x="220" y="8" width="10" height="10" fill="#ee6677"/>
<text x="235.0" y="17.0" text-anchor="start">m</text>
<text x="435.0" y="440.0" text-anchor="middle">day</text>
""",
            id="line",
        ),
        pytest.param(
            TEXTS,
            """\
<line x1="90.0" y1="400.0" x2="780.0" y2="400.0" stroke="#ddd"/>
<text x="84.0" y="404.0" text-anchor="end">-1</text>
<line x1="90.0" y1="307.5" x2="780.0" y2="307.5" stroke="#ddd"/>
<text x="84.0" y="311.5" text-anchor="end">0.5</text>
<line x1="90.0" y1="215.0" x2="780.0" y2="215.0" stroke="#ddd"/>
<text x="84.0" y="219.0" text-anchor="end">2</text>
<line x1="90.0" y1="122.5" x2="780.0" y2="122.5" stroke="#ddd"/>
<text x="84.0" y="126.5" text-anchor="end">3.5</text>
<line x1="90.0" y1="30.0" x2="780.0" y2="30.0" stroke="#ddd"/>
<text x="84.0" y="34.0" text-anchor="end">5</text>
<text x="90.0" y="416.0" text-anchor="middle">a</text>
<text x="435.0" y="416.0" text-anchor="middle">b</text>
<text x="780.0" y="416.0" text-anchor="middle">c</text>
<circle cx="90.0" cy="400.0" r="2.5" fill="#4477aa"/>
<circle cx="435.0" cy="30.0" r="2.5" fill="#4477aa"/>
<circle cx="780.0" cy="276.7" r="2.5" fill="#4477aa"/>
<rect x="90" y="8" width="10" height="10" fill="#4477aa"/>
<text x="105.0" y="17.0" text-anchor="start">n</text>
<text x="435.0" y="440.0" text-anchor="middle">city</text>
""",
            id="texts",
        ),
        pytest.param(
            ONE_POINT,
            """\
<line x1="90.0" y1="400.0" x2="780.0" y2="400.0" stroke="#ddd"/>
<text x="84.0" y="404.0" text-anchor="end">1.23457e+06</text>
<line x1="90.0" y1="400.0" x2="780.0" y2="400.0" stroke="#ddd"/>
<text x="84.0" y="404.0" text-anchor="end">1.23457e+06</text>
<line x1="90.0" y1="400.0" x2="780.0" y2="400.0" stroke="#ddd"/>
<text x="84.0" y="404.0" text-anchor="end">1.23457e+06</text>
<line x1="90.0" y1="400.0" x2="780.0" y2="400.0" stroke="#ddd"/>
<text x="84.0" y="404.0" text-anchor="end">1.23457e+06</text>
<line x1="90.0" y1="400.0" x2="780.0" y2="400.0" stroke="#ddd"/>
<text x="84.0" y="404.0" text-anchor="end">1.23457e+06</text>
<text x="90.0" y="416.0" text-anchor="middle">7</text>
<text x="90.0" y="416.0" text-anchor="middle">7</text>
<text x="90.0" y="416.0" text-anchor="middle">7</text>
<text x="90.0" y="416.0" text-anchor="middle">7</text>
<text x="90.0" y="416.0" text-anchor="middle">7</text>
<circle cx="90.0" cy="400.0" r="2.5" fill="#4477aa"/>
<rect x="90" y="8" width="10" height="10" fill="#4477aa"/>
<text x="105.0" y="17.0" text-anchor="start">y</text>
<text x="435.0" y="440.0" text-anchor="middle">x</text>
""",
            id="one",
        ),
        pytest.param(
            HEAT,
            """\
<text x="42.0" y="126.5" text-anchor="end">up</text>
<rect x="48.0" y="30.0" width="366.0" height="185.0" fill="#225588" fill-opacity="0.08"><title>1</title></rect>
<text x="42.0" y="311.5" text-anchor="end">down</text>
<rect x="48.0" y="215.0" width="366.0" height="185.0" fill="#225588" fill-opacity="0.39"><title>2</title></rect>
<rect x="414.0" y="215.0" width="366.0" height="185.0" fill="#225588" fill-opacity="1.00"><title>4</title></rect>
<text x="231.0" y="416.0" text-anchor="middle">a</text>
<text x="597.0" y="416.0" text-anchor="middle">b</text>
<text x="424.0" y="440.0" text-anchor="middle">x   (1 … 4)</text>
""",
            id="heat",
        ),
        pytest.param(
            EQUAL_HEAT,
            """\
<text x="254.0" y="219.0" text-anchor="end">rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr</text>
<rect x="260.0" y="30.0" width="52.0" height="370.0" fill="#225588" fill-opacity="1.00"><title>5</title></rect>
<rect x="312.0" y="30.0" width="52.0" height="370.0" fill="#225588" fill-opacity="1.00"><title>5</title></rect>
<rect x="364.0" y="30.0" width="52.0" height="370.0" fill="#225588" fill-opacity="1.00"><title>5</title></rect>
<rect x="416.0" y="30.0" width="52.0" height="370.0" fill="#225588" fill-opacity="1.00"><title>5</title></rect>
<rect x="468.0" y="30.0" width="52.0" height="370.0" fill="#225588" fill-opacity="1.00"><title>5</title></rect>
<rect x="520.0" y="30.0" width="52.0" height="370.0" fill="#225588" fill-opacity="1.00"><title>5</title></rect>
<rect x="572.0" y="30.0" width="52.0" height="370.0" fill="#225588" fill-opacity="1.00"><title>5</title></rect>
<rect x="624.0" y="30.0" width="52.0" height="370.0" fill="#225588" fill-opacity="1.00"><title>5</title></rect>
<rect x="676.0" y="30.0" width="52.0" height="370.0" fill="#225588" fill-opacity="1.00"><title>5</title></rect>
<rect x="728.0" y="30.0" width="52.0" height="370.0" fill="#225588" fill-opacity="1.00"><title>5</title></rect>
<text x="286.0" y="416.0" text-anchor="middle">c0</text>
<text x="390.0" y="416.0" text-anchor="middle">c2</text>
<text x="494.0" y="416.0" text-anchor="middle">c4</text>
<text x="598.0" y="416.0" text-anchor="middle">c6</text>
<text x="702.0" y="416.0" text-anchor="middle">c8</text>
<text x="530.0" y="440.0" text-anchor="middle">x   (5 … 5)</text>
""",
            id="heat one",
        ),
        pytest.param(
            NO_HEAT,
            """\
<text x="21.0" y="219.0" text-anchor="end">r</text>
<text x="403.5" y="416.0" text-anchor="middle">a</text>
<text x="413.5" y="440.0" text-anchor="middle">x   (0 … 1)</text>
""",
            id="heat none",
        ),
    ],
)
def test_a_picture(drawn: Chart, expected: str) -> None:
    head, parts = svg(drawn).split("\n", 2)[:2], svg(drawn).split("\n", 2)[2]
    assert head == [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 450" font-family="sans-serif" font-size="12"'
        ' fill="#444">',
        '<rect width="800" height="450" fill="#fff"/>',
    ]
    assert parts == f"{expected}</svg>\n"


@pytest.mark.parametrize(
    ("kind", "bars", "series", "height"),
    [
        ("bar", 16, 1, 450),
        ("bar", 17, 1, 454),
        ("hist", 17, 1, 454),
        ("bar", 9, 2, 476),
        ("line", 17, 1, 450),
        ("heat", 17, 1, 450),
    ],
)
def test_the_height_of_a_picture(kind: str, bars: int, series: int, height: int) -> None:
    shown = [Series("n", range(bars), [1.0] * bars)] * series
    labels = ["a"] * bars
    lines = svg(Chart(kind, "x", shown, labels, rows=labels)).split("\n")
    assert lines[:2] == [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 {height}" font-family="sans-serif" font-size="12"'
        ' fill="#444">',
        f'<rect width="800" height="{height}" fill="#fff"/>',
    ]
    assert lines[-3].partition(" text-anchor")[0].endswith(f'y="{height - 10}.0"')


def test_each_series_has_its_color() -> None:
    shown = [Series(f"s{number}", [0.0], [float(number)]) for number in range(7)]
    colors = [
        line.partition('fill="')[2][:7] for line in svg(Chart("scatter", "x", shown)).split("\n") if "circle" in line
    ]
    assert colors == ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#4477aa"]
    shown = [Series(f"s{number}", [0], [1.0]) for number in range(7)]
    bars = [
        line.partition('fill="')[2][:7]
        for line in svg(Chart("bar", "x", shown, ["a"])).split("\n")
        if "<rect x" in line
    ]
    assert bars == colors
