"""Charts of the rows of a result, which DuckDB reduces to what is drawn."""

from __future__ import annotations

from collections.abc import Sequence

from sqlshell.interface.types import Kind
from sqlshell.result import Column, StoredColumn, Table
from sqlshell.shell.charts.charts import (
    LARGEST,
    MOST_BARS,
    MOST_CELLS,
    MOST_POINTS,
    MOST_SERIES,
    TIMES,
    Cells,
    Chart,
    Point,
    bars,
    bins_between,
    heat_map,
    histogram,
    kind_and_columns,
    label,
    lines,
)

AXIS = 4 * MOST_CELLS
"""Values of an axis of a heat map that are read: several long ones may have the same label."""

MOST_TEXTS = 200_000
"""The maximum number of different texts on the axis of points, each of which has a place."""

_YEARS = "BETWEEN -62135596800 AND 253402300799"
"""Seconds since 1970 of the years 1 to 9999: no others can be on an axis."""


async def chart(table: Table, columns: Sequence[Column], words: Sequence[str]) -> Chart | None:
    """The chart of a result; `words` are a kind, the column for x, and those for y, each optional. None for points
    above more than MOST_TEXTS texts.

    Raises UsageError for columns that do not exist, and if there is nothing to draw, and OutputError.
    """
    ((count,),) = await table.query(f"SELECT count(*) FROM {table.source}")
    kind, places = kind_and_columns(columns, words, empty=not count)
    stored = [table.columns[at] for at in places]
    if kind == "hist":
        source = f"(SELECT {number(stored[0])} AS x FROM {table.source}) WHERE abs(x) <= {LARGEST}"
        edges, counts = await histogram_bins(table, source)
        return histogram(columns[places[0]], edges, counts, count - sum(counts))
    if kind == "bar":
        strings = ", ".join(column.string for column in table.columns)
        first = await table.texts(f"SELECT [{strings}] FROM {table.source} WHERE file_row_number < {MOST_BARS}")
        return bars(columns, first, count, places)
    if kind == "heat":
        return await _heat(table, *stored)
    labels: list[str] = []
    source, where = table.source, _position(stored[0])
    if where is None:
        texts = await _texts(table, stored[0])
        if len(texts) > MOST_TEXTS:
            return None
        labels = list(dict.fromkeys(texts))
        source, where = _above_texts(table, stored[0], texts, labels)
    series: list[list[Point]] = []
    dropped = 0
    for y in stored[1 : MOST_SERIES + 1]:
        drawn, points = await _points(table, source, where, number(y), sort=kind == "line")
        dropped += count - drawn
        series.append(points)
    return lines(kind, columns, places, series, dropped, labels)


async def histogram_bins(table: Table, source: str) -> tuple[list[float], list[int]]:
    """The edges of bins of equal width for the numbers x of a source, and how many are in each; both are empty if there
    are none. Raises OutputError.
    """
    ((count, low, high, integers),) = await table.query(
        f"SELECT count(*), min(x), max(x), bool_and(x = trunc(x)) FROM {source}"
    )
    if not count:
        return [], []
    bins = bins_between(low, high, count, integers=integers)
    counts = [0] * bins.count
    for place, frequency in await table.query(
        f"SELECT least({bins.count - 1}, trunc((x - {bins.low!r}::DOUBLE) / {bins.width!r}::DOUBLE))::INTEGER, "
        f"count(*) FROM {source} GROUP BY 1"
    ):
        counts[place] += frequency
    return bins.edges, counts


def number(column: StoredColumn) -> str:
    """SQL for a value as a DOUBLE, NULL if it is not a number."""
    if column.is_text:
        return f"TRY_CAST({column.name} AS DOUBLE)"
    return f"{column.name}::DOUBLE" if column.column.kind.numeric else "NULL::DOUBLE"


def _position(column: StoredColumn) -> str | None:
    """SQL for the place of a value on an axis: a number, or seconds since 1970 or midnight. None for a text."""
    kind = column.column.kind
    if kind.numeric:
        return number(column)
    if kind not in TIMES:
        return None
    moment = column.name
    if column.is_text:
        # Without an offset it is in UTC, and a time of day is counted from midnight.
        day = "'1970-01-01 ' || " if kind is Kind.TIME else ""
        moment = f"TRY_CAST({day}{moment} AS TIMESTAMPTZ)"
    seconds = f"epoch({moment})"
    return f"CASE WHEN {seconds} {_YEARS} THEN {seconds} END"


