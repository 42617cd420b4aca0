"""python -m tests.soak [--runs N] [--busy N] [--load N] [--minutes M] [-- ARGUMENT...]: how often the suite fails.

Runs pytest again and again, the last runs beside processes that keep the processors busy, and counts the failures of
each test. The exit code is 1 if anything failed, and 2 if there is no test to run, such as for a path that is wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

BUSY = "while True: pass"

MESSAGE_CHARACTERS = 3_000
"""How much is shown of the message of a test that failed."""

NO_TESTS = frozenset({pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED})
"""pytest's exit codes that every run would have."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak", description="Run the suite many times, and count how often each test failed."
    )
    parser.add_argument("--runs", type=int, default=20, metavar="N", help="number of runs  [default: %(default)s]")
    parser.add_argument(
        "--busy",
        type=int,
        default=10,
        metavar="N",
        help="how many runs have a busy machine  [default: %(default)s]",
    )
    parser.add_argument(
        "--load", type=int, default=4, metavar="N", help="processes that keep it busy  [default: %(default)s]"
    )
    parser.add_argument("--minutes", type=float, metavar="M", help="begin no run after so many minutes")
    parser.add_argument(
        "arguments",
        nargs="*",
        default=["-n", "auto", "--dist", "worksteal"],
        metavar="ARGUMENT",
        help="arguments of pytest, after --  [default: those of README's command]",
    )
    asked = parser.parse_args(argv)
    until = time.monotonic() + asked.minutes * 60 if asked.minutes is not None else None
    failures: Counter[str] = Counter()
    wrong = done = 0
    for number in range(asked.runs):
        if until is not None and time.monotonic() > until:
            sys.stdout.write(f"the time is over: {asked.runs - number} runs are left out\n")
            break
        busy = number >= asked.runs - asked.busy
        with _load(asked.load if busy else 0):
            began = time.monotonic()
            code, failed, written = run(asked.arguments)
        if code in NO_TESTS:
            sys.stderr.write(f"{written}\npytest ran no test; check the arguments after --\n")
            return 2
        done += 1
        wrong += code != 0
        failures.update(failed.keys())
        where = f"beside a load of {asked.load}" if busy else "alone"
        sys.stdout.write(
            f"run {number + 1} {where}: exit code {code}, {len(failed)} failed, {time.monotonic() - began:.0f} s\n"
        )
        for name, message in failed.items():
            sys.stdout.write(f"    {name}\n{textwrap.indent(message[:MESSAGE_CHARACTERS], ' ' * 8)}\n")
        sys.stdout.flush()
    for name, count in failures.most_common():
        sys.stdout.write(f"{count:4} of {done}  {name}\n")
    sys.stdout.write(f"{wrong} of {done} runs failed\n")
    return 1 if wrong else 0


def run(arguments: Sequence[str]) -> tuple[int, dict[str, str], str]:
    """pytest's exit code, the tests that failed with their messages, and what it wrote."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *arguments]
        ended = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        cases = ElementTree.parse(report).iter("testcase") if report.exists() else ()
        failed = {
            f"{case.get('classname')}::{case.get('name')}": wrong.get("message", "")
            for case in cases
            for wrong in (*case.iter("failure"), *case.iter("error"))
        }
    return ended.returncode, failed, ended.stdout.strip()


@contextlib.contextmanager
def _load(processes: int) -> Iterator[None]:
    running = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
