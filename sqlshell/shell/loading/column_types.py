"""Types of a table's columns: what values are converted to before they are sent, and how they are written in SQL."""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec import Struct

from sqlshell.interface.types import Kind, base, field_of, kind, parts_of, size_of
from sqlshell.shell.loading.nested_text import nested_from_text
from sqlshell.sql.duckdb_types import BYTES, TEXT, duckdb_type, is_nested
from sqlshell.sql.identifiers import always_quoted

_PRECISE: Final = re.compile(r'("(?:[^"]|"")*")|\bTIME(?:STAMP(?:_L?TZ)?)?\((?:[7-9]|\d{2,})\)')
"""The names of fields, and times with more digits than DuckDB's types of the same name keep."""
_LOSSY: Final = re.compile(r"HUGEINT|BIGNUM|TUPLE\(")
"""Types that a Parquet file does not keep."""
_PLAIN_TYPE: Final = re.compile(r"[A-Za-z_][\w ]*(?:\(\d+(?:,\s*\d+)?\))?(?: WITH(?:OUT)? (?:LOCAL )?TIME ZONE)?")
"""A type that can be written behind AS in a CAST."""
_INSTANTS: Final = frozenset({"DATE", "TIMESTAMP", "TIMESTAMPTZ"})
_LTZ: Final = frozenset({"TIMESTAMP_LTZ", "TIMESTAMP_TZ"})


class TargetColumn(Struct, frozen=True):
    """A column of the table: its name, and its type as reported by the service."""

    name: str
    type: str

    @property
    def converted(self) -> str:
        """The DuckDB type to which the shell converts values; text for types that only the service can convert."""
        return _converted(self.type)

    @property
    def has_encoded_text(self) -> bool:
        """Whether values of the type have an encoded text form: bytes, and types written as JSON."""
        return self.converted == BYTES or is_nested(self.converted)

    @property
    def whole(self) -> bool:
        """Whether the service says that it is a type of whole numbers."""
        return kind(self.type) is Kind.INTEGER

    @property
    def instant(self) -> bool:
        """Whether values are converted to dates or timestamps."""
        return self.converted in _INSTANTS

    def from_text(self, text: str, binary: str) -> str:
        """SQL for the value of a text, which is an expression. `binary` says how bytes are written: "hex" is `\\x6162`,
        and DuckDB's own form for what is none; "escaped" is DuckDB's own form, `a\\x62`; "base64"."""
        if self.converted == BYTES:
            if binary == "base64":
                return f"from_base64({text})"
            if binary == "escaped":
                return f"{text}::BLOB"
            return (
                f"CASE WHEN regexp_full_match({text}, '\\\\x([0-9A-Fa-f]{{2}})*') THEN unhex(substr({text}, 3)) "
                f"ELSE {text}::BLOB END"
            )
        if is_nested(self.converted):
            return nested_from_text(text, self.type, self.converted)
        if self.instant:
            return _instant_from_text(text, self.converted)
        return f"CAST({text} AS {self.converted})"

    def literal(self, value: str) -> str:
        """SQL of an expression that gives the value as an SQL literal. `value` is an expression of `converted`."""
        return f"CASE WHEN {value} IS NULL THEN 'NULL' ELSE {_literal(self.type, self.converted, value, 0)} END"


def _instant_from_text(text: str, type_: str) -> str:
    """SQL for a date or a timestamp. PostgreSQL's `0044-03-15 10:00:00 BC` is before Christ. An error for what DuckDB
    drops: any word after a date in CSV, and after a time if it is no time zone, such as PM.
    """
    value, trimmed = f"CAST({text} AS {type_})", f"trim({text}, ' \t')"
    stripped = f"CAST({trimmed} AS {type_})"
    # Nearly all end in a digit, for which nothing else is evaluated.
    return (
        f"CASE WHEN ({text})[-1] BETWEEN '0' AND '9' THEN {value} "
        f"WHEN ends_with(upper({trimmed}), ' BC') "
        f"THEN CAST(regexp_replace({trimmed}, '^(\\S+)(.*) BC$', '\\1 (BC)\\2', 'i') AS {type_}) "
        f"WHEN CAST({stripped} AS {TEXT}) = {trimmed} THEN {stripped} "
        f"WHEN TRY_CAST({trimmed} AS TIMESTAMPTZ) IS NULL THEN CAST('>' || {text} AS {type_}) ELSE {stripped} END"
    )


def may_be_dropped(text: str, value: str) -> str:
    """SQL: whether DuckDB's reader of CSV may read a text as another date than `value`, or read an invalid date."""
    begins = f"TRY_CAST(regexp_extract({text}, '^\\s*[-+]?\\d+\\D\\d+\\D\\d+') AS DATE) IS NOT NULL"
    return f"{begins} AND (TRY({value}) IS NULL OR ends_with(upper(trim({text})), ' BC'))"


