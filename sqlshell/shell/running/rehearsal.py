"""Scripts whose statements do not run: --dry-run prints them, and --describe shows the columns of their results."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Protocol

from msgspec.structs import replace

from sqlshell.errors import StatementError, Where
from sqlshell.humanize import format_count
from sqlshell.interface import sqlstate
from sqlshell.origin import Own, Text
from sqlshell.output.copy import Consumer
from sqlshell.output.text.cells import printable
from sqlshell.output.writer import Summary
from sqlshell.result import Result
from sqlshell.shell.commands.command import Command
from sqlshell.shell.commands.lexing import commands_in, quoted_commands
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.results.rows import table_of
from sqlshell.shell.scripts.position import source_name
from sqlshell.sql.analysis.effects import effects
from sqlshell.sql.analysis.kinds import verb
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


_QUERIES = frozenset({"SELECT", "VALUES", "FROM"})
"""Verbs of queries that can be limited to no rows."""
_SHOWN_PARENTHESIS = re.compile(r"^(LINE 1: )\((.*\n) ", re.M)
"""The parenthesis around such a query, in the line of the statement that a message shows with a mark below it."""

Run = Callable[[Lexed, Consumer], Awaitable[None]]
"""Runs a statement that only reads, and passes its result to the consumer."""


class RehearsalOutput(Protocol):
    """Receives what would be sent."""

    async def statement(self, statement: Lexed, ending: str, run: Run) -> None:
        """A statement after substitution; `ending` is its `;` as typed. Raises ShellError."""

    def command(self, text: str, *, sends: bool) -> None:
        """A command that is not run; one that `sends` stands before the statement that it would send."""

    def data(self, lines: int) -> None:
        """The data of a COPY, which are not loaded."""

    async def finish(self) -> None:
        """The end of all scripts. Raises ShellError."""


class Rehearsal:
    """Decides what of a script is carried out although its statements do not run: what changes the text that is sent.

    After a statement the variables are those of one that succeeded without rows.
    """

    def __init__(self, components: ShellComponents, rehearsed: RehearsalOutput) -> None:
        self._components = components
        self._rehearsed = rehearsed
        self._depends = False
        """Whether variables may have values that only results give."""
        self._first = self._lines = 0
        """The first line of the data that arrive, and their number so far."""

    def runs(self, command: Command, item: BackslashCommand) -> bool:
        """Whether a command is carried out. `\\set` alone would only list the variables.

        What a command in backticks would print is not known: only `\\set` and conditions can do without it.
        """
        if "`" in item.args and command.name not in {"set", *_CONDITIONS} and commands_in(item.args):
            return False
        return command.changes == "text" and bool(command.name != "set" or item.args)

    def argument(self, command: Command, args: Own) -> Own:
        """The arguments of a command that is carried out: a command in backticks is its own text, and a condition that
        depends on a result or on such a command is false.
        """
        if "`" in args and (commands := commands_in(args)):
            meant = "used as written" if command.name == "set" else "the condition counts as false"
            self._components.diagnostics.warn_here(f"the command {commands[0]} is not run; {meant}")
            return quoted_commands(args) if command.name == "set" else Own("false")
        if command.name not in _CONDITIONS or not self._depends:
            return args
        if not undefined(Lexed(Text(args)), self._components.variables):
            return args
        self._components.diagnostics.warn_here(
            f"the condition of \\{command.name} depends on a result; counted as false"
        )
        return Own("false")

    def command(self, command: Command, item: BackslashCommand) -> Statement | None:
        """Show a command that is not carried out, and check its arguments; returns the statement that it would send.

        Raises UsageError.
        """
        if item.words is None and "`" not in item.args:
            command.parsed(self._components.variables, Own(item.args), item.name)
        sends = command.sends_with(item.args)
        typed = item.name if item.name[:1] in {".", "!"} and item.name != "!" else f"\\{item.name}"
        self._depends = self._depends or command.name in _SETS_VARIABLES
        buffer = self._components.buffer
        pending = buffer.send(command.name) or buffer.last if sends else None
        self._rehearsed.command(f"{typed} {item.args}".rstrip(), sends=sends)
        return pending

    def check_variables(self, statement: Statement) -> None:
        """Warn about variables of a statement that are not set, whose references would be sent as they are."""
        for name in undefined(statement.lexed, self._components.variables):
            unless = ", unless a result sets it" if self._depends else ""
            self._components.diagnostics.warn_here(f"variable {name} is not set; :{name} is sent as written{unless}")

    async def statement(self, statement: Lexed, ending: str, run: Run) -> None:
        """A statement as it would be sent; `run` runs one that reads. Raises ShellError."""
        await self._rehearsed.statement(statement, ending, run)
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
            self._rehearsed.data(self._lines - 1)
            self._first = self._lines = 0

    async def finish(self) -> None:
        """The end of all scripts. Raises ShellError."""
        await self._rehearsed.finish()


def unterminated(state: State) -> StatementError | None:
    """The error of a statement that the end of a script ends in that state; None if it is complete."""
    construct = _UNTERMINATED.get(state)
    return StatementError(f"{construct} at the end of the script", where=Where(sqlstate.SYNTAX)) if construct else None


class PrintedScript:
    """--dry-run: prints a script of the statements as they would be sent, each after a comment with its position.

    Commands that are not run are comments, too.
    """

    def __init__(self, components: ShellComponents) -> None:
        self._output = components.result_output
        self._position = components.position
        self._sender = ""

    async def statement(self, statement: Lexed, ending: str, run: Run) -> None:
        text = statement.text + (ending or ";")
        if not ending and "--" in text.rpartition("\n")[2]:
            text = f"{statement.text}\n;"
        sender, self._sender = self._sender, ""
        self._print(f"-- {self._place}{sender}\n{text}\n")

    def command(self, text: str, *, sends: bool) -> None:
        shown = printable(text)
        if sends:
            self._sender = f" {shown}"
        else:
            self._print(f"-- {self._place} {shown} (not run)\n")

    def data(self, lines: int) -> None:
        self._print(f"-- {self._place} {format_count(lines, 'line')} of data (not sent)\n")

    async def finish(self) -> None:
        return None

    @property
    def _place(self) -> str:
        return f"{printable(source_name(self._position.script))}:{self._position.line}"

    def _print(self, text: str) -> None:
        self._output.print(text, with_results=True)


class ResultDescriptions:
    """--describe: the columns of all results, as one result at the end.

    A statement that may write is not run. The local service is asked for no rows of a query, which it then does not
    run; other services run it. What only changes or shows the session is run as it is.
    """

    def __init__(self, components: ShellComponents) -> None:
        self._components = components
        self._number = 0
        self._local: bool | None = None
        self._columns: list[list[str | None]] = []

    async def statement(self, statement: Lexed, ending: str, run: Run) -> None:
        self._number += 1
        writing = next((effect for effect in effects(statement) if effect.writes), None)
        if writing is not None:
            self._components.diagnostics.warn_here(
                f"{writing.name} may write and is not run; its result is not described"
            )
            return
        limited = verb(statement) in _QUERIES and await self._limits()
        # The line break ends a comment.
        asked = Lexed(Text(f"({statement.text}\n) LIMIT 0", ())) if limited else statement
        try:
            await run(asked, self._take)
        except StatementError as error:
            if limited and error.where.sql_state == sqlstate.SYNTAX:
                # An unfinished statement: the error is about what surrounds it.
                await run(statement, self._take)
                return
            if limited:
                error.message = _SHOWN_PARENTHESIS.sub(r"\1\2", error.message)
                if error.where.offset:
                    error.where = replace(error.where, offset=error.where.offset - 1)
            raise

    def command(self, text: str, *, sends: bool) -> None:
        if not sends:
            self._components.diagnostics.detail(f"{text} (not run)")

    def data(self, lines: int) -> None:
        return None

    async def finish(self) -> None:
        names = ("Statement", "INTEGER"), ("Script", "VARCHAR"), ("Line", "INTEGER")
        columns = (*names, ("Column", "VARCHAR"), ("Type", "VARCHAR"), ("Nullable", "BOOLEAN"))
        await self._components.result_output.show(table_of(columns, self._columns))

    async def _take(self, result: Result) -> Summary:
        await result.batches.aclose()
        position = self._components.position
        place = [str(self._number), source_name(position.script), str(position.line)]
        for column in result.columns:
            nullable = None if column.nullable is None else str(column.nullable).lower()
            self._columns.append([*place, column.name, column.type, nullable])
        if result.endless is not None:
            state = self._components.session.state
            await state.client.terminate(result.endless.query_id or result.statement_id, state.context)
            # The query has been terminated, so that there is nothing to report about it.
            result.endless = None
        return Summary(0, True)

    async def _limits(self) -> bool:
        """Whether the service is the local one."""
        if self._local is None:
            connection = self._components.session.connection
            self._local = connection.embedded or bool(await connection.service.extensions())
        return self._local
