"""The interface's types by the names that an engine other than DuckDB has for them: `DOUBLE` is PostgreSQL's `double
precision`, and a STRUCT its `jsonb`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from sqlshell.interface.types import base, field_of, is_named, parts_of, size_of
from sqlshell.result import Column


class _Names(Struct, frozen=True):
    """An engine's names of types. `plain` are by those of the interface, `sized` keep their length or precision;
    `further` are types that the interface does not have. Times have the precision `digits` without saying so, and at
    most that, if a precision can be written at all (`precise`)."""

    plain: Mapping[str, str]
    sized: Mapping[str, str]
    nested: str
    """The type of values that are written as JSON; "" if the engine has the interface's nested types."""
    further: Sequence[str]
    digits: int = 6
    precise: bool = False
    knows_nulls: bool = True
    """Whether the engine knows which columns of a result contain no NULL."""


_POSTGRESQL: Final = _Names(
    {
        "BOOLEAN": "boolean",
        "TINYINT": "smallint",
        "SMALLINT": "smallint",
        "INTEGER": "integer",
        "BIGINT": "bigint",
        "FLOAT": "real",
        "DOUBLE": "double precision",
        "DECIMAL": "numeric",
        "VARCHAR": "text",
        "CHAR": "character",
        "VARBINARY": "bytea",
        "DATE": "date",
        "TIME": "time without time zone",
        "TIMESTAMP": "timestamp without time zone",
        "TIMESTAMP_LTZ": "timestamp with time zone",
    },
    {"DECIMAL": "numeric", "VARCHAR": "character varying", "CHAR": "character"},
    "jsonb",
    (
        *("timestamptz", "timestamp", "time", "varchar", "char", "int", "serial", "bigserial", "json", "jsonb", "uuid"),
        *("interval", "inet", "cidr", "macaddr", "money", "bit", "xml", "point", "box", "tsvector", "tsquery", "oid"),
        *("regclass", "int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange"),
    ),
    precise=True,
    knows_nulls=False,
)
_SPARK: Final = _Names(
    {
        "BOOLEAN": "boolean",
        "TINYINT": "tinyint",
        "SMALLINT": "smallint",
        "INTEGER": "int",
        "BIGINT": "bigint",
        "FLOAT": "float",
        "DOUBLE": "double",
        "DECIMAL": "decimal",
        "VARCHAR": "string",
        "CHAR": "string",
        "VARBINARY": "binary",
        "DATE": "date",
        "TIME": "time",
        "TIMESTAMP": "timestamp_ntz",
        "TIMESTAMP_LTZ": "timestamp",
    },
    {"DECIMAL": "decimal"},
    "",
    ("array", "map", "struct", "interval", "variant"),
)
_ENGINES: Final[Mapping[str, _Names]] = {"postgresql": _POSTGRESQL, "spark": _SPARK}


def engine_type(text: str, engine: str) -> str:
    """The engine's name of a type of the interface; the same text for one that it does not have, and on DuckDB ("")."""
    names = _ENGINES.get(engine)
    return text if names is None else _named(text, names)


def as_on_engine(column: Column, engine: str) -> Column:
    """The column as people know it on the engine: with its name of the type, and without what it does not know."""
    names = _ENGINES.get(engine)
    if names is None:
        return column
    nullable = column.nullable if names.knows_nulls or not column.nullable else None
    return replace(column, engine_type=column.engine_type or _named(column.type, names), nullable=nullable)


def engine_types(engine: str) -> list[str]:
    """The engine's types, the most usual ones first; none for DuckDB ("")."""
    names = _ENGINES.get(engine)
    return [] if names is None else list(dict.fromkeys([*names.plain.values(), *names.sized.values(), *names.further]))


def _named(text: str, names: _Names) -> str:
    name, parts = base(text), parts_of(text)
    if parts and name in {"ARRAY", "MAP", "STRUCT"}:
        return _nested(name, parts, names)
    sizes = size_of(text)
    if sizes and name in names.sized:
        return f"{names.sized[name]}({','.join(map(str, sizes))})"
    plain = names.plain.get(name)
    if plain is None:
        return text
    if names.precise and sizes and sizes[0] < names.digits:
        first, _, rest = plain.partition(" ")
        return f"{first}({sizes[0]}) {rest}"
    return plain


def _nested(name: str, parts: Sequence[str], names: _Names) -> str:
    if names.nested:
        return f"{_named(parts[0], names)}[]" if name == "ARRAY" else names.nested
    if name == "STRUCT" and all(map(is_named, parts)):
        inner = [f"{part.removesuffix(field_of(part)[1])}{_named(field_of(part)[1], names)}" for part in parts]
    else:
        inner = [_named(part, names) for part in parts]
    return f"{name.lower()}<{', '.join(inner)}>"
