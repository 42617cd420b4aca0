"""Erases the prompt completely after a window became narrower and its terminal broke the prompt's rows.

prompt_toolkit erases from the row where it began to draw, and finds that row by counting its own rows. tmux breaks a
row that no longer fits, so that there are more, and the first ones would stay on the screen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prompt_toolkit import PromptSession
from prompt_toolkit.layout.screen import Screen


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
