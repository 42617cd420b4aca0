"""Whether a terminal is dark or light: what its environment says, what it answers, and what was typed meanwhile."""

from __future__ import annotations

import os
import pty
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlshell.runtime.streams import Streams
from sqlshell.shell.interactive import terminal as tty
from sqlshell.shell.interactive.terminal import background


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TERM_PROGRAM", "COLORTERM", "COLORFGBG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    # An answer that comes late on a busy machine is an answer.
    monkeypatch.setattr(tty, "QUERY_SECONDS", 30.0)


@pytest.fixture
def terminal() -> Iterator[tuple[int, Streams]]:
    """The far side of a terminal, and streams on it."""
    far, near = pty.openpty()
    with os.fdopen(near, "r") as stdin, os.fdopen(os.dup(near), "w") as stdout:
        yield far, Streams(stdin, stdout, stdout)
    os.close(far)


def answered(terminal: tuple[int, Streams], cache: Path, reply: bytes) -> tuple[str, bytes]:
    """What is found where the terminal answers the question so."""
    far, streams = terminal

    def answer() -> None:
        asked = b""
        while not asked.endswith(b"\x1b[c"):
            asked += os.read(far, 64)
        os.write(far, reply)

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        return background(cache, streams)
    finally:
        thread.join()


@pytest.mark.parametrize(
    ("value", "found"),
    [("15;0", "dark"), ("0;15", "light"), ("0;7", "light"), ("15;default;8", "dark"), ("0;6", "dark")],
)
def test_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, found: str) -> None:
    monkeypatch.setenv("COLORFGBG", value)
    with open(os.devnull, "r+") as nothing:  # noqa: PTH123
        assert background(tmp_path / "cache", Streams(nothing, nothing, nothing)) == (found, b"")
    assert (tmp_path / "cache").read_text() == f"-xterm--{value}\t{found}\n"


@pytest.mark.parametrize(
    ("color", "found"),
    [
        (b"rgb:0000/0000/0000", "dark"),
        (b"rgb:ffff/ffff/ffff", "light"),
        (b"rgb:f/f/f", "light"),
        (b"rgba:ff/ff/ff", "light"),
        (b"rgb:00/ff/00", "light"),
        (b"rgb:ff/00/ff", "dark"),
        (b"rgb:80/80/80", "light"),
        (b"rgb:7f/7f/7f", "dark"),
    ],
)
def test_the_terminal_answers(terminal: tuple[int, Streams], tmp_path: Path, color: bytes, found: str) -> None:
    reply = b"a\x1b]11;" + color + b"\x1b\\b\x1b[?62;4cc"
    assert answered(terminal, tmp_path / "made" / "cache", reply) == (found, b"abc")
    # It is asked once.
    assert background(tmp_path / "made" / "cache", terminal[1]) == (found, b"")


def test_a_terminal_that_does_not_know_its_color(terminal: tuple[int, Streams], tmp_path: Path) -> None:
    assert answered(terminal, tmp_path / "cache", b"x\x1b[?1;2c") == ("", b"x")
    assert background(tmp_path / "cache", terminal[1]) == ("", b"")


def test_an_answer_is_kept_for_its_terminal_and_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    with open(os.devnull, "r+") as nothing:  # noqa: PTH123
        streams = Streams(nothing, nothing, nothing)
        monkeypatch.setenv("COLORFGBG", "15;0")
        assert background(cache, streams)[0] == "dark"
        cache.write_text(cache.read_text().replace("dark", "light"))
        assert background(cache, streams)[0] == "light"
        monkeypatch.setenv("TERM", "screen")
        assert background(cache, streams)[0] == "dark"
        cache.write_text(cache.read_text().replace("dark", "light"))
        os.utime(cache, (0, 0))
        assert background(cache, streams)[0] == "dark"
        cache.write_text(cache.read_text().replace("dark", "grey"))
        assert background(cache, streams)[0] == "dark"
        cache.write_bytes(b"\xff")
        assert background(cache, streams)[0] == "dark"
        monkeypatch.delenv("COLORFGBG")
        assert background(cache, streams) == ("", b"")
