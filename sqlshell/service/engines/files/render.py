"""The interface's names of DuckDB's types, and SQL that renders their values as the interface's strings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sqlshell.interface.models import ColumnInfo
from sqlshell.interface.strings import NATIVE, ZONED, string_of
from sqlshell.sql.identifiers import always_quoted, literal

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
    "timestamptz_ns": "TIMESTAMP_LTZ(9)",
    "blob": "VARBINARY",
}
"""Scalar types by DuckDB's ID. All others (VARCHAR, JSON, UUID, ENUM, INTERVAL, UNION, …) are VARCHAR."""

ENGINE = {
    "bignum": "BIGNUM",
    "bit": "BIT",
    "enum": "ENUM",
    "hugeint": "HUGEINT",
    "interval": "INTERVAL",
    "time with time zone": "TIMETZ",
    "ubigint": "UBIGINT",
    "uhugeint": "UHUGEINT",
    "uuid": "UUID",
}
"""Types, by DuckDB's ID, that the interface has no name for."""

EXACT_IN_DOUBLE = 15
"""Decimal digits that a double keeps, and so DuckDB's JSON numbers."""

INSTANTS = frozenset({ZONED, "timestamptz_ns"})
TEXTS = frozenset({"varchar", "enum", "union", "variant"})
"""Types whose text may be anything, including that of an instant."""

AS_JSON = frozenset(
    {
        "boolean", "tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger", "ubigint", "double",
        "decimal", "null", "date", "time", "time_ns", "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns",
        "uuid", "enum", "interval", "bit", "geometry", "time with time zone",
    }
)  # fmt: skip
"""Scalar types that DuckDB's to_json() renders as the interface does."""

AS_KEYS = AS_JSON - {"double"} | {"hugeint", "uhugeint", "bignum"}
"""Types whose cast to VARCHAR, which to_json() uses for map keys, is the interface's string."""

NULL = '"\\N"'
"""Marks NULL in rows that are not finished."""

