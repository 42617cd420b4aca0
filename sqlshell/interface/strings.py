"""SQL with which DuckDB makes the interface's strings of values; the service and readers of whole results use it."""

from __future__ import annotations

NATIVE = frozenset(
    {
        "bigint", "blob", "boolean", "date", "decimal", "double", "float", "integer", "smallint", "timestamp",
        "timestamp with time zone", "tinyint", "ubigint", "uinteger", "usmallint", "utinyint",
    }
)  # fmt: skip
"""Ids of the types whose values come back from a Parquet file unchanged."""

ZONED = "timestamp with time zone"


def literal(text: str) -> str:
    """A string literal for a statement."""
    return "'" + text.replace("'", "''") + "'"


def string_of(type_id: str, name: str) -> str:
    """SQL for the string of the value `name`, whose type is NATIVE or VARCHAR; NULL stays NULL, instants are in UTC."""
    match type_id:
        case "blob":
            return f"base64({name})"
        case "float" | "double":
            return (
                f"CASE WHEN isfinite({name}) THEN {name}::VARCHAR WHEN isnan({name}) THEN 'NaN' "
                f"WHEN {name} > 0 THEN 'Infinity' WHEN {name} < 0 THEN '-Infinity' END"
            )
        case "timestamp with time zone":
            return (
                f"CASE WHEN isfinite({name}) THEN concat(make_timestamp(epoch_us({name})), 'Z') "
                f"ELSE {name}::VARCHAR END"
            )
        case "varchar":
            return name
    return f"{name}::VARCHAR"
