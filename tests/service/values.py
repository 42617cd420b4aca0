"""Values of every DuckDB type, alone and nested, as SQL."""

from __future__ import annotations

from tests.cases import lines, texts

SCALARS = {kind: values for kind, *values in texts("values", "scalars")}
SCALARS["VARCHAR"] = [
    "",
    "é\U0001f600",
    'quote " comma , back \\ slash',
    "line\nbreak\ttab",
    "2023-12-30 03:37:45Z",
    "null",
]
"""Texts by the type that they are cast to."""

OTHERS = lines("values", "others")

WRAPPED = (
    "[{0}, NULL]",
    "[{0}]::{1}[1]",
    "{{'f': {0}}}",
    "({0}, 1)",
    "MAP {{'k': {0}}}",
    "MAP {{{0}: 1}}",
    "union_value(m := {0})",
)
"""What a value is put into; {1} is its type."""

DEEPER = (
    "[{{'l': [{0}], 't': ({0}, NULL)}}]",
    "MAP {{[{0}]: {{'f': {0}}}}}",
    "{{'m': MAP {{'k': ({0}, [{0}])}}, 'u': [union_value(m := {0})]}}",
)


PLAIN = frozenset({"BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER", "TIMESTAMP_S"})
"""Types whose values nest as they are."""


def every_value() -> list[str]:
    """Each value as SQL."""
    found = list(OTHERS)
    for kind, given in SCALARS.items():
        values = ["'" + text.replace("'", "''") + f"'::{kind}" for text in given]
        found += values
        if kind in PLAIN:
            found.append(f"[{values[0]}]")
            continue
        # The first value says how the type nests, all together what its special values become there.
        found += [form.format(values[0], kind) for form in WRAPPED + DEEPER]
        found.append(f"[{', '.join(values)}]")
        found.append(f"MAP {{{', '.join(f'{value}: {value}' for value in values)}}}")
    return found
