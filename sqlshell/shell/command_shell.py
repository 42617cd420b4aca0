"""The shell as backslash commands use it: its parts, and verbs that run, show and change things."""

from __future__ import annotations

import abc
import contextlib
import functools
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from sqlshell.client.service import Service
from sqlshell.context import SessionContext
from sqlshell.errors import Interrupted, ShellError, UsageError
from sqlshell.origin import EMPTY, Text, Trusted
from sqlshell.output.copy import ResultHandler
from sqlshell.output.writer import Summary
from sqlshell.result import Result
from sqlshell.runtime.files import descriptor
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.options import Options
from sqlshell.shell.records.journal import Journal
from sqlshell.shell.running.background import Background
from sqlshell.shell.running.connection_manager import ConnectionManager
from sqlshell.shell.running.submitting import Submitter, Use, discard
from sqlshell.sql.analysis.copy_statements import CopyStatement
from sqlshell.sql.analysis.transaction import Transaction
from sqlshell.sql.script.items import Statement
from sqlshell.text import format_count, not_run

if TYPE_CHECKING:
    from sqlshell.shell.commands.command import Command
    from sqlshell.shell.loading.copying import Copying
    from sqlshell.shell.local import LocalStatements


class CommandShell(ShellComponents, abc.ABC):
    """The shell as a command sees it.

    A command runs until Ctrl-C, but the verbs that run statements and scripts handle Ctrl-C as these do. Each verb that
    may fail raises ShellError. Shell, which derives from it, runs the scripts.
    """

    @property
    @abc.abstractmethod
    def submitter(self) -> Submitter:
        """Carries out the statements of this run."""

    @functools.cached_property
    def connections(self) -> ConnectionManager:
        """The current connection, and earlier ones."""
        return ConnectionManager(self.session, self.front_end, self.diagnostics, self.failures)

    @property
    @abc.abstractmethod
    def commands(self) -> Mapping[str, Command]:
        """The backslash commands by name."""

    _restricted_by = ""
    _runs_own = False
    """Whether a script of the user's own runs."""

    @property
    def service(self) -> Service:
        return self.session.connection.service

    @property
    def journal(self) -> Journal:
        return self.session.connection.journal

    @property
    def background(self) -> Background:
        return self.session.state.background

    @functools.cached_property
    def copying(self) -> Copying:
        """Loads files and writes rows for COPY and \\copy; imported when it is first used."""
        from sqlshell.shell.loading.copying import Copying

        return Copying(self, self.submitter)

    @functools.cached_property
    def _local(self) -> LocalStatements:
        from sqlshell.shell.local import LocalStatements

        return LocalStatements(self)

    @contextlib.contextmanager
    def _acting(self) -> Iterator[None]:
        """Inside the block, Ctrl-C is for what runs there, and an error is that of what runs, not of the command."""
        with self.statement_runner.released():
            try:
                yield
            except ShellError as error:
                error.in_command = bool(error.in_command)
                raise

    # What is shown.

    def say(self, text: str, *, own: bool = False, verbatim: bool = False) -> None:
        """Print a message on stderr; `own` text contains nothing from a service and may contain colors. A `verbatim`
        one is not wrapped."""
        self.diagnostics.say(text, own=own, verbatim=verbatim)

    def print(self, text: str, *, with_results: bool = False, own: bool = False, folds: bool = False) -> None:
        """Write a text to stdout, or to the output of results; `own` text contains no control sequences from elsewhere.

        `folds` wraps the text between words at a terminal.
        """
        self.result_output.print(text, with_results=with_results, own=own, folds=folds)

    async def page(self, text: str) -> None:
        """Print a longer text of the shell: at the prompt through the pager, if it is taller than the screen."""
        with self._acting():
            await self.result_output.page(text)

    async def show(self, result: Result) -> None:
        """Show a result that the shell itself produced."""
        with self._acting():
            await self.result_output.show(result)

    # Statements and results.

    async def submit(
        self,
        name: str,
        handler: ResultHandler | None = None,
        *,
        expanded: bool = False,
        output: Trusted = EMPTY,
        background: bool = False,
        needs_rows: bool = False,
        describes: bool = False,
    ) -> None:
        """Run the query buffer, or the last statement, for the command `name`; `output` is a file or `|cmd`.

        `expanded` shows records; `handler` receives the result instead of the screen: that of \\local which was shown
        last once more. With `needs_rows`, a statement without a result set is an error. `describes` says that only the
        columns of the result are wanted: a statement that would have to run is refused if it may write.
        """
        with self._acting():
            if describes:
                # At the prompt a refused statement is kept, so that it can be corrected.
                await self.submitter.check_describable(self.buffer.substituted_text, name)
            statement = self.buffer.send(name)
            recording = _RecordingHandler(handler) if handler is not None else None
            if statement is None and self.buffer.last_was_local:
                show = recording or functools.partial(self.result_output.show, expanded=expanded, output=output)
                # The result itself: its source has a different name by now.
                async with self.session.state.result_history.open() as result:
                    await self.statement_runner.interruptible(_awaited(show, result), name)
            else:
                use = Use(recording, expanded, output, background, 0 if describes else None)
                await self.submitter.submit(statement or self.buffer.last, use, verbatim=statement is None)
            if needs_rows and recording is not None:
                self._require_result(recording, name)

    async def use_result(self, name: str, handler: ResultHandler) -> None:
        """Pass the result of the query buffer to `handler`, or the last result if the buffer is empty."""
        with self._acting():
            statement = self.buffer.scanner.take()
            if statement is not None:
                recording = _RecordingHandler(handler)
                await self.submitter.submit(statement, Use(recording))
                self._require_result(recording, name)
                return
            history = self.session.state.result_history
            shortfall = history.shortfall("_")
            if shortfall:
                self.diagnostics.note(shortfall, always=True)
            async with history.open("_") as result:
                await self.statement_runner.interruptible(_awaited(handler, result), name)

    async def execute(self, name: str, statements: Sequence[Statement], *, verbatim: bool = False) -> None:
        """Run statements; in `verbatim` ones no variables are substituted."""
        with self._acting():
            for number, statement in enumerate(statements, 1):
                try:
                    await self.submitter.submit(statement, verbatim=verbatim)
                except ShellError as error:
                    left = len(statements) - number
                    if not self.failures.ends_script(error):
                        self.failures.report(error)
                        continue
                    if left:
                        self.diagnostics.warn(f"\\{name}: {not_run((left, 'statement'))}")
                    raise

    async def execute_silently(self, texts: Sequence[str]) -> None:
        """Run statements of the shell's own: nothing is shown of them, and a failure ends them."""
        with self._acting():
            last, journal = self.buffer.last, self.journal
            journal.paused = True
            try:
                for text in texts:
                    use = Use(discard, internal=True)
                    await self.submitter.submit(Statement(text, 0, 0, True), use, verbatim=True)
            finally:
                journal.paused = False
                self.buffer.remember(last)

    async def export(self, name: str, path: Trusted) -> None:
        """Write the result of the query buffer to a file."""
        rows: int | None = None

        async def write(result: Result) -> Summary:
            nonlocal rows
            if result.endless is not None:
                raise UsageError("an unbounded result cannot be exported", "use -o FILE with --max-rows or --duration")
            summary = await self.result_output.show(result, output=path)
            rows = summary.rows
            return summary

        with self._acting():
            if path.startswith("|") or descriptor(path) is not None:
                raise UsageError(f"\\export writes to a file, not to {path}", "use \\g for other outputs")
            self.result_output.check(path)
            statement = self._statement_of_service(name) or self.buffer.last
            await self.submitter.submit_query(statement, write, "export")
            if rows is not None:
                self.diagnostics.report(f"{format_count(rows, 'row')} written to {path}", file=str(path))
            elif self.session.connection.offline is None:
                raise UsageError("\\export: the statement ran, but did not return a result set")

    async def repeat(self, name: str, seconds: float, times: int = 0, min_rows: int = 0) -> None:
        """Run the query buffer repeatedly, `seconds` apart, `times` times or without limit (0).

        Stops too if a result has fewer rows than `min_rows`. Each result replaces the previous one.
        """
        from sqlshell.shell.running.repeating import Repeat, run_repeatedly

        with self._acting():
            statement = self._statement_of_service(name)
            await run_repeatedly(self, self.submitter, statement, Repeat(seconds, times, min_rows))

    async def fetch(self, statement_id: str) -> None:
        """Show the result of an earlier statement."""
        state = self.session.state
        show = state.result_history.recording(self.result_output.show, state)
        with self._acting():
            await self.statement_runner.fetch(statement_id, state.context, show)

    async def local(self, sql: Trusted) -> None:
        """Run a statement on the last results; without text, the query buffer."""
        with self._acting():
            await self._local.run(sql)

    async def copy(self, copy: CopyStatement) -> None:
        """Load a file into a table, or write rows to a file."""
        with self._acting():
            await self.copying.copy(copy)

    async def replay(self, path: Trusted) -> None:
        """Run a transcript again."""
        from sqlshell.shell.records.replay import replay

        with self._acting():
            await replay(self, self.submitter, path)

    # Scripts and text.

    def quit(self, name: str) -> None:
        """Exit the shell."""
        unfinished = self.buffer.scanner.take()
        if unfinished is not None and not self.at_prompt:
            self.diagnostics.warn(f"the unfinished statement before \\{name} was discarded")
        self.leave()

    @abc.abstractmethod
    def leave(self) -> None:
        """End the running script; for typed text, exit the shell."""

    @abc.abstractmethod
    async def include(self, path: Trusted, *, relative: bool = False) -> None:
        """Run a script; with `relative`, its name is relative to the script that includes it."""

    @abc.abstractmethod
    async def run_script(self, chunks: Iterable[Trusted], name: str, *, stop: bool | None = None) -> bool:
        """Run a script that arrives in chunks of text; False if the shell should exit."""

    async def run_steps(self, steps: Sequence[tuple[str, Trusted]]) -> None:
        """Run scripts of the shell, such as the tutorial, each after a text; failures do not stop the others.

        At the prompt the user is asked before each, and may skip it or stop.
        """
        with self._acting(), self.failures.separate_exit_code():
            for text, script in steps:
                self.say(text)
                answer = await self._ask_about_step() if script else ""
                if answer.startswith("q"):
                    break
                if not script or answer.startswith("s"):
                    continue
                if not await self.run_script([script], "", stop=False):
                    break

    def edit(self, path: Trusted) -> None:
        """Open a file, the query buffer, or the last statement in the user's editor.

        The saved text replaces the query buffer.
        """
        with self._acting():
            if not path:
                self.buffer.check_origin()
            written = self.buffer.scanner.pending
            last = f"{self.buffer.last.text};" if self.buffer.last.text else ""
            text = self.front_end.edit(written or last, path)
            # Looking at the last statement does not run it again.
            self.buffer.replace_with(text if path or written or text != last else EMPTY)

    def restrict(self, key: str) -> None:
        """Disable backslash commands until unrestrict() is called with the same key."""
        self._restricted_by = key

    def unrestrict(self, key: str) -> None:
        """Raises UsageError for another key."""
        if not self._restricted_by:
            raise UsageError("\\unrestrict: backslash commands are not disabled", "\\restrict KEY disables them")
        if key != self._restricted_by:
            raise UsageError("\\unrestrict: this is not the key of \\restrict")
        self._restricted_by = ""

    @property
    def restricted(self) -> bool:
        """Whether backslash commands are disabled by restrict()."""
        return bool(self._restricted_by)

    @property
    def commands_allowed(self) -> bool:
        """Whether the run has backslash commands: always in a script of the user's own."""
        return self._runs_own or self.modes.commands_allowed

    # The session.

    async def connect(self, target: Trusted, place: Sequence[Trusted]) -> None:
        """Connect to another target: a profile, a URL or a file; with a `place`, a database as a user, on a host and
        port, of which - remains as it is. If that fails, nothing has changed.
        """
        with self._acting():
            try:
                connecting = self.environment.connect(target, self.session.connection, place)
                connection = await self.statement_runner.interruptible(connecting, "c")
            except ShellError as error:
                error.message = f"{error.message}; still connected to {self.session.target}"
                error.misplaces_rest = True
                raise
            await self.connections.use(connection)
            self.say(f"connected to {self.session.target}")

    def set_options(self, values: Mapping[str, object]) -> None:
        """Set options of the session. With the default format, the extension of a file counts again."""
        options = self.session.options
        options.choose(values)
        if values.get("format") == Options().format:
            options.chosen.discard("format")

    def set_context(self, context: SessionContext, sources: Mapping[str, str]) -> None:
        """Run statements in this context from now on; `sources` gives the source of each changed part."""
        state = self.session.state
        if context.session_id != state.context.session_id:
            state.transaction = Transaction()
            context = context.in_session(context.session_id)
        state.context = context
        state.sources |= sources

    def set_variable(self, name: Trusted, value: Text, question: str = "") -> None:
        """Set a variable. `question` is the text of the prompt for its value, which may show that it is a secret."""
        if question:
            self.session.secret_filter.add(value.text, question)
        with self._acting():
            self.variables.set(name, value)
        if warning := self.variables.warning(name):
            self.diagnostics.warn_here(warning)

    def receive(self, values: Mapping[str, str | None]) -> None:
        """Set variables whose names and values came from a service; None removes one."""
        self.variables.receive(values)
        self.submitter.received(values)

    async def _ask_about_step(self) -> str:
        """The user's choice for the next step in lower case; "" runs it, as where nobody can be asked."""
        ask = self.front_end.ask
        if ask is None:
            return ""
        try:
            return (await ask("[Enter] run, [s] skip, [q] quit: ", keys="sqSQ")).strip().lower()
        except Interrupted:
            return "q"

    def _statement_of_service(self, name: str) -> Statement | None:
        """The query buffer, which is sent; None for the last statement. Raises UsageError if that was of \\local."""
        statement = self.buffer.send(name)
        if statement is None and self.buffer.last_was_local:
            raise UsageError(f"\\{name} requires a statement of the service; the last one was \\local")
        return statement

    def _require_result(self, handler: _RecordingHandler, name: str) -> None:
        # With --offline no statement runs.
        if not handler.called and not self.submitter.skipped and self.session.connection.offline is None:
            raise UsageError(f"\\{name}: the statement ran, but did not return a result set")


class _RecordingHandler:
    """Passes results to a handler, and records whether there was one."""

    def __init__(self, handler: ResultHandler) -> None:
        self._handler = handler
        self.called = False

    async def __call__(self, result: Result) -> Summary:
        self.called = True
        return await self._handler(result)


async def _awaited(handler: Callable[[Result], Awaitable[Summary]], result: Result) -> Summary:
    return await handler(result)
