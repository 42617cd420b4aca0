"""Draws a chart as text for a terminal; plotext draws lines and points."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from sqlshell.errors import UsageError
from sqlshell.output.text.cells import cells
from sqlshell.runtime.streams import in_locale
from sqlshell.shell.charts.charts import EXACT, Chart, step_between
from sqlshell.text import how_to_install

SHADES = " ░▒▓█"
MOST_HEIGHT = 30
TICKS = 5
FLAT = 5
"""How many times larger the numbers of a series are beside which another one is flat."""
COLORS = (("blue+", 94), ("green+", 92), ("red+", 91), ("cyan+", 96), ("magenta+", 95), ("orange+", 93))
"""The colors of series: plotext's names, and the codes of terminals."""
MONTH = 365.2425 * 86_400 / 12
_MONTHS = (1, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 2400, 6000, 12_000, 24_000)
_SECONDS = (1, 5, 15, 30, 60, 300, 900, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 1_209_600)
Paint = Callable[[str, int], str]
"""Colors a text as the series with this number."""


def as_text(chart: Chart, width: int, height: int, *, colors: bool) -> str:
    """The chart as lines of at most `width` cells, about `height` of them; bar charts take as many as they need. Raises
    UsageError.
    """
    if chart.kind == "heat":
        return _heat(chart, width)

    def paint(text: str, number: int) -> str:
        return f"\x1b[{COLORS[number % len(COLORS)][1]}m{text}\x1b[0m" if colors else text

    if chart.kind in {"bar", "hist"}:
        return "".join(f"{line.rstrip()}\n" for line in _bars(chart, width, paint))
    try:
        import plotext  # type: ignore[import-untyped]
    except ImportError:
        raise UsageError(
            "\\chart line and scatter require the package plotext (extra: charts)", how_to_install("'plotext>=5.3,<6'")
        ) from None
    panels = _panels(chart)
    height = max(8, min(height, MOST_HEIGHT) // len(panels))
    lines = [line for panel in panels for line in _points(plotext, panel, width, height, paint, colors=colors)]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _bars(chart: Chart, width: int, paint: Paint) -> Iterator[str]:
    """A bar for each number, with the number at its end; the series of a label stand below each other."""
    block, names = in_locale("▆"), [item.name for item in chart.series]
    numbers = [value for item in chart.series for value in item.ys if not math.isnan(value)]
    values = [f"{value:,.10g}" for value in numbers] or [""]
    side = max(map(cells, (*chart.labels, *(names if len(names) > 1 else ()), chart.x)))
    room = max(8, width - side - 4 - max(map(len, values)))
    low, high = min([0.0, *numbers]), max([0.0, *numbers])
    # Halved first: the difference of the largest numbers is none.
    scale = room / 2 / (high / 2 - low / 2) if high > low else 0.0
    zero = round(-low / 2 * scale * 2)
    head = "  ".join(paint(f"{block} {name}", number) for number, name in enumerate(names))
    yield f"{chart.x.rjust(side)}  {head if len(names) > 1 else names[0]}"
    for at, label in enumerate(chart.labels):
        for number, item in enumerate(chart.series):
            value, name = item.ys[at], "" if number else label
            if math.isnan(value):
                yield f"{' ' * (side - cells(name))}{name}"
                continue
            size = round(abs(value) * scale)
            bar = paint(block * size, number) if size else in_locale("▏") if value else ""
            before = " " * (zero - size if value < 0 else zero)
            yield f"{' ' * (side - cells(name))}{name}  {before}{bar} {value:,.10g}"
        if len(names) > 1 and at < len(chart.labels) - 1:
            yield ""


def _panels(chart: Chart) -> list[Chart]:
    """The chart, or one for each series if one of them would be a flat line beside another."""
    sizes = [max(map(abs, item.ys), default=0.0) for item in chart.series]
    if len(sizes) < 2 or max(sizes) < FLAT * min(sizes):
        return [chart]
    return [replace(chart, series=[item]) for item in chart.series]


def _points(plotext: Any, chart: Chart, width: int, height: int, paint: Paint, *, colors: bool) -> list[str]:
    """Lines or points, each series with its name at the right of its last point."""
    plotext.clear_figure()
    plotext.limit_size(False, False)
    plotext.theme("default" if colors else "clear")
    if colors:
        for choose in (plotext.canvas_color, plotext.axes_color, plotext.ticks_color):
            choose("default")
    side = 1 + max(cells(item.name) for item in chart.series)
    plotext.plotsize(width - side, height)
    for number, item in enumerate(chart.series):
        draw = plotext.plot if chart.kind == "line" else plotext.scatter
        draw(list(item.xs), list(item.ys), marker="braille", color=COLORS[number % len(COLORS)][0])
    xs = [x for item in chart.series for x in item.xs]
    ys = [y for item in chart.series for y in item.ys]
    bottom, top = min(ys), max(ys)
    # plotext chooses by chance between labels for which there is too little room: on the left all have a row, and below
    # the axis it draws only the ticks.
    if marks := next(found for most in range(TICKS, 0, -1) if len(found := ticks(bottom, top, most)) <= height - 4):
        bottom, top = min(bottom, marks[0]), max(top, marks[-1])
        plotext.yticks(marks, [f"{mark:,.10g}" for mark in marks])
        plotext.ylim(bottom, top)
    first, last = min(xs), max(xs)
    labels: dict[float, str] = {}
    if chart.moments:
        labels = {time: moment(time, last - first) for time in time_ticks(first, last)}
    elif chart.labels:
        step = max(1, len(chart.labels) // TICKS)
        labels = {float(at): chart.labels[at] for at in range(0, len(chart.labels), step)}
    else:
        labels = {mark: f"{mark:,.10g}" for mark in ticks(first, last) if first <= mark <= last}
    if labels:
        plotext.xticks([*labels], [" "] * len(labels))
    plotext.xlabel(chart.x)
    text = str(plotext.build()) if colors else plotext.uncolorize(str(plotext.build()))
    lines = text.rstrip("\n").split("\n")
    frame = [at for at, line in enumerate(lines) if "┌" in line or "└" in line]
    rows = frame[-1] - frame[0] - 2 if len(frame) > 1 else 0
    if labels and frame:
        axis = plotext.uncolorize(lines[frame[-1]])
        left, right = axis.index("└") + 1, axis.index("┘") - 1
        shares = {at: (at - first) / (last - first) if last > first else 0.5 for at in labels}
        columns = {round(left + shares[at] * (right - left)): label for at, label in labels.items()}
        lines[frame[-1] + 1] = _below(columns, width)
    for number, item in enumerate(chart.series):
        if item.ys and rows > 0:
            share = (top / 2 - item.ys[-1] / 2) / (top / 2 - bottom / 2) if top > bottom else 0.5
            lines[frame[0] + 1 + round(share * rows)] += f" {paint(item.name, number)}"
    return lines


def _below(labels: dict[int, str], width: int) -> str:
    """A line with labels below their columns, in order; one that would touch the one before it is left out."""
    line = ""
    for column, label in labels.items():
        at = max(0, min(column - cells(label) // 2, width - cells(label)))
        if not line or at > cells(line):
            line += " " * (at - cells(line)) + label
    return line


def ticks(low: float, high: float, most: int = TICKS) -> list[float]:
    """Round numbers from one not above `low` to one not below `high`; none if they are equal or too large."""
    step = step_between(low, high, most)
    if not step or abs(low) / step > EXACT or abs(high) / step > EXACT:
        return []
    return [number * step for number in range(math.floor(low / step), math.ceil(high / step) + 1)]


def time_ticks(low: float, high: float) -> list[float]:
    """Beginnings of years, months, days or hours, in seconds since 1970."""
    months = next((step for step in _MONTHS if step * MONTH * TICKS >= high - low), 0)
    if high - low < MONTH * 2:
        seconds = next(step for step in _SECONDS if step * TICKS >= high - low)
        first = math.ceil(low / seconds)
        return [float(number * seconds) for number in range(first, math.floor(high / seconds) + 1)] or [low]
    begin = datetime.fromtimestamp(low, UTC)
    number = begin.year * 12 + begin.month - 1
    months = months or math.ceil((high - low) / (MONTH * TICKS))
    found = []
    for month in range(-(-number // months) * months, 12 * 10_000, months):
        at = datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC).timestamp() if month >= 12 else low
        if at > high:
            break
        if at >= low:
            found.append(at)
    return found or [low]


def moment(seconds: float, span: float) -> str:
    """The label of a tick on an axis of times, as precise as the length of the axis requires."""
    try:
        text = datetime.fromtimestamp(seconds, UTC).isoformat(" ", "seconds")
        if not span:
            return text[:19].removesuffix(" 00:00:00")
        return text[:10] if span >= 3 * 86_400 else text[5:16] if span >= 86_400 else text[11:19]
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
