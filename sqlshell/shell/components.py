"""The components of one shell, each with one job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from sqlshell.diagnostics import Diagnostics
from sqlshell.runtime.streams import Streams
from sqlshell.shell.connection import Environment
from sqlshell.shell.front_end import FrontEnd
from sqlshell.shell.results.result_output import ResultOutput
from sqlshell.shell.running.attachments import Attachments
from sqlshell.shell.running.failures import Failures
from sqlshell.shell.running.statement_runner import StatementRunner
from sqlshell.shell.scripts.buffer import Buffer
from sqlshell.shell.scripts.conditions import ConditionStack
from sqlshell.shell.scripts.position import Position
from sqlshell.shell.scripts.variables import Variables
from sqlshell.shell.session import Session

if TYPE_CHECKING:
    from sqlshell.shell.records.checkpoint import Checkpoint
    from sqlshell.shell.records.run_records import Statistics


class ScriptModes(Struct, frozen=True, eq=False):
    """What the options of a run, such as --dry-run and --stats, do at each statement; by default nothing."""

    statistics: Statistics | None = None
    """Of --stats."""
    checkpoint: Checkpoint | None = None
    """Of --checkpoint."""
    dry_run: bool = False
    """Whether statements are printed instead of sent."""
    commands_allowed: bool = True
    """Whether backslash commands run."""


class ShellComponents:
    """The parts of a shell that scripts, statements and commands use."""

    def __init__(
        self,
        session: Session,
        result_output: ResultOutput,
        attachments: Attachments,
        front_end: FrontEnd,
        environment: Environment,
        diagnostics: Diagnostics,
        position: Position,
        streams: Streams,
        modes: ScriptModes | None = None,
    ) -> None:
        """Create those of a shell that begins now: no variables, an empty query buffer."""
        self.session = session
        self.result_output = result_output
        self.attachments = attachments
        self.front_end = front_end
        self.environment = environment
        self.diagnostics = diagnostics
        self.position = position
        self.streams = streams
        self.modes = modes or ScriptModes()
        self.conditions = ConditionStack(position)
        self.variables = Variables(session)
        self.buffer = Buffer(self.variables, self.conditions)
        self.statement_runner = StatementRunner(session, result_output, front_end, diagnostics)
        self.failures = Failures(session, position, self.buffer, front_end, diagnostics)

    @property
    def at_prompt(self) -> bool:
        """Whether the running text was typed by the user."""
        return self.session.interactive and not self.position.in_file
