"""Runs a transcript again, on the same service or another one, and reports every difference."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

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
from sqlshell.origin import Trusted, service_text
from sqlshell.output.writer import Summary
from sqlshell.result import Result
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.records.run_records import DigestedBatches, RecordedResult, TranscriptRecord, read
from sqlshell.shell.running.submitting import Submitter, Use
from sqlshell.shell.session import SessionState
from sqlshell.sql.analysis.copy_statements import loads_rows
from sqlshell.sql.script.items import Statement
from sqlshell.text import format_count, one_line

INHERITED = ("database", "schema", "store", "compute_pool", "timezone")
"""The parts of the context that are taken from the first record if the shell was started without them."""


class OutcomeMismatch(StatementError):
    """The outcome of a statement differs from the recorded one."""


class NotRun(ShellError):
    """A statement that was not sent again, with the reason."""


async def replay(components: ShellComponents, submitter: Submitter, path: Trusted) -> None:
    """Run each statement and report differences. Raises OutcomeMismatch, UsageError, and what ends a script."""
    done = differing = skipped = 0
    for number, record in read(path):
        if not done + skipped:
            _adopt_context(components.session.state, record)
        head = f"{path}:{number}: {one_line(record.statement, 60)}\n"
        try:
            differences = await _run(submitter, record)
        except NotRun as why:
            skipped += 1
            components.result_output.print(f"{head}  not run: {why.message}\n", with_results=True)
            continue
        done += 1
        if differences:
            differing += 1
            details = "\n".join(f"  {line}" for line in differences)
            components.result_output.print(f"{head}{details}\n", with_results=True)
    what = f"{format_count(done, 'statement')} run again" if done or not skipped else ""
    if differing or skipped:
        details = (
            f"{differing} {'differs' if differing == 1 else 'differ'}"
            if differing
            else "no differences"
            if done
            else ""
        )
        left = f"{skipped} of {format_count(done + skipped, 'statement')} could not be replayed" if skipped else ""
        raise OutcomeMismatch(", ".join(filter(None, [what, details, left])))
    components.diagnostics.report(f"{what}, no differences")


def _adopt_context(state: SessionState, record: TranscriptRecord) -> None:
    known = dict(state.context.parts())
    missing = {name: record.context[name] for name in INHERITED if record.context.get(name) and not known[name]}
    if not state.connection.embedded:
        state.context = replace(state.context, **missing)


async def _run(submitter: Submitter, record: TranscriptRecord) -> Sequence[str]:
    """Run one statement and return the differences. Raises NotRun, and errors that end a script."""
    if record.redacted:
        raise NotRun("its secrets were not recorded")
    if loads_rows(record.statement):
        raise NotRun("the rows of a load are not recorded")
    results: list[RecordedResult] = []

    async def take(result: Result) -> Summary:
        digested = DigestedBatches(result)
        rows = 0
        try:
            async for batch in digested:
                rows += len(batch.rows)
        finally:
            await digested.aclose()
        summary = Summary(rows, True)
        results.append(digested.recorded(summary))
        return summary

    state, message = sqlstate.DONE, ""
    try:
        # Not the user's own text: it cannot name files to upload or variables.
        text = service_text(record.statement, "a transcript's statement")
        statement = Statement(text.text, 0, 0, True, foreign=text.foreign)
        await submitter.submit(statement, Use(take, opens_files=True), verbatim=True)
    except (ConnectionFailed, NotAuthenticated, Interrupted, OutputError):
        raise
    except UsageError as error:
        # A statement that the shell itself refuses, for example by policy, never reached the service.
        raise NotRun(error.message) from error
    except ShellError as error:
        state, message = error.where.sql_state or "XX000", error.message
    return list(_differences(record, state, message, results))


def _differences(
    record: TranscriptRecord, state: str, message: str, results: Sequence[RecordedResult]
) -> Sequence[str]:
    if state != record.sql_state:
        details = f": {one_line(message, 120)}" if message else ""
        return [f"expected SQLSTATE {record.sql_state}, found {state}{details}"]
    differences: list[str] = []
    if len(results) != len(record.results):
        differences.append(f"expected {format_count(len(record.results), 'result')}, found {len(results)}")
    for number, (old, new) in enumerate(zip(record.results, results, strict=False), 1):
        which = f"result {number}: " if len(results) > 1 else ""
        if old.columns != new.columns:
            differences.append(f"{which}expected columns {', '.join(old.columns)}, found {', '.join(new.columns)}")
        elif old.rows is None:
            pass
        elif old.rows != new.rows:
            differences.append(f"{which}expected {format_count(old.rows, 'row')}, found {new.rows:,}")
        elif old.digest != new.digest:
            differences.append(f"{which}same number of rows, but different values, types or order")
    return differences
