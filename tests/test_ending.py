"""However the program ends, no temporary files remain: signals remove them at once, the next start after kill -9."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from subprocess import PIPE
from urllib.parse import urlsplit

import pytest

from sqlshell.runtime import scratch
from sqlshell.runtime.scratch import Scratch, sweep
from tests.conftest import Program, clean_environment, serve, start
from tests.terminal.terminal import Terminal

LARGE = "select range as i, repeat('x', 200) as s from range(40000000)"


class Running:
    """The program with temporary files of its own, while it makes a large result."""

    def __init__(self, folder: Path, *argv: str, temporary: Path | None = None) -> None:
        self.folder, self.temporary = folder, temporary or folder / "temporary"
        self.temporary.mkdir(exist_ok=True)
        self.process = start(folder, "-q", *argv, env={"TMPDIR": str(self.temporary)}, stderr=PIPE, text=True)
        try:
            self._wait_until_it_writes()
        except BaseException:
            # The whole result fills a disk.
            self.process.kill()
            raise

    def _wait_until_it_writes(self) -> None:
        until = time.monotonic() + 120
        while sum(file.stat().st_size for file in self.files()) < 1 << 20:
            assert self.process.poll() is None, self.process.communicate()[1]
            assert time.monotonic() < until
            time.sleep(0.01)

    def files(self) -> list[Path]:
        """What is temporary, there and beside the output."""
        return [path for path in (*self.temporary.rglob("*"), *self.folder.glob(".out*")) if path.is_file()]

    def end(self, *numbers: int) -> str:
        for number in numbers:
            self.process.send_signal(number)
        try:
            message = str(self.process.communicate(timeout=60)[1])
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        assert "Traceback" not in message
        assert "nanobind" not in message
        return message


@pytest.mark.slow("runs the program")
@pytest.mark.parametrize(
    ("number", "target"),
    (
        (signal.SIGTERM, ()),
        (signal.SIGINT, ("kept.duckdb",)),
        (signal.SIGHUP, ()),
        (signal.SIGQUIT, ("kept.duckdb",)),
    ),
)
def test_signals_leave_nothing(tmp_path: Path, number: int, target: tuple[str, ...]) -> None:
    tmp_path.joinpath("out.csv").write_text("before\n")
    running = Running(tmp_path, *target, "-o", "out.csv", "-c", LARGE)
    assert [path.name[:9] for path in tmp_path.glob(".out*")] == [".out.csv."]
    running.end(number)
    assert running.process.returncode == 128 + number
    assert [*running.temporary.iterdir(), *tmp_path.glob(".out*")] == []
    assert tmp_path.joinpath("out.csv").read_text() == "before\n"


@pytest.mark.slow("runs the program")
@pytest.mark.parametrize("numbers", ((15, 15), (2, 2, 2), (1, 2)))
def test_more_signals_leave_nothing_either(tmp_path: Path, numbers: tuple[int, ...]) -> None:
    running = Running(tmp_path, "-o", "out.csv", "-c", f"{LARGE};&", "-c", "\\wait")
    running.end(*numbers)
    assert running.process.returncode in {128 + number for number in numbers}
    assert [*running.temporary.iterdir(), *tmp_path.glob("*out*")] == []


@pytest.mark.parametrize("number", (signal.SIGTERM, signal.SIGINT))
def test_a_script_that_waits_for_more_ends_too(tmp_path: Path, number: int) -> None:
    process = start(tmp_path, "-q", "--format", "csv", stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    # Something in the background has the shell wait for its input aside.
    process.stdin.write(f"{LARGE};&\n\\echo ready\n")
    process.stdin.flush()
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.wait(30) == 128 + number
    process.communicate()


def test_what_the_engine_of_a_killed_process_left_goes_with_the_next_start(program: Program, tmp_path: Path) -> None:
    folder = tmp_path / "kept.duckdb.tmp"
    folder.mkdir()
    for name in ("duckdb_temp_17_0_owner", "duckdb_temp_17_0_storage_S64K-0.tmp"):
        (folder / name).write_text("rows")
    assert program("-q", "kept.duckdb", "-c", "select 1").code == 0
    assert not folder.exists()


@pytest.mark.slow("ends the program by signals")
def test_an_ignored_hangup_stays_ignored(tmp_path: Path) -> None:
    ignoring = "import os, signal, sys; signal.signal(1, signal.SIG_IGN); os.execv(sys.executable, sys.argv[1:])"
    argv = [
        sys.executable,
        "-m",
        "sqlshell",
        "-q",
        "--format",
        "csv",
        "-c",
        "\\! kill -HUP $PPID",
        "-c",
        "select 1 as a",
    ]
    done = subprocess.run(
        [sys.executable, "-c", ignoring, *argv],
        capture_output=True,
        env=clean_environment(tmp_path),
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "a\n1\n", "")


@pytest.mark.slow("runs the program three times")
def test_the_next_start_removes_what_was_killed(tmp_path: Path, program: Program) -> None:
    tmp_path.joinpath(".out.csv.0123abcd").write_text("somebody's own")
    killed = Running(tmp_path, "-o", "out.csv", "-c", LARGE)
    live = Running(tmp_path, "-o", "out2.csv", "-c", LARGE, temporary=killed.temporary)
    try:
        until = time.monotonic() + 30
        while not list(tmp_path.glob(".out2.csv.*")) and time.monotonic() < until:
            time.sleep(0.01)
        killed.process.kill()
        killed.process.communicate()
        theirs = {path.parent for path in killed.temporary.glob("*/beside") if "/.out.csv." in path.read_text()}
        assert len(theirs) == 1
        done = program("-q", "-c", "select 1", env={"TMPDIR": str(killed.temporary)})
        assert done.code == 0
        assert not any(path.exists() for path in theirs)
        assert [path.name[:10] for path in tmp_path.glob(".out*.csv.*") if "0123" not in path.name] == [".out2.csv."]
        assert len(list(killed.temporary.glob("*/owner"))) == 1
    finally:
        live.end(signal.SIGTERM)
    assert list(killed.temporary.iterdir()) == []
    assert tmp_path.joinpath(".out.csv.0123abcd").read_text() == "somebody's own"


@pytest.mark.slow("a terminal")
def test_a_terminal_that_goes_away_leaves_nothing(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    terminal = Terminal(tmp_path, env={"TMPDIR": str(temporary)})
    terminal.prompt()
    terminal.enter(f"create table t as {LARGE};")
    terminal.wait("^C cancels")
    assert list(temporary.iterdir())
    terminal.process.send_signal(signal.SIGHUP)
    assert terminal.end() == 128 + signal.SIGHUP
    assert list(temporary.iterdir()) == []


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def owned(folder: Path, text: str) -> Path:
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "rows").write_text("rows")
    (folder / "owner").write_text(text)
    return folder


def test_what_is_live_is_told_by_number_and_beginning(temporary: Path) -> None:
    own = f"{os.getpid()} {scratch.start_time(os.getpid())}"
    live = owned(temporary / "sqlshell-live", own)
    reused = owned(temporary / "sqlshell-reused", f"{os.getpid()} 1")
    gone = owned(temporary / "sqlshell-gone", f"{_unused()} 12345")
    locked = owned(temporary / "sqlshell-locked", f"{_unused()} 12345")
    unread = owned(temporary / "sqlshell-unread", "what is this")
    other = owned(temporary / "other", f"{_unused()} 12345")
    linked = temporary / "sqlshell-link"
    linked.symlink_to(other)
    with (locked / "owner").open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        sweep()
    assert [path.exists() for path in (live, locked, unread, other, linked)] == [True] * 5
    assert [path.exists() for path in (reused, gone)] == [False] * 2


def _unused() -> int:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


def test_folders_that_were_only_begun(temporary: Path) -> None:
    young, old, full = (temporary / f"sqlshell-{name}" for name in ("young", "old", "full"))
    for folder in (young, old, full):
        folder.mkdir()
    (full / "x").write_text("x")
    for folder in (old, full):
        os.utime(folder, (1, 1))
    sweep()
    assert [path.exists() for path in (young, old, full)] == [True, False, True]


def test_a_file_elsewhere_is_removed_only_while_it_is_that_file(temporary: Path, tmp_path: Path) -> None:
    made = Scratch()
    files = [tmp_path / f".{name}" for name in ("left", "moved", "replaced")]
    for file in files:
        file.write_text("rows")
        made.add(file)
    files[1].rename(tmp_path / "moved")
    files[2].unlink()
    (tmp_path / "keep").write_text("")
    files[2].write_text("another")
    _killed(made)
    sweep()
    assert [path.exists() for path in (*files, tmp_path / "moved")] == [False, False, True, True]
    assert list(temporary.glob("sqlshell-*")) == []


def test_a_file_elsewhere_that_is_not_hidden_is_no_temporary_file(temporary: Path, tmp_path: Path) -> None:
    made = Scratch()
    for name in (".rows", "rows.csv"):
        (tmp_path / name).write_text("rows")
        made.add(tmp_path / name)
    _killed(made)
    sweep()
    assert [(tmp_path / name).exists() for name in (".rows", "rows.csv")] == [False, True]


def _killed(made: Scratch) -> None:
    """As if its process were gone: nobody holds the lock, and the number is another's."""
    assert made._root is not None
    assert made._owner is not None
    made._owner.close()
    (made._root / "owner").write_text(f"{_unused()} 1")


