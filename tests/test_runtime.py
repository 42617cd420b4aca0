"""The process: reports of bugs, descriptors, the loop in a thread, background tasks, streams, isolated databases."""

from __future__ import annotations

import asyncio
import io
import os
import sys
import threading
from pathlib import Path

import duckdb
import pyarrow
import pytest

from sqlshell.errors import Bug, UsageError
from sqlshell.runtime import bugs
from sqlshell.runtime.bugs import LONGEST, bug_of, trace
from sqlshell.runtime.event_loops import LoopThread, in_background, spawn, start_in_background
from sqlshell.runtime.files import Descriptor, descriptor, stand_in_for_closed
from sqlshell.runtime.isolated_duckdb import isolated_duckdb
from sqlshell.runtime.streams import Streams, shows_unicode
from sqlshell.sql.identifiers import quoted
from sqlshell.version import __version__

TURNS = 50
"""Of an event loop that a canceled task takes to end: more than what else the loop does takes."""


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:
        return caught


@pytest.mark.parametrize(
    ("error", "doing", "text"),
    [
        (ValueError("a  b\nc"), "", "ValueError: a b c (elsewhere)"),
        (ValueError(), "\\d", "\\d: ValueError (elsewhere)"),
        (ValueError("x" * 500), "", f"ValueError: {'x' * LONGEST} (elsewhere)"),
    ],
)
def test_a_bug_is_one_line(error: Exception, doing: str, text: str) -> None:
    bug = bug_of(raised(error), doing)
    assert bug.message.startswith(f"bug in sqlshell {__version__}: {text}; report this line (for a traceback")
    assert bug.__cause__ is error


def test_a_bug_names_its_place() -> None:
    with pytest.raises(TypeError) as caught:
        quoted(None)  # type: ignore[arg-type]
    assert "(sql/identifiers.py:" in bug_of(caught.value).message


def test_a_coroutines_stop_iteration_is_the_cause() -> None:
    stopped = RuntimeError("coroutine raised StopIteration")
    stopped.__cause__ = StopIteration("inner")
    assert "StopIteration: inner" in bug_of(stopped).message
    stopped.__cause__ = KeyError("inner")
    assert "RuntimeError: coroutine" in bug_of(stopped).message


@pytest.mark.parametrize(("wanted", "is_bug"), [("1", True), ("", True), ("1", False)])
def test_tracebacks_are_on_request(monkeypatch: pytest.MonkeyPatch, wanted: str, is_bug: bool) -> None:
    monkeypatch.setenv(bugs.TRACEBACK, wanted)
    stream = io.StringIO()
    error = bug_of(raised(ValueError("odd"))) if is_bug else UsageError("x")
    trace(error, stream)
    assert ("ValueError: odd" in stream.getvalue()) is (bool(wanted) and is_bug)
    trace(Bug("without a cause"), stream)


def test_paths_of_descriptors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    for name, target in {
        "out": "/dev/stdout", "up": "sub/back", "sub/back": "../out", "loop": "loop", "plain": "missing",
        "folder": "/dev", "fds": "/dev/fd",
    }.items():  # fmt: skip
        (tmp_path / name).symlink_to(target)
    own = {
        "/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2, "/dev/fd/7": 7, "/proc/self/fd/12": 12,
        "/proc/./self//fd/95": 95, "/proc/thread-self/fd/3": 3, f"/proc/{os.getpid()}/fd/4": 4,
        f"/proc/self/task/{os.getpid()}/fd/5": 5,
        "/dev/../dev/./stdout": 1, "//dev//stdout": 1, "/dev/stdout/": 1, "out": 1, "./out": 1, "up": 1,
        "sub/../out": 1, str(tmp_path / "up"): 1, "folder/stderr": 2, "fds/9": 9,
    }  # fmt: skip
    for path, number in own.items():
        assert descriptor(path) == Descriptor(number, True), path
    assert descriptor("/proc/1/fd/2") == Descriptor(2, False)
    for path in ("", "a", "/dev/null", "/dev/fd", "/dev/fd/x", "loop", "plain", "/dev/stdout/x", "sub", "x\0y", "/"):
        assert descriptor(path) is None, path


@pytest.mark.skipif(not Path("/proc").exists(), reason="/proc tells what a descriptor is")
def test_closed_descriptors_are_opened() -> None:
    child = os.fork()
    if not child:
        code = 1
        try:
            for number in (0, 2):
                os.close(number)
            for name in ("stdin", "stderr"):
                setattr(sys, name, None)
            stand_in_for_closed()
            streams = Streams.standard()
            ends = [str(Path(f"/proc/self/fd/{number}").readlink()) for number in (0, 2)]
            kept = [os.get_inheritable(number) for number in (0, 2)]
            modes = [os.O_ACCMODE & int(Path(f"/proc/self/fdinfo/{n}").read_text().split()[3], 8) for n in (0, 2)]
            right = (ends, kept, modes) == (["/dev/null"] * 2, [True] * 2, [os.O_WRONLY] * 2)
            names = [(stream.fileno(), stream.mode) for stream in (streams.stdin, streams.stderr)]
            code = 0 if right and names == [(0, "r"), (2, "w")] else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_work_that_has_ended_is_not_kept() -> None:
    tasks: set[asyncio.Task[None]] = set()

    async def work() -> None:
        spawn(asyncio.sleep(0), tasks)
        assert len(tasks) == 1
        await next(iter(tasks))
        await asyncio.sleep(0)

    asyncio.run(work())
    assert not tasks