_MARK = "'\\N'"
_CALL = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|(?<![\w.])"""
    r"(array_to_string|base64|concat|concat_ws|contains|count|duckdb_\w+|epoch_ns|epoch_us|from_json|isfinite|isnan|"
    r"json_array|len|list_append|list_transform|list_zip|make_timestamp|make_timestamp_ns|map_entries|map_from_entries|"
    r"max|multiply|nullif|octet_length|pragma_\w+|random|read_json|replace|strlen|struct_extract|struct_extract_at|struct_pack|to_json|"
    r"translate|trim|union_extract|union_tag|unnest|variant_typeof)\("
)
_WORD = re.compile(r"[^\W\d]\w*")
_CONTROLS = bytes(range(32))
_CONTROL_BYTE = re.compile(rb"[\x00-\x1f]")


def column(name: str, kind: Any, nullable: bool) -> ColumnInfo:
    """Return a column of a result."""
    named = type_name(kind)
    exact = type_name(kind, exact=True)
    return ColumnInfo(name, named, nullable, engine_type=exact if exact != named else None)


def type_name(kind: Any, *, exact: bool = False) -> str:
    """Return the interface's name of a DuckDBPyType; `exact` gives DuckDB's name for a type that the interface does not
    have, also inside of nested types."""
    match type_id(kind):
        case "decimal":
            return str(kind).replace(" ", "")
        case "list" | "array":
            return f"ARRAY<{type_name(_children(kind)['child'], exact=exact)}>"
        case "map":
            parts = _children(kind)
            return f"MAP<{type_name(parts['key'], exact=exact)}, {type_name(parts['value'], exact=exact)}>"
        case "struct":
            fields = (f"{field_name(name)} {type_name(part, exact=exact)}" for name, part in kind.children)
            return f"STRUCT<{', '.join(fields)}>"
        case "tuple":
            return f"STRUCT<{', '.join(type_name(part, exact=exact) for _, part in kind.children)}>"
        case "varchar" if exact and str(kind) == "JSON":
            return "JSON"
        case other if exact and other in ENGINE:
            return ENGINE[other]
        case other:
            return NAMES.get(other, "VARCHAR")


def field_name(name: str) -> str:
    """Return the name of a field in a type; quoted if it is not a word, so that the type can be parsed again."""
    return name if _WORD.fullmatch(name) else always_quoted(name)


def type_id(kind: Any) -> str:
    """Return the ID of a type; "state" for the state of an aggregate, whose ID would be that of its components."""
    return "state" if str(kind).startswith("AGGREGATE_STATE") else str(kind.id)


def is_text(kind: Any) -> bool:
    return str(kind) == "VARCHAR"


def value(kind: Any, name: str) -> str:
    """Return SQL for the string of the value `name`; NULL stays NULL."""
    match type_id(kind):
        case native if native in NATIVE:
            return string_of(native, name)
        case "timestamptz_ns":
            instant = f"make_timestamp_ns(epoch_ns({name}))"
            return f"CASE WHEN {instant} IS NULL THEN {name}::VARCHAR ELSE concat({instant}, 'Z') END"
        case "list" | "array" | "map" | "struct" | "tuple":
            return f"to_json({_nested(kind, name, 0)})::VARCHAR"
        case "union":
            # The text of the active member, by the rule for its type.
            members = [(member, part) for member, part in kind.children if member]
            cases = "".join(
                f" WHEN {literal(member)} THEN {value(part, f'union_extract({name}, {literal(member)})')}"
                for member, part in members
            )
            return f"CASE union_tag({name})::VARCHAR{cases} END"
        case "variant":
            scalars = (("BLOB", "blob"), ("DOUBLE", "double"), ("FLOAT", "float"), ("TIMESTAMP_MICROS_TZ", ZONED))
            cases = "".join(
                f" WHEN {literal(label)} THEN {value(_Scalar(name_of), f'TRY_CAST({name} AS {name_of})')}"
                for label, name_of in scalars
            )
            return f"CASE variant_typeof({name}){cases} ELSE {name}::VARCHAR END"
    return f"{name}::VARCHAR"


class _Scalar:
    """A scalar type that has only an ID."""

    def __init__(self, name: str) -> None:
        self.id = name
        self.children: list[tuple[str, Any]] = []

    def __str__(self) -> str:
        return self.id.upper()


def _nested(kind: Any, name: str, depth: int) -> str:
    """SQL for a value inside a nested value, in a form that DuckDB's JSON keeps exactly."""
    match type_id(kind):
        case "decimal" if int(str(kind).partition("(")[2].partition(",")[0]) > EXACT_IN_DOUBLE:
            return f"{name}::VARCHAR"
        case "float" | "double":
            # Converted by its text, because to_json() writes a FLOAT with the digits of a DOUBLE.
            return f"CASE WHEN isfinite({name}) THEN {name}::VARCHAR::JSON ELSE to_json({value(kind, name)}) END"
        case "list" | "array":
            child = _children(kind)["child"]
            part = f"v{depth}"
            inner = _nested(child, part, depth + 1)
            if inner == part:
                return name
            items = f"{name}::{child}[]" if kind.id == "array" else name
            return f"list_transform({items}, lambda {part}: {inner})"
        case "map":
            parts = _children(kind)
            entry = f"v{depth}"
            plain_key, plain = _field(entry, "key"), _field(entry, "value")
            key, inner = plain_key, _nested(parts["value"], plain, depth + 1)
            if type_id(parts["key"]) not in AS_KEYS and not is_text(parts["key"]):
                key = value(parts["key"], key)
            if (key, inner) == (plain_key, plain):
                return name
            if type_id(parts["key"]) in {"union", "variant"}:
                # Two keys may have the same text, which a map cannot contain.
                pair = f"concat(to_json({key}), ':', coalesce(to_json({inner})::VARCHAR, 'null'))"
                pairs = f"list_transform(map_entries({name}), lambda {entry}: {pair})"
                text = f"concat('{{', array_to_string({pairs}, ','), '}}')::JSON"
                return f"CASE WHEN {name} IS NULL THEN NULL ELSE {text} END"
            body = f"struct_pack(key := {key}, value := {inner})"
            return f"map_from_entries(list_transform(map_entries({name}), lambda {entry}: {body}))"
        case "struct":
            fields = [(field, _nested(part, _field(name, field), depth)) for field, part in kind.children]
            if not fields or all(inner == _field(name, field) for field, inner in fields):
                return name
            packed = ", ".join(f"{always_quoted(field)} := {inner}" for field, inner in fields)
            return f"CASE WHEN {name} IS NOT NULL THEN struct_pack({packed}) END"
        case "tuple":
            places = [f"struct_extract_at({name}, {at})" for at in range(1, len(kind.children) + 1)]
            elements = [_nested(part, place, depth) for (_, part), place in zip(kind.children, places, strict=True)]
            if elements == places:
                return name
            return f"CASE WHEN {name} IS NOT NULL THEN json_array({', '.join(elements)}) END"
        case plain if plain in AS_JSON or is_text(kind):
            return name
    return value(kind, name)


