"""The interactive shell: read a text at the prompt, run it, repeat."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.cursor_shapes import (
    CursorShapeConfig,
    DynamicCursorShapeConfig,
    ModalCursorShapeConfig,
    SimpleCursorShapeConfig,
)
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.layout import ConditionalMargin, ScrollbarMargin, Window
from prompt_toolkit.layout.menus import CompletionsMenuControl
from prompt_toolkit.layout.processors import HighlightMatchingBracketProcessor, TabsProcessor
from prompt_toolkit.styles import BaseStyle, DynamicStyle

from sqlshell.errors import ConnectionFailed, Exit, NotAuthenticated, ShellError, UsageError
from sqlshell.origin import EMPTY, Trusted, trusted_text
from sqlshell.runtime.event_loops import start_in_background
from sqlshell.runtime.streams import Streams, shows_unicode
from sqlshell.shell.commands.arguments import arguments, commands_named
from sqlshell.shell.interactive.editing.completer import ShellCompleter
from sqlshell.shell.interactive.editing.continuation import Continuations
from sqlshell.shell.interactive.editing.keys import SendRequest, bindings, with_alt_enter
from sqlshell.shell.interactive.editing.screen_rows import breaks_rows, erase_broken_rows, scroll_long_statements
from sqlshell.shell.interactive.front_end import PromptFrontEnd
from sqlshell.shell.interactive.history import SuggestFromHistory, suggest_at_once
from sqlshell.shell.interactive.interrupts import handling_interrupts, interrupt_typed_ahead
from sqlshell.shell.interactive.look.highlight import LineLexer
from sqlshell.shell.interactive.look.paint import screen_depth
from sqlshell.shell.interactive.look.prompt_line import continuation_text, fragments, last_line, prompt_text
from sqlshell.shell.interactive.look.toolbar import Typing, call_text, open_text, toolbar_text
from sqlshell.shell.interactive.terminal import draws, restored
from sqlshell.shell.session import Session
from sqlshell.shell.shell import Shell
from sqlshell.sql.analysis.kinds import verb
from sqlshell.sql.completion.suggestions import used_names
from sqlshell.sql.script.scanner import State, Statement
from sqlshell.sql.script.splitting import complete, split, state_after
from sqlshell.text import duration

_REPLIES = re.compile(r"\x1b\]11;[^\x07\x1b]{0,64}(?:\x07|\x1b\\)|\x1b\[\?[0-9;]{0,64}c")

MOST_INDENTED = 20
"""The cells before further lines of a statement, where the prompt is longer."""
CATALOG_VERBS = frozenset({"CREATE", "DROP", "ALTER", "ATTACH", "DETACH", "IMPORT", "BEGIN", "COMMIT", "COPY"})
"""Verbs after which the names of a service may have changed."""

_ROWS = "enter the rows, one per line; \\. alone on a line, or Ctrl-D, ends them"
_VI_MODES = {InputMode.NAVIGATION: "NORMAL", InputMode.REPLACE: "REPLACE", InputMode.REPLACE_SINGLE: "REPLACE"}

TAB = 8
"""The width of a tab in the line that is typed, in cells."""

LONGEST_THEME = 200
"""The characters of a text in which a \\theme command is looked for."""

MENU_LINES = 8
"""The lines below the cursor that the completion menu has at least."""

SWITCH_SECONDS = 0.0005
"""How long a thread keeps the interpreter while another one waits for it, in seconds."""

THIRD_SECONDS = 2.0
"""Maximum seconds after a statement was left running within which another Ctrl-C exits the shell."""

ECHO_SECONDS = 30.0
"""How long a prompt waits for the context of the embedded service, in seconds; normally it takes milliseconds."""


async def interact(
    shell: Shell,
    front_end: PromptFrontEnd,
    greeting: Sequence[str] = (),
    typed: str = "",
    ready: Callable[[], None] = lambda: None,
) -> Exit:
    """Prompt and run until \\q or Ctrl-D. `typed` is text that was typed before the first prompt; `ready` is called
    immediately before that prompt.
    """
    # Messages are in the colors of the theme from here on.
    front_end.theme_styles.style()
    for line in greeting[:-1]:
        shell.diagnostics.report(line)
    for line in greeting[-1:]:
        shell.diagnostics.hint(line)
    # Completion works in a thread: give the typing thread the interpreter soon.
    sys.setswitchinterval(SWITCH_SECONDS)
    send_request = SendRequest()
    prompt = _prompt(shell, front_end, send_request)
    front_end.attach_prompt(prompt.app, lambda: shell.buffer.scanner.pending)
    _type_ahead(prompt, typed)
    front_end.connected(shell.session)
    try:
        await _context_known(shell, front_end)
        ready()
        with restored(front_end.streams), handling_interrupts(prompt.app, shell.statement_runner.interrupt):
            code = await _loop(shell, front_end, prompt, send_request)
            await shell.finish_prompt(wait=code != Exit.INTERRUPTED)
        return code
    finally:
        await front_end.aclose()


async def _loop(shell: Shell, front_end: PromptFrontEnd, prompt: PromptSession[str], send_request: SendRequest) -> Exit:
    statement_runner, streams, kept = shell.statement_runner, front_end.streams, ""
    check = ServiceCheck(shell, prompt.app)
    while True:
        await _context_known(shell, front_end)
        if front_end.window is not None:
            front_end.window.update()
        prompt.editing_mode = EditingMode.VI if shell.session.options.vi else EditingMode.EMACS
        statement_runner.take_pending()
        try:
            front_end.file_history.paused = shell.buffer.scanner.state is State.COPY_DATA
            with _without_garbage_collection():
                default, kept = kept or shell.buffer.recall(), ""
                text = await prompt.prompt_async(default=default, handle_sigint=False, pre_run=check.begin)
                send, send_request.requested = send_request.requested, False
            check.end()
        except NotAuthenticated:
            kept = prompt.default_buffer.text
            await check.ask()
            front_end.refresh_catalog()
            continue
        except KeyboardInterrupt:
            shell.discard_unfinished()
            if time.monotonic() - statement_runner.abandoned_at < THIRD_SECONDS:
                # The third in a row: the first asked to cancel the statement, the second left it running.
                return Exit.INTERRUPTED
            continue
        except EOFError:
            if shell.buffer.scanner.state is not State.COPY_DATA:
                return Exit.DONE
            # As in psql, it ends the data and not the shell.
            text, send = "\\.", False
        if interrupt_typed_ahead(prompt.input, streams.stdin):
            statement_runner.postpone()
        word, pending, state = bare_word(text), shell.buffer.scanner.pending, shell.buffer.scanner.state
        if word and not pending:
            if word == "help":
                shell.diagnostics.say(HELP)
                continue
            text = "\\q"
        elif message := hint(text, state):
            shell.diagnostics.say(message)
        scanner = shell.buffer.scanner
        send = send and not (complete(text, scanner) or state_after(text, scanner) is State.COPY_DATA)
        failures = shell.failures.count
        continues = await shell.run(Trusted(text), send=send)
        if shell.failures.count != failures:
            front_end.file_history.note_failure()
        if not continues:
            return Exit.DONE
        if state is not State.COPY_DATA and shell.buffer.scanner.state is State.COPY_DATA:
            shell.diagnostics.say(_ROWS)
        if statement_runner.pending:
            shell.discard_unfinished()
        _notify(shell.session, streams)
        front_end.catalog.note_use(used_names(text))
        if changes_catalog(text):
            front_end.refresh_catalog()
        else:
            front_end.context_changed()


async def _context_known(shell: Shell, front_end: PromptFrontEnd) -> None:
    """If the service is in this process, wait for the context that it reports: the first prompt shows it."""
    if shell.session.embedded and front_end.loader is not None:
        await front_end.loader.wait_for_echo(ECHO_SECONDS)


class ServiceCheck:
    """Finds what would fail every statement, such as a wrong token, while the first one is being typed."""

    def __init__(self, shell: Shell, prompt: Application[str]) -> None:
        self._shell = shell
        self._prompt = prompt
        connection = shell.session.connection
        self._needed = not connection.embedded and connection.offline is None
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Begin when the first line is read. If the token is rejected, reading it ends with NotAuthenticated, because a
        question is asked between two lines; other errors are printed above it."""
        if self._needed:
            self._needed, self._task = False, start_in_background(self._check())

    def end(self) -> None:
        """End it when something was typed, which meets the same errors."""
        self._needed = False
        if self._task is not None:
            self._task.cancel()

    async def ask(self) -> None:
        """Check the service again, as a command that may ask for a token."""
        self._prompt.erase_when_done = False

        async def connect() -> None:
            self._shell.statement_runner.show_progress(None, "connecting")
            await self._shell.session.connection.service.version()

        try:
            await self._shell.statement_runner.interruptible(connect(), "c")
        except ShellError as error:
            self._shell.diagnostics.error(error)

    async def _check(self) -> None:
        try:
            await self._shell.session.connection.service.version()
        except NotAuthenticated as error:
            if not self._prompt.is_done:
                self._prompt.erase_when_done = True
                self._prompt.exit(exception=error)
        except ConnectionFailed as error:
            self._shell.diagnostics.error(error)
        except ShellError:
            # A service that does not say its version may run statements.
            return


