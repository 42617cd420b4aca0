"""Draws the text that is being edited: a key takes half of the time that prompt_toolkit alone needs.

For each key, prompt_toolkit asks for the prompt before each line several times, sends each line through every
processor, and gives each cell a function for the mouse, which does nothing at the prompt. Here the prompt is made once
for each drawing, and a line that no processor can change goes through none. A long statement scrolls in half of the
screen, because the time of a key grows with the lines that are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples, to_formatted_text
from prompt_toolkit.formatted_text.utils import fragment_list_width
from prompt_toolkit.layout.containers import ConditionalContainer, HSplit, Window
from prompt_toolkit.layout.controls import BufferControl
from prompt_toolkit.layout.dimension import Dimension, to_dimension
from prompt_toolkit.layout.mouse_handlers import MouseHandlers
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput, merge_processors
from prompt_toolkit.layout.screen import Screen

BRACKETS: Final = frozenset("[](){}<>")

LEAST_LINES: Final = 8
"""The lines that a long statement has at least, however low the screen is."""


def draw_lightly(prompt: PromptSession[str], continuation: Callable[[int, int, int], StyleAndTextTuples]) -> None:
    """Make a prompt draw what is typed in this way. `continuation` is what it has before further lines."""
    window = prompt.layout.current_window
    control, given = window.content, window.get_line_prefix
    if not isinstance(control, BufferControl) or given is None:
        return
    # PromptSession makes these objects and takes no classes, so their attributes and a method are replaced.
    window.get_line_prefix = Prefixes(lambda: to_formatted_text(given(0, 0)), continuation)
    control.input_processors = [Processors(control.input_processors or [])]
    container = prompt.layout.container
    container.write_to_screen = _without_mouse(container.write_to_screen)  # type: ignore[method-assign]
    if isinstance(container, HSplit):
        usual = window.height
        window.height = lambda: Dimension.exact(_half(prompt)) if _is_long(prompt) else to_dimension(usual)
        # The bottom line stays where it is.
        container.children.insert(1, ConditionalContainer(Window(), Condition(partial(_is_long, prompt))))


def _half(prompt: PromptSession[str]) -> int:
    return max(prompt.app.output.get_size().rows // 2, LEAST_LINES)


def _is_long(prompt: PromptSession[str]) -> bool:
    return not prompt.app.is_done and prompt.default_buffer.document.line_count > _half(prompt)


class _NoMouse(MouseHandlers):
    def set_mouse_handler_for_range(self, *given: object, **named: object) -> None:
        return


def _without_mouse(write_to_screen: Callable[..., None]) -> Callable[..., None]:
    """The same drawing, with no function for each cell if the mouse is not used."""

    def write(screen: Screen, mouse_handlers: MouseHandlers, *others: Any, **named: Any) -> None:
        write_to_screen(screen, mouse_handlers if get_app().mouse_support() else _NoMouse(), *others, **named)

    return write


class Prefixes:
    """The prompt before each line, made once for each drawing."""

    def __init__(
        self, prompt: Callable[[], StyleAndTextTuples], continuation: Callable[[int, int, int], StyleAndTextTuples]
    ) -> None:
        self._prompt = prompt
        self._continuation = continuation
        self._drawing = -1
        self._width = 0
        self._known: dict[tuple[int, int], StyleAndTextTuples] = {}

    def __call__(self, line: int, row: int) -> StyleAndTextTuples:
        drawing = get_app().render_counter
        if drawing != self._drawing:
            first = self._prompt()
            self._drawing, self._width, self._known = drawing, fragment_list_width(first), {(0, 0): first}
        fragments = self._known.get((line, row))
        if fragments is None:
            prompt = self._continuation(self._width, line, row)
            fragments = self._known[line, row] = to_formatted_text(prompt, style="class:prompt-continuation")
        return fragments


class Processors(Processor):
    """Several processors, which are skipped for a line that none of them can change."""

    def __init__(self, processors: list[Processor]) -> None:
        self._all = merge_processors(processors)

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        if _plain(transformation_input):
            return Transformation(transformation_input.fragments)
        return self._all.apply_transformation(transformation_input)


def _plain(line: TransformationInput) -> bool:
    """Whether a line has no tabs, suggestion, selection, other cursors, search matches, or brackets that match."""
    document, app = line.document, get_app()
    return not (
        # The suggestion is behind the last line.
        line.lineno == document.line_count - 1
        or document.selection is not None
        or line.buffer_control.buffer.multiple_cursor_positions
        or app.layout.is_searching
        or document.current_char in BRACKETS
        or document.char_before_cursor in BRACKETS
        or "\t" in document.lines[line.lineno]
    )


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
