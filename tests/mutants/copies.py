"""A copy of the tree with a separate interpreter, so that all processes of a test run the copy's code."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
import venv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.mutants.changes import Change
from tests.mutants.reached import INDEX, MAP

LEFT_OUT = (".git", ".venv", "__pycache__", ".*_cache", "*.egg-info", "*.duckdb", "build", "dist")

STARTS = """{root}
import os, sys; os.path.exists(os.path.join(sys.prefix, {map!r})) and __import__("tests.mutants.reached")
import site; site.addsitedir({packages!r})
"""
"""Of an interpreter: the copy comes before the packages, among which the checkout may be installed."""

FIRST = 60
"""Tests of a change among which the first ones to run are looked for."""

MARKERS = "not (conformance or fuzz)"
"""The tests that pytest runs unless it is told otherwise."""

ENDED = "the time ended"

IDLE = 60
"""Seconds in which a run that uses no processor and starts no process counts as hung."""

LOOKS = 2
"""Seconds between two looks at what a run uses."""


class Copy:
    def __init__(self, root: Path, place: Path) -> None:
        self.root = place.resolve()
        shutil.copytree(root, self.root, ignore=shutil.ignore_patterns(*LEFT_OUT))
        self._prefix = self.root / ".venv"
        venv.create(self._prefix, symlinks=True)
        self._python = self._prefix / "bin" / "python"
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        packages = sysconfig.get_path("purelib")
        (self._prefix / "lib" / version / "site-packages" / "copy.pth").write_text(
            STARTS.format(root=self.root, map=MAP, packages=packages)
        )
        for script in Path(sys.executable).parent.iterdir():
            if (
                script.is_file()
                and not script.is_symlink()
                and not (own := self._python.with_name(script.name)).exists()
            ):
                shutil.copy(script, own)
        self._temporary = self.root / ".temporary"
        self._written = 0
        self._stopped = False
        self._forks: subprocess.Popen[bytes] | None = None

    @contextlib.contextmanager
    def recording(self, code: Iterable[Path]) -> Iterator[None]:
        """Within it, every interpreter of the copy tells which lines of the files it reaches."""
        offsets, at = {}, 1
        for file in code:
            offsets[str(self.root / file)] = at
            at += len((self.root / file).read_bytes().splitlines()) + 2
        (self._prefix / INDEX).write_text(json.dumps(offsets))
        (self._prefix / MAP).write_bytes(bytes(at))
        self._end_forks()
        try:
            yield
        finally:
            self._end_forks()
            (self._prefix / MAP).unlink()

    def collect(self, file: str, minutes: float) -> dict[str, dict[str, Any]] | None:
        """What each test of a file reaches: outcome, seconds, lines by file; None where pytest came to no end.

        `minutes` are those of the processors, as in killer() the seconds are.
        """
        code, told = self._pytest([file], minutes * 60)
        if code not in {0, 1, 5}:
            return None
        for test in told.values():
            reached = test.get("lines", {})
            test["lines"] = {Path(name).relative_to(self.root).as_posix(): lines for name, lines in reached.items()}
        return told

    def killer(self, change: Change, tests: Sequence[str], seconds: float) -> str:
        """The first of the tests that fails with the change, or ENDED, or ""."""
        path = self.root / change.file
        held = path.read_bytes()
        self._write(path, change.made(held))
        try:
            for some in _stages(tests):
                chosen = self.root / ".chosen"
                chosen.write_text(json.dumps(some))
                files = list(dict.fromkeys(_file(test) for test in some))
                code, told = self._pytest(files, seconds, "-x", chosen=chosen)
                if code is None:
                    return ENDED
                failed = next((name for name, test in told.items() if test["outcome"] == "failed"), "")
                if failed or code != 0:
                    return failed or f"pytest's exit code {code}"
        finally:
            self._write(path, held)
        return ""

    def _write(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        # Compiled files are told from others by size and whole seconds.
        self._written += 1
        os.utime(path, (self._written, self._written))

    def _pytest(
        self, files: Sequence[str], seconds: float, *options: str, chosen: Path | None = None
    ) -> tuple[int | None, dict[str, dict[str, Any]]]:
        if self._stopped:
            raise InterruptedError("no more tests are run")
        told = self.root / ".told"
        told.unlink(missing_ok=True)
        self._temporary.mkdir(exist_ok=True)
        environment = os.environ | {"MUTANTS_TOLD": str(told), "TMPDIR": str(self._temporary)}
        environment |= {"PATH": f"{self._python.parent}{os.pathsep}{os.environ['PATH']}"}
        environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        if chosen is not None:
            environment["MUTANTS_CHOSEN"] = str(chosen)
        argv = ["-q", "-p", "tests.mutants.plugin", "-p", "no:cacheprovider", "-o", "addopts=", "-m", MARKERS]
        argv += [*options, "--", *files]
        code = self._forked([argv, environment, str(self.root / ".log")], seconds)
        self._end()
        shutil.rmtree(self._temporary, ignore_errors=True)
        if self._stopped:
            raise InterruptedError("the tests were ended")
        return code, json.loads(told.read_text()) if told.exists() else {}

    def _forked(self, run: object, seconds: float) -> int | None:
        """The exit code of a run of pytest; None where it took longer and was ended."""
        forks = self._forks
        if forks is None or forks.poll() is not None:
            forks = self._forks = subprocess.Popen(
                [str(self._python), "-m", "tests.mutants.forks"],
                cwd=self.root,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        assert forks.stdin is not None
        assert forks.stdout is not None
        forks.stdin.write(json.dumps(run).encode() + b"\n")
        forks.stdin.flush()
        child = int(forks.stdout.readline())
        ended, late = threading.Event(), threading.Event()

        def watch() -> None:
            used: dict[int, float] = {}
            before, changed = (0, 0.0), time.monotonic()
            while not ended.wait(LOOKS):
                used |= {pid: spent for pid, spent in self._running() if pid != forks.pid}
                # ps shows whole seconds, and a busy machine gives a short process less than one.
                if (progress := (len(used), sum(used.values()))) > before:
                    before, changed = progress, time.monotonic()
                if progress[1] > seconds or time.monotonic() - changed > IDLE:
                    late.set()
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(child, signal.SIGKILL)
                    return

        watching = threading.Thread(target=watch)
        watching.start()
        code = int(forks.stdout.readline() or -1)
        ended.set()
        watching.join()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        return None if late.is_set() else code

    def stop(self) -> None:
        self._stopped = True
        self._end_forks()
        self._end()

    def _end_forks(self) -> None:
        if self._forks is not None:
            self._forks.kill()
            self._forks.communicate()
            self._forks = None

    def _running(self) -> Iterator[tuple[int, float]]:
        """The processes that run the copy's interpreter, each with the seconds of a processor that it used."""
        columns = ["ps", "-A", "-o", "pid=,time=,args="]
        for line in subprocess.run(columns, capture_output=True, text=True, check=True).stdout.splitlines():
            number, spent, argv = line.split(None, 2)
            if str(self._python) in argv:
                yield int(number), _seconds(spent)

    def _end(self) -> None:
        """End what still runs the copy's interpreter."""
        for number, _ in self._running():
            if self._forks is None or number != self._forks.pid:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(number, signal.SIGKILL)


def _seconds(spent: str) -> float:
    """Of a time as ps prints it: 1-02:03:04 on Linux, 12:34.56 on macOS."""
    days, _, clock = spent.rpartition("-")
    seconds = 0.0
    for part in clock.split(":"):
        seconds = seconds * 60 + float(part)
    return int(days or 0) * 86_400 + seconds


def _file(test: str) -> str:
    return test.partition("::")[0]


def _stages(tests: Sequence[str]) -> Iterator[list[str]]:
    """First the tests of the file that has the most of them, which notice most changes; then the others."""
    ((most, _),) = Counter(map(_file, tests[:FIRST])).most_common(1)
    yield [test for test in tests[:FIRST] if _file(test) == most]
    if others := [test for number, test in enumerate(tests) if number >= FIRST or _file(test) != most]:
        yield others
