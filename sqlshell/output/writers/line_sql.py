"""SQL for the lines of the formats for programs, with which DuckDB writes the same bytes as the writers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring

from sqlshell.interface.strings import literal
from sqlshell.interface.types import Kind, size_of
from sqlshell.output.text.cells import NARROW, WIDE
from sqlshell.result import StoredColumn

LF, CR = "chr(10)", "chr(13)"

HEX = "hex"
"""The type_id of a column whose strings are `\\x` and hexadecimal digits."""

_NO_VALUE = frozenset({"NULL", "null", "(null)", "<null>", "\u2205"})
"""Texts that are not values of any type other than text."""

_NUMBER = "-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)?"
_INTEGER = "-?(0|[1-9][0-9]*)"
_NON_STANDARD_JSON = r"(?i),\s*[\]}]|nan|inf|e[+-]?[0-9]{3}|[\n\r]"
"""What DuckDB accepts although it is not JSON, in a text that may contain it elsewhere, and line breaks."""


def csv_line(columns: Sequence[StoredColumn], null: str, special: str) -> str:
    """A line of CSV; `null` stands for NULL, and `special` is a value that is quoted although nothing in it requires
    it, "" for none."""
    return _concatenated([_csv(column, null, special) for column in columns], ",", "", LF)


def tsv_line(
    columns: Sequence[StoredColumn], null: str, escaped_null: str, delimiter: str, escapes: Mapping[str, str]
) -> str:
    """A line of TSV; `null` stands for NULL, and `escaped_null` is how a value of this text is written. `escapes` are
    the escape sequences of characters, that of the backslash first."""
    return _concatenated(
        [_tsv(column, null, escaped_null, delimiter, escapes) for column in columns], delimiter, "", LF
    )


def json_line(columns: Sequence[StoredColumn], names: Sequence[str], before: str, behind: str) -> str:
    """A JSON object between two texts. The value is NULL for a row that SQL cannot write."""
    parts: list[str] = []
    doubts: list[str] = []
    text = before + "{"
    for column, name in zip(columns, names, strict=True):
        value, doubt = _json(column)
        parts += [literal(f"{text}{encode_basestring(name)}:"), f"coalesce({value}, 'null')"]
        doubts += [doubt] if doubt else []
        text = ","
    line = f"concat({', '.join(parts)}, {literal('}' + behind)})"
    return f"CASE WHEN {_any_of(doubts)} THEN NULL ELSE {line} END" if doubts else line


def table_line(
    columns: Sequence[StoredColumn],
    widths: Sequence[int],
    rights: Sequence[bool],
    edges: tuple[str, str, str],
    null: str,
) -> str:
    """A line of a table: values padded to these widths, on the right if said in `rights`, with what is before, between
    and after them. `null` stands for NULL. The value is NULL for a row whose width only Python knows."""
    before, between, behind = edges
    parts: list[str] = []
    doubts: list[str] = []
    text = before
    for column, width, right in zip(columns, widths, rights, strict=True):
        value = name = column.string
        if null and (column.is_text or null not in _NO_VALUE):
            # As distinct_from_null().
            quote = literal("'")
            alike = f"contains({name}, {literal(null)}) AND trim({name}, {quote}) = {literal(null)}"
            value = f"CASE WHEN {alike} THEN concat({quote}, {name}, {quote}) ELSE {name} END"
        value = f"coalesce({value}, {literal(null)})"
        taken = f"length({value})"
        if column.is_text:
            doubts.append(f"NOT regexp_full_match({name}, {literal(f'[{NARROW}{WIDE}]*')})")
        if column.is_text or not null.isascii():
            double = f"length(regexp_replace({value}, {literal(f'[^{WIDE}]+')}, '', 'g'))"
            taken = f"CASE WHEN strlen({value}) = {taken} THEN {taken} ELSE {taken} + {double} END"
        pad = f"repeat(' ', {width} - ({taken}))"
        parts += [literal(text), *((pad, value) if right else (value, pad))]
        text = between
    if not doubts:
        return f"concat({', '.join(parts)}, {literal(behind)}, {LF})"
    # Outside of a CASE, DuckDB evaluates an expression once that occurs several times.
    return f"concat({', '.join(parts)}, {literal(behind)}) || CASE WHEN {_any_of(doubts)} THEN NULL ELSE {LF} END"


def hexadecimal(column: StoredColumn) -> StoredColumn | None:
    """A column whose strings are `\\x` and hexadecimal digits instead of base64; None if the file has base64."""
    if column.is_text:
        return None
    return StoredColumn(column.column, column.name, HEX, f"'\\x' || lower(hex({column.name}))")


def _any_of(conditions: Sequence[str]) -> str:
    while len(conditions) > 1:
        # A balanced tree: DuckDB limits the depth of an expression.
        rest = [conditions[-1]] if len(conditions) % 2 else []
        pairs = zip(conditions[::2], conditions[1::2], strict=False)
        conditions = [f"({one} OR {other})" for one, other in pairs] + rest
    return conditions[0]


def _concatenated(values: Sequence[str], separator: str, before: str, behind: str) -> str:
    parts = [before] if before else []
    for number, value in enumerate(values):
        parts += [literal(separator), value] if number else [value]
    return f"concat({', '.join(parts)}, {behind})"


def _csv(column: StoredColumn, null: str, special: str) -> str:
    name = column.string
    if not column.is_text and not null:
        # concat() writes nothing for NULL.
        return name
    quote = f"contains({name}, '\"') OR contains({name}, {LF}) OR contains({name}, {CR}) OR contains({name}, ',')"
    odd = [f"{name} = {literal(text)}" for text in dict.fromkeys(["", null, special])]
    quoted = f"concat('\"', replace({name}, '\"', '\"\"'), '\"')"
    given = f"WHEN {name} IS NULL THEN {literal(null)} " if null else ""
    return f"CASE {given}WHEN {' OR '.join(odd)} OR {quote} THEN {quoted} ELSE {name} END"


def _tsv(column: StoredColumn, null: str, escaped_null: str, delimiter: str, escapes: Mapping[str, str]) -> str:
    name = column.string
    whens = [f"WHEN {name} IS NULL THEN {literal(null)}"]
    if null != escaped_null and (column.is_text or "\\" not in null):
        whens.append(f"WHEN {name} = {literal(null)} THEN {literal(escaped_null)}")
    if column.is_text or column.type_id == HEX or delimiter != "\t":
        escaped = name
        for sign, sequence in escapes.items():
            escaped = f"replace({escaped}, chr({ord(sign)}), {literal(sequence)})"
        condition = " OR ".join(f"contains({name}, chr({ord(sign)}))" for sign in escapes)
        whens.append(f"WHEN {condition} THEN {escaped}")
    elif len(whens) == 1:
        return f"coalesce({name}, {literal(null)})"
    return f"CASE {' '.join(whens)} ELSE {name} END"


def _json(column: StoredColumn) -> tuple[str, str]:
    """SQL for a JSON value, NULL for NULL, and for whether it may not be the right one; "" if it always is."""
    name, kind = column.string, column.column.kind
    if not column.is_text:
        match column.type_id:
            case "decimal":
                digits, places = size_of(column.column.type)
                if digits > places:
                    return name, ""
                # A type without digits before the point has values such as .5
                part = f"CASE WHEN starts_with({name}, '.') THEN '0' || {name} ELSE '-0' || {name}[2:] END"
                return f"CASE WHEN starts_with(ltrim({name}, '-'), '.') THEN {part} ELSE {name} END", ""
            case "float" | "double":
                return f"CASE WHEN isfinite({column.name}) THEN {name} ELSE '\"' || {name} || '\"' END", ""
            case "date" | "timestamp" | "timestamp with time zone" | "blob":
                return f"'\"' || {name} || '\"'", ""
        return name, ""
    if kind.numeric:
        pattern = _INTEGER if kind is Kind.INTEGER else _NUMBER
        return name, f"NOT coalesce(regexp_full_match({name}, {literal(pattern)}), true)"
    if kind is Kind.NESTED:
        doubtful = f"NOT json_valid({name}) OR regexp_matches({name}, {literal(_NON_STANDARD_JSON)})"
        return name, f"coalesce({doubtful}, false)"
    if kind is Kind.BOOLEAN:
        return name, f"coalesce({name} NOT IN ('true', 'false'), false)"
    quoted = f"to_json({name})::VARCHAR"
    # Other control characters are written with digits, for which Python uses small letters.
    return quoted, f"coalesce(contains({quoted}, '\\u00'), false)"
