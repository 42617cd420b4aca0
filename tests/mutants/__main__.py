"""Changes one thing at a time in a copy of the tree, and tells which changes no test notices.

The tests of a change are those that reach its line, in whatever process; which those are is recorded once and kept
until the code changes. Recording takes at most RECORDING of the minutes; the next run continues it, and until it is
complete a change that no recorded test notices is undecided. A change that no test notices has survived: write the test
that fails with it, and those of its neighbors, or add it to tests/mutants/explained.toml with the reason why nobody
could notice it.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from tests.mutants.areas import AREAS, Area, files
from tests.mutants.changes import Change, changes, sample
from tests.mutants.copies import Copy

ROOT = Path(__file__).parent.parent.parent
EXPLAINED = Path(__file__).with_name("explained.toml")
KEPT = Path(tempfile.gettempdir(), f"mutants-of-sqlshell-{os.getuid()}")

_T = TypeVar("_T")
Told = dict[str, dict[str, Any]]

SECONDS = 120
"""What the tests of one change may take, by the time that they took when nothing was changed."""

RECORDING = 0.6
"""The share of a run's time after which no other file of tests is recorded."""


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def explained() -> dict[tuple[str, str, str], str]:
    listed = tomllib.loads(EXPLAINED.read_text()).get("survivor", [])
    return {(one["where"], *one["change"]): one["why"] for one in listed}


