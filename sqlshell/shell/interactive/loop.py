"""The interactive shell: a prompt, its text run by Shell, again."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import os
import re
import sys
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input.typeahead import clear_typeahead, store_typeahead
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.layout.processors import HighlightMatchingBracketProcessor
from prompt_toolkit.styles import BaseStyle, DynamicStyle

from sqlshell.errors import Exit, Interrupted, UsageError
from sqlshell.interface.models import ContextEcho
from sqlshell.origin import Own, mine
from sqlshell.output.text.cells import printable
from sqlshell.output.writer import Summary
from sqlshell.result import Result
from sqlshell.shell.commands.arguments import arguments, commands_named
from sqlshell.shell.interactive.editing.completer import ShellCompleter
from sqlshell.shell.interactive.editing.continuation import Continuations
from sqlshell.shell.interactive.editing.keys import Sending, bindings, with_alt_enter
from sqlshell.shell.interactive.history import FileHistory
from sqlshell.shell.interactive.interrupts import heard, typed_behind
from sqlshell.shell.interactive.look.highlight import LineLexer
from sqlshell.shell.interactive.look.paint import here, painter, previews, screen_depth
from sqlshell.shell.interactive.look.templates import filled, fragments
from sqlshell.shell.interactive.look.themes import DEFAULT, load
from sqlshell.shell.interactive.look.toolbar import continuation_text, prompt_text, toolbar_text
from sqlshell.shell.interactive.terminal import restored
from sqlshell.shell.metadata.catalog_loader import Loader
from sqlshell.shell.results.humanize import duration
from sqlshell.shell.session import Session
from sqlshell.shell.shell import Shell
from sqlshell.sql.analysis.kinds import verb
from sqlshell.sql.completion.catalog import Catalog
from sqlshell.sql.completion.suggestions import used_names
from sqlshell.sql.script.scanner import Statement
from sqlshell.sql.script.splitting import complete, split

_REPLIES = re.compile(r"\x1b\]11;[^\x07\x1b]{0,64}(?:\x07|\x1b\\)|\x1b\[\?[0-9;]{0,64}c")

DEFINING = frozenset({"CREATE", "DROP", "ALTER", "ATTACH", "DETACH", "IMPORT", "BEGIN", "COMMIT", "COPY"})
"""Verbs after which the names that a service has may be others."""

SWITCH_SECONDS = 0.0005

THIRD_SECONDS = 2.0
"""How soon after a statement was left a further Ctrl-C leaves the shell."""

ECHO_SECONDS = 3.0


async def interact(
    shell: Shell, *, state: Path, themes: Path, target: str, greeting: Sequence[str] = (), typed: str = ""
) -> Exit:
    """Prompt, run, and again, until \\q or Ctrl-D.

    `state` is the folder of history and catalogs, `themes` the person's own folder of themes; `target` is what names
    the service in both, "" for one that nobody meets again; `typed` is what was typed before the first prompt.
    """
    for line in greeting:
        shell.diagnostics.note(line)
    # Completion works in a thread: who types gets the interpreter back soon.
    sys.setswitchinterval(SWITCH_SECONDS)
    looks = _Looks(shell, themes)
    history = FileHistory(_history_file(state, target), shell.diagnostics.warn, state / "history", shell.hooks.redact)
    history.before = lambda: shell.buffer.scanner.pending
    loader = Loader(
        shell.service.statements,
        lambda: shell.session.context,
        target,
        state / "catalogs" if target else None,
    )
    sending = Sending()
    prompt = _prompt(shell, history, loader.catalog, looks, sending)
    _type_ahead(prompt, typed)
    shell.session.columns_seen = loader.catalog.note
    shell.hooks.refresh = loader.refresh
    shell.hooks.catalog = loader.catalog
    shell.hooks.history = lambda: [(entry.time, entry.text) for entry in history.everything()]
    shell.hooks.forget = history.clear
    shell.hooks.previews = lambda: previews(themes, here())

    def adopt(echo: ContextEcho | None) -> None:
        # Only what is not known yet: a session of its own may stand elsewhere.
        context = shell.session.context
        known = {name: value for name, value in context.parts() if value}
        shell.session.context = replace(context.adopt(echo), **known)

    loader.adopt, loader.changed = adopt, prompt.app.invalidate

    def announce(text: str) -> None:
        if prompt.app.is_running:
            run_in_terminal(lambda: shell.diagnostics.say(text))
        else:
            shell.diagnostics.say(text)

    shell.background.announce = announce
    shell.hooks.ask = _ask

    async def ask_token(base: str) -> str:
        # Nothing is asked over what is being typed: what loads names behind the prompt goes without.
        if not shell.busy:
            return ""
        shell.foreground.progress.hide()
        shell.diagnostics.say(f"{base} does not accept the token")
        try:
            return (await _ask(f"token for {base}: ", hidden=True)).strip()
        finally:
            if shell.session.running is not None:
                shell.foreground.progress.show()

    shell.session.ask_token = ask_token

    async def browsed(result: Result) -> Summary:
        from sqlshell.shell.explorer.browsing import browse

        return await browse(result, looks.style())

    shell.hooks.browse = browsed
    shell.session.jobs = lambda: shell.background.running

    def moved(name: str) -> None:
        history.move(_history_file(state, name))
        loader.move(shell.service.statements, name, state / "catalogs" if name else None)
        shell.background.announce = announce

    shell.hooks.moved = moved
    loader.begin()
    if shell.session.embedded:
        # It is in this process: the first prompt shows the context that it echoes.
        await loader.heard(ECHO_SECONDS)
    try:
        return await _loop(shell, prompt, loader, sending)
    finally:
        await loader.aclose()


async def _loop(shell: Shell, prompt: PromptSession[str], loader: Loader, sending: Sending) -> Exit:
    with restored(), heard(prompt.app, shell.interrupt):
        while True:
            _title(shell)
            prompt.editing_mode = EditingMode.VI if shell.session.options.vi else EditingMode.EMACS
            shell.interrupted = False
            try:
                with _uncollected():
                    text = await prompt.prompt_async(default=shell.buffer.recall(), handle_sigint=False)
                    send, sending.chosen = sending.chosen, False
            except KeyboardInterrupt:
                shell.forget_unfinished()
                if time.monotonic() - shell.foreground.left_at < THIRD_SECONDS:
                    # The third in a row: the first asked for the statement's end, the second left it.
                    return Exit.INTERRUPTED
                continue
            except EOFError:
                return Exit.DONE
            shell.interrupted |= typed_behind(prompt.input)
            going = await shell.run(Own(text), send=send and not complete(text, shell.buffer.scanner))
            if not going:
                return Exit.DONE
            if shell.interrupted:
                shell.forget_unfinished()
            _notify(shell.session)
            loader.catalog.use(used_names(text))
            if defines(text):
                loader.refresh()
            else:
                loader.moved()


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """No looking for cycles while a person types: among the names of a catalog it takes longer than a key may."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _title(shell: Shell) -> None:
    """Set the title of the terminal's window."""
    if shell.session.options.title and _draws():
        sys.stdout.write(f"\x1b]2;{filled(shell.session.options.title, shell.session)}\x07")
        sys.stdout.flush()


