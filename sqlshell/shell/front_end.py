"""The shell's user interface: history, catalog, questions, browsing, editing, progress; here that of scripts."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import UsageError
from sqlshell.origin import Trusted
from sqlshell.output.copy import ResultHandler
from sqlshell.output.writer import Role
from sqlshell.shell.running.statement import Running
from sqlshell.shell.scripts.position import ScriptPlace
from sqlshell.shell.session import Session
from sqlshell.sql.analysis.policy import Ask

if TYPE_CHECKING:
    from sqlshell.sql.completion.catalog import Catalog

Paint = Callable[[str, Role], str]
"""Draws a text in the colors of its role."""


class Progress:
    """Displays progress while the shell waits; this one shows nothing."""

    live = False
    """Whether there is a terminal to show it on."""
    script: ScriptPlace | None = None
    """The place in the script that runs, None at the prompt."""
    on_first: Callable[[], None] = staticmethod(lambda: None)
    """Called when a wait is long enough to be shown."""

    def show(self, running: Running) -> None:
        """Show that this is waited for."""

    def hide(self) -> None:
        """End the wait. In a script what is shown may stay until clear()."""

    def clear(self) -> None:
        """Leave the screen to other output."""

    def refresh(self) -> None:
        """Show a change at once."""

    def notice(self, text: str) -> bool:
        """Show why the wait is longer; False if nothing is waited for, or nothing is shown."""
        return False

    def close(self) -> None:
        """Show nothing more."""


class FrontEnd:
    """The user interface of a script, without a user: no questions, history or completion. That of the prompt derives
    from it.
    """

    ask: Ask | None = None
    """Asks the user a question; None if no user can answer."""
    browse: ResultHandler | None = None
    """Shows a result in full screen; None if that is not possible."""

    def __init__(
        self, diagnostics: Diagnostics, progress: Progress, paint: Callable[[], Paint | None] = lambda: None
    ) -> None:
        """Create it; `paint` loads the colors of the theme when a terminal is first written to."""
        self._diagnostics = diagnostics
        self._find_paint = functools.cache(paint)
        self.progress = progress

    @functools.cached_property
    def catalog(self) -> Catalog:
        """The names that are known of the service."""
        from sqlshell.sql.completion.catalog import Catalog

        return Catalog()

    @property
    def paint(self) -> Paint | None:
        """Draws headers and NULLs of tables in the colors of the theme; None without colors."""
        return self._find_paint()

    async def token(self, target: str) -> str:
        """Return another token for a service that rejected the current one; "" if none is given."""
        return ""

    def edit(self, text: str, path: Trusted) -> Trusted:
        """Return the text, or that of the file `path`, after the user has edited it. Raises UsageError."""
        raise UsageError("\\e requires an interactive terminal", "use \\i FILE to run a script")

    def note_edited(self, text: str) -> None:
        """Keep a text that runs after it was edited in the history, as if it had been typed."""

    def lending_terminal(self) -> AbstractContextManager[None]:
        """Inside the block, Ctrl-C is only for a program that uses the terminal; in scripts it ends them too."""
        return contextlib.nullcontext()

    def hiding_input(self) -> AbstractContextManager[None]:
        """Inside the block, what is typed does not appear on the screen, where something is redrawn: the next prompt
        gets it.
        """
        return contextlib.nullcontext()

    def history(self) -> Sequence[tuple[float, str]]:
        """Return the entries of this prompt and others, the oldest first, each with its time (seconds since 1970)."""
        return ()

    def clear_history(self) -> None:
        """Clear the history of this target. Raises OSError."""

    def refresh_catalog(self) -> None:
        """Reload the names of the catalog in the background."""

    def note_columns(self, columns: Iterable[str]) -> None:
        """Note that a result with these columns is shown."""

    def theme_previews(self) -> Iterable[str]:
        """Return one line per theme, in its colors. Raises UsageError for a broken theme file."""
        return ()

    def announce(self, text: str) -> None:
        """Print a message about background work."""
        self._diagnostics.report(text)

    def connected(self, session: Session) -> None:
        """Use the history and catalog of the session's connection from now on."""
