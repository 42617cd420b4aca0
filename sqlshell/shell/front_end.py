"""The protocol between the shell and its user interface: history, catalog, questions, browsing, editing, progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from sqlshell.origin import Own
from sqlshell.output.copy import Consumer
from sqlshell.output.writer import Role
from sqlshell.shell.scripts.script_place import ScriptPlace
from sqlshell.shell.session import Running, Session
from sqlshell.sql.analysis.policy import Ask
from sqlshell.sql.completion.catalog import Catalog

Paint = Callable[[str, Role], str]
"""Draws a text in the colors of its role."""


class Progress(Protocol):
    """Displays progress while the shell waits."""

    live: bool
    """Whether there is a terminal to show it on."""
    on_first: Callable[[], None]
    """Called when a wait is long enough to be shown."""
    script: ScriptPlace | None
    """The place in the script that runs, None at the prompt."""

    def show(self, running: Running) -> None: ...

    def hide(self) -> None:
        """The wait is over. In a script what is shown may stay until clear()."""

    def clear(self) -> None:
        """Leave the screen to other output."""

    def refresh(self) -> None:
        """Show a change at once."""

    def notice(self, text: str) -> bool:
        """Show why the wait is longer; False if nothing is waited for, or nothing is shown."""

    def close(self) -> None:
        """Show nothing more."""


class NoProgress:
    """Shows nothing."""

    live = False
    script: ScriptPlace | None = None
    on_first: Callable[[], None] = staticmethod(lambda: None)

    def show(self, running: Running) -> None:
        return None

    def hide(self) -> None:
        return None

    def clear(self) -> None:
        return None

    def refresh(self) -> None:
        return None

    def notice(self, text: str) -> bool:
        return False

    def close(self) -> None:
        return None


class FrontEnd(Protocol):
    """The user interface of the shell, implemented for scripts and for the prompt."""

    @property
    def progress(self) -> Progress: ...

    @property
    def catalog(self) -> Catalog:
        """The names that are known of the service."""

    @property
    def paint(self) -> Paint | None:
        """Draws headers and NULLs of tables in the colors of the theme; None without colors."""

    @property
    def ask(self) -> Ask | None:
        """Asks the user a question; None if no user can answer."""

    @property
    def browse(self) -> Consumer | None:
        """Shows a result in full screen; None if that is not possible."""

    async def token(self, target: str) -> str:
        """Another token for a service that rejected the current one; "" if none is given."""

    def edit(self, text: str, path: Own) -> Own:
        """The text, or that of the file `path`, after the user has edited it. Raises UsageError."""

    def lending_terminal(self) -> AbstractContextManager[None]:
        """Inside the block, Ctrl-C is only for a program that uses the terminal; in scripts it ends them too."""

    def hiding_input(self) -> AbstractContextManager[None]:
        """Inside the block, what is typed does not appear on the screen, where something is redrawn: the next prompt
        gets it.
        """

    def history(self) -> Sequence[tuple[float, str]]:
        """The entries of this prompt and others, the oldest first, each with its time (seconds since 1970)."""

    def clear_history(self) -> None:
        """Clear the history of this target. Raises OSError."""

    def refresh_catalog(self) -> None:
        """Reload the names of the catalog in the background."""

    def note_columns(self, columns: Iterable[str]) -> None:
        """Called when a result with these columns is shown."""

    def theme_previews(self) -> Iterable[str]:
        """One line per theme, in its colors. Raises UsageError for a broken theme file."""

    def announce(self, text: str) -> None:
        """Print a message about background work."""

    def connected(self, session: Session) -> None:
        """Called when the session has a connection: history and catalog are those of the connection from now on."""
