"""Prepares and submits statements: substitutes variables, checks the policy, attaches files, records the outcome."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from sqlshell.client.http.upload import Attachment
from sqlshell.client.statements.client import StatementBatch
from sqlshell.errors import ShellError, StatementError, Unreadable, UsageError, Where
from sqlshell.interface import sqlstate
from sqlshell.origin import EMPTY, Own, Text, joined
from sqlshell.output.copy import Consumer
from sqlshell.output.writer import Summary
from sqlshell.result import Result
from sqlshell.runtime.bugs import bug_of
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.running.attachments import reads_stdin
from sqlshell.shell.running.background import Job
from sqlshell.shell.running.foreground import Foreground
from sqlshell.shell.running.submission import LexedSubmission, submission_of
from sqlshell.shell.session import Running
from sqlshell.sql.analysis.copy_statements import CopyStatement, returns_rows
from sqlshell.sql.analysis.files import refuse_files
from sqlshell.sql.analysis.kinds import is_repeatable, replaced_parts
from sqlshell.sql.analysis.lexed import Lexed, Sql, lexed
from sqlshell.sql.script.items import Item
from sqlshell.sql.script.scanner import Statement, copies_from_stdin
from sqlshell.sql.script.splitting import statements

if TYPE_CHECKING:
    from sqlshell.shell.records.checkpoint import Step
    from sqlshell.shell.records.transcript import Transcript
    from sqlshell.shell.running.dry_run import DryRun
    from sqlshell.shell.running.resuming import Resumer
    from sqlshell.shell.running.send_ahead import SendAhead


class SubmitRequest(Struct, frozen=True):
    """A statement, and the consumer of its result, which replaces the normal display.

    In a `verbatim` text no variables are substituted. `described_for` is the command that sends it for its columns
    alone, and `rows_for` the one that runs it only if it returns rows.
    `from_transcript` says that it comes from a transcript that the user chose, whose files may be opened on an embedded
    service.
    """

    statement: Statement
    consumer: Consumer | None = None
    expanded: bool = False
    output: Own = EMPTY
    background: bool = False
    verbatim: bool = False
    described_for: str = ""
    rows_for: str = ""
    from_transcript: bool = False
    internal: bool = False
    """Whether the shell itself made the statement, so that no record of the script's statements has it."""
    step: Step | None = None
    """The step of a run with --checkpoint."""


