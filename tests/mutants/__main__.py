"""Changes one thing at a time in a copy of the tree, and tells which changes no test notices.

The tests of an area are those of README's command in its directories. Coverage says which of them run the line of a
change; then come those of the whole program, and all of the area, which may run it in other processes. A change with
which all pass has survived: write the test that fails with it, and those of its neighbors, or add it to
tests/mutants/explained.toml with the reason why nobody could notice it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import venv
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from coverage import CoverageData

from tests.mutants.changes import Change, changes, sample

ROOT = Path(__file__).parent.parent.parent
EXPLAINED = Path(__file__).with_name("explained.toml")

AREAS = {
    "client": (("client",), ("client", "dbapi", "faults")),
    "sql": (("sql",), ("sql", "shell", "commands")),
    "output": (("output",), ("output", "commands", "client")),
    "shell": (("shell",), ("shell", "commands", "terminal")),
    "service": (("service",), ("service", "sql")),
    "launch": (("launch", "config", "runtime", "dbapi", "sqlalchemy"), ("dbapi", "commands")),
}
"""The packages of each area, and the directories of its tests."""

LEFT_OUT = (".git", ".venv", "__pycache__", ".*_cache", "*.egg-info", "*.duckdb", "build", "dist")
SECONDS = 1200
"""How long the tests of one change may take: a change that makes them hang is noticed. Coverage takes longer."""


def explained() -> dict[tuple[str, str, str], str]:
    listed = tomllib.loads(EXPLAINED.read_text()).get("survivor", [])
    return {(one["where"], *one["change"]): one["why"] for one in listed}


class Copy:
    """A copy of the tree with an interpreter of its own, so that all processes of a test run the copy's code."""

    def __init__(self, place: Path) -> None:
        self.root = place.resolve()
        shutil.copytree(ROOT, self.root, ignore=shutil.ignore_patterns(*LEFT_OUT))
        prefix = self.root / ".venv"
        venv.create(prefix, symlinks=True)
        self._python = prefix / "bin" / "python"
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        packages = sysconfig.get_path("purelib")
        # The copy comes before the packages, among which the checkout is installed.
        start = f"{self.root}\nimport site; site.addsitedir({packages!r})\n"
        (prefix / "lib" / version / "site-packages" / "copy.pth").write_text(start)
        program = prefix / "bin" / "sqlshell"
        program.write_text(f"#!{self._python}\nfrom sqlshell.__main__ import main\nmain()\n")
        program.chmod(0o755)

    def reached(self, tests: Sequence[str]) -> CoverageData:
        """Run the tests, and return which of them run which line in their own process."""
        data = self.root / "reached"
        settings = self.root / "reached.ini"
        settings.write_text(f"[run]\nsource = sqlshell\ndata_file = {data}\ndynamic_context = test_function\n")
        if failed := self.failure(tests, "coverage", "run", f"--rcfile={settings}", "-m", seconds=4 * SECONDS):
            sys.exit(f"without a change: {failed} fails")
        found = CoverageData(str(data))
        found.read()
        return found

    def notices(self, change: Change, *stages: Sequence[str]) -> str:
        """The first test that fails with the change, "" if none does."""
        path = self.root / change.file
        source = path.read_bytes()
        path.write_bytes(change.made(source))
        try:
            return next(filter(None, (self.failure(tests) for tests in stages if tests)), "")
        finally:
            path.write_bytes(source)

    def failure(self, tests: Sequence[str], *runner: str, seconds: float = SECONDS) -> str:
        """The first of the tests that fails, "" if none does."""
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | {"TMPDIR": folder, "PYTHONDONTWRITEBYTECODE": "1"}
            process = subprocess.Popen(
                [self._python, "-m", *runner, "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests],
                cwd=self.root,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
            try:
                written, _ = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                return "the time is over"
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", written, re.M)
        return failed[0] if failed else "" if process.returncode == 0 else f"exit code {process.returncode}"


def names_of(contexts: Iterable[str]) -> list[str]:
    """The tests with these contexts of coverage, `tests.sql.test_x.test_y`, as pytest names them."""
    parts = {context.rpartition(".") for context in contexts if context.startswith("tests.")}
    return sorted(f"{module.replace('.', '/')}.py::{name}" for module, _, name in parts if name.startswith("test_"))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--area", choices=AREAS, required=True, help="what is changed")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (1)")
    parser.add_argument("--count", type=int, default=25, help="how many changes (25)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at the same time (one a core)")
    parser.add_argument("--only", default="", metavar="TEXT", help="changes whose file and function hold TEXT")
    asked = parser.parse_args()
    packages, folders = AREAS[asked.area]
    code = [path for package in packages for path in (ROOT / "sqlshell" / package).rglob("*.py")]
    every = [change for change in changes(ROOT, code) if asked.only in f"{change.file} {change.scope}"]
    whole = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").glob("test_*.py"))
    with tempfile.TemporaryDirectory(prefix="mutants-") as room:
        copies = [Copy(Path(room, str(number))) for number in range(asked.jobs)]
        reached = copies[0].reached([f"tests/{name}" for name in folders])

        def stages(change: Change) -> Sequence[Sequence[str]]:
            by_line = reached.contexts_by_lineno(str(copies[0].root / change.file))
            names = names_of(name for line in change.lines for name in by_line.get(line, ()))
            return names, whole, [f"tests/{name}" for name in folders]

        return report(sample(every, asked.seed, asked.count), copies, stages)


def report(
    chosen: Sequence[Change], copies: Sequence[Copy], stages: Callable[[Change], Sequence[Sequence[str]]]
) -> int:
    """Print what became of each change; returns 1 if one survived. `stages` are the tests that are tried in turn."""
    known, counted = explained(), Counter[str]()
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def work(change: Change) -> None:
        if change.content in known:
            outcome, why = "explained", known[change.content]
        else:
            copy = free.get()
            why = copy.notices(change, *stages(change))
            free.put(copy)
            outcome = "killed" if why else "survived"
        counted[outcome] += 1
        line = f"{outcome:9} {change.file}:{change.lines.start} {change.scope}: {change.kind} ({why})\n"
        sys.stdout.write(line if outcome != "survived" else f"{line}    - {change.before}\n    + {change.after}\n")
        sys.stdout.flush()

    with ThreadPoolExecutor(len(copies)) as pool:
        list(pool.map(work, chosen))
    judged = counted["killed"] + counted["survived"]
    sys.stdout.write(f"{counted['killed']} of {judged} killed, {counted['explained']} explained\n")
    return 1 if counted["survived"] else 0


if __name__ == "__main__":
    sys.exit(main())
