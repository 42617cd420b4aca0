"""The front end of the prompt: the history on disk, the catalog of the service, and questions to the user."""

from __future__ import annotations

import contextlib
import hashlib
import re
import termios
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace
from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application, run_in_terminal
from prompt_toolkit.application.current import get_app_or_none
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.styles import BaseStyle

from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import NotAnswered, UsageError
from sqlshell.interface.models import ContextEcho
from sqlshell.origin import Trusted
from sqlshell.output.sinks.command import lent_terminal
from sqlshell.output.text.cells import printable
from sqlshell.output.text.lines import folded
from sqlshell.output.writer import Summary, WriterOptions
from sqlshell.result import Result
from sqlshell.runtime.event_loops import in_background
from sqlshell.runtime.streams import Streams
from sqlshell.shell.connection import Connection
from sqlshell.shell.front_end import FrontEnd, Paint, Progress
from sqlshell.shell.interactive.editor import edit_text
from sqlshell.shell.interactive.history import FileHistory
from sqlshell.shell.interactive.interrupts import interrupt_typed_ahead
from sqlshell.shell.interactive.look.paint import color_depth, painter, previews
from sqlshell.shell.interactive.look.prompt_line import WindowTitle
from sqlshell.shell.interactive.look.themes import DEFAULT, load
from sqlshell.shell.interactive.terminal import Unechoed
from sqlshell.shell.metadata.catalog_loader import CatalogLoader
from sqlshell.shell.options import Options
from sqlshell.shell.running.statement import Running
from sqlshell.shell.session import Session

if TYPE_CHECKING:
    from sqlshell.shell.explorer.browsing import RememberedPositions


