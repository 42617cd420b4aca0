"""Timing in pairs: ours and the reference take turns, so that a noisy machine is noisy for both."""

from __future__ import annotations

import contextlib
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
from typing import NamedTuple

TOKEN = "benchmark-token"
TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; `ours` and `reference` carry their unit, `ratio` is ours over the reference.

    A ratio above a `bound` is an error.
    """

    job: str
    ours: str
    reference: str
    ratio: float
    target: str
    bound: float | None = None

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


class Cost(NamedTuple):
    """Seconds by the clock, CPU seconds of the program and of the server, and the program's peak memory in bytes."""

    seconds: float
    cpu: float
    server: float = 0.0
    peak: int = 0

    def __str__(self) -> str:
        server = f" + {self.server:.2f}" if self.server else ""
        return f"{self.seconds:.2f} s (CPU {self.cpu:.2f}{server})"


def cost(argv: Sequence[str], folder: Path, server: Path | int | None = None, stdout: int = subprocess.DEVNULL) -> Cost:
    """Run a program to its end. `server` is the folder of our service or the pid of another."""
    before = cpu_of(server)
    began = time.perf_counter()
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=stdout, env=environment(folder), cwd=folder)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{argv} failed: {process.returncode}")
    peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return Cost(seconds, usage.ru_utime + usage.ru_stime, cpu_of(server) - before, peak)


def cpu_of(server: Path | int | None) -> float:
    """CPU seconds that a server has used so far, with its children, living or not."""
    if server is None:
        return 0.0
    while True:
        # A process that ends meanwhile is counted with its parent.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            return sum(map(_cpu, processes(server))) / TICK


def _cpu(process: Path) -> int:
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15]))


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
