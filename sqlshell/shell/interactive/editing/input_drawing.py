"""Draws the text that is being edited: the cost of a key depends on the visible part of the text, not on its length.

For each key, prompt_toolkit sends each line through every processor, asks for the prompt before each line, and makes
the cells of each line anew, some of it several times. Here the prompt is made once for each drawing, a line that no
processor can change goes through none, the height of a plain line is computed from its length, and the cells of a row
are kept. No cell gets a function for the mouse, which does nothing at the prompt.

Each part stands before one of prompt_toolkit's own functions and calls it for whatever it does not know. Only the last
part needs a private function, because there is no public one: if a version of prompt_toolkit has another, or something
fails, prompt_toolkit draws alone, and draws the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from inspect import signature
from typing import Any, Final

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.formatted_text import StyleAndTextTuples, to_formatted_text
from prompt_toolkit.formatted_text.utils import fragment_list_width
from prompt_toolkit.layout.controls import BufferControl, UIContent
from prompt_toolkit.layout.mouse_handlers import MouseHandlers
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput, merge_processors
from prompt_toolkit.layout.screen import Char, Screen

Prefix = Callable[[int, int], StyleAndTextTuples]
"""Makes the prompt before a row, from the number of the line and the number of the row in the wrapped line."""

Look = tuple[object, ...]
"""What a row of the screen depends on: the width, the first column, the prompt before the line, and its fragments."""

Rows = dict[Look, dict[int, Char]]

KEPT: Final = 2_000
"""Rows that are kept."""

BRACKETS: Final = frozenset("[](){}<>")

COPY_BODY: Final = "_copy_body"
"""The private method of prompt_toolkit's Window that makes the cells of its lines."""

KNOWN: Final = (
    *("ui_content", "new_screen", "write_position", "move_x", "width", "vertical_scroll", "horizontal_scroll"),
    *("wrap_lines", "highlight_lines", "vertical_scroll_2", "always_hide_cursor", "has_focus", "align"),
    "get_line_prefix",
)
"""Its parameters in all versions that are known here."""


def draw_lightly(prompt: PromptSession[str], continuation: Callable[[int, int, int], StyleAndTextTuples]) -> None:
    """Make a prompt draw what is typed in this way. `continuation` is what it has before further lines."""
    window = prompt.layout.current_window
    control, given = window.content, window.get_line_prefix
    if not isinstance(control, BufferControl) or given is None:
        return
    # The controls are always the same, and looked for several times for each key.
    controls = [*prompt.layout.find_all_controls()]
    prompt.layout.find_all_controls = lambda: iter(controls)  # type: ignore[method-assign]
    container = prompt.layout.container
    container.write_to_screen = _without_mouse(container.write_to_screen)  # type: ignore[method-assign]
    window.get_line_prefix = Prefixes(lambda: to_formatted_text(given(0, 0)), continuation)
    control.input_processors = [Processors(control.input_processors or [])]
    # The methods of these objects are replaced, because PromptSession makes the objects and takes no classes.
    content = Content(control)
    control.preferred_height = content.preferred_height  # type: ignore[method-assign]
    control.create_content = content.create_content  # type: ignore[method-assign]
    copy_body = getattr(window, COPY_BODY, None)
    if copy_body is not None and tuple(signature(copy_body).parameters) == KNOWN:
        setattr(window, COPY_BODY, RowCopier(copy_body))


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


class Content:
    """The lines of a control, and their height, which is known without them if they fill the screen."""

    def __init__(self, control: BufferControl) -> None:
        self._buffer = control.buffer
        self._preferred_height = control.preferred_height
        self._create_content = control.create_content

    def preferred_height(
        self, width: int, max_available_height: int, wrap_lines: bool, get_line_prefix: Any
    ) -> int | None:
        if not get_app().layout.is_searching:
            count = self._buffer.document.line_count
            if not wrap_lines or count >= max_available_height:
                return min(count, max_available_height) if wrap_lines else count
        return self._preferred_height(width, max_available_height, wrap_lines, get_line_prefix)

    def create_content(self, width: int, height: int, preview_search: bool = False) -> UIContent:
        content = self._create_content(width, height, preview_search)
        return content if get_app().layout.is_searching else _Lines(content, self._buffer.document.lines)


