"""An animated SVG of screens of a terminal: no script in it, so that a README can show it."""

from __future__ import annotations

import time
from collections.abc import Iterator

from tests.terminal.svg import HEIGHT, MARGIN, TEXT, WIDTH, head, row_markup
from tests.terminal.terminal import Terminal

QUIET_SECONDS = 0.3
"""A screen has settled when nothing was drawn for this long."""

LONGEST_SECONDS = 20.0
"""How long a screen may take to settle."""

Frame = tuple[tuple[tuple[int, int], ...], tuple[int, int] | None]
"""The rows that are not empty, each with the number of its markup; and the place of the cursor."""


class Recording:
    """Screens of one terminal, each with the seconds for which it is shown. These are chosen, not measured."""

    def __init__(self, rows: int, columns: int) -> None:
        self._size = rows, columns
        self._rows: dict[str, int] = {}
        self._frames: list[tuple[Frame, float]] = []
        self._poster = 0

    def add(self, terminal: Terminal, seconds: float, *, poster: bool = False) -> None:
        """Add the screen as it is now; `poster` is what is shown where nothing moves."""
        settle(terminal)
        rows, columns = self._size
        markup = ((row, row_markup(terminal, row, columns)) for row in range(rows))
        shown = tuple((row, self._rows.setdefault(text, len(self._rows))) for row, text in markup if text)
        frame = shown, terminal.cursor()
        if self._frames and self._frames[-1][0] == frame:
            seconds += self._frames.pop()[1]
        self._frames.append((frame, seconds))
        if poster:
            self._poster = len(self._frames) - 1

    def type(self, terminal: Terminal, text: str, *, pace: float = 0.08, step: int = 3) -> None:
        """Type a text, with a screen for every `step` characters."""
        for start in range(0, len(text), step):
            piece = text[start : start + step]
            terminal.type(piece)
            self.add(terminal, pace * len(piece))

    def svg(self) -> str:
        total = sum(seconds for _, seconds in self._frames)
        return "\n".join(
            [head(*self._size), *self._style(total), *self._symbols(), *self._drawn(), "</g>", "</svg>", ""]
        )

    def _style(self, total: float) -> Iterator[str]:
        yield "<style>"
        yield f".f{{visibility:hidden;animation-duration:{total:.2f}s;animation-timing-function:step-end}}"
        yield ".f{animation-iteration-count:infinite}"
        yield "@media (prefers-reduced-motion:reduce){.f{animation:none!important}}"
        begin = 0.0
        for number, (_, seconds) in enumerate(self._frames):
            first, last = (100 * moment / total for moment in (begin, begin + seconds))
            hidden = "0%{visibility:hidden}" if number else ""
            end = f"{last:.3f}%{{visibility:hidden}}" if number < len(self._frames) - 1 else ""
            yield f"@keyframes k{number}{{{hidden}{first:.3f}%{{visibility:visible}}{end}}}"
            begin += seconds
        yield "</style>"

    def _symbols(self) -> Iterator[str]:
        yield "<defs>"
        for text, number in self._rows.items():
            yield f'<g id="r{number}">{text}</g>'
        yield "</defs>"

    def _drawn(self) -> Iterator[str]:
        for number, ((shown, cursor), _) in enumerate(self._frames):
            poster = "visibility:visible;" if number == self._poster else ""
            yield f'<g class="f" style="{poster}animation-name:k{number}">'
            if cursor is not None:
                row, column = cursor
                left, top = MARGIN + column * WIDTH, MARGIN + row * HEIGHT
                yield f'<rect x="{left:.1f}" y="{top}" width="{WIDTH}" height="{HEIGHT}" fill="{TEXT}" opacity="0.6"/>'
            yield "".join(f'<use href="#r{made}" y="{MARGIN + row * HEIGHT}"/>' for row, made in shown)
            yield "</g>"


def settle(terminal: Terminal) -> None:
    """Wait until nothing is drawn any more."""
    until = time.monotonic() + LONGEST_SECONDS
    before = -1
    while before != len(terminal.written) and time.monotonic() < until:
        before = len(terminal.written)
        terminal.screen_after(QUIET_SECONDS)
