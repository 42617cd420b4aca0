"""A copy of the tree with an interpreter of its own, so that whatever a test starts runs the copy's code."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterable, Sequence
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

ENDED = "the time ended"


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

    def collect(self, code: Iterable[Path], tests: Sequence[str], minutes: float) -> dict[str, dict[str, Any]]:
        """What each test of the files reaches of the code: outcome, seconds, lines by file."""
        offsets, at = {}, 1
        for file in code:
            offsets[str(self.root / file)] = at
            at += len((self.root / file).read_bytes().splitlines()) + 2
        (self._prefix / INDEX).write_text(json.dumps(offsets))
        (self._prefix / MAP).write_bytes(bytes(at))
        try:
            _, told = self._pytest(tests, minutes * 60)
        finally:
            (self._prefix / MAP).unlink()
        for test in told.values():
            reached = test.get("lines", {})
            test["lines"] = {Path(file).relative_to(self.root).as_posix(): lines for file, lines in reached.items()}
        return told

    def killer(self, change: Change, tests: Sequence[str], seconds: float) -> str:
        """The first of the tests that fails with the change, or ENDED, or ""."""
        path = self.root / change.file
        held = path.read_bytes()
        self._write(path, change.made(held))
        try:
            chosen = self.root / ".chosen"
            chosen.write_text(json.dumps(tests))
            code, told = self._pytest(
                list(dict.fromkeys(test.partition("::")[0] for test in tests)), seconds, "-x", chosen=chosen
            )
        finally:
            self._write(path, held)
        if code is None:
            return ENDED
        failed = next((name for name, test in told.items() if test["outcome"] == "failed"), "")
        return failed or ("" if code == 0 else f"pytest's exit code {code}")

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
        if chosen is not None:
            environment["MUTANTS_CHOSEN"] = str(chosen)
        pytest = [str(self._python), "-m", "pytest", "-q", "-p", "tests.mutants.plugin", "-p", "no:cacheprovider"]
        with (self.root / ".log").open("wb") as log:
            process = subprocess.Popen(
                [*pytest, "-p", "no:xdist", *options, "--", *files],
                cwd=self.root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            code = None
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                pass
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                self._end()
        shutil.rmtree(self._temporary, ignore_errors=True)
        return code, json.loads(told.read_text()) if told.exists() else {}

    def stop(self) -> None:
        self._stopped = True
        self._end()

    def _end(self) -> None:
        """End what still runs the copy's interpreter."""
        running = subprocess.run(["ps", "-A", "-o", "pid=,args="], capture_output=True, text=True, check=True).stdout
        for line in running.splitlines():
            number, _, argv = line.strip().partition(" ")
            if str(self._python) in argv:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(int(number), signal.SIGKILL)
