"""DuckDB's types for those of the interface, and CSV files as DuckDB reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sqlshell.interface.types import base, field_of, is_named, parts_of
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


def is_nested(kind: str) -> bool:
    """Whether JSON can be cast to this type of DuckDB."""
    return kind.endswith("]") or kind.startswith(("STRUCT(", "MAP(", "TUPLE("))


def _decimal(text: str) -> str:
    match = re.search(r"\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", text)
    if match is None:
        return "DECIMAL(38,9)" if "(" not in text else "DOUBLE"
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
    return f"CAST({f'json({name})' if is_text and is_nested(kind) else name} AS {kind})"


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
