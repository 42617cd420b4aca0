"""Converts the interface's types to DuckDB's: `ARRAY<INTEGER>` is `INTEGER[]`, `STRUCT<a INTEGER>` is
`STRUCT("a" INTEGER)`.
"""

from __future__ import annotations

import re
from typing import Final

from sqlshell.interface.types import base, field_of, is_named, parts_of
from sqlshell.sql.identifiers import always_quoted

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


def nested(text: str) -> bool:
    """Whether values of the type are transferred as JSON."""
    return base(text) in NESTED


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