def content(paths: Iterable[Path]) -> bytes:
    whole = hashlib.sha256()
    for path in sorted(paths):
        whole.update(f"{path.relative_to(ROOT)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return whole.digest()


class Recorded:
    """What each test of an area reaches of the package. Kept by file of tests, for as long as the code is the same."""

    def __init__(self, area: Area) -> None:
        package = sorted((ROOT / "sqlshell").rglob("*.py"))
        self._code = [path.relative_to(ROOT) for path in package]
        code = content([*package, *self._helpers()])
        # Areas share files of tests, so that each is recorded once for all of them.
        self._kept = {
            path.relative_to(ROOT).as_posix(): KEPT / hashlib.sha256(code + content([path])).hexdigest()
            for path in files(ROOT, area.tests, "test_*.py")
        }

    @staticmethod
    def _helpers() -> Iterator[Path]:
        for path in (ROOT / "tests").rglob("*.py"):
            if not path.name.startswith("test_") and path.parent.name not in {"mutants", "benchmarks", "hostile"}:
                yield path

    def missing(self) -> list[str]:
        """The files of tests that are not recorded, those with few slow tests first."""
        missing = (file for file, kept in self._kept.items() if not kept.exists())
        return sorted(missing, key=lambda file: ((ROOT / file).read_text().count("pytest.mark.slow"), file))

    def tests(self, copies: list[Copy], until: float) -> Told:
        """What is recorded; files that are not are recorded before, until then on the monotonic clock."""
        KEPT.mkdir(exist_ok=True)
        if missing := self.missing():
            say(f"recording what {len(missing)} files of tests reach …")
            # Each copy takes the next file, whenever it has done one.
            left = iter(missing)

            def work(copy: Copy) -> None:
                with copy.recording(self._code):
                    while time.monotonic() < until and (file := next(left, None)) is not None:
                        self._record(file, copy.collect(file, minutes=10))

            at_once(copies, work, copies)
        every: Told = {}
        for kept in filter(Path.exists, self._kept.values()):
            every |= json.loads(kept.read_text())
        return {name: test for name, test in every.items() if test["outcome"] == "passed"}

    def _record(self, file: str, told: Told | None) -> None:
        if told is None:
            say(f"  {file}: not recorded, as pytest came to no end; another run tries again")
            return
        if failed := [name for name, test in told.items() if test["outcome"] == "failed"]:
            say(f"  {file}: left out, as they fail without a change: {', '.join(failed)}")
        self._kept[file].write_text(json.dumps(told))


def at_once(copies: list[Copy], work: Callable[[_T], None], given: Iterable[_T]) -> None:
    with ThreadPoolExecutor(len(copies)) as pool:
        try:
            list(pool.map(work, given))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for copy in copies:
                copy.stop()
            raise


def reaching(change: Change, tests: Told) -> list[str]:
    """The tests of a change, cheap ones first. What runs when modules are imported belongs to no test: those that run
    a function of the file come first then, and all others after them."""
    if change.in_function:
        lines = set(change.lines)
        found = [name for name, test in tests.items() if not lines.isdisjoint(test["lines"].get(change.file, ()))]
    else:
        found = list(tests)
    found.sort(key=lambda name: (change.file not in tests[name]["lines"], tests[name]["seconds"]))
    spent = itertools.accumulate(tests[name]["seconds"] for name in found)
    return [name for name, seconds in zip(found, spent, strict=True) if seconds <= SECONDS]


def unreached(root: Path, code: Iterable[Path], tests: Told) -> Iterator[str]:
    """Lines in functions that no test runs, as far as something on them could be changed."""
    reached: dict[str, set[int]] = {}
    for test in tests.values():
        for file, lines in test["lines"].items():
            reached.setdefault(file, set()).update(lines)
    seen: dict[tuple[str, int], Change] = {}
    for change in changes(root, code):
        if change.in_function and reached.get(change.file, set()).isdisjoint(change.lines):
            seen.setdefault((change.file, change.lines.start), change)
    for (file, line), change in sorted(seen.items(), key=lambda item: item[0]):
        yield f"{file}:{line}: {change.before}"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--area", choices=AREAS, required=True, help="what is changed (tests/mutants/areas.py)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (1)")
    parser.add_argument("--count", type=int, default=25, help="how many changes (25)")
    parser.add_argument("--minutes", type=float, default=10, help="after which no other change is begun (10)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at the same time (one a core)")
    parser.add_argument("--only", default="", metavar="TEXT", help="changes whose file and function hold TEXT")
    parser.add_argument("--unreached", action="store_true", help="list the lines that no test of the area reaches")
    asked = parser.parse_args()
    if sys.version_info < (3, 12):
        parser.error("Python 3.12 or later is required")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    return run(asked)


def run(asked: argparse.Namespace) -> int:
    area = AREAS[asked.area]
    code = files(ROOT, area.code, "*.py")
    room = Path(tempfile.mkdtemp(prefix="mutants-"))
    copies: list[Copy] = []
    began = time.monotonic()
    end = began + asked.minutes * 60
    try:
        copies += [Copy(ROOT, room / str(number)) for number in range(asked.jobs)]
        recorded = Recorded(area)
        tests = recorded.tests(copies, began + (end - began) * (1 if asked.unreached else RECORDING))
        missing = recorded.missing()
        if missing:
            say(f"{len(missing)} files of tests are not recorded yet; another run records more of them")
        if asked.unreached:
            for line in unreached(ROOT, code, tests):
                say(line)
            return 0
        every = [change for change in changes(ROOT, code) if asked.only in f"{change.file} {change.scope}"]
        return report(asked, sample(every, asked.seed, asked.count), tests, copies, end, complete=not missing)
    finally:
        for copy in copies:
            copy.stop()
        shutil.rmtree(room, ignore_errors=True)


def report(
    asked: argparse.Namespace, chosen: list[Change], tests: Told, copies: list[Copy], end: float, *, complete: bool
) -> int:
    known, counted = explained(), Counter[str]()
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)
    speaking = threading.Lock()

    def become(change: Change) -> None:
        if change.content in known:
            came, why = "explained", known[change.content]
        elif not (names := reaching(change, tests)):
            came, why = "unreached", ""
        elif time.monotonic() > end:
            came, why = "not begun", ""
        else:
            copy = free.get()
            try:
                # A busy machine makes a run longer, and gives it no more time of the processors.
                seconds = 60 + 4 * sum(tests[name]["seconds"] for name in names)
                why = copy.killer(change, names, seconds)
                came = "killed" if why else "survived"
                why = why or f"{len(names)} tests"
            finally:
                free.put(copy)
        if came in {"survived", "unreached"} and not complete:
            came = "undecided"
        with speaking:
            counted[came] += 1
            say(f"{came:9} {change.file}:{change.lines.start} {change.scope}: {change.kind} ({why})")
            if came not in {"killed", "not begun"}:
                say(f"    - {change.before}\n    + {change.after}")

    at_once(copies, become, chosen)
    judged = counted["killed"] + counted["survived"] + counted["unreached"]
    say(
        f"{asked.area}, seed {asked.seed}: {counted['killed']} of {judged} killed"
        f" ({100 * counted['killed'] / judged if judged else 100:.0f} %), {counted['survived']} survived,"
        f" {counted['unreached']} unreached, {counted['explained']} explained, {counted['undecided']} undecided,"
        f" {counted['not begun']} not begun"
    )
    return 1 if counted["survived"] or counted["unreached"] else 0


if __name__ == "__main__":
    sys.exit(main())