def _notify(session: Session) -> None:
    """A bell, and a message of the desktop where the terminal shows those, after a statement that took long."""
    options = session.options
    if options.notify and (session.elapsed or 0.0) >= options.notify and _draws():
        text = f"sqlshell: done after {duration(session.elapsed or 0.0)}"
        sys.stdout.write(f"\a\x1b]9;{text}\x07\x1b]777;notify;sqlshell;{text}\x07")
        sys.stdout.flush()


def _draws() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def defines(text: str) -> bool:
    """Whether one of the statements in a text makes or drops something that has a name."""
    return any(verb(item.text) in DEFINING for item in split(text) if isinstance(item, Statement))


def _history_file(state: Path, target: str) -> Path:
    """Where the statements of one target are: named by it, so that a person finds the file."""
    if not target:
        return state / "history-local"
    named = re.sub(r"[^A-Za-z0-9.-]+", "_", target)[:60].strip("_")
    return state / f"history-{named}-{hashlib.sha256(target.encode()).hexdigest()[:8]}"


class _Looks:
    """The style of the theme that is chosen now; one that cannot be loaded is told, and the last one stays."""

    def __init__(self, shell: Shell, folder: Path) -> None:
        self._shell = shell
        self._folder = folder
        self._name = ""
        self._style: BaseStyle = load(DEFAULT).style()
        self.trying: Callable[[], str] = str
        """The theme that is being chosen at the prompt, "" for none."""

    def style(self) -> BaseStyle:
        name = self.trying() or self._shell.session.options.theme
        if name != self._name:
            self._name = name
            try:
                theme = load(name, self._folder)
                self._style = theme.style()
                self._shell.session.paint = painter(theme, here())
            except UsageError as error:
                if not self.trying():
                    self._shell.diagnostics.error(error)
        return self._style


def _prompt(
    shell: Shell, history: FileHistory, catalog: Catalog, looks: _Looks, sending: Sending
) -> PromptSession[str]:
    looks.style()
    lines = Continuations()
    completer = ShellCompleter(
        shell.session,
        catalog,
        lambda typed: commands_named(shell.commands, typed),
        partial(arguments, shell),
        history.everything,
    )

    def whole(text: str) -> bool:
        # A variable's value may hold the statement's end.
        return complete(text, shell.buffer.scanner) or (
            ":" in text and complete(shell.variables.fill(mine(Own(text))).text, shell.buffer.scanner)
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

    prompt: PromptSession[str] = PromptSession(
        message,
        multiline=True,
        prompt_continuation=continuation,
        bottom_toolbar=toolbar,
        rprompt=lambda: [*fragments(shell.session.options.rprompt, shell.session)],
        lexer=LineLexer(lines),
        style=DynamicStyle(looks.style),
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
    looks.trying = lambda: _chosen_theme(prompt.default_buffer.text, shell)
    _read_keys(prompt)
    return prompt


def _chosen_theme(text: str, shell: Shell) -> str:
    """The theme that stands behind \\theme in what is being typed: it is shown at once."""
    command, _, name = text.strip().partition(" ")
    return name if command == "\\theme" and name in shell.hooks.themes() else ""


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


async def _ask(question: str, *, hidden: bool = False) -> str:
    """A line that is no statement: nothing of it is remembered. Raises Interrupted where there is no answer.

    What was typed before the question was seen is no answer to it. The question may quote what a service gave.
    """
    session = PromptSession[str]()
    clear_typeahead(session.input)
    if sys.stdin.isatty():
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    try:
        answer = await session.prompt_async(printable(question), is_password=hidden, handle_sigint=False)
        if typed_behind(session.input):
            raise KeyboardInterrupt
        return answer
    except (EOFError, KeyboardInterrupt):
        raise Interrupted("cancelled") from None


def _told(prompt: PromptSession[str], shell: Shell, text: str) -> None:
    run_in_terminal(lambda: shell.diagnostics.say(text))
