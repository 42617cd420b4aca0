"""Table styles: the frame of a terminal, psql's, and those of tabulate, which is imported only for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct

from sqlshell.errors import UsageError
from sqlshell.text import did_you_mean

BAR = "\x01"
"""A control character that stands for the bar between two cells until the text is encoded: it may have a color."""

Edge = tuple[str, str, str]
"""The text before the first cell of a row, between cells, and after the last one, including spaces."""


class Lines(Struct, frozen=True):
    """The horizontal lines of a table, each with its line break; "" if there is none."""

    above: str = ""
    below_header: str = ""
    between: str = ""
    below: str = ""


class Style(Struct, frozen=True):
    """A style: `lines` returns the lines for columns with these widths and alignments, with or without a header;
    `minimum` is how much wider than its header a column is, and `bar` what BAR stands for in the edges.
    """

    header: Edge
    row: Edge
    minimum: int
    lines: Callable[[Sequence[int], Sequence[str], bool], Lines]
    bar: str = "|"


def _psql_lines(widths: Sequence[int], aligns: Sequence[str], header: bool) -> Lines:
    line = "+".join("-" * (width + 2) for width in widths)
    # One text for both: it is as long as the widest value.
    frame = f"+{line}+\n"
    return Lines(above=frame, below_header=f"|{line}|\n" if header else "", below=frame)


PSQL = Style(("| ", " | ", " |"), ("| ", " | ", " |"), 2, _psql_lines)


BARE = Style((" ", " | ", ""), (" ", " | ", ""), 0, lambda widths, aligns, header: Lines())
"""Rows without names of columns in a file, as psql writes them with -t."""


class Frame(Struct, frozen=True):
    """The characters of a frame on the screen: a line, a bar, and the left, middle and right end of each line."""

    line: str
    bar: str
    top: Edge
    middle: Edge
    bottom: Edge

    def rule(self, ends: Edge, widths: Sequence[int]) -> str:
        """Draw a horizontal line, with its line break."""
        return ends[0] + ends[1].join(self.line * (width + 2) for width in widths) + ends[2] + "\n"


ROUNDED = Frame("─", "│", ("╭", "┬", "╮"), ("├", "┼", "┤"), ("╰", "┴", "╯"))
ASCII = Frame("-", "|", ("+", "+", "+"), ("|", "+", "|"), ("+", "+", "+"))
SCREEN_EDGE: Edge = (f"{BAR} ", f" {BAR} ", f" {BAR}")


def screen_style(*, unicode: bool) -> Style:
    """Return the style of tables at a terminal."""
    frame = ROUNDED if unicode else ASCII

    def lines(widths: Sequence[int], aligns: Sequence[str], header: bool) -> Lines:
        top, middle, bottom = (frame.rule(ends, widths) for ends in (frame.top, frame.middle, frame.bottom))
        return Lines(above=top, below_header=middle, below=bottom)

    return Style(SCREEN_EDGE, SCREEN_EDGE, 0, lines, frame.bar)


AUTO = "auto"
"""The default: the terminal's own style at a terminal, psql's in a file or a pipe."""

_NOT_FOR_TERMINALS = frozenset(
    {"asciidoc", "colon_grid", "html", "latex", "latex_booktabs", "latex_longtable", "latex_raw", "mediawiki"}
    | {"moinmoin", "textile", "tsv", "unsafehtml"}
)
"""colon_grid has its own rules of alignment; the others are data formats or markup."""

_CELL = "xxxx"
_MINIMUM = 2


def table_style(name: str) -> Style:
    """The style with that name. Raises UsageError with similar names, or all."""
    if name in {"psql", AUTO}:
        return PSQL
    if name not in style_names():
        hint = did_you_mean(name, style_names(), f"styles: {', '.join([AUTO, *style_names()])}")
        raise UsageError(f"unknown table style {name!r}", hint)
    minimum = 0 if name == "pretty" else _MINIMUM
    head = _head(minimum)
    drawn = _drawn(name, ["left", "left"], head)
    header = next(line for line in drawn if head in line)
    # tabulate removes the spaces at the end of a line.
    start, between, stop = (header + " " * minimum).split(head + " " * minimum)
    first, middle, last = next(line for line in drawn if _CELL in line).split(_CELL)
    return Style((start, between, stop.rstrip()), (first, middle, last), minimum, partial(_lines, name, head))


def style_names() -> list[str]:
    """The names of the plain-text styles, in order."""
    import tabulate

    return sorted(set(tabulate.tabulate_formats) - _NOT_FOR_TERMINALS)


def _head(minimum: int) -> str:
    """A header that makes its column as wide as `_CELL`."""
    return "y" * (len(_CELL) - minimum)


def _drawn(name: str, aligns: Sequence[str], head: str) -> list[str]:
    """The lines of tabulate's table with two rows of `_CELL`, below headers `head` unless that is ""."""
    import tabulate

    return tabulate.tabulate(
        [[_CELL] * len(aligns)] * 2,
        [head] * len(aligns) if head else (),
        tablefmt=name,
        disable_numparse=True,
        colalign=aligns,
    ).split("\n")


def _lines(name: str, head: str, widths: Sequence[int], aligns: Sequence[str], header: bool) -> Lines:
    """tabulate's lines for columns as wide as `_CELL`, stretched to `widths`."""
    drawn = _drawn(name, aligns, head if header else "")
    first, second = (number for number, line in enumerate(drawn) if _CELL in line)
    top = next(number for number, line in enumerate(drawn) if head in line) if header else first
    cells = [match.span() for match in re.finditer(_CELL, drawn[first])]
    before = [0, *(end for _, end in cells)]

    def stretched(lines: list[str]) -> str:
        wide = [
            "".join(
                line[last:start] + line[start : start + 1] * width
                for last, (start, _), width in zip(before, cells, widths, strict=False)
            )
            + line[before[-1] :]
            for line in lines
        ]
        return "".join(f"{line.rstrip()}\n" for line in wide)

    return Lines(
        above=stretched(drawn[:top]),
        below_header=stretched(drawn[top + 1 : first]),
        between=stretched(drawn[first + 1 : second]),
        below=stretched(drawn[second + 1 :]),
    )
