"""The exact value of a text in a column of a table, as SQL: NULL where the text has none, or a cast would change it.

Nested values are JSON, what DuckDB writes, `{'a': x}`, and for arrays also what PostgreSQL writes, `{1,2}`.
"""

from __future__ import annotations

import json
import re
from typing import Final

from sqlshell.interface.types import Kind, base, field_of, kind, parts_of, size_of
from sqlshell.sql.duckdb_types import BYTES, TEXT, duckdb_type, is_nested
from sqlshell.sql.identifiers import always_quoted, literal
from sqlshell.sql.typed_values import finished

MICROSECONDS: Final = 6
MOST_DIGITS: Final = 38
"""Digits of a DECIMAL."""

_PRECISE: Final = re.compile(r'("(?:[^"]|"")*")|\bTIME(?:STAMP(?:_L?TZ)?)?\((?:[7-9]|\d{2,})\)')
"""The names of fields, and times with more digits than DuckDB's types of the same name keep."""
_LOSSY: Final = re.compile(r"HUGEINT|BIGNUM|TUPLE\(")
"""Types that a Parquet file does not keep."""
_HUGE: Final = frozenset({"HUGEINT", "UHUGEINT", "BIGNUM"})
_NANOSECONDS: Final = {"TIME": "TIME_NS", "TIMESTAMP": "TIMESTAMP_NS", "TIMESTAMPTZ": "TIMESTAMPTZ_NS"}
_ROUNDED: Final = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.DATE, Kind.TIME, Kind.TIMESTAMP})
_SPECIAL: Final = "('infinity', '-infinity', 'epoch')"
_DAY: Final = r"\s*[0-9]+[-/][0-9]{1,2}[-/][0-9]{1,2}"
_ZONE: Final = r"\s*(Z|UTC|[+-]00(:?00)?)?\s*"
_OFFSET: Final = r"\s*(Z|UTC|[+-][0-9]{2}(:?[0-9]{2})?)?\s*"
_MIDNIGHT: Final = r"([ T]0?0:00(:00([.]0*)?)?)?"
_NUMBER: Final = r"\s*[+-]?(0x[0-9a-f_]+|[0-9_]*([.][0-9]*)?(e[+-]?[0-9]+)?)\s*"
_HEX: Final = r"\\x([0-9A-Fa-f]{2})*"
_BASE64: Final = "([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
_PARTS: Final = r'(?s)"(?:[^"\\]|\\.)*"|[{},]|[^{},"]+'
"""The parts of PostgreSQL's text of an array."""
_NO_JSON: Final = "'>'"


def staged_type(declared: str) -> str:
    """The DuckDB type that values of an interface's type are kept in; text for types that only the service converts."""
    if kind(declared) is Kind.DECIMAL and not 0 < (size_of(declared) or [0])[0] <= MOST_DIGITS:
        # Without a size a DECIMAL has any number of digits, such as PostgreSQL's numeric.
        return TEXT
    converted = duckdb_type(_PRECISE.sub(lambda part: part[1] or TEXT, declared))
    return TEXT if _LOSSY.search(converted) or converted == "JSON" else converted


def checked_type(declared: str) -> str:
    """The DuckDB type that texts are compared with; text for types of which nothing is known."""
    what, digits = kind(declared), size_of(declared)
    if base(declared) in _HUGE or (
        what is Kind.DECIMAL and len(digits) and digits[0] > MOST_DIGITS and not any(digits[1:])
    ):
        return "BIGNUM"
    if what in {Kind.TIME, Kind.TIMESTAMP} and digits and digits[0] > MICROSECONDS:
        return _NANOSECONDS.get(duckdb_type(declared), TEXT)
    return staged_type(declared)


def rounds(declared: str) -> bool:
    """Whether ROUND makes a difference to values of a type."""
    return kind(declared) in _ROUNDED and checked_type(declared) != TEXT


def exact(declared: str, text: str, *, binary: str = "base64", form: str = "", rounding: bool = False) -> str:
    """SQL for the value of a text, an expression, in a type that is not nested. `binary` says how bytes are written:
    "base64", or as in LoadRequest; `form` is the format of dates, as SQL. With `rounding`, what the type does not keep
    is left out."""
    checked = checked_type(declared)
    if checked == TEXT:
        return text
    if checked == BYTES:
        return _bytes(text, binary)
    if form and kind(declared) in {Kind.DATE, Kind.TIMESTAMP}:
        return _formatted(text, form, checked, rounding=rounding)
    value = f"TRY_CAST({text} AS {checked})"
    valid = _valid(declared, text, value, rounding=rounding)
    if not valid:
        return f"TRY_CAST(trim({text}) AS {checked})"
    if staged_type(declared) == TEXT:
        value = f"{value}::{TEXT}"
    elif rounding and checked in _NANOSECONDS:
        # A cast of the text would cut the digits off.
        value = f"coalesce(TRY_CAST(TRY_CAST({text} AS {_NANOSECONDS[checked]}) AS {checked}), {value})"
    return f"CASE WHEN {valid} THEN {value} END"


