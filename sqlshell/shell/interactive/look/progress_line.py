"""The progress line: it is redrawn in place, and removed when the wait is over."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import Any, TextIO

from sqlshell.output.text.cells import cells, printable
from sqlshell.runtime.streams import shows_unicode
from sqlshell.shell.front_end import Progress
from sqlshell.shell.interactive.terminal import progress_report, with_modes, without_echo
from sqlshell.shell.running.statement import Running
from sqlshell.shell.scripts.position import ScriptPlace
from sqlshell.text import byte_size, elapsed_time, format_count, short_number

SIGNS, PLAIN_SIGNS = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\"
FIRST_SECONDS = 0.15
"""How long a wait lasts before the line appears."""
STEP_SECONDS = 0.1
RATE_SECONDS = 0.5
"""How long rows arrive before their rate is shown."""
BAR_CELLS, WIDE_BAR_CELLS, WIDE = 20, 32, 100
"""The cells of the bar; outside of scripts more on a terminal of at least WIDE columns. If they depended on the other
parts, the bar would move."""
ERASE = "\r\x1b[J"
"""A terminal that has become narrower may have wrapped the line: what is left of it is below."""
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
MOST_MESSAGE = 60
GAP = 2
"""Cells between two parts."""
ELAPSED = 4
"""The place of the elapsed time, with a label if there is room."""
LABEL = " elapsed"

Look = Callable[[str, str], str]
"""Draws a text in the look of a part: spinner, dim, warning."""


def plain(text: str, part: str) -> str:
    return text


class ProgressLine(Progress):
    """Draws on `stream`, a terminal, between show() and hide(); draws nothing for very short waits.

    In a script the line stays from one statement to the next, until something else is written: see clear(). `look`
    returns how to draw, and is called once; `reports` says that the terminal can show progress itself (OSC 9;4).
    What is typed meanwhile is not echoed into the line: the next prompt shows it.
    """

    live = True

    def __init__(
        self,
        stream: TextIO,
        columns: Callable[[], int],
        look: Callable[[], Look] = lambda: plain,
        *,
        reports: bool = False,
    ) -> None:
        self.script: ScriptPlace | None = None
        self.on_first: Callable[[], None] = lambda: None
        self._stream = stream
        self._columns = columns
        self._new_look = look
        self._look: Look | None = None
        self._reports = reports
        self._reported = ""
        # Python writes UTF-8 in the locale C too, which the terminal may not show.
        self._unicode = (stream.encoding or "").lower().replace("-", "") == "utf8" and shows_unicode(os.environ)
        self._running: Running | None = None
        self._remaining = Remaining()
        self._announced: Running | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._drawn = False
        self._drawn_at = 0.0
        self._width = 0
        """Columns of the terminal when the line was drawn last."""
        self._modes: list[Any] | None = None
        """The modes of the terminal, to which it returns when the line is erased; None while they are unchanged."""
        self._free_at = 0.0
        """Until when output of a script has the screen to itself."""
        self._number = 0

    def show(self, running: Running) -> None:
        self._running = running
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FIRST_SECONDS, self._step)
        elif self.script is not None and self._drawn and time.monotonic() - self._drawn_at >= STEP_SECONDS:
            # Results that are at hand leave the event loop no time for the timer.
            self._draw(running)

    def hide(self) -> None:
        self._running = None
        if self.script is None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self.clear()

    def refresh(self) -> None:
        """Draw a change at once, if the line is shown."""
        if self._drawn and self._running is not None:
            self._draw(self._running)

    def notice(self, text: str) -> bool:
        """Say in the line what is waited for; False if there is no wait."""
        if self._running is None:
            return False
        self._running.notice = text
        self.refresh()
        return True

    def clear(self) -> None:
        """Erase the line, because something else will be written."""
        if self.script is not None:
            self._free_at = time.monotonic() + FIRST_SECONDS
        if self._drawn:
            self._drawn = False
            self._write(ERASE + SHOW_CURSOR + self._report(""))
            modes, self._modes = self._modes, None
            with_modes(self._stream, modes)

    def close(self) -> None:
        """Erase the line for good."""
        self.script = None
        self.hide()

    def _step(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(STEP_SECONDS, self._step)
        if self._running is not None and time.monotonic() >= self._free_at:
            self._draw(self._running)

    def _draw(self, running: Running) -> None:
        if running is not self._announced:
            self._announced = running
            self.on_first()
        if self._look is None:
            self._look = self._new_look()
        hides = "" if self._drawn else HIDE_CURSOR
        if not self._drawn:
            self._modes = without_echo(self._stream)
        before, self._width = self._width, self._columns()
        wrapped = ERASE if self._drawn and self._width < before else "\r"
        self._number += 1
        self._drawn, self._drawn_at = True, time.monotonic()
        script = self.script if self.script is not None and not self.script.single else None
        share = script.share_with(running.shown_share) if script is not None else running.shown_share
        report = "4;3" if share is None else f"4;1;{_percent(share)[:-1]}"
        # In one piece, and erased only behind the text: nothing flickers. The cursor returns to the beginning of the
        # line, and stays there if the terminal becomes narrower and wraps it.
        self._write(f"{hides}{wrapped}{self._line(running, script, share, self._look)}\x1b[K\r{self._report(report)}")

    def _line(self, running: Running, script: ScriptPlace | None, share: float | None, look: Look) -> str:
        """The parts that fit into the width, the most important first, in their order on the screen."""
        signs = SIGNS if self._unicode else PLAIN_SIGNS
        elapsed = elapsed_time(self._drawn_at - (running.began if script is None else script.began))
        notice = _shortened(running.notice or running.message, self._unicode)
        size = WIDE_BAR_CELLS if self._width >= WIDE and script is None else BAR_CELLS
        bar = self._bar(share, size, look) if share is not None else ""
        parts = [
            # (place on the screen, width, text)
            (0, 1, look(signs[self._number % len(signs)], "spinner")),
            (ELAPSED, cells(elapsed), elapsed),
        ]
        if running.notice:
            parts.append((6, cells(notice), look(notice, "warning")))
        parts.append((7, cells(running.hint), look(running.hint, "dim")))
        if script is not None:
            label = printable(script.label)
            parts.append((1, cells(label), label))
        if share is not None:
            percentage = _percent(share).rjust(4)
            parts += [(3, 4, percentage), (2, size if self._unicode else size + 2, bar)]
        if script is not None and (script.number > 1 or running.shown_share is not None):
            own = elapsed_time(self._drawn_at - running.began)
            own += f" {_percent(running.shown_share)}" if running.shown_share is not None else ""
            parts.append((5, cells(own) + 2, f"({own})"))
        # The share of a script is one of statements, which take unequal times.
        if script is None and (left := self._remaining.text(running, self._drawn_at)):
            parts.append((5, cells(left), left))
        for text in _rates(running, self._drawn_at):
            parts.append((5, cells(text), text))
        if notice and not running.notice:
            parts.append((6, cells(notice), look(notice, "dim")))
        room = self._width - len("^C")
        kept: list[tuple[int, str]] = []
        for place, width, text in parts:
            if width + GAP <= room:
                room -= width + GAP
                kept.append((place, text))
        if room >= cells(LABEL):
            kept = [(place, text + LABEL if place == ELAPSED else text) for place, text in kept]
        kept.sort(key=lambda part: part[0])
        (_, sign), *rest = kept or [(0, "")]
        return f"{sign} {(' ' * GAP).join(text for _, text in rest)}".rstrip()

    def _bar(self, share: float, size: int, look: Look) -> str:
        done = int(min(1.0, max(0.0, share)) * size)
        if not self._unicode:
            return f"[{'#' * done}{'.' * (size - done)}]"
        colored = look("", "spinner") != ""
        if colored:
            return look("━" * done, "spinner") + look("━" * (size - done), "border")
        return "█" * done + "░" * (size - done)

    def _report(self, state: str) -> str:
        """The terminal's own progress bar; "" removes it."""
        if not self._reports or state == self._reported:
            return ""
        self._reported = state
        return progress_report(state or "4;0")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._drawn = False


