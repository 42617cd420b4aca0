"""What the prompt draws is what prompt_toolkit would draw without its shortcuts."""

from __future__ import annotations

import asyncio
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prompt_toolkit import PromptSession
from prompt_toolkit.application import create_app_session
from prompt_toolkit.application.current import set_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.filters import to_filter
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import DummyInput
from prompt_toolkit.layout.processors import HighlightMatchingBracketProcessor, TabsProcessor
from prompt_toolkit.output.vt100 import Vt100_Output

from sqlshell.shell.interactive.editing.continuation import Continuations
from sqlshell.shell.interactive.editing.input_drawing import draw_lightly
from sqlshell.shell.interactive.history import SuggestFromHistory, suggest_at_once
from sqlshell.shell.interactive.look.highlight import LineLexer

TEXT = st.lists(
    st.sampled_from(
        ["select (1);", "a" * 37, "b" * 90, "\tx\t", "é", "日本語" * 9, "\x01", "'", "", "from t -- c", "\x1b["]
    ),
    max_size=30,
).map("\n".join)


def continuation(width: int, line: int, row: int) -> StyleAndTextTuples:
    return [("class:continuation", " " * width if row else "-> ".rjust(width))]


def session(light: bool, wrapped: bool, rows: int = 250) -> PromptSession[str]:
    output = Vt100_Output(io.StringIO(), lambda: Size(rows=rows, columns=40))
    with create_app_session(DummyInput(), output):
        made: PromptSession[str] = PromptSession(
            [("bold", "first\nlocal> ")],
            multiline=True,
            lexer=LineLexer(Continuations()),
            prompt_continuation=continuation,
            wrap_lines=wrapped,
            input_processors=[HighlightMatchingBracketProcessor(), TabsProcessor(tabstop=8)],
            bottom_toolbar="keys",
        )
    if light:
        draw_lightly(made, continuation)
    return made


def drawn(prompt: PromptSession[str], document: Document) -> object:
    app = prompt.app
    with set_app(app):
        prompt.default_buffer.set_document(document)
        app.render_counter += 1
        app.renderer.render(app, app.layout)
        screen = app.renderer.last_rendered_screen
    assert screen is not None
    cells = {
        (y, x): (cell.char, cell.style) for y, row in screen.data_buffer.items() for x, cell in row.items() if x < 40
    }
    return cells, screen.get_cursor_position(app.layout.current_window), screen.height


@pytest.mark.slow("many generated cases")
@settings(max_examples=20, deadline=None)
@given(st.booleans(), st.lists(st.tuples(TEXT, st.integers(0)), min_size=1, max_size=6))
def test_a_screen_is_the_one_that_prompt_toolkit_draws(wrapped: bool, steps: list[tuple[str, int]]) -> None:
    async def compare() -> None:
        light, plain = session(True, wrapped), session(False, wrapped)
        for text, at in steps:
            document = Document(text, at % (len(text) + 1))
            assert drawn(light, document) == drawn(plain, document)

    asyncio.run(compare())


def test_a_long_statement_scrolls_in_half_of_the_screen() -> None:
    async def heights() -> list[int]:
        text, found = Document("\n".join(map(str, range(90)))), []
        for light in (True, False):
            prompt = session(light, wrapped=True, rows=24)
            drawn(prompt, text)
            info = prompt.app.layout.current_window.render_info
            assert info is not None
            found.append(info.window_height)
        return found

    assert asyncio.run(heights()) == [12, 23]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from(["select 1", "select 12\nfrom a", "s", "select 2"]), max_size=6),
    st.lists(st.sampled_from(["s", "sel", "select 1", "x", "", "select 1\nfr"]), max_size=8),
)
def test_suggestions_are_those_of_prompt_toolkit(entries: list[str], typed: list[str]) -> None:
    history = InMemoryHistory()
    buffer, ours, theirs = Buffer(history=history), SuggestFromHistory(), AutoSuggestFromHistory()
    for number, text in enumerate(typed):
        for entry in entries[number : number + 1]:
            history.append_string(entry)
        found, expected = (way.get_suggestion(buffer, Document(text)) for way in (ours, theirs))
        assert (found and found.text) == (expected and expected.text)


def test_a_suggestion_is_there_when_its_key_is_drawn() -> None:
    history = InMemoryHistory()
    history.append_string("select 1")
    buffer = Buffer(history=history, auto_suggest=AutoSuggestFromHistory())
    suggest_at_once(buffer, SuggestFromHistory())
    buffer.insert_text("sel")
    assert buffer.suggestion is not None
    assert buffer.suggestion.text == "ect 1"
    buffer.insert_text("x")
    assert buffer.suggestion is None


def test_the_mouse_works_where_it_is_used() -> None:
    async def look() -> list[int]:
        light, found = session(True, True), []
        for used in (False, True):
            light.app.mouse_support = to_filter(used)
            drawn(light, Document("select 1"))
            found.append(len(light.app.renderer.mouse_handlers.mouse_handlers))
        return found

    without, with_mouse = asyncio.run(look())
    assert (without, with_mouse > 0) == (0, True)
