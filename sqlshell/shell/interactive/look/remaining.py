"""The time that a wait still takes, estimated from the share of it that is done."""

from __future__ import annotations

from sqlshell.shell.session import Running

LATE = "longer than estimated"
LEAST_SHARE, LEAST_SECONDS = 0.03, 2.0
"""What has been done before there is an estimate."""


class Remaining:
    """Estimates the end when the share changes, and counts down to it meanwhile."""

    def __init__(self) -> None:
        self._began = 0.0
        self._share = 0.0
        self._end = 0.0
        self._width = 0

    def text(self, running: Running, now: float) -> str:
        """`about 12 s left`, as wide as before, so that nothing beside it moves, and LATE when that is over.

        "" before there is an estimate.
        """
        began = running.fetching if running.fetched_rows and running.total else running.began
        share = running.shown_share or 0.0
        if began != self._began or share < self._share:
            self._began, self._share, self._end, self._width = began, 0.0, 0.0, 0
        passed = now - began
        if share > self._share and share >= LEAST_SHARE and passed >= LEAST_SECONDS:
            end = now + passed * (1 - min(1.0, share)) / share
            # Shares are coarse: half of the change at a time.
            self._share, self._end = share, (self._end + end) / 2 if self._end > now else end
        left = self._end - now
        if not self._end or share >= 1:
            return ""
        text = f"about {_rounded(left)} left" if left > 0 else LATE
        self._width = max(self._width, len(text))
        return text.ljust(self._width)


def _rounded(seconds: float) -> str:
    if seconds < 60:
        step = 1 if seconds <= 10 else 5
        return f"{min(60, step * -int(-seconds // step))} s"
    if seconds < 3600:
        return f"{round(seconds / 60)} min"
    return f"{min(seconds / 3600, 999):.0f} h"
