"""Names of types in the header of a table, as exact as there is room for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlshell.interface.types import base, field_of, is_named, parts_of
from sqlshell.output.text.cells import cells, printable

LONGEST = 1 << 10
"""Characters of a type that is read: a longer one has only its first word."""
DEEPEST = 8
_SHORT = {"boolean": "bool", "integer": "int", "timestamp_ltz": "ts_ltz", "timestamp_tz": "ts_tz", "timestamp": "ts"}
_NOT_NULL = re.compile(r"(?<!\s)\s++NOT NULL\Z")


def short_type(type_name: str) -> str:
    """The name that needs the fewest cells."""
    name = base(type_name).lower() or _exact(type_name)
    return _SHORT.get(name, name)


def whole_types(type_name: str) -> list[str]:
    """The exact name of a type, then the one without parameters, or those of a nested type with fewer levels."""
    if len(type_name) > LONGEST or not parts_of(type_name):
        return list(filter(None, (_exact(type_name), base(type_name).lower())))
    names = [printable(_spelled(type_name, depth)) for depth in (DEEPEST, 3, 2, 1)]
    return list(dict.fromkeys(names))


def fitting_type(type_name: str, width: int, ellipsis: str) -> str:
    """The most exact name with at most `width` cells; the short one if there is none."""
    return next((name for name in _names(type_name, ellipsis) if cells(name) <= width), short_type(type_name))


def _names(type_name: str, ellipsis: str) -> Iterator[str]:
    yield from whole_types(type_name)
    if len(type_name) <= LONGEST:
        name, parts = base(type_name).lower(), list(_parts(type_name, 0))
        for count in range(len(parts) - 1, 0, -1):
            yield printable(f"{name}<{', '.join([*parts[:count], ellipsis])}>")


def _exact(type_name: str) -> str:
    if len(type_name) > LONGEST and (name := base(type_name)):
        return name.lower()
    return printable(_NOT_NULL.sub("", type_name)).lower()


def _spelled(type_name: str, depth: int) -> str:
    """A type with its parts, of which those below `depth` levels are left out; names of fields keep their case."""
    name = base(type_name).lower()
    if not parts_of(type_name):
        return _NOT_NULL.sub("", type_name).lower()
    return f"{name}<{', '.join(_parts(type_name, depth - 1))}>" if depth else name


def _parts(type_name: str, depth: int) -> Iterator[str]:
    fields = base(type_name) in {"STRUCT", "ROW"}
    for part in parts_of(type_name):
        part = _NOT_NULL.sub("", part)
        inner = field_of(part)[1] if fields and is_named(part) else part
        yield part.removesuffix(inner) + _spelled(inner, depth)
