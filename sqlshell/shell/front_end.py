"""What a front end gives the shell: history, catalog, asking, browsing, editing, progress."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from sqlshell.origin import Own
from sqlshell.output.copy import Consumer
from sqlshell.output.writer import Role
from sqlshell.shell.running.policy import Ask
from sqlshell.shell.session import Running, Session
from sqlshell.sql.completion.catalog import Catalog

Paint = Callable[[str, Role], str]
"""Draws a text in the colors of its role."""


class Progress(Protocol):
    """Shows that something is being waited for."""

    def show(self, running: Running) -> None: ...

    def hide(self) -> None: ...


class Silent:
    """No progress: nobody watches."""

    def show(self, running: Running) -> None:
        return None

    def hide(self) -> None:
        return None


class FrontEnd(Protocol):
    """Scripts and the prompt implement it."""

    @property
    def progress(self) -> Progress: ...

    @property
    def catalog(self) -> Catalog:
        """The known names of the service."""

    @property
    def paint(self) -> Paint | None:
        """Draws headers and NULLs of tables in the colors of the theme; None for no colors."""

    @property
    def ask(self) -> Ask | None:
        """Puts a question to the person; None where there is nobody to ask."""

    @property
    def browse(self) -> Consumer | None:
        """Shows a result to a person on the whole screen; None where it cannot."""

    async def token(self, target: str) -> str:
        """Another token for a service that refused the present one; "" where none was given."""

    def edit(self, text: str, path: Own) -> Own:
        """The text, or that of the file `path`, as the person left it in an editor. Raises UsageError."""

    def history(self) -> Sequence[tuple[float, str]]:
        """What was entered at this prompt and others, the oldest first, each with its time (seconds since 1970)."""

    def forget(self) -> None:
        """Clear the history of this target. Raises OSError."""

    def refresh(self) -> None:
        """Load the names of the catalog again, in the background."""

    def saw(self, columns: Iterable[str]) -> None:
        """A result with these columns is shown."""

    def previews(self) -> Iterable[str]:
        """One line per theme, in its colors. Raises UsageError for a broken theme file."""

    def announce(self, text: str) -> None:
        """Tell the person something at any time, also while a line is being typed."""

    def connected(self, session: Session) -> None:
        """The session has a connection: history and catalog are that one's from now on."""
