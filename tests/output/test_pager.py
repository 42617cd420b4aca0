"""The pager: what it is started with, what it keeps in view, and what happens when it exits."""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sqlshell.errors import OutputError
from sqlshell.origin import Trusted
from sqlshell.output.sinks import pager
from sqlshell.output.sinks.command import CommandProcess, lent_terminal
from sqlshell.output.sinks.pager import ScreenSink, has_header, less_version
from sqlshell.output.sinks.sink import OutputClosed, StreamSink
from sqlshell.output.writer import Look


class Terminal(io.BytesIO):
    def isatty(self) -> bool:
        return True


class Scripted:
    """A command of which the exit code is known before."""

    started: list[tuple[str, dict[str, str] | None]]
    code = 0

    def __init__(self, text: Trusted, environment: dict[str, str] | None = None) -> None:
        type(self).started.append((text, environment))
        self.data = b""
        self.waited = 1.5
        self.ended = self.stopped = False

    def write(self, data: bytes) -> None:
        if self.ended:
            raise OutputClosed
        self.data += data

    def finish(self) -> int:
        self.ended = True
        return self.code

    def stop(self) -> None:
        self.stopped = True


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> type[Scripted]:
    monkeypatch.setenv("LINES", "10")
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("LESSKEYIN", raising=False)
    monkeypatch.delenv("LESSCHARSET", raising=False)
    made = type("Made", (Scripted,), {"started": [], "code": 0})
    monkeypatch.setattr(pager, "CommandProcess", made)
    monkeypatch.setattr(pager, "less_version", lambda: "less 608 (GNU regular expressions)")
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    return made


TALL, WIDE = b"x\n" * 9, b"x" * 21 + b"\n"


@pytest.mark.parametrize(
    ("given", "frozen", "version", "expected"),
    [
        (TALL, (0, 0), "608", "less -SRXF"),
        (TALL, (2, 5), "608", "less -SRX --header=2,0"),
        (TALL, (2, 5), "590", "less -SRXF"),
        (WIDE, (0, 0), "608", "less -SRX"),
        (WIDE, (2, 5), "608", "less -SRX --header=2,5"),
        (WIDE, (2, 5), "551", "less -SRX"),
        (WIDE + TALL, (3, 4), "608", "less -SRX --header=3,4"),
        (WIDE + TALL, (0, 4), "608", "less -SRXF"),
        (b"x" * 20 + b"\n" + TALL, (3, 4), "608", "less -SRX --header=3,0"),
        ("漢".encode() * 11 + b"\n", (1, 2), "608", "less -SRX --header=1,2"),
    ],
)
def test_what_the_pager_keeps_in_view(
    scripted: type[Scripted],
    monkeypatch: pytest.MonkeyPatch,
    given: bytes,
    frozen: tuple[int, int],
    version: str,
    expected: str,
) -> None:
    monkeypatch.setattr(pager, "less_version", lambda: f"less {version}")
    sink = ScreenSink(io.BytesIO(), "", sys.stdin, sideways=True)
    sink.freeze(lambda: Look(frozen=frozen))
    sink.write(given)
    [(started, _)] = scripted.started
    assert started.removeprefix("exec ") == expected
    assert started.startswith("exec ") is ("--header" not in expected)
    sink.abort()


def test_a_pager_of_the_user_is_started_as_it_is(scripted: type[Scripted]) -> None:
    for text, started in (("more -d", "exec more -d"), ("cat | head", "cat | head"), (" less -SRX ", "exec less -SRX")):
        sink = ScreenSink(io.BytesIO(), text, sys.stdin)
        sink.freeze(lambda: Look(frozen=(1, 1)))
        sink.write(TALL)
        assert scripted.started[-1][0] == started
        sink.abort()


