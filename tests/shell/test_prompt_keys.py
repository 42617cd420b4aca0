"""The keys of the prompt: what each does to the text, to the options, and what it sends."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterable
from typing import Any

import pytest
from prompt_toolkit import PromptSession
from prompt_toolkit.application import create_app_session
from prompt_toolkit.application.current import set_app
from prompt_toolkit.auto_suggest import Suggestion
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output.vt100 import Vt100_Output

from sqlshell.shell.interactive.editing.keys import SendRequest, bindings, with_alt_enter
from sqlshell.shell.options import Options

HISTORY = ["select 2 from u", "select 1 from t"]
NAMED = {key.value: key for key in Keys} | {"enter": Keys.ControlM, "tab": Keys.ControlI, "alt-enter": Keys.F24}


class History(Completer):
    """Completes the text by the entries that contain it, as the search of the history does."""

    def __init__(self) -> None:
        self.searching = False
        self.began_with = ""

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        if self.searching:
            for entry in HISTORY:
                if document.text in entry:
                    yield Completion(entry, -len(document.text))


class Prompt:
    """A prompt with the shell's keys; `found` is what they did."""

    def __init__(self, **options: Any) -> None:
        self.options = Options(**options)
        self.search, self.send_request = History(), SendRequest()
        self.said: list[str] = []
        self.edited: list[tuple[str, bool]] = []
        self.browsed = 0
        self.in_data = False
        self.examples: list[str] = ["select 'one'", "select 'two'"]
        self.ended: str | type[BaseException] | None = None
        self.text, self.cursor = "", 0

    async def browse(self) -> None:
        self.browsed += 1

    async def edit(self, buffer: Buffer, run: bool) -> None:
        self.edited.append((buffer.text, run))

    async def press(self, text: str, cursor: int | None, *keys: str, suggestion: str = "") -> None:
        with (
            create_pipe_input() as source,
            create_app_session(source, Vt100_Output(io.StringIO(), lambda: Size(rows=20, columns=80))),
        ):
            session: PromptSession[str] = PromptSession(
                multiline=True,
                completer=self.search,
                complete_while_typing=False,
                editing_mode=EditingMode.VI if self.options.vi else EditingMode.EMACS,
                key_bindings=bindings(
                    self.options,
                    self.search,
                    self.send_request,
                    self.said.append,
                    browse=self.browse,
                    examples=lambda: self.examples,
                    edit=self.edit,
                    in_data=lambda: self.in_data,
                ),
            )
            running = asyncio.ensure_future(session.prompt_async(handle_sigint=False))
            await steps()
            buffer = session.default_buffer
            buffer.document = Document(text, len(text) if cursor is None else cursor)
            with set_app(session.app):
                if suggestion:
                    buffer.suggestion = Suggestion(suggestion)
                for key in keys:
                    for press in presses(key):
                        session.app.key_processor.feed(press)
                        session.app.key_processor.process_keys()
                    await steps()
            self.text, self.cursor = buffer.text, buffer.cursor_position
            self.editing_mode = session.editing_mode
            self.clipboard = session.app.clipboard.get_data().text
            if not running.done() and not session.app.is_done:
                session.app.exit(result="")
                await running
                return
            try:
                self.ended = await running
            except EOFError:
                self.ended = EOFError


def presses(key: str) -> list[KeyPress]:
    """A key by its name, or the characters that are typed or, after `paste:`, pasted."""
    if key in NAMED:
        return [KeyPress(NAMED[key])]
    if key.startswith("paste:"):
        return [KeyPress(Keys.BracketedPaste, key.removeprefix("paste:"))]
    return [KeyPress(character) for character in key]


async def steps() -> None:
    """Let the loop do what the last key has begun."""
    for _ in range(20):
        await asyncio.sleep(0)


def pressed(
    text: str, *keys: str, cursor: int | None = None, prompt: Prompt | None = None, suggestion: str = ""
) -> Prompt:
    prompt = prompt or Prompt()
    asyncio.run(prompt.press(text, cursor, *keys, suggestion=suggestion))
    return prompt


@pytest.mark.parametrize(
    ("options", "text", "cursor", "ended", "left", "requested"),
    [
        ({}, "select 1;", None, "select 1;", "select 1;", False),
        ({}, "select 1", None, None, "select 1\n", False),
        ({}, "  select (", None, None, "  select (\n    ", False),
        ({}, "f(a, b)", 2, None, "f(\n  a, b)", False),
        ({}, "  select 'a'", None, None, "  select 'a'\n  ", False),
        ({}, "  select 'a", None, None, "  select 'a\n", False),
        ({}, "  select 'a (' b", 13, None, "  select 'a (\n' b", False),
        ({}, "  as $f$\n  begin (", None, None, "  as $f$\n  begin (\n", False),
        ({}, '  select "', None, None, '  select "\n', False),
        ({}, "  copy t from stdin;\n  1", None, None, "  copy t from stdin;\n  1\n", False),
        ({}, "\\x on", None, "\\x on", "\\x on", False),
        ({"multiline": False}, "select 1", None, "select 1", "select 1", True),
    ],
)
def test_enter(
    options: dict[str, Any], text: str, cursor: int | None, ended: str | None, left: str, requested: bool
) -> None:
    for key in (["enter"], ["escape", "enter"]):
        prompt = pressed(text, *key, cursor=cursor, prompt=Prompt(**options))
        assert (prompt.ended, prompt.text, prompt.send_request.requested) == (ended, left, requested)


def test_alt_enter_sends_a_text_without_its_end() -> None:
    prompt = pressed("select 1", "alt-enter")
    assert (prompt.ended, prompt.send_request.requested) == ("select 1", True)
    keys = ("\x1b\r", "\x1b\n", "\x1b", "\r", "\x1b\rx")
    assert [with_alt_enter(key) for key in keys] == ["\x1b[24;2~", "\x1b[24;2~", "\x1b", "\r", "\x1b\rx"]


