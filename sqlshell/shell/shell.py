"""Runs interactive input, `-c`, `-f` and stdin in the same way: text in, statements and commands out, in order."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sqlshell.errors import (
    CannotResume,
    ConnectionFailed,
    Exit,
    Interrupted,
    NotAuthenticated,
    ShellError,
    StatementError,
    Unread,
    Unreadable,
    UsageError,
)
from sqlshell.humanize import not_run, pluralize
from sqlshell.origin import EMPTY, Own
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.effects import Branch
from sqlshell.shell.running.connection_manager import ConnectionManager
from sqlshell.shell.running.dumps import Dumps
from sqlshell.shell.running.failures import AlreadyReported, Failures
from sqlshell.shell.running.foreground import Foreground
from sqlshell.shell.running.interruption import Interruption
from sqlshell.shell.running.submitting import SubmitRequest, Submitter
from sqlshell.shell.scripts.conditions import CONDITION_COMMANDS
from sqlshell.shell.scripts.inline_copy import InlineCopy
from sqlshell.shell.scripts.reading import beside_script, next_chunk, read_script, skipped_message
from sqlshell.shell.scripts.script_place import ScriptPlace
from sqlshell.shell.shell_view import ShellView
from sqlshell.sql.script.scanner import BackslashCommand, CopyLines, Item, State, Statement

if TYPE_CHECKING:
    from sqlshell.shell.actions.dispatcher import Actions
    from sqlshell.shell.actions.loads import LoadActions
    from sqlshell.shell.commands.command import Command
    from sqlshell.shell.running.rehearsal import Rehearsal
    from sqlshell.shell.running.resuming import Resumer

DEEPEST_INCLUDE = 50
NOT_CONNECTED = (ConnectionFailed, NotAuthenticated)
"""Errors of \\c, which changes nothing if it fails."""


class Shell:
    """Runs text. `commands` returns the backslash commands by name; they run only if `commands_allowed`."""

    def __init__(
        self,
        components: ShellComponents,
        commands: Callable[[], Mapping[str, Command]],
        *,
        commands_allowed: bool = True,
    ) -> None:
        session, front_end, diagnostics = components.session, components.front_end, components.diagnostics
        self.session = session
        self.diagnostics = diagnostics
        self._commands_allowed = commands_allowed
        self._streams = components.streams
        self._position = components.position
        self._conditions = components.conditions
        self.buffer = components.buffer
        foreground = Foreground(session, components.result_output, front_end, diagnostics)
        self.interruption = interruption = Interruption(session, foreground, front_end.progress)
        self._progress = front_end.progress
        self.failures = failures = Failures(session, components.position, components.buffer, front_end, diagnostics)
        self._rehearsal = rehearsal = _rehearsal(components)
        self._resumer = resumer = _resumer(components, interruption)
        self._submitter = submitter = Submitter(components, foreground, rehearsal, resumer)
        self._connections = connections = ConnectionManager(session, front_end, diagnostics, lambda: failures.exit)
        # Created for the first command, because many scripts have none.
        self._commands = functools.cache(commands)
        self.view = ShellView(
            session,
            components.variables,
            components.buffer,
            components.result_output,
            components.attachments,
            front_end,
            components.environment,
            diagnostics,
            interruption.show_progress,
            self._commands,
        )

        @functools.cache
        def actions() -> Actions:
            from sqlshell.shell.actions.dispatcher import Actions
            from sqlshell.shell.actions.local import LocalActions
            from sqlshell.shell.actions.scripts import ScriptActions
            from sqlshell.shell.actions.session import SessionActions
            from sqlshell.shell.actions.statements import StatementActions

            return Actions(
                components,
                StatementActions(components, submitter, foreground, interruption, failures),
                ScriptActions(components, self, failures),
                SessionActions(components, connections, interruption),
                LocalActions(components, interruption),
                loads(),
            )

        @functools.cache
        def loads() -> LoadActions:
            from sqlshell.shell.actions.loads import LoadActions

            return LoadActions(components, submitter, interruption)

        self._actions = actions
        self._copy = InlineCopy(components, loads)
        self._dumps = Dumps(components)
        self._modes = components.modes
        self._restricted_by = ""
        """The key of \\restrict; "" if commands are not restricted."""
        self._leaving = False

    @property
    def exit(self) -> Exit:
        """The exit code of the first failure."""
        return self.failures.exit

    @property
    def rehearses(self) -> bool:
        """Whether no statement of a script runs."""
        return self._rehearsal is not None

    async def run(self, text: Own, *, send: bool = False) -> bool:
        """Run the complete items of a text that the user typed; False if the shell should exit. Raises no ShellError.

        The unfinished rest is kept for the next text, unless it is sent without a `;`.
        """
        stop = self.failures.stops and "ON_ERROR_STOP" in self.view.variables
        self.buffer.scanner.unfinished.has_failed_command = False
        continues = await self.run_script([Own(text + "\n")], "", stop=stop, typed=True, send=send)
        while continues and (text := self.buffer.take_edited()):
            continues = await self.run_script([Own(text + "\n")], "", stop=stop, typed=True, send=False)
        if not self.buffer.scanner.pending and self.buffer.scanner.state is not State.COPY_DATA:
            self.buffer.clear()
        return continues

    async def run_own(self, path: Own) -> None:
        """Run a script of the user, such as rc.sql: its commands are allowed, and its failures do not count."""
        before, self._commands_allowed = self._commands_allowed, True
        try:
            with self.failures.separate_exit_code():
                await self.run_script(self.read(path), path, stop=False)
        finally:
            self._commands_allowed = before

    def read(self, path: Own) -> Iterator[Own]:
        """The text of a script in chunks, `-` for stdin. Raises UsageError if it cannot be read or is not text."""
        return read_script(path, self._streams.stdin)

    async def run_script(
        self,
        chunks: Iterable[Own],
        name: str,
        *,
        stop: bool | None = None,
        typed: bool = False,
        send: bool = True,
        words: tuple[Own, ...] | None = None,
    ) -> bool:
        """Run a script that arrives in chunks of text; `name` is used in its errors. False if the shell should exit.

        A \\q ends only the script, unless the user `typed` it.

        With `stop`, or according to on_error (None), a failure ends the script; a lost connection and an interruption
        always do. Errors are reported, and the first exit code is kept in `exit`. The end of the script also sends its
        last statement. A `typed` text continues the previous one, and its rest is sent only with `send`. `words` are
        the arguments of the script's only command, which are not parsed.
        """
        depth = self._conditions.depth
        buffer = contextlib.nullcontext() if typed else self.buffer.separate()
        command_text = chunks[0] if isinstance(chunks, list) and not name else None
        data = contextlib.nullcontext() if typed else self._copy.of_script(command_text)
        place = contextlib.nullcontext() if typed else self._showing_place(chunks, name)
        with buffer, data, place, self._position.within(name), self.failures.stopping_on_failure(stop):
            try:
                continues = await self._run_chunks(chunks, name, send=send, words=words)
                if not typed or self._leaving:
                    self._close_parallel(at_end=self._leaving or continues is None)
                if self._leaving:
                    return not typed
                if continues is None and not typed:
                    self._close_conditions(depth)
                return continues is not False
            finally:
                await self._submitter.end_batch()
                self._leaving = False
                if not typed:
                    with contextlib.suppress(UsageError):
                        self._conditions.close(depth)

    @contextlib.contextmanager
    def _showing_place(self, chunks: Iterable[Own], name: str) -> Iterator[None]:
        """Inside the block, a terminal shows which statement of this script runs; not those of included scripts."""
        progress = self._progress
        if not progress.live or progress.script is not None or self.session.interactive:
            yield
            return
        progress.script = ScriptPlace.of(chunks, name)
        try:
            yield
        finally:
            progress.script = None
            progress.hide()

    async def include(self, path: Own, *, beside: bool = False) -> None:
        """Run a script; with `beside`, its name is relative to the current script. Raises AlreadyReported."""
        if beside:
            path = beside_script(self._position.script, path)
        if len(self._position.scripts) > DEEPEST_INCLUDE:
            raise UsageError(
                f"{path}: scripts are nested more than {DEEPEST_INCLUDE} levels deep",
                "check whether the script includes itself",
            )
        chunks = self.read(path)
        # If the file cannot be opened, the error belongs to the including script.
        first = next(chunks, EMPTY)
        with self.failures.separate_exit_code():
            await self.run_script(itertools.chain([first], chunks), path)
            failed = self.exit
        if failed != Exit.DONE:
            raise AlreadyReported(failed)

    def restrict(self, key: str) -> None:
        """Disable backslash commands until unrestrict() is called with the same key."""
        self._restricted_by = key

    def unrestrict(self, key: str) -> None:
        """Raises UsageError for another key."""
        if key != self._restricted_by:
            raise UsageError("\\unrestrict: this is not the key of \\restrict")
        self._restricted_by = ""

    def leave(self) -> None:
        """End the running script; for typed text, exit the shell."""
        self._leaving = True

    def discard_unfinished(self) -> None:
        """Ctrl-C at the prompt: discard the unfinished statement and open conditions."""
        self.buffer.clear()
        self._copy.discard()
        self._submitter.discard_block(0)
        with contextlib.suppress(UsageError):
            self._conditions.close(0)
        self.session.skipping = False

    async def finish(self) -> None:
        """The end of scripts: report background statements that keep running, and files that were not sent."""
        try:
            if self._rehearsal is not None:
                await self._rehearsal.finish()
            if self._resumer is not None:
                self._resumer.finish(complete=self.exit == Exit.DONE)
        except ShellError as error:
            self.failures.report(error)
        statistics = self._modes.statistics
        if statistics is not None and statistics.incomplete and self.exit == Exit.DONE:
            self.failures.exit = Exit.STATEMENT
        for job in await self._connections.finish():
            self.diagnostics.note(
                f"[{job.number}] is still running; fetch its result with: sqlshell fetch {job.statement_id}"
            )
        if self.exit == Exit.DONE:
            try:
                self.view.attachments.check_all_used()
            except UsageError as error:
                self.failures.report(error)

    def warn_of_transaction(self) -> None:
        """Warn that an open transaction is left."""
        self._connections.warn_of_transaction()

    async def finish_prompt(self, *, wait: bool) -> None:
        """The end of the prompt. Statements that would end with this shell are waited for, until Ctrl-C."""
        jobs = self._connections.ending_jobs
        if jobs and wait:
            many = pluralize(len(jobs), "background statement")
            self.diagnostics.say(f"waiting for {many} of the embedded service; Ctrl-C cancels")
            with contextlib.suppress(Interrupted):
                await self.interruption.interruptible(self._connections.wait_for_ending_jobs(), "q")
        for job in self._connections.ending_jobs:
            self.diagnostics.warn(f"[{job.number}] was canceled, because the embedded service ends with this shell")
        self.warn_of_transaction()

    async def aclose(self) -> None:
        """Leave: background statements keep running at the service."""
        self._submitter.record(EMPTY)
        self._close_parallel(at_end=False)
        await self._connections.aclose()
        if self._resumer is not None:
            self._resumer.close()
        if self._modes.statistics is not None:
            # Background statements that were left running are written now.
            await asyncio.sleep(0)
            self._modes.statistics.close()

    @property
    def _at_prompt(self) -> bool:
        """Whether the running text was typed by the user."""
        return self.session.interactive and not self._position.in_file

    def _close_parallel(self, *, at_end: bool) -> None:
        """Discard a \\parallel without \\end in the running script; at the end of the script that is an error."""
        left = self._submitter.discard_block(len(self._position.scripts))
        if left < 0:
            return
        many = not_run((left, "statement"), before=": its ")
        if at_end:
            self.failures.report(UsageError(f"the script ends inside \\parallel{many}", "add \\end"))
        elif left:
            self.diagnostics.warn(f"\\parallel{many}")

    def _close_conditions(self, depth: int) -> None:
        try:
            self._conditions.close(depth)
        except UsageError as error:
            self.failures.report(error)

    async def _run_chunks(
        self, chunks: Iterable[Own], name: str, *, send: bool, words: tuple[Own, ...] | None
    ) -> bool | None:
        """None at the end of the script; before it, whether the shell continues."""
        arriving = iter(chunks)
        at_end = False
        while not at_end:
            # Reading may block: first process what is due on the event loop, such as an interruption.
            await asyncio.sleep(0)
            try:
                if self.session.state.background.running_count:
                    chunk = await next_chunk(arriving)
                else:
                    chunk = next(arriving, None)
            except ShellError as error:
                self.failures.report(error)
                return True
            at_end = chunk is None
            scanner = self.buffer.scanner
            if chunk is not None and self._progress.script is not None and len(self._position.scripts) == 1:
                self._progress.script.arrived(chunk)
            if chunk is not None:
                scanner.feed(chunk)
            elif (send or self.buffer.ends_by_variable()) and not (
                self._at_prompt and scanner.unfinished.has_failed_command
            ):
                if (cut_off := self._unterminated()) is not None:
                    self.failures.report(cut_off)
                    return True
                scanner.close()
            while items := self.buffer.scanner.read():
                for number, item in enumerate(items):
                    item = item if words is None else _with_words(item, words)
                    self._position.at(item.line)
                    try:
                        await self._submitter.start_batch(items, number, stop=self.failures.stopping)
                        await self._run_item_safely(item)
                    except ShellError as error:
                        self.failures.report(error)
                        if isinstance(error, Unread):
                            return False
                        ends = self.failures.ends_script(error)
                        self._abandon_unfinished(item, warns=not ends)
                        if ends:
                            ran = await self._submitter.end_batch()
                            if isinstance(error, Unreadable):
                                # The rest may be data.
                                self.buffer.clear()
                            else:
                                with self._keeping_unfinished(item, error):
                                    self._report_skipped(items[number + 1 + ran :], arriving, name)
                            return self.session.interactive or not isinstance(error, Interrupted | CannotResume)
                    if self._leaving:
                        return True
        return None

    def _check_in_block(self, command: Command, item: BackslashCommand) -> None:
        """Raises UsageError for a command that would act before the statements of \\parallel run."""
        from sqlshell.shell.running.parallel import SENDERS

        if command.changes != "text" and command.name not in SENDERS:
            raise UsageError(
                f"\\{item.name} cannot be used in \\parallel", f"write \\{item.name} before \\parallel or after \\end"
            )

    def _unterminated(self) -> StatementError | None:
        """The error of a statement that the end of the script would cut off, or of statements in a comment that it
        cuts off. If statements run, the service reports the former.
        """
        scanner = self.buffer.scanner
        started = scanner.unfinished.started
        in_comment = scanner.state is State.BLOCK_COMMENT and not started
        if not self._conditions.active or not (in_comment or self._rehearsal is not None):
            return None
        from sqlshell.shell.running.rehearsal import unterminated

        error = unterminated(scanner.state)
        if error is not None:
            self._position.at(scanner.comment_line if in_comment else scanner.unfinished.line or self._position.line)
            if in_comment:
                error.hint, error.in_command = "the text after /* was not run; end the comment with */", True
            self.buffer.clear()
        return error

    def _abandon_unfinished(self, item: Item, *, warns: bool) -> None:
        """A command failed: the statement that it would have sent goes back to the user, or is discarded.

        A statement that the command would have left unchanged is not sent at the end of the script. `warns` says
        whether the user is warned of a statement that is discarded.
        """
        unfinished = self.buffer.scanner.unfinished
        if not isinstance(item, BackslashCommand) or not unfinished.started:
            return
        command = self._commands().get(item.name)
        if self._at_prompt or command is None or not command.sends_with(item.args):
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
        keeps = self._at_prompt and isinstance(item, BackslashCommand) and isinstance(error, NOT_CONNECTED)
        if not keeps or not kept.started:
            yield
            return
        # The end of the command's line.
        kept.parts.append("\n")
        scanner.take()
        yield
        self.buffer.scanner.return_to(kept)

    def _report_skipped(self, items: Sequence[Item], arriving: Iterable[str], name: str) -> None:
        waits = name == "stdin"
        if left := skipped_message(self.buffer.scanner, items, () if waits else arriving, surely=not waits):
            self.diagnostics.warn(left)
        self.buffer.clear()

    async def _run_item_safely(self, item: Item) -> None:
        """Process an item. Raises only ShellError: an unexpected exception is reported as a bug and does not end the
        shell.
        """
        try:
            await self._run_item(item)
        except ShellError:
            self._check_reader()
            raise
        except Exception as error:
            from sqlshell.runtime.bugs import bug_of

            raise bug_of(error, f"\\{item.name}" if isinstance(item, BackslashCommand) else "") from error
        self._check_reader()

    def _check_reader(self) -> None:
        """Raises Unread if the reader of a script's output has exited."""
        if self.view.result_output.reader_left and not self.session.interactive:
            raise Unread("")

    async def _run_item(self, item: Item) -> None:
        if isinstance(item, CopyLines):
            if self._rehearsal is not None:
                if self._conditions.active:
                    self._rehearsal.data(item)
                return
            await self._copy.take(item)
            return
        self.interruption.check()
        await self._learn_connection(item)
        if isinstance(item, Statement):
            if self._progress.script is not None and len(self._position.scripts) == 1:
                self._progress.script.at(item)
            copies = item.text[:4].lower() == "copy" and self._rehearsal is None
            if copies and self._submitter.block is not None:
                self._copy.refuse(item)
            elif copies and await self._copy.run_statement(
                item, commands_allowed=self._commands_allowed and not self._restricted_by
            ):
                return
            if self._conditions.active and item.has_failed_command and not item.terminated:
                self.diagnostics.warn("the unfinished statement was not run because a command in it failed")
            elif self._conditions.active:
                for each in await self._dumps.translated(item):
                    await self._submitter.submit(SubmitRequest(each, background=each.background))
            elif self._at_prompt:
                self.diagnostics.say("statement ignored; use \\endif or Ctrl-C to leave the \\if block")
            return
        self._progress.clear()
        if self._restricted_by and item.name != "unrestrict":
            raise UsageError(
                f"\\{item.name}: backslash commands are disabled by \\restrict", "\\unrestrict KEY enables them again"
            )
        if self._rehearsal is None and await self._copy.run_command(item, commands_allowed=self._commands_allowed):
            return
        if not self._commands_allowed:
            typed = item.name if item.name[:1] in {".", "!"} and item.name != "!" else f"\\{item.name}"
            raise UsageError(f"{typed}: backslash commands are disabled (--no-commands)")
        if not self._conditions.active and item.name not in CONDITION_COMMANDS:
            return
        from sqlshell.shell.commands.command import find

        await self._run_command(find(self._commands(), item.name), item)

    async def _learn_connection(self, item: Statement | BackslashCommand) -> None:
        """Ask for psql's variables about the connection, if the item refers to one."""
        variables, runs = self.view.variables, self._conditions.active
        if isinstance(item, Statement):
            refers = variables.lacks_connection(item.text)
        else:
            lists = self.session.state.server is None and item.name == "set" and not item.args.strip()
            refers = lists or variables.lacks_connection(f"{self.buffer.scanner.pending} {item.args}")
            runs = runs or item.name in CONDITION_COMMANDS
        if not (refers and runs) or self.rehearses or self.session.connection.offline is not None:
            return
        from sqlshell.shell.metadata.engine_objects import learn_connection

        await self.interruption.interruptible(learn_connection(self.view), "conninfo")

    async def _run_command(self, command: Command, item: BackslashCommand) -> None:
        if command.name in CONDITION_COMMANDS:
            self._conditions.before_command(command.name, self.buffer.scanner)
        for statement in self.buffer.substitute_pending():
            await self._submitter.submit(SubmitRequest(statement, verbatim=True))
        if self._rehearsal is not None and not self._rehearsal.runs(command, item):
            if (shown := self._rehearsal.command(command, item)) is not None:
                await self._submitter.submit(SubmitRequest(shown))
            return
        if self._submitter.block is not None:
            self._check_in_block(command, item)
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
        args = Own(item.args if self._conditions.evaluates(command.name) else "false")
        if self._rehearsal is not None:
            args = self._rehearsal.argument(command, args)
        depth = self._conditions.depth
        try:
            effect = await self.interruption.interruptible(
                command.run(self.view, args, item.name, item.words), item.name
            )
            if isinstance(effect, Branch):
                await self._actions().perform(effect, item.name)
                effect = None
        except ShellError as error:
            error.in_command = True
            # Before the text that follows is skipped: \endif restores the statement as it is now.
            self.buffer.scanner.unfinished.has_failed_command = self.buffer.scanner.unfinished.started
            if self._conditions.depth == depth:
                self._conditions.reject_condition(command.name)
            raise
        finally:
            self._conditions.after_command(self.buffer.scanner)
            self.session.skipping = not self._conditions.active
        if effect is not None:
            await self._actions().perform(effect, item.name)


def _with_words(item: Item, words: tuple[Own, ...]) -> Item:
    """A command with arguments that are not parsed; any other item as it is."""
    if not isinstance(item, BackslashCommand):
        return item
    from sqlshell.shell.commands.command import quoted_word

    return replace(item, args=" ".join(map(quoted_word, words)), words=words)


def _rehearsal(components: ShellComponents) -> Rehearsal | None:
    """The rehearsal of --dry-run or --describe; None without these options."""
    if not components.modes.rehearsal:
        return None
    from sqlshell.shell.running.rehearsal import PrintedScript, Rehearsal, ResultDescriptions

    return Rehearsal(
        components,
        PrintedScript(components) if components.modes.rehearsal == "dry-run" else ResultDescriptions(components),
    )


def _resumer(components: ShellComponents, interruption: Interruption) -> Resumer | None:
    """The resumer of --checkpoint; None without that option."""
    if components.modes.checkpoint is None:
        return None
    from sqlshell.shell.running.resuming import Resumer

    return Resumer(components, interruption, components.modes.checkpoint)