def _percent(share: float) -> str:
    """Rounded down, and at most 99 %: what is still running is not complete."""
    return f"{min(99, int(100 * max(0.0, share) + 1e-6))}%"


def _rates(running: Running, now: float) -> list[str]:
    """The rows and bytes that have arrived, and how many of them per second."""
    if not running.fetched_rows:
        return []
    seconds = now - running.fetching
    rates = [format_count(running.fetched_rows, "row")]
    if seconds >= RATE_SECONDS:
        rates.append(f"{short_number(running.fetched_rows / seconds)} rows/s")
        if running.fetched_bytes:
            rates.append(f"{byte_size(round(running.fetched_bytes / seconds))}/s")
    return rates


def _shortened(text: str, unicode: bool) -> str:
    line = " ".join(printable(text).split())
    dots = "…" if unicode else "..."
    return line if len(line) <= MOST_MESSAGE else line[: MOST_MESSAGE - len(dots)] + dots


LEAST_SHARE, LEAST_SECONDS, LEAST_CHANGES = 0.03, 2.0, 3
"""What has been done before there is an estimate: that of a share that jumps to a half and stays there is wrong."""
WRONG = 2
"""An estimate that has become this many times longer than the last text is not shown."""


class Remaining:
    """Estimates the end when the share changes, and counts down to it meanwhile: the time left never grows.

    An estimate that turns out to be wrong is no longer shown, until the share has changed again.
    """

    def __init__(self) -> None:
        self._reset(0.0)

    def _reset(self, began: float) -> None:
        self._began = began
        self._share = 0.0
        self._changes = 0
        self._end = 0.0
        self._least = 0.0
        self._width = 0

    def text(self, running: Running, now: float) -> str:
        """`about 12 s left`, as wide as before, so that nothing beside it moves; "" without an estimate."""
        began = running.fetching if running.fetched_rows and running.total else running.began
        share = running.shown_share or 0.0
        if began != self._began or share < self._share:
            self._reset(began)
        if share > self._share:
            self._estimate(share, now, now - began)
        left = self._end - now
        if share >= 1 or left <= 0 or (self._least and left > WRONG * self._least):
            self._end = self._least = 0.0
            self._width = 0
            return ""
        self._least = min(left, self._least or left)
        text = f"about {_rounded(self._least)} left"
        self._width = max(self._width, len(text))
        return text.ljust(self._width)

    def _estimate(self, share: float, now: float, passed: float) -> None:
        self._share = share
        self._changes += 1
        if share >= LEAST_SHARE and passed >= LEAST_SECONDS and self._changes >= LEAST_CHANGES:
            end = now + passed * (1 - min(1.0, share)) / share
            # Shares are coarse: half of the change at a time.
            self._end = (self._end + end) / 2 if self._end > now else end


def _rounded(seconds: float) -> str:
    if seconds < 60:
        step = 1 if seconds <= 10 else 5
        return f"{min(60, step * -int(-seconds // step))} s"
    if seconds < 3600:
        return f"{round(seconds / 60)} min"
    return f"{min(seconds / 3600, 999):.0f} h"
