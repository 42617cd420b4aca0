"""Benchmarks of the prompt: time to the first prompt, time from a key to the screen, a large paste."""

from __future__ import annotations

import os
import pty
import select
import signal
import socket
import statistics
import struct
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path

import msgspec

from sqlshell.context import SessionContext
from sqlshell.shell.metadata.catalog_loader import CatalogLoader
from sqlshell.sql.completion.catalog import CachedCatalog, Column, Relation, key
from tests.benchmarks.measure import TICK, Row, environment, run

OBJECTS = 10_000
LINES = 500
PASTED = 10_000
KEYS = 200
COLUMNS = ("id", "name", "created_at", "total_amount", "customer_id")
TYPED = "select t.id, t.name from table_77_users t where t.customer_id = 1 and total_amount > 5 "
SQLSHELL = (sys.executable, "-m", "sqlshell")


class Pty:
    """The program in a pty."""

    def __init__(self, folder: Path, *argv: str, command: Sequence[str] = SQLSHELL) -> None:
        pid, self.descriptor = pty.fork()
        if pid == 0:
            env = environment(folder) | {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
            os.chdir(folder)
            os.execve(command[0], [*command, *argv], env)
        self.pid = pid
        ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

    def processor(self) -> float:
        """Seconds of processor time that the program has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def key(self, char: str) -> float:
        """Seconds from a key to the first bytes that are drawn for it."""
        self.quiet(0.03)
        began = time.perf_counter()
        os.write(self.descriptor, char.encode())
        while not self.read(2.0):
            continue
        return time.perf_counter() - began

    def read(self, seconds: float) -> bytes:
        if not select.select([self.descriptor], [], [], seconds)[0]:
            return b""
        try:
            return os.read(self.descriptor, 1 << 20)
        except OSError:
            return b""

    def until(self, seen: bytes, seconds: float = 30) -> float:
        """Seconds until that is written."""
        began, text = time.perf_counter(), b""
        while seen not in text and time.perf_counter() - began < seconds:
            text += self.read(0.01)
        return time.perf_counter() - began

    def reads(self, seconds: float = 30) -> None:
        """Wait until the prompt reads keys; the first one is drawn before."""
        until = time.perf_counter() + seconds
        while termios.tcgetattr(self.descriptor)[3] & termios.ICANON and time.perf_counter() < until:
            self.read(0.002)

    def quiet(self, seconds: float = 0.4) -> None:
        while self.read(seconds):
            continue

    def type(self, text: str) -> None:
        left = text.encode()
        while left:
            select.select([], [self.descriptor], [])
            left = left[os.write(self.descriptor, left[:4096]) :]
            while select.select([self.descriptor], [], [], 0)[0] and self.read(0):
                continue

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.descriptor)


@contextmanager
def far_away(seconds: float) -> Iterator[str]:
    """A service that lets everybody wait."""
    server = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def work() -> None:
        while not ended.is_set():
            connection, _ = server.accept()
            time.sleep(seconds)
            connection.close()

    threading.Thread(target=work, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
    finally:
        ended.set()
        server.close()


def contents() -> CachedCatalog:
    kinds = ("sales", "users", "events", "orders", "items")
    relations = [Relation("local", "main", f"table_{n}_{kinds[n % 5]}", "table") for n in range(OBJECTS)]
    columns = [Column(name, "INTEGER") for name in COLUMNS]
    return CachedCatalog(relations, {key(item): columns for item in relations[:2_000]}, [], {"database": ["local"]})


def script(lines: int) -> str:
    return "\n".join(
        f"select a.id, b.name, 'text {n}' as t from table_{n}_sales a join table_{n + 1}_users b using (id)"
        + (f"; -- line {n}" if n % 5 == 4 else f" -- line {n}")
        for n in range(lines)
    )


def prompt_jobs(times: int = 9) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="sqlshell-bench-") as name, far_away(0.3) as url:
        folder = Path(name)
        yield from _start(folder, url, times)
        keep_catalog(folder, "http://127.0.0.1:9")
        yield from _keys(folder)
        yield from _paste(folder)


def _start(folder: Path, url: str, times: int) -> Iterator[Row]:
    ours, reads, reference = [], [], []
    for _ in range(times):
        began = time.perf_counter()
        shell = Pty(folder, url)
        shell.until(b"> ")
        ours.append(time.perf_counter() - began)
        shell.reads()
        reads.append(time.perf_counter() - began)
        shell.close()
        reference.append(run([sys.executable, "-c", "import prompt_toolkit, httpx"], folder)[0])
    first, other = statistics.median(ours), statistics.median(reference)
    yield Row("start to first prompt, network delay 300 ms", f"{first * 1000:.0f} ms", "250 ms", first / 0.25, "≤ 1")
    yield Row(
        "start to the prompt that reads keys",
        f"{statistics.median(reads) * 1000:.0f} ms",
        f"{other * 1000:.0f} ms (`import prompt_toolkit, httpx`)",
        statistics.median(reads) / other,
        "≤ 1.4",
    )


def keep_catalog(folder: Path, target: str) -> None:
    loader = CatalogLoader(None, SessionContext, target, folder / ".local/state/sqlshell/catalogs")  # type: ignore[arg-type]
    path = loader._path()
    assert path is not None
    path.parent.mkdir(parents=True)
    path.write_bytes(msgspec.json.encode(contents()))


def _keys(folder: Path) -> Iterator[Row]:
    shell = Pty(folder, "-q", "http://127.0.0.1:9")
    shell.reads()
    shell.quiet()
    shell.type(f"\x1b[200~{script(LINES)};\n\x1b[201~")
    shell.quiet()
    spent = [shell.key(TYPED[number % len(TYPED)]) for number in range(KEYS)]
    shell.close()
    p99, median = percentile(spent), statistics.median(spent)
    yield Row(
        f"key to screen, {LINES} lines, {OBJECTS:,} objects: p99 (median {median * 1000:.1f} ms)",
        f"{p99 * 1000:.1f} ms",
        "16 ms",
        p99 / 0.016,
        "≤ 1",
    )


def percentile(spent: Sequence[float]) -> float:
    """The 99th."""
    return sorted(spent)[int(len(spent) * 0.99) - 1]


def _paste(folder: Path) -> Iterator[Row]:
    shell = Pty(folder, "-q", "http://127.0.0.1:9")
    shell.reads()
    shell.quiet()
    text = script(PASTED)
    began = time.perf_counter()
    shell.type(f"\x1b[200~{text}\x1b[201~")
    last = time.perf_counter()
    while shell.read(0.5):
        last = time.perf_counter()
    spent = last - began
    slowest = 0.0
    for char in "abcdefgh":
        began = time.perf_counter()
        os.write(shell.descriptor, char.encode())
        shell.until(char.encode(), 5)
        slowest = max(slowest, time.perf_counter() - began)
        shell.quiet(0.1)
    shell.close()
    yield Row(f"paste of {PASTED:,} lines", f"{spent * 1000:.0f} ms", "1 s", spent, "≤ 1")
    yield Row("slowest key after it", f"{slowest * 1000:.0f} ms", "100 ms", slowest / 0.1, "≤ 1")
