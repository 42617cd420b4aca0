"""What a restricted process cannot do, and what it still can, tested in a real process."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from sqlshell.service.engines.engine import FOLDERS, Limits
from sqlshell.service.engines.process.frames import EngineConfig, read_answer, receive, send
from sqlshell.service.engines.sandbox import landlock, sandbox
from tests.cases import lines
from tests.conftest import serve, start, stop
from tests.service.client import Client
from tests.service.waiting import until

linux = pytest.mark.skipif(not landlock.version(), reason="the kernel has no Landlock")

PROGRAM = """
import os, resource, signal, socket, subprocess, sys, threading
from pathlib import Path
from types import SimpleNamespace

import duckdb
from tests.service.waiting import until

from sqlshell.service.engines.sandbox import sandbox

own = Path({own!r})
given = sandbox.restrict(
    [own / "copies"],
    [own / "databases"],
    sandbox.Bounds(sandbox.memory_bound("200MB", 2), {file_size}),
    fill=[own / "spool"],
    parent=os.getppid(),
)


def tried(work):
    try:
        result = work()
    except BaseException as error:
        print(type(error).__name__, getattr(error, "errno", ""), str(error).partition(chr(10))[0])
    else:
        print("done", result)


def database(sql, spilled="10GB"):
    connection = duckdb.connect(str(own / "databases" / "d.data"))
    connection.execute("SET threads = 2")
    connection.execute("SET memory_limit = '200MB'")
    connection.execute(f"SET max_temp_directory_size = '{{spilled}}'")
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"SET temp_directory = '{{own / 'databases'}}'")
    return connection.execute(sql).fetchall()


{works}
"""


def restricted(folder: Path, *works: str, file_size: int = 0) -> list[str]:
    """What came of `works`, Python expressions, in a process of its own that restricted itself to `folder`."""
    for name in ("copies", "databases", "spool"):
        (folder / name).mkdir(exist_ok=True)
    calls = "\n".join(f"tried(lambda: {work})" for work in works)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(own=str(folder), works=calls, file_size=file_size)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout.splitlines() or [f"ended {done.returncode}: {done.stderr.strip()[-300:]}"]


FILES = lines("sandbox", "files")


@linux
def test_no_file_but_its_own(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("secret")
    own = tmp_path / "own"
    own.mkdir()
    before = outside.stat()
    works = [work.format(outside=str(outside)) for work in FILES]
    answers = restricted(own, *works)
    for work, answer in zip(works, answers, strict=True):
        assert answer.startswith(("PermissionError", "IOException", "OSError 18 ")), work
    after = outside.stat()
    assert outside.read_text() == "secret"
    assert (before.st_mode, before.st_nlink) == (after.st_mode, after.st_nlink)


@linux
def test_what_it_writes_into_the_spool_it_cannot_read(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / "others.parquet").write_text("secret")
    copied = (
        "COPY (SELECT i, repeat('x', 100) AS x FROM range(200000) r(i)) TO '{own}/spool/made.parquet' (FORMAT parquet)"
    )
    works = {
        f'database(f"{copied}")': "done",
        "open(own / 'spool' / 'text', 'wb').write(b'[]')": "done",
        "(own / 'spool' / 'made.parquet').stat().st_size > 0": "done True",
        "open(own / 'spool' / 'made.parquet', 'rb')": "PermissionError",
        "open(own / 'spool' / 'text', 'r+b')": "PermissionError",
        "os.listdir(own / 'spool')": "PermissionError",
        "os.link(own / 'spool' / 'others.parquet', own / 'databases' / 'others.parquet')": "OSError 18",
        "os.rename(own / 'spool' / 'others.parquet', own / 'databases' / 'others.parquet')": "OSError 18",
        "(own / 'spool' / 'link').symlink_to(own / 'databases')": "PermissionError",
        "database(f\"FROM read_parquet('{own}/spool/made.parquet')\")": "IOException",
        "database(f\"FROM read_text('{own}/spool/others.parquet')\")": "IOException",
        "database(f\"FROM glob('{own}/spool/*')\")": "done []",
        "os.unlink(own / 'spool' / 'text')": "done",
    }
    for (work, expected), answer in zip(works.items(), restricted(tmp_path, *works), strict=True):
        assert answer.startswith(expected), (work, answer)


REFUSED = """
import sys
from sqlshell.service.engines.process import child
from sqlshell.service.engines.sandbox import landlock

