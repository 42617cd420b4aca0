"""\\watch: run a statement repeatedly; on a terminal, redraw the result and highlight changes."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence

from msgspec import Struct

from sqlshell.errors import Interrupted
from sqlshell.output.writer import Summary
from sqlshell.result import Result, Rows
from sqlshell.runtime.streams import shows_unicode
from sqlshell.shell.components import ShellComponents
from sqlshell.shell.results.result_output import live
from sqlshell.shell.results.rows import collect, result_of
from sqlshell.shell.running.submitting import Submitter, Use
from sqlshell.sql.script.items import Statement

MAX_ROWS = 10_000
"""Maximum rows of a result that are redrawn, and of an unbounded one."""

CANCEL_NOTICE_SECONDS = 1.0
"""How long, in seconds, until a message says that cancellation of an interrupted statement was requested."""


class Repeat(Struct, frozen=True):
    """How often to run a statement: `seconds` apart, `times` times or without limit (0), until it has fewer rows."""

    seconds: float
    times: int = 0
    min_rows: int = 0


async def run_repeatedly(
    components: ShellComponents, submitter: Submitter, statement: Statement | None, repeat: Repeat
) -> None:
    """Run a statement, or the last one (None), until its number of runs or its minimum of rows is reached, or the user
    stops it. Raises the errors of running it.
    """
    interactive = components.session.interactive
    try:
        with (
            components.statement_runner.delaying_cancel_notice(CANCEL_NOTICE_SECONDS),
            components.front_end.hiding_input(),
        ):
            interrupted = await _run(components, submitter, statement, repeat)
    except Interrupted as error:
        # Ctrl-C is the way to stop; only a statement that may still run is worth a message.
        interrupted = interactive and bool(error.where.sql_state)
        if not interrupted:
            raise
    if interrupted:
        # After the ^C that the terminal wrote.
        components.result_output.print("\n")


async def _run(components: ShellComponents, submitter: Submitter, statement: Statement | None, repeat: Repeat) -> bool:
    """Returns whether the user stopped it between two runs."""
    view = _View(components, repeat)
    statement_runner, interactive = components.statement_runner, components.session.interactive
    done = 0
    while True:
        began = time.monotonic()
        again = statement or components.buffer.last
        await submitter.submit(again, Use(view.show), verbatim=statement is None)
        done += 1
        if (repeat.times and done >= repeat.times) or view.rows < repeat.min_rows or view.reader_left:
            return False
        if interactive and statement_runner.take_pending():
            return True
        try:
            left = repeat.seconds - (time.monotonic() - began)
            await statement_runner.interruptible(asyncio.sleep(max(0.0, left)), "watch")
        except Interrupted:
            if not interactive:
                raise
            return True


class _View:
    """Shows one result after another, each in place of the previous one if possible."""

    def __init__(self, components: ShellComponents, repeat: Repeat) -> None:
        self._session = components.session
        self._result_output = components.result_output
        self._diagnostics = components.diagnostics
        self._repeat = repeat
        self._previous: Rows = []
        self._lines = 0
        self.rows = 0
        self.reader_left = False
        """Whether the reader of the results has exited."""

    async def show(self, result: Result) -> Summary:
        redraws = live(self._session, self._result_output.screen_for(result))
        heading = f"{time.strftime('%c')} (every {self._repeat.seconds:g}s)"
        if not redraws and result.endless is None:
            self._diagnostics.report(heading, always=self._session.interactive)
            shown = await self._result_output.show(result)
            self.rows, self.reader_left = shown.rows, not shown.complete
            return shown
        summary, rows = await collect(result, MAX_ROWS)
        self.rows = summary.rows
        if not redraws:
            self._diagnostics.report(heading, always=self._session.interactive)
            shown = await self._result_output.show(result_of(result.columns, rows))
            self.reader_left = not shown.complete
            return summary
        changed = _changes(self._previous, rows)
        self._previous = rows
        drawn = self._result_output.rendered_table(result.columns, rows, changed)
        self._draw([f"{heading}  Ctrl-C stops", "", *drawn.split("\n")[:-1]])
        return summary

    def _draw(self, lines: Sequence[str]) -> None:
        import shutil

        from sqlshell.output.text.lines import cut_painted

        columns, rows = shutil.get_terminal_size()
        height = max(3, rows - 1)
        more = "…" if shows_unicode(os.environ) else "..."
        if len(lines) > height:
            lines = [*lines[: height - 1], f"{more} {len(lines) - height + 1} more lines"]
        lines = [cut_painted(line, columns, more) for line in lines]
        up = f"\x1b[{self._lines}A" if self._lines else ""
        self._lines = len(lines)
        # Without wrapping, in case the terminal draws a character wider: a second line would be left behind.
        self._result_output.draw(f"\x1b[?7l{up}\r\x1b[J" + "\r\n".join(lines) + "\r\n\x1b[?7h")


def _changes(before: Rows, now: Rows) -> frozenset[tuple[int, int]]:
    """The cells, by row and column, that have changed; none for the first result."""
    if not before:
        return frozenset()
    changed = set()
    for number, row in enumerate(now):
        old = before[number] if number < len(before) else None
        changed |= {(number, at) for at, value in enumerate(row) if old is None or at >= len(old) or old[at] != value}
    return frozenset(changed)
