"""Pivots a result: the values of one column become rows, those of another columns, and a third fills the cells."""

from __future__ import annotations

from collections.abc import Sequence

from sqlshell.errors import UsageError
from sqlshell.result import Column, Result, Rows
from sqlshell.shell.results.rows import table_of

MOST_COLUMNS = 1_600


def crosstab(columns: Sequence[Column], rows: Rows, names: Sequence[str], null: str = "NULL") -> Result:
    """`names` are the columns for rows, columns and values, by name or number (from 1). A NULL is the header `null`.

    Raises UsageError for columns that do not exist, several values for one cell, and too many columns.
    """
    if len(columns) < 3 and len(names) < 3:
        raise UsageError(f"\\crosstab requires three columns, but the result has {len(columns)}")
    down, across, value = _places(columns, names)
    heads: dict[str | None, int] = {}
    lines: dict[str | None, dict[int, str | None]] = {}
    for row in rows:
        at = heads.setdefault(row[across], len(heads))
        if len(heads) > MOST_COLUMNS:
            raise UsageError(
                f"{columns[across].name} has more than {MOST_COLUMNS:,} distinct values",
                "use another column for COLUMN",
            )
        line = lines.setdefault(row[down], {})
        if at in line:
            raise UsageError(
                f"there are several values for {columns[down].name} {row[down]!r} and"
                f" {columns[across].name} {row[across]!r}",
                "use GROUP BY with both columns",
            )
        line[at] = row[value]
    titles = [(columns[down].name, columns[down].type)]
    titles += [(null if head is None else head, columns[value].type) for head in heads]
    return table_of(titles, [[key, *(line.get(at) for at in range(len(heads)))] for key, line in lines.items()])


def _places(columns: Sequence[Column], names: Sequence[str]) -> tuple[int, int, int]:
    """The positions of the three columns: the named ones, and the first free ones for the others."""
    places = [place(columns, name) for name in names]
    free = [at for at in range(len(columns)) if at not in places]
    places += free[: 3 - len(places)]
    if len(set(places)) < 3:
        raise UsageError("\\crosstab requires three different columns", "usage: \\crosstab ROW COLUMN VALUE")
    return places[0], places[1], places[2]


def place(columns: Sequence[Column], name: str) -> int:
    """The position of a column, by its name in any case, or by its number from 1. Raises UsageError."""
    low = [column.name.lower() for column in columns]
    if name in (column.name for column in columns):
        return [column.name for column in columns].index(name)
    if name.lower() in low:
        return low.index(name.lower())
    if name.isascii() and name.isdecimal() and 1 <= int(name) <= len(columns):
        return int(name) - 1
    raise UsageError(f'the result has no column "{name}"', f"columns: {', '.join(column.name for column in columns)}")
