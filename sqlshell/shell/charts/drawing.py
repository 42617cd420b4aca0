"""Draws a chart as text for a terminal: plotext draws everything except heat maps."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from sqlshell.errors import UsageError
from sqlshell.output.text.cells import cells
from sqlshell.shell.charts.charts import Chart

SHADES = " ░▒▓█"
MOST_HEIGHT = 30
TICKS = 5


def as_text(chart: Chart, width: int, height: int, *, colors: bool) -> str:
    """The chart as lines of at most `width` cells, about `height` of them; bar charts take as many as they need. Raises
    UsageError.
    """
    if chart.kind == "heat":
        return _heat(chart, width)
    try:
        import plotext  # type: ignore[import-untyped]
    except ImportError:
        raise UsageError("\\chart requires plotext (extra: charts)", "run: pip install 'plotext>=5.3,<6'") from None
    plotext.clear_figure()
    plotext.limit_size(False, False)
    plotext.theme("clear" if not colors else "default")
    if colors:
        for paint in (plotext.canvas_color, plotext.axes_color):
            paint("default")
        plotext.ticks_color("default")
    if chart.kind in {"bar", "hist"}:
        _bars(plotext, chart, width)
    else:
        _points(plotext, chart, width, min(height, MOST_HEIGHT))
    text = str(plotext.build())
    if not colors:
        text = plotext.uncolorize(text)
    return "\n".join(line.rstrip() for line in text.rstrip("\n").split("\n")) + "\n"


def _bars(plotext: Any, chart: Chart, width: int) -> None:
    labels = list(reversed(chart.labels))
    many = len(chart.series)
    plotext.plotsize(width, len(labels) * (many + (many > 1)) + 4)
    values = [list(reversed(item.ys)) for item in chart.series]
    gap = 0.5 if many == 1 else 0.8
    if many == 1:
        plotext.bar(labels, values[0], orientation="horizontal", width=gap)
    else:
        names = [item.name for item in chart.series]
        plotext.multiple_bar(labels, values, orientation="horizontal", width=gap, labels=names)
    plotext.xlabel(chart.y)


def _points(plotext: Any, chart: Chart, width: int, height: int) -> None:
    plotext.plotsize(width, max(8, height))
    for item in chart.series:
        label = item.name if len(chart.series) > 1 else None
        if chart.kind == "line":
            plotext.plot(list(item.xs), list(item.ys), label=label, marker="braille")
        else:
            plotext.scatter(list(item.xs), list(item.ys), label=label, marker="braille")
    xs = [x for item in chart.series for x in item.xs]
    low, high = min(xs), max(xs)
    if chart.moments:
        ticks = [low + (high - low) * number / (TICKS - 1) for number in range(TICKS)]
        plotext.xticks(ticks, [moment(tick, high - low) for tick in ticks])
    elif chart.labels:
        step = max(1, len(chart.labels) // TICKS)
        plotext.xticks(list(range(0, len(chart.labels), step)), chart.labels[::step])
    plotext.xlabel(chart.x)
    if len(chart.series) == 1:
        plotext.ylabel(chart.y)


def moment(seconds: float, span: float) -> str:
    """The label of a tick on an axis of times, as precise as the length of the axis requires."""
    shape = "%Y-%m-%d" if span >= 3 * 86_400 else "%m-%d %H:%M" if span >= 86_400 else "%H:%M:%S"
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime(shape)
    except (ValueError, OverflowError, OSError):
        return f"{seconds:g}"


def _heat(chart: Chart, width: int) -> str:
    values = [value for item in chart.series for value in item.ys if not math.isnan(value)]
    if not values:
        raise UsageError("the result has no numbers to draw")
    low, high = min(values), max(values)
    side = max(map(cells, chart.rows))
    wide = max(1, min(8, (width - side - 3) // max(1, len(chart.labels))))
    lines = []
    for item in chart.series:
        row = "".join(_shade(value, low, high) * wide for value in item.ys)
        lines.append(f"{' ' * (side - cells(item.name))}{item.name} │{row}│")
    heads = ""
    for number, label in enumerate(chart.labels):
        at = number * wide
        if at >= cells(heads) and at + cells(label) <= max(len(chart.labels) * wide, cells(label)):
            heads += " " * (at - cells(heads)) + label + " "
    legend = f"{' ' * side}  {SHADES[1]} {low:g}  {SHADES[2]}{SHADES[3]}  {SHADES[4]} {high:g}"
    return "\n".join([*lines, f"{' ' * side}  {heads}".rstrip(), legend]) + "\n"


def _shade(value: float, low: float, high: float) -> str:
    if math.isnan(value):
        return SHADES[0]
    share = (value - low) / (high - low) if high > low else 1.0
    return SHADES[1 + min(3, int(share * 4))]
