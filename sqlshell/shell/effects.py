"""The effects of backslash commands: small frozen values, which `actions/` carries out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from sqlshell.context import SessionContext
from sqlshell.origin import EMPTY, Own, Text
from sqlshell.output.copy import Consumer
from sqlshell.result import Result
from sqlshell.sql.analysis.copy_statements import CopyStatement
from sqlshell.sql.script.items import Statement


class Quit(Struct, frozen=True):
    """Exit the shell."""


class Submit(Struct, frozen=True):
    """Run the query buffer, or the last statement; `output` is a file or `|cmd` for its result.

    `expanded` shows records; `consumer` receives the result instead of the screen, and `then` returns the next effect.
    """

    expanded: bool = False
    output: Own = EMPTY
    background: bool = False
    consumer: Consumer | None = None
    then: Callable[[], Effect | None] | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    """Options of the session for this result."""
    needs_rows: bool = False
    """Whether a statement without a result set is an error."""
    describes: bool = False
    """Whether only the columns of the result are wanted. A statement that would have to run is refused if it may write.
    """


class Export(Struct, frozen=True):
    """Write the result of the query buffer to a file."""

    path: Own


class Execute(Struct, frozen=True):
    """Run statements; in `verbatim` ones no variables are substituted.

    `silent` ones are the shell's own: nothing is shown of them, and a failure ends them.
    """

    statements: Sequence[Statement]
    verbatim: bool = False
    silent: bool = False


class Repeat(Struct, frozen=True):
    """Run the statement repeatedly, `seconds` apart, `times` times or without limit (0).

    Stops too if a result has fewer rows than `min_rows`. Each result replaces the previous one.
    """

    seconds: float
    times: int = 0
    min_rows: int = 0


class ClearBuffer(Struct, frozen=True):
    """Clear the query buffer."""


class ShowResult(Struct, frozen=True):
    """Show a result that the shell itself produced."""

    result: Result
    output: Own = EMPTY


class Chain(Struct, frozen=True):
    """Carry out effects in order."""

    effects: Sequence[Effect]


class RunSteps(Struct, frozen=True):
    """Run scripts of the shell, such as the tutorial, each after a text; failures do not stop the others.

    At the prompt the user is asked before each, and may skip it or stop.
    """

    steps: Sequence[tuple[str, Own]]


class Edit(Struct, frozen=True):
    """Open a file, the query buffer, or the last statement in the user's editor.

    The saved text replaces the query buffer.
    """

    path: Own = EMPTY


class Connect(Struct, frozen=True):
    """Connect to another target: a profile, a URL or a file; with a `place`, a database as a user, on a host and port,
    of which - remains as it is.
    """

    target: Own
    place: Sequence[Own] = ()


class Fetch(Struct, frozen=True):
    """Show the result of an earlier statement."""

    statement_id: str


class RunFile(Struct, frozen=True):
    """Run a script; with `relative`, its name is relative to the script that includes it."""

    path: Own
    relative: bool = False


class Redirect(Struct, frozen=True):
    """Send results to a file or `|cmd`; "" is stdout.

    `once` applies to the next result only; `as_copy` also shows the results.
    """

    output: Own
    once: bool = False
    as_copy: bool = False


class ShowMessage(Struct, frozen=True):
    """Print a message on stderr; `own` text contains nothing from a service and may contain colors. A
    `verbatim` one is not wrapped.
    """

    text: str
    own: bool = False
    verbatim: bool = False


class UseResult(Struct, frozen=True):
    """Use the result of the query buffer, or an earlier one by its name."""

    consumer: Consumer
    then: Callable[[], Effect | None] | None = None
    name: str = "_"


class LocalSql(Struct, frozen=True):
    """Run a statement on the last results; without text, the query buffer."""

    text: Own


class RecordTranscript(Struct, frozen=True):
    """Write a transcript to a file from now on; "" stops."""

    path: Own


class ReplayTranscript(Struct, frozen=True):
    """Run a transcript again."""

    path: Own


class Log(Struct, frozen=True):
    """Also write statements and results to a file from now on; "" stops."""

    path: Own


class Print(Struct, frozen=True):
    """Write a text to stdout, or to the output of results; `own` text contains no control sequences from elsewhere.

    `paged` is for longer texts of the shell: at the prompt they go through the pager if they are taller than the
    screen. `folds` wraps the text between words at a terminal.
    """

    text: str
    with_results: bool = False
    own: bool = False
    paged: bool = False
    folds: bool = False


class SetVariable(Struct, frozen=True):
    """Set a variable. `question` is the text of the prompt for its value, which may show that it is a secret."""

    name: Own
    value: Text
    question: str = ""


class UnsetVariable(Struct, frozen=True):
    """Remove a variable."""

    name: Own


class ReceiveVariables(Struct, frozen=True):
    """Set variables whose names and values came from a service; None removes one."""

    values: Mapping[str, str | None]


class Branch(Struct, frozen=True):
    """\\if, \\elif, \\else or \\endif; `condition` is evaluated only if it matters."""

    word: Literal["if", "elif", "else", "endif"]
    condition: Callable[[], bool] = bool


class SetOptions(Struct, frozen=True):
    """Set options of the session."""

    values: Mapping[str, object]


class SetContext(Struct, frozen=True):
    """Run statements in this context from now on; `sources` gives the source of each changed part."""

    context: SessionContext
    sources: Mapping[str, str]


class Attach(Struct, frozen=True):
    """Send a file with the next statement that names it."""

    path: Own


class Copy(Struct, frozen=True):
    """Load a file into a table, or write rows to a file."""

    copy: CopyStatement


class Restrict(Struct, frozen=True):
    """Disable backslash commands until the same key is given again, with `ends`."""

    key: str
    ends: bool = False


class OfferExamples(Struct, frozen=True):
    """Offer texts that a key puts at the prompt."""

    texts: Sequence[str]


class Detach(Struct, frozen=True):
    """Detach the files that wait for a statement."""


class ClearHistory(Struct, frozen=True):
    """Clear the history of this target."""


class RefreshCatalog(Struct, frozen=True):
    """Reload the names for completion."""


Effect = (
    Quit
    | Submit
    | Export
    | Execute
    | Repeat
    | ClearBuffer
    | ShowResult
    | Chain
    | Fetch
    | Connect
    | Edit
    | OfferExamples
    | RunSteps
    | RunFile
    | Redirect
    | ShowMessage
    | UseResult
    | LocalSql
    | RecordTranscript
    | ReplayTranscript
    | Log
    | Print
    | SetVariable
    | UnsetVariable
    | ReceiveVariables
    | Branch
    | SetOptions
    | SetContext
    | Attach
    | Copy
    | Restrict
    | Detach
    | ClearHistory
    | RefreshCatalog
)
