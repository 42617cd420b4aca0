"""Statistics of one column: NULLs, distinct values, minimum and maximum, distribution."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from sqlshell.output.text.cells import printable
from sqlshell.output.text.display import indented
from sqlshell.output.text.type_names import simple_type
from sqlshell.result import Column, StoredColumn, Table
from sqlshell.runtime.streams import in_locale
from sqlshell.shell.charts.charts import bin_label
from sqlshell.shell.charts.drawn_rows import histogram_bins, number
from sqlshell.shell.explorer.arrangement import shown_text

BAR = 30
MOST_COMMON = 10


class NumberFacts(Struct):
    """The numbers of a column: the least and the greatest as the service wrote them, and a histogram."""

    least: str
    most: str
    mean: float
    edges: Sequence[float]
    counts: Sequence[int]


class ColumnFacts(Struct):
    """Statistics of a column: `numbers`, or the first and last text and the most frequent ones."""

    rows: int
    nulls: int
    distinct: int
    numbers: NumberFacts | None = None
    least: str = ""
    most: str = ""
    common: Sequence[tuple[str, int]] = ()


async def facts_of(table: Table, at: int) -> ColumnFacts:
    """The statistics of a column. Raises OutputError."""
    column = table.columns[at]
    text = shown_text(column)
    if column.column.kind.numeric:
        numbers = await _numbers(table, column, text)
    else:
        numbers = None
    ((rows, present, distinct, least, most),) = await table.query(
        f"SELECT count(*), count({text}), count(DISTINCT {text}), min({text}), max({text}) FROM {table.source}"
    )
    facts = ColumnFacts(rows=rows, nulls=rows - present, distinct=distinct, numbers=numbers)
    if numbers is None and present:
        facts.least, facts.most = least, most
        facts.common = [
            (value, count)
            for value, count in await table.query(
                f"SELECT {text}, count(*) FROM {table.source} WHERE {column.name} IS NOT NULL GROUP BY 1 "
                f"ORDER BY 2 DESC, min(file_row_number) LIMIT {MOST_COMMON}"
            )
        ]
    return facts


async def _numbers(table: Table, column: StoredColumn, text: str) -> NumberFacts | None:
    source = f"(SELECT {number(column)} AS x, {text} AS s FROM {table.source}) WHERE isfinite(x)"
    edges, counts = await histogram_bins(table, source)
    if not edges:
        return None
    ((least, most, mean),) = await table.query(f"SELECT arg_min(s, x), arg_max(s, x), avg(x) FROM {source}")
    return NumberFacts(least, most, mean, edges, counts)


def summary(column: Column, facts: ColumnFacts, note: str) -> str:
    """Statistics as lines; `note` says which rows they cover."""
    lines = [
        f"{printable(column.name)}  {printable(simple_type(column.exact_type))}",
        note,
        "",
        f"rows      {facts.rows:,}",
        f"nulls     {facts.nulls:,}",
        f"distinct  {facts.distinct:,}",
    ]
    if facts.numbers is not None:
        numbers = facts.numbers
        lines += [
            f"min       {printable(numbers.least)}",
            f"max       {printable(numbers.most)}",
            f"mean      {numbers.mean:.6g}",
            "",
            *_histogram(numbers.edges, numbers.counts),
        ]
    elif facts.common:
        lines += [f"min       {printable(facts.least)[:60]}", f"max       {printable(facts.most)[:60]}", ""]
        most = facts.common[0][1]
        lines += [
            f"{in_locale('█') * max(1, round(BAR * count / most))} {count:,}  {printable(value)[:60]}"
            for value, count in facts.common
        ]
    return "\n".join(lines)


def pretty(column: Column, value: str | None) -> str:
    """A value for display: JSON and nested values are indented."""
    if value is None:
        return "NULL"
    text = value
    if value.lstrip()[:1] in {"{", "["}:
        text = indented(value)
        if text == value:
            try:
                text = json.dumps(json.loads(value), ensure_ascii=False, indent=2) if len(value) > 2 else value
            except (ValueError, RecursionError):
                text = value
    return printable(text, "\n\t")


def _histogram(edges: Sequence[float], counts: Sequence[int]) -> list[str]:
    most = max(counts) or 1
    labels = [bin_label(low, high) for low, high in pairwise(edges)]
    side = max(map(len, labels))
    return [
        f"{label.rjust(side)}  {in_locale('█') * round(BAR * count / most)} {count:,}"
        for label, count in zip(labels, counts, strict=True)
    ]