landlock.{name} = 1 << 40
child.main()
print("went on")
"""


@linux
@pytest.mark.parametrize(("name", "call"), [("READ", "landlock_add_rule"), ("_RESTRICT", "landlock_restrict_self")])
def test_a_process_that_cannot_be_restricted_does_not_go_on(tmp_path: Path, name: str, call: str) -> None:
    """A call that fails says so, also where the system denies knowing it."""
    for folder in (*FOLDERS, "temporary"):
        (tmp_path / folder).mkdir()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        number = theirs.fileno()
        send(ours, EngineConfig(tmp_path, {}, Limits()))
        done = subprocess.run(
            [sys.executable, "-c", REFUSED.format(name=name), str(number), str(os.getpid())],
            pass_fds=[number],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        error = read_answer(receive(ours)).error
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert error is not None and "cannot be restricted" in error.message and call in error.message


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux")
def test_only_a_missing_landlock_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(number: int) -> int:
        ctypes.set_errno(number)
        return -1

    for number in (errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM):
        monkeypatch.setattr(landlock, "_libc", lambda number=number: SimpleNamespace(syscall=lambda *_: answer(number)))
        assert landlock.version() == 0
    monkeypatch.setattr(landlock, "_libc", lambda: SimpleNamespace(syscall=lambda *_: answer(errno.EINVAL)))
    with pytest.raises(OSError, match="landlock_create_ruleset: Invalid argument"):
        landlock.version()


@linux
def test_no_link_leads_out(tmp_path: Path) -> None:
    """A link that somebody else put into its folder is followed, and what it leads to is refused."""
    outside = tmp_path / "outside"
    outside.write_text("secret")
    own = tmp_path / "own"
    (own / "databases").mkdir(parents=True)
    (own / "databases" / "link").symlink_to(outside)
    assert restricted(own, "open(own / 'databases' / 'link').read()")[0].startswith("PermissionError 13")


@linux
def test_no_network(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        works = (
            f"socket.create_connection(('127.0.0.1', {port}))",
            "socket.create_server(('127.0.0.1', 0))",
            f"socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', {port}))",
            "socket.socket(socket.AF_UNIX).connect(chr(0) + 'name')",
        )
        for work, answer in zip(works, restricted(tmp_path, *works), strict=True):
            assert answer.startswith("PermissionError"), work


@linux
def test_no_other_process(tmp_path: Path) -> None:
    works = (
        "os.fork()",
        "subprocess.run(['/bin/true'])",
        "os.execv('/bin/true', ['true'])",
        "os.posix_spawn('/bin/true', ['true'], {})",
        "os.kill(os.getppid(), 0)",
        "os.system('true')",
    )
    *answers, status = restricted(tmp_path, *works)
    for work, answer in zip(works, answers, strict=False):
        assert answer.startswith("PermissionError"), work
    assert status in {"done -1", f"done {127 << 8}"}


@linux
def test_open_files_are_bounded(tmp_path: Path) -> None:
    assert restricted(tmp_path, "[os.dup(0) for _ in range(20_000)]")[0].startswith("OSError 24")


def test_a_file_is_bounded(tmp_path: Path) -> None:
    """A write beyond the bound is an error of the statement."""
    work = "database('CREATE TABLE t AS SELECT random() FROM range(1_000_000)')"
    assert "File too large" in restricted(tmp_path, work, file_size=4 << 20)[0]
    assert (tmp_path / "databases" / "d.data").stat().st_size <= 4 << 20


@linux
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT length(repeat('x', 4000000000))",
        "SELECT length(string_agg(repeat(i::VARCHAR, 50000000), '')) FROM range(200) t(i)",
    ],
)
def test_memory_is_bounded(tmp_path: Path, sql: str) -> None:
    """A bomb is an error, or the end of the process; never more memory than the bound."""
    answers = restricted(tmp_path, f"database({sql!r})", "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10")
    assert not answers[0].startswith("done")
    if len(answers) > 1:
        assert int(answers[1].split()[1]) < sandbox.memory_bound("200MB", 2) >> 20


@pytest.mark.slow("a large sort")
def test_a_sort_that_spills_runs(tmp_path: Path) -> None:
    sql = "CREATE OR REPLACE TABLE t AS SELECT repeat(i::VARCHAR, 60) AS s FROM range(800_000) t(i) ORDER BY hash(i)"
    spilling, within = restricted(tmp_path, f"database({sql!r})", f"database({sql!r}, '0KB')")
    assert spilling.startswith("done [(")
    assert within.startswith("OutOfMemoryException")


@linux
def test_what_it_needs_is_left(tmp_path: Path) -> None:
    """DuckDB is begun a second time, time zones are known, modules of the standard library can be imported."""
    work = (
        "(database('SELECT 1'), duckdb.connect().execute('SELECT 2').fetchall(), "
        "__import__('zoneinfo').ZoneInfo('Europe/Berlin').key, __import__('xml.dom.minidom').__name__, "
        "threading.Thread(target=int).start())"
    )
    assert restricted(tmp_path, work)[0] == "done ([(1,)], [(2,)], 'Europe/Berlin', 'xml', None)"


def test_it_holds_few_descriptors(tmp_path: Path) -> None:
    """What it is allowed costs none of the open files that it may have."""
    assert int(restricted(tmp_path, "os.dup(0)")[0].split()[1]) < 20


def test_it_leaves_no_core_and_tells_what_the_system_gave(tmp_path: Path) -> None:
    core, told = restricted(tmp_path, "resource.getrlimit(resource.RLIMIT_CORE)", "given")
    assert core == "done (0, 0)"
    assert "each engine runs in its own process" in told
    if landlock.version() >= 6:
        assert f"{sandbox.FILES} (Landlock {landlock.version()})" in told
        assert "does not give" not in told


def test_what_is_missing_is_told() -> None:
    told = str(sandbox.Protections((sandbox.MEMORY,), (sandbox.FILES, sandbox.NETWORK)))
    expected = "each engine runs in its own process: limited memory; "
    assert told == expected + "not supported by this system: no access to other files, no network"


@linux
def test_it_ends_with_its_parent(tmp_path: Path) -> None:
    code = (
        "import os, subprocess, sys, time\n"
        "made = subprocess.Popen([sys.executable, '-c', 'import os, sys, time\\n"
        "from sqlshell.service.engines.sandbox import sandbox\\n"
        "sandbox.restrict([], [], sandbox.Bounds(), parent=os.getppid())\\n"
        "print(os.getpid(), flush=True)\\ntime.sleep(60)'], stdout=subprocess.PIPE)\n"
        "print(made.stdout.readline().decode().strip(), flush=True)\n"
        "os._exit(0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    child = Path(f"/proc/{int(done.stdout)}/stat")
    until(lambda: not child.exists() or child.read_text().rpartition(")")[2].split()[0] == "Z")


def test_a_second_thread_is_refused(tmp_path: Path) -> None:
    """Threads that run already would keep their rights."""
    code = (
        "import threading, time\nfrom sqlshell.service.engines.sandbox import sandbox\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "sandbox.restrict([], [], sandbox.Bounds())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert "RuntimeError: a process must be restricted before it starts a second thread" in done.stderr


@pytest.mark.parametrize(
    ("text", "number"),
    [("", 0), ("2GB", 2 * 10**9), ("512 MiB", 512 << 20), ("50%", 500), ("0.5kib", 512), ("1T", 10**12), ("7B", 7)],
)
def test_sizes_are_read_as_duckdb_reads_them(text: str, number: int) -> None:
    assert sandbox.size(text, 1000) == number


def test_the_bound_of_files_leaves_some_room(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 1000)
    free = os.statvfs(tmp_path)
    assert 1000 + (1 << 30) <= sandbox.file_bound(tmp_path) <= 1000 + (1 << 30) + free.f_bavail * free.f_frsize


@linux
def test_the_engines_of_a_service_are_restricted(tmp_path: Path) -> None:
    """No way back (NoNewPrivs), a filter of system calls, and nothing of the environment of the service."""
    served = serve(tmp_path, python=())
    with Client(served) as client:
        client.rows("select 1")
    children = Path(f"/proc/{served.process.pid}/task").glob("*/children")
    numbers = [number for file in children for number in file.read_text().split()]
    assert len(numbers) == 1
    for number in numbers:
        told = Path(f"/proc/{number}/status").read_text()
        assert "NoNewPrivs:\t1" in told
        assert "Seccomp:\t2" in told
        names = {item.partition("=")[0] for item in Path(f"/proc/{number}/environ").read_text().split("\0")}
        assert not {name for name in names if name.startswith(("SQLSHELL", "HOME", "PATH"))}
    stop(served)


def test_serve_says_what_the_system_gave(tmp_path: Path) -> None:
    """In one line, before the address."""
    begun = start(
        tmp_path, "serve", "--port", "0", "--data", "data", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert begun.stdout is not None
        assert begun.stdout.readline().startswith("listening on ")
    finally:
        begun.terminate()
        _, told = begun.communicate(timeout=60)
    assert [line for line in told.splitlines() if " each engine runs in its own process: " in line]
