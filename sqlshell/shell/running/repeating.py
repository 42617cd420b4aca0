"""\\watch and \\repeat: a statement again and again, drawn over on a terminal, with what changed marked."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlshell.errors import Interrupted
from sqlshell.output.writer import Summary
from sqlshell.result import Result
from sqlshell.shell.port import Again
from sqlshell.shell.results.outlet import live
from sqlshell.shell.results.rows import collect, table_of
from sqlshell.shell.running.submitting import Asked, submit

if TYPE_CHECKING:
    from sqlshell.result import Rows
    from sqlshell.shell.shell import Shell
    from sqlshell.sql.script.items import Statement

MOST_ROWS = 10_000
"""Rows of one result that are drawn over at most; nobody sees more."""

SOON_SECONDS = 1.0
"""How long the service has to end an interrupted statement before a person is told that it is asked."""


async def again(shell: Shell, statement: Statement | None, asked: Again) -> None:
    """Run it, or the last statement, until its times are over, its rows are too few, or a person has seen enough.

    Raises as running does.
    """
    before, shell.foreground.says_after = shell.foreground.says_after, SOON_SECONDS
    try:
        interrupted = await _until_enough(shell, statement, asked)
    except Interrupted as error:
        # Ctrl-C is the way out; only a statement that may go on at the service is worth a word.
        interrupted = shell.session.interactive and bool(error.where.sql_state)
        if not interrupted:
            raise
    finally:
        shell.foreground.says_after = before
    if interrupted:
        # Behind the ^C that the terminal wrote.
        shell.outlet.print("\n")


async def _until_enough(shell: Shell, statement: Statement | None, asked: Again) -> bool:
    """Whether a person ended it between two runs."""
    view = _View(shell, asked)
    done = 0
    while True:
        began = time.monotonic()
        shown = view.show if asked.redraw else None
        await submit(shell, Asked(statement or shell.buffer.last, shown, final=statement is None))
        done += 1
        if (asked.times and done >= asked.times) or (asked.redraw and view.rows < asked.least) or view.alone:
            return False
        if shell.interrupted and shell.session.interactive:
            shell.interrupted = False
            return True
        try:
            left = asked.seconds - (time.monotonic() - began)
            await shell.interruptible(asyncio.sleep(max(0.0, left)), "watch")
        except Interrupted:
            if not shell.session.interactive:
                raise
            return True


class _View:
    """One result after another, each in the place of the one before it where that can be."""

    def __init__(self, shell: Shell, asked: Again) -> None:
        self._shell = shell
        self._asked = asked
        self._before: Rows = []
        self._lines = 0
        self.rows = 0
        self.alone = False
        """Whether whoever read the results has left."""

    async def show(self, result: Result) -> Summary:
        summary, rows = await collect(result, MOST_ROWS)
        self.rows = summary.rows
        screen = self._shell.outlet.screen_for(result)
        heading = f"{time.strftime('%c')} (every {self._asked.seconds:g}s)"
        if not live(self._shell.session, screen):
            self._shell.announce(heading)
            shown = await self._shell.outlet.show(table_of([(c.name, c.type) for c in result.columns], rows))
            self.alone = not shown.complete
            return summary
        changed = _changes(self._before, rows)
        self._before = rows
        drawn = self._shell.outlet.drawn(result.columns, rows, changed)
        self._draw([f"{heading}  Ctrl-C ends it", "", *drawn.split("\n")[:-1]])
        return summary

    def _draw(self, lines: Sequence[str]) -> None:
        import shutil

        height = max(3, shutil.get_terminal_size().lines - 1)
        if len(lines) > height:
            lines = [*lines[: height - 1], f"… {len(lines) - height + 1} more lines"]
        up = f"\x1b[{self._lines}A" if self._lines else ""
        self._lines = len(lines)
        # Without wrapping: what is too wide is cut by the terminal.
        sys.stdout.write(f"\x1b[?7l{up}\r\x1b[J" + "\r\n".join(lines) + "\r\n\x1b[?7h")
        sys.stdout.flush()


def _changes(before: Rows, now: Rows) -> frozenset[tuple[int, int]]:
    """The cells, by row and column, that are not what they were; none the first time."""
    if not before:
        return frozenset()
    found = set()
    for number, row in enumerate(now):
        old = before[number] if number < len(before) else None
        found |= {(number, at) for at, value in enumerate(row) if old is None or at >= len(old) or old[at] != value}
    return frozenset(found)
