"""The interface's types as DuckDB's: `ARRAY<INTEGER>` is `INTEGER[]`, `STRUCT<a INTEGER>` is `STRUCT("a" INTEGER)`."""

from __future__ import annotations

import re
from typing import Final

from sqlshell.interface.types import base
from sqlshell.sql.identifiers import always_quoted

TEXT: Final = "VARCHAR"
BYTES: Final = "BLOB"
PLAIN: Final = frozenset(
    {"BOOLEAN", "FLOAT", "REAL", "DOUBLE", "DATE", "TIME", "UUID", "INTERVAL", "INTEGER", "UINTEGER", "JSON"}
    | {f"{sign}{size}INT" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG", "HUGE")}
)
"""Types that DuckDB has by the same name."""
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
    """DuckDB's type for one of the interface; text for what it does not have."""
    name = base(text)
    if name in {"DECIMAL", "NUMERIC"}:
        return _decimal(text)
    if name in PLAIN:
        return name
    if name in BINARY and not depth:
        return BYTES
    if name not in NESTED or depth > DEEPEST:
        return OTHER.get(name, TEXT)
    inside = text[text.find("<") + 1 : text.rfind(">")] if "<" in text and ">" in text else ""
    parts = _parts(inside)
    if name == "ARRAY" and len(parts) == 1:
        return f"{duckdb_type(parts[0], depth + 1)}[]"
    if name == "MAP" and len(parts) == 2:
        return f"MAP({duckdb_type(parts[0], depth + 1)}, {duckdb_type(parts[1], depth + 1)})"
    if name in {"STRUCT", "ROW"} and parts:
        if all(not _named(part) for part in parts):
            return f"TUPLE({', '.join(duckdb_type(part, depth + 1) for part in parts)})"
        fields = [_field(part) for part in parts]
        made = [f"{always_quoted(field)} {duckdb_type(kind, depth + 1)}" for field, kind in fields]
        return f"STRUCT({', '.join(made)})"
    return "JSON"


def nested(text: str) -> bool:
    """Whether values of the type are JSON, as they come."""
    return base(text) in NESTED


def _named(part: str) -> bool:
    """Whether a field has a name before its type: one of a tuple is the type alone."""
    return _field(part)[0] != part


def _field(text: str) -> tuple[str, str]:
    """A field's name, which may hold blanks, and its type, which holds some only in brackets."""
    text = re.sub(r"(?<!\s)\s++NOT\s++NULL\s*+$", "", text, flags=re.IGNORECASE)
    depth = 0
    for at in range(len(text) - 1, 0, -1):
        depth += (text[at] in ">)") - (text[at] in "<(")
        if not depth and text[at] == " ":
            name = text[:at].strip().removesuffix(":")
            quoted = len(name) > 1 and name[0] == name[-1] and name[0] in '"`'
            return (name[1:-1].replace(name[0] * 2, name[0]) if quoted else name), text[at + 1 :]
    return text, TEXT


def is_nested(kind: str) -> bool:
    """Whether a type of DuckDB's is one that JSON is cast to."""
    return kind.endswith("]") or kind.startswith(("STRUCT(", "MAP(", "TUPLE("))


def _decimal(text: str) -> str:
    found = re.search(r"\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", text)
    if found is None:
        return "DECIMAL(38,9)" if "(" not in text else "DOUBLE"
    digits, places = int(found[1]), int(found[2] or 0)
    if digits > 38 and not places:
        return "HUGEINT"
    return f"DECIMAL({digits},{places})" if 0 < digits <= 38 and places <= digits else "DOUBLE"


def _parts(text: str) -> list[str]:
    """What commas outside of brackets and quotes separate."""
    parts, depth, quote, begun = [], 0, "", 0
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in '"`':
            quote = char
        elif char in "<(":
            depth += 1
        elif char in ">)":
            depth -= 1
        elif char == "," and not depth:
            parts.append(text[begun:at].strip())
            begun = at + 1
    rest = text[begun:].strip()
    return [*parts, rest] if rest else parts