@contextlib.contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Suspend garbage collection while the user types: with a large catalog it takes longer than a key may."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _notify(session: Session, streams: Streams) -> None:
    """Ring the bell and, if the terminal supports it, show a desktop notification after a statement that took long."""
    options = session.options
    if options.notify and (session.elapsed or 0.0) >= options.notify and draws(streams.stdout):
        text = f"sqlshell: statement finished after {duration(session.elapsed or 0.0)}"
        streams.stdout.write(f"\a\x1b]9;{text}\x07\x1b]777;notify;sqlshell;{text}\x07")
        streams.stdout.flush()


def changes_catalog(text: str) -> bool:
    """Whether a statement in a text creates or drops an object."""
    return any(verb(item.text) in CATALOG_VERBS for item in split(text) if isinstance(item, Statement))


def _prompt(shell: Shell, front_end: PromptFrontEnd, send_request: SendRequest) -> PromptSession[str]:
    history = front_end.file_history
    view = shell
    lines = Continuations()
    unicode = shows_unicode(os.environ)
    by_mode, unchanged = ModalCursorShapeConfig(), SimpleCursorShapeConfig()
    completer = ShellCompleter(
        shell.session,
        front_end.catalog,
        lambda typed: commands_named(view.commands, typed),
        partial(arguments, view),
        history.all_entries,
    )

    def is_complete(text: str) -> bool:
        scanner = shell.buffer.scanner
        if bare_word(text) and not scanner.pending:
            return True
        line = text.count("\n")
        # Each row of data is taken as it is typed, as in psql. The value of a variable may contain the end of the
        # statement.
        ends = (
            State.COPY_DATA in {scanner.state, lines.before(text, line + 1)}
            or complete(text, scanner)
            or (":" in text and complete(view.variables.substitute(trusted_text(Trusted(text))).text, scanner))
        )
        # Only Enter asks for the hint here. The loop prints the hint about a single line when it receives the line.
        state = lines.before(text, line) if line else scanner.state
        if (line or not ends) and (message := hint(text.rpartition("\n")[2], state)):
            shell.diagnostics.say(message)
        return ends

    def message() -> StyleAndTextTuples:
        if completer.searching:
            return [("class:prompt", "history: ")]
        if shell.buffer.scanner.pending or shell.buffer.scanner.state is State.COPY_DATA:
            return [("class:continuation", continuation_text(shell.buffer.scanner.state, len("sqlshell> ")))]
        color = shell.session.options.prompt_color
        base = f"class:prompt {color}" if color else "class:prompt"
        return [(f"{base} {look}".rstrip(), text) for look, text in prompt_text(shell.session, columns())]

    def columns() -> int:
        return prompt.app.output.get_size().columns

    def continuation(width: int, line: int, wrapped: int) -> StyleAndTextTuples:
        width = min(width, MOST_INDENTED)
        if wrapped:
            return [("", " " * width)]
        state = lines.before(prompt.default_buffer.text, line)
        return [("class:continuation", continuation_text(state, width))]

    def toolbar() -> StyleAndTextTuples:
        kind = typing()
        typed = prompt.default_buffer.document.text_before_cursor
        call = call_text(typed, front_end.catalog) if kind in {Typing.UNFINISHED, Typing.COMPLETE} else []
        text = prompt.default_buffer.text
        ended = kind is Typing.UNFINISHED and text.rstrip().endswith(";")
        if ended and (opened := lines.parenthesis(text)) is not None:
            kind, call = Typing.OPEN, open_text(text.count("\n", 0, opened) + 1)
        return [*toolbar_text(shell.session, columns(), kind, vi_mode(), call, unicode=unicode)]

    def typing() -> Typing:
        buffer = prompt.default_buffer
        text, suggestion = buffer.text, buffer.suggestion
        if completer.searching:
            return Typing.UNMATCHED if completer.unmatched else Typing.SEARCH
        if buffer.complete_state is not None:
            # Without one, Enter does what it does without the menu.
            return Typing.MENU if buffer.complete_state.current_completion is None else Typing.CHOSEN
        if in_data():
            return Typing.DATA
        if not text and not shell.buffer.scanner.pending:
            return Typing.NOTHING
        if suggestion is not None and suggestion.text and buffer.document.is_cursor_at_the_end:
            return Typing.SUGGESTED
        ends = lines.before(text, buffer.document.line_count) is State.READY or not shell.session.options.multiline
        return Typing.COMPLETE if ends and text.strip() else Typing.UNFINISHED

    def in_data() -> bool:
        text = prompt.default_buffer.text
        return State.COPY_DATA in {shell.buffer.scanner.state, lines.before(text, text.count("\n") + 1)}

    def vi_mode() -> str:
        mode = prompt.app.vi_state.input_mode
        return _VI_MODES.get(mode, "INSERT") if prompt.editing_mode is EditingMode.VI else ""

    def cursor() -> CursorShapeConfig:
        return by_mode if prompt.editing_mode is EditingMode.VI else unchanged

    def wide() -> bool:
        # Without wrapped lines, prompt_toolkit need not compute the height of each line twice for every key.
        room = columns() - last_line(prompt_text(shell.session, columns())) - 1
        document = prompt.default_buffer.document
        return not document.text.isascii() or max(map(len, document.lines)) > room

    def style() -> BaseStyle:
        return front_end.theme_styles.style(_chosen_theme(prompt.default_buffer.text, view.environment.themes))

    prompt: PromptSession[str] = PromptSession(
        message,
        multiline=True,
        prompt_continuation=continuation,
        bottom_toolbar=toolbar,
        rprompt=lambda: [*fragments(shell.session.options.rprompt, shell.session)],
        lexer=LineLexer(lines),
        style=DynamicStyle(style),
        include_default_pygments_style=False,
        history=history,
        # Without a validator, this would only draw the prompt once more for each key.
        validate_while_typing=False,
        completer=completer,
        complete_while_typing=Condition(
            lambda: completer.searching or (shell.session.options.completion and not in_data())
        ),
        wrap_lines=Condition(wide),
        input_processors=[HighlightMatchingBracketProcessor(), TabsProcessor(tabstop=TAB, char1=" ", char2=" ")],
        enable_suspend=True,
        cursor=DynamicCursorShapeConfig(cursor),
        key_bindings=bindings(
            shell.session.options,
            completer,
            send_request,
            shell.diagnostics.say,
            is_complete,
            partial(_browse_last, shell, front_end),
            lambda: shell.session.examples,
            partial(_edit, shell, front_end),
            in_data,
            lambda text: state_after(text, shell.buffer.scanner),
        ),
        editing_mode=EditingMode.VI if shell.session.options.vi else EditingMode.EMACS,
        color_depth=screen_depth(),
    )
    prompt.app.on_reset += lambda _: completer.stop_searching()
    prompt.app.before_render += lambda _: _make_room(prompt)
    suggest_at_once(prompt.default_buffer, SuggestFromHistory())
    scroll_long_statements(prompt)
    _scroll_long_menus(prompt)
    if breaks_rows(os.environ):
        erase_broken_rows(prompt)
    _read_keys(prompt)
    return prompt


