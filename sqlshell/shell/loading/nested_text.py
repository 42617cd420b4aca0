"""SQL that reads arrays, maps and structs from a text: JSON, what DuckDB writes, `{'a': x}`, and for arrays also what
PostgreSQL writes, `{1,2}`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from json import JSONEncoder
from typing import Final

from sqlshell.interface.types import Kind, base, field_of, is_named, kind, parts_of
from sqlshell.sql.identifiers import always_quoted, literal

_INTEGERS: Final = re.compile(r'("(?:[^"]|"")*")|\bU?(?:TINY|SMALL|BIG|HUGE)?INT(?:EGER)?\b')
"""The names of fields, and the types of integers."""
_FRACTION: Final = "'[.eE]'"
"""Characters that the text of a number with a fraction contains."""
_PARTS: Final = r'(?s)"(?:[^"\\]|\\.)*"|[{},]|[^{},"]+'
"""The parts of PostgreSQL's text of an array."""
_NO_JSON: Final = "'>'"
_DEEPEST: Final = 20
_encode: Final = JSONEncoder(ensure_ascii=False).encode


def nested_from_text(text: str, declared: str, converted: str) -> str:
    """SQL for the value of a text, which is an expression: `converted` is DuckDB's type for the type `declared`.

    Evaluating it raises a ConversionException for a text that is no such value.
    """
    json = text
    if base(declared) == "ARRAY":
        json = f"CASE WHEN starts_with(ltrim({text}), '{{') THEN {_array_as_json(text, declared)} ELSE {text} END"
    completed = _completed(f"({json})::JSON", declared, 0)

    def from_json(type_: str) -> str:
        cast = f"CAST(({json})::JSON AS {type_})"
        if completed is None:
            return cast
        # A cast requires every key of an object. from_json() does not, but gives NULL for what it cannot convert;
        # functions that make JSON keep only the digits of a DOUBLE.
        whole = f"from_json(({json})::JSON, {literal(_encode(type_))})"
        checked = f"CASE WHEN CAST({completed} AS {type_}) IS NOT NULL THEN {whole} END"
        return f"CASE WHEN TRY(({cast}) IS NULL) IS NOT NULL THEN {cast} ELSE {checked} END"

    value = _without_rounding(from_json, text, converted)
    if _has_bytes(declared):
        return _with_bytes(declared, value, 0)
    own = _without_rounding(lambda type_: f"CAST({text} AS {type_})", text, converted)
    return f"CASE WHEN json_valid({json}) THEN {value} ELSE {own} END"


def _completed(json: str, declared: str, depth: int) -> str | None:
    """SQL for JSON in which objects have all keys of their structs, with null for those that are missing; None if the
    type has no structs. Objects with unknown keys, and values of maps, stay as they are."""
    name, item = base(declared), f"j{depth}"
    if depth > _DEEPEST:
        return None
    if name == "ARRAY":
        completed = _completed(item, parts_of(declared)[0], depth + 1)
        items = f"to_json(list_transform(CAST({json} AS JSON[]), lambda {item}: {completed}))"
        return completed and f"CASE WHEN json_type({json}) = 'ARRAY' THEN {items} ELSE {json} END"
    if name not in {"STRUCT", "ROW"} or not all(map(is_named, parts_of(declared))):
        return None
    fields = list(map(field_of, parts_of(declared)))
    if any('"' in field or "\\" in field for field, _ in fields):
        return None
    values = []
    for field, type_ in fields:
        path = literal(f'$."{field}"')
        value = f"json_extract({item}, {path})"
        values.append(f"{literal(field)}, {_completed(value, type_, depth + 1) or value}")
    known = f"[{', '.join(literal(field) for field, _ in fields)}]"
    whole = f"json_type({item}) = 'OBJECT' AND list_has_all({known}, json_keys({item}))"
    # The value is evaluated once.
    completed = f"CASE WHEN {whole} THEN json_object({', '.join(values)}) ELSE {item} END"
    return f"list_transform([{json}], lambda {item}: {completed})[1]"


def _without_rounding(cast: Callable[[str], str], text: str, type_: str) -> str:
    """SQL that casts to a type, and raises for a fraction of an integer, which DuckDB would round. `cast` is given the
    type."""
    wide = _INTEGERS.sub(lambda match: match[1] or "DOUBLE", type_)
    if wide == type_:
        return cast(type_)
    rounded = f"{cast(wide)} IS DISTINCT FROM CAST({cast(type_)} AS {wide})"
    refused = f"CAST(({_NO_JSON} || {text})::JSON AS {type_})"
    return f"CASE WHEN regexp_matches({text}, {_FRACTION}) AND {rounded} THEN {refused} ELSE {cast(type_)} END"


def _array_as_json(text: str, declared: str) -> str:
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
        is_hex = f"regexp_full_match({text}, '\\\\x([0-9A-Fa-f]{{2}})*')"
        return f"CASE WHEN {is_hex} THEN to_json(to_base64(unhex(substr({text}, 3))))::VARCHAR ELSE {_NO_JSON} END"
    if kind(declared) is Kind.NESTED or base(declared) in {"JSON", "VARIANT"}:
        return text
    return f"to_json({text})::VARCHAR"


def _with_bytes(declared: str, value: str, depth: int) -> str:
    """SQL for a value with bytes in place of their base64."""
    if kind(declared) is Kind.BYTES:
        return f"from_base64({value})"
    if not _has_bytes(declared) or depth > _DEEPEST:
        return value
    name, parts, item = base(declared), parts_of(declared), f"y{depth}"
    if name == "ARRAY":
        return f"list_transform({value}, lambda {item}: {_with_bytes(parts[0], item, depth + 1)})"
    if name == "MAP":
        # A key is a text in JSON, too.
        entries = [
            _with_bytes(part, f"{item}.{at}", depth + 1) for part, at in zip(parts, ("key", "value"), strict=True)
        ]
        entry = f"{{'key': {entries[0]}, 'value': {entries[1]}}}"
        return f"map_from_entries(list_transform(map_entries({value}), lambda {item}: {entry}))"
    fields = [
        f"{literal(field)}: {_with_bytes(part, f'{item}.{always_quoted(field)}', depth + 1)}"
        for field, part in map(field_of, parts)
    ]
    # The value is evaluated once.
    struct = f"CASE WHEN {item} IS NOT NULL THEN {{{', '.join(fields)}}} END"
    return f"list_transform([{value}], lambda {item}: {struct})[1]"


def _has_bytes(declared: str) -> bool:
    if kind(declared) is not Kind.NESTED:
        return kind(declared) is Kind.BYTES
    parts = parts_of(declared)
    if base(declared) in {"STRUCT", "ROW"}:
        parts = [field_of(part)[1] for part in parts if is_named(part)]
    return any(map(_has_bytes, parts))
