"""The signature of a function: one line for a function that may have many forms."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from sqlshell.humanize import format_count

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
