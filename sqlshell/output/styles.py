"""The looks of tables: those of tabulate, which is loaded when another than the default is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from sqlshell.errors import UsageError

Edge = tuple[str, str, str]
Line = tuple[str, str, str, str] | Callable[[list[int], list[str]], str] | None


@dataclass(frozen=True, slots=True)
class Style:
    """Lines are (begin, fill, separator, end), rows (begin, separator, end); `minimum` widens columns past headers.

    `above`, `below_header`, `between` and `below` may be None for no line.
    """

    above: Line
    below_header: Line
    between: Line
    below: Line
    header: Edge
    row: Edge
    padding: int
    minimum: int = 2
    centered: bool = False


PSQL = Style(
    ("+", "-", "+", "+"), ("|", "-", "+", "|"), None, ("+", "-", "+", "+"), ("|", "|", "|"), ("|", "|", "|"), 1
)


def style_named(name: str) -> Style:
    """The style of that name. Raises UsageError with the names."""
    if name == "psql":
        return PSQL
    import tabulate

    found = vars(tabulate)["_table_formats"].get(name)
    if found is None or callable(found.headerrow) or callable(found.datarow) or found.datarow is None:
        import difflib

        near = difflib.get_close_matches(name, style_names(), 1)
        hint = f"did you mean {near[0]}?" if near else f"styles: {', '.join(style_names())}"
        raise UsageError(f"there is no table style {name!r}", hint)
    pretty = name == "pretty"

    def line(given: object) -> Line:
        if given is None or callable(given):
            return given
        return cast("tuple[str, str, str, str]", tuple(cast("tuple[str, ...]", given)))

    hidden = found.with_header_hide or ()
    return Style(
        above=None if "lineabove" in hidden else line(found.lineabove),
        below_header=None if "linebelowheader" in hidden else line(found.linebelowheader),
        between=None if "linebetweenrows" in hidden else line(found.linebetweenrows),
        below=None if "linebelow" in hidden else line(found.linebelow),
        header=tuple(found.headerrow),
        row=tuple(found.datarow),
        padding=found.padding,
        minimum=0 if pretty else 2,
        centered=pretty,
    )


def style_names() -> list[str]:
    """The styles that are plain text."""
    import tabulate

    return sorted(
        name
        for name, look in vars(tabulate)["_table_formats"].items()
        if look.datarow is not None
        and not callable(look.datarow)
        and not callable(look.headerrow)
        and name
        not in {"colon_grid", "tsv", "latex", "latex_raw", "latex_booktabs", "latex_longtable", "unsafehtml", "html"}
    )
