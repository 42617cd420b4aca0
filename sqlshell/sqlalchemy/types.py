"""SQLAlchemy's types: those for DuckDB's names, and those whose values the DB-API has already converted to Python's."""

from __future__ import annotations

import re
import uuid
from decimal import Decimal
from typing import Any, Final

from sqlalchemy import types as sqltypes
from sqlalchemy.dialects.postgresql import INTERVAL

from sqlshell.sql.identifiers import literal

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


class Uuids(sqltypes.Uuid[Any]):
    """Accepts strings too, which a service without the type UUID returns."""

    def bind_processor(self, dialect: Any) -> Any:
        return None if self.native_uuid else super().bind_processor(dialect)

    def result_processor(self, dialect: Any, coltype: object) -> Any:
        if not self.native_uuid:
            return super().result_processor(dialect, coltype)  # type: ignore[no-untyped-call]
        if not self.as_uuid:
            return lambda value: None if value is None else str(value)
        return lambda value: uuid.UUID(value) if isinstance(value, str) else value


class Json(sqltypes.JSON):
    """Decodes only strings, which a service without the type JSON returns; the DB-API decodes JSON itself."""

    def result_processor(self, dialect: Any, coltype: Any) -> Any:
        return None if coltype in {"JSON", "JSONB"} else super().result_processor(dialect, coltype)


class _Path:
    """Binds a path in a JSON document as DuckDB's text for it."""

    def bind_processor(self, dialect: Any) -> Any:
        return _json_path

    def literal_processor(self, dialect: Any) -> Any:
        return lambda value: literal(_json_path(value))


class JsonIndex(_Path, sqltypes.JSON.JSONIndexType):
    pass


class JsonPath(_Path, sqltypes.JSON.JSONPathType):
    pass


def _json_path(value: Any) -> str:
    """`$."a"[0]`; the JSON pointer `/a/0` if a key is empty or `*`, which a path cannot name."""
    parts = (value,) if isinstance(value, int | str) else tuple(value)
    if {"", "*"} & {part for part in parts if isinstance(part, str)}:
        return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{_quoted(part)}" for part in parts)


def _quoted(key: str) -> str:
    escaped = key.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


class Decimals(sqltypes.Numeric[Any]):
    """Converts floats too, because DuckDB divides decimals as DOUBLE."""

    def result_processor(self, dialect: Any, coltype: object) -> Any:
        if self.asdecimal:
            return lambda value: Decimal(repr(value)) if isinstance(value, float) else value
        return lambda value: float(value) if isinstance(value, Decimal) else value


class Floats(sqltypes.Float[Any]):
    result_processor = Decimals.result_processor
