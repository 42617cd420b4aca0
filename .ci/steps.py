"""Check a clean clone: `.ci/run [--python VERSION]... [STEP...]`, by default all steps.

The step `readme` runs README's test command with each Python that is given, such as 3.12, by default the oldest and the
newest on this machine that sqlshell supports. The other steps use the newest of them, in an environment that has all
that a test may use (1 GB; with PostgreSQL's server, which apt installs where there is none, as root). Each step can be
a job of its own.

Nothing is left out for time: a step that did not run is a failure, and so is a test of an engine that is skipped
although the engine is installed. The last lines say how each step ended, which tests were skipped or run again, and
what could not be installed or audited.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, STDOUT
from typing import BinaryIO

ROOT = Path(__file__).resolve().parent.parent
SUPPORTED = ("3.11", "3.12", "3.13", "3.14")

STEPS = ("lint", "readme", "slow", "engines", "conformance", "fuzz", "audit")

LINT = ("ruff check .", "ruff format --check .", "mypy", "lint-imports")

# In one command with the rest, pip finds no versions of what moto needs that fit together.
PACKAGES = ("-e .[test,cluster,postgresql,spark] pysail", "s3fs moto[s3] flask flask-cors")

APT = ("apt-get", "-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=10")

TOLD = re.compile(r"(?:RUN AGAIN|SKIPPED|Skipped) .*|.*\bnot audited\b.*")
"""Lines that are repeated at the end."""

SECONDS = 30 * 60
"""The longest time of a command: one that hangs does not keep the others from being told."""


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Run:
    """How the steps ended, by their names, and what else is to be told. `room` is a folder for all that they write."""

    def __init__(self, room: Path, expected: Sequence[str]) -> None:
        self.room = room
        self.results = dict.fromkeys(expected, "did not run")
        self.notes: list[str] = []
        self.home, self.temporary = room / "home", room / "tmp"
        self.home.mkdir()
        self.temporary.mkdir()

    def step(self, name: str, folder: Path, commands: Sequence[Sequence[str]], extra: Mapping[str, str] = {}) -> None:
        """Run commands one after the other, whatever fails, and show what they wrote."""
        say(f"== {name} …")
        began = time.monotonic()
        log = self.room / f"{name}.log"
        with log.open("wb") as file:
            codes = [self._run(command, folder, file, extra) for command in commands]
        written = log.read_text(errors="replace")
        self.results[name] = f"{'FAILED' if any(codes) else 'ok'}, {time.monotonic() - began:.0f} s"
        self.notes += [f"{name}: {line}" for line in TOLD.findall(written)]
        say(f"{written}== {name}: {self.results[name]}")

    def _run(self, command: Sequence[str], folder: Path, log: BinaryIO, extra: Mapping[str, str]) -> int:
        environment = {**self._environment(), **extra}
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=DEVNULL, stdout=log, stderr=STDOUT, start_new_session=True
        )
        try:
            return process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            log.write(f"\n{' '.join(command)} did not end in {SECONDS // 60} minutes\n".encode())
            return 1
        finally:
            # Also where this run itself is ended.
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _environment(self) -> dict[str, str]:
        """This environment with folders of the run, but for what pip keeps and is told in the home.

        pip asks rustc for its version, which makes a folder in the home.
        """
        home = Path.home()
        given = {"PIP_CACHE_DIR": str(home / ".cache" / "pip"), "RUSTUP_HOME": str(home / ".rustup")} | dict(os.environ)
        for place in (home / ".config" / "pip" / "pip.conf", home / ".pip" / "pip.conf"):
            if place.exists():
                given.setdefault("PIP_CONFIG_FILE", str(place))
        return given | {"HOME": str(self.home), "TMPDIR": str(self.temporary)}

    def left_behind(self) -> list[str]:
        """What the steps left in the home, in the folder for temporary files, in the checkouts, or running."""
        left = [str(path) for path in self.home.iterdir()]
        left += [str(path) for path in self.temporary.iterdir() if not path.name.startswith("pytest-of-")]
        for clone in self.room.glob("clone-*"):
            status = subprocess.run(
                ["git", "status", "--short"], cwd=clone, stdout=subprocess.PIPE, text=True, check=True
            )
            left += [f"{clone.name}: {line}" for line in status.stdout.splitlines()]
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (process / "cwd").readlink().is_relative_to(self.room):
                    left.append(f"process {process.name}: {(process / 'cmdline').read_text()!r}")
                    os.kill(int(process.name), signal.SIGKILL)
                    while (process / "cwd").exists():
                        time.sleep(0.01)
        return left

    def tell(self) -> bool:
        """Print the last lines; whether all is well."""
        say("\nThe last lines of .ci/run")
        for note in dict.fromkeys(self.notes):
            say(f"note: {note}")
        for name, result in self.results.items():
            say(f"{name}: {result}")
        return all(result.startswith("ok") for result in self.results.values())


def pythons(versions: Sequence[str]) -> dict[str, str]:
    """The Pythons of these versions, by default the oldest and the newest."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv", "versions")
    found: dict[str, str] = {}
    for version in SUPPORTED:
        places = [*sorted(map(str, root.glob(f"{version}.*/bin/python{version}"))), shutil.which(f"python{version}")]
        for place in filter(None, places):
            if not subprocess.run([place, "-c", "import ensurepip, venv"], stderr=DEVNULL, check=False).returncode:
                found[version] = place
                break
    if not found or (missing := [version for version in versions if version not in found]):
        sys.exit(f"no Python {' '.join(missing) if found else '3.11'} with venv; found: {', '.join(found)}")
    chosen = sorted(versions or {min(found), max(found)}, key=SUPPORTED.index)
    return {version: found[version] for version in chosen}


