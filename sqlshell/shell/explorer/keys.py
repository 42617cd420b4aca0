"""The explorer's keys: one table, which `?` shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from sqlshell.errors import UsageError
from sqlshell.origin import Own
from sqlshell.output.text.cells import printable
from sqlshell.shell.explorer.explorer import Explorer, pattern
from sqlshell.shell.explorer.export import copied, exported
from sqlshell.shell.explorer.grid import STEP
from sqlshell.shell.explorer.summary import pretty, sort_key, summary
from sqlshell.shell.results.crosstab import place

HELP: Final = (
    ("arrows, h j k l", "move; PgUp, PgDn and Space move by a screen"),
    ("g, G", "go to the first or last row; Home, End to the first or last column"),
    (":", "go to a row by its number"),
    ("c", "go to a column by its name or number"),
    ("/", "search for a regular expression; n next match, N previous match, Esc stops"),
    ("&", "show only rows that contain a text in this column; an empty text shows all rows"),
    ("[ and ]", "sort by this column, ascending or descending"),
    ("=", "remove filter and sorting"),
    ("f", "freeze the columns up to this one, or unfreeze"),
    ("-, +", "hide this column, show all columns"),
    ("<, >", "make this column narrower or wider"),
    ("{, }", "move this column to the left or to the right"),
    ("Enter", "show the full value; JSON and nested values are indented"),
    ("s", "show statistics of this column"),
    ("v", "start or end a selection"),
    ("y, Y, K", "copy the cell or selection, the row, the column"),
    ("w", "write the visible rows and columns to a file; the extension sets the format"),
    ("q, Esc", "exit"),
)


def bindings(explorer: Explorer) -> KeyBindings:
    """The keys of the table."""
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

    _walking(explorer, on)
    _looking(explorer, on)
    _arranging(explorer, on)

    @on("q", "escape", "c-c", "c-d")
    def leave() -> None:
        if explorer.working:
            explorer.stop()
        elif grid.anchor is not None:
            grid.anchor = None
        else:
            explorer.app.exit()

    @on("?", "f1")
    def show_keys() -> None:
        width = max(len(name) for name, _ in HELP)
        explorer.read("\n".join(f"{name.ljust(width)}  {text}" for name, text in HELP))

    @on("enter")
    def value() -> None:
        row = grid.line(grid.row)
        if row is not None:
            shown = grid.current
            title = f"{printable(shown.column.name)}  {printable(shown.column.type)}  row {grid.number(grid.row) + 1:,}"
            explorer.read(f"{title}\n\n{pretty(shown.column, row[shown.at])}")

    @on("s")
    def like() -> None:
        values = [row[grid.current.at] for _, row in pages.local()]
        note = "all rows" if pages.whole else f"of the {len(values):,} rows in memory; the result has {pages.total:,}"
        explorer.read(summary(grid.current.column, values, note))

    @on("v")
    def select() -> None:
        grid.anchor = None if grid.anchor is not None else (grid.row, grid.place)

    for name, what in (("y", "cell"), ("Y", "row"), ("K", "column")):

        @on(name)
        def copy(what: str = what) -> None:
            explorer.message = copied(grid, what)
            grid.anchor = None

    @on("w")
    def write() -> None:
        explorer.ask("write to: ", lambda path: explorer.start(lambda: exported(explorer, Own(path))) if path else None)

    return keys


On = Callable[..., Callable[[Callable[[], None]], None]]


def _walking(explorer: Explorer, on: On) -> None:
    grid = explorer.grid

    def move(*names: str, rows: int = 0, places: int = 0) -> None:
        @on(*names)
        def walk() -> None:
            grid.go(row=grid.row + rows, place=grid.place + places)

    move("down", "j", rows=1)
    move("up", "k", rows=-1)
    move("left", "h", places=-1)
    move("right", "l", places=1)

    @on("pagedown", "space", "c-f")
    def page() -> None:
        grid.top = min(max(0, grid.count - grid.height), grid.top + grid.height)
        grid.go(row=grid.row + grid.height)

    @on("pageup", "b", "c-b")
    def page_back() -> None:
        grid.top = max(0, grid.top - grid.height)
        grid.go(row=grid.row - grid.height)

    @on("g", "c-home")
    def first() -> None:
        grid.go(row=0)

    @on("G", "c-end")
    def last() -> None:
        grid.go(row=grid.count - 1)

    @on("home", "0")
    def first_column() -> None:
        grid.go(place=0)

    @on("end", "$")
    def last_column() -> None:
        grid.go(place=len(grid.visible) - 1)

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
                explorer.message = "" if near else f"no column {text!r}"

        explorer.ask("column: ", answered)


def _looking(explorer: Explorer, on: On) -> None:
    grid = explorer.grid

    async def search(since: int, step: int) -> None:
        """Walk to the next row that has it, fetching partitions on the way."""
        assert grid.found is not None
        line = since
        while 0 <= line < grid.count:
            row = grid.line(line)
            if row is None:
                explorer.message = f"searching row {line + 1:,}; Esc stops"
                explorer.app.invalidate()
                row = await explorer.pages.load_row(grid.number(line))
            for number, shown in enumerate(grid.visible):
                value = row[shown.at] if row is not None else None
                if value is not None and grid.found.search(value):
                    grid.go(row=line, place=number)
                    explorer.message = ""
                    return
            line += step
        explorer.message = f"{grid.found.pattern!r} not found {'below' if step > 0 else 'above'}"

    @on("/")
    def find() -> None:
        since = grid.row

        def typing(text: str) -> None:
            grid.found = pattern(text) if text else None
            if text:
                explorer.start(lambda: search(since, 1))

        def answered(text: str) -> None:
            grid.found = pattern(text) if text else None

        explorer.ask("/", answered, typing)

    @on("n")
    def following() -> None:
        if grid.found is not None:
            explorer.start(lambda: search(grid.row + 1, 1))

    @on("N")
    def before() -> None:
        if grid.found is not None:
            explorer.start(lambda: search(grid.row - 1, -1))


def _arranging(explorer: Explorer, on: On) -> None:
    grid, pages = explorer.grid, explorer.pages
    kept: list[str] = [""]
    order: list[tuple[int, bool] | None] = [None]

    def arrange() -> None:
        """Filter and sort anew, and say of what."""
        text, by = kept[0], order[0]
        wanted = pattern(text) if text else None
        column = grid.columns[0].column if by is None else pages.columns[by[0]]
        grid.arrange(
            (lambda value: value is not None and wanted is not None and wanted.search(value) is not None)
            if wanted is not None
            else None,
            (lambda row: sort_key(column, row[by[0]])) if by is not None else None,
            down=by is not None and by[1],
        )
        told = [f"contains {text!r}"] if text else []
        told += [f"by {printable(column.name)}{' down' if by[1] else ''}"] if by is not None else []
        part = "" if pages.whole or not told else f" of the {sum(1 for _ in pages.local()):,} rows in memory"
        explorer.sorted = ", ".join(told) + part

    @on("&")
    def keep() -> None:
        def answered(text: str) -> None:
            kept[0] = text
            arrange()

        explorer.ask(f"rows whose {printable(grid.current.column.name)} contains: ", answered)

    @on("[")
    def ascending() -> None:
        order[0] = (grid.current.at, False)
        arrange()

    @on("]")
    def descending() -> None:
        order[0] = (grid.current.at, True)
        arrange()

    @on("=")
    def as_it_came() -> None:
        kept[0], order[0] = "", None
        arrange()

    @on("f")
    def freeze() -> None:
        grid.frozen = 0 if grid.frozen else grid.place + 1

    @on("-")
    def hide() -> None:
        if not grid.hide():
            explorer.message = "cannot hide the last column"

    @on("+")
    def show_all() -> None:
        grid.show_all()

    @on("<")
    def narrower() -> None:
        grid.resize(-STEP)

    @on(">")
    def wider() -> None:
        grid.resize(STEP)

    @on("{")
    def to_the_left() -> None:
        grid.shift(-1)

    @on("}")
    def to_the_right() -> None:
        grid.shift(1)
