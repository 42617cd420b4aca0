"""Draws the text that is being edited so that a key costs what is seen of the text and not the whole text.

For each key, prompt_toolkit sends each line through every processor, asks for the prompt before each line, and makes
the cells of each line anew, some of it several times. Here the prompt is made once for each drawing, a line that no
processor can change goes through none, the height of a plain line is computed from its length, and the cells of a row
are kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.auto_suggest import AutoSuggest, Suggestion
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples, to_formatted_text
from prompt_toolkit.formatted_text.utils import fragment_list_width
from prompt_toolkit.history import History
from prompt_toolkit.layout.containers import Window
from prompt_toolkit.layout.controls import BufferControl, UIContent
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput, merge_processors
from prompt_toolkit.layout.screen import Char, Screen, WritePosition

Prefix = Callable[[int, int], StyleAndTextTuples]
"""What is before a line: its number, and the number of the row in it, if it is wrapped."""

Look = tuple[object, ...]
"""What a row of the screen depends on: the width, the first column, the prompt before the line, and its fragments."""

Rows = dict[Look, dict[int, Char]]

KEPT = 2_000
"""Rows that are kept."""

BRACKETS = frozenset("[](){}<>")


def draw_lightly(prompt: PromptSession[str], continuation: Callable[[int, int, int], StyleAndTextTuples]) -> None:
    """Make a prompt draw what is typed in this way. `continuation` is what it has before further lines."""
    window = prompt.layout.current_window
    control = window.content
    assert isinstance(control, BufferControl)
    control.__class__ = TypedText
    window.__class__ = TypedWindow
    assert isinstance(window, TypedWindow)
    window.rows = {}
    control.input_processors = [Processors(control.input_processors or [])]
    given = window.get_line_prefix
    assert given is not None
    window.get_line_prefix = Prefixes(lambda: to_formatted_text(given(0, 0)), continuation)


class Prefixes:
    """What is before each line, made once for each drawing."""

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
        found = self._known.get((line, row))
        if found is None:
            made = self._continuation(self._width, line, row)
            found = self._known[line, row] = to_formatted_text(made, style="class:prompt-continuation")
        return found


class Processors(Processor):
    """Several processors, of which none sees a line that none of them can change."""

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


class TypedText(BufferControl):
    """The control with the text. Its height is known without its lines if they fill the screen."""

    def preferred_height(
        self, width: int, max_available_height: int, wrap_lines: bool, get_line_prefix: Callable[..., object] | None
    ) -> int | None:
        if not get_app().layout.is_searching:
            count = self.buffer.document.line_count
            if not wrap_lines or count >= max_available_height:
                return min(count, max_available_height) if wrap_lines else count
        return super().preferred_height(width, max_available_height, wrap_lines, get_line_prefix)  # type: ignore[arg-type]

    def create_content(self, width: int, height: int, preview_search: bool = False) -> UIContent:
        made = super().create_content(width, height, preview_search)
        if get_app().layout.is_searching:
            return made
        return _Lines(made, self.buffer.document.lines)


class _Lines(UIContent):
    """The same lines. The height of a line of printable ASCII follows from its length."""

    def __init__(self, made: UIContent, lines: list[str]) -> None:
        super().__init__(made.get_line, made.line_count, made.cursor_position, made.menu_position, made.show_cursor)
        self._lines = lines

    def get_height_for_line(
        self,
        lineno: int,
        width: int,
        get_line_prefix: Prefix | None,  # type: ignore[override]
        slice_stop: int | None = None,
    ) -> int:
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


class TypedWindow(Window):
    """The window with the text. Rows that were drawn before are copied as a whole."""

    rows: Rows

    def _copy_body(  # type: ignore[override]
        self,
        ui_content: UIContent,
        new_screen: Screen,
        write_position: WritePosition,
        move_x: int,
        width: int,
        vertical_scroll: int = 0,
        horizontal_scroll: int = 0,
        wrap_lines: bool = False,
        **others: Any,
    ) -> tuple[dict[int, tuple[int, int]], dict[tuple[int, int], tuple[int, int]]]:
        given = (ui_content, new_screen, write_position, move_x, width, vertical_scroll, horizontal_scroll, wrap_lines)
        prefix = others.pop("get_line_prefix", None)
        if horizontal_scroll or not isinstance(ui_content, _Lines) or prefix is None:
            return super()._copy_body(*given, **others, get_line_prefix=prefix)
        rows = self.rows
        if len(rows) > KEPT:
            rows.clear()
        here = {ui_content.cursor_position.y, ui_content.menu_position.y if ui_content.menu_position else -1}
        looks: dict[int, Look] = {}

        def line(number: int) -> StyleAndTextTuples:
            fragments = ui_content.get_line(number)
            if number in here:
                return fragments
            looks[number] = (width, write_position.xpos + move_x, *prefix(number, 0), *fragments)
            return [] if looks[number] in rows else fragments

        def before(number: int, row: int) -> StyleAndTextTuples:
            return [] if not row and looks.get(number) in rows else prefix(number, row)

        shown = UIContent(
            line,
            ui_content.line_count,
            ui_content.cursor_position,
            ui_content.menu_position,
            ui_content.show_cursor,
        )
        drawn, places = super()._copy_body(shown, *given[1:], **others, get_line_prefix=before)
        heights = Counter(number for number, _ in drawn.values())
        for y, (number, _) in drawn.items():
            look = looks.get(number)
            if look is None or heights[number] > 1 or not 0 <= y < write_position.height:
                continue
            row = new_screen.data_buffer[y + write_position.ypos]
            if look in rows:
                row.update(rows[look])
            else:
                rows[look] = dict(row)
        return drawn, places


class SuggestFromHistory(AutoSuggest):
    """Suggests the rest of the latest line of the history that begins as the line does that is being typed.

    While a line grows, the search goes on where it was.
    """

    def __init__(self) -> None:
        self._entries: list[str] = []
        self._lines: list[str] = []
        self._typed = ""
        self._at = 0

    def get_suggestion(self, buffer: Buffer, document: Document) -> Suggestion | None:
        typed = document.text[document.text.rfind("\n") + 1 :]
        if not typed.strip():
            return None
        if self._changed(buffer.history) or not self._typed or not typed.startswith(self._typed):
            self._at = 0
        self._typed = typed
        lines = self._lines
        self._at = next((at for at in range(self._at, len(lines)) if lines[at].startswith(typed)), len(lines))
        return Suggestion(lines[self._at][len(typed) :]) if self._at < len(lines) else None

    def _changed(self, history: History) -> bool:
        entries = history.get_strings()
        if (
            len(entries) == len(self._entries)
            and entries[-1:] == self._entries[-1:]
            and entries[:1] == self._entries[:1]
        ):
            return False
        self._entries = entries
        self._lines = [line for entry in reversed(entries) for line in reversed(entry.splitlines())]
        return True
