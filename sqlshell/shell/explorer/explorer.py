"""The explorer's screen: the table, a status line, an input line, and texts that cover the screen."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import ConditionalContainer, HSplit, Layout, VSplit, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl, UIContent, UIControl
from prompt_toolkit.layout.margins import ConditionalMargin, ScrollbarMargin
from prompt_toolkit.mouse_events import MouseEvent, MouseEventType
from prompt_toolkit.styles import BaseStyle
from prompt_toolkit.widgets import TextArea

if TYPE_CHECKING:
    from prompt_toolkit.key_binding.key_bindings import NotImplementedOrNone

from sqlshell.errors import ShellError
from sqlshell.output.text.cells import cells, printable
from sqlshell.output.text.lines import wrapped
from sqlshell.output.text.type_names import simple_type
from sqlshell.output.writer import WriterOptions
from sqlshell.runtime.streams import in_locale
from sqlshell.shell.explorer.grid import Grid
from sqlshell.shell.explorer.pages import Pages
from sqlshell.shell.interactive.look.paint import color_depth, screen_depth
from sqlshell.text import format_count

SCROLLED = 3
"""Lines per step of the mouse wheel."""


class Explorer:
    """`grid` is the visible part of the table; keys.py binds the keys. run() returns when the user leaves."""

    def __init__(self, pages: Pages, style: BaseStyle | None, file_options: WriterOptions) -> None:
        self.pages = pages
        self.file_options = file_options
        """Options of files and copies."""
        self.grid = Grid(pages)
        if not color_depth():
            self.grid.marked += " reverse"
        self.message = ""
        self.sorted = ""
        """A description of the filter and sort order."""
        self._loading: set[tuple[Pages, int]] = set()
        self._work: asyncio.Task[None] | None = None
        self._label = ""
        self._asking = False
        self._answered: Callable[[str], None] = lambda text: None
        self._typing: Callable[[str], None] | None = None
        self._line = Buffer(multiline=False, on_text_changed=self._typed)
        self._text = TextArea(read_only=True, style="class:text")
        self._text.window.right_margins = [ConditionalMargin(ScrollbarMargin(), Condition(self._text_is_taller))]
        self._reading = False
        self._table = Window(_Table(self), dont_extend_height=False)
        self.browsing = Condition(lambda: not self._asking and not self._reading)
        self.app: Application[None] = Application(
            Layout(self._containers(), self._table),
            key_bindings=self._bindings(),
            style=style,
            full_screen=True,
            mouse_support=True,
            color_depth=screen_depth(),
        )

    async def run(self, keys: KeyBindings) -> None:
        """Show it until the user leaves; `keys` are those of the table."""
        from prompt_toolkit.key_binding import merge_key_bindings

        self.app.key_bindings = merge_key_bindings([keys, self._bindings()])
        try:
            await self.app.run_async(handle_sigint=False)
        finally:
            self.stop()

    def ask(self, label: str, answered: Callable[[str], None], typing: Callable[[str], None] | None = None) -> None:
        """Prompt for a line; `typing` is called with it while it is typed."""
        self._label, self._answered, self._typing = label, answered, typing
        self._asking = True
        self._line.reset()
        self.app.layout.focus(self._line)

    def read(self, text: str) -> None:
        """Show a text over the table, until q."""
        self._text.text = wrapped(text, self.reading_width)
        self._reading = True
        self.app.layout.focus(self._text)

    @property
    def reading_width(self) -> int:
        """The cells of a line of a text over the table."""
        # The last column is that of the scrollbar, and the one before it that of the cursor behind a line.
        return self.app.output.get_size().columns - 2

    def _text_is_taller(self) -> bool:
        """Whether a text over the table has more lines than the screen, whose last one is the status line."""
        return self._text.document.line_count >= self.app.output.get_size().rows

    def start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a slow operation and cancel the previous one; Esc stops it."""
        self.stop()
        self._work = asyncio.ensure_future(self._watched(work))

    def stop(self) -> None:
        if self._work is not None:
            self._work.cancel()
        self._work = None

    @property
    def working(self) -> bool:
        return self._work is not None and not self._work.done()

    def request_partition(self, number: int) -> None:
        """Fetch a partition whose rows are visible."""
        source = self.grid.source
        if (source, number) in self._loading:
            return
        self._loading.add((source, number))

        async def fetch() -> None:
            try:
                await source.load(number)
            except ShellError as error:
                # Do not retry automatically: the next key does.
                self.message = printable(error.message)
            self._loading.discard((source, number))
            self.app.invalidate()

        self.app.create_background_task(fetch())

    async def _watched(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        except ShellError as error:
            self.message = printable(error.message)
        except asyncio.CancelledError:
            self.message = "stopped"
        finally:
            self.app.invalidate()

    def _containers(self) -> HSplit:
        status = Window(FormattedTextControl(self._status), height=1, style="class:bottom-toolbar")
        asking = ConditionalContainer(
            VSplit(
                [
                    Window(FormattedTextControl(lambda: self._label), dont_extend_width=True, height=1),
                    Window(BufferControl(self._line), height=1),
                ]
            ),
            Condition(lambda: self._asking),
        )
        reading = Condition(lambda: self._reading)
        return HSplit(
            [ConditionalContainer(self._table, ~reading), ConditionalContainer(self._text, reading), asking, status]
        )

    def _bindings(self) -> KeyBindings:
        keys = KeyBindings()
        asking, reading = Condition(lambda: self._asking), Condition(lambda: self._reading)

        @keys.add("enter", filter=asking)
        def answer(event: KeyPressEvent) -> None:
            text = self._line.text
            self._leave_line()
            self._answered(text)

        @keys.add("escape", filter=asking, eager=True)
        @keys.add("c-c", filter=asking)
        def no_answer(event: KeyPressEvent) -> None:
            self._leave_line()

        @keys.add("q", filter=reading)
        @keys.add("escape", filter=reading, eager=True)
        @keys.add("enter", filter=reading)
        @keys.add("c-c", filter=reading)
        def leave(event: KeyPressEvent) -> None:
            self._reading = False
            self.app.layout.focus(self._table)

        return keys

    def _leave_line(self) -> None:
        self._asking = False
        self.app.layout.focus(self._table)

    def _typed(self, buffer: Buffer) -> None:
        if self._asking and self._typing is not None:
            self._typing(buffer.text)

    def _status(self) -> StyleAndTextTuples:
        if self._reading:
            return [("", " q to go back")]
        grid, pages = self.grid, self.pages
        shown = grid.current
        hidden = len(grid.columns) - len(grid.visible)
        place = f"column {grid.place + 1:,} of {len(grid.visible):,}: " if grid.cut else ""
        rows = f"{grid.count:,}"
        if pages.truncated or pages.limited:
            rows = f"{'' if grid.source is pages else f'{rows} of '}the first {pages.total:,}"
        parts = [
            f"row {grid.row + 1:,} of {rows}" if grid.count else "no rows",
            f"{place}{printable(shown.column.name)} {printable(simple_type(shown.column.exact_type))}",
            self.sorted,
            format_count(hidden, "hidden column") if hidden else "",
            self.message or "? for help, q to quit",
        ]
        parts = [part for part in parts if part]
        bar, width = in_locale(" │ "), self.app.output.get_size().columns
        while len(parts) > 2 and cells(bar.join(parts)) >= width:
            # The way out is said as long as there is room for it.
            del parts[-2]
        return [("", " " + bar.join(parts))]


class _Table(UIControl):
    """The table as prompt_toolkit draws it."""

    def __init__(self, explorer: Explorer) -> None:
        self._explorer = explorer
        self._width = 80

    def is_focusable(self) -> bool:
        return True

    def create_content(self, width: int, height: int) -> UIContent:
        explorer, self._width = self._explorer, width
        lines: list[Any] = list(explorer.grid.lines(width, height))
        grid = explorer.grid
        for line in range(grid.top, min(grid.count, grid.top + grid.height)):
            if grid.line(line) is None:
                explorer.request_partition(grid.source.partition_of(line))
        return UIContent(lambda number: lines[number], line_count=len(lines), show_cursor=False)

    def mouse_handler(self, mouse_event: MouseEvent) -> NotImplementedOrNone:
        grid = self._explorer.grid
        match mouse_event.event_type:
            case MouseEventType.SCROLL_DOWN:
                grid.go(row=grid.row + SCROLLED)
            case MouseEventType.SCROLL_UP:
                grid.go(row=grid.row - SCROLLED)
            case MouseEventType.MOUSE_DOWN:
                spot = grid.cell_at(mouse_event.position.x, mouse_event.position.y, self._width)
                if spot is not None:
                    grid.go(*spot)
            case _:
                return NotImplemented
        return None


def pattern(text: str) -> re.Pattern[str]:
    """The pattern to search for: a regular expression, or the text itself if it is not a valid one; lower-case letters
    match both cases.
    """
    flags = re.NOFLAG if any(char.isupper() for char in text) else re.IGNORECASE
    try:
        return re.compile(text, flags)
    except re.error:
        return re.compile(re.escape(text), flags)
