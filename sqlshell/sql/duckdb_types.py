"""DuckDB's types for those of the interface, and CSV files as DuckDB reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sqlshell.interface.types import base, field_of, is_named, parts_of, size_of
from sqlshell.sql.identifiers import always_quoted, literal

TEXT: Final = "VARCHAR"
BYTES: Final = "BLOB"
PLAIN: Final = frozenset(
    {"BOOLEAN", "FLOAT", "REAL", "DOUBLE", "DATE", "TIME", "UUID", "INTERVAL", "INTEGER", "UINTEGER", "JSON"}
    | {f"{sign}{size}INT" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG", "HUGE")}
)
"""Types that have the same name in DuckDB."""
OTHER: Final = {
    "INT": "INTEGER",
    "BOOL": "BOOLEAN",
    "TIMESTAMP": "TIMESTAMP",
    "TIMESTAMP_LTZ": "TIMESTAMPTZ",
    "TIMESTAMP_TZ": "TIMESTAMPTZ",
    "VARIANT": "JSON",
}
NANOSECONDS: Final = {"TIME": "TIME_NS", "TIMESTAMP": "TIMESTAMP_NS", "TIMESTAMP_LTZ": "TIMESTAMPTZ_NS"}
"""Types for values with more than six digits of a second."""
UNSIZED: Final = "DECIMAL(38,9)"
"""The type of decimals of any size, unless places() finds one for their values."""
BINARY: Final = frozenset({"BYTES", "VARBINARY", "BINARY"})
NESTED: Final = frozenset({"ARRAY", "MAP", "STRUCT", "ROW"})
DEEPEST = 20


def duckdb_type(text: str, depth: int = 0) -> str:
    """DuckDB's type for a type of the interface; VARCHAR for unknown types."""
    name = base(text)
    if name in {"DECIMAL", "NUMERIC"}:
        return _decimal(text)
    if name in PLAIN:
        return name
    if name in BINARY and not depth:
        return BYTES
    if name not in NESTED or depth > DEEPEST:
        return OTHER.get(name, TEXT)
    parts = parts_of(text)
    if name == "ARRAY" and len(parts) == 1:
        return f"{duckdb_type(parts[0], depth + 1)}[]"
    if name == "MAP" and len(parts) == 2:
        return f"MAP({duckdb_type(parts[0], depth + 1)}, {duckdb_type(parts[1], depth + 1)})"
    if name in {"STRUCT", "ROW"} and parts:
        if all(not is_named(part) for part in parts):
            return f"TUPLE({', '.join(duckdb_type(part, depth + 1) for part in parts)})"
        fields = [field_of(part) for part in parts]
        members = [f"{always_quoted(field)} {duckdb_type(kind, depth + 1)}" for field, kind in fields]
        return f"STRUCT({', '.join(members)})"
    return "JSON"


def exact_type(text: str) -> str:
    """As duckdb_type(), with all digits of a second."""
    name, sizes = base(text), size_of(text)
    return NANOSECONDS[name] if name in NANOSECONDS and sizes and sizes[0] > 6 else duckdb_type(text)


def is_nested(kind: str) -> bool:
    """Whether JSON can be cast to this type of DuckDB."""
    return kind.endswith("]") or kind.startswith(("STRUCT(", "MAP(", "TUPLE("))


def _decimal(text: str) -> str:
    match = re.search(r"\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", text)
    if match is None:
        return UNSIZED if "(" not in text else "DOUBLE"
    digits, places = int(match[1]), int(match[2] or 0)
    if digits > 38 and not places:
        return "HUGEINT"
    return f"DECIMAL({digits},{places})" if 0 < digits <= 38 and places <= digits else "DOUBLE"


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


def value_of(name: str, kind: str, *, is_text: bool) -> str:
    """SQL for a value as a type of DuckDB; `is_text` says whether it is the interface's string of the value."""
    if is_text and kind == BYTES:
        return f"from_base64({name})"
    if is_text and kind.startswith(("DATE", "TIMESTAMP")):
        # PostgreSQL writes BC at the end, which DuckDB would leave out in silence: such a text must not fit.
        name = f"CASE WHEN suffix({name}, ' BC') THEN '?' || {name} ELSE {name} END"
    return f"CAST({f'json({name})' if is_text and is_nested(kind) else name} AS {kind})"


def digits(names: Sequence[str], source: str) -> str:
    """A query for the greatest numbers of digits before and after the point, two for each column of decimals."""
    parts = [f"max(strlen(split_part(ltrim({name}, '-'), '.', {part})))" for name in names for part in (1, 2)]
    return f"SELECT {', '.join(parts)} FROM {source}"


def sized(found: Sequence[int | None]) -> list[str]:
    """The types for what digits() has found, which keep all digits; VARCHAR where a decimal has more than 38."""
    pairs = [(before or 0, after or 0) for before, after in zip(found[::2], found[1::2], strict=True)]
    return [f"DECIMAL(38,{after})" if before + after <= 38 else TEXT for before, after in pairs]


def select_from_csv(path: str, names: Sequence[str], types: Sequence[str]) -> str:
    """A query for the rows of a file as CsvRows writes them, with columns of these types of DuckDB, none of which is
    nested."""
    padding = [(PADDING, "INTEGER")] if len(names) == 1 else []
    read = [(name, TEXT if kind == BYTES else kind) for name, kind in zip(names, types, strict=True)]
    columns = ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in [*read, *padding])
    quoted = map(always_quoted, names)
    chosen = (
        f"from_base64({name}) AS {name}" if kind == BYTES else name for name, kind in zip(quoted, types, strict=True)
    )
    return (
        f"SELECT {', '.join(chosen)} FROM read_csv({literal(path)}, header = false, auto_detect = false, "
        f"delim = ',', quote = '\"', escape = '\"', nullstr = '', allow_quoted_nulls = false, "
        f"max_line_size = {LONGEST_LINE}, columns = {{{columns}}})"
    )
