"""What the values of one column are like: NULLs, different ones, the least and the greatest, how they are spread."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from sqlshell.output.text.cells import printable
from sqlshell.output.text.display_format import indented
from sqlshell.result import Column
from sqlshell.shell.charts.charts import bin_label, bins

BAR = 30
MOST_COMMON = 10


def summary(column: Column, values: Sequence[str | None], note: str) -> str:
    """Lines about the values; `note` says which those are."""
    present = [value for value in values if value is not None]
    lines = [
        f"{printable(column.name)}  {printable(column.type)}",
        note,
        "",
        f"rows      {len(values):,}",
        f"nulls     {len(values) - len(present):,}",
        f"distinct  {len(set(present)):,}",
    ]
    numbers = [number for number in map(_number, present) if number is not None] if column.kind.numeric else []
    if numbers:
        exact = dict(zip(map(_number, present), present, strict=True))
        lines += [
            f"min       {exact[min(numbers)]}",
            f"max       {exact[max(numbers)]}",
            f"mean      {math.fsum(numbers) / len(numbers):.6g}",
            "",
            *_histogram(numbers),
        ]
    elif present:
        lines += [f"min       {printable(min(present))[:60]}", f"max       {printable(max(present))[:60]}", ""]
        common = Counter(present).most_common(MOST_COMMON)
        most = common[0][1]
        lines += [
            f"{'█' * max(1, round(BAR * count / most))} {count:,}  {printable(value)[:60]}" for value, count in common
        ]
    return "\n".join(lines)


def pretty(column: Column, value: str | None) -> str:
    """One value for a person: JSON and nested ones laid out."""
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
    """NULLs last, numbers by value, all else by text."""
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


def _histogram(numbers: Sequence[float]) -> list[str]:
    edges, counts = bins(numbers)
    most = max(counts) or 1
    labels = [bin_label(low, high) for low, high in pairwise(edges)]
    side = max(map(len, labels))
    return [
        f"{label.rjust(side)}  {'█' * round(BAR * count / most)} {count:,}"
        for label, count in zip(labels, counts, strict=True)
    ]
