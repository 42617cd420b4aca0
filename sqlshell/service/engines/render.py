"""DuckDB's types in the interface's names, and the SQL that renders their values as the interface's strings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

NAMES = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "integer": "INTEGER",
    "bigint": "BIGINT",
    "hugeint": "DECIMAL(39,0)",
    "uhugeint": "DECIMAL(39,0)",
    "utinyint": "SMALLINT",
    "usmallint": "INTEGER",
    "uinteger": "BIGINT",
    "ubigint": "DECIMAL(20,0)",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "time": "TIME(6)",
    "time_ns": "TIME(9)",
    "timestamp": "TIMESTAMP(6)",
    "timestamp_s": "TIMESTAMP(0)",
    "timestamp_ms": "TIMESTAMP(3)",
    "timestamp_ns": "TIMESTAMP(9)",
    "timestamp with time zone": "TIMESTAMP_LTZ(6)",
    "blob": "VARBINARY",
}
"""Scalar types by DuckDB's id. What is not here (VARCHAR, UUID, ENUM, INTERVAL, UNION, BIT, TIMETZ, …) is VARCHAR."""

EXACT_IN_DOUBLE = 15
"""Decimal digits that a double, and so DuckDB's JSON numbers, keep."""

ZONED = "timestamp with time zone"

NULL = '"\\N"'
"""Stands for NULL in rows that are not finished."""

_MARK = "'\\N'"
_CONTROL = re.compile("[\x00-\x1f]")


def type_name(kind: Any) -> str:
    """The interface's name of a DuckDBPyType."""
    match kind.id:
        case "decimal":
            return str(kind).replace(" ", "")
        case "list" | "array":
            return f"ARRAY<{type_name(_children(kind)['child'])}>"
        case "map":
            parts = _children(kind)
            return f"MAP<{type_name(parts['key'])}, {type_name(parts['value'])}>"
        case "struct":
            return f"STRUCT<{', '.join(f'{name} {type_name(part)}' for name, part in kind.children)}>"
    return NAMES.get(kind.id, "VARCHAR")


def value(kind: Any, name: str) -> str:
    """SQL for the string of the value `name`, NULL staying NULL."""
    match kind.id:
        case "blob":
            return f"base64({name})"
        case "float" | "double":
            return (
                f"CASE WHEN isfinite({name}) THEN {name}::VARCHAR WHEN isnan({name}) THEN 'NaN' "
                f"WHEN {name} > 0 THEN 'Infinity' WHEN {name} < 0 THEN '-Infinity' END"
            )
        case "timestamp with time zone":
            return (
                f"CASE WHEN isfinite({name}) THEN make_timestamp(epoch_us({name}))::VARCHAR || 'Z' "
                f"ELSE {name}::VARCHAR END"
            )
        case "list" | "array" | "map" | "struct":
            return f"to_json({_nested(kind, name, 0)})::VARCHAR"
    return f"{name}::VARCHAR"


def _nested(kind: Any, name: str, depth: int) -> str:
    """SQL for a value inside a nested one, in a form that DuckDB's JSON keeps exactly."""
    match kind.id:
        case "hugeint" | "uhugeint" | "bignum":
            return f"{name}::VARCHAR"
        case "decimal" if int(str(kind).partition("(")[2].partition(",")[0]) > EXACT_IN_DOUBLE:
            return f"{name}::VARCHAR"
        case "blob":
            return f"base64({name})"
        case "float" | "double":
            return f"CASE WHEN isfinite({name}) THEN to_json({name}) ELSE to_json({value(kind, name)}) END"
        case "timestamp with time zone":
            return value(kind, name)
        case "list" | "array":
            child = _children(kind)["child"]
            part = f"v{depth}"
            inner = _nested(child, part, depth + 1)
            return name if inner == part else f"list_transform({name}::{child}[], lambda {part}: {inner})"
        case "map":
            parts = _children(kind)
            entry = f"v{depth}"
            inner = _nested(parts["value"], f"{entry}.value", depth + 1)
            if inner == f"{entry}.value":
                return name
            body = f"{{'key': {entry}.key, 'value': {inner}}}"
            return f"map_from_entries(list_transform(map_entries({name}), lambda {entry}: {body}))"
        case "struct":
            fields = [(field, _nested(part, f"{name}.{identifier(field)}", depth)) for field, part in kind.children]
            if not fields or all(inner == f"{name}.{identifier(field)}" for field, inner in fields):
                return name
            packed = ", ".join(f"{literal(field)}: {inner}" for field, inner in fields)
            return f"CASE WHEN {name} IS NOT NULL THEN {{{packed}}} END"
    return name


def _children(kind: Any) -> dict[str, Any]:
    return dict(kind.children)


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


NATIVE = frozenset(
    {
        "bigint", "blob", "boolean", "date", "decimal", "double", "float", "integer", "smallint", "timestamp",
        "tinyint", "ubigint", "uinteger", "usmallint", "utinyint",
    }
) | {ZONED}  # fmt: skip
"""Types whose values come back from a file of the engine's own as they went in."""


def stored(kind: Any, name: str) -> str:
    """SQL for a value as it is written to a file: itself, or its string where the file has no such type."""
    return name if kind.id in NATIVE or str(kind) == "VARCHAR" else value(kind, name)


PLAIN = NATIVE | {
    *("hugeint", "uhugeint", "uuid", "interval"),
    *("time", "time_ns", "timestamp_s", "timestamp_ms", "timestamp_ns"),
}
"""Types whose strings have nothing in them that JSON escapes."""


def row(kinds: Sequence[Any], names: Sequence[str]) -> str:
    """SQL for a row as the text of a JSON array of strings and nulls, once finished() has seen it.

    DuckDB holds 2,048 rows of each expression at a time, so that a result of thousands of columns is rendered with as
    few of them as can be: to_json() of each text would take several times the memory of the texts themselves.
    """
    parts = ["["]
    made: list[str] = []
    for kind, name in zip(kinds, names, strict=True):
        before, inner, behind = _quoted(kind, name)
        made += [literal(parts.pop() + before), inner]
        parts.append(behind + ",")
    return f"concat({', '.join(made)}, {literal(parts.pop().rstrip(',') + ']')})"


def finished(rows: str) -> str:
    """Rows of row() as JSON. In an escaped text no backslash stands before an N, so that none is taken for NULL."""
    if NULL in rows:
        rows = rows.replace(NULL, "null")
    return rows if rows.isprintable() else _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", rows)


def _quoted(kind: Any, name: str) -> tuple[str, str, str]:
    """SQL for a value, and the quotes before and behind it that are not in it."""
    if kind.id in PLAIN:
        return '"', f"coalesce({value(kind, name)}, {_MARK})", '"'
    if str(kind) == "VARCHAR":
        escaped = f"replace(replace({name}, '\\', '\\\\'), '\"', '\\\"')"
        special = f"contains({name}, '\"') OR contains({name}, '\\')"
        return '"', f"CASE WHEN {name} IS NULL THEN {_MARK} WHEN {special} THEN {escaped} ELSE {name} END", '"'
    return "", f"coalesce(to_json({value(kind, name)})::VARCHAR, 'null')", ""
