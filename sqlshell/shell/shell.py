"""Runs interactive input, `-c`, `-f` and stdin in the same way: text that arrives in chunks in, statements and commands
out, in order."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from sqlshell.errors import (
    AmbiguousScript,
    CannotResume,
    ConnectionFailed,
    Exit,
    Interrupted,
    NotAuthenticated,
    ReaderLeft,
    ShellError,
    StatementError,
    UsageError,
    Where,
)
from sqlshell.interface import sqlstate
from sqlshell.origin import EMPTY, Trusted
from sqlshell.runtime.event_loops import in_daemon_thread
from sqlshell.shell.command_shell import CommandShell
from sqlshell.shell.running.failures import AlreadyReported, cause_of
from sqlshell.shell.running.submitting import Submitter, Use
from sqlshell.shell.scripts.conditions import CONDITION_COMMANDS
from sqlshell.shell.scripts.inline_copy import InlineCopy
from sqlshell.shell.scripts.position import ScriptPlace
from sqlshell.shell.scripts.reading import read_script, relative_to_script, skipped_message
from sqlshell.sql.analysis.copy_statements import is_copy
from sqlshell.sql.script.items import BackslashCommand, CopyLines, Item, State, Statement
from sqlshell.text import format_count

if TYPE_CHECKING:
    from sqlshell.shell.commands.command import Command

DEEPEST_INCLUDE = 50
NOT_CONNECTED = (ConnectionFailed, NotAuthenticated)
"""Errors of \\c, which changes nothing if it fails."""

_UNTERMINATED: Final = {
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


class Shell(CommandShell):
    """Runs text, and the scripts that it includes."""

    _leaving = False
    _ended_by: ShellError | None = None
    """The error that ended the last script before its end."""

    @functools.cached_property
    def commands(self) -> Mapping[str, Command]:
        # Many scripts have none.
        from sqlshell.shell.commands import BUILTIN, table

        return table(BUILTIN)

    @functools.cached_property
    def submitter(self) -> Submitter:
        if self.modes.dry_run:
            from sqlshell.shell.running.dry_run import DryRun

            return DryRun(self)
        if self.modes.checkpoint is not None:
            from sqlshell.shell.running.resuming import ResumingSubmitter

            return ResumingSubmitter(self, self.modes.checkpoint)
        if self.session.interactive:
            return Submitter(self)
        from sqlshell.shell.running.send_ahead import SendAhead

        return SendAhead(self)

    @functools.cached_property
    def _copy(self) -> InlineCopy:
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

    async def run(self, text: Trusted, *, send: bool = False) -> bool:
        """Run the complete items of a text that the user typed; False if the shell should exit. Raises no ShellError.

        The unfinished rest is kept for the next text, unless it is sent without a `;`.
        """
        stop = self.failures.stops and "ON_ERROR_STOP" in self.variables
        self.buffer.scanner.unfinished.has_failed_command = False
        run = partial(self.run_script, name="", stop=stop, typed=True)
        continues = await run([Trusted(text + "\n")], send=send)
        while continues and (text := self.buffer.take_edited()):
            self.front_end.note_edited(text)
            continues = await run([Trusted(text + "\n")], send=False)
        if not self.buffer.scanner.pending and self.buffer.scanner.state is not State.COPY_DATA:
            self.buffer.clear()
        return continues

    async def run_own(self, path: Trusted) -> None:
        """Run a script of the user, such as rc.sql: its commands are allowed, and its failures do not count."""
        self._runs_own = True
        try:
            with self.failures.separate_exit_code():
                await self.run_script(self.read(path), path, stop=False)
        finally:
            self._runs_own = False

    def read(self, path: Trusted) -> Iterator[Trusted]:
        """The text of a script in chunks, `-` for stdin. Raises UsageError if it cannot be read or is not text."""
        return read_script(path, self.streams.stdin)

    async def run_script(
        self,
        chunks: Iterable[Trusted],
        name: str,
        *,
        stop: bool | None = None,
        typed: bool = False,
        send: bool = True,
    ) -> bool:
        """Run a script that arrives in chunks of text; `name` is used in its errors. False if the shell should exit.

        A \\q ends only the script, unless the user `typed` it.

        With `stop`, or according to on_error (None), a failure ends the script; a lost connection and an interruption
        always do. Errors are reported, and the first exit code is kept in `exit`. The end of the script also sends its
        last statement. A `typed` text continues the previous one, and its rest is sent only with `send`.
        """
        depth = self.conditions.depth
        buffer = contextlib.nullcontext() if typed else self.buffer.separate()
        command_text = chunks[0] if isinstance(chunks, list) and not name else None
        data = contextlib.nullcontext() if typed else self._copy.of_script(command_text)
        place = contextlib.nullcontext() if typed else self._showing_place(chunks, name)
        with buffer, data, place, self.position.within(name), self.failures.stopping_on_failure(stop):
            try:
                continues = await self._run_chunks(chunks, name, send=send)
                if self._leaving:
                    return not typed
                if continues is None and not typed:
                    self._close_conditions(depth)
                return continues is not False
            finally:
                await self.submitter.end_batch()
                self._leaving = False
                if not typed:
                    with contextlib.suppress(UsageError):
                        self.conditions.close(depth)

    @contextlib.contextmanager
    def _showing_place(self, chunks: Iterable[Trusted], name: str) -> Iterator[None]:
        """Inside the block, a terminal shows which statement of this script runs; not those of included scripts."""
        progress = self.front_end.progress
        if not progress.live or progress.script is not None or self.session.interactive:
            yield
            return
        progress.script = ScriptPlace.of(chunks, name)
        try:
            yield
        finally:
            progress.script = None
            progress.hide()

    async def include(self, path: Trusted, *, relative: bool = False) -> None:
        """Run a script; with `relative`, its name is relative to the current script. Raises AlreadyReported."""
        with self._acting(), self.failures.separate_exit_code():
            if relative:
                path = relative_to_script(self.position.script, path)
            if len(self.position.scripts) > DEEPEST_INCLUDE:
                raise UsageError(
                    f"{path}: scripts are nested more than {DEEPEST_INCLUDE} levels deep",
                    "check whether the script includes itself",
                )
            chunks = self.read(path)
            # If the file cannot be opened, the error belongs to the including script.
            first = next(chunks, EMPTY)
            self._ended_by = None
            await self.run_script(itertools.chain([first], chunks), path)
            if self.failures.exit != Exit.DONE:
                raise AlreadyReported(self.failures.exit, self._ended_by)

    def leave(self) -> None:
        self._leaving = True

    def _close_conditions(self, depth: int) -> None:
        try:
            self.conditions.close(depth)
        except UsageError as error:
            self.failures.report(error)

    async def _run_chunks(self, chunks: Iterable[Trusted], name: str, *, send: bool) -> bool | None:
        """None at the end of the script; before it, whether the shell continues."""
        arriving, in_memory = iter(chunks), isinstance(chunks, list)
        at_end = False
        while not at_end:
            # First process what is due on the event loop, such as an interruption.
            await asyncio.sleep(0)
            try:
                chunk = await self._next_chunk(arriving, in_memory=in_memory)
                at_end = chunk is None and not self.buffer.scanner.end_line()
                if chunk is not None:
                    self.buffer.scanner.feed(chunk)
                elif at_end and (send or self.buffer.ends_by_variable()):
                    self._end_last_statement()
            except ShellError as error:
                self.failures.report(error)
                return True
            while items := self.buffer.scanner.read():
                for number, item in enumerate(items):
                    # The data of a COPY belong to its statement.
                    if not isinstance(item, CopyLines):
                        self.position.at(item.line)
                    try:
                        await self.submitter.start_batch(items, number, stop=self.failures.stopping)
                        await self._run_item(item)
                    except ShellError as error:
                        self.failures.report(error)
                        if isinstance(error, ReaderLeft):
                            return False
                        ends = self.failures.ends_script(error)
                        self._abandon_unfinished(item, warns=not ends)
                        if ends:
                            # After a \c that failed, the script that includes this one is still where it was.
                            self._ended_by = None if error.misplaces_rest else error
                            ran = await self.submitter.end_batch()
                            self._skip(items[number + 1 + ran :], arriving, name, item, error)
                            interactive = self.session.interactive
                            return interactive or not isinstance(cause_of(error), Interrupted | CannotResume)
                    if self._leaving:
                        return True
        return None

    async def _run_item(self, item: Item) -> None:
        """Run an item. Raises only ShellError: an unexpected exception is reported as a bug, and the shell goes on."""
        try:
            if isinstance(item, CopyLines):
                await self._copy.take(item)
            else:
                self.statement_runner.check()
                await self._learn_connection(item)
                await (self._run_statement(item) if isinstance(item, Statement) else self._run_command(item))
        except ShellError:
            self._check_reader()
            raise
        except Exception as error:
            from sqlshell.runtime.bugs import bug_of

            raise bug_of(error, f"\\{item.name}" if isinstance(item, BackslashCommand) else "") from error
        self._check_reader()

    def _check_reader(self) -> None:
        """Raises ReaderLeft if the reader of a script's output has exited."""
        if self.result_output.reader_left and not self.session.interactive:
            raise ReaderLeft("")

    async def _learn_connection(self, item: Statement | BackslashCommand) -> None:
        """Ask for psql's variables about the connection, if the item refers to one."""
        variables, runs = self.variables, self.conditions.active
        if isinstance(item, Statement):
            refers = variables.lacks_connection(item.text)
        else:
            lists = self.session.state.server is None and item.name == "set" and not item.args.strip()
            refers = lists or variables.lacks_connection(f"{self.buffer.scanner.pending} {item.args}")
            runs = runs or item.name in CONDITION_COMMANDS
        if not (refers and runs and self.submitter.sends) or self.session.connection.offline is not None:
            return
        from sqlshell.shell.metadata.objects import learn_connection

        await self.statement_runner.interruptible(learn_connection(self.session), "conninfo")

    async def _run_statement(self, item: Statement) -> None:
        active, script = self.conditions.active, self.front_end.progress.script
        if script is not None and len(self.position.scripts) == 1:
            script.at(item)
        if (item.copies or is_copy(item.lexed)) and await self._copy.run_statement(item):
            return
        if active and item.has_failed_command and not item.terminated:
            self.diagnostics.warn("the unfinished statement was not run because a command in it failed")
        elif active:
            await self.submitter.submit(item, Use(background=item.background))
        elif self.at_prompt:
            self.diagnostics.say("statement ignored; use \\endif or Ctrl-C to leave the \\if block")

    async def _run_command(self, item: BackslashCommand) -> None:
        self.front_end.progress.clear()
        if self.restricted and item.name != "unrestrict":
            raise UsageError(
                f"\\{item.name}: backslash commands are disabled by \\restrict", "\\unrestrict KEY enables them again"
            )
        if await self._copy.run_command(item):
            return
        if not self.commands_allowed:
            from sqlshell.shell.commands.command import as_typed

            raise UsageError(f"{as_typed(item.name)}: backslash commands are disabled (--no-commands)")
        if not self.conditions.active and item.name not in CONDITION_COMMANDS:
            return
        from sqlshell.shell.commands.command import find

        command = find(self.commands, item.name)
        if command.name in CONDITION_COMMANDS:
            self.conditions.before_command(command.name, self.buffer.scanner)
        for statement in self.buffer.substitute_pending():
            await self.submitter.submit(statement, verbatim=True)
        args = Trusted(item.args if self.conditions.evaluates(command.name) else "false")
        await self.submitter.command(command, item, args, partial(self._carry_out, command, item))

    async def _carry_out(self, command: Command, item: BackslashCommand, args: Trusted) -> None:
        conditions = self.conditions
        depth = conditions.depth
        try:
            running = command.run(self, args, item.name)
            await self.statement_runner.interruptible(running, item.name)
        except ShellError as error:
            if error.in_command is None:
                error.in_command = True
                # Before the text that follows is skipped: \endif restores the statement as it is now.
                scanner = self.buffer.scanner
                scanner.unfinished.has_failed_command = scanner.unfinished.started
                if conditions.depth == depth:
                    conditions.reject_condition(command.name)
            raise
        finally:
            conditions.after_command(self.buffer.scanner)
            self.session.skipping = not conditions.active

    async def _next_chunk(self, arriving: Iterator[Trusted], *, in_memory: bool) -> Trusted | None:
        """The next part of the script; None at its end. Raises ShellError."""
        if in_memory and not self.session.state.background.running_count:
            chunk = next(arriving, None)
        else:
            # Reading may block: meanwhile background statements go on, and Ctrl-C is noticed.
            chunk = await in_daemon_thread(lambda: next(arriving, None), "script")
        place = self.front_end.progress.script
        if chunk is not None and place is not None and len(self.position.scripts) == 1:
            place.arrived(chunk)
        return chunk

    def _end_last_statement(self) -> None:
        """The script ends: its last statement needs no `;`. Raises StatementError if the end cuts it off."""
        scanner = self.buffer.scanner
        if self.at_prompt and scanner.unfinished.has_failed_command:
            return
        if (cut_off := self._unterminated()) is not None:
            raise cut_off
        scanner.close()

    def _skip(
        self, items: Sequence[Item], arriving: Iterable[Trusted], name: str, failed: Item, error: ShellError
    ) -> None:
        """A failure ends the script: discard `items` and the rest, and report what was not run."""
        if isinstance(error, AmbiguousScript):
            # The rest may be data.
            self.buffer.clear()
            return
        with self._keeping_unfinished(failed, error):
            waits = name == "stdin"
            if left := skipped_message(self.buffer.scanner, items, () if waits else arriving, surely=not waits):
                self.diagnostics.warn(left)
            self.buffer.clear()

    def _unterminated(self) -> StatementError | None:
        """The error of a statement that the end of the script would cut off, or of statements in a comment that it
        cuts off. If statements run, the service reports the former.
        """
        scanner = self.buffer.scanner
        started = scanner.unfinished.started
        in_comment = scanner.state is State.BLOCK_COMMENT and not started
        construct = _UNTERMINATED.get(scanner.state)
        if not self.conditions.active or not construct or not (in_comment or not self.submitter.sends):
            return None
        error = StatementError(f"{construct} at the end of the script", where=Where(sqlstate.SYNTAX))
        self.position.at(scanner.comment_line if in_comment else scanner.unfinished.line or self.position.line)
        if in_comment:
            error.hint, error.in_command = "the text after /* was not run; end the comment with */", True
        self.buffer.clear()
        return error

    def _abandon_unfinished(self, item: Item, *, warns: bool) -> None:
        """A command failed: the statement that it would have sent goes back to the user, or is discarded.

        A statement that the command would have left unchanged is not sent at the end of the script. `warns`: warn the
        user of a statement that is discarded.
        """
        unfinished = self.buffer.scanner.unfinished
        if not isinstance(item, BackslashCommand) or not unfinished.started:
            return
        command = self.commands.get(item.name)
        if self.at_prompt or command is None or not command.sends_with(item.args):
            unfinished.has_failed_command = True
        else:
            self.buffer.scanner.take()
            if warns:
                self.diagnostics.warn(f"the unfinished statement before \\{item.name} was discarded")

    @contextlib.contextmanager
    def _keeping_unfinished(self, item: Item, error: ShellError) -> Iterator[None]:
        """Inside the block, the statement around a command that could not connect at the prompt is set aside."""
        scanner = self.buffer.scanner
        kept = scanner.unfinished.copy()
        keeps = self.at_prompt and isinstance(item, BackslashCommand) and isinstance(error, NOT_CONNECTED)
        if not keeps or not kept.started:
            yield
            return
        # The end of the command's line.
        kept.parts.append("\n")
        scanner.take()
        yield
        self.buffer.scanner.return_to(kept)

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
        fetch_command = self.session.connection.fetch_command
        for job in await self.connections.finish():
            self.diagnostics.note(
                f"[{job.number}] is still running; fetch its result with: {fetch_command(job.statement_id)}"
            )
        if self.exit == Exit.DONE:
            try:
                self.attachments.check_all_used()
            except UsageError as error:
                self.failures.report(error)

    async def finish_prompt(self, *, wait: bool) -> None:
        """The end of the prompt. Statements that would end with this shell are waited for, until Ctrl-C."""
        jobs = self.connections.ending_jobs
        if jobs and wait:
            many = format_count(len(jobs), "background statement")
            self.diagnostics.say(f"waiting for {many} of the embedded service; Ctrl-C cancels")
            with contextlib.suppress(Interrupted):
                await self.statement_runner.interruptible(self.connections.wait_for_ending_jobs(), "q")
        self.connections.warn_of_ending_jobs()
        self.connections.warn_of_transaction()

    async def aclose(self) -> None:
        """Leave: background statements keep running at the service."""
        await self.connections.aclose()
        self.submitter.close()
        statistics = self.modes.statistics
        if statistics is not None:
            # Background statements that were left running are written now.
            await asyncio.sleep(0)
            statistics.close()
