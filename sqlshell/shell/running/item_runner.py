"""Runs one item of a script: a statement, a backslash command, or lines of data for COPY."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from sqlshell.errors import ShellError, Unread, UsageError
from sqlshell.origin import Own
from sqlshell.shell.command_shell import CommandShell
from sqlshell.shell.running.submitting import SubmitRequest
from sqlshell.shell.scripts.conditions import CONDITION_COMMANDS
from sqlshell.sql.analysis.copy_statements import is_copy
from sqlshell.sql.script.scanner import BackslashCommand, CopyLines, Item, Statement

if TYPE_CHECKING:
    from sqlshell.shell.commands.command import Command
    from sqlshell.shell.components import ShellComponents
    from sqlshell.shell.running.dry_run import DryRun
    from sqlshell.shell.running.interruption import Interruption
    from sqlshell.shell.running.resuming import Resumer
    from sqlshell.shell.running.submitting import Submitter
    from sqlshell.shell.scripts.inline_copy import InlineCopy


class ItemRunner:
    """Runs items. `commands` returns the backslash commands by name; they run only if `commands_allowed`."""

    def __init__(
        self,
        components: ShellComponents,
        shell: CommandShell,
        submitter: Submitter,
        interruption: Interruption,
        copy: InlineCopy,
        commands: Callable[[], Mapping[str, Command]],
        dry_run: DryRun | None,
        resumer: Resumer | None,
        *,
        commands_allowed: bool,
    ) -> None:
        self._components = components
        self._shell = shell
        self._submitter = submitter
        self._interruption = interruption
        self._copy = copy
        self._commands = commands
        self._dry_run = dry_run
        self._resumer = resumer
        self._commands_allowed = commands_allowed

    @contextlib.contextmanager
    def allowing_commands(self) -> Iterator[None]:
        """Inside the block, backslash commands run."""
        before, self._commands_allowed = self._commands_allowed, True
        try:
            yield
        finally:
            self._commands_allowed = before

    def command(self, item: BackslashCommand) -> Command | None:
        """The command that an item names, None for an unknown name."""
        return self._commands().get(item.name)

    async def run(self, item: Item) -> None:
        """Run an item. Raises only ShellError: an unexpected exception is reported as a bug, and the shell goes on."""
        try:
            await self._run(item)
        except ShellError:
            self._check_reader()
            raise
        except Exception as error:
            from sqlshell.runtime.bugs import bug_of

            raise bug_of(error, f"\\{item.name}" if isinstance(item, BackslashCommand) else "") from error
        self._check_reader()

    def _check_reader(self) -> None:
        """Raises Unread if the reader of a script's output has exited."""
        if self._components.result_output.reader_left and not self._components.session.interactive:
            raise Unread("")

    async def _run(self, item: Item) -> None:
        if isinstance(item, CopyLines):
            await self._take_data(item)
            return
        self._interruption.check()
        await self._learn_connection(item)
        if isinstance(item, Statement):
            await self._run_statement(item)
        else:
            await self._run_backslash_command(item)

    async def _take_data(self, lines: CopyLines) -> None:
        if self._dry_run is None:
            await self._copy.take(lines)
        elif self._components.conditions.active:
            self._dry_run.data(lines)

    async def _run_statement(self, item: Statement) -> None:
        components = self._components
        active, script = components.conditions.active, components.front_end.progress.script
        if script is not None and len(components.position.scripts) == 1:
            script.at(item)
        copies = (item.copies or is_copy(item.lexed)) and self._dry_run is None
        if copies and await self._copy.run_statement(
            item, commands_allowed=self._commands_allowed and not self._shell.restricted
        ):
            return
        if active and item.has_failed_command and not item.terminated:
            components.diagnostics.warn("the unfinished statement was not run because a command in it failed")
        elif active:
            await self._submitter.submit(SubmitRequest(item, background=item.background))
        elif components.at_prompt:
            components.diagnostics.say("statement ignored; use \\endif or Ctrl-C to leave the \\if block")

    async def _run_backslash_command(self, item: BackslashCommand) -> None:
        components = self._components
        components.front_end.progress.clear()
        if self._shell.restricted and item.name != "unrestrict":
            raise UsageError(
                f"\\{item.name}: backslash commands are disabled by \\restrict", "\\unrestrict KEY enables them again"
            )
        if self._dry_run is None and await self._copy.run_command(item, commands_allowed=self._commands_allowed):
            return
        if not self._commands_allowed:
            typed = item.name if item.name[:1] in {".", "!"} and item.name != "!" else f"\\{item.name}"
            raise UsageError(f"{typed}: backslash commands are disabled (--no-commands)")
        if not components.conditions.active and item.name not in CONDITION_COMMANDS:
            return
        from sqlshell.shell.commands.command import find

        await self._run_command(find(self._commands(), item.name), item)

    async def _learn_connection(self, item: Statement | BackslashCommand) -> None:
        """Ask for psql's variables about the connection, if the item refers to one."""
        session, variables = self._components.session, self._components.variables
        runs = self._components.conditions.active
        if isinstance(item, Statement):
            refers = variables.lacks_connection(item.text)
        else:
            lists = session.state.server is None and item.name == "set" and not item.args.strip()
            pending = self._components.buffer.scanner.pending
            refers = lists or variables.lacks_connection(f"{pending} {item.args}")
            runs = runs or item.name in CONDITION_COMMANDS
        if not (refers and runs) or self._dry_run is not None or session.connection.offline is not None:
            return
        from sqlshell.shell.metadata.objects import learn_connection

        await self._interruption.interruptible(learn_connection(self._shell), "conninfo")

    async def _run_command(self, command: Command, item: BackslashCommand) -> None:
        buffer = self._components.buffer
        if command.name in CONDITION_COMMANDS:
            self._components.conditions.before_command(command.name, buffer.scanner)
        for statement in buffer.substitute_pending():
            await self._submitter.submit(SubmitRequest(statement, verbatim=True))
        if self._dry_run is not None and not self._dry_run.runs(command.name, command.changes, item):
            if item.words is None and "`" not in item.args:
                # Wrong arguments are errors here, too.
                command.parsed(self._components.variables, Own(item.args), item.name)
            shown = self._dry_run.command(command.name, item, sends=command.sends_with(item.args))
            if shown is not None:
                await self._submitter.submit(SubmitRequest(shown))
            return
        # The loads of \copy are recorded where they happen.
        acts = not command.changes and not command.sends_with(item.args) and command.name != "copy"
        if self._resumer is None or not acts:
            await self._carry_out(command, item)
            return
        text = f"\\{item.name} {item.args}"
        step = await self._resumer.command(command.name, text, self._submitter.run_again)
        if step is not None:
            await self._resumer.recording_outcome(step, self._carry_out(command, item))

    async def _carry_out(self, command: Command, item: BackslashCommand) -> None:
        conditions, buffer = self._components.conditions, self._components.buffer
        args = Own(item.args if conditions.evaluates(command.name) else "false")
        if self._dry_run is not None:
            args = self._dry_run.argument(command.name, args)
        depth = conditions.depth
        try:
            running = command.run(self._shell, args, item.name, item.words)
            await self._interruption.interruptible(running, item.name)
        except ShellError as error:
            if error.in_command is None:
                error.in_command = True
                # Before the text that follows is skipped: \endif restores the statement as it is now.
                buffer.scanner.unfinished.has_failed_command = buffer.scanner.unfinished.started
                if conditions.depth == depth:
                    conditions.reject_condition(command.name)
            raise
        finally:
            conditions.after_command(buffer.scanner)
            self._components.session.skipping = not conditions.active
