"""Prepares and submits statements: substitutes variables, checks the policy, attaches files, records the outcome."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from sqlshell.client.http.upload import Attachment
from sqlshell.client.statements.client import StatementBatch
from sqlshell.errors import AmbiguousScript, ShellError, StatementError, UsageError, Where
from sqlshell.interface import sqlstate
from sqlshell.origin import EMPTY, Text, Trusted, joined
from sqlshell.output.copy import ResultHandler
from sqlshell.output.writer import Summary
from sqlshell.result import Result
from sqlshell.runtime.bugs import bug_of
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.running.attachments import reads_stdin
from sqlshell.shell.running.statement import LexedSubmission, Running, submission_of
from sqlshell.sql.analysis.copy_statements import CopyStatement, returns_rows
from sqlshell.sql.analysis.files import refuse_files
from sqlshell.sql.analysis.kinds import is_repeatable, replaced_parts
from sqlshell.sql.analysis.lexed import Lexed, Sql, lexed
from sqlshell.sql.script.items import BackslashCommand, Item
from sqlshell.sql.script.scanner import Statement, copies_from_stdin
from sqlshell.sql.script.splitting import statements

if TYPE_CHECKING:
    from sqlshell.shell.commands.command import Command
    from sqlshell.shell.records.run_records import Transcript


CarryOut = Callable[[Trusted], Awaitable[None]]
"""Carries out a command with these arguments."""


class Use(Struct, frozen=True):
    """What becomes of the result of a statement: `handler` receives it, otherwise it is displayed, or written to the
    file or command `output`.
    """

    handler: ResultHandler | None = None
    expanded: bool = False
    output: Trusted = EMPTY
    background: bool = False
    row_limit: int | None = None
    internal: bool = False
    """Whether the shell itself made the statement, so that no record of the script's statements has it."""
    opens_files: bool = False
    """Whether an embedded service may open the files that the statement names: the user chose the transcript that has
    it.
    """


DISPLAYED = Use()


