"""Runs interactive input, `-c`, `-f` and stdin in the same way: text in, statements and commands out, in order."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import Exit, Interrupted, ShellError, UsageError
from sqlshell.origin import Own
from sqlshell.runtime.streams import Streams
from sqlshell.shell.command_shell import CommandShell
from sqlshell.shell.components import ScriptModes
from sqlshell.shell.connection import Environment
from sqlshell.shell.front_end import FrontEnd
from sqlshell.shell.results.result_output import ResultOutput
from sqlshell.shell.running.attachments import Attachments
from sqlshell.shell.running.connection_manager import ConnectionManager
from sqlshell.shell.running.submitting import Submitter
from sqlshell.shell.scripts.inline_copy import InlineCopy
from sqlshell.shell.scripts.position import Position
from sqlshell.shell.scripts.script_runner import ScriptRunner
from sqlshell.shell.session import Session
from sqlshell.sql.script.items import State
from sqlshell.text import format_count

if TYPE_CHECKING:
    from sqlshell.shell.commands.command import Command


class Shell(CommandShell):
    """Runs text. `commands` returns the backslash commands by name; they run only if `commands_allowed`."""

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
        commands: Callable[[], Mapping[str, Command]],
        modes: ScriptModes | None = None,
        *,
        commands_allowed: bool = True,
    ) -> None:
        """Create it with its parts, and what the options of this run do at each statement."""
        super().__init__(
            session, result_output, attachments, front_end, environment, diagnostics, position, streams, modes
        )
        # Created for the first command, because many scripts have none.
        self._commands = functools.cache(commands)
        self.submitter = self._submitter()
        self.connections = ConnectionManager(session, front_end, diagnostics, self.failures)
        self._copy = self._inline_copy()
        self._scripts = ScriptRunner(self, self._copy, self._commands, commands_allowed=commands_allowed)

    @property
    def commands(self) -> Mapping[str, Command]:
        """The backslash commands by name."""
        return self._commands()

    def _submitter(self) -> Submitter:
        """What carries out the statements of a run with these options."""
        if self.modes.dry_run:
            from sqlshell.shell.running.dry_run import DryRun

            return DryRun(self)
        if self.modes.checkpoint is not None:
            from sqlshell.shell.running.resuming import Resumer

            return Resumer(self, self.modes.checkpoint)
        if self.session.interactive:
            return Submitter(self)
        from sqlshell.shell.running.send_ahead import SendAhead

        return SendAhead(self)

    def _inline_copy(self) -> InlineCopy:
        """What carries out the COPY statements whose data follow in the script."""
        if self.submitter.sends:
            return InlineCopy(self)
        from sqlshell.shell.running.dry_run import DryRun, PrintedCopy

        assert isinstance(self.submitter, DryRun)
        return PrintedCopy(self, self.submitter)

    @property
    def exit(self) -> Exit:
        """The exit code of the first failure."""
        return self.failures.exit

    async def run(self, text: Own, *, send: bool = False) -> bool:
        """Run the complete items of a text that the user typed; False if the shell should exit. Raises no ShellError.

        The unfinished rest is kept for the next text, unless it is sent without a `;`.
        """
        stop = self.failures.stops and "ON_ERROR_STOP" in self.variables
        self.buffer.scanner.unfinished.has_failed_command = False
        run = functools.partial(self._scripts.run, name="", stop=stop, typed=True)
        continues = await run([Own(text + "\n")], send=send)
        while continues and (text := self.buffer.take_edited()):
            continues = await run([Own(text + "\n")], send=False)
        if not self.buffer.scanner.pending and self.buffer.scanner.state is not State.COPY_DATA:
            self.buffer.clear()
        return continues

    async def run_own(self, path: Own) -> None:
        """Run a script of the user, such as rc.sql: its commands are allowed, and its failures do not count."""
        with self._scripts.allowing_commands(), self.failures.separate_exit_code():
            await self._scripts.run(self.read(path), path, stop=False)

    def read(self, path: Own) -> Iterator[Own]:
        """The text of a script in chunks, `-` for stdin. Raises UsageError if it cannot be read or is not text."""
        return self._scripts.read(path)

    async def run_script(
        self,
        chunks: Iterable[Own],
        name: str,
        *,
        stop: bool | None = None,
        words: tuple[Own, ...] | None = None,
    ) -> bool:
        """Run a script that arrives in chunks of text, as ScriptRunner.run() does."""
        return await self._scripts.run(chunks, name, stop=stop, words=words)

    async def include(self, path: Own, *, relative: bool = False) -> None:
        """Run a script; with `relative`, its name is relative to the script that includes it."""
        with self._acting():
            await self._scripts.include(path, relative=relative)

    def leave(self) -> None:
        """End the running script; for typed text, exit the shell."""
        self._scripts.leave()

    def discard_unfinished(self) -> None:
        """Ctrl-C at the prompt: discard the unfinished statement and open conditions."""
        self.buffer.clear()
        self._copy.discard()
        with contextlib.suppress(UsageError):
            self.conditions.close(0)
        self.session.skipping = False

    async def finish(self) -> None:
        """The end of scripts: report background statements that keep running, and files that were not sent."""
        try:
            self.submitter.finish(complete=self.exit == Exit.DONE)
        except ShellError as error:
            self.failures.report(error)
        statistics = self.modes.statistics
        if statistics is not None and statistics.incomplete and self.exit == Exit.DONE:
            self.failures.exit = Exit.STATEMENT
        for job in await self.connections.finish():
            self.diagnostics.note(
                f"[{job.number}] is still running; fetch its result with: sqlshell fetch {job.statement_id}"
            )
        if self.exit == Exit.DONE:
            try:
                self.attachments.check_all_used()
            except UsageError as error:
                self.failures.report(error)

    def warn_of_transaction(self) -> None:
        """Warn that an open transaction is left."""
        self.connections.warn_of_transaction()

    async def finish_prompt(self, *, wait: bool) -> None:
        """The end of the prompt. Statements that would end with this shell are waited for, until Ctrl-C."""
        jobs = self.connections.ending_jobs
        if jobs and wait:
            many = format_count(len(jobs), "background statement")
            self.diagnostics.say(f"waiting for {many} of the embedded service; Ctrl-C cancels")
            with contextlib.suppress(Interrupted):
                await self.interruption.interruptible(self.connections.wait_for_ending_jobs(), "q")
        self.connections.warn_of_ending_jobs()
        self.warn_of_transaction()

    async def aclose(self) -> None:
        """Leave: background statements keep running at the service."""
        await self.connections.aclose()
        self.submitter.close()
        statistics = self.modes.statistics
        if statistics is not None:
            # Background statements that were left running are written now.
            await asyncio.sleep(0)
            statistics.close()