def readme_command() -> str:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"<!--\s*newcomer:\s*test\s*-->\s*```\w*\n(.*?)\n```", text, re.S)
    assert found is not None, "README.md has no test command"
    return found[1]


def clone(room: Path, name: str) -> Path:
    folder = room / f"clone-{name}"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
    return folder


def has_postgresql() -> bool:
    return bool(shutil.which("initdb") or list(Path("/usr/lib/postgresql").glob("*/bin/initdb")))


def install_postgresql(run: Run) -> bool:
    """Whether there is PostgreSQL's server, which is installed if it can be."""
    if not has_postgresql() and os.geteuid() == 0 and shutil.which("apt-get"):
        for command in (("update",), ("install", "-y", "--no-install-recommends", "postgresql")):
            environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            subprocess.run([*APT, *command], env=environment, stdin=DEVNULL, check=False, timeout=SECONDS)
    if not has_postgresql():
        run.notes.append("PostgreSQL's server cannot be installed, so that its tests are skipped")
        return False
    return True


def check(run: Run, chosen: Mapping[str, str], steps: Sequence[str]) -> None:
    """Run the steps, each with the environment and the servers that it needs."""
    folder = clone(run.room, "all-packages")
    programs = folder / ".venv" / "bin"
    if set(steps) != {"readme"}:
        *_, python = chosen.values()
        installs = [[str(programs / "pip"), "install", "-q", *packages.split()] for packages in PACKAGES]
        run.step("install", folder, [[python, "-m", "venv", ".venv"], *installs])
    if "lint" in steps:
        run.step("lint", folder, [[str(programs / name), *rest] for name, *rest in map(str.split, LINT)])
    if "readme" in steps:
        # Tests wait about as much as they work, so the Pythons run side by side.
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda item: readme(run, *item), chosen.items()))
    tests = [str(programs / "python"), "-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal", "-m"]
    for name in ("slow", "conformance", "fuzz"):
        if name in steps:
            run.step(name, folder, [[*tests, f"{name} and not engines"]])
    if "engines" in steps:
        required = "spark,cluster,s3,postgresql" if install_postgresql(run) else "spark,cluster,s3"
        run.step("engines", folder, [[*tests, "engines"]], {"SQLSHELL_TEST_ENGINES": required})
    if "audit" in steps:
        run.step("audit", folder, [[str(programs / "python"), ".ci/audit"]])


def readme(run: Run, version: str, python: str) -> None:
    """README's test command in a clean clone, where python3 is the given one."""
    path = run.room / f"bin-{version}"
    path.mkdir()
    (path / "python3").symlink_to(python)
    command = ["bash", "-c", readme_command()]
    run.step(f"readme {version}", clone(run.room, version), [command], {"PATH": f"{path}:{os.environ['PATH']}"})


def main() -> int:
    parser = argparse.ArgumentParser(prog=".ci/run", description=__doc__)
    parser.add_argument("--python", action="append", default=[], metavar="VERSION")
    parser.add_argument("steps", nargs="*", metavar="STEP", help=", ".join(STEPS))
    given = parser.parse_args()
    if unknown := set(given.steps) - set(STEPS):
        parser.error(f"no step {', '.join(sorted(unknown))}; steps: {', '.join(STEPS)}")
    steps = given.steps or STEPS
    chosen = pythons(given.python)
    expected = [] if set(steps) == {"readme"} else ["install"]
    for name in STEPS:
        if name in steps:
            expected += [f"readme {version}" for version in chosen] if name == "readme" else [name]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="ci-", dir="/tmp", ignore_cleanup_errors=True) as name:
        run = Run(Path(name), [*expected, "nothing left behind"])
        try:
            check(run, chosen, steps)
            left = run.left_behind()
            run.notes += [f"left behind: {each}" for each in left]
            run.results["nothing left behind"] = "FAILED" if left else "ok"
        finally:
            well = run.tell()
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
