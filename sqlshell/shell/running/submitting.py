"""A statement on its way: variables filled in, the policy asked, files attached, and what it leaves behind."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from sqlshell.client.statements.client import StatementBatch, Submission
from sqlshell.errors import ShellError, StatementError, Unreadable, UsageError, Where
from sqlshell.interface import sqlstate
from sqlshell.origin import NOWHERE, Own, joined
from sqlshell.runtime.bugs import bug_of
from sqlshell.shell.port import Consumer
from sqlshell.shell.running.attachments import reads_stdin
from sqlshell.sql.analysis.files import refuse_files
from sqlshell.sql.analysis.kinds import leaves, reads_only
from sqlshell.sql.script.scanner import Statement, copies_in
from sqlshell.sql.script.splitting import statements

if TYPE_CHECKING:
    from sqlshell.shell.shell import Shell


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


async def submit(shell: Shell, asked: Asked) -> None:
    """Run it; what the values of its variables make of it may be several statements. Raises ShellError."""
    given = asked.statement
    shell.line = given.line or shell.line
    if not asked.final and (given.settled or ":" in given.text):
        whole, done = given.whole, given.settled
        rest = shell.variables.fill(whole.part(done, len(whole.text)))
        # What came from elsewhere is never a command.
        parts = statements(joined([whole.part(0, done), rest]))
        if any(copies_in(part.text) for part in parts) and not copies_in(given.text):
            raise Unreadable(
                "a variable makes this COPY … FROM STDIN, so its data cannot be told from statements",
                "write FROM STDIN in the statement itself; the script ends here",
            )
        parts[-1:] = [replace(part, ending=part.ending or given.ending) for part in parts[-1:]]
        for number, part in enumerate(parts, 1):
            shell.buffer.last = part
            await _one(shell, asked if number == len(parts) else Asked(part, reader=asked.reader))
        return
    shell.buffer.last = given
    await _one(shell, asked)


async def _one(shell: Shell, asked: Asked) -> None:
    options, sql = shell.session.options, shell.buffer.last.text
    if options.echo:
        shell.diagnostics.say(sql)
    if copies_in(sql):
        raise StatementError(
            "COPY … FROM STDIN is not supported; its data lines were skipped, not run",
            "write the rows as INSERT statements, or have the service read a file: COPY … FROM 'file.csv'",
            Where(sqlstate.UNSUPPORTED),
        )
    if shell.reads_stdin and reads_stdin(sql):
        raise Unreadable(
            "the statement reads stdin, where this script comes from: its data cannot be told from statements",
            "put the data into a file and name that; the script ends here",
            Where(sqlstate.UNSUPPORTED),
        )
    limit = None
    shown = not asked.output and not shell.outlet.exporting and asked.consumer is None
    if shell.session.embedded and shell.session.interactive and shown and not asked.background:
        limit = options.rowlimit or None
    shell.buffer.last_local = False
    if asked.reader:
        refuse_writing(sql, asked.reader)
    if shell.ahead is not None and not shell.ahead.done:
        await _run(shell, shell.ahead.next(), asked, shell.ahead.taken)
        return
    if shell.session.embedded and not asked.recorded:
        refuse_files(shell.buffer.last.whole)
    await shell.policy.check(sql, shell.hooks.ask)
    sql, files = shell.attachments.of(shell.buffer.last.whole)
    # To the embedded service nothing is sent twice: it cannot be out of reach.
    twice = not shell.session.embedded and reads_only(sql)
    submission = Submission(sql, files, limit, twice, shell.buffer.last.ending)
    if shell.offline is not None:
        shell.offline(submission, shell.session.context)
    elif asked.background:
        job = shell.background.start(submission, shell.session.context)
        shell.session.last_job = job.number
        shell.announce(f"[{job.number}] runs in the background; \\jobs lists it")
    else:
        await _run(shell, submission, asked)
    shell.attachments.sent(files)


def refuse_writing(sql: str, command: str) -> None:
    """Raise UsageError for a statement that a command would run, and that may write."""
    from sqlshell.sql.analysis.effects import effects

    writing = next((found for found in effects(sql) if found.writes), None)
    if writing is not None:
        raise UsageError(f"\\{command} would run it, and {writing.name} may write")


async def _run(shell: Shell, submission: Submission, asked: Asked, sent: StatementBatch | None = None) -> None:
    """Wait for it, and keep what the next statements may ask about it; `sent` has it where it was sent with others."""
    failure: ShellError | None = None
    # What a USE leaves may be what is not there.
    context = replace(shell.session.context, **dict.fromkeys(leaves(submission.sql), ""))
    shell.session.rows = None
    before = shell.session.transaction.state
    show = asked.consumer or partial(shell.outlet.show, expanded=asked.expanded, output=asked.output)
    show = shell.past.noting(show, shell.service.statements, shell.session, submission.row_limit)
    if shell.transcript is not None:
        show = shell.transcript.noting(show)
    if shell.outlet.logging:
        shell.outlet.note(f"{shell.hooks.redact(submission.sql)};\n")
    try:
        await shell.foreground.run(submission, context, show, quiet=asked.consumer is not None, sent=sent)
    except Exception as error:
        failure = error if isinstance(error, ShellError) else bug_of(error)
        kept = shell.hooks.redact(submission.sql) == submission.sql
        shell.outlet.note(f"-- error {failure.where.sql_state}: {failure.message if kept else ''}\n")
        raise
    finally:
        shell.variables.ended(failure)
        if shell.session.transaction.state and not before:
            shell.session.transaction.begun = shell.diagnostics.place()
        if shell.transcript is not None:
            shell.transcript.ended(submission.sql, context, shell.session, failure)
    if shell.outlet.browse and shell.hooks.browse is not None:
        shell.outlet.browse = False
        async with shell.past.opened() as result:
            await shell.hooks.browse(result)
