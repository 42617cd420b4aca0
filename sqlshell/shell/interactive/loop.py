"""The interactive shell: a prompt, its text run by Shell, again."""

from __future__ import annotations

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
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.layout.processors import HighlightMatchingBracketProcessor
from prompt_toolkit.styles import BaseStyle, DynamicStyle

from sqlshell.errors import Exit
from sqlshell.origin import Own, mine
from sqlshell.runtime.streams import Streams
from sqlshell.shell.commands.arguments import arguments, commands_named
from sqlshell.shell.interactive.editing.completer import ShellCompleter
from sqlshell.shell.interactive.editing.continuation import Continuations
from sqlshell.shell.interactive.editing.keys import Sending, bindings, with_alt_enter
from sqlshell.shell.interactive.front_end import PromptFrontEnd
from sqlshell.shell.interactive.interrupts import heard, typed_behind
from sqlshell.shell.interactive.look.highlight import LineLexer
from sqlshell.shell.interactive.look.paint import screen_depth
from sqlshell.shell.interactive.look.templates import filled, fragments
from sqlshell.shell.interactive.look.toolbar import continuation_text, prompt_text, toolbar_text
from sqlshell.shell.interactive.terminal import restored
from sqlshell.shell.results.humanize import duration
from sqlshell.shell.session import Session
from sqlshell.shell.shell import Shell
from sqlshell.sql.analysis.kinds import verb
from sqlshell.sql.completion.suggestions import used_names
from sqlshell.sql.script.scanner import Statement
from sqlshell.sql.script.splitting import complete, split

_REPLIES = re.compile(r"\x1b\]11;[^\x07\x1b]{0,64}(?:\x07|\x1b\\)|\x1b\[\?[0-9;]{0,64}c")

DEFINING = frozenset({"CREATE", "DROP", "ALTER", "ATTACH", "DETACH", "IMPORT", "BEGIN", "COMMIT", "COPY"})
"""Verbs after which the names that a service has may be others."""

SWITCH_SECONDS = 0.0005

THIRD_SECONDS = 2.0
"""How soon after a statement was left a further Ctrl-C leaves the shell."""

ECHO_SECONDS = 30.0
"""How long a prompt waits for the context of the embedded service, which takes milliseconds on a quiet machine."""


async def interact(shell: Shell, front_end: PromptFrontEnd, greeting: Sequence[str] = (), typed: str = "") -> Exit:
    """Prompt, run, and again, until \\q or Ctrl-D. `typed` is what was typed before the first prompt."""
    for line in greeting:
        shell.diagnostics.note(line)
    # Completion works in a thread: who types gets the interpreter back soon.
    sys.setswitchinterval(SWITCH_SECONDS)
    sending = Sending()
    prompt = _prompt(shell, front_end, sending)
    front_end.draws_in(prompt.app)
    _type_ahead(prompt, typed)
    front_end.connected(shell.session)
    try:
        return await _loop(shell, front_end, prompt, sending)
    finally:
        await front_end.aclose()


async def _loop(shell: Shell, front_end: PromptFrontEnd, prompt: PromptSession[str], sending: Sending) -> Exit:
    interruption, streams = shell.interruption, front_end.streams
    with restored(streams), heard(prompt.app, interruption.interrupt):
        while True:
            if shell.session.embedded and front_end.loader is not None:
                # It is in this process: the first prompt shows the context that it echoes.
                await front_end.loader.heard(ECHO_SECONDS)
            _title(shell.session, streams)
            prompt.editing_mode = EditingMode.VI if shell.session.options.vi else EditingMode.EMACS
            interruption.pending = False
            try:
                with _uncollected():
                    text = await prompt.prompt_async(default=shell.buffer.recall(), handle_sigint=False)
                    send, sending.chosen = sending.chosen, False
            except KeyboardInterrupt:
                shell.forget_unfinished()
                if time.monotonic() - interruption.left_at < THIRD_SECONDS:
                    # The third in a row: the first asked for the statement's end, the second left it.
                    return Exit.INTERRUPTED
                continue
            except EOFError:
                return Exit.DONE
            interruption.pending |= typed_behind(prompt.input, streams.stdin)
            going = await shell.run(Own(text), send=send and not complete(text, shell.buffer.scanner))
            if not going:
                return Exit.DONE
            if interruption.pending:
                shell.forget_unfinished()
            _notify(shell.session, streams)
            front_end.catalog.use(used_names(text))
            if defines(text):
                front_end.refresh()
            else:
                front_end.context_changed()


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """No looking for cycles while a person types: among the names of a catalog it takes longer than a key may."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _title(session: Session, streams: Streams) -> None:
    """Set the title of the terminal's window."""
    if session.options.title and _draws(streams):
        streams.stdout.write(f"\x1b]2;{filled(session.options.title, session)}\x07")
        streams.stdout.flush()


