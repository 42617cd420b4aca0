"""Keys: Enter sends a complete text and otherwise inserts a line break; F2 to F5; editor; formatter; examples."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, emacs_mode, has_completions, vi_navigation_mode
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.keys import Keys

from sqlshell.shell.interactive.editing.formatter import format_script
from sqlshell.shell.options import Options
from sqlshell.sql.script.scanner import Scanner, State
from sqlshell.sql.script.splitting import complete, state_after

INDENT = "  "

_VERBATIM = frozenset({State.SINGLE_QUOTE, State.DOUBLE_QUOTE, State.BACK_QUOTE, State.DOLLAR_QUOTE, State.COPY_DATA})
"""Where a line is part of a value, which gets no indentation."""

ALT_ENTER = Keys.F24
"""A key that no keyboard has, in place of the two keys that Alt-Enter sends: see with_alt_enter()."""

_ALT_ENTER_TYPED = frozenset({"\x1b\r", "\x1b\n"})
_ALT_ENTER_KEY = "\x1b[24;2~"


class Search(Protocol):
    """A search of the history while `searching`; `began_with` is the text before it."""

    searching: bool
    began_with: str


class SendRequest:
    """Whether the user has `requested` to send the text without a `;`."""

    requested = False


def bindings(
    options: Options,
    search: Search,
    send_request: SendRequest,
    say: Callable[[str], None],
    is_complete: Callable[[str], bool] = complete,
    browse: Callable[[], Coroutine[Any, Any, None]] | None = None,
    examples: Callable[[], Sequence[str]] = tuple,
    edit: Callable[[Buffer, bool], Coroutine[Any, Any, None]] | None = None,
    in_data: Callable[[], bool] = bool,
    state: Callable[[str], State] = lambda text: state_after(text, Scanner()),
) -> KeyBindings:
    """The shell's key bindings in addition to prompt_toolkit's.

    `say` prints messages; `is_complete` returns whether Enter sends a text; `browse` shows the last result in full
    screen; `examples` are those of the help; `edit` opens a buffer in the user's editor, and may run what was saved;
    `in_data` says whether rows of COPY are typed, `state` is that of the line after a text.
    """
    keys = KeyBindings()
    searching = Condition(lambda: search.searching)

    @keys.add("c-r")
    def look(event: KeyPressEvent) -> None:
        state = event.current_buffer.complete_state
        if search.searching and state is not None and state.completions and state.current_completion is None:
            # The first one has been marked; the next one is selected.
            state.completions[0].style = "class:entry"
            event.current_buffer.go_to_completion(min(1, len(state.completions) - 1))
            return
        if search.searching:
            event.current_buffer.complete_next()
            return
        search.searching, search.began_with = True, event.current_buffer.text
        event.current_buffer.cursor_position = len(event.current_buffer.text)
        event.current_buffer.start_completion(select_first=False)

    def put_back(buffer: Buffer) -> None:
        search.searching = False
        buffer.cancel_completion()
        buffer.document = Document(search.began_with)

    @keys.add("escape", filter=searching, eager=True)
    @keys.add("c-g", filter=searching)
    @keys.add("c-d", filter=searching)
    def leave(event: KeyPressEvent) -> None:
        put_back(event.current_buffer)

    @keys.add("c-c", filter=searching)
    def interrupt(event: KeyPressEvent) -> None:
        # Otherwise the line that stays on the screen would be that of the search.
        put_back(event.current_buffer)
        event.app.exit(exception=KeyboardInterrupt(), style="class:aborting")

    @keys.add("c-x", filter=searching, eager=True)
    @keys.add("c-z", filter=searching)
    def ignore(event: KeyPressEvent) -> None:
        pass

    @keys.add("<bracketed-paste>", filter=searching, eager=True)
    def paste(event: KeyPressEvent) -> None:
        # Pasted text is inserted, and not used as letters of an entry.
        put_back(event.current_buffer)
        event.current_buffer.insert_text(event.data.replace("\r\n", "\n").replace("\r", "\n"))

    @keys.add("enter", filter=searching)
    def take(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        state = buffer.complete_state
        if state is None or not state.completions:
            # The entries for the last letters may not have been found yet.
            requested = CompleteEvent(completion_requested=True)
            entry = next(iter(buffer.completer.get_completions(buffer.document, requested)), None)
            if entry is None:
                put_back(buffer)
                return
            buffer.apply_completion(entry)
        elif state.current_completion is None:
            buffer.go_to_completion(0)
        search.searching = False
        buffer.complete_state = None
        buffer.cursor_position = len(buffer.text)

    @Condition
    def at_empty_line() -> bool:
        from prompt_toolkit.application import get_app

        document = get_app().current_buffer.document
        return document.is_cursor_at_the_end and document.line_count > 1 and not document.current_line

    @Condition
    def alone() -> bool:
        from prompt_toolkit.application import get_app

        # Alt and a key arrive as Escape and that key together.
        return not get_app().key_processor.input_queue

    @keys.add("escape", filter=has_completions & emacs_mode & ~searching, eager=alone)
    def close_menu(event: KeyPressEvent) -> None:
        event.current_buffer.cancel_completion()

    @keys.add("c-d", filter=at_empty_line & ~searching)
    def end_of_input(event: KeyPressEvent) -> None:
        if in_data():
            # As in psql, it ends the rows and not the shell.
            event.current_buffer.insert_text("\\.")
            event.current_buffer.validate_and_handle()
            return
        event.app.exit(exception=EOFError, style="class:exiting")

    @keys.add("tab", filter=Condition(in_data) & ~searching)
    def tab_in_rows(event: KeyPressEvent) -> None:
        # A tab separates the values of the text format.
        event.current_buffer.insert_text("\t")

    @keys.add("enter", filter=~searching)
    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            # A selected completion is accepted, not sent.
            buffer.complete_state = None
        elif not options.multiline or is_complete(buffer.text):
            send_request.requested = not options.multiline
            buffer.validate_and_handle()
        else:
            verbatim = state(buffer.document.text_before_cursor) in _VERBATIM
            buffer.insert_text("\n" + ("" if verbatim else _indent(buffer.document.current_line_before_cursor)))

    @keys.add("escape", "enter", filter=Condition(lambda: not options.vi) & ~searching)
    def enter_after_escape(event: KeyPressEvent) -> None:
        # Two keys in succession are not Alt-Enter, however quickly they follow each other.
        enter(event)

    @keys.add(ALT_ENTER)
    def submit(event: KeyPressEvent) -> None:
        send_request.requested = True
        event.current_buffer.validate_and_handle()

    @keys.add("f2")
    def completion(event: KeyPressEvent) -> None:
        options.completion = not options.completion

    @keys.add("f3")
    def multiline(event: KeyPressEvent) -> None:
        options.multiline = not options.multiline

    @keys.add("f4")
    def mode(event: KeyPressEvent) -> None:
        options.vi = not options.vi
        event.app.editing_mode = EditingMode.VI if options.vi else EditingMode.EMACS

    @keys.add("f5", filter=~searching)
    def explorer(event: KeyPressEvent) -> None:
        if browse is not None:
            event.app.create_background_task(browse())

    @keys.add("c-x", "c-e")
    @keys.add("v", filter=vi_navigation_mode)
    def editor(event: KeyPressEvent) -> None:
        # As in other shells, v runs what was saved.
        if edit is not None:
            event.app.create_background_task(edit(event.current_buffer, event.key_sequence[0].key == "v"))

    @keys.add("c-x", "c-f")
    def tidy(event: KeyPressEvent) -> None:
        text, why = format_script(event.current_buffer.text)
        if why:
            say(why)
        elif text != event.current_buffer.text:
            event.current_buffer.text = text
            event.current_buffer.cursor_position = len(text)

    def insert_example(event: KeyPressEvent) -> None:
        texts, number = examples(), int(event.key_sequence[-1].key)
        if number > len(texts):
            say(f"there is no example {number}; \\? COMMAND shows the examples of a command")
        else:
            event.current_buffer.document = Document(texts[number - 1])

    for digit in "123456789":
        keys.add("c-x", digit)(insert_example)

    def change_words(event: KeyPressEvent, word: str) -> None:
        # In a word, vi leaves the blanks behind it, although w moves over them.
        buffer = event.current_buffer
        match = re.match(rf"[^\S\n]+|(?:\s*(?:{word})){{1,{event.arg}}}|", buffer.document.text_after_cursor)
        event.app.clipboard.set_text(buffer.delete(len(match[0]) if match else 0))
        event.app.vi_state.input_mode = InputMode.INSERT

    keys.add("c", "w", filter=vi_navigation_mode)(lambda event: change_words(event, r"\w+|[^\w\s]+"))
    keys.add("c", "W", filter=vi_navigation_mode)(lambda event: change_words(event, r"\S+"))

    @Condition
    def suggested() -> bool:
        from prompt_toolkit.application import get_app

        buffer = get_app().current_buffer
        return bool(buffer.suggestion and buffer.suggestion.text and buffer.document.is_cursor_at_the_end)

    @keys.add("c-right", filter=suggested)
    def word_of_suggestion(event: KeyPressEvent) -> None:
        suggestion = event.current_buffer.suggestion
        if suggestion is not None:
            event.current_buffer.insert_text(_first_word(suggestion.text))

    return keys


def with_alt_enter(typed: str) -> str:
    """Keys that arrived from the terminal together, with Alt-Enter as a single key.

    A terminal sends it as Escape and Enter together; a user who presses Escape and then Enter sends two pieces. In a
    piece with other keys it was typed ahead, and the two cannot be distinguished.
    """
    return _ALT_ENTER_KEY if typed in _ALT_ENTER_TYPED else typed


def _indent(line: str) -> str:
    """The indentation of the next line: that of this line, and more after an open bracket."""
    blanks = line[: len(line) - len(line.lstrip(" "))]
    return blanks + INDENT if line.rstrip().endswith(("(", "[", "{")) else blanks


def _first_word(text: str) -> str:
    stripped = text.lstrip(" \n")
    lead = len(text) - len(stripped)
    ends = [at for at in (stripped.find(" "), stripped.find("\n")) if at > 0]
    return text[: lead + min(ends)] if ends else text
