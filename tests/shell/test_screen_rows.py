"""Long statements, and suggestions from the history, at the prompt."""

from __future__ import annotations

import asyncio
import io

from hypothesis import given, settings
from hypothesis import strategies as st
from prompt_toolkit import PromptSession
from prompt_toolkit.application import create_app_session
from prompt_toolkit.application.current import set_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import DummyInput
from prompt_toolkit.layout.processors import HighlightMatchingBracketProcessor, TabsProcessor
from prompt_toolkit.output.vt100 import Vt100_Output

from sqlshell.shell.interactive.editing.continuation import Continuations
from sqlshell.shell.interactive.editing.screen_rows import scroll_long_statements
from sqlshell.shell.interactive.history import SuggestFromHistory, suggest_at_once
from sqlshell.shell.interactive.look.highlight import LineLexer


def continuation(width: int, line: int, row: int) -> StyleAndTextTuples:
    return [("class:continuation", " " * width if row else "-> ".rjust(width))]


def session(*, scrolls: bool) -> PromptSession[str]:
    output = Vt100_Output(io.StringIO(), lambda: Size(rows=24, columns=40))
    with create_app_session(DummyInput(), output):
        made: PromptSession[str] = PromptSession(
            [("bold", "first\nlocal> ")],
            multiline=True,
            lexer=LineLexer(Continuations()),
            prompt_continuation=continuation,
            wrap_lines=True,
            input_processors=[HighlightMatchingBracketProcessor(), TabsProcessor(tabstop=8)],
            bottom_toolbar="keys",
        )
    if scrolls:
        scroll_long_statements(made)
    return made


def drawn(prompt: PromptSession[str], document: Document) -> None:
    app = prompt.app
    with set_app(app):
        prompt.default_buffer.set_document(document)
        app.renderer.render(app, app.layout)


def test_a_long_statement_scrolls_in_half_of_the_screen() -> None:
    async def heights() -> list[int]:
        text, found = Document("\n".join(map(str, range(90)))), []
        for scrolls in (True, False):
            prompt = session(scrolls=scrolls)
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