def _valid(declared: str, text: str, value: str, *, rounding: bool) -> str:
    """SQL: whether a text is exactly the value of its cast; "" for types of which each cast is exact."""
    what, digits = kind(declared), size_of(declared)

    def like(pattern: str) -> str:
        return f"regexp_full_match({text}, {literal(f'(?i){pattern}')})"

    # Most values are written as DuckDB writes them.
    same = f"{value}::{TEXT} = {text}"
    if what in {Kind.INTEGER, Kind.DECIMAL}:
        places = digits[1] if digits[1:] else 0
        if rounding:
            return like(_NUMBER)
        fixed = like(rf"\s*[+-]?(0x[0-9a-f_]+|[0-9_]*([.][0-9]{{0,{places}}}0*)?)\s*")
        return f"{same} OR {fixed} OR (contains(lower({text}), 'e') AND {value}::DOUBLE = TRY_CAST({text} AS DOUBLE))"
    if what is Kind.FLOAT:
        return f"isfinite({value}) OR NOT regexp_matches({text}, '[0-9]')"
    places = digits[0] if digits else MICROSECONDS
    fraction = "[0-9]*" if rounding else f"[0-9]{{0,{places}}}0*"
    time = rf"[0-9]{{1,2}}:[0-9]{{2}}(:[0-9]{{1,2}}([.]{fraction})?)?"
    special = f"lower(trim({text})) IN {_SPECIAL}"
    if what is Kind.TIME:
        return like(rf"\s*{time}\s*")
    if what is Kind.DATE:
        dates = like(f"{_DAY}([ T]+{time})?{_OFFSET}" if rounding else f"{_DAY}{_MIDNIGHT}{_ZONE}")
        return f"{same} OR {dates} OR {special}"
    if what is Kind.TIMESTAMP and "TZ" in base(declared):
        return "true" if rounding else f"NOT regexp_matches({text}, '[.][0-9]{{{places}}}[0-9]*[1-9]')"
    if what is Kind.TIMESTAMP:
        times = like(f"{_DAY}([ T]+{time})?{_OFFSET if rounding else _ZONE}")
        return f"{f'{same} OR ' if places in {MICROSECONDS, 9} else ''}{times} OR {special}"
    return ""


def _formatted(text: str, form: str, type_: str, *, rounding: bool) -> str:
    """SQL for a date in another format than that of ISO."""
    value = f"try_strptime({text}, {form})"
    if type_ == "DATE" and not rounding:
        value = f"CASE WHEN {value} = date_trunc('day', {value}) THEN {value} END"
    # With a format, DuckDB reads these words as 1900-01-01.
    return (
        f"CASE WHEN lower(trim({text})) IN {_SPECIAL} THEN TRY_CAST({text} AS {type_}) "
        f"ELSE TRY_CAST({value} AS {type_}) END"
    )


def _bytes(text: str, binary: str) -> str:
    if binary == "base64":
        return f"CASE WHEN regexp_full_match({text}, {literal(_BASE64)}) THEN from_base64({text}) END"
    own = f"TRY_CAST({text} AS {BYTES})"
    if binary == "escaped":
        return own
    return f"CASE WHEN regexp_full_match({text}, {literal(_HEX)}) THEN unhex(substr({text}, 3)) ELSE {own} END"


def as_json(declared: str, text: str) -> str:
    """SQL for a text of a nested value as JSON; NULL or not JSON if it is no such value."""
    tests = f"WHEN json_valid({text}) THEN {text}"
    if base(declared) == "ARRAY":
        tests = f"WHEN starts_with(ltrim({text}), '{{') THEN {_array_as_json(declared, text)} {tests}"
    has_bytes = finished(declared, "y") != "y"
    own = "" if has_bytes else f" ELSE to_json(TRY(CAST({text} AS {_with_texts(declared)})))::{TEXT}"
    return f"CASE {tests}{own} END"


def _with_texts(declared: str) -> str:
    """DuckDB's type for the texts within a nested type."""
    name, parts = base(declared), parts_of(declared)
    if kind(declared) is not Kind.NESTED or not is_nested(duckdb_type(declared)):
        return TEXT
    if name == "ARRAY":
        return f"{_with_texts(parts[0])}[]"
    if name == "MAP":
        return f"MAP({TEXT}, {_with_texts(parts[1])})"
    fields = (f"{always_quoted(field)} {_with_texts(type_)}" for field, type_ in map(field_of, parts))
    return f"STRUCT({', '.join(fields)})"


