"""Statements that outlive their prompt: what runs, what ran, and its results."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TypeVar

from sqlshell.errors import StatementError, UsageError, Where
from sqlshell.interface import sqlstate
from sqlshell.shell.background import chosen
from sqlshell.shell.commands.command import Args, command
from sqlshell.shell.journal import Entry
from sqlshell.shell.port import Fetch, Port, Say, Show
from sqlshell.shell.rows import table_of
from sqlshell.shell.words import one_line

Item = TypeVar("Item")

SHOWN = 10
NAMED_SECONDS = 1.0
"""How long a list waits for the ids of statements that were just sent."""
COLUMNS = (
    ("id", "VARCHAR"),
    ("state", "VARCHAR"),
    ("rows", "BIGINT"),
    ("started", "TIMESTAMP"),
    ("seconds", "DECIMAL(18,3)"),
    ("target", "VARCHAR"),
    ("statement", "VARCHAR"),
)


@command("jobs", "[COUNT]")
async def jobs(port: Port, args: Args) -> Show:
    """List the statements that run and the latest that ran, of this shell and of others; 10 of them, or COUNT.

    How those stand that were running is asked of the service."""
    most = _count(args)
    await port.background.named(NAMED_SECONDS)
    entries = port.journal.recent(most)
    if any(entry.running for entry in entries):
        await port.background.refresh(entries, port.session.context)
        entries = port.journal.recent(most)
    rows = [_row(entry) for entry in entries]
    if port.session.interactive and all(port.journal.here(entry) for entry in entries):
        at = [name for name, _ in COLUMNS].index("target")
        return Show(table_of(_without(COLUMNS, at), [_without(row, at) for row in rows]))
    return Show(table_of(COLUMNS, rows))


@command("fetch", "[ID]", aliases=("!result",))
async def fetch(port: Port, args: Args) -> Fetch:
    """Show the result of an earlier statement, of this shell or another, while the service still has it.

    The id may be shortened where \\jobs knows it; without one it is the last statement's."""
    return Fetch(_known(port, args).id)


@command("wait", "[ID]")
async def wait(port: Port, args: Args) -> Say | None:
    """Wait until a statement has ended; without an id, until nothing of this shell runs in the background."""
    if not args:
        await port.background.finished()
        failed = next((job.error for job in port.background.jobs if job.error is not None), None)
        if failed is not None and not port.session.interactive:
            raise StatementError("a statement in the background failed", where=failed.where)
        return None
    entry = _known(port, args)
    state, said = await port.background.wait(entry.id, port.session.context)
    if sqlstate.failed(state):
        raise StatementError(said or "the statement failed", where=Where(state, entry.id))
    return Say(f"{entry.id} is finished; \\fetch {entry.id} shows its result")


@command("cancel", "[ID]", aliases=("!abort",))
async def cancel(port: Port, args: Args) -> Say:
    """Ask the service to end a statement, and say how it stands then; without an id it is the last statement."""
    entry = _known(port, args)
    try:
        state, said = await port.background.cancel(entry.id, entry.query_id, port.session.context)
    except StatementError as error:
        error.message = f"the service did not end {entry.id}: {error.message}"
        raise
    if state == sqlstate.CANCELLED:
        return Say(f"{entry.id} is cancelled")
    if sqlstate.running(state):
        return Say(f"the service took the request, and {entry.id} still runs")
    words = sqlstate.meaning(state)
    return Say(f"{entry.id} had ended: {state}{f' ({words})' if words else ''} {said}".rstrip())


def _count(args: Args) -> int:
    if not args:
        return SHOWN
    if not (args[0].isascii() and args[0].isdecimal()) or not 0 < int(args[0]) <= 10_000:
        raise UsageError(f"\\jobs takes a number of statements, not {args[0]!r}", "usage: \\jobs [COUNT]")
    return int(args[0])


def _known(port: Port, args: Args) -> Entry:
    """The statement that is meant: one of the journal by the start of its id, or any other by its whole id."""
    named = args[0].lower() if args else port.session.last_id or _latest(port)
    if not named:
        raise UsageError("there is no statement yet", "\\jobs lists those of earlier shells")
    entry = chosen(port.journal, named)
    if entry is None:
        if len(named) < 32:
            raise UsageError(f"no statement begins with {named!r}", "\\jobs lists them; write another's id in full")
        return Entry(named, "", "", "", "", 0.0, None, "", "", None, "")
    if not port.journal.here(entry):
        raise UsageError(f"{entry.id} ran on {entry.target}, and this is {port.session.target}", "start a shell there")
    return entry


def _latest(port: Port) -> str:
    return next((entry.id for entry in port.journal.recent(1)), "")


def _without(items: Sequence[Item], at: int) -> list[Item]:
    return [*items[:at], *items[at + 1 :]]


def _row(entry: Entry) -> list[str | None]:
    started = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.began))
    seconds = (entry.ended or time.time()) - entry.began
    rows = str(entry.rows) if entry.rows is not None else None
    return [entry.id, entry.state, rows, started, f"{seconds:.3f}", entry.target, one_line(entry.sql, 60)]


COMMANDS = (jobs, fetch, wait, cancel)
