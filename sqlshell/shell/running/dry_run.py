"""--dry-run: prints a script of the statements as they would be sent, each after a comment with its position."""

from __future__ import annotations

from sqlshell.errors import StatementError, Where
from sqlshell.humanize import format_count
from sqlshell.interface import sqlstate
from sqlshell.origin import Own, Text
from sqlshell.output.text.cells import printable
from sqlshell.shell.commands.lexing import commands_in, quoted_commands
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.scripts.position import source_name
from sqlshell.sql.analysis.lexed import Lexed
from sqlshell.sql.script.items import BackslashCommand, CopyLines, State, Statement
from sqlshell.sql.variables import undefined

_UNTERMINATED = {
    State.SINGLE_QUOTE: "unterminated string",
    State.DOUBLE_QUOTE: "unterminated quoted identifier",
    State.BACK_QUOTE: "unterminated quoted identifier",
    State.DOLLAR_QUOTE: "unterminated dollar-quoted string",
    State.BLOCK_COMMENT: "unterminated comment",
    State.PARENTHESIS: "missing closing parenthesis",
    State.APPLICATION: "BEGIN APPLICATION without END APPLICATION",
    State.ATOMIC: "BEGIN ATOMIC without END",
}
"""The error in a statement that is unfinished at the end of the script."""

_CONDITIONS = frozenset({"if", "elif"})
_SETS_VARIABLES = frozenset({"gset", "gexec"})
"""Commands after which the text that is sent depends on results."""


class DryRun:
    """Prints what would be sent, and decides what of a script is carried out: what changes the text that is sent.

    After a statement the variables are those of one that succeeded without rows. Commands that are not run are printed
    as comments.
    """

    def __init__(self, components: ShellComponents) -> None:
        self._components = components
        self._depends = False
        """Whether variables may have values that only results give."""
        self._sender = ""
        """The command that would send the next statement."""
        self._first = self._lines = 0
        """The first line of the data that arrive, and their number so far."""

    def runs(self, name: str, changes: str, item: BackslashCommand) -> bool:
        """Whether the command `name` is carried out, which `changes` a part of the shell.

        `\\set` alone would only list the variables.

        What a command in backticks would print is not known: only `\\set` and conditions can do without it.
        """
        if "`" in item.args and name not in {"set", *_CONDITIONS} and commands_in(item.args):
            return False
        return changes == "text" and bool(name != "set" or item.args)

    def argument(self, name: str, args: Own) -> Own:
        """The arguments of a command that is carried out: a command in backticks is its own text, and a condition that
        depends on a result or on such a command is false.
        """
        if "`" in args and (commands := commands_in(args)):
            meant = "used as written" if name == "set" else "the condition counts as false"
            self._components.diagnostics.warn_here(f"the command {commands[0]} is not run; {meant}")
            return quoted_commands(args) if name == "set" else Own("false")
        if name not in _CONDITIONS or not self._depends:
            return args
        if not undefined(Lexed(Text(args)), self._components.variables):
            return args
        self._components.diagnostics.warn_here(f"the condition of \\{name} depends on a result; counted as false")
        return Own("false")

    def command(self, name: str, item: BackslashCommand, *, sends: bool) -> Statement | None:
        """Print a command that is not carried out; returns the statement that it would send."""
        typed = item.name if item.name[:1] in {".", "!"} and item.name != "!" else f"\\{item.name}"
        self._depends = self._depends or name in _SETS_VARIABLES
        buffer = self._components.buffer
        pending = buffer.send(name) or buffer.last if sends else None
        shown = printable(f"{typed} {item.args}".rstrip())
        if sends:
            self._sender = f" {shown}"
        else:
            self._print(f" {shown} (not run)")
        return pending

    def check_variables(self, statement: Statement) -> None:
        """Warn about variables of a statement that are not set, whose references would be sent as they are."""
        for name in undefined(statement.lexed, self._components.variables):
            unless = ", unless a result sets it" if self._depends else ""
            self._components.diagnostics.warn_here(f"variable {name} is not set; :{name} is sent as written{unless}")

    def statement(self, statement: Lexed, ending: str) -> None:
        """Print a statement after substitution; `ending` is its `;` as typed."""
        text = statement.text + (ending or ";")
        if not ending and "--" in text.rpartition("\n")[2]:
            text = f"{statement.text}\n;"
        sender, self._sender = self._sender, ""
        self._print(f"{sender}\n{text}")
        session = self._components.session
        before = session.transaction.state
        session.transaction.statement_ended(statement, None)
        if session.transaction.state and not before:
            session.transaction.begun_at = str(self._components.position)
        session.rows = session.elapsed = None
        self._components.variables.record_outcome(None)

    def data(self, lines: CopyLines) -> None:
        """Data of COPY in the script."""
        self._first = self._first or lines.line
        self._lines += lines.text.count("\n")
        if lines.last:
            # The last line is `\.`, or what the end of the script adds.
            self._components.position.at(self._first)
            self._print(f" {format_count(self._lines - 1, 'line')} of data (not sent)")
            self._first = self._lines = 0

    def _print(self, text: str) -> None:
        """Print a text after the beginning of a comment with the position."""
        position = self._components.position
        place = f"-- {printable(source_name(position.script))}:{position.line}"
        self._components.result_output.print(f"{place}{text}\n", with_results=True)


def unterminated(state: State) -> StatementError | None:
    """The error of a statement that the end of a script ends in that state; None if it is complete."""
    construct = _UNTERMINATED.get(state)
    return StatementError(f"{construct} at the end of the script", where=Where(sqlstate.SYNTAX)) if construct else None
