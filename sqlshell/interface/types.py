"""The types of the interface, as far as a reader of values needs to tell them apart.

A type arrives as text: `DECIMAL(10,2)`, `TIMESTAMP_LTZ(3)`, `ARRAY<INTEGER>`, maybe with a hint after a semicolon
(`VARCHAR;nowrap`) and a `NOT NULL` behind it. Every value arrives as a string or null.
"""

from __future__ import annotations

import enum
import functools
import re


class Kind(enum.Enum):
    """How values of a type are treated by a reader."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "float"
    TEXT = "text"
    BYTES = "bytes"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    NESTED = "nested"

    @property
    def numeric(self) -> bool:
        return self in {Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT}


KINDS = {
    "BOOLEAN": Kind.BOOLEAN,
    "BOOL": Kind.BOOLEAN,
    "TINYINT": Kind.INTEGER,
    "SMALLINT": Kind.INTEGER,
    "INTEGER": Kind.INTEGER,
    "INT": Kind.INTEGER,
    "BIGINT": Kind.INTEGER,
    "FLOAT": Kind.FLOAT,
    "REAL": Kind.FLOAT,
    "DOUBLE": Kind.FLOAT,
    "DECIMAL": Kind.DECIMAL,
    "NUMERIC": Kind.DECIMAL,
    "VARCHAR": Kind.TEXT,
    "CHAR": Kind.TEXT,
    "STRING": Kind.TEXT,
    "BYTES": Kind.BYTES,
    "VARBINARY": Kind.BYTES,
    "BINARY": Kind.BYTES,
    "DATE": Kind.DATE,
    "TIME": Kind.TIME,
    "TIMESTAMP": Kind.TIMESTAMP,
    "TIMESTAMP_LTZ": Kind.TIMESTAMP,
    "TIMESTAMP_TZ": Kind.TIMESTAMP,
    "ARRAY": Kind.NESTED,
    "MAP": Kind.NESTED,
    "STRUCT": Kind.NESTED,
    "ROW": Kind.NESTED,
}

_NAME = re.compile(r"\s*([A-Za-z_0-9]+)")


def base(type_name: str) -> str:
    """The bare upper-case name of a type: `DECIMAL(10,2);nowrap` is `DECIMAL`; "" where there is none."""
    found = _NAME.match(type_name)
    return found.group(1).upper() if found else ""


@functools.lru_cache(maxsize=256)
def kind(type_name: str) -> Kind:
    """The kind of a type; unknown types are text."""
    return KINDS.get(base(type_name), Kind.TEXT)