def test_switches() -> None:
    prompt = pressed("a", "f2", "f3", "f4")
    assert (prompt.options.completion, prompt.options.multiline, prompt.options.vi) == (False, False, True)
    assert prompt.editing_mode is EditingMode.VI
    prompt = pressed("a", "f2", "f2", "f3", "f3", "f4", "f4")
    assert (prompt.options.completion, prompt.options.multiline, prompt.options.vi) == (True, True, False)
    assert prompt.editing_mode is EditingMode.EMACS
    assert prompt.text == "a"


def test_the_last_result_is_opened() -> None:
    prompt = pressed("a", "f5")
    assert (prompt.browsed, prompt.text) == (1, "a")


def test_the_editor_is_opened() -> None:
    assert pressed("a", "c-x", "c-e").edited == [("a", False)]
    prompt = pressed("a", "escape", "v", prompt=Prompt(vi=True))
    assert prompt.edited == [("a", True)]


def test_a_text_is_formatted() -> None:
    prompt = pressed("select a from t;", "c-x", "c-f", cursor=3)
    assert (prompt.text, prompt.cursor, prompt.said) == ("SELECT\n  a\nFROM t;", 18, [])
    assert pressed(prompt.text, "c-x", "c-f", cursor=3).cursor == 3
    prompt = pressed("select a,", "c-x", "c-f", cursor=3)
    assert (prompt.text, prompt.cursor, prompt.said) == (
        *("select a,", 3),
        ["not formatted: a statement is unfinished"],
    )


def test_examples_are_inserted() -> None:
    assert pressed("a", "c-x", "1").text == "select 'one'"
    assert pressed("a", "c-x", "2").text == "select 'two'"
    prompt = pressed("a", "c-x", "3")
    assert (prompt.text, prompt.said) == ("a", ["there is no example 3; \\? COMMAND shows the examples of a command"])


@pytest.mark.parametrize(
    ("text", "cursor", "in_data", "ended", "left"),
    [
        ("", None, False, EOFError, ""),
        ("select\n", None, False, EOFError, "select\n"),
        ("select\na", None, False, None, "select\na"),
        ("ab", 0, False, None, "b"),
        ("copy t from stdin;\n1\n", None, True, "copy t from stdin;\n1\n\\.", "copy t from stdin;\n1\n\\."),
    ],
)
def test_the_end_of_input(
    text: str, cursor: int | None, in_data: bool, ended: str | type[BaseException] | None, left: str
) -> None:
    prompt = Prompt()
    prompt.in_data = in_data
    pressed(text, "c-d", cursor=cursor, prompt=prompt)
    assert (prompt.ended, prompt.text) == (ended, left)


def test_a_tab_separates_the_values_of_rows() -> None:
    prompt = Prompt()
    prompt.in_data = True
    assert pressed("copy t from stdin;\n1", "tab", "2", prompt=prompt).text == "copy t from stdin;\n1\t2"


@pytest.mark.parametrize(
    ("text", "cursor", "suggestion", "left"),
    [
        ("sel", None, "ect 1 from t", "select"),
        ("select", None, " 1 from t", "select 1"),
        ("select 1", None, "", "select 1"),
        ("sel", 0, "ect 1", "sel"),
    ],
)
def test_a_word_of_a_suggestion(text: str, cursor: int | None, suggestion: str, left: str) -> None:
    assert pressed(text, "c-right", cursor=cursor, suggestion=suggestion).text == left


@pytest.mark.parametrize(
    ("text", "cursor", "keys", "left", "deleted"),
    [
        ("one two  three", 0, "cw", " two  three", "one"),
        ("one two  three", 0, "2cw", "  three", "one two"),
        ("a.b c", 0, "cw", ".b c", "a"),
        ("a.b c", 0, "cW", " c", "a.b"),
        ("a   b", 1, "cw", "ab", "   "),
        ("a..b", 1, "cw", "ab", ".."),
        ("a\nb", 0, "cw", "\nb", "a"),
    ],
)
def test_words_are_changed_in_vi(text: str, cursor: int, keys: str, left: str, deleted: str) -> None:
    # Escape moves the cursor to the left.
    prompt = pressed(text, "escape", "0", *["l"] * cursor, *keys, cursor=0, prompt=Prompt(vi=True))
    assert (prompt.text, prompt.cursor, prompt.clipboard) == (left, cursor, deleted)


@pytest.mark.parametrize(
    ("keys", "text", "cursor", "searching"),
    [
        (["c-r"], "select", 6, True),
        (["c-r", "enter"], "select 2 from u", 15, False),
        (["c-r", "c-r", "enter"], "select 1 from t", 15, False),
        (["c-r", "c-r", "c-r", "enter"], "select 2 from u", 15, False),
        (["c-r", " ", "1", "enter"], "select 1 from t", 15, False),
        (["c-r", "x", "enter"], "select", 6, False),
        (["c-r", "c-r", "escape"], "select", 6, False),
        (["c-r", "c-g"], "select", 6, False),
        (["c-r", "c-d"], "select", 6, False),
        (["c-r", "c-x", "c-z"], "select", 6, True),
    ],
)
def test_the_history_is_searched(keys: list[str], text: str, cursor: int, searching: bool) -> None:
    prompt = pressed("select", *keys, cursor=2)
    assert (prompt.ended, prompt.text, prompt.cursor, prompt.search.searching) == (None, text, cursor, searching)


def test_a_paste_ends_a_search() -> None:
    prompt = pressed("select ", "c-r", "x", "paste:a\r\nb\rc")
    assert (prompt.text, prompt.search.searching) == ("select a\nb\nc", False)
