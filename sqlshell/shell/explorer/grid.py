"""What of a table is seen: the cursor, the columns in their order and widths, the rows that a filter leaves."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from sqlshell.output.text.cells import cells, printable
from sqlshell.result import Column
from sqlshell.shell.explorer.pages import Pages, Row

WIDEST, NARROWEST, STEP = 40, 3, 4
SAMPLED = 200
"""Rows whose values decide how wide the columns begin."""

Fragments = list[tuple[str, str]]


class Shown(Struct):
    """One column: `at` is its place in the result."""

    at: int
    column: Column
    width: int
    hidden: bool = False
    chosen: bool = False
    """Whether a person made it that wide."""


class Grid:
    """`row` and `place` are the cursor: a line of what is shown, and a visible column, both from 0."""

    def __init__(self, pages: Pages) -> None:
        self.pages = pages
        self.columns = [Shown(at, column, 0) for at, column in enumerate(pages.columns)]
        self.row = self.place = self.top = self.left = 0
        self.frozen = 0
        self.order: list[int] | None = None
        """The rows that a filter left, in their sorted order; None for all as they come."""
        self.anchor: tuple[int, int] | None = None
        """Where a selection began."""
        self.found: re.Pattern[str] | None = None
        """What is searched for: it is marked."""
        self.height = 1
        self._fit([row for row in map(pages.row, range(min(SAMPLED, pages.total))) if row])

    @property
    def visible(self) -> list[Shown]:
        return [shown for shown in self.columns if not shown.hidden]

    @property
    def count(self) -> int:
        """The rows that can be walked to."""
        return self.pages.total if self.order is None else len(self.order)

    @property
    def current(self) -> Shown:
        return self.visible[self.place]

    def number(self, line: int) -> int:
        """The row of the result that a line shows."""
        return line if self.order is None else self.order[line]

    def line(self, line: int) -> Row | None:
        return self.pages.row(self.number(line)) if line < self.count else None

    def go(self, row: int | None = None, place: int | None = None) -> None:
        """Put the cursor somewhere, as near as there is."""
        if row is not None:
            self.row = max(0, min(row, self.count - 1))
        if place is not None:
            self.place = max(0, min(place, len(self.visible) - 1))
        self.top = min(self.top, self.row)
        if self.row >= self.top + self.height:
            self.top = self.row - self.height + 1

    def hide(self) -> bool:
        """Hide the current column; the last one stays."""
        if len(self.visible) == 1:
            return False
        self.current.hidden = True
        self.frozen = min(self.frozen, self.place)
        self.go(place=self.place)
        return True

    def show_all(self) -> None:
        for shown in self.columns:
            shown.hidden = False

    def resize(self, by: int) -> None:
        self.current.width = max(NARROWEST, self.current.width + by)
        self.current.chosen = True

    def shift(self, by: int) -> None:
        """Change places with the visible neighbor."""
        visible = self.visible
        to = self.place + by
        if 0 <= to < len(visible):
            one, other = self.columns.index(visible[self.place]), self.columns.index(visible[to])
            self.columns[one], self.columns[other] = self.columns[other], self.columns[one]
            self.place = to

    def arrange(
        self, keep: Callable[[str | None], bool] | None, key: Callable[[Row], Any] | None, *, down: bool
    ) -> None:
        """Filter and sort the rows that are here by the current column; None and None show all again."""
        at = self.current.at
        before = self.number(self.row) if self.count else 0
        if keep is None and key is None:
            self.order = None
        else:
            rows = [(number, row) for number, row in self.pages.local() if keep is None or keep(row[at])]
            if key is not None:
                by = key
                rows.sort(key=lambda item: by(item[1]), reverse=down)
            self.order = [number for number, _ in rows]
        self.top = 0
        self.go(row=before if self.order is None else 0)

    def selection(self) -> tuple[range, Sequence[Shown]]:
        """The lines and the columns that are selected; the cell of the cursor where none are."""
        row, place = self.anchor or (self.row, self.place)
        lines = range(min(row, self.row), max(row, self.row) + 1)
        return lines, self.visible[min(place, self.place) : max(place, self.place) + 1]

    def lines(self, width: int, height: int) -> list[Fragments]:
        """The table as `height` lines of `width` cells, the names of the columns first."""
        self.height = max(1, height - 1)
        self.go(self.row, self.place)
        self._fit([row for row in map(self.line, range(self.top, self.top + self.height)) if row])
        side = len(f"{self.count:,}") + 1
        columns = self._columns(width - side)
        lines = [self._names(columns, side, width)]
        lines += [self._row(line, columns, side, width) for line in range(self.top, self.top + self.height)]
        return lines

    def spot(self, x: int, y: int, width: int) -> tuple[int, int] | None:
        """The line and the visible column under a point of the screen; None where there is none."""
        side = len(f"{self.count:,}") + 1
        left = side
        for place, shown in self._columns(width - side):
            if left <= x < left + shown.width + 1:
                line = self.top + y - 1
                return (line, place) if 0 <= line < self.count and y else None
            left += shown.width + 1
        return None

    def _columns(self, width: int) -> list[tuple[int, Shown]]:
        """The columns that fit, with their visible places: the frozen ones first, then from where the view begins."""
        visible = list(enumerate(self.visible))
        fixed = visible[: self.frozen]
        room = width - sum(shown.width + 1 for _, shown in fixed)
        self.left = max(self.frozen, min(self.left, self.place)) if self.place >= self.frozen else self.left
        while True:
            rest, used = [], 0
            for place, shown in visible[max(self.left, self.frozen) :]:
                if used and used + shown.width > room:
                    break
                rest.append((place, shown))
                used += shown.width + 1
            if self.place < self.frozen or not rest or rest[-1][0] >= self.place:
                return fixed + rest
            self.left += 1

    def _names(self, columns: Sequence[tuple[int, Shown]], side: int, width: int) -> Fragments:
        found: Fragments = [("class:header", " " * side)]
        for place, shown in columns:
            style = "class:header class:selected" if place == self.place else "class:header"
            found += [(style, fitted(printable(shown.column.name), shown.width)), ("class:header", "│")]
        return _filled(found, width, "class:header")

    def _row(self, line: int, columns: Sequence[tuple[int, Shown]], side: int, width: int) -> Fragments:
        if line >= self.count:
            return [("class:continuation", "~")] if line in {self.top, self.count} else [("", "")]
        row = self.line(line)
        number = f"{self.number(line) + 1:,}"
        found: Fragments = [("class:continuation", f"{number.rjust(side - 1)} ")]
        lines, selected = self.selection()
        for place, shown in columns:
            chosen = (line in lines and shown in selected) if self.anchor else (line, place) == (self.row, self.place)
            found += self._cell(row, shown, chosen=chosen)
            found.append(("class:continuation", "│"))
        return _filled(found, width, "")

    def _cell(self, row: Row | None, shown: Shown, *, chosen: bool) -> Fragments:
        base = "class:selected" if chosen else ""
        if row is None:
            return [(f"{base} class:null", fitted("…", shown.width))]
        value = row[shown.at]
        if value is None:
            return [(f"{base} class:null", fitted("NULL", shown.width, right=shown.column.kind.numeric))]
        hit = self.found is not None and not chosen and self.found.search(value) is not None
        text = fitted(printable(value), shown.width, right=shown.column.kind.numeric)
        return [(f"{base} class:search" if hit else base, text)]

    def _fit(self, rows: Sequence[Row]) -> None:
        """Columns become as wide as these rows need, and never narrower by themselves."""
        for shown in self.columns:
            if shown.chosen or shown.hidden or shown.width >= WIDEST:
                continue
            texts = [printable(shown.column.name), *(printable((row[shown.at] or "NULL")[:WIDEST]) for row in rows)]
            shown.width = max(shown.width, NARROWEST, min(WIDEST, max(map(cells, texts))))


def fitted(text: str, width: int, *, right: bool = False) -> str:
    """A text in exactly so many cells: what does not fit ends in …"""
    size = cells(text) if len(text) <= width else width + 1
    if size > width:
        kept = text[: width - 1]
        while cells(kept) > width - 1:
            kept = kept[:-1]
        text = f"{kept}…"
        size = cells(text)
    pad = " " * (width - size)
    return pad + text if right else text + pad


def _filled(fragments: Fragments, width: int, style: str) -> Fragments:
    """The line cut at, or filled up to, the width."""
    found: Fragments = []
    left = width
    for look, text in fragments:
        size = cells(text)
        if size > left:
            found.append((look, fitted(text, left) if left > 1 else " " * left))
            left = 0
            break
        found.append((look, text))
        left -= size
    return [*found, (style, " " * left)] if left > 0 else found
