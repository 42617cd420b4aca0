"""The interactive shell in a real pty."""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import termios
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from sqlshell.launch.first_prompt import HINTS
from sqlshell.version import __version__
from tests.terminal.terminal import Terminal

pytestmark = pytest.mark.slow("a terminal")

LONG = "select count(*) from range(100000000000) a, range(1000) b;"

Open = Callable[..., Terminal]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Start the program in a pty; what still runs at the end is killed."""
    terminals: list[Terminal] = []

    def start(*argv: str, env: Mapping[str, str] = {}, rows: int = 24, columns: int = 80) -> Terminal:
        terminal = Terminal(tmp_path, *argv, env=env, rows=rows, columns=columns)
        terminals.append(terminal)
        return terminal

    yield start
    for terminal in terminals:
        terminal.close()


def test_a_statement_and_its_table(opened: Open) -> None:
    terminal = opened()
    first = terminal.prompt()
    target, hint = first.splitlines()[:2]
    assert target == f"sqlshell {__version__}: in memory, lost on exit (to keep data: sqlshell FILE.duckdb)"
    assert hint.startswith("Try \\demo (sample data), \\? start or \\?. ")
    assert hint.partition("\\?. ")[2] in HINTS
    assert "memory.main>" in first
    terminal.enter("select 42 as answer;")
    shown = terminal.wait("1 row")
    assert " answer │" in shown
    assert " 42 │" in shown
    assert "1 row · " in shown
    terminal.prompt()
    terminal.enter("\\q")
    assert terminal.end() == 0


def test_the_prompt_follows_the_context(opened: Open) -> None:
    terminal = opened("-q", columns=120)
    terminal.wait(">")
    terminal.enter("create schema s2; use schema s2;")
    terminal.wait("memory.s2>")


def test_the_first_prompt_of_each_file_shows_its_context(opened: Open) -> None:
    terminal = opened("-q", "one.duckdb")
    assert "one.main>" in terminal.prompt()
    terminal.enter("\\c two.duckdb")
    terminal.wait("two.main>")
    assert b"sqlshell>" not in terminal.written


def test_ctrl_c_ends_the_running_statement(opened: Open) -> None:
    terminal = opened("-q")
    terminal.wait(">")
    terminal.enter(LONG)
    terminal.wait("^C cancels")
    terminal.type("\x03")
    assert "error" not in terminal.wait("canceled after ")
    terminal.prompt()
    terminal.enter("\\errverbose")
    terminal.wait("error[57000]: the statement was canceled")
    terminal.prompt()
    terminal.enter("select 8 as eight;")
    assert " 8 │" in terminal.wait("1 row")


def test_an_error_leaves_the_prompt(opened: Open) -> None:
    terminal = opened("-q")
    terminal.wait(">")
    terminal.enter("select 1/;")
    terminal.wait("42601")
    terminal.prompt()
    terminal.enter("\\nope")
    terminal.wait("unknown command \\nope")
    terminal.prompt()
    terminal.type("\x04")
    assert terminal.end() == 0


def test_history_after_a_restart(opened: Open, tmp_path: Path) -> None:
    first = opened("-q")
    first.wait(">")
    first.enter("select 'kept'\n as k;")
    first.wait("1 row")
    first.prompt()
    first.enter(" select 'secret' as s;")
    first.wait("secret  │")
    first.prompt()
    first.type("\x04")
    assert first.end() == 0
    (file,) = tmp_path.rglob("history")
    assert file.stat().st_mode & 0o777 == 0o600
    assert "secret" not in file.read_text()
    second = opened("-q")
    second.wait(">")
    second.type("\x1b[A")
    assert "as k;" in second.wait("select 'kept'")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_gives_the_terminal_back(opened: Open, number: signal.Signals) -> None:
    terminal = opened("-q")
    terminal.wait(lambda _: b"\x1b[?2004h" in terminal.written)
    assert not termios.tcgetattr(terminal.descriptor)[3] & termios.ICANON
    terminal.process.send_signal(number)
    descriptor = terminal.descriptor
    terminal.ended()
    after = termios.tcgetattr(descriptor)
    assert after[3] & termios.ICANON
    assert after[3] & termios.ECHO
    assert terminal.end() == 128 + number
    assert terminal.written.rindex(b"\x1b[?2004l") > terminal.written.rindex(b"\x1b[?2004h")


def test_a_tall_result_goes_through_the_pager(opened: Open) -> None:
    terminal = opened("-q")
    terminal.wait(">")
    terminal.enter("select range as i from range(100000);")
    terminal.wait(lambda text: text.rstrip().endswith("q quits, B explores"))
    terminal.type("\x03")
    # less discards what is typed until it has handled Ctrl-C.
    for _ in range(100):
        terminal.type("j")
        if "lines 1-" not in terminal.screen_after(0.2):
            break
    terminal.type("q")
    terminal.prompt()
    terminal.enter("select 9 as nine;")
    assert " 9 │" in terminal.wait("1 row")


def test_the_embedded_service_stops_at_the_row_limit_unless_rows_go_to_a_file(opened: Open, tmp_path: Path) -> None:
    terminal = opened("-q", env={"PAGER": "tail -n 3"})
    terminal.wait(">")
    terminal.enter("select range as i from range(30000);")
    shown = terminal.wait("rowlimit")
    assert "9999 |" in shown
    terminal.wait("10,000 rows ·")
    terminal.prompt()
    terminal.enter("\\browse")
    terminal.wait("row 1 of the first 10,000")
    terminal.type("q")
    terminal.prompt()
    terminal.enter("\\local select count(*) as n from _;")
    terminal.wait("_ contains only the first 10,000 rows")
    terminal.prompt()
    terminal.enter(f"\\tee {tmp_path}/all.csv")
    terminal.enter("select range as i from range(30000);")
    terminal.wait("29999")
    terminal.prompt()
    terminal.enter("\\tee")
    terminal.prompt()
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 30_001
    terminal.enter("\\pset rowlimit 0")
    terminal.wait("Rowlimit is 0.")
    terminal.enter("select range as i from range(30000);")
    assert "29999 |" in terminal.wait("29999")


def test_themes(opened: Open) -> None:
    terminal = opened("-q", "--theme", "paper")
    terminal.wait(">")
    terminal.enter("\\theme")
    assert "ember" in terminal.wait("* paper")
    terminal.enter("\\theme ember")
    terminal.wait("Theme is ember")
    terminal.enter("\\theme embr")
    terminal.wait("unknown theme 'embr'")


def test_a_dumb_terminal(opened: Open) -> None:
    terminal = opened("-q", env={"TERM": "dumb"})
    terminal.wait(">")
    terminal.enter("select 42 as answer;")
    terminal.wait("42 │")
    terminal.enter("select * from range(100);")
    # No pager: less would print a warning and wait for Enter.
    assert "fully functional" not in terminal.wait("100 rows")
    terminal.enter("\\q")
    assert terminal.end() == 0


def test_rc_runs_first(opened: Open, tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "sqlshell"
    folder.mkdir(parents=True)
    folder.joinpath("rc.sql").write_text("create table from_rc as select 5 as five;\n\\x on\n")
    terminal = opened("-q")
    terminal.wait(">")
    terminal.enter("from from_rc;")
    terminal.wait("RECORD 1")
    other = opened("-q", "--no-rc")
    other.wait(">")
    other.enter("from from_rc;")
    assert "five" not in other.wait("3D020")


def test_the_list_of_commands_goes_through_the_pager(opened: Open) -> None:
    terminal = opened("-q", env={"LESS": ""})
    terminal.prompt()
    terminal.enter("\\? all")
    terminal.wait(lambda text: "Objects" in text and text.rstrip().endswith(":"))
    terminal.type("q")
    terminal.prompt()
    terminal.enter("\\? gset")
    terminal.wait("in variables")
    terminal.prompt()


def test_a_table_that_does_not_fit_is_shown_as_records(opened: Open) -> None:
    terminal = opened("-q")
    terminal.prompt()
    wide = ", ".join(f"'{chr(97 + at) * 20}' as c{at}" for at in range(6))
    terminal.enter(f"select {wide};")
    shown = terminal.wait("1 row")
    assert "RECORD 1" in shown
    assert f"c5 │ {'f' * 20}" in shown
    terminal.prompt()
    for entered, told in (("\\x", "is on"), ("\\x", "used automatically"), ("\\x off", "is off")):
        terminal.enter(entered)
        terminal.wait(f"Expanded display {told}" if told.startswith("is") else f"Expanded display is {told}")
        terminal.prompt()
    terminal.enter("select 1 as fits;")
    assert "RECORD" not in terminal.wait("fits").rpartition("\\x off")[2]
    terminal.prompt()
    terminal.enter(f"select {wide};")
    terminal.wait(lambda text: "aaaa" in text and text.rstrip().endswith("q quits, B explores"))
    terminal.type("q")
    terminal.prompt()


PASTED = "\x1b[200~create table early\n(a int);\x1b[201~\r"


@pytest.mark.parametrize("early", ["create table early (a int);\r", "create table early (", PASTED])
def test_what_is_typed_before_the_first_prompt_is_kept(opened: Open, early: str) -> None:
    terminal = opened("work.duckdb")
    terminal.type(early)
    terminal.wait("early")
    if early.endswith("("):
        terminal.enter("a int);")
    terminal.wait("CREATE TABLE ·")


def test_what_is_typed_before_the_first_prompt_is_only_there(opened: Open) -> None:
    terminal = opened("work.duckdb", env={"TERM": "xterm"})
    terminal.type("select 'a")
    shown = terminal.wait("main> select 'a")
    assert shown.splitlines()[0] == f"sqlshell {__version__}: work.duckdb"
    assert shown.count("select 'a") == 1
    descriptor = terminal.descriptor
    terminal.type("\x03\x04")
    terminal.ended()
    assert termios.tcgetattr(descriptor)[3] & termios.ECHO


def test_ctrl_c_before_the_first_prompt_reads_keys_clears_the_line(opened: Open) -> None:
    terminal = opened("-q")
    terminal.wait("main>")
    terminal.type("select 'never';\x03select 6 * 7 as answer;\r")
    assert "never" not in terminal.wait("1 row").rpartition("main> select 6")[2]
    terminal.prompt()


def test_an_example_of_the_help_is_run_by_keys(opened: Open) -> None:
    terminal = opened("-q", rows=40, columns=120)
    terminal.prompt()
    terminal.type("\x181")
    terminal.wait("there is no example 1")
    terminal.enter("\\? h")
    shown = terminal.wait("\\h create table")
    assert "Ctrl-X and the number" in shown
    terminal.prompt()
    terminal.type("\x181")
    terminal.wait("main> \\h select")
    terminal.enter("")
    terminal.wait("GROUP BY")
    terminal.prompt()


def test_ctrl_z_suspends_and_fg_continues_the_line(tmp_path: Path) -> None:
    shell = ("bash", "--norc", "-i")
    terminal = Terminal(tmp_path, command=shell, env={"TERM": "xterm", "PS1": "bash$ "}, rows=16)
    terminal.wait("bash$")
    terminal.enter(f"{sys.executable} -m sqlshell -q")
    terminal.wait("main>")
    terminal.type("select 6,")
    terminal.wait("select 6,")
    terminal.type("\x1a")
    terminal.wait(lambda text: "Stopped" in text and text.rstrip().endswith("bash$"))
    terminal.enter("echo typed $((40 + 1))")
    terminal.wait("typed 41")
    terminal.enter("fg")
    terminal.wait(lambda text: "main> select 6," in text.rpartition("fg")[2])
    terminal.enter(" 7;")
    terminal.wait("│       6 │       7 │")
    terminal.prompt()
    terminal.type("\x04")
    terminal.wait(lambda text: text.rstrip().endswith("bash$"))
    terminal.close()


def test_a_terminal_without_unicode_gets_ascii_in_every_line(opened: Open) -> None:
    terminal = opened("-q", env={"LC_ALL": "C", "TERM": "xterm"})
    terminal.wait("? help | ")
    terminal.enter(LONG)
    assert terminal.wait("^C cancels").isascii()
    terminal.type("\x03")
    terminal.wait("canceled after ")
    assert terminal.wait("? help | ").isascii()


def test_a_narrow_screen_wraps_help_at_words(opened: Open) -> None:
    terminal = opened("-q", env={"PAGER": "cat"}, rows=40, columns=20)
    terminal.prompt()
    terminal.enter("\\? gset")
    shown = terminal.wait("shop.orders")
    assert "Run a statement\n  and store its" in shown


def test_what_is_typed_while_a_script_runs_is_not_in_its_line(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "long.sql").write_text(f"select 1 as one;\n{LONG}\n")
    terminal = opened("-f", "long.sql", env={"TERM": "xterm"})
    terminal.wait("statement 2 of 2")
    assert not termios.tcgetattr(terminal.descriptor)[3] & termios.ECHO
    terminal.enter("typed")
    terminal.wait(lambda _: _unread(terminal) == len("typed\n"))
    descriptor = terminal.descriptor
    terminal.process.send_signal(signal.SIGTERM)
    terminal.ended()
    assert termios.tcgetattr(descriptor)[3] & termios.ECHO
    assert "typed" not in terminal.screen()
    assert "statement" not in terminal.screen()


def _unread(terminal: Terminal) -> int:
    """The bytes of complete lines that the kernel has for the program: a busy one takes its time to echo them."""
    theirs = os.open(terminal.name, os.O_RDWR | os.O_NOCTTY)
    try:
        return int.from_bytes(fcntl.ioctl(theirs, termios.FIONREAD, bytes(4)), sys.byteorder)
    finally:
        os.close(theirs)
