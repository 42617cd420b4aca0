"""What a backslash command may ask of the shell, and what it may tell it to do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from sqlshell.client.service import Service
from sqlshell.diagnostics import Diagnostics
from sqlshell.result import Result
from sqlshell.shell.background import Background
from sqlshell.shell.journal import Journal
from sqlshell.shell.session import Session
from sqlshell.shell.transfers import Attachments

if TYPE_CHECKING:
    from sqlshell.shell.commands.command import Command


class Quit(Struct, frozen=True):
    """End the shell."""


class Submit(Struct, frozen=True):
    """Run the statement that the command ends; `expanded` shows records, `output` is a file or `|cmd` for it."""

    expanded: bool = False
    output: str = ""
    background: bool = False


class Show(Struct, frozen=True):
    """Show a result that the shell itself has."""

    result: Result


class Run(Struct, frozen=True):
    """Run scripts that the shell itself has, each after a text for the person; a failure in one ends nothing."""

    steps: Sequence[tuple[str, str]]


class Edit(Struct, frozen=True):
    """Open a file, or the last statement, in the person's editor; a statement comes back to the prompt."""

    path: str = ""


class Connect(Struct, frozen=True):
    """Go on at another target: a profile, a URL or a file."""

    target: str


class Fetch(Struct, frozen=True):
    """Show the result of an earlier statement."""

    statement_id: str


class RunFile(Struct, frozen=True):
    """Run a script as if it stood here."""

    path: str


class Redirect(Struct, frozen=True):
    """Send results to a file or `|cmd` from now on; "" is stdout again."""

    output: str


class Say(Struct, frozen=True):
    """Tell the person something, on stderr; `own` text has nothing from elsewhere in it, and may hold colours."""

    text: str
    own: bool = False


Effect = Quit | Submit | Show | Fetch | Connect | Edit | Run | RunFile | Redirect | Say


class Port(Protocol):
    """The shell as a command sees it."""

    @property
    def session(self) -> Session: ...

    @property
    def commands(self) -> Mapping[str, Command]: ...

    @property
    def journal(self) -> Journal: ...

    @property
    def background(self) -> Background: ...

    @property
    def attachments(self) -> Attachments: ...

    @property
    def service(self) -> Service: ...

    @property
    def diagnostics(self) -> Diagnostics: ...

    def progressed(self, share: float | None, message: str) -> None:
        """Show how far something has come."""

    @property
    def doctor(self) -> Callable[[], Awaitable[str]]:
        """Says what works and what does not, in lines."""

    def refresh(self) -> None:
        """Have the names that completion knows loaded anew."""

    def history(self) -> list[tuple[float, str]]:
        """What was entered, with its time (seconds since 1970), the oldest first."""

    def forget(self) -> None:
        """Clear this target's history. Raises OSError."""

    def themes(self) -> Sequence[str]:
        """The names of the themes that can be chosen. Raises UsageError for a broken theme file."""

    def previews(self) -> Iterable[str]:
        """A line for each theme, in its colours. Raises UsageError for a broken theme file."""
