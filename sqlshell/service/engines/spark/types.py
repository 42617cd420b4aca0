"""Spark's types as those of the interface."""

from __future__ import annotations

from typing import Any, Final

from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.files.render import field_name

NAMES: Final = {
    "null": "VARCHAR",
    "boolean": "BOOLEAN",
    "byte": "TINYINT",
    "short": "SMALLINT",
    "integer": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "char": "VARCHAR",
    "var_char": "VARCHAR",
    "binary": "VARBINARY",
    "date": "DATE",
    "time": "TIME(6)",
    "timestamp": "TIMESTAMP_LTZ(6)",
    "timestamp_ntz": "TIMESTAMP(6)",
    "calendar_interval": "VARCHAR",
    "year_month_interval": "VARCHAR",
    "day_time_interval": "VARCHAR",
    "variant": "VARCHAR",
}
"""Scalar types by their names in the protocol, except DECIMAL. Others (GEOMETRY, unparsed, …) are VARCHAR."""

ENGINE: Final = {
    "calendar_interval": "INTERVAL",
    "year_month_interval": "INTERVAL YEAR TO MONTH",
    "day_time_interval": "INTERVAL DAY TO SECOND",
    "variant": "VARIANT",
}
"""Types that the interface has no name for."""


def columns_of(struct: Any) -> list[ColumnInfo]:
    """Return the columns of a result, from the message DataType of its rows."""
    return [_column(field) for field in struct.struct.fields]


def type_name(kind: Any, *, exact: bool = False) -> str:
    """Return the interface's name of a type; `exact` gives Spark's name for one that the interface does not have, also
    inside of nested types."""
    name = kind.WhichOneof("kind")
    match name:
        case "decimal":
            size = kind.decimal
            precision = size.precision if size.HasField("precision") else 10
            return f"DECIMAL({precision},{size.scale if size.HasField('scale') else 0})"
        case "array":
            return f"ARRAY<{type_name(kind.array.element_type, exact=exact)}>"
        case "map":
            parts = type_name(kind.map.key_type, exact=exact), type_name(kind.map.value_type, exact=exact)
            return f"MAP<{', '.join(parts)}>"
        case "struct":
            fields = ((field_name(item.name), type_name(item.data_type, exact=exact)) for item in kind.struct.fields)
            return f"STRUCT<{', '.join(map(' '.join, fields))}>"
        case "udt":
            return type_name(kind.udt.sql_type, exact=exact)
    return ENGINE[name] if exact and name in ENGINE else NAMES.get(name, "VARCHAR")


def _column(field: Any) -> ColumnInfo:
    named, own = type_name(field.data_type), type_name(field.data_type, exact=True)
    return ColumnInfo(field.name, named, field.nullable, engine_type=own if own != named else None)
