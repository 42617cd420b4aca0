"""The time that a wait still takes, estimated from the share of it that is done."""

from __future__ import annotations

from sqlshell.shell.session import Running

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