def fits(declared: str, value: str, depth: int = 0) -> str:
    """SQL: whether JSON, an expression, is exactly a value of a type. Keys of structs may be missing."""
    if kind(declared) is not Kind.NESTED or not is_nested(staged_type(declared)):
        return f"({value} IS NULL OR ({exact(declared, value)}) IS NOT NULL)"
    name, parts, item = base(declared), parts_of(declared), f"x{depth}"

    def read(type_: str, of: str = "{}") -> str:
        part = "JSON" if kind(type_) is Kind.NESTED else TEXT
        return f"from_json({value}, {literal(json.dumps(of.format(part)))})"

    def each(values: str, type_: str) -> str:
        return f"coalesce(len(list_filter({values}, lambda {item}: NOT {fits(type_, item, depth + 1)})), 0) = 0"

    if name == "ARRAY":
        test = f"json_type({value}) = 'ARRAY' AND {each(read(parts[0], '{}[]'), parts[0])}"
    elif name == "MAP":
        entries = read(parts[1], f"MAP({TEXT}, {{}})")
        keys = each(f"json_keys({value})", parts[0])
        test = f"{entries} IS NOT NULL AND {keys} AND {each(f'map_values({entries})', parts[1])}"
    else:
        fields = list(map(field_of, parts))
        shape = json.dumps({field: "JSON" if kind(type_) is Kind.NESTED else TEXT for field, type_ in fields})
        known = f"[{', '.join(literal(field) for field, _ in fields)}]"
        named = f"json_keys({value})"
        keys = f"list_has_all({known}, {named}) AND len(list_distinct({named})) = len({named})"
        tests = " AND ".join(fits(type_, f"{item}.{always_quoted(field)}", depth + 1) for field, type_ in fields)
        # The value is evaluated once.
        values = f"list_transform([from_json({value}, {literal(shape)})], lambda {item}: {tests})[1]"
        test = f"json_type({value}) = 'OBJECT' AND {keys} AND {values}"
    return f"({value} IS NULL OR json_type({value}) = 'NULL' OR ({test}))"


def nested(declared: str, json_: str, record: str = "", key: str = "") -> str:
    """SQL for the value of JSON that fits. Of a `record`, its `key` is read, which keeps the digits of its numbers."""
    type_ = staged_type(declared)
    value = f"from_json({json_}, {literal(json.dumps(type_))})"
    if record and "DECIMAL" in type_:
        shape = literal(json.dumps({key: type_}))
        value = f"coalesce(from_json({record}, {shape}).{always_quoted(key)}, {value})"
    whole = finished(declared, "y")
    # The value is evaluated once.
    return value if whole == "y" else f"list_transform([{value}], lambda y: {whole})[1]"


def _array_as_json(declared: str, text: str) -> str:
    """SQL for PostgreSQL's text of an array as JSON, whose items are strings; not JSON if the text is not an array."""
    item = declared
    while base(item) == "ARRAY" and parts_of(item):
        item = parts_of(item)[0]
    parts = f"regexp_extract_all({text}, {literal(_PARTS)})"
    bare = "trim(x, E' \\t\\r\\n\\v\\f')"
    element = (
        "CASE x WHEN '{' THEN '[' WHEN '}' THEN ']' WHEN ',' THEN ',' ELSE CASE "
        f"WHEN starts_with(x, '\"') THEN {_item_as_json(_unescaped('x[2:-2]'), item)} "
        f"WHEN {bare} = '' THEN '' WHEN upper({bare}) = 'NULL' THEN 'null' "
        f"ELSE {_item_as_json(_unescaped(bare), item)} END END"
    )
    joined = "list_aggregate({}, 'string_agg', '')"
    whole = f"{joined.format(parts)} = {text}"
    return (
        f"CASE WHEN {whole} THEN {joined.format(f'list_transform({parts}, lambda x: {element})')} ELSE {_NO_JSON} END"
    )


def _unescaped(text: str) -> str:
    return f"regexp_replace({text}, '(?s)\\\\(.)', '\\1', 'g')"


def _item_as_json(text: str, declared: str) -> str:
    if kind(declared) is Kind.BYTES:
        is_hex = f"regexp_full_match({text}, {literal(_HEX)})"
        return f"CASE WHEN {is_hex} THEN to_json(to_base64(unhex(substr({text}, 3))))::{TEXT} ELSE {_NO_JSON} END"
    if kind(declared) is Kind.NESTED or base(declared) in {"JSON", "VARIANT"}:
        return text
    return f"to_json({text})::{TEXT}"
