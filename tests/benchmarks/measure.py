"""Timing in pairs: ours and the reference take turns, so that a noisy machine is noisy for both."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

TOKEN = "benchmark-token"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; `ours` and `reference` carry their unit, `ratio` is ours over the reference."""

    job: str
    ours: str
    reference: str
    ratio: float
    target: str

    def __str__(self) -> str:
        return f"| {self.job} | {self.ours} | {self.reference} | {self.ratio:.2f} | {self.target} |"


HEAD = "| job | ours | reference | ratio | target |\n|---|---|---|---|---|"


def environment(folder: Path) -> dict[str, str]:
    kept = {key: os.environ[key] for key in ("PATH", "LANG") if key in os.environ}
    return kept | {"HOME": str(folder), "SQLSHELL_TOKEN": TOKEN}


@contextmanager
def service(*options: str) -> Iterator[tuple[str, Path]]:
    """`sqlshell serve` on loopback: its URL, and an empty folder."""
    with TemporaryDirectory(prefix="sqlshell-bench-") as name:
        folder = Path(name)
        token = folder / "token"
        token.write_text(TOKEN)
        token.chmod(0o600)
        process = subprocess.Popen(
            [sys.executable, "-m", "sqlshell", "serve", "--port", "0", "--token-file", str(token), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment(folder),
        )
        assert process.stdout is not None
        folder.joinpath("pid").write_text(str(process.pid))
        try:
            yield process.stdout.readline().removeprefix("listening on ").strip(), folder
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()


def peak_of(folder: Path) -> int:
    """The most memory that the service in `folder` and each of its engines' processes held so far, in bytes (Linux)."""
    return sum(map(_told("VmHWM:"), processes(folder)))


def held_by(folder: Path) -> int:
    """The memory that the service in `folder` and its engines' processes hold now, in bytes (Linux)."""
    return sum(map(_told("VmRSS:"), processes(folder)))


def processes(server: Path | int) -> list[Path]:
    """A server and its children in /proc (Linux): the service in a folder, or another by its number."""
    number = server.joinpath("pid").read_text() if isinstance(server, Path) else str(server)
    service = Path("/proc", number)
    children = [number for task in service.glob("task/*/children") for number in task.read_text().split()]
    return [service, *(Path("/proc", number) for number in children)]


def _told(what: str) -> Callable[[Path], int]:
    return lambda process: int((process / "status").read_text().partition(what)[2].split()[0]) * 1024


def run(argv: Sequence[str], folder: Path, stdin: bytes | None = None) -> tuple[float, int]:
    """Run a process to its end: seconds, and its peak memory in bytes. A failure ends the benchmark."""
    began = time.perf_counter()
    process = subprocess.Popen(
        argv,
        stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env=environment(folder),
        cwd=folder,
    )
    if stdin is not None:
        assert process.stdin is not None
        process.stdin.write(stdin)
        process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{argv} failed: {process.returncode}")
    return seconds, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def paired(ours: Callable[[], float], reference: Callable[[], float], times: int) -> tuple[float, float]:
    """Medians of `times` runs each, in turns, after one of each that does not count."""
    ours()
    reference()
    first: list[float] = []
    second: list[float] = []
    for number in range(times):
        order = [(first, ours), (second, reference)]
        for kept, job in order if number % 2 else reversed(order):
            kept.append(job())
    return statistics.median(first), statistics.median(second)