def _answers(keys: str) -> KeyBindings:
    """Bindings for keys that answer a question at once."""
    bindings = KeyBindings()

    def answer(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text(event.data)
        event.current_buffer.validate_and_handle()

    for key in keys:
        bindings.add(key)(answer)
    return bindings


class PromptFrontEnd(FrontEnd):
    """`state` is the directory of history and catalogs, `themes` the user's directory of themes. `target` is the
    storage name of the first service, "" for one that no later shell can reach.
    """

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
        super().__init__(diagnostics, progress)
        self.streams = streams
        self.theme_styles = ThemeStyles(options, diagnostics, themes)
        self._options = options
        diagnostics.above = _above
        self._state = state
        self._themes = themes
        self._connection: Connection | None = None
        self._session: Session | None = None
        self._unfinished: Callable[[], str] = lambda: ""
        self.file_history = FileHistory(
            _history_file(state, target),
            diagnostics.warn,
            state / "history",
            self._redact,
            self._unfinished_text,
        )
        self.loader: CatalogLoader | None = None
        self.window: WindowTitle | None = None
        self._places: RememberedPositions | None = None
        self._app: Application[str] | None = None

    @property
    def paint(self) -> Paint | None:
        return self.theme_styles.paint

    def attach_prompt(self, app: Application[str], unfinished: Callable[[], str]) -> None:
        """Set the prompt: messages while a line is being typed are printed above it.

        `unfinished` returns the statement that this line continues.
        """
        self._app, self._unfinished = app, unfinished

    def _wrapped(self, question: str) -> str:
        """A question in lines that are broken between words, with room for an answer."""
        return folded(question.rstrip(" "), self.streams.columns - 2) + " " * question.endswith(" ")

    async def ask(self, question: str, *, keys: str = "", hidden: bool = False) -> str:
        """Ask for a line or one of these keys, which is not stored in the history. Raises NotAnswered if there is no
        answer.

        Text that was typed before the question was shown is not an answer. The question may quote a service.
        """
        session = PromptSession[str](key_bindings=_answers(keys))
        stdin = self.streams.stdin
        # A Ctrl-C that came before the question is for what asks it.
        if interrupt_typed_ahead(session.input, stdin):
            raise NotAnswered("canceled")
        clear_typeahead(session.input)
        if stdin.isatty():
            termios.tcflush(stdin.fileno(), termios.TCIFLUSH)
        try:
            answer = await session.prompt_async(
                self._wrapped(printable(question)), is_password=hidden, handle_sigint=False
            )
            if interrupt_typed_ahead(session.input, stdin):
                raise KeyboardInterrupt
            return answer
        except (EOFError, KeyboardInterrupt):
            raise NotAnswered("canceled") from None

    async def browse(self, result: Result) -> Summary:
        from sqlshell.shell.explorer.browsing import RememberedPositions, browse

        if self._places is None:
            self._places = RememberedPositions()
        options = self._options
        file_options = WriterOptions(options.null, table=options.insert_table, spreadsheet_safe=options.csv_safe)
        return await browse(result, self.theme_styles.style(), self._places, file_options)

    async def token(self, target: str) -> str:
        # Only foreground work may ask: a question of background work would come between two of the user's lines.
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

    def edit(self, text: str, path: Trusted) -> Trusted:
        return edit_text(text, path, self.streams.stdin)

    def note_edited(self, text: str) -> None:
        self.file_history.append_string(text.rstrip("\n"))

    def lending_terminal(self) -> AbstractContextManager[None]:
        return lent_terminal(self.streams.stdin)

    @contextlib.contextmanager
    def hiding_input(self) -> Iterator[None]:
        unechoed = Unechoed(self.streams)
        try:
            yield
        finally:
            unechoed.end()

    def history(self) -> Sequence[tuple[float, str]]:
        return [(entry.time, entry.text) for entry in self.file_history.all_entries()]

    def clear_history(self) -> None:
        self.file_history.clear()

    def refresh_catalog(self) -> None:
        if self.loader is not None:
            self.loader.refresh()

    def context_changed(self) -> None:
        """Reload the names if another organization or role can see others."""
        if self.loader is not None:
            self.loader.context_changed()

    def note_columns(self, columns: Iterable[str]) -> None:
        self.catalog.add_result_columns(columns)

    def theme_previews(self) -> Iterable[str]:
        # \theme marks the current one in front of its line.
        return previews(self._themes, color_depth(), self.streams.columns - len("* "))

    def announce(self, text: str) -> None:
        self._diagnostics.say(text)

    def connected(self, session: Session) -> None:
        connection = session.connection
        if connection is self._connection:
            return
        self._session, self._connection = session, connection
        name = connection.storage_name
        self.file_history.use_file(_history_file(self._state, name))
        folder = self._state / "catalogs" if name else None
        if self.loader is not None:
            self.loader.use_connection(connection.client, name, folder, request_echo=session.embedded)
            return
        self.loader = CatalogLoader(
            connection.client,
            lambda: session.context,
            name,
            folder,
            self.catalog,
            request_echo=session.embedded,
            adopt=self._adopt,
            changed=self._changed,
            engine=lambda: self._connection.service.transport.engine if self._connection is not None else "",
        )
        self.loader.begin()

    async def aclose(self) -> None:
        if self.loader is not None:
            await self.loader.aclose()

    def _adopt(self, echo: ContextEcho | None) -> None:
        """Adopt the parts of the context that are still unknown; the loader's session may have a different context."""
        if self._session is not None:
            state = self._session.state
            before = state.context
            known = {name: value for name, value in before.parts() if value}
            state.context = replace(before.adopt(echo), **known)
            state.default_role = state.default_role if before.role else state.context.role
            if state.context != before:
                self._changed()

    def _changed(self) -> None:
        if self._app is not None:
            self._app.invalidate()

    def _unfinished_text(self) -> str:
        return self._unfinished()

    def _redact(self, text: str) -> str:
        """Remove secrets from a text that is stored. Entries before the first connection are not stored."""
        return self._session.redact(text) if self._session is not None else ""


class ThemeStyles:
    """The style of the current theme; if a theme cannot be loaded, a message is printed and the
    previous style stays.
    """

    def __init__(self, options: Options, diagnostics: Diagnostics, folder: Path) -> None:
        self._options = options
        self._diagnostics = diagnostics
        self._folder = folder
        self._name = ""
        self._style: BaseStyle = load(DEFAULT).style()
        self.paint: Paint | None = None
        """Draws headers and NULLs of tables in the theme's colors; None before the first style()."""

    def style(self, preview: str = "") -> BaseStyle:
        """The current style. `preview` is a theme that is being selected at the prompt, "" for none."""
        name = preview or self._options.theme
        if name != self._name:
            self._name = name
            try:
                theme = load(name, self._folder)
                self._style = theme.style(colors=color_depth() > 0)
                self.paint = self._diagnostics.paint = painter(theme, color_depth())
            except UsageError as error:
                if not preview:
                    self._diagnostics.error(error)
        return self._style


def _above(write: Callable[[], None]) -> None:
    """Call a function that writes so that the line being typed, a question or the explorer is drawn again below."""
    app = get_app_or_none()
    if app is not None and app.is_running and app.loop is not None:
        # Messages also come from other threads, and from the code that draws.
        app.loop.call_soon_threadsafe(run_in_terminal, write)
    else:
        write()


def _history_file(state: Path, target: str) -> Path:
    """The history file of a target; its name contains that of the target, so that users can find it."""
    if not target:
        return state / "history-local"
    named = re.sub(r"[^A-Za-z0-9.-]+", "_", target)[:60].strip("_")
    return state / f"history-{named}-{hashlib.sha256(target.encode()).hexdigest()[:8]}"
