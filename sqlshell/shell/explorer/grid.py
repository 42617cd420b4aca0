"""The visible part of a table: the cursor, the order and widths of columns, the filtered rows."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from msgspec import Struct

from sqlshell.output.text.cells import cells, printable
from sqlshell.output.text.lines import cut_line
from sqlshell.output.text.nesting import is_nested, spaced
from sqlshell.output.text.type_names import fitting_type, short_type
from sqlshell.output.text.value_colors import ValueColors, role_of
from sqlshell.output.writer import Role
from sqlshell.output.writers.table import justify
from sqlshell.result import Column
from sqlshell.runtime.streams import in_locale
from sqlshell.shell.explorer.pages import Pages, Row

WIDEST, NARROWEST, STEP = 40, 3, 4
EDGES = 3
"""The cells of a column beside its text: a space on both sides, and the line behind it."""
LEAST_WITH_TYPES = 12
"""The lines of a table that has a line with the types."""
WIDEST_FROZEN = 24
"""Cells of a first column that stays in view from the start."""
SAMPLED = 200
"""Rows whose values determine the initial widths of columns."""

Fragments = list[tuple[str, str]]

COLORS = ValueColors(lambda text, role: f"{role} {text}")
"""Finds the parts of a value that have colors; the style of the screen has the colors by role."""


class GridColumn(Struct):
    """One column: `at` is its position in the result."""

    at: int
    column: Column
    width: int
    hidden: bool = False
    chosen: bool = False
    """Whether the user has set its width."""
    extra: int = 0
    """The cells of its width that no other column needs at the moment."""
    role: Role | None = None
    """The color that its values share."""


class GridPosition(Struct, frozen=True):
    """The current view: the cursor in the result, the first line and column on the screen, and the frozen columns."""

    row: int
    column: int
    top: int
    left: int
    frozen: int


class Grid:
    """`row` and `place` are the cursor: a line of the shown rows and a visible column, both from 0."""

    def __init__(self, pages: Pages) -> None:
        self.pages = pages
        self.source = pages
        """The rows that are shown: those of the result, or of a part of it in another order."""
        self.columns = [GridColumn(at, column, 0) for at, column in enumerate(pages.columns)]
        self.row = self.place = self.top = self.left = 0
        self.cut = False
        """Whether the screen does not show all visible columns."""
        self.frozen = 0
        """How many columns on the left stay in view."""
        self.anchor: tuple[int, int] | None = None
        """The start of the selection."""
        self.pattern: re.Pattern[str] | None = None
        """The pattern to highlight."""
        self.searched = ""
        """The text to search for; `pattern` is its pattern."""
        self.height = 1
        self._bar, self._ellipsis = in_locale("│"), in_locale("…")
        self.marked = "class:selected"
        """The style of the cursor and of the selection."""
        self._heads = 1
        """Lines above the rows: the names of the columns, and their types if there is room."""
        first = [row for row in map(pages.row, range(min(SAMPLED, pages.total))) if row]
        numbered = len(self.columns) > 1 and all(row[0] == str(number) for number, row in enumerate(first, 1))
        self._side = 0 if first and numbered else len(f"{pages.total:,}") + 1
        """The cells of the numbers of the rows, which an ID that repeats them makes unnecessary."""
        for shown in self.columns:
            shown.role = role_of(shown.column, [row[shown.at] for row in first])
        self._fit(first)
        if len(self.columns) > 1 and self.columns[0].width <= WIDEST_FROZEN:
            self.frozen = 1

    @property
    def visible(self) -> list[GridColumn]:
        return [shown for shown in self.columns if not shown.hidden]

    @property
    def count(self) -> int:
        """The number of rows that can be reached."""
        return self.source.total

    @property
    def current(self) -> GridColumn:
        return self.visible[self.place]

    def number(self, line: int) -> int | None:
        """The row of the result that a line shows; None if it is not in memory."""
        if self.source is self.pages:
            return line
        row = self.source.original(line)
        return None if row is None else int(row[-1] or 0)

    def line(self, line: int) -> Row | None:
        return self.source.row(line) if line < self.count else None

    @property
    def position(self) -> GridPosition:
        """Where the cursor is, for restore()."""
        row = (self.number(self.row) or 0) if self.count else 0
        return GridPosition(row, self.current.at, max(0, row - self.row + self.top), self.left, self.frozen)

    def restore(self, place: GridPosition) -> None:
        """Go to a place of the same result, with all of its rows and columns."""
        self.frozen, self.left = place.frozen, place.left
        self.row = max(0, min(place.row, self.count - 1))
        self.place = min(place.column, len(self.visible) - 1)
        self.top = min(place.top, self.row)

    def go(self, row: int | None = None, place: int | None = None) -> None:
        """Move the cursor, as far as possible."""
        if row is not None:
            self.row = max(0, min(row, self.count - 1))
        if place is not None:
            self.place = max(0, min(place, len(self.visible) - 1))
        self.top = min(self.top, self.row)
        if self.row >= self.top + self.height:
            self.top = self.row - self.height + 1

    def hide(self) -> bool:
        """Hide the current column, unless it is the last visible one."""
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
        self.current.chosen, self.current.extra = True, 0

    def shift(self, by: int) -> None:
        """Swap the current column with its visible neighbor."""
        visible = self.visible
        to = self.place + by
        if 0 <= to < len(visible):
            one, other = self.columns.index(visible[self.place]), self.columns.index(visible[to])
            self.columns[one], self.columns[other] = self.columns[other], self.columns[one]
            self.place = to

    def show(self, source: Pages) -> None:
        """Show all rows of the result, or those that another source has, each with its number as its last value."""
        row = (self.number(self.row) or 0) if self.count and source is self.pages else 0
        self.source = source
        self.top = 0
        self.go(row=row)

    def selection(self) -> tuple[range, Sequence[GridColumn]]:
        """The selected lines and columns; the cell of the cursor if nothing is selected."""
        row, place = self.anchor or (self.row, self.place)
        lines = range(min(row, self.row), max(row, self.row) + 1)
        return lines, self.visible[min(place, self.place) : max(place, self.place) + 1]

    def lines(self, width: int, height: int) -> list[Fragments]:
        """The table as `height` lines of `width` cells, beginning with names and, if there is room, types."""
        self._heads = 1 + (height >= LEAST_WITH_TYPES)
        self.height = max(1, height - self._heads)
        self.go(self.row, self.place)
        rows = [row for row in map(self.line, range(self.top, self.top + self.height)) if row]
        for shown in self.columns:
            shown.width, shown.extra = shown.width - shown.extra, 0
        self._fit(rows)
        self._spread(rows, width - self._side)
        columns = self._columns(width - self._side)
        self.cut = len(columns) < len(self.visible)
        lines = [self._names(columns, width)]
        if self._heads > 1:
            lines.append(self._types(columns, width))
        return lines + [self._row(line, columns, width) for line in range(self.top, self.top + self.height)]

    def cell_at(self, x: int, y: int, width: int) -> tuple[int, int] | None:
        """The line and visible column at a position of the screen; None if there is none."""
        left = self._side
        for place, shown in self._columns(width - self._side):
            if left <= x < left + shown.width + EDGES:
                line = self.top + y - self._heads
                return (line, place) if line < self.count and y >= self._heads else None
            left += shown.width + EDGES
        return None

    def _columns(self, width: int) -> list[tuple[int, GridColumn]]:
        """The columns that fit, with their visible positions: first the frozen ones, then those from the scroll
        position on.
        """
        visible = list(enumerate(self.visible))
        fixed = visible[: self.frozen]
        room = width - sum(shown.width + EDGES for _, shown in fixed)
        self.left = max(self.frozen, min(self.left, self.place)) if self.place >= self.frozen else self.left
        while True:
            rest, used = [], 0
            for place, shown in visible[max(self.left, self.frozen) :]:
                # The last line may be cut off.
                if used and used + shown.width + EDGES - 1 > room:
                    break
                rest.append((place, shown))
                used += shown.width + EDGES
            if self.place < self.frozen or not rest or rest[-1][0] >= self.place:
                return fixed + rest
            self.left += 1

    def _names(self, columns: Sequence[tuple[int, GridColumn]], width: int) -> Fragments:
        fragments: Fragments = [("class:header", " " * self._side)]
        for place, shown in columns:
            style = f"class:header {self.marked}" if place == self.place else "class:header"
            name = self._fitted(printable(shown.column.name), shown.width, right=shown.column.kind.numeric)
            fragments += [(f"{style} bold", f" {name} "), ("class:continuation", self._bar)]
        return self._filled(fragments, width, "class:header")

    def _types(self, columns: Sequence[tuple[int, GridColumn]], width: int) -> Fragments:
        fragments: Fragments = [("", " " * self._side)]
        for _, shown in columns:
            name = fitting_type(shown.column.exact_type, shown.width, self._ellipsis)
            text = self._fitted(name, shown.width, right=shown.column.kind.numeric)
            fragments += [("class:dim", f" {text} "), ("class:continuation", self._bar)]
        return self._filled(fragments, width, "")

    def _row(self, line: int, columns: Sequence[tuple[int, GridColumn]], width: int) -> Fragments:
        if line >= self.count:
            return [("class:continuation", "~")] if line in {self.top, self.count} else [("", "")]
        row = self.line(line)
        at = self.number(line)
        number = self._ellipsis if at is None else f"{at + 1:,}"
        side = f"{number.rjust(self._side - 1)} " if self._side else ""
        fragments: Fragments = [("class:continuation", side)]
        lines, selected = self.selection()
        for place, shown in columns:
            chosen = (line in lines and shown in selected) if self.anchor else (line, place) == (self.row, self.place)
            edge = self.marked if chosen else ""
            fragments += [(edge, " "), *self._cell(row, shown, chosen=chosen), (edge, " ")]
            fragments.append(("class:continuation", self._bar))
        return self._filled(fragments, width, "")

    def _cell(self, row: Row | None, shown: GridColumn, *, chosen: bool) -> Fragments:
        base = self.marked if chosen else ""
        if row is None:
            return [(f"class:null {base}", self._fitted(self._ellipsis, shown.width))]
        value = row[shown.at]
        if value is None:
            return [(f"class:null {base}", self._fitted("NULL", shown.width, right=shown.column.kind.numeric))]
        hit = self.pattern is not None and not chosen and self.pattern.search(value) is not None
        text = self._fitted(_shown(value, shown.column), shown.width, right=shown.column.kind.numeric)
        if hit or chosen:
            return [(f"{base} class:search reverse" if hit else base, text)]
        colored = COLORS.value(text, value, shown.column, shown.role)
        return [(f"class:{role}" if role else "", part) for role, part in COLORS.parts(colored)]

    def _fit(self, rows: Sequence[Row]) -> None:
        """Widen columns for these rows; they never become narrower automatically."""
        for shown in self.columns:
            if shown.chosen or shown.hidden or shown.width >= WIDEST:
                continue
            heads = [printable(shown.column.name), short_type(shown.column.exact_type)]
            texts = [*heads[: self._heads], *(_first(row[shown.at] or "NULL", shown.column) for row in rows)]
            shown.width = max(shown.width, NARROWEST, min(WIDEST, max(map(cells, texts))))

    def _spread(self, rows: Sequence[Row], width: int) -> None:
        """Show more of long values if the screen has room beside all columns."""
        left = width + 1 - sum(shown.width + EDGES for shown in self.visible)
        for shown in self.visible:
            if left > 0 and shown.width == WIDEST and not shown.chosen:
                values = [row[shown.at] or "" for row in rows]
                longest = max((cells(_shown(value[: WIDEST + left], shown.column)) for value in values), default=0)
                shown.extra = max(0, min(left, longest - WIDEST))
                shown.width += shown.extra
                left -= shown.extra

    def _fitted(self, text: str, width: int, *, right: bool = False) -> str:
        """A text in exactly that many cells; a longer text ends in an ellipsis."""
        return justify(cut_line(text, width, self._ellipsis), width, "right" if right else "left")

    def _filled(self, fragments: Fragments, width: int, style: str) -> Fragments:
        """The line truncated or padded to the width."""
        line: Fragments = []
        left = width
        for look, text in fragments:
            size = cells(text)
            if size > left:
                line.append((look, self._fitted(text, left) if left > 1 else " " * left))
                left = 0
                break
            line.append((look, text))
            left -= size
        return [*line, (style, " " * left)] if left > 0 else line


def _first(value: str, column: Column) -> str:
    """As much of a value as the widest column has room for."""
    return printable(value[:WIDEST]) if len(value) >= WIDEST else _shown(value, column)


def _shown(value: str, column: Column) -> str:
    """A value in a cell; nested ones as in a table."""
    return _nested(value) if is_nested(column) else printable(value)


@functools.lru_cache(maxsize=512)
def _nested(value: str) -> str:
    # Each key draws the same cells again.
    return printable(spaced(value))
