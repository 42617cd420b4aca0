"""A transcript run again, here or elsewhere, and every difference told."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import (
    ConnectionFailed,
    Interrupted,
    NotAuthenticated,
    OutputError,
    ShellError,
    StatementError,
    UsageError,
)
from sqlshell.interface import sqlstate
from sqlshell.origin import Own, theirs
from sqlshell.output.writer import Summary
from sqlshell.result import Result
from sqlshell.shell.records.transcript import Digested, Record, Told, read
from sqlshell.shell.results.humanize import one_line
from sqlshell.shell.results.outlet import Outlet
from sqlshell.shell.running.submitting import Asked, Submitter
from sqlshell.shell.session import Session
from sqlshell.sql.script.items import Statement

CARRIED = ("database", "schema", "store", "compute_pool", "timezone")
"""The parts of the context that the first record sets where this shell was started without them."""


class Differs(StatementError):
    """Something came out otherwise than it did."""


class NotRun(ShellError):
    """A statement that was not sent again; the message says why."""


class Replayer:
    """Runs transcripts again."""

    def __init__(self, session: Session, submitter: Submitter, outlet: Outlet, diagnostics: Diagnostics) -> None:
        self._session = session
        self._submitter = submitter
        self._outlet = outlet
        self._diagnostics = diagnostics

    async def run(self, path: Own) -> None:
        """Run each statement, and tell what is not as it was. Raises Differs, UsageError and what ends a script."""
        done = differing = skipped = 0
        for number, record in read(path):
            if not done + skipped:
                self._begin(record)
            head = f"{path}:{number}: {one_line(record.statement, 60)}\n"
            try:
                found = await self._run(record)
            except NotRun as why:
                skipped += 1
                self._outlet.print(f"{head}  not run: {why.message}\n", with_results=True)
                continue
            done += 1
            if found:
                differing += 1
                told = "\n".join(f"  {line}" for line in found)
                self._outlet.print(f"{head}{told}\n", with_results=True)
        what = f"{done} statement{'' if done == 1 else 's'} run again"
        if differing or skipped:
            told = (
                f"{differing} {'differs' if differing == 1 else 'differ'}"
                if differing
                else "no differences"
                if done
                else ""
            )
            left = f"{skipped} not run" if skipped else ""
            raise Differs(", ".join(filter(None, [what, told, left])))
        self._diagnostics.note(f"{what}, no differences")

    def _begin(self, record: Record) -> None:
        state = self._session.state
        known = dict(state.context.parts())
        missing = {name: record.context[name] for name in CARRIED if record.context.get(name) and not known[name]}
        if not state.connection.embedded:
            state.context = replace(state.context, **missing)

    async def _run(self, record: Record) -> Sequence[str]:
        """The differences of one statement. Raises NotRun, and what ends a script."""
        if record.redacted:
            raise NotRun("its secrets were not recorded")
        results: list[Told] = []

        async def take(result: Result) -> Summary:
            digested = Digested(result)
            rows = 0
            try:
                async for batch in digested:
                    rows += len(batch.rows)
            finally:
                await digested.aclose()
            summary = Summary(rows, True)
            results.append(digested.told(summary))
            return summary

        state, message = sqlstate.DONE, ""
        try:
            # Not the person's own text: it names no files that are sent, and no variables.
            text = theirs(record.statement, "a transcript's statement")
            statement = Statement(text.text, 0, 0, True, foreign=text.foreign)
            await self._submitter.submit(Asked(statement, take, final=True, recorded=True))
        except (ConnectionFailed, NotAuthenticated, Interrupted, OutputError):
            raise
        except UsageError as error:
            # What the shell itself refuses, as a policy does, never reached the service.
            raise NotRun(error.message) from error
        except ShellError as error:
            state, message = error.where.sql_state or "XX000", error.message
        return list(_differences(record, state, message, results))


def _differences(record: Record, state: str, message: str, results: Sequence[Told]) -> Sequence[str]:
    if state != record.sql_state:
        told = f": {one_line(message, 120)}" if message else ""
        return [f"sqlState was {record.sql_state}, is {state}{told}"]
    found: list[str] = []
    if len(results) != len(record.results):
        found.append(f"number of results was {len(record.results)}, is {len(results)}")
    for number, (old, new) in enumerate(zip(record.results, results, strict=False), 1):
        which = f"result {number}: " if len(results) > 1 else ""
        if old.columns != new.columns:
            found.append(f"{which}columns were {', '.join(old.columns)}, are {', '.join(new.columns)}")
        elif old.rows is None:
            continue
        elif old.rows != new.rows:
            found.append(f"{which}rows were {old.rows:,}, are {new.rows:,}")
        elif old.digest != new.digest:
            found.append(f"{which}same number of rows, but different values, types or order")
    return found
