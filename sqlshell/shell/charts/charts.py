"""Chooses the chart for a result: the columns for its axes and its kind; what is drawn of them and what is left out.

By default, a text and a number are a bar chart, a time or an ordered number and numbers a line chart, one number alone
is a histogram, and two texts and a number are a heat map.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct, field

from sqlshell.errors import UsageError
from sqlshell.interface.types import Kind
from sqlshell.output.text.cells import printable
from sqlshell.result import Column, Rows
from sqlshell.shell.results.crosstab import place
from sqlshell.text import format_count

KINDS: Final = ("bar", "line", "scatter", "hist", "heat")
MOST_BARS = 50
MOST_SERIES = 6
MOST_POINTS = 2_000
"""Maximum points of a line; more would overlap."""
MOST_BINS = 30
MOST_CELLS = 60
"""Maximum values on each side of a heat map."""
LONGEST_LABEL = 30
LARGEST = 1e300
"""Larger numbers have sums and distances that a float cannot represent."""
UNEQUAL = 1.15
"""By which factor periods of one kind, such as months, may differ at most."""
EXACT = 2**52
"""The least number from which on a float has no halves."""
EXACT_BINS = 1_000
"""Distances between neighboring floats in a bin, for which its edges are exact enough to be round."""
Point = tuple[float, float]
Cells = dict[tuple[str, str], float]
"""The sums of a heat map by the labels of the row and of the column."""
TIMES = frozenset({Kind.DATE, Kind.TIME, Kind.TIMESTAMP})


class Series(Struct, frozen=True):
    """The points of one column; for a histogram `xs` are the bins."""

    name: str
    xs: Sequence[float]
    ys: Sequence[float]


class Chart(Struct):
    """`labels` are the names of the positions 0, 1, … on an axis of texts; `moments` says that x is seconds since 1970.

    `rows` are the labels of the rows of a heat map, whose series are its rows. `notes` describe omitted data.
    """

    kind: str
    x: str
    series: list[Series]
    labels: list[str] = field(default_factory=list)
    moments: bool = False
    rows: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def y(self) -> str:
        return ", ".join(item.name for item in self.series)


def kind_and_columns(columns: Sequence[Column], words: Sequence[str], *, empty: bool) -> tuple[str, list[int]]:
    """The kind of a chart and its columns: for a histogram one, for a heat map those for x, y and the cells, for others
    that for x and those for y. Raises UsageError.
    """
    kind = words[0] if words and words[0] in KINDS else ""
    places = [place(columns, word) for word in (words[1:] if kind else words)]
    if empty:
        raise UsageError("the result has no rows to draw")
    numbers = [at for at, column in enumerate(columns) if column.kind.numeric]
    kind = kind or _kind(columns, numbers, places)
    if kind == "hist":
        if not (places or numbers):
            raise UsageError(
                "a histogram requires a numeric column",
                "use \\chart bar X Y to draw values that are already counted",
            )
        return kind, [*places, *numbers][:1]
    if kind == "heat":
        return kind, _heat_columns(columns, places)
    x, ys = _axes(columns, numbers, places)
    return kind, [x, *ys]


def _kind(columns: Sequence[Column], numbers: Sequence[int], places: Sequence[int]) -> str:
    chosen = places or range(len(columns))
    texts = [at for at in chosen if not columns[at].kind.numeric and columns[at].kind not in TIMES]
    if len(chosen) == 1 and chosen[0] in numbers:
        return "hist"
    if not places and len(texts) == 2 and len(columns) == 3 and len(numbers) == 1:
        return "heat"
    first = places[0] if places else next((at for at in chosen if at not in numbers), chosen[0])
    return "line" if columns[first].kind in TIMES or first in numbers else "bar"


def _axes(columns: Sequence[Column], numbers: Sequence[int], places: Sequence[int]) -> tuple[int, list[int]]:
    """The column for x, and the columns for y."""
    if places:
        x = places[0]
    else:
        times = [at for at, column in enumerate(columns) if column.kind in TIMES]
        texts = [at for at in range(len(columns)) if at not in numbers]
        x = (times or texts or list(numbers) or [0])[0]
    ys = list(places[1:]) or [at for at in numbers if at != x][:MOST_SERIES]
    if not ys:
        raise UsageError(
            "a chart requires a numeric column", "use \\chart hist COLUMN to draw how often each value occurs"
        )
    return x, ys


def bars(columns: Sequence[Column], rows: Rows, count: int, places: Sequence[int]) -> Chart:
    """A bar chart of the first rows of `count`."""
    x, *ys = places
    labels = [label(row[x]) for row in rows]
    numbers = [[_number(row[y]) for row in rows] for y in ys]
    series = [
        Series(label(columns[y].name), list(range(len(labels))), [math.nan if v is None else v for v in values])
        for y, values in zip(ys, numbers, strict=True)
    ]
    left = count - len(labels)
    more = "row is" if left == 1 else "rows are"
    notes = [f"{left:,} more {more} not drawn; use ORDER BY and LIMIT to choose the rows"] if left > 0 else []
    notes += _notes(sum(values.count(None) for values in numbers), "drawn")
    return Chart("bar", label(columns[x].name), series, labels, notes=notes)


def lines(
    kind: str,
    columns: Sequence[Column],
    places: Sequence[int],
    point_lists: Sequence[Sequence[Point]],
    dropped: int,
    labels: Sequence[str] = (),
) -> Chart:
    """A chart of the points of each series. Raises UsageError if there are none."""
    x, *ys = places
    if not any(point_lists):
        raise UsageError(f"{columns[x].name} and {', '.join(columns[y].name for y in ys)} contain no points to draw")
    series = [
        Series(label(columns[y].name), [point[0] for point in points], [point[1] for point in points])
        for y, points in zip(ys, point_lists, strict=False)
    ]
    notes = _notes(dropped, "drawn")
    moments = columns[x].kind in TIMES
    if moments and kind == "line" and _continues(sorted({at for item in series for at in item.xs})):
        notes.append("the last period has not ended yet")
    return Chart(kind, label(columns[x].name), series, list(labels), moments, notes=notes)


def _continues(times: Sequence[float]) -> bool:
    """Whether times in seconds since 1970 are the beginnings of periods, such as months, and the last one is now."""
    distances = [later - earlier for earlier, later in pairwise(times)]
    return (
        len(distances) > 1
        and max(distances) <= UNEQUAL * min(distances)
        and times[-1] <= time.time() < times[-1] + min(distances)
    )


def _notes(dropped: int, done: str) -> list[str]:
    """The note about values that are not "drawn" or "counted"."""
    if not dropped:
        return []
    they, are = ("it", "is") if dropped == 1 else ("they", "are")
    return [f"{format_count(dropped, 'value')} {are} not {done}: {they} {are} NULL, not numeric or too large"]


def histogram(column: Column, edges: Sequence[float], counts: Sequence[int], dropped: int) -> Chart:
    """A histogram of bins. Raises UsageError if there are none."""
    if not edges:
        raise UsageError(f"{column.name} contains no numbers to count")
    middles = [(low + high) / 2 for low, high in pairwise(edges)]
    labels = [bin_label(low, high) for low, high in pairwise(edges)]
    notes = _notes(dropped, "counted")
    bars = [Series("rows", middles, [float(count) for count in counts])]
    return Chart("hist", label(column.name), bars, labels, notes=notes)


def step_between(low: float, high: float, most: int) -> float:
    """The least of 1, 2 and 5 times a power of ten of which at most `most` make up a distance; 0 if there is none."""
    raw = (high / most) - (low / most)
    if not 1e-290 < raw < 1e290:
        return 0.0
    power = 10.0 ** math.floor(math.log10(raw))
    return next((factor * power for factor in (1.0, 2.0, 5.0) if factor * power >= raw), 10.0 * power)


class Bins(Struct, frozen=True):
    """`count` bins of equal width, from `low` on."""

    low: float
    width: float
    count: int

    @property
    def edges(self) -> list[float]:
        return [self.low + self.width * place for place in range(self.count + 1)]


def bins_between(low: float, high: float, number: int, *, integers: bool) -> Bins:
    """The bins for `number` values, with round edges where floats have these; their number follows Sturges's rule.

    If there are few different `integers`, each has a bin around it.
    """
    if integers and high - low < MOST_BINS and max(-low, high) < EXACT:
        return Bins(low - 0.5, 1.0, int(high - low) + 1)
    step = math.ulp(max(-low, high))
    # Narrower bins would have the same edges.
    many = min(MOST_BINS, math.ceil(math.log2(number) + 1), int((high - low) / step)) or 1
    width = step_between(low, high, many)
    if width > step * EXACT_BINS:
        first = math.floor(low / width)
        return Bins(first * width, width, max(1, math.ceil(high / width) - first))
    return Bins(low, (high - low) / many or max(1.0, step), many)


def bin_label(low: float, high: float) -> str:
    """The label of a bin; the number itself for a bin around one."""
    middle = (low + high) / 2
    return f"{middle:.0f}" if high - low == 1.0 and middle == int(middle) else f"{low:.6g} – {high:.6g}"


def _heat_columns(columns: Sequence[Column], places: Sequence[int]) -> list[int]:
    free = [at for at in range(len(columns)) if at not in places]
    numbers = [at for at in free if columns[at].kind.numeric]
    # Prefer texts for the axes: the cells require numbers.
    free = [at for at in free if at not in numbers] + numbers
    chosen = [*places, *free[: max(0, 2 - len(places))]]
    if len(chosen) < 3:
        numbers = [at for at in numbers if at not in chosen]
        if len(chosen) < 2 or not numbers:
            raise UsageError(
                "a heat map requires two columns for its axes and a numeric column", "use \\chart heat X Y VALUE"
            )
        chosen.append(numbers[0])
    return chosen[:3]


def heat_map(column: Column, across: Sequence[str], down: Sequence[str], sums: Cells) -> Chart:
    """A heat map of the first labels of each axis; `column` is that for x."""
    notes = (
        []
        if max(len(across), len(down)) <= MOST_CELLS
        else [f"only the first {MOST_CELLS} values of each axis are drawn"]
    )
    across, down = across[:MOST_CELLS], down[:MOST_CELLS]
    series = [
        Series(name, list(range(len(across))), [sums.get((name, head), math.nan) for head in across]) for name in down
    ]
    return Chart("heat", label(column.name), series, list(across), rows=list(down), notes=notes)


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else math.nan
    except ValueError:
        return None
    return number if abs(number) <= LARGEST else None


def label(value: str | None) -> str:
    """A value as the name of a place on an axis."""
    text = "NULL" if value is None else printable(value)
    return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"
