"""Commands for background statements and earlier statements, and their results."""

from __future__ import annotations

import time

from sqlshell.errors import StatementError, UsageError, WaitTimeout, Where
from sqlshell.interface import sqlstate
from sqlshell.shell.command_shell import CommandShell
from sqlshell.shell.commands.command import Args, command
from sqlshell.shell.records.journal import JournalEntry
from sqlshell.shell.results.rows import blank, table_of
from sqlshell.shell.running.background import find_entry
from sqlshell.text import one_line

SHOWN = 10
NAMED_SECONDS = 1.0
"""Maximum time in seconds that a list waits for the IDs of statements that were just sent."""
COLUMNS = (
    ("job", "INTEGER"),
    ("id", "VARCHAR"),
    ("state", "VARCHAR"),
    ("rows", "BIGINT"),
    ("started", "TIMESTAMP"),
    ("seconds", "DECIMAL(18,3)"),
    ("target", "VARCHAR"),
    ("statement", "VARCHAR"),
)


@command("jobs", "[COUNT]", data=("COUNT",))
async def jobs(shell: CommandShell, args: Args) -> None:
    """List running and recent statements. Those of other shells are included; the default COUNT is 10.

    The column job shows the number that ;& printed for a statement of this shell; \\fetch, \\wait and \\cancel accept
    it instead of the ID. At the prompt the columns job and target are omitted if they are empty. The shell
    asks the service for the state of running statements.
    """
    most = _count(args)
    await shell.background.wait_for_ids(NAMED_SECONDS)
    entries = shell.journal.recent(most)
    if any(entry.running for entry in entries):
        await shell.background.refresh(entries, shell.session.context)
        entries = shell.journal.recent(most)
    if not entries and shell.result_output.for_people:
        shell.say("no statement has been run yet")
        return
    numbers = {job.statement_id: str(job.number) for job in shell.background.jobs if job.statement_id}
    rows = [_row(entry, numbers.get(entry.id)) for entry in entries]
    columns = {name for name, _ in COLUMNS}
    if shell.session.interactive:
        # A person does not look for the column of each value, as a script does.
        columns -= {"target"} if all(shell.journal.is_here(entry) for entry in entries) else set()
        columns -= set() if numbers.keys() & {entry.id for entry in entries} else {"job"}
    places = [at for at, (name, _) in enumerate(COLUMNS) if name in columns]
    shown = blank(rows) if shell.result_output.for_people else rows
    await shell.show(table_of([COLUMNS[at] for at in places], [[row[at] for at in places] for row in shown]))


@command("fetch", "[ID]", aliases=("!result",), data=("ID",))
async def fetch(shell: CommandShell, args: Args) -> None:
    """Show the result of an earlier statement. It may be from another shell; the service must still have the result.

    ID may be a prefix of an ID that \\jobs lists, or the number that ;& printed. The default is the last statement of
    this connection, in the background or not; if there is none, the last statement in the journal for this service.
    """
    latest = next((entry.id for entry in shell.journal.recent(1, here=True)), "") if not args else ""
    await shell.fetch((await _known(shell, args, latest)).id)


@command("wait", "[ID]", data=("ID",))
async def wait(shell: CommandShell, args: Args) -> None:
    """Wait until a statement has finished. Without ID, wait for all background statements of this shell.

    ID is an ID that \\jobs lists, a prefix of it, or the number that ;& printed.
    """
    if not args:
        await shell.background.wait_for_all()
        failed = next((job.error for job in shell.background.jobs if job.error is not None), None)
        if failed is not None and not shell.session.interactive:
            if isinstance(failed, WaitTimeout):
                raise WaitTimeout("a background statement has not ended", where=failed.where)
            raise StatementError("a background statement failed", where=failed.where)
        return
    entry = await _known(shell, args)
    state, message = await shell.background.wait(entry.id, shell.session.context)
    if sqlstate.failed(state):
        raise StatementError(message or "the statement failed", where=Where(state, entry.id))
    shell.say(f"{entry.id} has finished; \\fetch {args[0]} shows its result")


@command("cancel", "[ID]", aliases=("!abort",), data=("ID",))
async def cancel(shell: CommandShell, args: Args) -> None:
    """Ask the service to cancel a statement. Its state is printed.

    ID is an ID that \\jobs lists, a prefix of it, or the number that ;& printed. The default is the last statement of
    this connection, in the background or not.
    """
    entry = await _known(shell, args)
    try:
        state, message = await shell.background.cancel(entry.id, entry.query_id, shell.session.context)
    except StatementError as error:
        error.message = f"the service did not cancel {entry.id}: {error.message}"
        raise
    if state == sqlstate.CANCELED:
        shell.say(f"{entry.id} was canceled")
    elif sqlstate.running(state):
        shell.say(f"cancellation requested; {entry.id} is still running")
    else:
        words = sqlstate.meaning(state)
        shell.say(f"{entry.id} had already finished: {state}{f' ({words})' if words else ''} {message}".rstrip())


def _count(args: Args) -> int:
    if not args:
        return SHOWN
    if not (args[0].isascii() and args[0].isdecimal()) or not 0 < int(args[0]) <= 10_000:
        raise UsageError(f"\\jobs: invalid number of statements {args[0]!r}", "usage: \\jobs [COUNT], at most 10,000")
    return int(args[0])


async def _known(shell: CommandShell, args: Args, otherwise: str = "") -> JournalEntry:
    """The statement that the argument refers to: by job number, by a prefix of its id, or by a complete unknown id.

    Without an argument it is the last statement, or `otherwise` if this connection has had none."""
    named = args[0].lower() if args else shell.session.state.last_statement_id or otherwise
    number = shell.session.state.last_job
    if args:
        number = _number(named) or 0
        known = any(job.number == number for job in shell.background.jobs)
        # Digits may also be the start of an id.
        number = number if known or named.startswith("[") else 0
    if number:
        named = await shell.background.id_of(number)
    if not named:
        raise UsageError("this connection has not run a statement yet", "\\jobs lists earlier statements")
    entry = find_entry(shell.journal, named)
    if entry is None:
        if len(named) < 32:
            raise UsageError(
                f"no statement ID begins with {named!r}",
                "\\jobs lists the IDs; for an unlisted statement, give the full ID",
            )
        return JournalEntry(named, "", "", "", "", 0.0, None, "", "", None, "")
    if not shell.journal.is_here(entry):
        raise UsageError(
            f"{entry.id} ran on {entry.target}, but this shell is connected to {shell.session.target}",
            f"connect to {entry.target} first",
        )
    return entry


def _number(text: str) -> int | None:
    """A job number, written as `2` or `[2]`; None for anything else."""
    digits = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 8 else None


def _row(entry: JournalEntry, number: str | None) -> list[str | None]:
    started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.began))
    ended = entry.ended or (time.time() if entry.running else None)
    seconds = None if ended is None else f"{ended - entry.began:.3f}"
    rows = str(entry.rows) if entry.rows is not None else None
    return [number, entry.id, entry.state, rows, started, seconds, entry.target, one_line(entry.sql, 60)]