def _scroll_long_menus(prompt: PromptSession[str]) -> None:
    """Show the scrollbar of the completion menu only where the menu does not show all items."""

    def is_long(window: Window) -> bool:
        state, drawn = prompt.default_buffer.complete_state, window.render_info
        return state is not None and len(state.completions) > (drawn.window_height if drawn is not None else 0)

    for window in prompt.layout.find_all_windows():
        if isinstance(window.content, CompletionsMenuControl):
            window.right_margins = [ConditionalMargin(ScrollbarMargin(), Condition(partial(is_long, window)))]


def _make_room(prompt: PromptSession[str]) -> None:
    """Keep lines free for the menu only while something is typed or a menu is there: otherwise they would push a result
    off the screen."""
    buffer = prompt.default_buffer
    prompt.reserve_space_for_menu = MENU_LINES if buffer.text or buffer.complete_state is not None else 0


def _chosen_theme(text: str, themes: Callable[[], Sequence[str]]) -> str:
    """The theme in a \\theme command that is being typed, which is previewed."""
    command, _, name = text[:LONGEST_THEME].strip().partition(" ")
    return name if command == "\\theme" and name in themes() else ""


def _type_ahead(prompt: PromptSession[str], typed: str) -> None:
    """Start the first prompt with keys that were read before it."""
    keys: list[KeyPress] = []
    parser = Vt100Parser(keys.append)
    parser.feed_and_flush(typed)
    store_typeahead(prompt.input, keys)


