"""SQL with which DuckDB makes typed values of the interface's strings, for files whose columns have types.

A value keeps its type if DuckDB, Parquet and Arrow have one that holds it exactly; everything else stays a string. The
parts of lists, maps and structs follow the same rule.
"""

from __future__ import annotations

from typing import Final

from sqlshell.interface.types import Kind, base, field_of, is_named, kind, parts_of, size_of
from sqlshell.sql.identifiers import always_quoted, literal

TEXT: Final = "VARCHAR"
DEEPEST: Final = 20
"""Types that are nested deeper stay strings."""

WIDEST_DECIMAL: Final = 38
FINEST: Final = 6
"""Digits of a second; with more a value counts nanoseconds."""

SHORT: Final = len("12:34:56.123456")
FINER: Final = f"[.][0-9]{{{FINEST}}}0*[1-9]"
"""A longer text than SHORT may have a fraction of a second that is finer than microseconds."""

_SAME: Final = frozenset({Kind.BOOLEAN, Kind.INTEGER, Kind.FLOAT, Kind.DATE})


def file_type(text: str) -> str:
    """DuckDB's type for values of a type of the interface in a file; VARCHAR where they stay strings."""
    try:
        return _type(text, 0)
    except ValueError:
        return TEXT


def typed_value(text: str, name: str) -> str:
    """SQL for the typed value of the string `name`. Its evaluation fails if the string is not a value of the type."""
    wanted = file_type(text)
    if wanted == TEXT:
        return name
    if kind(text) is Kind.NESTED:
        value = f"CAST(json({name}) AS {_json_type(text)})"
        whole = finished(text, value)
        return value if whole == value else f"CAST({whole} AS {wanted})"
    return _scalar(text, name)


def _type(text: str, depth: int) -> str:
    """As file_type(). Raises ValueError for a nested type that no file can have."""
    kind_ = kind(text)
    if kind_ is not Kind.NESTED:
        return _scalar_type(text)
    name, parts = base(text), parts_of(text)
    if depth >= DEEPEST:
        raise ValueError(text)
    if name == "ARRAY" and len(parts) == 1:
        return f"{_type(parts[0], depth + 1)}[]"
    if name == "MAP" and len(parts) == 2:
        return f"MAP({_type(parts[0], depth + 1)}, {_type(parts[1], depth + 1)})"
    if name in {"STRUCT", "ROW"} and parts:
        fields = _fields(parts)
        if len({field.lower() for field, _ in fields}) < len(fields) or not all(field for field, _ in fields):
            raise ValueError(text)
        members = [f"{always_quoted(field)} {_type(part, depth + 1)}" for field, part in fields]
        return f"STRUCT({', '.join(members)})"
    raise ValueError(text)


def _fields(parts: list[str]) -> list[tuple[str, str]]:
    """The names and types of a struct's fields. Fields without names are called element1, …, as DuckDB calls them."""
    if any(map(is_named, parts)):
        return [field_of(part) for part in parts]
    return [(f"element{number}", part) for number, part in enumerate(parts, 1)]


def _scalar_type(text: str) -> str:
    kind_, sizes = kind(text), size_of(text)
    if kind_ in _SAME:
        return {"BOOL": "BOOLEAN", "INT": "INTEGER", "REAL": "FLOAT"}.get(base(text), base(text))
    nanoseconds = bool(sizes) and sizes[0] > FINEST
    match kind_:
        case Kind.DECIMAL if sizes and 0 < sizes[0] <= WIDEST_DECIMAL and sizes[-1] <= sizes[0]:
            return f"DECIMAL({sizes[0]},{sizes[1] if len(sizes) > 1 else 0})"
        case Kind.TIME:
            return "TIME_NS" if nanoseconds else "TIME"
        case Kind.TIMESTAMP if base(text) == "TIMESTAMP":
            return "TIMESTAMP_NS" if nanoseconds else "TIMESTAMP"
        case Kind.TIMESTAMP:
            return "TIMESTAMPTZ_NS" if nanoseconds else "TIMESTAMPTZ"
        case Kind.BYTES:
            return "BLOB"
        case Kind.TEXT if base(text) == "UUID":
            return "UUID"
    return TEXT


def _scalar(text: str, name: str) -> str:
    wanted = _scalar_type(text)
    if wanted == "BLOB":
        return f"from_base64({name})"
    if wanted == TEXT:
        return name
    cast = f"CAST({name} AS {wanted})"
    if kind(text) not in {Kind.TIME, Kind.TIMESTAMP} or wanted.endswith("_NS"):
        return cast
    # A cast would drop further digits, and PostgreSQL's BC, which must be an error.
    finer = f"strlen({name}) > {SHORT} AND (regexp_matches({name}, '{FINER}') OR suffix({name}, ' BC'))"
    return f"CASE WHEN {finer} THEN CAST('?' || {name} AS {wanted}) ELSE {cast} END"


def _json_type(text: str) -> str:
    """DuckDB's type to which the JSON of a value can be cast; finished() makes the rest."""
    if kind(text) is not Kind.NESTED:
        wanted = _scalar_type(text)
        return TEXT if wanted == "BLOB" else wanted
    parts = parts_of(text)
    match base(text):
        case "ARRAY":
            return f"{_json_type(parts[0])}[]"
        case "MAP":
            # The key of an object in JSON is a string, also where it is a list or a struct.
            key = TEXT if kind(parts[0]) is Kind.NESTED else _json_type(parts[0])
            return f"MAP({key}, {_json_type(parts[1])})"
    if any(map(is_named, parts)):
        members = [f"{always_quoted(field)} {_json_type(part)}" for field, part in _fields(parts)]
        return f"STRUCT({', '.join(members)})"
    return f"TUPLE({', '.join(map(_json_type, parts))})"


def finished(text: str, name: str, depth: int = 0) -> str:
    """SQL for the value of a type, from the value `name` that was read of JSON, in which bytes are base64 and nested
    keys of maps JSON; the same if that is all."""
    if kind(text) is not Kind.NESTED:
        return f"from_base64({name})" if _scalar_type(text) == "BLOB" else name
    parts = parts_of(text)
    item = f"v{depth}"
    match base(text):
        case "ARRAY":
            inner = finished(parts[0], item, depth + 1)
            return name if inner == item else f"list_transform({name}, lambda {item}: {inner})"
        case "MAP":
            key, value = f"{item}.key", finished(parts[1], f"{item}.value", depth + 1)
            if kind(parts[0]) is Kind.NESTED:
                key = finished(parts[0], f"CAST(json({key}) AS {_json_type(parts[0])})", depth + 1)
            else:
                key = finished(parts[0], key, depth + 1)
            if (key, value) == (f"{item}.key", f"{item}.value"):
                return name
            pair = f"{{'key': {key}, 'value': {value}}}"
            return f"map_from_entries(list_transform(map_entries({name}), lambda {item}: {pair}))"
    fields = _fields(parts)
    if any(map(is_named, parts)):
        places = [f"{name}.{always_quoted(field)}" for field, _ in fields]
    else:
        places = [f"struct_extract_at({name}, {number})" for number in range(1, len(fields) + 1)]
    members = [finished(part, place, depth) for (_, part), place in zip(fields, places, strict=True)]
    if members == places and any(map(is_named, parts)):
        return name
    packed = ", ".join(f"{literal(field)}: {value}" for (field, _), value in zip(fields, members, strict=True))
    return f"CASE WHEN {name} IS NOT NULL THEN {{{packed}}} END"