async def _texts(table: Table, column: StoredColumn) -> list[str]:
    """The labels of the different values of a column in the order of their first rows; MOST_TEXTS + 1 if there are
    more. Two values may have the same label."""
    texts = await table.texts(f"SELECT [s] FROM {_ranked(table, column)} ORDER BY rank LIMIT {MOST_TEXTS + 1}")
    return [label(text) for (text,) in texts]


def _ranked(table: Table, column: StoredColumn) -> str:
    """SQL for the different strings s of a column, numbered by their first rows."""
    return (
        "(SELECT s, row_number() OVER (ORDER BY first_row) - 1 AS rank FROM "
        f"(SELECT {column.string} AS s, min(file_row_number) AS first_row FROM {table.source} GROUP BY 1))"
    )


def _above_texts(table: Table, column: StoredColumn, texts: Sequence[str], labels: Sequence[str]) -> tuple[str, str]:
    """SQL for the rows with the rank of a column's string, and for its place among the labels."""
    same = f"{column.string} IS NOT DISTINCT FROM s"
    source = f"(SELECT t.*, rank FROM {table.source} t JOIN {_ranked(table, column)} ON {same})"
    if len(texts) == len(labels):
        return source, "rank"
    places = {text: place for place, text in enumerate(labels)}
    return source, f"[{', '.join(str(places[text]) for text in texts)}][rank + 1]"


async def _points(table: Table, source: str, x: str, y: str, *, sort: bool) -> tuple[int, list[Point]]:
    """How many points there are, and the lowest and the highest of each section of them."""
    order = "x, n" if sort else "n"
    sections = MOST_POINTS // 2
    rows = await table.query(
        f"WITH points AS MATERIALIZED (SELECT x, y, row_number() OVER (ORDER BY {order}) - 1 AS i FROM "
        f"(SELECT {x} AS x, {y} AS y, file_row_number AS n FROM {source}) "
        f"WHERE abs(x) <= {LARGEST} AND abs(y) <= {LARGEST}), "
        "total AS (SELECT count(*) AS number FROM points), "
        "ends AS (SELECT min(i) AS i, any_value(number) AS number, "
        "[arg_min(x, y), min(y)] AS low, [arg_max(x, y), max(y)] AS high FROM points, total "
        f"GROUP BY CASE WHEN number <= {MOST_POINTS} THEN i ELSE i * {sections} // number END) "
        "SELECT number, low, high FROM ends ORDER BY i"
    )
    points = [point for _, *ends in rows for point in sorted({(end[0], end[1]) for end in ends})]
    return (rows[0][0] if rows else 0), points


async def _heat(table: Table, x: StoredColumn, y: StoredColumn, value: StoredColumn) -> Chart:
    firsts = [
        f"(SELECT s FROM (SELECT {column.string} AS s, min(file_row_number) AS n FROM {table.source} GROUP BY 1) "
        f"ORDER BY n LIMIT {AXIS})"
        for column in (x, y)
    ]
    across, down = [
        list(dict.fromkeys(label(text) for (text,) in await table.texts(f"SELECT [s] FROM {first}")))
        for first in firsts
    ]
    cells = await table.texts(
        f"SELECT [x, y, sum(v)::VARCHAR] FROM (SELECT {x.string} AS x, {y.string} AS y, {number(value)} AS v "
        f"FROM {table.source}) SEMI JOIN {firsts[0]} a ON x IS NOT DISTINCT FROM a.s "
        f"SEMI JOIN {firsts[1]} b ON y IS NOT DISTINCT FROM b.s WHERE abs(v) <= {LARGEST} GROUP BY x, y"
    )
    sums: Cells = {}
    for head, side, total in cells:
        spot = (label(side), label(head))
        sums[spot] = sums.get(spot, 0.0) + float(total or 0)
    return heat_map(x.column, across, down, sums)
