"""The looks of tables: those of tabulate, which is loaded when another than the default is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from msgspec import Struct

from sqlshell.errors import UsageError

Edge = tuple[str, str, str]
Line = tuple[str, str, str, str] | Callable[[list[int], list[str]], str] | None


class Style(Struct, frozen=True):
    """Lines are (begin, fill, separator, end), rows (begin, separator, end); `minimum` widens columns past headers.

    `above`, `below_header`, `between` and `below` may be None for no line; `hidden` are those of `lineabove`,
    `linebetweenrows`, `linebelow` that are not drawn when there is a header.
    """

    above: Line
    below_header: Line
    between: Line
    below: Line
    header: Edge
    row: Edge
    padding: int
    minimum: int = 2
    hidden: tuple[str, ...] = ()


PSQL = Style(
    ("+", "-", "+", "+"), ("|", "-", "+", "|"), None, ("+", "-", "+", "+"), ("|", "|", "|"), ("|", "|", "|"), 1
)

_NOT_FOR_TERMINALS = frozenset({"colon_grid", "tsv", "html", "unsafehtml"})
"""colon_grid draws its rows by rules of its own; the others are data formats or markup."""


def style_named(name: str) -> Style:
    """The style of that name. Raises UsageError with the nearest, or all."""
    if name == "psql":
        return PSQL
    if name not in style_names():
        import difflib

        near = difflib.get_close_matches(name, style_names(), 1)
        hint = f"did you mean {near[0]}?" if near else f"styles: {', '.join(style_names())}"
        raise UsageError(f"there is no table style {name!r}", hint)
    import tabulate

    found = vars(tabulate)["_table_formats"][name]

    def line(given: object) -> Line:
        if given is None or callable(given):
            return given
        return cast("tuple[str, str, str, str]", tuple(cast("tuple[str, ...]", given)))

    return Style(
        above=line(found.lineabove),
        below_header=line(found.linebelowheader),
        between=line(found.linebetweenrows),
        below=line(found.linebelow),
        header=cast(Edge, tuple(found.headerrow)),
        row=cast(Edge, tuple(found.datarow)),
        padding=found.padding,
        minimum=0 if name == "pretty" else 2,
        hidden=tuple(found.with_header_hide or ()),
    )


def style_names() -> list[str]:
    """The styles that are plain text, in order."""
    import tabulate

    return sorted(
        name
        for name, look in vars(tabulate)["_table_formats"].items()
        if name not in _NOT_FOR_TERMINALS
        and not name.startswith("latex")
        and not (look.datarow is None or callable(look.datarow))
        and not (look.headerrow is None or callable(look.headerrow))
    )
