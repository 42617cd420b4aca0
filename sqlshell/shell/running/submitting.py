"""A statement on its way: variables filled in, the policy asked, files attached, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from sqlshell.client.statements.client import StatementBatch, Submission
from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import ShellError, StatementError, Unreadable, UsageError, Where
from sqlshell.interface import sqlstate
from sqlshell.origin import NOWHERE, Own, joined
from sqlshell.output.copy import Consumer
from sqlshell.runtime.bugs import bug_of
from sqlshell.shell.front_end import FrontEnd
from sqlshell.shell.results.outlet import Outlet
from sqlshell.shell.running.attachments import Attachments, reads_stdin
from sqlshell.shell.running.foreground import Foreground
from sqlshell.shell.scripts.buffer import Buffer
from sqlshell.shell.scripts.flow import Flow
from sqlshell.shell.scripts.position import Position
from sqlshell.shell.scripts.variables import Variables
from sqlshell.shell.session import Session
from sqlshell.sql.analysis.files import refuse_files
from sqlshell.sql.analysis.kinds import reads_only, replaced_parts
from sqlshell.sql.script.items import Item
from sqlshell.sql.script.scanner import Statement, copies_from_stdin
from sqlshell.sql.script.splitting import statements

if TYPE_CHECKING:
    from sqlshell.shell.records.transcript import Transcript
    from sqlshell.shell.running.read_ahead import Ahead


class Asked(Struct, frozen=True):
    """A statement, and what becomes of its result: `consumer` takes it in the place of whoever shows results.

    A `final` text has no variables that would be filled in. `reader` is the command that runs it only where it reads.
    One that was `recorded` stands in a transcript that the person chose, whose files are theirs on a service of their
    own.
    """

    statement: Statement
    consumer: Consumer | None = None
    expanded: bool = False
    output: Own = NOWHERE
    background: bool = False
    final: bool = False
    reader: str = ""
    recorded: bool = False


class Submitter:
    """StatementBatch statements on their way to the service and their results back."""

    def __init__(
        self,
        session: Session,
        position: Position,
        buffer: Buffer,
        variables: Variables,
        attachments: Attachments,
        foreground: Foreground,
        outlet: Outlet,
        front_end: FrontEnd,
        diagnostics: Diagnostics,
    ) -> None:
        self._session = session
        self._position = position
        self._buffer = buffer
        self._variables = variables
        self._attachments = attachments
        self._foreground = foreground
        self._outlet = outlet
        self._front_end = front_end
        self._diagnostics = diagnostics
        self._ahead: Ahead | None = None
        self._transcript: Transcript | None = None

    async def submit(self, asked: Asked) -> None:
        """Run it; what the values of its variables make of it may be several statements. Raises ShellError."""
        given = asked.statement
        self._position.line = given.line or self._position.line
        if not asked.final and (given.settled or ":" in given.text):
            whole, done = given.whole, given.settled
            rest = self._variables.fill(whole.part(done, len(whole.text)))
            # What came from elsewhere is never a command.
            parts = statements(joined([whole.part(0, done), rest]))
            if any(copies_from_stdin(part.text) for part in parts) and not copies_from_stdin(given.text):
                raise Unreadable(
                    "COPY … FROM STDIN comes from a variable: its data cannot be distinguished from statements",
                    "write FROM STDIN in the statement itself; the script was stopped",
                )
            parts[-1:] = [replace(part, ending=part.ending or given.ending) for part in parts[-1:]]
            for number, part in enumerate(parts, 1):
                self._buffer.last = part
                await self._submit_one(asked if number == len(parts) else Asked(part, reader=asked.reader))
            return
        self._buffer.last = given
        await self._submit_one(asked)

    def record(self, path: Own) -> None:
        """Write a transcript to a file from now on; "" ends it. Raises OutputError."""
        if self._transcript is not None:
            self._transcript.close()
            self._transcript = None
        if path:
            from sqlshell.shell.records.transcript import Transcript

            self._transcript = Transcript(path, self._session.redact)

    async def look_ahead(self, items: Sequence[Item], number: int, flow: Flow, *, stop: bool) -> None:
        """Have the statements from this one on sent together, where that is possible and makes no difference."""
        session, connection = self._session, self._session.connection
        if self._ahead is not None and self._ahead.done:
            self._ahead = None
            connection.journal.flush()
        lone = session.interactive or connection.offline is not None
        if self._ahead is not None or lone or not connection.client.supports_batches:
            return
        if not flow.active or self._attachments.waiting:
            return
        from sqlshell.shell.running.read_ahead import plan

        near, piped = connection.embedded, self._outlet.piped
        self._ahead = await plan(
            items, number, connection.client, connection.policy, self._variables, stop=stop, near=near, piped=piped
        )

    async def look_back(self) -> int:
        """Leave what was sent together: no more of it runs. How many ran behind the last one, which is reported."""
        self._diagnostics.settle()
        ahead, self._ahead = self._ahead, None
        if ahead is None or ahead.done:
            return 0
        journal, patient = self._session.connection.journal, self._foreground.patient
        ran, said = await ahead.aclose(self._session.context, journal, patient=patient)
        if said:
            self._diagnostics.warn(said)
        return ran

    async def _submit_one(self, asked: Asked) -> None:
        session, connection = self._session, self._session.connection
        options, sql = session.options, self._buffer.last.text
        if options.echo:
            self._diagnostics.say(sql)
        if copies_from_stdin(sql):
            raise StatementError(
                "COPY … FROM STDIN is not supported; its data lines were skipped, not run",
                "write the rows as INSERT statements, or have the service read a file: COPY … FROM 'file.csv'",
                Where(sqlstate.UNSUPPORTED),
            )
        if self._position.reads_stdin and reads_stdin(sql):
            raise Unreadable(
                "the statement reads stdin, but the script itself is on stdin: its data cannot be distinguished "
                "from statements",
                "put the data into a file and use its name; the script was stopped",
                Where(sqlstate.UNSUPPORTED),
            )
        limit = None
        shown = not asked.output and not self._outlet.exporting and asked.consumer is None
        if connection.embedded and session.interactive and shown and not asked.background:
            limit = options.rowlimit or None
        self._buffer.last_local = False
        if asked.reader:
            refuse_writing(sql, asked.reader)
        if self._ahead is not None and not self._ahead.done:
            await self._run(self._ahead.next(), asked, self._ahead.taken)
            return
        if connection.embedded and not asked.recorded:
            refuse_files(self._buffer.last.whole)
        await connection.policy.check(sql, self._front_end.ask)
        sql, files = self._attachments.of(self._buffer.last.whole)
        # To the embedded service nothing is sent twice: it cannot be out of reach.
        twice = not connection.embedded and reads_only(sql)
        submission = Submission(sql, files, limit, twice, self._buffer.last.ending)
        if connection.offline is not None:
            connection.offline(submission, session.context)
        elif asked.background:
            job = session.state.background.start(submission, session.context)
            session.state.last_job = job.number
            text = f"[{job.number}] runs in the background; \\jobs lists it"
            self._diagnostics.note(text, always=session.interactive)
        else:
            await self._run(submission, asked)
        self._attachments.sent(files)

    async def _run(self, submission: Submission, asked: Asked, sent: StatementBatch | None = None) -> None:
        """Wait for it, and keep what the next statements may ask about it; `sent` has it where it was sent with
        others."""
        session, state, outlet = self._session, self._session.state, self._outlet
        failure: ShellError | None = None
        # What a USE leaves may be what is not there.
        context = replace(state.context, **dict.fromkeys(replaced_parts(submission.sql), ""))
        session.rows = None
        before = state.transaction.state
        show = asked.consumer or partial(outlet.show, expanded=asked.expanded, output=asked.output)
        show = state.past.noting(show, state, submission.row_limit)
        if self._transcript is not None:
            show = self._transcript.noting(show)
        if outlet.logging:
            outlet.note(f"{session.redact(submission.sql)};\n")
        try:
            await self._foreground.run(submission, context, show, quiet=asked.consumer is not None, sent=sent)
        except Exception as error:
            failure = error if isinstance(error, ShellError) else bug_of(error)
            kept = session.redact(submission.sql) == submission.sql
            outlet.note(f"-- error {failure.where.sql_state}: {failure.message if kept else ''}\n")
            raise
        finally:
            self._variables.ended(failure)
            if state.transaction.state and not before:
                state.transaction.begun = str(self._position)
            if self._transcript is not None:
                self._transcript.ended(submission.sql, context, session, failure)
        if outlet.browse and self._front_end.browse is not None:
            outlet.browse = False
            async with state.past.opened() as result:
                await self._front_end.browse(result)


def refuse_writing(sql: str, command: str) -> None:
    """Raise UsageError for a statement that a command would run, and that may write."""
    from sqlshell.sql.analysis.effects import effects

    writing = next((found for found in effects(sql) if found.writes), None)
    if writing is not None:
        raise UsageError(f"\\{command} has to run the statement, but {writing.name} may write", "use \\g to run it")
