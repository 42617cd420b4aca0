"""A chart as an SVG picture, readable on light and dark pages."""

from __future__ import annotations

import math
from collections.abc import Iterator
from xml.sax.saxutils import escape

from sqlshell.shell.charts.charts import Chart
from sqlshell.shell.charts.drawing import moment

WIDTH, HEIGHT = 800, 450
LEFT, RIGHT, TOP, BOTTOM = 90, 20, 30, 50
COLORS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")
TICKS = 5
LINE = 22
"""Height of a bar with its gap in pixels."""


def svg(chart: Chart) -> str:
    """The picture as SVG text."""
    draw = {"bar": _bars, "hist": _bars, "heat": _heat}.get(chart.kind, _points)
    many = len(chart.labels) * len(chart.series)
    height = max(HEIGHT, many * LINE + TOP + BOTTOM) if chart.kind in {"bar", "hist"} else HEIGHT
    parts = "\n".join(draw(chart, height))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        f'font-size="12" fill="#444">\n<rect width="{WIDTH}" height="{height}" fill="#fff"/>\n{parts}\n</svg>\n'
    )


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _axis(x1: float, y1: float, x2: float, y2: float, color: str = "#999") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}"/>'


def _ticks(low: float, high: float) -> list[float]:
    return [low + (high - low) * number / (TICKS - 1) for number in range(TICKS)]


def _bars(chart: Chart, height: int) -> Iterator[str]:
    values = [value for item in chart.series for value in item.ys]
    low, high = min(0.0, *values), max(0.0, *values)
    span = (high - low) or 1.0
    left = min(260, 20 + 7 * max(map(len, chart.labels)))
    wide = WIDTH - left - RIGHT
    zero = left + wide * -low / span
    step = (height - TOP - BOTTOM) / max(1, len(chart.labels))
    thick = step * 0.8 / len(chart.series)
    for tick in _ticks(low, high):
        x = left + wide * (tick - low) / span
        yield _axis(x, TOP, x, height - BOTTOM, "#ddd")
        yield _text(x, height - BOTTOM + 16, f"{tick:.6g}")
    for row, label in enumerate(chart.labels):
        y = TOP + row * step
        yield _text(left - 6, y + step / 2 + 4, label, "end")
        for number, item in enumerate(chart.series):
            end = left + wide * (item.ys[row] - low) / span
            yield (
                f'<rect x="{min(zero, end):.1f}" y="{y + step * 0.1 + number * thick:.1f}" '
                f'width="{abs(end - zero):.1f}" height="{thick:.1f}" fill="{COLORS[number % len(COLORS)]}"/>'
            )
    yield _text(left + wide / 2, height - 10, chart.y)


def _points(chart: Chart, height: int) -> Iterator[str]:
    xs = [x for item in chart.series for x in item.xs]
    ys = [y for item in chart.series for y in item.ys]
    x_low, x_high, y_low, y_high = min(xs), max(xs), min(ys), max(ys)
    wide, tall = WIDTH - LEFT - RIGHT, height - TOP - BOTTOM

    def at(x: float, y: float) -> tuple[float, float]:
        across = (x - x_low) / ((x_high - x_low) or 1.0)
        up = (y - y_low) / ((y_high - y_low) or 1.0)
        return LEFT + wide * across, height - BOTTOM - tall * up

    for tick in _ticks(y_low, y_high):
        _, y = at(x_low, tick)
        yield _axis(LEFT, y, WIDTH - RIGHT, y, "#ddd")
        yield _text(LEFT - 6, y + 4, f"{tick:.6g}", "end")
    ticks = _ticks(x_low, x_high)
    if chart.labels:
        # A text has its place at a whole number.
        ticks = list(dict.fromkeys(float(round(tick)) for tick in ticks))
    for tick in ticks:
        x, _ = at(tick, y_low)
        label = moment(tick, x_high - x_low) if chart.moments else f"{tick:.6g}"
        if chart.labels:
            label = chart.labels[round(tick)]
        yield _text(x, height - BOTTOM + 16, label)
    for number, item in enumerate(chart.series):
        color = COLORS[number % len(COLORS)]
        places = [at(x, y) for x, y in zip(item.xs, item.ys, strict=True)]
        if chart.kind == "line":
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            yield f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.5"/>'
        else:
            yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{color}"/>' for x, y in places)
        yield f'<rect x="{LEFT + number * 130}" y="8" width="10" height="10" fill="{color}"/>'
        yield _text(LEFT + number * 130 + 15, 17, item.name, "start")
    yield _text(LEFT + wide / 2, height - 10, chart.x)


def _heat(chart: Chart, height: int) -> Iterator[str]:
    values = [value for item in chart.series for value in item.ys if not math.isnan(value)]
    low, high = min(values, default=0.0), max(values, default=1.0)
    left = min(260, 20 + 7 * max(map(len, chart.rows)))
    wide = (WIDTH - left - RIGHT) / max(1, len(chart.labels))
    tall = (height - TOP - BOTTOM) / max(1, len(chart.rows))
    for row, item in enumerate(chart.series):
        y = TOP + row * tall
        yield _text(left - 6, y + tall / 2 + 4, item.name, "end")
        for column, value in enumerate(item.ys):
            if math.isnan(value):
                continue
            share = (value - low) / (high - low) if high > low else 1.0
            yield (
                f'<rect x="{left + column * wide:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}" '
                f'fill="#225588" fill-opacity="{0.08 + 0.92 * share:.2f}"><title>{value:g}</title></rect>'
            )
    step = max(1, math.ceil(len(chart.labels) * 60 / (WIDTH - left)))
    for column in range(0, len(chart.labels), step):
        yield _text(left + (column + 0.5) * wide, height - BOTTOM + 16, chart.labels[column])
    yield _text(left + (WIDTH - left) / 2, height - 10, f"{chart.x}   ({low:g} … {high:g})")