def _read_keys(prompt: PromptSession[str]) -> None:
    """Read keys; responses of the terminal are not typed text; Alt-Enter is one key."""
    if isinstance(prompt.input, Vt100Input):
        parser: Any = prompt.input.vt100_parser
        feed = parser.feed
        parser.feed = lambda data: feed(with_alt_enter(_REPLIES.sub("", data)))


async def _browse_last(shell: Shell, front_end: PromptFrontEnd) -> None:
    """Show the last result in full screen; the line that is being typed stays as it is."""
    async with in_terminal():
        try:
            if not draws(front_end.streams.stdout):
                raise UsageError("the explorer requires a terminal with cursor control")
            async with shell.session.state.result_history.open() as result:
                await front_end.browse(result)
        except ShellError as error:
            shell.diagnostics.error(error)


async def _edit(shell: Shell, front_end: PromptFrontEnd, buffer: Buffer, run: bool) -> None:
    """Open the line that is being typed in the user's editor, and `run` what was saved."""
    async with in_terminal():
        try:
            text = front_end.edit(buffer.text, EMPTY)
        except ShellError as error:
            shell.diagnostics.error(error)
            return
    buffer.document = Document(text)
    if run:
        buffer.validate_and_handle()


_WORDS = re.compile(r"(exit|quit|help)\s*;?\s*", re.IGNORECASE)

HELP = """Type:  \\? for help with sqlshell commands
       \\h for help with SQL
       \\g or a semicolon at the end to run a statement
       \\q to quit"""


def bare_word(line: str) -> str:
    """The word that is alone on a line, which may end with a semicolon: `exit`, `help` or ""."""
    match = _WORDS.fullmatch(line)
    if match is None:
        return ""
    return "help" if match[1].lower() == "help" else "exit"


def hint(line: str, state: State) -> str:
    """The message for such a line inside an unfinished statement, to which the line belongs; "" for other lines.

    `state` is that of the scanner before the line.
    """
    word = bare_word(line)
    if not word:
        return ""
    if state in {State.READY, State.STATEMENT, State.PARENTHESIS}:
        return "Use \\? for help, or Ctrl-C to clear the input." if word == "help" else "Use \\q to quit."
    # In quotes and comments a backslash does not begin a command.
    return "Press Ctrl-C to clear the input, and Ctrl-D to quit."