@pytest.mark.parametrize(
    ("text", "terminal"),
    [
        ("", True),
        ("less -SRXF", True),
        ("less -R", True),
        ("less --RAW-CONTROL-CHARS", True),
        ("less", True),
        ("/usr/bin/less -FRX", True),
        ("LESS=-i less", False),
        ("more", False),
    ],
)
def test_pagers_that_show_colors(
    scripted: type[Scripted], monkeypatch: pytest.MonkeyPatch, text: str, terminal: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("LESS", raising=False)
    assert ScreenSink(Terminal(), text, sys.stdin).terminal is terminal
    assert not ScreenSink(io.BytesIO(), text, sys.stdin).terminal


def test_less_has_the_options_of_its_variable(scripted: type[Scripted], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for options, terminal in (("-iR", True), ("FRX", True), ("-i", False)):
        monkeypatch.setenv("LESS", options)
        sink = ScreenSink(Terminal(), "less", sys.stdin)
        assert (sink.terminal, sink.shares_terminal) == (terminal, True)


def test_without_less_the_terminal_shows_colors(scripted: type[Scripted], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert ScreenSink(Terminal(), "", sys.stdin).terminal


async def nothing() -> None:
    return


def with_key(sink: ScreenSink, data: bytes) -> None:
    """Write to a pager that is offered the key of the explorer, and close it."""

    async def work() -> None:
        sink.offer(nothing)
        sink.write(data)
        sink.close()

    asyncio.run(work())


def text_of(path: Path) -> str:
    return path.read_text()


def test_the_key_of_the_explorer(scripted: type[Scripted]) -> None:
    """The script that less runs for the key waits until the explorer is left."""
    done: list[str] = []

    async def work() -> Path:
        async def explorer() -> None:
            done.append("explored")

        sink = ScreenSink(io.BytesIO(), "", sys.stdin, sideways=True)
        sink.offer(explorer, "12,000 rows")
        sink.write(WIDE)
        [(command, environment)] = scripted.started
        assert environment is not None
        assert command.startswith("exec less -SRX")
        assert command.endswith(" -fL '-Ps?e(END) .12,000 rows, ?ltlines %lt-%lb, .q quits, B explores' /dev/stdin")
        assert environment["LESSCHARSET"] == "utf-8"
        keys = Path(environment["LESSKEYIN"])
        assert text_of(keys) == "#command\nB visual\nv invalid\n"
        for _ in range(2):
            process = await asyncio.create_subprocess_shell(environment["LESSEDIT"].lstrip("-"), env=environment)
            assert await process.wait() == 0
        sink.close()
        assert sink.waited == 1.5
        assert not sink.blocking
        return keys

    keys = asyncio.run(work())
    assert done == ["explored", "explored"]
    assert not keys.parent.exists()


def test_a_prompt_of_the_users_own_is_kept(scripted: type[Scripted], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LESS", "-RPmine")
    with_key(ScreenSink(io.BytesIO(), "", sys.stdin, sideways=True), WIDE)
    assert scripted.started[0][0].endswith(" -fL /dev/stdin")


def test_without_an_explorer_less_has_its_own_keys(scripted: type[Scripted]) -> None:
    sink = ScreenSink(io.BytesIO(), "", sys.stdin, sideways=True)
    sink.write(WIDE)
    sink.close()
    [(command, environment)] = scripted.started
    assert "/dev/stdin" not in command
    assert environment is not None
    assert "LESSKEYIN" not in environment


def test_what_a_new_pipe_may_not_take_waits(scripted: type[Scripted]) -> None:
    """The first write is made in the event loop, which a pager that is not scrolled must not block."""
    data = b"0123456789\n" * 100_000
    sink = ScreenSink(io.BytesIO(), "", sys.stdin)
    sink.write(data)
    process: Any = sink._pager
    assert len(process.data) == pager.NEW_PIPE_BYTES
    sink.write(b"more")
    assert process.data == data + b"more"
    sink.close()


@pytest.mark.parametrize("configured", ["variable", "file", "secure", "other pager"])
def test_the_keys_of_the_user_are_kept(
    scripted: type[Scripted], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, configured: str
) -> None:
    if configured == "variable":
        monkeypatch.setenv("LESSKEYIN", "/mine")
    elif configured == "file":
        (tmp_path / ".lesskey").touch()
    elif configured == "secure":
        monkeypatch.setenv("LESSSECURE", "1")
    monkeypatch.setenv("LESSCHARSET", "latin1")
    sink = ScreenSink(io.BytesIO(), "more" if configured == "other pager" else "", sys.stdin)
    with_key(sink, TALL)
    [(_, environment)] = scripted.started
    assert environment is not None
    assert environment.get("LESSKEYIN") == ("/mine" if configured == "variable" else None)
    assert environment["LESSCHARSET"] == "latin1"


@pytest.mark.parametrize("code", [126, 127, 1])
def test_what_a_pager_that_is_missing_was_given_is_shown(scripted: type[Scripted], code: int) -> None:
    scripted.code = code
    stream = io.BytesIO()
    sink = ScreenSink(stream, "nothing", sys.stdin)
    sink.write(TALL)
    assert sink.blocking
    assert not sink.closed
    sink.finish()
    assert stream.getvalue() == (b"" if code == 1 else TALL)
    sink.close()
    assert stream.getvalue() == (b"" if code == 1 else TALL)


@pytest.mark.parametrize(("code", "shown"), [(127, True), (0, False)])
def test_a_pager_that_exits_while_rows_arrive(scripted: type[Scripted], code: int, shown: bool) -> None:
    scripted.code = code
    stream = io.BytesIO()
    sink = ScreenSink(stream, "nothing", sys.stdin)
    sink.write(TALL)
    assert sink._pager is not None
    sink._pager.finish()
    assert sink.closed
    if shown:
        sink.write(b"more\n")
        assert stream.getvalue() == TALL + b"more\n"
        sink.write(b"and more\n")
        assert stream.getvalue().endswith(b"and more\n")
    else:
        with pytest.raises(OutputClosed):
            sink.write(b"more\n")
        assert stream.getvalue() == b""
    sink.close()


def test_what_was_read_is_not_kept(scripted: type[Scripted], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pager, "MOST_PIPE_BYTES", 100)
    sink = ScreenSink(io.BytesIO(), "nothing", sys.stdin)
    sink.write(TALL)
    assert sink._unread == TALL
    sink.write(b"y" * 82)
    assert sink._unread == b""
    sink.abort()


def test_an_aborted_pager_is_stopped_and_what_is_held_is_shown(scripted: type[Scripted]) -> None:
    stream = io.BytesIO()
    sink = ScreenSink(stream, "nothing", sys.stdin)
    sink.write(b"held")
    sink.abort()
    assert (stream.getvalue(), scripted.started) == (b"held", [])
    sink = ScreenSink(stream, "nothing", sys.stdin)
    sink.write(TALL)
    made = sink._pager
    sink.abort()
    assert made is not None
    assert isinstance(made, Scripted)
    assert made.stopped
    assert not sink.blocking


@pytest.mark.parametrize(
    ("version", "known"),
    [("less 600 (PCRE)", True), ("less 599", False), ("less 1000", True), ("more 700", False), ("", False)],
)
def test_versions_of_less(version: str, known: bool) -> None:
    assert has_header(version) is known


def test_the_version_of_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert less_version() == ""
    (tmp_path / "less").write_text("#!/bin/sh\n[ $1 = --version ] && echo 'less 633 (X)' && echo more\n")
    (tmp_path / "less").chmod(0o755)
    assert less_version() == "less 633 (X)"


def test_the_handler_of_interrupts_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGINT)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    wakeup = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        with lent_terminal(io.StringIO()):
            assert signal.getsignal(signal.SIGINT) is not before
            assert signal.set_wakeup_fd(-1) == -1
            signal.raise_signal(signal.SIGINT)
        assert signal.set_wakeup_fd(writing, warn_on_full_buffer=False) == writing
        assert signal.getsignal(signal.SIGINT) is before
    finally:
        signal.set_wakeup_fd(wakeup)
        os.close(reading)
        os.close(writing)


def test_the_modes_of_the_terminal_come_back() -> None:
    import pty
    import termios

    master, slave = pty.openpty()
    with os.fdopen(slave, "r") as stdin:
        before = termios.tcgetattr(slave)
        with pytest.raises(ZeroDivisionError), lent_terminal(stdin):
            changed = termios.tcgetattr(slave)
            changed[3] &= ~termios.ECHO
            termios.tcsetattr(slave, termios.TCSANOW, changed)
            raise ZeroDivisionError
        assert termios.tcgetattr(slave) == before
    os.close(master)


class Stubborn:
    """A process that ends at the nth request."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = [*failures]
        self.asked: list[str] = []
        self.stdin = io.BytesIO()

    def terminate(self) -> None:
        self.asked.append("terminate")

    def kill(self) -> None:
        self.asked.append("kill")

    def wait(self, timeout: float | None = None) -> int:
        self.asked.append("wait" if timeout is None else "wait a while")
        if timeout is not None and self.failures:
            raise self.failures.pop(0)
        return 0

    def poll(self) -> int:
        return 0


@pytest.mark.parametrize(
    ("failures", "asked"),
    [
        ((), ["terminate", "wait a while", "wait"]),
        ((subprocess.TimeoutExpired("x", 2),), ["terminate", "wait a while", "kill", "wait a while", "wait"]),
    ],
)
def test_a_command_is_stopped(
    monkeypatch: pytest.MonkeyPatch, failures: tuple[Exception, ...], asked: list[str]
) -> None:
    stubborn = Stubborn(*failures)
    monkeypatch.setattr("subprocess.Popen", lambda *given, **named: stubborn)
    process = CommandProcess(Trusted("x"))
    assert process.waited == 0.0
    process.stop()
    assert stubborn.asked == asked
    assert stubborn.stdin.closed
    with pytest.raises(OutputClosed):
        process.write(b"x")


def test_what_a_command_is_started_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTER", "1")
    for environment, expected in ((None, "1\n"), ({"PATH": os.environ["PATH"]}, "\n")):
        process = CommandProcess(Trusted(f"cat >'{tmp_path}/in'; echo $OUTER >'{tmp_path}/out'; exit 3"), environment)
        process.write(b"text" * 100)
        assert process.finish() == process.finish() == 3
        assert process.ended
        assert process.waited > 0
        assert (tmp_path / "in").read_bytes() == b"text" * 100
        assert (tmp_path / "out").read_text() == expected


class Reluctant(io.RawIOBase):
    """A stream that takes three bytes at a time, and sometimes none."""

    def __init__(self, *refusals: object) -> None:
        self.refusals = [*refusals]
        self.data = b""
        self.flushed = 0

    def write(self, data: object) -> int:
        given = bytes(data)  # type: ignore[call-overload]
        if self.refusals:
            error = BlockingIOError(11, "busy")
            error.characters_written = int(str(self.refusals.pop()))
            self.data += given[: error.characters_written]
            raise error
        self.data += given[:3]
        return len(given[:3])

    def flush(self) -> None:
        self.flushed += 1


def test_a_stream_that_others_made_non_blocking(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[object] = []
    monkeypatch.setattr("select.select", lambda *given: waited.append(given[1]))
    stream = Reluctant(2, 0, 4)
    told: list[int] = []
    sink = StreamSink(stream, before=lambda: told.append(1))  # type: ignore[arg-type]
    sink.write(b"abcdefghijk")
    assert (stream.data, len(waited), told, stream.flushed) == (b"abcdefghijk", 3, [1], 1)
    sink.write(b"x")
    assert (stream.flushed, stream.data) == (2, b"abcdefghijkx")


def test_a_write_that_takes_nothing_is_tried_again() -> None:
    class Full(Reluctant):
        answers = iter((None, 0))

        def write(self, data: object) -> int:
            answer = next(self.answers, 1)
            return super().write(data) if answer else answer  # type: ignore[return-value]

    stream = Full()
    StreamSink(stream).write(b"abcdefg")  # type: ignore[arg-type]
    assert stream.data == b"abcdefg"


def test_a_stream_that_is_closed() -> None:
    stream = io.BytesIO()
    sink = StreamSink(stream, "the log")
    stream.close()
    with pytest.raises(OutputError, match="cannot write to the log"):
        sink.write(b"x")
    assert (sink.finish(), sink.close(), sink.abort()) == (None, None, None)  # type: ignore[func-returns-value]