class _Lines(UIContent):
    """The same lines. The height of a line of printable ASCII follows from its length."""

    def __init__(self, content: UIContent, lines: list[str]) -> None:
        super().__init__(
            content.get_line, content.line_count, content.cursor_position, content.menu_position, content.show_cursor
        )
        self._lines = lines
        self._drawing = -1
        self._heights: dict[tuple[int, int], int] = {}

    def get_height_for_line(
        self,
        lineno: int,
        width: int,
        get_line_prefix: Prefix | None,  # type: ignore[override]
        slice_stop: int | None = None,
    ) -> int:
        if slice_stop is not None or not isinstance(get_line_prefix, Prefixes):
            return self._height(lineno, width, get_line_prefix, slice_stop)
        # A drawing asks for the same line several times; the prompt may differ in the next drawing.
        if (drawing := get_app().render_counter) != self._drawing:
            self._drawing = drawing
            self._heights.clear()
        height = self._heights.get((lineno, width))
        if height is None:
            height = self._heights[lineno, width] = self._height(lineno, width, get_line_prefix)
        return height

    def _height(self, lineno: int, width: int, get_line_prefix: Prefix | None, slice_stop: int | None = None) -> int:
        line = self._lines[lineno]
        # The last line may have a suggestion behind it.
        last = lineno == len(self._lines) - 1
        if slice_stop is None and get_line_prefix and not last and line.isascii() and line.isprintable():
            height, left = 1, len(line) + 1 + fragment_list_width(get_line_prefix(lineno, 0))
            while left > width:
                prefix = fragment_list_width(get_line_prefix(lineno, height))
                if prefix >= width:
                    break
                height += 1
                left += prefix - width
            else:
                return height
        return super().get_height_for_line(lineno, width, get_line_prefix, slice_stop)


class RowCopier:
    """Copies rows of the screen that were drawn before as a whole; `copy_body` is prompt_toolkit's function.

    prompt_toolkit gets an empty line in place of one whose row is known, so that it makes no cells and still says which
    line is where. The line of the cursor and that of the menu are left to it, because it looks up their columns.
    """

    def __init__(self, copy_body: Callable[..., Any]) -> None:
        self._copy_body = copy_body
        self._rows: Rows = {}
        self.failed = False

    def __call__(self, ui_content: UIContent, *others: Any, **named: Any) -> Any:
        given = dict(zip(KNOWN[1:], others, strict=False)) | named
        if self.failed or not isinstance(ui_content, _Lines) or given.get("horizontal_scroll"):
            return self._copy_body(ui_content, *others, **named)
        try:
            return self._copied(ui_content, **given)
        except Exception:
            # A slow prompt is better than none. An error of the lines themselves is raised again here.
            self.failed = True
            return self._copy_body(ui_content, *others, **named)

    def _copied(self, ui_content: _Lines, **given: Any) -> Any:
        rows, place, prefix = self._rows, given["write_position"], given["get_line_prefix"]
        if len(rows) > KEPT:
            rows.clear()
        menu = ui_content.menu_position
        here = {ui_content.cursor_position.y, menu.y if menu else -1}
        width, left = given["width"], place.xpos + given["move_x"]
        looks: dict[int, Look] = {}
        known: dict[int, dict[int, Char]] = {}

        def line(number: int) -> StyleAndTextTuples:
            fragments = ui_content.get_line(number)
            if number in here:
                return fragments
            look = looks[number] = (width, left, *prefix(number, 0), *fragments)
            # A look has many parts, so it is looked up once.
            if (row := rows.get(look)) is None:
                return fragments
            known[number] = row
            return []

        def before(number: int, row: int) -> StyleAndTextTuples:
            return [] if not row and number in known else prefix(number, row)

        shown = UIContent(line, ui_content.line_count, ui_content.cursor_position, menu, ui_content.show_cursor)
        drawn, places = self._copy_body(shown, **{**given, "get_line_prefix": before})
        heights = Counter(number for number, _ in drawn.values())
        for y, (number, _) in drawn.items():
            look = looks.get(number)
            # A line that is wrapped or not all on the screen has no row that is always the same.
            if look is None or heights[number] > 1 or not 0 <= y < place.height:
                continue
            row = given["new_screen"].data_buffer[y + place.ypos]
            if number in known:
                row.update(known[number])
            else:
                rows[look] = dict(row)
        return drawn, places
