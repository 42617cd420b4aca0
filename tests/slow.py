"""The tests that README's command leaves out for their time: `python -m tests.slow` measures all and writes slow.txt.

CI runs them in a step of their own (`pytest -m slow`). A test that takes longer than SECONDS on a quiet machine, its
fixtures included, is one of them, whatever it tests: the others show what a change broke while it is being made. It
stays one until it takes less than half of SECONDS.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import pytest

LIST = Path(__file__).with_name("slow.txt")
SECONDS = 0.6


def slow_tests() -> frozenset[str]:
    """The ids of the tests that are slow."""
    return frozenset(LIST.read_text(encoding="utf-8").splitlines()) if LIST.exists() else frozenset()


class Durations:
    """A plugin that adds up the seconds of each test."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration  # type: ignore[assignment]


def main() -> int:
    durations = Durations()
    # No more processes than cores, so that a test has one for itself.
    code = pytest.main(
        ["-q", "-n", str(os.cpu_count() or 1), "-m", "not (conformance or fuzz or long)"], plugins=[durations]
    )
    # A test near the limit would be listed on one day and not on the next.
    listed = slow_tests()
    found = sorted(
        name for name, seconds in durations.seconds.items() if seconds > (SECONDS / 2 if name in listed else SECONDS)
    )
    LIST.write_text("".join(f"{name}\n" for name in found), encoding="utf-8")
    total, left_out = sum(durations.seconds.values()), sum(durations.seconds[name] for name in found)
    sys.stdout.write(f"{len(found):,} of {len(durations.seconds):,} tests are slow: {left_out:.0f} of {total:.0f} s\n")
    return int(code)


if __name__ == "__main__":
    sys.exit(main())
