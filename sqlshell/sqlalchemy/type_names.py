"""SQLAlchemy's types for DuckDB's names of types."""

from __future__ import annotations

import re
from typing import Any, Final

from sqlalchemy import types as sqltypes
from sqlalchemy.dialects.postgresql import INTERVAL

_SIZES: Final = re.compile(r"(\w[\w ]*?)\s*\(\s*(\d+)(?:\s*,\s*(\d+))?\s*\)")
_ENUM: Final = re.compile(r"'((?:[^']|'')*)'")

_NAMES: Final[dict[str, type[sqltypes.TypeEngine[Any]]]] = {
    "BOOLEAN": sqltypes.BOOLEAN,
    "TINYINT": sqltypes.SMALLINT,
    "UTINYINT": sqltypes.SMALLINT,
    "SMALLINT": sqltypes.SMALLINT,
    "USMALLINT": sqltypes.INTEGER,
    "INTEGER": sqltypes.INTEGER,
    "UINTEGER": sqltypes.BIGINT,
    "BIGINT": sqltypes.BIGINT,
    "UBIGINT": sqltypes.NUMERIC,
    "HUGEINT": sqltypes.NUMERIC,
    "UHUGEINT": sqltypes.NUMERIC,
    "FLOAT": sqltypes.REAL,
    "DOUBLE": sqltypes.DOUBLE,
    "VARCHAR": sqltypes.VARCHAR,
    "BLOB": sqltypes.BLOB,
    "DATE": sqltypes.DATE,
    "TIME": sqltypes.TIME,
    "TIMESTAMP": sqltypes.TIMESTAMP,
    "TIMESTAMP_S": sqltypes.TIMESTAMP,
    "TIMESTAMP_MS": sqltypes.TIMESTAMP,
    "TIMESTAMP_NS": sqltypes.TIMESTAMP,
    "UUID": sqltypes.UUID,
    "JSON": sqltypes.JSON,
    "INTERVAL": INTERVAL,
}


def type_of(name: str) -> sqltypes.TypeEngine[Any]:
    """The type of a column; NullType if SQLAlchemy does not have it, as for a STRUCT."""
    if name.endswith("[]"):
        return sqltypes.ARRAY(type_of(name.removesuffix("[]")))
    if name.startswith("TIMESTAMP WITH TIME ZONE"):
        return sqltypes.TIMESTAMP(timezone=True)
    if name.startswith("ENUM("):
        return sqltypes.Enum(*(label.replace("''", "'") for label in _ENUM.findall(name)))
    sizes = _SIZES.fullmatch(name)
    if sizes is not None and sizes[1] in {"DECIMAL", "NUMERIC"}:
        return sqltypes.NUMERIC(int(sizes[2]), int(sizes[3] or 0))
    found = _NAMES.get(name)
    return sqltypes.NULLTYPE if found is None else found()
