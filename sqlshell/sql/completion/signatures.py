"""The signature of a function: one line for a function that may have many forms; and the call that the cursor is in."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from sqlshell.text import format_count

MORE: Final = "..."
"""Stands for further arguments."""

KNOWN: Final = {
    "coalesce": "(value, ...)",
    "ifnull": "(value, default)",
    "lag": "(col[, offset[, default]]) -> T",
    "lead": "(col[, offset[, default]]) -> T",
}
"""Functions that duckdb_functions() does not list, or without saying which of their parameters are optional."""

MOST: Final = 6
"""Parameters that are shown: read_csv() has dozens of named ones."""

_FAMILIES: Final = {
    "any": ("ANY", "T", "K", "V"),
    "time": (
        *("TIMESTAMP", "DATE", "TIMESTAMP WITH TIME ZONE", "TIME", "INTERVAL", "TIME WITH TIME ZONE", "TIMESTAMP_NS"),
        *("TIME_NS", "TIMESTAMP_MS", "TIMESTAMP_S", "TIMESTAMPTZ_NS"),
    ),
    "text": ("VARCHAR", "JSON", "BLOB"),
    "number": (
        *("DOUBLE", "BIGINT", "DECIMAL", "INTEGER", "HUGEINT", "FLOAT", "SMALLINT", "TINYINT", "UBIGINT", "UINTEGER"),
        *("USMALLINT", "UTINYINT", "UHUGEINT", "BIGNUM"),
    ),
    "list": ("ANY[]", "T[]", "K[]", "V[]"),
}
"""The types of a family, the most usual ones first; a tie between families is decided by their order."""

_ORDER: Final = {kind: (family, at) for family, kinds in _FAMILIES.items() for at, kind in enumerate(kinds)}
_UNUSUAL: Final = ("other", 99)
_SHORT: Final = (("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ"), ("TIME WITH TIME ZONE", "TIMETZ"))
_VAGUE_PARAMETER_NAMES: Final = re.compile(r"(?:arg|col|data|temporal|ts|str|val|value|[a-z])\d*")
"""Names of parameters that say less than their types."""


class Form(Struct, frozen=True):
    """One form of a function. `types` are as many as `parameters`; "" is an unknown type."""

    parameters: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    result: str = ""
    variadic: bool = False
    """Whether further arguments may follow."""


def signature_of(forms: Sequence[Form]) -> str:
    """The form with the most usual types as `(string, start[, length]) -> VARCHAR (+2 overloads)`.

    Forms that have its first parameters and its result are part of it: the others are optional. A type is shown where
    the name of the parameter says less.
    """
    by_types: dict[tuple[str, ...], Form] = {}
    for form in sorted(forms, key=lambda form: (not form.result, form.parameters, form.result)):
        # A table function and a scalar one may have the same parameters.
        by_types.setdefault(form.types, form)
    distinct = list(by_types.values())
    if not distinct:
        return ""
    families = Counter(_family(form) for form in distinct)

    def order(form: Form) -> tuple[object, ...]:
        family = _family(form)
        first = (family != "any", -families[family], [*_FAMILIES, "other"].index(family))
        places = [_ORDER.get(kind, _UNUSUAL)[1] for kind in form.types]
        return first, places[:1], -len(_shorter(form, distinct)), places, form.parameters

    form = min(distinct, key=order)
    shorter = _shorter(form, distinct)
    more = len(distinct) - len(shorter)
    arrow = f" -> {_short(form.result)}" if form.result else ""
    return f"({_listed(form, min(map(len, shorter)))}){arrow}" + (
        f" (+{format_count(more, 'overload')})" if more else ""
    )


def _listed(form: Form, required: int) -> str:
    names = [_parameter(*each) for each in zip(form.parameters, form.types, strict=True)]
    further = [MORE] * (form.variadic or len(names) > MOST)
    # The named parameters of a table function follow the others.
    names = [*(names[:1] if len(names) > MOST else names), *further]
    text, optional = "", 0
    for at, name in enumerate(names):
        opens = required <= at < len(form.types) and name != MORE
        optional += opens
        text += f"{'[' * opens}{', ' * (at > 0)}{name}"
    return text + "]" * optional


def _shorter(form: Form, forms: Sequence[Form]) -> list[tuple[str, ...]]:
    """The parameters of the forms that are a beginning of this one, itself included."""
    return [
        other.parameters
        for other in forms
        if (other.parameters, other.types, other.result)
        == (form.parameters[: len(other.types)], form.types[: len(other.types)], form.result)
    ]


def _family(form: Form) -> str:
    return _ORDER.get(form.types[0], _UNUSUAL)[0] if form.types else "other"


def _parameter(name: str, kind: str) -> str:
    vague = _VAGUE_PARAMETER_NAMES.fullmatch(name) and kind not in {"", *_FAMILIES["any"]}
    return f"{name} {_short(kind)}" if vague else name


def _short(kind: str) -> str:
    for long, short in _SHORT:
        kind = kind.replace(long, short)
    return kind


_NAME = re.compile(r"([A-Za-z_]\w*)\s*\Z", re.ASCII)
_PAIRS = {")": 1, "]": 1, "}": 1, "(": -1, "[": -1, "{": -1}
_NAMED = re.compile(r"\[?(.*?(?:\[\])*+)\]*\[?")
"""A parameter without the brackets of the optional ones, which are beside it."""
MAX_CHARACTERS_BACK = 2000
"""Characters before the cursor that are looked at."""


def call_at(before: str) -> tuple[str, int] | None:
    """The name of the function whose arguments the text ends in, and the number of the argument, from 0."""
    before = before[-MAX_CHARACTERS_BACK:]
    if before.count("'") % 2:
        before = before[: before.rindex("'")]
    depth = argument = 0
    at = len(before) - 1
    while at >= 0:
        char = before[at]
        if char in "'\"":
            # Doubled quotes are two texts next to each other.
            at = before.rfind(char, 0, at)
            if at < 0:
                return None
        elif char == ";" or (depth == 0 and char in "[{"):
            return None
        elif char == "(" and depth == 0:
            match = _NAME.search(before, max(0, at - 64), at)
            return (match[1], argument) if match else None
        elif char == "," and depth == 0:
            argument += 1
        else:
            depth += _PAIRS.get(char, 0)
        at -= 1
    return None


def parameters(signature: str, argument: int) -> tuple[str, str, str]:
    """A signature such as `(string, start[, length]) -> VARCHAR` in three parts, of which the middle one is the
    parameter of that argument; the last one of `(value, ...)` stands for all further arguments.
    """
    if not signature.startswith("("):
        return signature, "", ""
    begun, places, depth = 1, list[tuple[int, int]](), 0
    for at, char in enumerate(signature):
        depth += (char == "(") - (char == ")")
        if not depth or (depth == 1 and signature.startswith(", ", at)):
            places.append((begun, at))
            begun = at + 2
            if not depth:
                break
    if places and signature[slice(*places[-1])] == MORE:
        argument = min(argument, len(places) - 1)
    if argument >= len(places):
        return signature, "", ""
    start, end = places[argument]
    match = _NAMED.fullmatch(signature, start, end)
    start, end = match.span(1) if match is not None else (start, end)
    return signature[:start], signature[start:end], signature[end:]
