"""Functions of the dialect that DuckDB lacks, as equivalent expressions.

They replace the call in the statement. Macros in a database of the service would not work: DuckDB binds stored
expressions (DEFAULT, CHECK, indexes) while it opens a database, which would fail without that other database.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from sqlshell.interface import sqlstate
from sqlshell.service.engines.engine import NO_CONTINUOUS_QUERIES
from sqlshell.service.failure import Failure
from sqlshell.sql.identifiers import literal
from sqlshell.text import format_count

if TYPE_CHECKING:
    from sqlshell.service.engines.duckdb.translation.text import BracketedTokens, Edits

SECONDS: Final = "%Y-%m-%d %H:%M:%S"
"""yyyy-MM-dd HH:mm:ss."""

_PART: Final = re.compile(r"([A-Za-z])\1*+|'((?:[^']|'')*+)'|(.)", re.S)
_PARTS: Final = {
    **{"y": "%Y", "yy": "%y", "yyy": "%Y", "yyyy": "%Y", "uuuu": "%Y"},
    **{"M": "%-m", "MM": "%m", "MMM": "%b", "MMMM": "%B", "d": "%-d", "dd": "%d", "D": "%-j", "DDD": "%j"},
    **{"H": "%-H", "HH": "%H", "h": "%-I", "hh": "%I", "m": "%-M", "mm": "%M", "s": "%-S", "ss": "%S"},
    **{"SSS": "%g", "SSSSSS": "%f", "SSSSSSSSS": "%n", "a": "%p"},
    **{"E": "%a", "EE": "%a", "EEE": "%a", "EEEE": "%A"},
}

_UNITS: Final = {
    unit: unit.lower()
    for unit in ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
}
_LEAST: Final = "-9223372036854775808"
"""The result of UNIX_TIMESTAMP for a text that is not a timestamp."""


def _each(argument: str, expression: str) -> str:
    """An expression that uses its argument, _v, more than once."""
    return f"list_transform([{argument}], lambda _v: {expression})[1]"


def _unix(pattern: str) -> str:
    seconds = f"epoch_ms(CAST(try_strptime({{}}, {pattern}) AS TIMESTAMPTZ)) // 1000"
    return f"CASE WHEN _v IS NOT NULL THEN CAST(coalesce({seconds}, {_LEAST}) AS BIGINT) END"


_INSTANT: Final = "make_timestamptz(CAST(trunc({0}) AS BIGINT) * %s)"
_LOCAL: Final = f"CAST({_INSTANT % 1_000_000} AS TIMESTAMP)"
_INITIALS: Final = (
    r"list_transform(regexp_extract_all({0}, '[\p{{L}}\p{{M}}\p{{N}}]+|[^\p{{L}}\p{{M}}\p{{N}}]+|^$'), lambda _w: {1})"
)
"""An empty text has one part, too."""

_SPAN: Final = "{0:span}(CAST(trunc({1}) AS BIGINT))"

MADE: Final[Mapping[str, Mapping[int, str | tuple[str, str]]]] = {
    "array_join": {2: "array_to_string({0}, {1})"},
    "array_max": {1: "list_max({0})"},
    "array_min": {1: "list_min({0})"},
    "array_remove": {2: "list_filter({0}, lambda _v: _v IS DISTINCT FROM ({1}))"},
    "convert_tz": {3: f"strftime(CAST({{0}} AS TIMESTAMP) AT TIME ZONE ({{1}}) AT TIME ZONE ({{2}}), '{SECONDS}')"},
    "current_row_timestamp": {0: "get_current_timestamp()"},
    "date_format": {2: "strftime(CAST({0} AS TIMESTAMP), {1:pattern})"},
    "e": {0: "exp(1)"},
    "element": {1: _each("{0}", "CASE WHEN len(_v) > 1 THEN error('the array has more than one item') ELSE _v[1] END")},
    "from_unixtime": {1: f"strftime({_LOCAL}, '{SECONDS}')", 2: f"strftime({_LOCAL}, {{1:pattern}})"},
    "initcap": {
        # DuckDB's array_to_string() is a macro that evaluates its argument twice, so nested calls would double the cost
        # at each level.
        1: f"list_aggregate({_INITIALS.replace('{1}', 'upper(_w[1]) || lower(_w[2:])')}, 'string_agg', '')",
    },
    "is_alpha": {1: r"regexp_full_match({0}, '\p{{L}}+')"},
    "is_decimal": {1: r"regexp_full_match({0}, '[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?')"},
    "is_digit": {1: r"regexp_full_match({0}, '\p{{Nd}}+')"},
    "json_query": {
        2: _each(
            _each("{0}", "CASE WHEN json_valid(_v) THEN json_extract(_v, {1:path}) END"),
            "CASE WHEN json_type(_v) IN ('OBJECT', 'ARRAY') THEN CAST(_v AS VARCHAR) END",
        )
    },
    "json_string": {1: "CAST(to_json({0}) AS VARCHAR)"},
    "locate": {2: "position(({0}) IN ({1}))"},
    "map_from_arrays": {2: "map({0}, {1})"},
    "map_union": {2: "map_concat({0}, {1})"},
    "nvl": {2: "coalesce({0}, {1})"},
    "rand": {0: "random()"},
    "rand_integer": {1: "CAST(floor(random() * ({0})) AS INTEGER)"},
    "regexp": {2: "regexp_matches({0}, {1})"},
    "split_index": {3: "list_extract(string_split({0}, {1}), 1 + greatest({2}, -1))"},
    "timestampadd": {3: (f"({_SPAN} + ({{2}}))", f"({_SPAN} + CAST({{2}} AS TIMESTAMP))")},
    "timestampdiff": {3: "date_sub({0:unit}, {1}, {2})"},
    "to_date": {
        1: "CAST(try_strptime({0}, '%Y-%m-%d') AS DATE)",
        2: "CAST(try_strptime({0}, {1:pattern}) AS DATE)",
    },
    "to_timestamp": {
        1: ("", "TRY_CAST({0} AS TIMESTAMP_MS)"),
        2: "CAST(try_strptime({0}, {1:pattern}) AS TIMESTAMP_MS)",
    },
    "to_timestamp_ltz": {
        1: (_INSTANT % 1_000, "CAST(TRY_CAST({0} AS TIMESTAMP_MS) AS TIMESTAMPTZ)"),
        2: (_INSTANT.replace("%s", "{1:scale}"), "CAST(try_strptime({0}, {1:pattern}) AS TIMESTAMPTZ)"),
        3: "CAST(try_strptime({0}, {1:pattern}) AS TIMESTAMP) AT TIME ZONE ({2})",
    },
    "truncate": {1: "trunc({0})", 2: "trunc({0}, {1})"},
    "unix_timestamp": {
        0: "(epoch_ms(now()) // 1000)",
        1: _each("CAST({0} AS VARCHAR)", _unix(f"'{SECONDS}'").format("left(_v, 19)")),
        2: _each("{0}", _unix("{1:pattern}").replace("{}", "_v")),
    },
}
"""Replacements by name in lower case and number of arguments. Each argument occurs once and in order: {N}, or {N:kind}
for a literal that is converted. Two are for a number and for a text or NULL as the last argument; "" is the call
itself."""

REFUSED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("proctime", "current_watermark"), f"{NO_CONTINUOUS_QUERIES}"),
    **dict.fromkeys(("rowtime", "rowkey", "rowmetadata"), "the rows of a stream have no topic metadata"),
    **dict.fromkeys(("sha2", "sha224", "sha384", "sha512"), "use md5, sha1 or sha256"),
    **dict.fromkeys(("collect", "array_union", "array_except"), "DuckDB handles duplicates differently"),
    **dict.fromkeys(("json_objectagg", "json_arrayagg"), "use json_group_object or json_group_array"),
    "str_to_map": "DuckDB's maps cannot contain duplicate keys",
    "elt": "use a list: [a, b][n]",
    "parse_url": "use regexp_extract",
    "to_timestamp_tz": "DuckDB does not store offsets of timestamps; use TO_TIMESTAMP_LTZ",
}
"""Unsupported functions of the dialect, with the reason or a replacement."""

NAMES: Final = MADE.keys() | REFUSED.keys()

_CALLS: Final = "|".join(sorted(NAMES | {"floor", "ceil"}, key=lambda name: (-len(name), name)))
_FORMS: Final = re.compile(
    r"(?:array|map|struct|row)\s*+<|(?<!\w)map\s*+\[|->(?!>)|timestamp_l?tz|(?<!\w)time(?:stamp)?\s*+[(w]|(?<!\w)bytes|"
    r"binary\s*+\(|(?:decimal|numeric)\s*+\(\s*+39|with\s*+\(|json_(?:value|object)\s*+\(|\sis\s++(?:not\s++)?json|"
    rf"within|match_recognize|(?:tumble|hop|cumulate)\s*+\(|(?<!\w)(?:{_CALLS})\s*+\("
)
"""A first look for the forms of the dialect, in lower case; the tokens decide."""

LONGEST: Final = 1 << 20
"""Maximum characters; longer statements are not translated. Their tokens would take some 70 bytes each."""

_PLACE: Final = re.compile(r"\{(\d)(?::(\w+))?\}|\{\{|\}\}")


def may_need_translation(sql: str) -> bool:
    """Tell whether a statement may contain a form of the dialect, as far as its text shows."""
    return len(sql) <= LONGEST and _FORMS.search(sql.lower()) is not None


def variants(text: BracketedTokens, arguments: Sequence[tuple[int, int]], name: str) -> Sequence[str]:
    """Return the possible replacements of a call, in the order in which they are tried; "" is the call itself.

    Raises Failure for a function of the dialect without an equivalent in DuckDB (0A000), and for wrong arguments
    (42883).
    """
    if name in REFUSED:
        raise Failure(sqlstate.UNSUPPORTED, f"{name.upper()} is not supported: {REFUSED[name]}")
    count, forms = len(arguments), MADE[name]
    if count not in forms:
        *less, most = map(str, sorted(forms))
        expected = f"{', '.join(less)} or {most} arguments" if less else format_count(int(most), "argument")
        raise Failure("42883", f"{name.upper()} expects {expected}, not {count}")
    found = forms[count]
    if isinstance(found, str):
        return [found]
    argument = text.tokens[arguments[-1][0]] if arguments[-1][1] == arguments[-1][0] + 1 else None
    if argument is not None and (argument.kind == "string" or argument.word == "NULL"):
        # DuckDB itself reads a string as a number.
        return found[:1] if not found[0] and _is_number(argument.value) else found[1:]
    return found[:1] if count > 1 or (argument is not None and argument.kind == "number") else found


def unit(text: BracketedTokens, start: int, behind: int) -> str:
    """Return a unit of time as a string literal. Raises Failure (0A000)."""
    return literal(_unit(text, start, behind))


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def write(text: BracketedTokens, at: int, expression: str, edits: Edits) -> None:
    """Replace the call that begins at a token by an expression. Raises Failure (0A000)."""
    arguments = text.arguments(at + 1)
    end = text.closing[at + 1]
    edits.drop(at, at + 2)
    edits.drop(end, end + 1)
    taken, place, part = 0, at, ""
    for match in _PLACE.finditer(expression):
        part += expression[taken : match.start()]
        taken = match.end()
        if match[1] is None:
            part += match[0][0]
            continue
        start, behind = arguments[int(match[1])]
        if match[2]:
            part += _LITERALS[match[2]](text, start, behind)
            edits.drop(start, behind)
        edits.replace(place, part)
        # An argument is followed by the comma or parenthesis that ends it.
        place, part = behind, ""
    edits.replace(place, part + expression[taken:])


def _string(text: BracketedTokens, start: int, behind: int, what: str) -> str:
    if behind != start + 1 or text.tokens[start].kind != "string":
        message = f"{text.written(start, behind)} is not supported as {what}; use a string literal"
        raise Failure(sqlstate.UNSUPPORTED, message)
    return text.tokens[start].value


def _strftime(pattern: str) -> str:
    """The format for strftime() of one in Java's letters. Raises Failure (0A000) for a letter without an equivalent."""
    parts = []
    for match in _PART.finditer(pattern):
        if match[1]:
            part = _PARTS.get(match[0])
        else:
            quoted = match[2]
            part = match[3] if quoted is None else quoted.replace("''", "'") or "'"
            part = None if (part in {"'", "%"} and quoted is None) or "%" in (part or "") else part
        if part is None:
            message = f"{match[0]} is not supported in a date format: DuckDB has no equivalent"
            raise Failure(sqlstate.UNSUPPORTED, message)
        parts.append(part)
    return "".join(parts)