def _notify(session: Session, streams: Streams) -> None:
    """A bell, and a message of the desktop where the terminal shows those, after a statement that took long."""
    options = session.options
    if options.notify and (session.elapsed or 0.0) >= options.notify and _draws(streams):
        text = f"sqlshell: statement finished after {duration(session.elapsed or 0.0)}"
        streams.stdout.write(f"\a\x1b]9;{text}\x07\x1b]777;notify;sqlshell;{text}\x07")
        streams.stdout.flush()


def _draws(streams: Streams) -> bool:
    return streams.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def defines(text: str) -> bool:
    """Whether one of the statements in a text makes or drops something that has a name."""
    return any(verb(item.text) in DEFINING for item in split(text) if isinstance(item, Statement))


def _prompt(shell: Shell, front_end: PromptFrontEnd, sending: Sending) -> PromptSession[str]:
    front_end.looks.style()
    history = front_end.file_history
    history.before = lambda: shell.buffer.scanner.pending
    port = shell.port
    lines = Continuations()
    completer = ShellCompleter(
        shell.session,
        front_end.catalog,
        lambda typed: commands_named(port.commands, typed),
        partial(arguments, port),
        history.everything,
    )

    def whole(text: str) -> bool:
        # A variable's value may hold the statement's end.
        return complete(text, shell.buffer.scanner) or (
            ":" in text and complete(port.variables.fill(mine(Own(text))).text, shell.buffer.scanner)
        )

    def message() -> StyleAndTextTuples:
        if shell.buffer.scanner.pending:
            return [("class:continuation", continuation_text(shell.buffer.scanner.state, len("sqlshell> ")))]
        color = shell.session.options.color
        base = f"class:prompt {color}" if color else "class:prompt"
        return [(f"{base} {look}".rstrip(), text) for look, text in prompt_text(shell.session)]

    def continuation(width: int, line: int, wrapped: int) -> StyleAndTextTuples:
        if wrapped:
            return [("", " " * width)]
        state = lines.before(prompt.default_buffer.text, line)
        return [("class:continuation", continuation_text(state, width))]

    def toolbar() -> StyleAndTextTuples:
        return [*toolbar_text(shell.session, prompt.app.output.get_size().columns)]

    def wide() -> bool:
        # Without lines to wrap prompt_toolkit need not work out the height of each, twice for every key.
        taken = sum(len(text) for _, text in prompt_text(shell.session)) + 1
        room = prompt.app.output.get_size().columns - taken
        return any(len(line) > room or not line.isascii() for line in prompt.default_buffer.document.lines)

    def style() -> BaseStyle:
        return front_end.looks.style(_chosen_theme(prompt.default_buffer.text, port.environment.themes))

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
        auto_suggest=AutoSuggestFromHistory(),
        completer=completer,
        complete_while_typing=Condition(lambda: shell.session.options.completion or completer.searching),
        complete_in_thread=True,
        wrap_lines=Condition(wide),
        input_processors=[HighlightMatchingBracketProcessor()],
        enable_open_in_editor=True,
        key_bindings=bindings(
            shell.session.options, completer, sending, lambda text: _told(prompt, shell, text), whole
        ),
        editing_mode=EditingMode.VI if shell.session.options.vi else EditingMode.EMACS,
        color_depth=screen_depth(),
    )
    prompt.app.on_reset += lambda _: completer.stop_searching()
    _read_keys(prompt)
    return prompt


def _chosen_theme(text: str, themes: Callable[[], Sequence[str]]) -> str:
    """The theme that stands behind \\theme in what is being typed: it is shown at once."""
    command, _, name = text.strip().partition(" ")
    return name if command == "\\theme" and name in themes() else ""


def _type_ahead(prompt: PromptSession[str], typed: str) -> None:
    """Have the first prompt begin with keys that were read before it."""
    keys: list[KeyPress] = []
    parser = Vt100Parser(keys.append)
    parser.feed_and_flush(typed)
    store_typeahead(prompt.input, keys)


def _read_keys(prompt: PromptSession[str]) -> None:
    """What the terminal answers about itself after it was waited for is not typed text; Alt-Enter is one key."""
    if isinstance(prompt.input, Vt100Input):
        parser: Any = prompt.input.vt100_parser
        feed = parser.feed
        parser.feed = lambda data: feed(with_alt_enter(_REPLIES.sub("", data)))


def _told(prompt: PromptSession[str], shell: Shell, text: str) -> None:
    run_in_terminal(lambda: shell.diagnostics.say(text))
