"""The keys of the explorer in one table, which `?` shows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from sqlshell.errors import UsageError
from sqlshell.origin import Trusted
from sqlshell.output.text.cells import printable
from sqlshell.output.text.lines import folded
from sqlshell.output.text.type_names import simple_type
from sqlshell.result import Table
from sqlshell.shell.explorer.arrangement import Arrangement, arranged
from sqlshell.shell.explorer.explorer import Explorer, pattern
from sqlshell.shell.explorer.export import copy_cells, export_table
from sqlshell.shell.explorer.grid import STEP
from sqlshell.shell.explorer.pages import Pages
from sqlshell.shell.explorer.summary import facts_of, pretty, summary
from sqlshell.shell.results.crosstab import place
from sqlshell.text import format_count

WINDOW: Final = 1_000
"""The most rows of a file that are read together."""

HELP: Final = (
    ("arrows, h j k l", "move; PgUp, PgDn and Space scroll by a screen"),
    ("g, G", "go to the first or last row; Home, End to the first or last column"),
    (":", "go to a row by its number"),
    ("c", "go to a column by its name or number"),
    ("/", "search for a regular expression; n finds the next match, N the previous one, Esc stops"),
    ("&", "show only rows whose value here matches a regular expression; NULL finds NULLs too, nothing shows all"),
    ("[ and ]", "sort by this column, ascending or descending"),
    ("=", "remove the filter and the sort order"),
    ("f", "freeze the columns up to this one, or unfreeze them; initially, a narrow first column is frozen"),
    ("-, +", "hide this column; show all columns"),
    ("<, >", "make this column narrower or wider"),
    ("{, }", "move this column left or right"),
    ("Enter", "show the full value; JSON and nested values are indented"),
    ("s", "show statistics of this column"),
    ("v", "start or end a selection"),
    ("y, Y, K", "copy the cell or selection, the row, the column"),
    ("w", "write the visible rows and columns to a file; the extension sets the format"),
    ("q, Esc", "exit; Esc first ends a search or a selection"),
)


def bindings(explorer: Explorer) -> KeyBindings:
    """The key bindings of the table."""
    keys = KeyBindings()
    grid, pages = explorer.grid, explorer.pages

    def on(*names: str) -> Callable[[Callable[[], None]], None]:
        def add(work: Callable[[], None]) -> None:
            def handle(event: KeyPressEvent) -> None:
                explorer.message = ""
                work()

            for name in names:
                keys.add(name, filter=explorer.browsing, eager=name == "escape")(handle)

        return add

    _navigation_keys(explorer, on)
    _search_keys(explorer, on)
    _arrangement_keys(explorer, on)
    _column_keys(explorer, on)

    def leave_or_stop() -> None:
        if explorer.working:
            explorer.stop()
        elif grid.anchor is not None:
            grid.anchor = None
        else:
            explorer.app.exit()

    def end_search() -> None:
        if grid.pattern is not None and not explorer.working and grid.anchor is None:
            grid.pattern = None
        else:
            leave_or_stop()

    on("q", "c-c", "c-d")(leave_or_stop)
    on("escape")(end_search)

    @on("?", "f1")
    def show_keys() -> None:
        width = max(len(name) for name, _ in HELP)
        lines = "\n".join(f"{name.ljust(width)}  {text}" for name, text in HELP)
        explorer.read(folded(lines, explorer.reading_width))

    @on("enter")
    def show_value() -> None:
        row = grid.line(grid.row)
        if row is not None:
            shown = grid.current
            number = (grid.number(grid.row) or 0) + 1
            title = f"{printable(shown.column.name)}  {printable(simple_type(shown.column.exact_type))}  row {number:,}"
            explorer.read(f"{title}\n\n{pretty(shown.column, row[shown.at])}")

    @on("s")
    def statistics() -> None:
        at, column = grid.current.at, grid.current.column

        async def of_table(table: Table) -> None:
            facts = await facts_of(table, at)
            note = (
                pages.extent
                if pages.complete
                else f"only the {format_count(facts.rows, 'row')} in memory, of {pages.total:,}"
            )
            explorer.read(summary(column, facts, note))

        explorer.start(lambda: _read_table(explorer, of_table))

    @on("v")
    def select() -> None:
        grid.anchor = None if grid.anchor is not None else (grid.row, grid.place)

    for name, what in (("y", "cell"), ("Y", "row"), ("K", "column")):

        @on(name)
        def copy(what: str = what) -> None:
            explorer.message = copy_cells(grid, what, explorer.file_options)
            grid.anchor = None

    @on("w")
    def write() -> None:
        explorer.ask(
            "write to file: ",
            lambda path: explorer.start(lambda: export_table(explorer, Trusted(path))) if path else None,
        )

    return keys


On = Callable[..., Callable[[Callable[[], None]], None]]


async def _read_table(explorer: Explorer, use: Callable[[Table], Awaitable[None]]) -> None:
    """Pass all rows to `use` as a table, or those in memory if the service has no file of them."""
    if not explorer.pages.whole:
        explorer.message = "reading all rows; Esc stops"
        explorer.app.invalidate()
    async with explorer.pages.table() as table:
        await use(table)
    explorer.message = ""


def _navigation_keys(explorer: Explorer, on: On) -> None:
    grid = explorer.grid

    def scroll(screens: int) -> None:
        grid.top = max(0, min(max(0, grid.count - grid.height), grid.top + screens * grid.height))
        grid.go(row=grid.row + screens * grid.height)

    on("down", "j")(lambda: grid.go(row=grid.row + 1))
    on("up", "k")(lambda: grid.go(row=grid.row - 1))
    on("left", "h")(lambda: grid.go(place=grid.place - 1))
    on("right", "l")(lambda: grid.go(place=grid.place + 1))
    on("pagedown", "space", "c-f")(lambda: scroll(1))
    on("pageup", "b", "c-b")(lambda: scroll(-1))
    on("g", "c-home")(lambda: grid.go(row=0))
    on("G", "c-end")(lambda: grid.go(row=grid.count - 1))
    on("home", "0")(lambda: grid.go(place=0))
    on("end", "$")(lambda: grid.go(place=len(grid.visible) - 1))

    @on(":")
    def go_to_row() -> None:
        def answered(text: str) -> None:
            digits = text.replace(",", "").strip()
            if digits.isascii() and digits.isdecimal():
                grid.go(row=int(digits) - 1)
            elif text:
                explorer.message = f"{text!r} is not a row number"

        explorer.ask("row: ", answered)

    @on("c")
    def go_to_column() -> None:
        def answered(text: str) -> None:
            visible = [shown.column for shown in grid.visible]
            try:
                grid.go(place=place(visible, text) if text else None)
            except UsageError:
                near = [at for at, column in enumerate(visible) if text.lower() in column.name.lower()]
                grid.go(place=near[0] if near else None)
                explorer.message = "" if near else f'column "{text}" does not exist'

        explorer.ask("column: ", answered)


def _search_keys(explorer: Explorer, on: On) -> None:
    grid = explorer.grid

    async def search(since: int, step: int) -> None:
        """Move to the next row that matches, fetching partitions on the way."""
        assert grid.pattern is not None
        line = since
        while 0 <= line < grid.count:
            row = grid.line(line)
            if row is None:
                explorer.message = f"searching row {line + 1:,}; Esc stops"
                explorer.app.invalidate()
                row = await grid.source.load_row(line)
            for number, shown in enumerate(grid.visible):
                value = row[shown.at] if row is not None else None
                if value is not None and grid.pattern.search(value):
                    grid.go(row=line, place=number)
                    explorer.message = ""
                    return
            line += step
        explorer.message = f"no match for '{printable(grid.searched)}' {'below' if step > 0 else 'above'}"

    @on("/")
    def find() -> None:
        since = grid.row

        def typing(text: str) -> None:
            grid.pattern, grid.searched = pattern(text) if text else None, text
            if text:
                explorer.start(lambda: search(since, 1))

        def answered(text: str) -> None:
            grid.pattern, grid.searched = pattern(text) if text else None, text

        explorer.ask("/", answered, typing)

    def search_again(step: int) -> None:
        if grid.pattern is not None:
            explorer.start(lambda: search(grid.row + step, step))

    on("n")(lambda: search_again(1))
    on("N")(lambda: search_again(-1))


def _arrangement_keys(explorer: Explorer, on: On) -> None:
    grid, pages = explorer.grid, explorer.pages
    condition: tuple[int, str] | None = None
    """A column by its number, and the text that its values contain."""
    order: tuple[int, bool] | None = None
    """The column that rows are sorted by, and whether in descending order."""

    def arrange() -> None:
        """Apply filter and sort order."""
        if condition is None and order is None:
            explorer.stop()
            explorer.sorted = ""
            grid.show(pages)
        else:
            explorer.start(lambda: _read_table(explorer, arrange_table))

    def description() -> str:
        parts = []
        if condition is not None:
            parts.append(f"{printable(pages.columns[condition[0]].name)} matches {condition[1]!r}")
        if order is not None:
            parts.append(f"sorted by {printable(pages.columns[order[0]].name)}{' desc' if order[1] else ''}")
        return ", ".join(parts)

    async def arrange_table(table: Table) -> None:
        keep = None if condition is None else (condition[0], pattern(condition[1]))
        window = max(1, min(WINDOW, pages.total // len(pages.partitions())))
        if not pages.complete or pages.whole:
            # The table has them only for this one time.
            window = max(1, pages.total)
        source = Pages(await arranged(table, pages.columns, Arrangement(keep, order), window))
        await source.open()
        grid.show(source)
        rows = 0 if pages.complete else sum(1 for _ in pages.loaded_rows())
        explorer.sorted = description() + (f" (only the {format_count(rows, 'row')} in memory)" if rows else "")

    @on("&")
    def filter_rows() -> None:
        at = grid.current.at

        def answered(text: str) -> None:
            nonlocal condition
            condition = (at, text) if text else None
            arrange()

        explorer.ask(f"rows where {printable(grid.current.column.name)} matches: ", answered)

    def sort(*, down: bool) -> None:
        nonlocal order
        order = (grid.current.at, down)
        arrange()

    def reset() -> None:
        nonlocal condition, order
        condition = order = None
        arrange()

    on("[")(lambda: sort(down=False))
    on("]")(lambda: sort(down=True))
    on("=")(reset)


def _column_keys(explorer: Explorer, on: On) -> None:
    grid = explorer.grid

    @on("f")
    def freeze() -> None:
        grid.frozen = 0 if grid.frozen == grid.place + 1 else grid.place + 1

    @on("-")
    def hide() -> None:
        if not grid.hide():
            explorer.message = "cannot hide the only visible column"

    on("+")(grid.show_all)
    on("<")(lambda: grid.resize(-STEP))
    on(">")(lambda: grid.resize(STEP))
    on("{")(lambda: grid.shift(-1))
    on("}")(lambda: grid.shift(1))
