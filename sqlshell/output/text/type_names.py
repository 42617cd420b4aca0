"""Names of types in the header of a table, as exact as the space allows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from sqlshell.interface.types import base, field_of, is_named, parts_of
from sqlshell.output.text.cells import cells, printable

LONGEST = 1 << 10
"""Characters of a type that is read: a longer one has only its first word."""
DEEPEST = 8
TALLEST = 3
"""Lines of a nested type in a header."""
_SIMPLE = re.compile(r"[A-Z][A-Z0-9_ ]*+(?:\([0-9, ]*+\))?[A-Z ]*+(?:\[\d*+\])*+")
"""A type in capitals that contains no names."""
_BETWEEN = re.compile(r", (?![^()]*\))")
_SHORT = {"boolean": "bool", "integer": "int", "timestamp_ltz": "ts_ltz", "timestamp_tz": "ts_tz", "timestamp": "ts"}
_WORDS = {
    "double precision": "float8",
    "character varying": "varchar",
    "character": "char",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
    "time without time zone": "time",
    "time with time zone": "timetz",
}
"""Other names that PostgreSQL has for types of several words."""
_POSTGRESQL = re.compile(r"([a-z]+)(\([0-9,]+\))?((?: [a-z]+)+)?(\([0-9,]+\))?((?:\[\])*)")
"""A type as PostgreSQL writes it: the first word, a size behind it or behind the other words, and the dimensions."""
_USUAL = re.compile(r"\b(TIME(?:STAMP)?(?:_LTZ|_TZ)?)\(6\)", re.I)
"""A type with the digits of seconds that it has without saying so."""
_NOT_NULL = re.compile(r"(?<!\s)\s++NOT NULL\Z")


def short_type(type_name: str) -> str:
    """The name that needs the fewest cells."""
    if names := _synonyms(type_name):
        return names[-1]
    name = base(type_name).lower() or _exact(type_name)
    return _SHORT.get(name, name)


def whole_types(type_name: str, ellipsis: str) -> list[str]:
    """The exact name of a type, then the one without parameters, or those of a nested type with fewer levels."""
    if len(type_name) > LONGEST or not parts_of(type_name):
        return list(dict.fromkeys(filter(None, _plain_names(type_name))))
    names = [printable(_spelled(type_name, depth, ellipsis)) for depth in (DEEPEST, 3, 2, 1)]
    return list(dict.fromkeys(names))


def _plain_names(type_name: str) -> list[str]:
    return [_exact(type_name), *(_synonyms(type_name) or [base(type_name).lower()])]


def _synonyms(type_name: str) -> list[str]:
    """Shorter names, with and without its size, of an array or a type of several words of PostgreSQL."""
    match = _POSTGRESQL.fullmatch(type_name)
    if match is None or not (match[3] or match[5]):
        return []
    words = match[1] + (match[3] or "")
    name = _WORDS.get(words, words)
    return [f"{name}{match[2] or match[4] or ''}{match[5]}", f"{_SHORT.get(name, name)}{match[5]}"]


_NESTED: Final = re.compile(r"(?:STRUCT|MAP|UNION|ENUM)\(")
"""The beginning of a nested type of DuckDB."""
_PARTS: Final = re.compile(r"""("(?:[^"]|"")*"|'(?:[^']|'')*'|(\w+)|([(),])|.)""", re.DOTALL)


def simple_type(type_name: str) -> str:
    """A type as in a header, in small letters; one that may contain names, in a form that is not known, as it is."""
    if _SIMPLE.fullmatch(type_name):
        return _USUAL.sub(r"\1", type_name).lower()
    if parts_of(type_name) and len(type_name) <= LONGEST:
        return whole_types(type_name, "")[0]
    return _small(type_name) if _NESTED.match(type_name) else type_name


def _small(type_name: str) -> str:
    """A nested type as DuckDB writes it, such as STRUCT(A INTEGER), in small letters but for its names and labels."""
    named, done, before = [False], [], ""
    name_follows = False
    for text, word, mark in _PARTS.findall(type_name):
        done.append(word.lower() if word and not name_follows else text)
        if mark == "(":
            named.append(before in {"STRUCT", "UNION"})
        elif mark == ")" and len(named) > 1:
            named.pop()
        name_follows = (mark in {"(", ","} and named[-1]) or (name_follows and text.isspace())
        before = word
    return "".join(done)


def type_lines(type_name: str, width: int, ellipsis: str) -> list[str]:
    """The whole name of a nested type in a few lines of at most `width` cells; otherwise fitting_type()."""
    if len(type_name) <= LONGEST and parts_of(type_name):
        lines = _broken(whole_types(type_name, ellipsis)[0], width)
        if len(lines) <= TALLEST and all(cells(line) <= width for line in lines):
            return lines
    return [fitting_type(type_name, width, ellipsis)]


def line_widths(type_name: str, most: int) -> list[int]:
    """The fewest cells, up to `most`, in which the whole name of a nested type has one line, two lines, and so on."""
    if len(type_name) > LONGEST or not parts_of(type_name):
        return []
    name, widths = whole_types(type_name, "")[0], list[int]()
    count = TALLEST + 1
    for width in range(max(map(cells, _broken(name, 0))), most + 1):
        if (lines := len(_broken(name, width))) < count:
            widths.insert(0, width)
            count = lines
    return widths


def _broken(name: str, width: int) -> list[str]:
    """The name in lines that are full, broken between the parts of the type; each one after the first is indented."""
    first, *parts = _BETWEEN.split(name)
    lines = [first]
    for left, part in zip(range(len(parts), 0, -1), parts, strict=True):
        comma = 1 if left > 1 else 0
        if cells(lines[-1]) + len(", ") + cells(part) + comma <= width:
            lines[-1] += f", {part}"
        else:
            lines[-1] += ","
            lines.append(f"  {part}")
    return lines


def fitting_type(type_name: str, width: int, ellipsis: str) -> str:
    """The most exact name with at most `width` cells; the short one if there is none."""
    return next((name for name in _names(type_name, ellipsis) if cells(name) <= width), short_type(type_name))


def _names(type_name: str, ellipsis: str) -> Iterator[str]:
    yield from whole_types(type_name, ellipsis)
    if len(type_name) <= LONGEST:
        name, parts = base(type_name).lower(), list(_parts(type_name, 0, ellipsis))
        for count in range(len(parts) - 1, -1, -1):
            yield printable(f"{name}<{', '.join([*parts[:count], ellipsis])}>")


def _exact(type_name: str) -> str:
    if len(type_name) > LONGEST and (name := base(type_name)):
        return name.lower()
    name = _USUAL.sub(r"\1", printable(_NOT_NULL.sub("", type_name)))
    return name if '"' in name else name.lower()


def _spelled(type_name: str, depth: int, ellipsis: str) -> str:
    """A type with its parts, of which those below `depth` levels are left out; names of fields keep their case."""
    name = base(type_name).lower()
    if not parts_of(type_name):
        return _USUAL.sub(r"\1", _NOT_NULL.sub("", type_name)).lower()
    return f"{name}<{', '.join(_parts(type_name, depth - 1, ellipsis)) if depth else ellipsis}>"


def _parts(type_name: str, depth: int, ellipsis: str) -> Iterator[str]:
    fields = base(type_name) in {"STRUCT", "ROW"}
    for part in parts_of(type_name):
        part = _NOT_NULL.sub("", part)
        inner = field_of(part)[1] if fields and is_named(part) else part
        yield part.removesuffix(inner) + _spelled(inner, depth, ellipsis)
