"""\\watch and \\repeat: a statement again and again, drawn over on a terminal, with what changed marked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from sqlshell.diagnostics import Diagnostics
from sqlshell.errors import Interrupted
from sqlshell.output.writer import Summary
from sqlshell.result import Result, Rows
from sqlshell.shell.effects import Again
from sqlshell.shell.results.outlet import Outlet, live
from sqlshell.shell.results.rows import collect, table_of
from sqlshell.shell.running.foreground import Foreground
from sqlshell.shell.running.interruption import Interruption
from sqlshell.shell.running.submitting import Asked, Submitter
from sqlshell.shell.scripts.buffer import Buffer
from sqlshell.shell.session import Session
from sqlshell.sql.script.items import Statement

MOST_ROWS = 10_000
"""Rows of one result that are drawn over at most; nobody sees more."""

SOON_SECONDS = 1.0
"""How long the service has to end an interrupted statement before a person is told that it is asked."""


class Repeater:
    """Runs a statement until its times are over, its rows are too few, or a person has seen enough."""

    def __init__(
        self,
        session: Session,
        buffer: Buffer,
        submitter: Submitter,
        foreground: Foreground,
        interruption: Interruption,
        outlet: Outlet,
        diagnostics: Diagnostics,
    ) -> None:
        self._session = session
        self._buffer = buffer
        self._submitter = submitter
        self._foreground = foreground
        self._interruption = interruption
        self._outlet = outlet
        self._diagnostics = diagnostics

    async def run(self, statement: Statement | None, asked: Again) -> None:
        """Run the statement, or the last one (None). Raises as running does."""
        before, self._foreground.says_after = self._foreground.says_after, SOON_SECONDS
        try:
            interrupted = await self._until_enough(statement, asked)
        except Interrupted as error:
            # Ctrl-C is the way out; only a statement that may go on at the service is worth a word.
            interrupted = self._session.interactive and bool(error.where.sql_state)
            if not interrupted:
                raise
        finally:
            self._foreground.says_after = before
        if interrupted:
            # Behind the ^C that the terminal wrote.
            self._outlet.print("\n")

    async def _until_enough(self, statement: Statement | None, asked: Again) -> bool:
        """Whether a person ended it between two runs."""
        view = _View(self._session, self._outlet, self._diagnostics, asked)
        interruption, interactive = self._interruption, self._session.interactive
        done = 0
        while True:
            began = time.monotonic()
            shown = view.show if asked.redraw else None
            await self._submitter.submit(Asked(statement or self._buffer.last, shown, final=statement is None))
            done += 1
            if (asked.times and done >= asked.times) or (asked.redraw and view.rows < asked.least) or view.alone:
                return False
            if interruption.pending and interactive:
                interruption.pending = False
                return True
            try:
                left = asked.seconds - (time.monotonic() - began)
                await interruption.interruptible(asyncio.sleep(max(0.0, left)), "watch")
            except Interrupted:
                if not interactive:
                    raise
                return True


class _View:
    """One result after another, each in the place of the one before it where that can be."""

    def __init__(self, session: Session, outlet: Outlet, diagnostics: Diagnostics, asked: Again) -> None:
        self._session = session
        self._outlet = outlet
        self._diagnostics = diagnostics
        self._asked = asked
        self._before: Rows = []
        self._lines = 0
        self.rows = 0
        self.alone = False
        """Whether whoever read the results has left."""

    async def show(self, result: Result) -> Summary:
        summary, rows = await collect(result, MOST_ROWS)
        self.rows = summary.rows
        screen = self._outlet.screen_for(result)
        heading = f"{time.strftime('%c')} (every {self._asked.seconds:g}s)"
        if not live(self._session, screen):
            self._diagnostics.note(heading, always=self._session.interactive)
            shown = await self._outlet.show(table_of([(c.name, c.type) for c in result.columns], rows))
            self.alone = not shown.complete
            return summary
        changed = _changes(self._before, rows)
        self._before = rows
        drawn = self._outlet.drawn(result.columns, rows, changed)
        self._draw([f"{heading}  Ctrl-C stops", "", *drawn.split("\n")[:-1]])
        return summary

    def _draw(self, lines: Sequence[str]) -> None:
        import shutil

        height = max(3, shutil.get_terminal_size().lines - 1)
        if len(lines) > height:
            lines = [*lines[: height - 1], f"… {len(lines) - height + 1} more lines"]
        up = f"\x1b[{self._lines}A" if self._lines else ""
        self._lines = len(lines)
        # Without wrapping: what is too wide is cut by the terminal.
        self._outlet.draw(f"\x1b[?7l{up}\r\x1b[J" + "\r\n".join(lines) + "\r\n\x1b[?7h")


def _changes(before: Rows, now: Rows) -> frozenset[tuple[int, int]]:
    """The cells, by row and column, that are not what they were; none the first time."""
    if not before:
        return frozenset()
    found = set()
    for number, row in enumerate(now):
        old = before[number] if number < len(before) else None
        found |= {(number, at) for at, value in enumerate(row) if old is None or at >= len(old) or old[at] != value}
    return frozenset(found)
