"""What a backslash command asks the shell to do: small frozen values, carried out by actions.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from sqlshell.context import SessionContext
from sqlshell.origin import NOWHERE, Own, Text
from sqlshell.output.copy import Consumer
from sqlshell.result import Result
from sqlshell.sql.script.items import Statement


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
    """Tell the person something, on stderr; `own` text has nothing from elsewhere in it, and may hold colors."""

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


class SetVariable(Struct, frozen=True):
    """Set a variable. `asked` is the question that its value answers, which may say that it is a secret."""

    name: Own
    value: Text
    asked: str = ""


class UnsetVariable(Struct, frozen=True):
    """Remove a variable."""

    name: Own


class ReceiveVariables(Struct, frozen=True):
    """Set variables whose names and values a service gave; None removes one."""

    values: Mapping[str, str | None]


class Branch(Struct, frozen=True):
    """\\if, \\elif, \\else or \\endif; `condition` is asked only where it counts."""

    word: Literal["if", "elif", "else", "endif"]
    condition: Callable[[], bool] = bool


class SetOptions(Struct, frozen=True):
    """Set options of the session."""

    values: Mapping[str, object]


class SetContext(Struct, frozen=True):
    """Run statements in this context from now on; `sources` says where its changed parts came from."""

    context: SessionContext
    sources: Mapping[str, str]


class Attach(Struct, frozen=True):
    """Send a file with the next statement that names it."""

    path: Own


class Detach(Struct, frozen=True):
    """Forget the files that wait for a statement."""


class ForgetHistory(Struct, frozen=True):
    """Clear the history of this target."""


class RefreshCatalog(Struct, frozen=True):
    """Load the names that completion proposes again."""


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
    | SetVariable
    | UnsetVariable
    | ReceiveVariables
    | Branch
    | SetOptions
    | SetContext
    | Attach
    | Detach
    | ForgetHistory
    | RefreshCatalog
)