class Submitter:
    """Submits statements to the service, and passes on their results."""

    def __init__(
        self,
        components: ShellComponents,
        foreground: Foreground,
        dry_run: DryRun | None,
        resumer: Resumer | None,
    ) -> None:
        """With a `dry_run`, statements are passed to it instead of the service."""
        self._dry_run = dry_run
        self.resumer = resumer
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
        self._foreground = foreground
        self._modes = components.modes
        self._send_ahead: SendAhead | None = None
        self._transcript: Transcript | None = None

    async def submit(self, request: SubmitRequest) -> None:
        """Run a statement; variables may turn it into several. Raises ShellError."""
        statement = request.statement
        self._position.at(statement.line or self._position.line, statement.column)
        if self._dry_run is not None and not request.verbatim:
            self._dry_run.check_variables(statement)
        if not request.verbatim and (filled := self._substituted(statement)) is not None:
            # A value from a variable is never a command.
            parts = statements(filled)
            if filled.text != statement.text:
                self._position.at(self._position.line)
            if any(part.copies for part in parts) and not statement.copies:
                raise Unreadable(
                    "COPY … FROM STDIN comes from a variable: its data cannot be distinguished from statements",
                    "write FROM STDIN in the statement itself; the script was stopped",
                )
            parts[-1:] = [replace(part, ending=part.ending or statement.ending) for part in parts[-1:]]
            for number, part in enumerate(parts, 1):
                self._buffer.remember(part)
                await self._submit_one(
                    request if number == len(parts) else SubmitRequest(part, described_for=request.described_for)
                )
            return
        self._buffer.remember(statement)
        await self._submit_one(request)

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

    def record(self, path: Own) -> None:
        """Write a transcript to a file from now on; "" stops. Raises OutputError."""
        if self._transcript is not None:
            self._transcript.close()
            self._transcript = None
        if path:
            from sqlshell.shell.records.transcript import Transcript

            self._transcript = Transcript(path, self._session.redact)

    async def start_batch(self, items: Sequence[Item], number: int, *, stop: bool) -> None:
        """Send the statements from this one on together, if that is possible and makes no difference."""
        session, connection = self._session, self._session.connection
        if self._send_ahead is not None and self._send_ahead.done:
            self._send_ahead = None
            connection.journal.flush()
        sends_singly = session.interactive or connection.offline is not None or self._dry_run is not None
        if (
            self._send_ahead is not None
            or self.resumer is not None
            or sends_singly
            or not connection.client.supports_batches
        ):
            return
        if not self._conditions.active or self._attachments.waiting or not self._result_output.takes_several:
            return
        from sqlshell.shell.running.send_ahead import plan

        embedded, piped = connection.embedded, self._result_output.piped
        self._send_ahead = await plan(
            items,
            number,
            connection.client,
            connection.policy,
            self._variables,
            stop=stop,
            embedded=embedded,
            piped=piped,
        )

    async def end_batch(self) -> int:
        """End the batch: no more of it runs. Reports how many statements ran after the last one."""
        self._result_output.settle()
        send_ahead, self._send_ahead = self._send_ahead, None
        if send_ahead is None or send_ahead.done:
            return 0
        journal, patient = self._session.connection.journal, self._foreground.patient
        ran, warning = await send_ahead.aclose(self._session.context, journal, patient=patient)
        if warning and not self._result_output.reader_left:
            self._diagnostics.warn(warning)
        return ran

    async def _submit_one(self, request: SubmitRequest) -> None:
        session, connection = self._session, self._session.connection
        statement = self._buffer.last.lexed
        options = session.options
        if options.echo:
            self._diagnostics.say(statement.text, verbatim=True)
        if request.rows_for:
            require_rows(statement, f"\\{request.rows_for}")
        if self._dry_run is not None:
            statement, files = await self._checked(statement, request)
            self._dry_run.statement(statement, self._buffer.last.ending)
            self._attachments.mark_sent(files)
            return
        if copies_from_stdin(statement):
            raise StatementError(
                "COPY … FROM STDIN has no data here",
                "write it in a script with its data after it, or use \\copy t FROM 'file'",
                Where(sqlstate.UNSUPPORTED),
            )
        if reads_stdin(statement) and self._position.reads_stdin:
            raise Unreadable(
                "the statement reads stdin, but the script itself is on stdin: its data cannot be distinguished "
                "from statements",
                "put the data into a file and use its name; the script was stopped",
                Where(sqlstate.UNSUPPORTED),
            )
        if request.consumer is None and (copy := returns_rows(statement)) is not None:
            statement, request = await self._copied_out(statement, request, copy)
        if request.consumer is None and not request.background:
            self._result_output.check_next(statement, request.output)
        limit = None
        shown = not request.output and not self._result_output.exporting and request.consumer is None
        if connection.embedded and session.interactive and shown and not request.background:
            limit = options.rowlimit or None
        if request.described_for:
            await self.check_describable(statement, request.described_for)
            # The command asks for the columns alone.
            limit = 0
        if self.resumer is not None:
            if request.background:
                raise UsageError("background statements cannot be used with --checkpoint", "run it without & or \\bg")
            consumed, output = request.consumer is not None, bool(request.output)
            step = await self.resumer.statement(statement, self.run_again, consumed=consumed, output=output)
            self.skipped = step is None
            if step is None:
                return
            request = replace(request, step=step)
        if self._send_ahead is not None and not self._send_ahead.done:
            await self._run(self._send_ahead.next(request.statement), request, self._send_ahead.batch)
            return
        statement, files = await self._checked(statement, request)
        # Statements for the embedded service are never retried: it is always reachable.
        may_retry = not connection.embedded and is_repeatable(statement)
        submission = submission_of(statement, files, limit, repeatable=may_retry, ending=self._buffer.last.ending)
        if connection.offline is not None:
            connection.offline(submission, session.context)
        elif request.background:
            job = session.state.background.start(submission, session.context, self._recording_job(statement))
            session.state.last_job = job.number
            text = f"[{job.number}] is running in the background; \\jobs lists it"
            self._diagnostics.report(text, always=session.interactive)
        else:
            await self._run(submission, request)
        self._attachments.mark_sent(files)

    async def _checked(self, statement: Lexed, request: SubmitRequest) -> tuple[Lexed, Sequence[Attachment]]:
        """A statement that may be sent, and its attachments. Raises ShellError for one that may not."""
        connection = self._session.connection
        if connection.embedded and not request.from_transcript:
            refuse_files(statement)
        await connection.policy.check(statement, self._front_end.ask)
        return self._attachments.prepare(statement)

    def _recording_job(self, statement: Lexed) -> Callable[[Job], None] | None:
        """Writes the statistics of a background statement when it has ended; None without statistics."""
        statistics = self._modes.statistics
        if statistics is None:
            return None
        place = self._position.script, self._position.line
        redacted = self._session.redact(statement)

        def ended(job: Job) -> None:
            running = Running(job.began, job.statement_id, answered=job.answered, timing=job.timing)
            running.sql_state, running.ended = job.sql_state, time.monotonic()
            statistics.write(*place, redacted, running, job.rows, job.error)

        return ended

    async def _copied_out(
        self, statement: Lexed, request: SubmitRequest, copy: CopyStatement
    ) -> tuple[Lexed, SubmitRequest]:
        """A COPY … TO STDOUT without its options, which are carried out here; as it is if the engine carries them out.
        Raises UsageError.
        """
        connection, form = self._session.connection, None
        if request.background:
            return statement, request
        from sqlshell.output.copy_format import copied_data, copy_format

        if connection.offline is None and await connection.service.engine_copies_data():
            form = copied_data()
        elif copy.wrong is None and (copy.options or "format" not in self._session.options.chosen):
            statement, form = Lexed(statement.whole.part(0, copy.end)), copy_format(copy)
        if form is None:
            return statement, request
        self._result_output.check(request.output, form)
        return statement, replace(request, consumer=partial(self._result_output.show, output=request.output, form=form))

    async def run_again(self, statement: Lexed) -> None:
        """Run a statement that only changes the session, and show nothing of it. Raises ShellError."""
        await self.send(submission_of(statement))

    async def check_describable(self, sql: Sql, command: str) -> None:
        """Raise UsageError if a statement that may write would run for its columns."""
        from sqlshell.sql.analysis.effects import first_without_rows

        # The engine describes all statements, except those that the service carries out, which return no rows.
        if first_without_rows(lexed(sql)) or not await self._session.connection.service.describes():
            require_read_only(sql, command)

    async def send(self, submission: LexedSubmission) -> None:
        """Run a statement that the shell itself made, and show nothing of it. Raises ShellError."""
        statement = Statement(submission.sql, 0, 0, True)
        await self._run(submission, SubmitRequest(statement, discard, internal=True))

    async def _run(
        self, submission: LexedSubmission, request: SubmitRequest, batch: StatementBatch | None = None
    ) -> None:
        """Wait for the statement, and store what following statements may refer to; `batch` has it if it was sent with
        others.
        """
        session, state, result_output = self._session, self._session.state, self._result_output
        failure: ShellError | None = None
        # After USE, the context may contain a name that does not exist.
        context = replace(state.context, **dict.fromkeys(replaced_parts(submission.statement), ""))
        session.rows = None
        before = state.transaction.state
        show = request.consumer or partial(result_output.show, expanded=request.expanded, output=request.output)
        show = state.result_history.recording(show, state)
        if self._transcript is not None:
            show = self._transcript.recording(show)
        if result_output.logging:
            result_output.note(f"{session.redact(submission.statement)};\n")
        step, session.on_identified = request.step, None
        if step is not None and self.resumer is not None:
            self.resumer.sent(step, submission.statement)
            session.on_identified = partial(self.resumer.identified, step)
        completed = False
        try:
            await self._foreground.run(submission, context, show, quiet=request.consumer is not None, batch=batch)
            completed = True
        except Exception as error:
            failure = error if isinstance(error, ShellError) else bug_of(error)
            has_no_secret = session.redact(submission.statement) == submission.sql
            result_output.note(f"-- error[{failure.where.sql_state}]: {failure.message if has_no_secret else ''}\n")
            raise
        finally:
            session.on_identified = None
            self._variables.record_outcome(failure)
            if state.transaction.state and not before:
                state.transaction.begun_at = str(self._position)
            if self._transcript is not None:
                self._transcript.write(submission.statement, context, session, failure)
            if self._modes.statistics is not None and not request.internal and session.ended is not None:
                place = self._position.script, self._position.line
                redacted = session.redact(submission.statement)
                self._modes.statistics.write(*place, redacted, session.ended, session.rows, failure)
            if step is not None and self.resumer is not None and (completed or failure is not None):
                undone = failure is None and session.ended is not None and session.ended.rolls_back
                self.resumer.ended(step, submission.statement, failure, undone=undone)
        if self._front_end.browse is not None and result_output.take_browse_request():
            async with state.result_history.open() as result:
                await self._front_end.browse(result)


async def discard(result: Result) -> Summary:
    """Consume a result without showing it."""
    await result.batches.aclose()
    return Summary(0, True)


def require_read_only(sql: Sql, command: str) -> None:
    """Raise UsageError if a command would run a statement that may write."""
    from sqlshell.sql.analysis.effects import effects

    writing = next((effect for effect in effects(sql) if effect.writes), None)
    if writing is not None:
        raise UsageError(f"\\{command} has to run the statement, but {writing.name} may write", "use \\g to run it")


def require_rows(sql: Sql, command: str) -> None:
    """Raise UsageError if a statement is of a kind that returns no rows for a command that writes them."""
    from sqlshell.sql.analysis.effects import first_without_rows

    name = first_without_rows(lexed(sql))
    if name:
        raise UsageError(f"{command}: {name} is not a query", "use a query, or INSERT, UPDATE or DELETE with RETURNING")
