"""--dry-run: prints a script of the statements as they would be sent, each after a comment with its position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlshell.origin import Text, Trusted
from sqlshell.output.text.cells import printable
from sqlshell.shell.command_shell import CommandShell
from sqlshell.shell.commands.command import as_typed
from sqlshell.shell.commands.lexing import commands_in, quoted_commands
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.running.submitting import CarryOut, Submitter, Use
from sqlshell.shell.scripts.inline_copy import InlineCopy
from sqlshell.shell.scripts.position import source_name
from sqlshell.sql.analysis.lexed import Lexed
from sqlshell.sql.script.items import BackslashCommand, CopyLines, Statement
from sqlshell.sql.variables import undefined
from sqlshell.text import format_count

if TYPE_CHECKING:
    from sqlshell.shell.commands.command import Command

_CONDITIONS = frozenset({"if", "elif"})
_SETS_VARIABLES = frozenset({"gset", "gexec"})
"""Commands after which the text that is sent depends on results."""


class DryRun(Submitter):
    """Prints what would be sent, and decides what of a script is carried out: what changes the text that is sent.

    After a statement the variables are those of one that succeeded without rows. Commands that are not run are printed
    as comments.
    """

    sends = False

    def __init__(self, components: ShellComponents) -> None:
        super().__init__(components)
        self._depends = False
        """Whether variables may have values that only results give."""
        self._sender = ""
        """The command that would send the next statement."""

    async def command(self, command: Command, item: BackslashCommand, args: Trusted, carry_out: CarryOut) -> None:
        """Carry out a command that changes the text which is sent; print any other. Raises ShellError."""
        name = command.name
        if self._runs(command, item):
            await carry_out(self._argument(name, args))
            return
        if "`" not in item.args:
            # Wrong arguments are errors here, too.
            command.parsed(self._variables, Trusted(item.args), item.name)
        self._depends = self._depends or name in _SETS_VARIABLES
        shown = printable(f"{as_typed(item.name)} {item.args}".rstrip())
        if not command.sends_with(item.args):
            self.print(f" {shown} (not run)")
            return
        statement = self._buffer.send(name) or self._buffer.last
        self._sender = f" {shown}"
        await self.submit(statement)

    def print(self, text: str) -> None:
        """Print a text after the beginning of a comment with the position."""
        place = f"-- {printable(source_name(self._position.script))}:{self._position.line}"
        self._result_output.print(f"{place}{text}\n", with_results=True)

    def _runs(self, command: Command, item: BackslashCommand) -> bool:
        """Whether a command is carried out. `\\set` alone would only list the variables.

        What a command in backticks would print is not known: only `\\set` and conditions can do without it.
        """
        name = command.name
        if "`" in item.args and name not in {"set", *_CONDITIONS} and commands_in(item.args):
            return False
        return command.changes == "text" and bool(name != "set" or item.args)

    def _argument(self, name: str, args: Trusted) -> Trusted:
        """The arguments of a command that is carried out: a command in backticks is its own text, and a condition that
        depends on a result or on such a command is false.
        """
        if "`" in args and (commands := commands_in(args)):
            meant = "its text is used as the value" if name == "set" else "the condition counts as false"
            self._diagnostics.warn_here(f"the command {commands[0]} is not run; {meant}")
            return quoted_commands(args) if name == "set" else Trusted("false")
        if name not in _CONDITIONS or not self._depends or not undefined(Lexed(Text(args)), self._variables):
            return args
        self._diagnostics.warn_here(f"the condition of \\{name} depends on a result; it counts as false")
        return Trusted("false")

    def _parts(self, statement: Statement) -> Sequence[Statement]:
        for name in undefined(statement.lexed, self._variables):
            unless = ", unless a result sets it" if self._depends else ""
            self._diagnostics.warn_here(f"variable {name} is not set; :{name} is sent as written{unless}")
        return super()._parts(statement)

    async def _carry_out(self, item: Statement, use: Use) -> None:
        statement, files = await self._checked(item.lexed, use)
        text = statement.text + (item.ending or ";")
        if not item.ending and "--" in text.rpartition("\n")[2]:
            text = f"{statement.text}\n;"
        sender, self._sender = self._sender, ""
        self.print(f"{sender}\n{text}")
        session = self._session
        before = session.transaction.state
        session.transaction.statement_ended(statement, None)
        if session.transaction.state and not before:
            session.transaction.begun_at = str(self._position)
        session.rows = session.elapsed = None
        self._variables.record_outcome(None)
        self._attachments.mark_sent(files)


class PrintedCopy(InlineCopy):
    """COPY in a script: the statement is printed as any other, and of its data their number."""

    def __init__(self, shell: CommandShell, dry_run: DryRun) -> None:
        super().__init__(shell)
        self._dry_run = dry_run
        self._first = self._lines = 0
        """The first line of the data that arrive, and their number so far."""

    async def run_statement(self, item: Statement) -> bool:
        """Leave the statement to the dry run."""
        return False

    async def run_command(self, item: BackslashCommand) -> bool:
        """Leave the command to the dry run."""
        return False

    async def take(self, lines: CopyLines) -> None:
        """Count lines of data, and print their number after the last one."""
        if not self._shell.conditions.active:
            return
        self._first = self._first or lines.line
        self._lines += lines.text.count("\n")
        if lines.last:
            # The last line is `\.`, or what the end of the script adds.
            self._shell.position.at(self._first)
            self._dry_run.print(f" {format_count(self._lines - 1, 'line')} of data (not sent)")
            self._first = self._lines = 0