def test_a_loop_in_a_thread() -> None:
    loop = LoopThread("a name")
    places: list[tuple[bool, str]] = []
    canceled: list[str] = []

    async def works() -> str:
        places.append((loop.here, threading.current_thread().name))
        return "done"

    async def fails() -> None:
        raise KeyError

    async def waits() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            for _ in range(TURNS):
                await asyncio.sleep(0)
            canceled.append("canceled")

    async def begins() -> asyncio.Task[None]:
        task = asyncio.ensure_future(waits())
        await asyncio.sleep(0)
        return task

    assert loop.run(works()) == "done"
    assert places == [(True, "a name")]
    assert not loop.here
    assert not loop.inherited
    with pytest.raises(KeyError):
        loop.run(fails())
    task = loop.run(begins())
    assert canceled == []
    loop.close()
    assert task.cancelled()
    assert canceled == ["canceled"]
    loop.close()
    with pytest.raises(RuntimeError):
        loop.run(works())


def test_an_interrupted_wait_cancels_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = LoopThread("x")
    begun, ended = threading.Event(), threading.Event()

    async def waits() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            for _ in range(TURNS):
                await asyncio.sleep(0)
            ended.set()

    real = asyncio.run_coroutine_threadsafe

    class Interrupted:
        """A future of which the result is awaited by somebody who is interrupted."""

        def __init__(self, work: object) -> None:
            self._future = real(work, loop._loop)  # type: ignore[arg-type, var-annotated]

        def result(self) -> None:
            assert begun.wait(30)
            raise KeyboardInterrupt

        def done(self) -> bool:
            return self._future.done()

        def cancel(self) -> None:
            self._future.cancel()

    made: list[object] = []

    def first_interrupted(work: object, of: object) -> object:
        made.append(work)
        return Interrupted(work) if len(made) == 1 else real(work, loop._loop)  # type: ignore[arg-type]

    monkeypatch.setattr("asyncio.run_coroutine_threadsafe", first_interrupted)
    with pytest.raises(KeyboardInterrupt):
        loop.run(waits())
    assert ended.is_set()
    loop.close()


def test_work_in_the_background_is_marked() -> None:
    found: list[bool] = []

    async def inner() -> None:
        found.append(in_background())

    async def outer() -> None:
        found.append(in_background())
        await asyncio.ensure_future(inner())

    async def work() -> None:
        await start_in_background(outer())
        found.append(in_background())

    asyncio.run(work())
    assert found == [True, True, False]


@pytest.mark.parametrize(
    ("environ", "shown"),
    [
        ({}, True),
        ({"LANG": "C"}, False),
        ({"LANG": "en_US.UTF-8"}, True),
        ({"LANG": "de_DE.utf8"}, True),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, True),
        ({"LANG": "C.UTF-8", "LC_CTYPE": "C"}, False),
        ({"LC_ALL": "POSIX", "LC_CTYPE": "C.UTF-8"}, False),
        ({"LC_ALL": "", "LC_CTYPE": "", "LANG": ""}, True),
    ],
)
def test_locales_that_show_boxes(environ: dict[str, str], shown: bool) -> None:
    assert shows_unicode(environ) is shown


def test_who_can_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    plain = io.StringIO()
    assert Streams(Terminal(), plain, Terminal()).asks
    assert not Streams(plain, Terminal(), Terminal()).asks
    assert not Streams(Terminal(), Terminal(), plain).asks
    monkeypatch.setenv("COLUMNS", "77")
    assert Streams(plain, plain, plain).columns == 77
    standard = Streams.standard()
    assert (standard.stdin, standard.stdout, standard.stderr) == (sys.stdin, sys.stdout, sys.stderr)


def test_an_isolated_database_reaches_what_it_is_given(tmp_path: Path) -> None:
    folder, other = tmp_path / "fo'lder", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    for place in (folder, other):
        (place / "a.csv").write_text("x\n1\n")
    named = other / "named.csv"
    named.write_text("x\n2\n")

    table_of_python = pyarrow.table({"x": [1]})

    def reads(connection: duckdb.DuckDBPyConnection, path: Path) -> bool:
        quoted_path = str(path).replace("'", "''")
        try:
            connection.execute(f"FROM '{quoted_path}'").fetchall()
        except duckdb.PermissionException:
            return False
        return True

    with isolated_duckdb("100MB", files=[named], folder=folder, settings={"threads": "1"}) as connection:
        assert [reads(connection, path) for path in (folder / "a.csv", named, other / "a.csv")] == [True, True, False]
        assert connection.execute("SELECT current_setting('TimeZone'), current_setting('threads')").fetchall() == [
            ("UTC", 1)
        ]
        with pytest.raises(duckdb.InvalidInputException, match="configuration has been locked"):
            connection.execute("SET threads = 2")
        # A variable of Python is no table.
        with pytest.raises(duckdb.CatalogException):
            connection.execute("FROM table_of_python")
        for name, value in {
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "temp_directory": "",
            "enable_progress_bar": False,
            "enable_external_access": False,
        }.items():
            assert connection.execute(f"SELECT current_setting('{name}')").fetchall() == [(value,)]
    with isolated_duckdb("100MB", spilled=tmp_path / "s") as connection:
        assert not reads(connection, named)
        assert connection.execute("SELECT current_setting('temp_directory')").fetchall() == [(str(tmp_path / "s"),)]
    assert table_of_python.num_rows == 1


@pytest.mark.parametrize(("cores", "threads"), [(None, 1), (1, 1), (64, 2)])
def test_an_isolated_database_has_few_threads(monkeypatch: pytest.MonkeyPatch, cores: int | None, threads: int) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    with isolated_duckdb("100MB") as connection:
        assert connection.execute("SELECT current_setting('threads')").fetchall() == [(threads,)]