def test_what_is_temporary_is_removed_in_order(temporary: Path) -> None:
    made = Scratch()
    folder = made.folder("service")
    (folder / "rows").write_text("rows")
    kept, left = temporary / ".kept", temporary / ".left"
    for file in (kept, left):
        file.write_text("rows")
        made.add(file)
    made.forget(kept)
    made.remove()
    made.remove()
    assert list(temporary.iterdir()) == [kept]


def half_sent(connection: socket.socket, host: str, token: str) -> None:
    connection.sendall(
        f"POST /v2/statements HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n"
        "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{".encode()
    )


@pytest.mark.slow("starts a service")
@pytest.mark.parametrize("number", (signal.SIGTERM, signal.SIGHUP))
def test_a_service_ends_without_a_stack(tmp_path: Path, number: int) -> None:
    served = serve(tmp_path, "--grace", "0", stderr=tmp_path / "message")
    where = urlsplit(served.url)
    with socket.create_connection((where.hostname or "", where.port or 0)) as connection:
        if number == signal.SIGTERM:
            half_sent(connection, where.netloc, served.token)
            # Nothing says that the service has read half of a request.
            time.sleep(0.2)
        served.process.send_signal(number)
        assert served.process.wait(30) == 0
    assert served.process.stdout is not None
    served.process.stdout.close()
    told = (tmp_path / "message").read_text()
    # What the system gave differs from machine to machine.
    lines = [re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (.*)", line) for line in told.splitlines()]
    texts = [line[1] for line in lines if line]
    assert len(texts) == len(lines)
    assert [text for text in texts if not text.startswith("each engine runs in its own process")] == [
        "everything is in memory and lost on exit; use --data DIR to keep databases and results"
    ]
