"""Column names where each must be different."""

from __future__ import annotations

from collections.abc import Sequence

from sqlshell.result import Column


def distinct_names(columns: Sequence[Column]) -> list[str]:
    """The columns' names; a name that was there before becomes `a_1`, `a_2`, past names that are taken already."""
    taken = {column.name for column in columns}
    if len(taken) == len(columns):
        return [column.name for column in columns]
    seen: set[str] = set()
    names: list[str] = []
    for column in columns:
        name, number = column.name, 0
        while name in seen or (number and name in taken):
            number += 1
            name = f"{column.name}_{number}"
        seen.add(name)
        names.append(name)
    return names


def renamed(columns: Sequence[Column]) -> list[tuple[str, str]]:
    """The names that distinct_names() changed, as (old, new)."""
    if len({column.name for column in columns}) == len(columns):
        return []
    pairs = zip((column.name for column in columns), distinct_names(columns), strict=True)
    return [(old, new) for old, new in pairs if old != new]
