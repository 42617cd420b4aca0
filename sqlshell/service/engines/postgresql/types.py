"""The interface's names of PostgreSQL's types, and what becomes of their values.

Values are the text that PostgreSQL prints, except those of BOOLEAN and VARBINARY, for which the interface has a form of
its own. Arrays, ranges, composites and all types that the interface does not have are VARCHAR, with PostgreSQL's name
as the engine's type.
"""

from __future__ import annotations

from typing import Final

BOOL: Final = 16
BYTEA: Final = 17

_HEADER: Final = 4
"""What PostgreSQL adds to the length of a type with one."""

_PLAIN: Final = {
    BOOL: "BOOLEAN",
    BYTEA: "VARBINARY",
    19: "VARCHAR",  # name
    20: "BIGINT",
    21: "SMALLINT",
    23: "INTEGER",
    25: "VARCHAR",  # text
    26: "BIGINT",  # oid
    700: "FLOAT",
    701: "DOUBLE",
    705: "VARCHAR",  # unknown
    1082: "DATE",
}
"""The interface's types by PostgreSQL's OID, for types without a length or precision."""

_TIMES: Final = {1083: "TIME", 1114: "TIMESTAMP", 1184: "TIMESTAMP_LTZ"}
_LENGTHS: Final = {1042: "CHAR", 1043: "VARCHAR"}
_UNBOUNDED: Final = {1042: "bpchar", 1043: "character varying"}
_NUMERIC: Final = 1700
_NAMED: Final = {
    19: "name",
    26: "oid",
    114: "JSON",
    142: "XML",
    790: "MONEY",
    1186: "INTERVAL",
    1266: "TIMETZ",
    2950: "UUID",
    3802: "JSONB",
}
"""Types that the interface has no name for, but readers of values know."""


def interface_type(oid: int, modifier: int) -> str:
    """Return the interface's name of a type; VARCHAR for types that it does not have."""
    if oid in _PLAIN:
        return _PLAIN[oid]
    if oid in _TIMES:
        return f"{_TIMES[oid]}({modifier if modifier >= 0 else 6})"
    if oid in _LENGTHS:
        return f"{_LENGTHS[oid]}({modifier - _HEADER})" if modifier >= _HEADER else "VARCHAR"
    if oid == _NUMERIC:
        return _decimal(modifier)
    return "VARCHAR"


def engine_type(oid: int, modifier: int) -> str | None:
    """PostgreSQL's name of a type: "" if only the server knows it, None if it follows from interface_type()."""
    if oid in _LENGTHS and modifier < _HEADER:
        return _UNBOUNDED[oid]
    if oid == _NUMERIC and modifier >= _HEADER and "(" not in _decimal(modifier):
        return ""
    if oid in _PLAIN or oid in _TIMES or oid in _LENGTHS or oid == _NUMERIC:
        return _NAMED.get(oid)
    return _NAMED.get(oid, "")


def _decimal(modifier: int) -> str:
    """DECIMAL(p,s); DECIMAL for a numeric without precision, or with a scale that the interface does not have."""
    if modifier < _HEADER:
        return "DECIMAL"
    precision, scale = (modifier - _HEADER) >> 16, (modifier - _HEADER) & 0x7FF
    # The scale has eleven bits and a sign.
    scale = (scale ^ 1024) - 1024
    return f"DECIMAL({precision},{scale})" if 0 <= scale <= precision else "DECIMAL"
