"""SQL that reads a result, written as CSV, into DuckDB with its types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlshell.sql.duckdb_types import BYTES, TEXT, is_nested
from sqlshell.sql.identifiers import always_quoted, literal

PADDING: Final = "_pad"
"""The second column of a file for a result of one column: a line of one NULL would be empty."""

LONGEST_LINE: Final = 256 << 20
"""The maximum size of a row in bytes."""


def distinct_for_duckdb(given: Sequence[str]) -> list[str]:
    """Column names that differ in more than case, because DuckDB ignores case."""
    names: list[str] = []
    low: set[str] = set()
    numbers: dict[str, int] = {}
    for name in given:
        number = numbers.get(name.lower(), 0)
        unique = f"{name}_{number}" if number else name or "column"
        while unique.lower() in low:
            number += 1
            unique = f"{name}_{number}"
        numbers[name.lower()] = number
        low.add(unique.lower())
        names.append(unique)
    return names


def select_from_csv(path: str, names: Sequence[str], types: Sequence[str]) -> str:
    """A query for the rows of a file that write_csv_file() wrote, with columns of these types of DuckDB."""
    padding = [(PADDING, "INTEGER")] if len(names) == 1 else []
    read = [
        (name, "JSON" if is_nested(kind) else TEXT if kind == BYTES else kind)
        for name, kind in zip(names, types, strict=True)
    ]
    columns = ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in [*read, *padding])
    chosen = ", ".join(_cast(always_quoted(name), given, kind) for (name, given), kind in zip(read, types, strict=True))
    return (
        f"SELECT {chosen} FROM read_csv({literal(path)}, header = false, auto_detect = false, "
        f"delim = ',', quote = '\"', escape = '\"', nullstr = '', allow_quoted_nulls = false, "
        f"max_line_size = {LONGEST_LINE}, columns = {{{columns}}})"
    )


def _cast(name: str, given: str, kind: str) -> str:
    if kind == BYTES:
        return f"from_base64({name}) AS {name}"
    return name if kind == given else f"CAST(json({name}) AS {kind}) AS {name}"
