"""The front end of the prompt: a history on disk, the catalog of the service, and a person to ask."""

from __future__ import annotations

import hashlib
import re
import termios
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace
from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application, run_in_terminal
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.styles import BaseStyle

from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import Interrupted, UsageError
from sqlshell.interface.models import ContextEcho
from sqlshell.origin import Own
from sqlshell.output.text.cells import printable
from sqlshell.output.writer import Summary
from sqlshell.result import Result
from sqlshell.runtime.background_tasks import in_background
from sqlshell.runtime.streams import Streams
from sqlshell.shell.connection import Connection
from sqlshell.shell.front_end import Paint, Progress
from sqlshell.shell.interactive.editor import edited
from sqlshell.shell.interactive.history import FileHistory
from sqlshell.shell.interactive.interrupts import typed_behind
from sqlshell.shell.interactive.look.paint import here, painter, previews
from sqlshell.shell.interactive.look.themes import DEFAULT, load
from sqlshell.shell.metadata.catalog_loader import Loader
from sqlshell.shell.session import Options, Running, Session
from sqlshell.sql.completion.catalog import Catalog


class PromptFrontEnd:
    """`state` is the folder of history and catalogs, `themes` the person's own folder of themes. `target` is the name
    of the first service in both, "" for one that no later shell can reach."""

    def __init__(
        self,
        options: Options,
        diagnostics: Diagnostics,
        progress: Progress,
        streams: Streams,
        *,
        state: Path,
        themes: Path,
        target: str,
    ) -> None:
        self.streams = streams
        self.progress = progress
        self.catalog = Catalog()
        self.looks = Looks(options, diagnostics, themes)
        self._diagnostics = diagnostics
        self._state = state
        self._themes = themes
        self._connection: Connection | None = None
        self._session: Session | None = None
        self.file_history = FileHistory(_history_file(state, target), diagnostics.warn, state / "history", self._redact)
        self.loader: Loader | None = None
        self._app: Application[str] | None = None

    @property
    def paint(self) -> Paint | None:
        return self.looks.paint

    @property
    def reading(self) -> bool:
        """Whether a line is being typed."""
        return self._app is not None and self._app.is_running

    def draws_in(self, app: Application[str]) -> None:
        """`app` is the prompt: what is told while a line is being typed stands above it."""
        self._app = app

    async def ask(self, question: str, *, hidden: bool = False) -> str:
        """A line that is no statement: nothing of it is remembered. Raises Interrupted where there is no answer.

        What was typed before the question was seen is no answer to it. The question may quote what a service gave.
        """
        session = PromptSession[str]()
        clear_typeahead(session.input)
        stdin = self.streams.stdin
        if stdin.isatty():
            termios.tcflush(stdin.fileno(), termios.TCIFLUSH)
        try:
            answer = await session.prompt_async(printable(question), is_password=hidden, handle_sigint=False)
            if typed_behind(session.input, stdin):
                raise KeyboardInterrupt
            return answer
        except (EOFError, KeyboardInterrupt):
            raise Interrupted("cancelled") from None

    async def browse(self, result: Result) -> Summary:
        from sqlshell.shell.explorer.browsing import browse

        return await browse(result, self.looks.style())

    async def token(self, target: str) -> str:
        # Only what a person waits for may ask: a question of background work would come between two of theirs.
        if self._session is None or not self._session.busy or in_background():
            return ""
        running: Running | None = self._session.running
        self.progress.hide()
        self._diagnostics.say(f"{target} rejected the token")
        try:
            return (await self.ask(f"token for {target}: ", hidden=True)).strip()
        finally:
            if running is not None and self._session.running is running:
                self.progress.show(running)

    def edit(self, text: str, path: Own) -> Own:
        return edited(text, path)

    def history(self) -> Sequence[tuple[float, str]]:
        return [(entry.time, entry.text) for entry in self.file_history.everything()]

    def forget(self) -> None:
        self.file_history.clear()

    def refresh(self) -> None:
        if self.loader is not None:
            self.loader.refresh()

    def context_changed(self) -> None:
        """Load the names again where another organization or role sees others."""
        if self.loader is not None:
            self.loader.moved()

    def saw(self, columns: Iterable[str]) -> None:
        self.catalog.note(columns)

    def previews(self) -> Iterable[str]:
        return previews(self._themes, here())

    def announce(self, text: str) -> None:
        if self.reading:
            run_in_terminal(lambda: self._diagnostics.say(text))
        else:
            self._diagnostics.say(text)

    def connected(self, session: Session) -> None:
        connection = session.connection
        if connection is self._connection:
            return
        self._session, self._connection = session, connection
        name = connection.kept_as
        self.file_history.move(_history_file(self._state, name))
        folder = self._state / "catalogs" if name else None
        if self.loader is not None:
            self.loader.quick = session.embedded
            self.loader.move(connection.client, name, folder)
            return
        self.loader = Loader(connection.client, lambda: session.context, name, folder, self.catalog)
        self.loader.adopt, self.loader.changed = self._adopt, self._changed
        self.loader.quick = session.embedded
        self.loader.begin()

    async def aclose(self) -> None:
        if self.loader is not None:
            await self.loader.aclose()

    def _adopt(self, echo: ContextEcho | None) -> None:
        """Take over what is not known yet: the loader's session may stand elsewhere."""
        if self._session is not None:
            state = self._session.state
            before = state.context
            known = {name: value for name, value in before.parts() if value}
            state.context = replace(before.adopt(echo), **known)
            if state.context != before:
                self._changed()

    def _changed(self) -> None:
        if self._app is not None:
            self._app.invalidate()

    def _redact(self, text: str) -> str:
        """A text as it may be kept. What is entered before there is a connection is not kept at all."""
        return self._session.redact(text) if self._session is not None else ""


class Looks:
    """The style of the theme that is chosen now; one that cannot be loaded is told, and the last one stays."""

    def __init__(self, options: Options, diagnostics: Diagnostics, folder: Path) -> None:
        self._options = options
        self._diagnostics = diagnostics
        self._folder = folder
        self._name = ""
        self._style: BaseStyle = load(DEFAULT).style()
        self.paint: Paint | None = None
        """Draws headers and NULLs of tables in the theme's colors; None before the first style()."""

    def style(self, trying: str = "") -> BaseStyle:
        """The style now. `trying` is a theme that is being chosen at the prompt, "" for none."""
        name = trying or self._options.theme
        if name != self._name:
            self._name = name
            try:
                theme = load(name, self._folder)
                self._style = theme.style()
                self.paint = painter(theme, here())
            except UsageError as error:
                if not trying:
                    self._diagnostics.error(error)
        return self._style


def _history_file(state: Path, target: str) -> Path:
    """Where the statements of one target are: named by it, so that a person finds the file."""
    if not target:
        return state / "history-local"
    named = re.sub(r"[^A-Za-z0-9.-]+", "_", target)[:60].strip("_")
    return state / f"history-{named}-{hashlib.sha256(target.encode()).hexdigest()[:8]}"