def _field(name: str, field: str) -> str:
    """SQL for a field of a struct. A dot would call struct_extract() by a name that a macro may have."""
    return f"struct_extract({name}, {literal(field)})"


def own(sql: str) -> str:
    """Return the service's SQL with DuckDB's own functions, whatever macros the session has."""
    return _CALL.sub(lambda match: f"system.main.{match[1]}(" if match[1] else match[0], sql)


def instants(kinds: Sequence[Any]) -> tuple[tuple[int, Any], ...]:
    """Return the columns that contain instants, and where in their values: True for the whole value, or the parts of a
    nested one."""
    places = ((number, _where(kind)) for number, kind in enumerate(kinds))
    return tuple((number, where) for number, where in places if where)


def _where(kind: Any) -> Any:
    match type_id(kind):
        case known if known in INSTANTS:
            return True
        case "list" | "array":
            where = _where(_children(kind)["child"])
            return {"each": where} if where else False
        case "map":
            parts = _children(kind)
            key, each = _where(parts["key"]), _where(parts["value"])
            return {"key": key, "each": each} if key or each else False
        case "struct" | "tuple":
            places = [_where(part) for _, part in kind.children]
            return {"parts": places} if any(places) else False
        case "union":
            # The text does not show the member, so no other member may look like an instant.
            members = [part for member, part in kind.children if member]
            whole = [part for part in members if type_id(part) in INSTANTS]
            return bool(whole) and not any(type_id(part) in TEXTS for part in members)
    return False


def _children(kind: Any) -> dict[str, Any]:
    return dict(kind.children)


def stored(kind: Any, name: str) -> str:
    """Return SQL for a value as it is written to a file: the value, or its string if the file does not support its
    type."""
    return name if type_id(kind) in NATIVE or is_text(kind) else own(value(kind, name))


PLAIN = NATIVE | {
    *("hugeint", "uhugeint", "uuid", "interval"),
    *("time", "time_ns", "timestamp_s", "timestamp_ms", "timestamp_ns"),
}
"""Types whose strings contain nothing that JSON escapes."""


def row(kinds: Sequence[Any], names: Sequence[str], after: str = "") -> str:
    """Return SQL for a row as the text of a JSON array of strings and nulls, which finished() completes; `after`
    follows it.

    DuckDB holds 2,048 rows of each expression at a time, so a result of thousands of columns is rendered with as few
    expressions as possible: to_json() of each text would take several times the memory of the texts.
    """
    parts = ["["]
    pieces: list[str] = []
    for kind, name in zip(kinds, names, strict=True):
        before, inner, behind = _quoted(kind, name)
        pieces += [literal(parts.pop() + before), inner]
        parts.append(behind + ",")
    return own(f"concat({', '.join(pieces)}, {literal(parts.pop().rstrip(',') + ']' + after)})")


def finished(rows: str) -> str:
    """Complete the rows of row() as JSON. In an escaped text no backslash precedes an N, so nothing is mistaken for
    NULL.
    """
    if NULL in rows:
        rows = rows.replace(NULL, "null")
    return rows if rows.isprintable() else finished_bytes(rows.encode()).decode()


def finished_bytes(rows: bytes) -> bytes:
    """As finished()."""
    mark = NULL.encode()
    if mark in rows:
        rows = rows.replace(mark, b"null")
    # The regular expression alone would take ten times as long.
    if len(rows.translate(None, _CONTROLS)) == len(rows):
        return rows
    return _CONTROL_BYTE.sub(lambda match: b"\\u%04x" % ord(match[0]), rows)


def _quoted(kind: Any, name: str) -> tuple[str, str, str]:
    """SQL for a value, and the quotes before and after it that it does not include."""
    if type_id(kind) in PLAIN:
        return '"', f"coalesce({value(kind, name)}, {_MARK})", '"'
    if is_text(kind):
        escaped = f"replace(replace({name}, '\\', '\\\\'), '\"', '\\\"')"
        special = f"contains({name}, '\"') OR contains({name}, '\\')"
        return '"', f"CASE WHEN {name} IS NULL THEN {_MARK} WHEN {special} THEN {escaped} ELSE {name} END", '"'
    return "", f"coalesce(to_json({value(kind, name)})::VARCHAR, 'null')", ""
