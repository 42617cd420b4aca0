"""Statistics of one column: NULLs, distinct values, minimum and maximum, distribution."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from sqlshell.output.text.cells import printable
from sqlshell.output.text.display import indented
from sqlshell.result import Column
from sqlshell.runtime.streams import in_locale
from sqlshell.shell.charts.charts import bin_label, bins

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


def facts_of_values(column: Column, values: Sequence[str | None]) -> ColumnFacts:
    present = [value for value in values if value is not None]
    facts = ColumnFacts(len(values), len(values) - len(present), len(set(present)))
    numbers = [number for number in map(_number, present) if number is not None] if column.kind.numeric else []
    if numbers:
        exact = dict(zip(map(_number, present), present, strict=True))
        mean = math.fsum(numbers) / len(numbers)
        facts.numbers = NumberFacts(exact[min(numbers)], exact[max(numbers)], mean, *bins(numbers))
    elif present:
        facts.least, facts.most = min(present), max(present)
        facts.common = Counter(present).most_common(MOST_COMMON)
    return facts


def summary(column: Column, facts: ColumnFacts, note: str) -> str:
    """Statistics as lines; `note` says which rows they cover."""
    lines = [
        f"{printable(column.name)}  {printable(column.exact_type)}",
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


def sort_key(column: Column, value: str | None) -> tuple[int, float, str]:
    """A sort key: NULLs last, numbers by value, everything else as text."""
    if value is None:
        return 2, 0.0, ""
    number = _number(value) if column.kind.numeric else None
    return (0, number, "") if number is not None else (1, 0.0, value)


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _histogram(edges: Sequence[float], counts: Sequence[int]) -> list[str]:
    most = max(counts) or 1
    labels = [bin_label(low, high) for low, high in pairwise(edges)]
    side = max(map(len, labels))
    return [
        f"{label.rjust(side)}  {in_locale('█') * round(BAR * count / most)} {count:,}"
        for label, count in zip(labels, counts, strict=True)
    ]
