"""The interactive shell: a prompt, its text run by Shell, again."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import BaseStyle, DynamicStyle

from sqlshell.errors import Exit, UsageError
from sqlshell.shell.prompt.history import FileHistory
from sqlshell.shell.prompt.keys import bindings
from sqlshell.shell.prompt.terminal import restored
from sqlshell.shell.prompt.themes import DEFAULT, load
from sqlshell.shell.prompt.toolbar import continuation_text, prompt_text, toolbar_text
from sqlshell.shell.shell import Shell
from sqlshell.sql.lexer import SqlshellLexer
from sqlshell.sql.scanner import Scanner

THIRD_SECONDS = 2.0
"""How soon after a statement was left a further Ctrl-C leaves the shell."""


async def interact(shell: Shell, *, history: Path, themes: Path, greeting: Sequence[str] = ()) -> Exit:
    """Prompt, run, and again, until \\q or Ctrl-D. `history` is a file, `themes` the person's own folder of themes."""
    for line in greeting:
        shell.diagnostics.note(line)
    looks = _Looks(shell, themes)
    prompt = _prompt(shell, history, looks)

    def announce(text: str) -> None:
        if prompt.app.is_running:
            run_in_terminal(lambda: shell.diagnostics.say(text))
        else:
            shell.diagnostics.say(text)

    shell.background.announce = announce
    with restored():
        while True:
            try:
                text = await prompt.prompt_async()
            except KeyboardInterrupt:
                if time.monotonic() - shell.foreground.left_at < THIRD_SECONDS:
                    # The third in a row: the first asked for the statement's end, the second left it.
                    return Exit.INTERRUPTED
                continue
            except EOFError:
                return Exit.DONE
            async with _interruptible(shell):
                going = await shell.run(text)
            if not going:
                return Exit.DONE


class _Looks:
    """The style of the theme that is chosen now; one that cannot be loaded is told, and the last one stays."""

    def __init__(self, shell: Shell, folder: Path) -> None:
        self._shell = shell
        self._folder = folder
        self._name = ""
        self._style: BaseStyle = load(DEFAULT).style()

    def style(self) -> BaseStyle:
        name = self._shell.session.options.theme
        if name != self._name:
            self._name = name
            try:
                self._style = load(name, self._folder).style()
            except UsageError as error:
                self._shell.diagnostics.error(error)
        return self._style


def _prompt(shell: Shell, history: Path, looks: _Looks) -> PromptSession[str]:
    looks.style()

    def message() -> StyleAndTextTuples:
        return [("class:prompt", prompt_text(shell.session))]

    def continuation(width: int, line: int, wrapped: int) -> StyleAndTextTuples:
        if wrapped:
            return [("", " " * width)]
        scanner = Scanner()
        scanner.feed("\n".join(prompt.default_buffer.text.split("\n")[:line]) + "\n")
        return [("class:continuation", continuation_text(scanner.state, width))]

    def toolbar() -> StyleAndTextTuples:
        return [("", toolbar_text(shell.session, prompt.app.output.get_size().columns))]

    prompt: PromptSession[str] = PromptSession(
        message,
        multiline=True,
        prompt_continuation=continuation,
        bottom_toolbar=toolbar,
        lexer=PygmentsLexer(SqlshellLexer),
        style=DynamicStyle(looks.style),
        include_default_pygments_style=False,
        history=FileHistory(history, shell.diagnostics.warn),
        auto_suggest=AutoSuggestFromHistory(),
        enable_history_search=True,
        key_bindings=bindings(),
        color_depth=ColorDepth.from_env(),
    )
    return prompt


@contextlib.asynccontextmanager
async def _interruptible(shell: Shell) -> AsyncIterator[None]:
    """While inside, Ctrl-C goes to the running statement."""
    loop = asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGINT)
    try:
        loop.add_signal_handler(signal.SIGINT, shell.interrupt)
    except NotImplementedError:
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)
