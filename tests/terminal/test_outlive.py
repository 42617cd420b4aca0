"""Streams, background statements and Ctrl-C in a real pty."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.test_statements import ID, RUNNING, done, scripted
from tests.conftest import Served, serve, stop
from tests.terminal.terminal import Terminal

pytestmark = pytest.mark.slow("a terminal")

LONG = "select count(*) from range(100000000000) a, range(1000) b"


@pytest.fixture(scope="module")
def streaming(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    running = serve(tmp_path_factory.mktemp("streaming"))
    yield running
    stop(running)


@pytest.fixture
def terminal(tmp_path: Path, streaming: Served) -> Iterator[Terminal]:
    opened = Terminal(tmp_path, "-q", streaming.url, env={"SQLSHELL_TOKEN": streaming.token})
    opened.prompt()
    yield opened
    opened.close()


def test_a_stream_is_a_view_of_its_last_rows(tmp_path: Path, streaming: Served, terminal: Terminal) -> None:
    terminal.enter("create stream v (a integer);")
    terminal.prompt()
    terminal.enter("insert into v select range from range(5);")
    terminal.prompt()
    terminal.enter("print entity v from beginning;")
    terminal.wait("Ctrl-C to stop")
    shown = terminal.wait(lambda text: " 4 │" in text and " 5 rows" in text)
    assert "rows/s" in shown
    other = Terminal(tmp_path, "-q", streaming.url, env={"SQLSHELL_TOKEN": streaming.token})
    other.prompt()
    other.enter("insert into v select range from range(1000, 1100);")
    shown = terminal.wait(lambda text: "1099 │" in text and "105 rows" in text)
    assert " 4 │" not in shown
    assert " a │" in shown
    other.close()
    terminal.type("\x03")
    shown = terminal.wait(lambda text: "showsitagain" in "".join(text.split()))
    assert "105 rows in" in shown
    assert "1099 │" in shown
    assert "rows/s" not in shown
    query = re.search(r"TERMINATE QUERY\s+([0-9a-f-]+)", shown)
    assert query is not None
    terminal.prompt()
    terminal.enter("\\jobs 1")
    terminal.wait("running")
    terminal.prompt()
    terminal.enter("\\cancel")
    terminal.wait("was canceled")


def test_the_background_leaves_the_prompt_free(terminal: Terminal) -> None:
    terminal.enter("select count(*) from range(30000000) a, range(40) b;&")
    terminal.wait("[1] is running in the background")
    terminal.prompt()
    terminal.enter("select 42 as answer;")
    terminal.wait(" 42 │")
    terminal.type("select 'half a line")
    # What is being typed is still there, under what was announced.
    terminal.wait(lambda text: "select 'half a line" in text.partition("[1] finished (1 row,")[2])


def test_ctrl_c_cancels_and_says_what_the_service_said(terminal: Terminal) -> None:
    terminal.enter(f"{LONG};")
    terminal.wait("^C cancels")
    terminal.type("\x03")
    terminal.wait(lambda text: re.search(r"^canceled after [\d.]+ s$", text, re.MULTILINE) is not None)
    # It was said while it was waited for, and is gone.
    assert b"canceling" in terminal.written
    assert "canceling" not in terminal.screen()
    terminal.prompt()
    terminal.enter("\\jobs 1")
    terminal.wait("canceled")


def test_ctrl_c_three_times(tmp_path: Path) -> None:
    refusal = done(data=None) | {"sqlState": "42601", "message": "TERMINATE is not known here"}
    with scripted((202, RUNNING), (200, RUNNING), (200, RUNNING), (200, RUNNING)) as state:
        terminal = Terminal(tmp_path, "-q", state.url, env={"SQLSHELL_TOKEN": "tok"})
        terminal.prompt()
        terminal.enter("insert into t values (1);")
        terminal.wait("^C cancels")
        state.answers[:] = [(200, RUNNING)]
        real = state.answers

        class Answers(list):  # type: ignore[type-arg]
            """TERMINATE is refused, look-ups go on."""

            def __getitem__(self, index: int) -> object:  # type: ignore[override]
                ended = b"TERMINATE" in state.asked[-1][3]
                return (200, refusal) if ended else list.__getitem__(real, index)

            def __len__(self) -> int:
                return 1

        state.answers = Answers(real)
        terminal.type("\x03")
        terminal.wait("^C again stops waiting")
        shown = terminal.wait("cannot cancel the statement")
        terminal.type("\x03")
        shown = terminal.wait("left running")
        assert f"\\fetch {ID[:8]} " in shown.replace("\n", "")
        assert "canceled" not in shown
        terminal.prompt()
        terminal.type("\x03")
        assert terminal.end() == 130


def test_a_view_on_a_terminal_that_cannot_draw(tmp_path: Path, streaming: Served) -> None:
    terminal = Terminal(
        tmp_path, "-q", streaming.url, env={"SQLSHELL_TOKEN": streaming.token, "TERM": "dumb"}, columns=100
    )
    terminal.wait(">")
    terminal.enter("create stream dumb (a integer);")
    terminal.enter("insert into dumb values (7);")
    terminal.enter("print entity dumb from beginning;")
    terminal.wait("│       7 │")
    assert b"\x1b[?7l\x1b[" not in terminal.written
    terminal.type("\x03")
    terminal.wait(lambda text: "shows it again" in " ".join(text.split()))
    terminal.close()