def _pattern(text: BracketedTokens, start: int, behind: int) -> str:
    return literal(_strftime(_string(text, start, behind, "a date format")))


def path(text: BracketedTokens, start: int, behind: int) -> str:
    """Return a JSON path as a string, without its mode. Raises Failure (0A000)."""
    written = _string(text, start, behind, "a path")
    mode, _, rest = written.partition(" ")
    return literal(rest if mode.lower() in {"lax", "strict"} else written)


def _unit(text: BracketedTokens, start: int, behind: int) -> str:
    word = text.word(start).removeprefix("SQL_TSI_")
    unit = _UNITS.get(word) or _UNITS.get(word.removesuffix("S"))
    if behind != start + 1 or unit is None:
        known = ", ".join(_UNITS)
        message = f"{text.written(start, behind)} is not supported as a unit of time; use one of {known}"
        raise Failure(sqlstate.UNSUPPORTED, message)
    return unit


def _span(text: BracketedTokens, start: int, behind: int) -> str:
    """The beginning of a span of time, which the number of units in parentheses follows."""
    unit = _unit(text, start, behind)
    # DuckDB's functions for these units take no BIGINT.
    return f"to_{unit}s(1) * " if unit in {"day", "week", "month", "quarter", "year"} else f"to_{unit}s"


def _scale(text: BracketedTokens, start: int, behind: int) -> str:
    precision = text.written(start, behind)
    if precision not in {"0", "3"}:
        message = f"TO_TIMESTAMP_LTZ expects precision 0 (seconds) or 3 (milliseconds), not {precision[:60]}"
        raise Failure(sqlstate.UNSUPPORTED, message)
    return "1000000" if precision == "0" else "1000"


_LITERALS: Final[Mapping[str, Callable[[BracketedTokens, int, int], str]]] = {
    "path": path,
    "pattern": _pattern,
    "scale": _scale,
    "span": _span,
    "unit": unit,
}