class Submitter:
    """Carries out the statements and commands of a run. Those of scripts, of a dry run and with a checkpoint derive
    from it."""

    sends = True
    """Whether anything is sent to the service."""
    records = False
    """Whether what has been done is recorded, so that another run can skip it."""

    def __init__(self, components: ShellComponents) -> None:
        """Create it for the shell that has these components."""
        self.skipped = False
        """Whether --resume skipped the last statement."""
        self._session = components.session
        self._position = components.position
        self._conditions = components.conditions
        self._buffer = components.buffer
        self._variables = components.variables
        self._attachments = components.attachments
        self._result_output = components.result_output
        self._front_end = components.front_end
        self._diagnostics = components.diagnostics
        self._statement_runner = components.statement_runner
        self._statistics = components.modes.statistics
        self._transcript: Transcript | None = None

    async def submit(self, statement: Statement, use: Use = DISPLAYED, *, verbatim: bool = False) -> None:
        """Run a statement; variables, which a `verbatim` one does not have, may turn it into several.

        Raises ShellError.
        """
        self._position.at(statement.line or self._position.line, statement.column)
        parts = [statement] if verbatim else self._parts(statement)
        for number, part in enumerate(parts, 1):
            self._buffer.remember(part)
            if self._session.options.echo:
                self._diagnostics.say(part.text, verbatim=True)
            await self._carry_out(part, use if number == len(parts) else Use(row_limit=use.row_limit))

    async def submit_query(self, statement: Statement, handler: ResultHandler, command: str) -> None:
        """Run a statement whose rows a command writes, unless it is of a kind that returns none. Raises ShellError."""
        self._position.at(statement.line or self._position.line, statement.column)
        self._buffer.remember(statement)
        require_rows(statement.lexed, f"\\{command}")
        await self.submit(statement, Use(handler), verbatim=True)

    async def command(self, command: Command, item: BackslashCommand, args: Trusted, carry_out: CarryOut) -> None:
        """Carry out a command with these arguments. Raises ShellError."""
        await carry_out(args)

    async def once(self, name: str, text: str, work: Callable[[], Awaitable[None]]) -> None:
        """Do the work of a command, unless an earlier run has done it; `text` identifies it. Raises ShellError."""
        await work()

    def received(self, values: Mapping[str, str | None]) -> None:
        """Note that \\gset has set these variables from the result of the last statement. Raises OutputError."""

    def finish(self, *, complete: bool) -> None:
        """End all scripts, which are `complete` if none failed. Raises ShellError."""

    def close(self) -> None:
        """Stop recording."""
        self.record(EMPTY)

    def record(self, path: Trusted) -> None:
        """Write a transcript to a file from now on; "" stops. Raises OutputError."""
        if self._transcript is not None:
            self._transcript.close()
            self._transcript = None
        if path:
            from sqlshell.shell.records.run_records import Transcript

            self._transcript = Transcript(path)

    async def start_batch(self, items: Sequence[Item], number: int, *, stop: bool) -> None:
        """Note that statements from this one on have arrived; `stop` says that a failure ends them."""

    async def end_batch(self) -> int:
        """Note that no more of them run. Returns how many ran after the last one that was awaited."""
        return 0

    def _parts(self, statement: Statement) -> Sequence[Statement]:
        """The statements that the text is with the values of its variables. Raises AmbiguousScript."""
        filled = self._substituted(statement)
        if filled is None:
            return [statement]
        # A value from a variable is never a command.
        parts = statements(filled)
        if filled.text != statement.text:
            self._position.at(self._position.line)
        if any(part.copies for part in parts) and not statement.copies:
            raise AmbiguousScript(
                "COPY … FROM STDIN comes from a variable: its data cannot be distinguished from statements",
                "write FROM STDIN in the statement itself; the script was stopped",
            )
        return [*parts[:-1], *(replace(part, ending=part.ending or statement.ending) for part in parts[-1:])]

    def _substituted(self, statement: Statement) -> Text | None:
        """The statement with variables substituted; None if there are none."""
        if not statement.substituted and ":" not in statement.text:
            return None
        whole, substituted = statement.whole, statement.substituted
        filled = self._variables.substitute(
            whole.part(substituted, len(whole.text)) if substituted else statement.lexed
        )
        if not substituted and filled == whole and ";" not in statement.text:
            return None
        return joined([whole.part(0, substituted), filled])

    async def _carry_out(self, item: Statement, use: Use) -> None:
        """Run one statement. Raises ShellError."""
        statement = item.lexed
        self._refuse_data(statement)
        if use.handler is None and (copy := returns_rows(statement)) is not None:
            statement, use = await self._copied_out(statement, use, copy)
        if use.handler is None and not use.background:
            self._result_output.check_next(statement, use.output)
            seen = self._session.interactive and not use.output and not self._result_output.exporting
            if seen and self._session.embedded:
                use = replace(use, row_limit=self._session.options.rowlimit or None)
        await self._send(item, statement, use)

    async def _send(self, item: Statement, statement: Lexed, use: Use) -> None:
        """Send a statement; `item` is what the script says. Raises ShellError."""
        session, connection = self._session, self._session.connection
        statement, files = await self._checked(statement, use)
        # Statements for the embedded service are never retried: it is always reachable.
        may_retry = not connection.embedded and is_repeatable(statement)
        submission = submission_of(statement, files, use.row_limit, repeatable=may_retry, ending=item.ending)
        if connection.offline is not None:
            connection.offline(submission, session.context)
        elif use.background:
            self._start_job(submission)
        else:
            await self._run(submission, use)
        self._attachments.mark_sent(files)

    def _refuse_data(self, statement: Lexed) -> None:
        """Raise an error for a statement whose data would be what follows in the script."""
        if copies_from_stdin(statement):
            raise StatementError(
                "COPY … FROM STDIN has no data here",
                "write it in a script with its data after it, or use \\copy t FROM 'file'",
                Where(sqlstate.UNSUPPORTED),
            )
        if reads_stdin(statement) and self._position.reads_stdin:
            raise AmbiguousScript(
                "the statement reads stdin, but the script itself is on stdin: its data cannot be distinguished "
                "from statements",
                "put the data into a file and use its name; the script was stopped",
                Where(sqlstate.UNSUPPORTED),
            )

    async def _checked(self, statement: Lexed, use: Use) -> tuple[Lexed, Sequence[Attachment]]:
        """A statement that may be sent, and its attachments. Raises ShellError for one that may not."""
        connection = self._session.connection
        if connection.embedded and not use.opens_files:
            refuse_files(statement)
        await connection.policy.check(statement, self._front_end.ask)
        return self._attachments.prepare(statement)

    def _start_job(self, submission: LexedSubmission) -> None:
        session = self._session
        job = session.state.background.start(submission, session.context, self._position.place)
        session.state.last_job = job.number
        if self._statistics is not None and job.task is not None:
            job.task.add_done_callback(lambda _: self._write_statistics(job))
        text = f"[{job.number}] is running in the background; \\jobs lists it"
        self._diagnostics.report(text, always=session.interactive)

    def _write_statistics(self, ended: Running) -> None:
        if self._statistics is not None:
            self._statistics.write(ended, self._session.redact(ended.statement))

    async def _copied_out(self, statement: Lexed, use: Use, copy: CopyStatement) -> tuple[Lexed, Use]:
        """A COPY … TO STDOUT without its options, which are carried out here; as it is if the engine carries them out.
        Raises UsageError.
        """
        connection, form = self._session.connection, None
        if use.background:
            return statement, use
        from sqlshell.output.copy_format import copied_data, copy_format

        if connection.offline is None and await connection.service.engine_copies_data():
            form = copied_data()
        elif copy.wrong is None and (copy.options or "format" not in self._session.options.chosen):
            statement, form = Lexed(statement.whole.part(0, copy.end)), copy_format(copy)
        if form is None:
            return statement, use
        self._result_output.check(use.output, form)
        return statement, replace(use, handler=partial(self._result_output.show, output=use.output, form=form))

    async def check_describable(self, sql: Sql, command: str) -> None:
        """Raise UsageError if a statement that may write would run for its columns."""
        from sqlshell.sql.analysis.effects import effects, first_without_rows

        # The engine describes all statements, except those that the service carries out, which return no rows.
        if not first_without_rows(lexed(sql)) and await self._session.connection.service.describes():
            return
        if (writing := next((effect for effect in effects(sql) if effect.writes), None)) is not None:
            raise UsageError(f"\\{command} has to run the statement, but {writing.name} may write", "use \\g to run it")

    async def send(self, submission: LexedSubmission) -> None:
        """Run a statement that the shell itself made, and show nothing of it. Raises ShellError."""
        await self._run(submission, Use(discard, internal=True))

    async def _run(self, submission: LexedSubmission, use: Use, batch: StatementBatch | None = None) -> None:
        """Wait for the statement, and store what following statements may refer to; `batch` has it if it was sent with
        others.
        """
        session, state, result_output = self._session, self._session.state, self._result_output
        # After USE, the context may contain a name that does not exist.
        context = replace(state.context, **dict.fromkeys(replaced_parts(submission.statement), ""))
        session.rows = None
        before = state.transaction.state
        show = use.handler or partial(result_output.show, expanded=use.expanded, output=use.output)
        show = state.result_history.recording(show, state)
        if self._transcript is not None:
            show = self._transcript.recording(show)
        if result_output.logging:
            result_output.note(f"{session.redact(submission.statement)};\n")
        failure: ShellError | None = None
        try:
            await self._statement_runner.run(submission, context, show, quiet=use.handler is not None, batch=batch)
        except Exception as error:
            failure = error if isinstance(error, ShellError) else bug_of(error)
            has_no_secret = session.redact(submission.statement) == submission.sql
            result_output.note(f"-- error[{failure.where.sql_state}]: {failure.message if has_no_secret else ''}\n")
            raise
        finally:
            if state.transaction.state and not before:
                state.transaction.begun_at = str(self._position)
            self._record(failure, internal=use.internal)
        if self._front_end.browse is not None and result_output.take_browse_request():
            async with state.result_history.open() as result:
                await self._front_end.browse(result)

    def _record(self, failure: ShellError | None, *, internal: bool) -> None:
        """Record the outcome of a statement, for the following ones and in the files that the user wants of it."""
        session = self._session
        self._variables.record_outcome(failure)
        if (ended := session.ended) is None:
            return
        ended.place, ended.rows, ended.error = self._position.place, session.rows, failure
        if self._transcript is not None:
            self._transcript.write(ended, session.redact(ended.statement), session.elapsed or 0.0)
        if not internal:
            self._write_statistics(ended)


async def discard(result: Result) -> Summary:
    """Consume a result without showing it."""
    await result.batches.aclose()
    return Summary(0, True)


def require_rows(sql: Sql, command: str) -> None:
    """Raise UsageError if a statement is of a kind that returns no rows for a command that writes them."""
    from sqlshell.sql.analysis.effects import first_without_rows

    name = first_without_rows(lexed(sql))
    if name:
        raise UsageError(
            f"{command}: {name.partition(' WITHOUT ')[0]} returns no rows",
            "use a query, or INSERT, UPDATE or DELETE with RETURNING",
        )
