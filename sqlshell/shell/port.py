"""What a backslash command may ask of the shell, and what it may tell it to do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from sqlshell.client.service import Service
from sqlshell.diagnostics import Diagnostics
from sqlshell.origin import NOWHERE, Own
from sqlshell.output.writer import Summary
from sqlshell.result import Result
from sqlshell.shell.records.journal import Journal
from sqlshell.shell.running.attachments import Attachments
from sqlshell.shell.running.background import Background
from sqlshell.shell.session import Session

if TYPE_CHECKING:
    from sqlshell.shell.commands.command import Command
    from sqlshell.shell.hooks import Hooks
    from sqlshell.shell.records.result_history import Past
    from sqlshell.shell.results.outlet import Outlet
    from sqlshell.shell.scripts.buffer import Buffer
    from sqlshell.shell.scripts.flow import Flow
    from sqlshell.shell.scripts.variables import Variables
    from sqlshell.sql.script.items import Statement


Consumer = Callable[[Result], Awaitable[Summary]]
"""Takes a result in the place of whoever shows them."""


class Quit(Struct, frozen=True):
    """End the shell."""


class Submit(Struct, frozen=True):
    """Run the statement that is being written, or the last one; `output` is a file or `|cmd` for its result.

    `expanded` shows records; `consumer` takes the result in the place of the screen, and `then` says what comes next.
    """

    expanded: bool = False
    output: Own = NOWHERE
    background: bool = False
    consumer: Consumer | None = None
    then: Callable[[], Effect | None] | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    """Options of the session that this result is shown with."""
    needs_rows: bool = False
    """Whether it is an error that the statement returns no result set."""
    reads: bool = False
    """Whether a statement that may write is refused."""


class Execute(Struct, frozen=True):
    """Run statements; those that are `final` have no variables that would be filled in."""

    statements: Sequence[Statement]
    final: bool = False


class Again(Struct, frozen=True):
    """Run the statement again and again, `seconds` apart, `times` times or without end (0).

    It ends too when a result has fewer rows than `least`. `redraw` draws it over.
    """

    seconds: float
    times: int = 0
    least: int = 0
    redraw: bool = True


class Reset(Struct, frozen=True):
    """Throw away the statement that is being written."""


class Show(Struct, frozen=True):
    """Show a result that the shell itself has."""

    result: Result
    output: Own = NOWHERE


class Many(Struct, frozen=True):
    """One after another."""

    effects: Sequence[Effect]


class Run(Struct, frozen=True):
    """Run scripts that the shell itself has, each after a text for the person; a failure in one ends nothing.

    A person at a prompt is asked before each, and may skip it or end them all.
    """

    steps: Sequence[tuple[str, Own]]


class Edit(Struct, frozen=True):
    """Open a file, or the statement that is being written, or the last one, in the person's editor.

    What comes back takes the place of what was being written.
    """

    path: Own = NOWHERE


class Connect(Struct, frozen=True):
    """Go on at another target: a profile, a URL or a file."""

    target: Own


class Fetch(Struct, frozen=True):
    """Show the result of an earlier statement."""

    statement_id: str


class RunFile(Struct, frozen=True):
    """Run a script as if it stood here; `beside` looks for it where the script stands that names it."""

    path: Own
    beside: bool = False


class Redirect(Struct, frozen=True):
    """Send results to a file or `|cmd`; "" is stdout again. `once` is for the next one alone, `too` is a copy."""

    output: Own
    once: bool = False
    too: bool = False


class Say(Struct, frozen=True):
    """Tell the person something, on stderr; `own` text has nothing from elsewhere in it, and may hold colours."""

    text: str
    own: bool = False


class Use(Struct, frozen=True):
    """Look at the result of the statement that is being written, or at one of the past by its name."""

    consumer: Consumer
    then: Callable[[], Effect | None] | None = None
    name: str = "_"


class LocalSql(Struct, frozen=True):
    """Run a statement on the last results; without one, that which is being written."""

    text: Own


class Record(Struct, frozen=True):
    """Write a transcript to a file from now on; "" ends it."""

    path: Own


class Replay(Struct, frozen=True):
    """Run a transcript again."""

    path: Own


class Log(Struct, frozen=True):
    """Write statements and results to a file too, from now on; "" ends it."""

    path: Own


class Print(Struct, frozen=True):
    """Write a text on stdout, or where results go; `own` text has nothing from elsewhere in it that could steer.

    `paged` is for the shell's own longer texts: at a prompt they go through the pager where they are taller than it.
    """

    text: str
    with_results: bool = False
    own: bool = False
    paged: bool = False


Effect = (
    Quit
    | Submit
    | Execute
    | Again
    | Reset
    | Show
    | Many
    | Fetch
    | Connect
    | Edit
    | Run
    | RunFile
    | Redirect
    | Say
    | Use
    | LocalSql
    | Record
    | Replay
    | Log
    | Print
)


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
    def hooks(self) -> Hooks: ...

    @property
    def variables(self) -> Variables: ...

    @property
    def flow(self) -> Flow: ...

    @property
    def past(self) -> Past: ...

    @property
    def outlet(self) -> Outlet: ...

    @property
    def buffer(self) -> Buffer: ...
