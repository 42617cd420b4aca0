"""Unique column names, which formats for programs require."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlshell.result import Column


def distinct_names(columns: Sequence[Column]) -> list[str]:
    """The names of the columns; a repeated name becomes `a_1`, `a_2`, or the next one that is not in use."""
    taken = {column.name for column in columns}
    if len(taken) == len(columns):
        return [column.name for column in columns]
    seen: set[str] = set()
    numbers: dict[str, int] = {}
    names: list[str] = []
    for column in columns:
        number = numbers.get(column.name, 0)
        name = f"{column.name}_{number}" if number else column.name
        while name in seen or (number and name in taken):
            number += 1
            name = f"{column.name}_{number}"
        numbers[column.name] = number
        seen.add(name)
        names.append(name)
    return names


def distinct_in_any_case(columns: Sequence[Column]) -> list[str]:
    """The names of the columns for readers that ignore case, none of them empty."""
    from sqlshell.sql.duckdb_types import distinct_for_duckdb

    return distinct_for_duckdb(distinct_names(columns))


def warn_of_names(columns: Sequence[Column], warn: Callable[[str], None], *, fold_case: bool = False) -> None:
    """Warn about column names that a format for programs has to change."""
    names = distinct_in_any_case(columns) if fold_case else distinct_names(columns)
    changed = [f"{column.name} to {new}" for column, new in zip(columns, names, strict=True) if column.name != new]
    if changed:
        warn(f"duplicate column names were changed: {', '.join(changed[:5])}{', …' if len(changed) > 5 else ''}")
