"""The rows of the screen that the prompt takes: a long statement scrolls in half of it, because the time of a key
grows with the lines that are drawn; rows that a narrower window breaks are erased.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from prompt_toolkit import PromptSession
from prompt_toolkit.filters import Condition
from prompt_toolkit.layout.containers import ConditionalContainer, HSplit, Window
from prompt_toolkit.layout.dimension import Dimension, to_dimension
from prompt_toolkit.layout.screen import Screen

LEAST_LINES: Final = 8
"""The lines that a long statement has at least, however low the screen is."""


def scroll_long_statements(prompt: PromptSession[str]) -> None:
    """Make a prompt show a long statement in half of the screen."""
    window, container = prompt.layout.current_window, prompt.layout.container
    if isinstance(container, HSplit):
        usual = window.height
        window.height = lambda: Dimension.exact(_half(prompt)) if _is_long(prompt) else to_dimension(usual)
        # The bottom line stays where it is.
        container.children.insert(1, ConditionalContainer(Window(), Condition(partial(_is_long, prompt))))


def _half(prompt: PromptSession[str]) -> int:
    return max(prompt.app.output.get_size().rows // 2, LEAST_LINES)


def _is_long(prompt: PromptSession[str]) -> bool:
    return not prompt.app.is_done and prompt.default_buffer.document.line_count > _half(prompt)


def breaks_rows(environ: Mapping[str, str]) -> bool:
    """Whether the terminal is known to break rows that no longer fit."""
    return bool(environ.get("TMUX"))


def added_rows(widths: Iterable[int], cursor: int, columns: int) -> int:
    """How many rows are added above the cursor if a window gets this many columns.

    `widths` are the cells of the rows above that of the cursor, which is in the column `cursor` (from 0) of its own.
    """
    return sum(max(0, width - 1) // columns for width in widths) + cursor // columns


def erase_broken_rows(prompt: PromptSession[str]) -> None:
    """Do so for a prompt, from now on."""
    app, renderer = prompt.app, prompt.app.renderer
    erase = renderer.erase
    drawn = app.output.get_size().columns

    def note(_: object) -> None:
        nonlocal drawn
        drawn = app.output.get_size().columns

    def erased(leave_alternate_screen: bool = True) -> None:
        screen, columns = renderer.last_rendered_screen, max(1, app.output.get_size().columns)
        if screen is not None and columns < drawn:
            cursor = screen.get_cursor_position(app.layout.current_window)
            rows = added_rows((_width(screen, y) for y in range(cursor.y)), cursor.x, columns)
            if rows:
                app.output.cursor_up(rows)
        erase(leave_alternate_screen)

    app.after_render += note
    renderer.erase = erased  # type: ignore[method-assign]


def _width(screen: Screen, row: int) -> int:
    """The cells of a row up to the last one that is not blank."""
    return max((x + cell.width for x, cell in screen.data_buffer[row].items() if cell.char != " "), default=0)