def _converted(declared: str) -> str:
    if kind(declared) is Kind.DECIMAL and not size_of(declared):
        # A DECIMAL without a size has any number of digits, such as PostgreSQL's numeric.
        return TEXT
    converted = duckdb_type(_PRECISE.sub(lambda part: part[1] or TEXT, declared))
    return TEXT if _LOSSY.search(converted) or converted == "JSON" else converted


def _literal(declared: str, converted: str, value: str, depth: int) -> str:
    """As TargetColumn.literal(), for a value that is not NULL."""
    what = kind(declared)
    text = f"'''' || replace(({value})::VARCHAR, '''', '''''') || ''''"
    if what is Kind.NESTED and converted != TEXT:
        return _nested(declared, value, depth)
    if what in {Kind.INTEGER, Kind.DECIMAL} and converted != TEXT:
        return f"({value})::VARCHAR"
    if what is Kind.BOOLEAN:
        return f"CASE WHEN {value} THEN 'TRUE' ELSE 'FALSE' END"
    if what is Kind.FLOAT:
        cast = f"'CAST(''' || ({value})::VARCHAR || ''' AS {base(declared)})'"
        return f"CASE WHEN isfinite({value}) THEN ({value})::VARCHAR ELSE {cast} END"
    if what is Kind.BYTES:
        return f"'FROM_BASE64(''' || to_base64({value}) || ''')'"
    if base(declared) in _LTZ and converted != TEXT:
        utc = f"(({value}) AT TIME ZONE 'UTC')::VARCHAR"
        text = f"'''' || {utc} || CASE WHEN isfinite({value}) THEN '+00' ELSE '' END || ''''"
    if what is Kind.TEXT or not _PLAIN_TYPE.fullmatch(declared):
        return text
    return f"'CAST(' || {text} || ' AS {declared})'"


def _nested(declared: str, value: str, depth: int) -> str:
    name, parts, item = base(declared), parts_of(declared), f"x{depth}"

    def inner(kind_: str, expression: str) -> str:
        written = _literal(kind_, _converted(kind_), expression, depth + 1)
        return f"CASE WHEN {expression} IS NULL THEN 'NULL' ELSE {written} END"

    if name == "ARRAY":
        items = f"list_transform({value}, lambda {item}: {inner(parts[0], item)})"
        return f"'CAST(ARRAY[' || array_to_string({items}, ', ') || '] AS {declared})'"
    if name == "MAP":
        pair = f"{inner(parts[0], f'{item}.key')} || ', ' || {inner(parts[1], f'{item}.value')}"
        items = f"list_transform(map_entries({value}), lambda {item}: {pair})"
        written = f"'MAP[' || array_to_string({items}, ', ') || ']'"
        # MAP[] would be the subscript of a column.
        return f"'CAST(' || CASE WHEN cardinality({value}) = 0 THEN '''{{}}''' ELSE {written} END || ' AS {declared})'"
    members = " || ', ' || ".join(
        inner(each, f"({value}).{always_quoted(field)}") for field, each in map(field_of, parts)
    )
    return f"'CAST(ROW(' || {members} || ') AS {declared})'"


def interface_type(type_: Any) -> str:
    """The interface's name of a type of DuckDB's, for CREATE TABLE."""
    name = str(type_.id)
    children = dict(type_.children) if name in {"list", "array", "struct", "map"} else {}
    match name:
        case "list" | "array":
            return f"ARRAY<{interface_type(children['child'])}>"
        case "map":
            return f"MAP<{interface_type(children['key'])}, {interface_type(children['value'])}>"
        case "struct":
            parts = (f"{always_quoted(field)} {interface_type(each)}" for field, each in children.items())
            return f"STRUCT<{', '.join(parts)}>"
        case "timestamp with time zone" | "timestamp_tz":
            return "TIMESTAMP_LTZ(6)"
        case "timestamp" | "timestamp_s" | "timestamp_ms" | "timestamp_us":
            return "TIMESTAMP(6)"
        case "timestamp_ns":
            return "TIMESTAMP(9)"
        case "timestamptz_ns":
            return "TIMESTAMP_LTZ(9)"
        case "time":
            return "TIME(6)"
        case "time_ns":
            return "TIME(9)"
        case "blob":
            return "VARBINARY"
        case "decimal" | "boolean" | "tinyint" | "smallint" | "integer" | "bigint" | "float" | "double" | "date":
            return str(type_)
        case "utinyint" | "usmallint" | "uinteger":
            return {"utinyint": "SMALLINT", "usmallint": "INTEGER", "uinteger": "BIGINT"}[name]
        case "ubigint" | "hugeint":
            return "DECIMAL(38,0)"
    return "VARCHAR"
