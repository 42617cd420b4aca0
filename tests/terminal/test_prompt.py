"""Editing at the prompt: completion, history, keys, in a real pty."""

from __future__ import annotations

import re
import signal
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Served
from tests.terminal.terminal import Terminal

F2 = "\x1bOQ"


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmp_path, "-q", "work.duckdb")
    opened.prompt()
    yield opened
    opened.close()


def type_until(terminal: Terminal, text: str, seen: str) -> None:
    """Type a text anew until something is seen: what completion knows is loaded in the background."""
    for number in range(20):
        terminal.type(text)
        if seen in terminal.screen_after(0.5 + number / 4):
            return
        terminal.type("\x03")
        # Between two prompts the terminal itself shows what is typed.
        terminal.prompt()
    raise AssertionError(f"{seen} is not seen after {text}:\n{terminal.screen()}")


@pytest.mark.slow("a terminal")
def test_names_are_completed_after_they_are_made(terminal: Terminal) -> None:
    terminal.enter("create table measurements (reading_id integer, celsius double);")
    terminal.wait("CREATE TABLE")
    terminal.prompt()
    type_until(terminal, "select * from meas", "  table")
    terminal.type("\t")
    terminal.wait("select * from measurements")
    terminal.type(" where cel")
    terminal.wait("double measurements")
    terminal.type("\t > 1;\r")
    terminal.wait("0 rows")


@pytest.mark.slow("a terminal")
def test_completion_can_be_switched_off(terminal: Terminal) -> None:
    terminal.type(F2)
    terminal.type("sele")
    # Nothing says that no menu will follow.
    assert "keyword" not in terminal.screen_after(0.6)
    terminal.type("\x03" + F2 + "sele")
    terminal.wait("keyword")


def test_commands_and_their_arguments_are_completed(terminal: Terminal) -> None:
    terminal.type("\\form")
    terminal.wait("List the output formats")
    terminal.type("\t cs")
    terminal.wait("comma")
    terminal.type("\t\r\r")
    terminal.wait("Format is csv")


@pytest.mark.slow("a terminal")
def test_the_condition_of_a_join_is_completed(terminal: Terminal) -> None:
    terminal.enter("create table person (nr integer primary key);")
    terminal.wait("CREATE TABLE")
    terminal.prompt()
    terminal.enter("create table visit (who integer references person(nr));")
    terminal.wait(lambda text: text.count("CREATE TABLE") == 2)
    terminal.prompt()
    for number in range(20):
        terminal.type("select * from visit v join person p on ")
        terminal.screen_after(0.3)
        terminal.type("\t")
        if "foreign key" in terminal.screen_after(1 + number / 4):
            break
        terminal.type("\x03")
    terminal.wait("v.who = p.nr")
    terminal.type("\x03\\d vis")
    terminal.wait("  table")
    terminal.type("\t")
    terminal.wait("\\d visit")


def test_ctrl_c_is_for_the_command_that_has_the_terminal(terminal: Terminal) -> None:
    # A shell runs its trap between two commands only: none of them may be long.
    waiting = "while :; do sleep 0.1; done"
    terminal.enter(f"\\! trap 'echo interrupted; read line; echo read $line; exit' INT; echo ready; {waiting}")
    terminal.wait(lambda text: "\nready" in text)
    terminal.type("\x03")
    terminal.wait("^Cinterrupted")
    terminal.enter("a line")
    terminal.wait("\nread a line")
    assert "was interrupted" not in terminal.prompt()


@pytest.mark.slow("a terminal")
def test_a_result_that_once_writes_to_a_file_is_whole(terminal: Terminal, tmp_path: Path) -> None:
    terminal.enter("\\once rows.csv")
    terminal.prompt()
    terminal.enter("from range(12000);")
    terminal.wait("12,000 rows")
    terminal.prompt()
    assert (tmp_path / "rows.csv").read_text().splitlines()[-1] == "11999"


@pytest.mark.slow("a terminal")
@pytest.mark.parametrize("copy", ["copy t from stdin;", "\\copy t from stdin"])
@pytest.mark.parametrize("multiline", ["on", "off"])
def test_rows_are_typed_below_the_copy(tmp_path: Path, copy: str, multiline: str) -> None:
    terminal = Terminal(tmp_path, "--no-rc", rows=30)
    try:
        terminal.prompt()
        terminal.enter(f"\\pset multiline {multiline};")
        terminal.prompt()
        terminal.enter("create table t (a int);")
        terminal.wait("CREATE TABLE")
        terminal.prompt()
        terminal.enter(copy)
        shown = terminal.wait("or Ctrl-D, ends them").split("> " + copy)
        assert "enter the rows" not in shown[0] and "enter the rows" in shown[1]
        terminal.wait(">>")
        terminal.enter("50")
        terminal.enter("select 7")
        terminal.enter("\\.")
        assert "STDIN, line 2" in terminal.wait("cannot be loaded")
        terminal.prompt()
        terminal.type("\x1b[A")
        assert f"> {copy}" in terminal.wait(lambda text: text.count(f"> {copy}") == 2)
    finally:
        terminal.close()


def test_the_history_is_found_in_a_further_line(terminal: Terminal) -> None:
    terminal.enter("select 'needle' as haystack;")
    terminal.prompt()
    terminal.type("select 'first' union all\r")
    terminal.wait("->")
    # Enter may come before the menu.
    terminal.type("\x12ndlhay\r")
    terminal.wait(lambda text: "select 'needle' as haystack;" in text.rpartition("select 'first' union all")[2])
    terminal.type("\r")
    terminal.wait("2 rows")


@pytest.mark.slow("a terminal")
def test_timing_and_psqls_settings_are_those_of_psql(terminal: Terminal) -> None:
    terminal.enter("\\timing")
    terminal.wait("Timing is on.")
    terminal.prompt()
    terminal.enter("\\timing")
    terminal.wait("Timing is off.")
    terminal.prompt()
    terminal.enter("\\set VERBOSITY terse")
    terminal.prompt()
    terminal.enter("select nothing_of_that_name;")
    screen = terminal.wait("not found")
    assert "error[42703]" in screen and " │ select nothing" not in screen
    terminal.prompt()
    terminal.enter("\\set SINGLELINE on")
    terminal.prompt()
    terminal.enter("select 'sent' || ' without' as it")
    terminal.wait("sent without")


@pytest.mark.slow("a terminal")
def test_what_is_edited_is_taken_as_typed(tmp_path: Path) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nsed -i s/before/after/ "$1"\n')
    editor.chmod(0o755)
    terminal = Terminal(tmp_path, "-q", "work.duckdb", env={"EDITOR": str(editor)})
    terminal.prompt()
    terminal.enter("select 'before' as word;")
    terminal.wait("│ before  │")
    terminal.prompt()
    terminal.enter("\\e")
    terminal.wait("│ after   │")
    terminal.prompt()
    terminal.type("\x1b[A")
    terminal.wait(lambda text: text.count("main> select 'after' as word;") == 1)
    terminal.type("\x03")
    terminal.prompt()
    terminal.type("select 'before' \\e\r")
    terminal.wait("work.main> select 'after'\n        ->")
    terminal.enter("as unfinished;")
    terminal.wait("│ after      │")
    terminal.close()


@pytest.mark.slow("two terminals")
def test_the_history_is_kept_by_target_without_secrets(tmp_path: Path, served: Served) -> None:
    first = Terminal(tmp_path, "-q", "one.duckdb")
    first.prompt()
    for text in ("select 'first target';", " select 'left out';", "select 1 as x -- 'password' = 'p'\n;"):
        first.enter(text)
        first.prompt()
    first.enter("create secret s (type nothing, key_id 'k', secret 'hidden-value');")
    first.prompt()
    first.type("\x04")
    assert first.end() == 0
    files = {path.name: path.read_text() for path in tmp_path.rglob("history*") if path.is_file()}
    assert len(files) == 2
    for path in tmp_path.rglob("history*"):
        assert path.stat().st_mode & 0o77 == 0
    for text in files.values():
        assert "select 'first target';" in text
        assert "left out" not in text
        assert "hidden-value" not in text
    second = Terminal(tmp_path, "-q", "two.duckdb")
    second.prompt()
    second.enter("select 'second target';")
    second.prompt()
    second.enter("\\history frsttgt")
    shown = second.wait("select 'first target'")
    assert "20" in shown
    second.prompt()
    second.enter("\\history clear")
    second.wait("target cleared")
    second.prompt()
    second.type("\x04")
    assert second.end() == 0
    text = "".join(path.read_text() for path in tmp_path.rglob("history*") if path.is_file())
    assert "first target" in text
    assert "second target" not in text


def test_the_prompt_is_there_before_the_service_has_answered(tmp_path: Path) -> None:
    """Nobody listens: completion's catalog is loaded behind the prompt, and its failure is nobody's business."""
    terminal = Terminal(tmp_path, "-q", "http://127.0.0.1:9", env={"SQLSHELL_TOKEN": "t"})
    terminal.prompt()
    terminal.type("sel")
    terminal.wait("keyword")
    terminal.type("\x03\x04")
    assert terminal.end() == 0


def test_what_is_typed_at_the_first_prompt_is_kept_until_keys_are_read(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    first = terminal.wait(">")
    terminal.type("select 40 + 2 as answer;\r")
    assert ": in memory, lost on exit" in first
    screen = terminal.wait("42")
    # The other prompt is drawn over the first one, and the greeting stands once.
    assert screen.count("lost on exit") == 1
    terminal.prompt()
    terminal.type("\x04")
    assert terminal.end() == 0


def test_a_signal_at_the_first_prompt_gives_the_terminal_back(tmp_path: Path) -> None:
    # Without compiled modules the signal arrives during their import, as after an installation.
    terminal = Terminal(tmp_path, env={"PYTHONPYCACHEPREFIX": str(tmp_path / "none")})
    terminal.wait(">")
    terminal.process.send_signal(signal.SIGTERM)
    terminal.ended()
    after = termios.tcgetattr(terminal.descriptor)
    assert after[3] & termios.ICANON
    assert after[3] & termios.ECHO
    assert terminal.end() == 128 + signal.SIGTERM


def test_an_error_takes_the_place_of_the_first_prompt(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "http://127.0.0.1:9", "--confirm", "(", env={"SQLSHELL_TOKEN": "t"})
    terminal.end()
    screen = terminal.screen()
    assert "error" in screen
    assert "127.0.0.1:9>" not in screen


def test_a_theme_is_shown_before_it_is_chosen(terminal: Terminal) -> None:
    def ground() -> object:
        rows = terminal.screen().split("\n")
        return terminal.cells(next((number for number, row in enumerate(rows) if "│" in row), 0))[1].bg

    terminal.enter("\\theme")
    assert 'from "Orders"' in terminal.wait("paper")
    terminal.prompt()
    terminal.wait("│")
    before = ground()
    terminal.type("\\theme paper")
    terminal.wait(lambda _: ground() not in {before, "default"})
    terminal.type("\x15")
    terminal.wait(lambda _: ground() == before)


@pytest.mark.slow("a terminal")
def test_title_progress_and_links_of_a_terminal_that_has_them(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "work.duckdb", env={"TERM_PROGRAM": "WezTerm", "TERM": "xterm-256color"})
    terminal.prompt()
    terminal.enter("select sum(a.range * b.range) from range(10000000) a, range(1000000) b;")
    # Some progress in the tab, and what runs in the title.
    terminal.wait(
        lambda _: b"\x1b]9;4;" in terminal.written and b"select sum" in terminal.written.split(b"\x1b]2;")[-1]
    )
    terminal.type("\x03")
    terminal.wait("canceled after")
    terminal.wait(lambda _: b"\x1b]9;4;0\x1b\\" in terminal.written)
    terminal.prompt()
    terminal.enter("select 'x' as k, 1 as n \\export one.csv")
    address = (tmp_path / "one.csv").as_uri().encode()
    terminal.wait(lambda _: b"\x1b]8;;" + address + b"\x1b\\one.csv\x1b]8;;\x1b\\" in terminal.written)
    terminal.prompt()
    terminal.enter("\\q")
    assert terminal.end() == 0
    # The title that was found is given back.
    assert terminal.written.rstrip().rpartition(b"\x1b[23;2t")[1]


@pytest.mark.slow("a terminal")
def test_files_are_written_though_a_statement_failed(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "-q", "work.duckdb")
    terminal.prompt()
    for line, seen in (("\\tee two.csv", "two.csv"), ("select 1 as a;", "1 row"), ("select nope;", "42703")):
        terminal.enter(line)
        terminal.wait(seen)
        terminal.prompt()
    terminal.enter("\\q")
    assert terminal.end() == 0
    assert (tmp_path / "two.csv").read_text() == "a\n1\n"
    assert not list(tmp_path.glob(".two.csv*"))


@pytest.mark.slow("a terminal")
def test_what_is_typed_to_confirm_is_the_target_of_the_prompt(tmp_path: Path) -> None:
    config = tmp_path / ".config" / "sqlshell"
    config.mkdir(parents=True)
    (config / "config.toml").write_text('[profiles.careful]\nurl = "work.duckdb"\nconfirm = "type-name"\n')
    terminal = Terminal(tmp_path, "careful", "-q")
    terminal.prompt()
    terminal.enter("create table t (i int);")
    terminal.wait("CREATE TABLE on careful. Type 'careful' to continue:")
    terminal.enter("careful")
    terminal.wait("CREATE TABLE ·")
    terminal.enter("\\c other.duckdb")
    terminal.wait("connected to other.duckdb")
    terminal.enter("create table u (i int);")
    terminal.wait("CREATE TABLE on other.duckdb. Type 'other.duckdb' to continue:")
    terminal.enter("local")
    terminal.wait("not confirmed")
    terminal.enter("begin;")
    terminal.wait("*>")
    terminal.type("\x04")
    terminal.wait("the open transaction was not committed and is rolled back")
    terminal.close()


@pytest.mark.slow("a terminal")
def test_a_statement_goes_on_after_a_connection_failed(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "-q")
    terminal.prompt()
    terminal.enter("select 41 + 1")
    terminal.wait("->")
    terminal.enter("\\c http://127.0.0.1:9/")
    terminal.wait("connection refused by http://127.0.0.1:9; still connected to")
    terminal.wait("->")
    terminal.enter("as kept;")
    terminal.wait(" 42 │")
    assert "not run" not in terminal.screen()
    terminal.close()


@pytest.mark.slow("a terminal")
def test_a_person_is_asked_by_the_policy(tmp_path: Path) -> None:
    config = tmp_path / ".config" / "sqlshell"
    config.mkdir(parents=True)
    (config / "config.toml").write_text(
        '[profiles.default]\nconfirm = ["DROP"]\nprompt = "{#ff0000 bold}{database}{/}!> "\n'
    )
    terminal = Terminal(tmp_path, "work.duckdb", env={"COLORTERM": "truecolor"})
    terminal.wait("!>")
    terminal.enter("create table t as select 1 as a;")
    terminal.wait("CREATE TABLE ·")
    terminal.enter("drop table t;")
    terminal.wait("Continue? [y/N]")
    terminal.enter("n")
    terminal.wait("not sent")
    terminal.enter("select count(*) as still_there from t;")
    terminal.wait("still_there")
    terminal.enter("drop table t;")
    terminal.wait(lambda text: text.count("Continue? [y/N]") == 2)
    terminal.type("\x03")
    assert "error: canceled" not in terminal.wait("canceled")
    terminal.enter("drop table t;")
    terminal.wait(lambda text: text.count("Continue? [y/N]") == 3)
    terminal.enter("y")
    terminal.wait(lambda text: text.count("Continue? [y/N]") == 3 and "DROP" in text.rsplit("Continue?", 1)[1])
    terminal.enter("select count(*) from t;")
    terminal.wait("3D020")
    terminal.enter("select chr(8238) || 'evil' as x \\gset")
    terminal.enter('drop table :"x";')
    terminal.wait("\\u202eevil")
    terminal.enter("n")
    terminal.enter("\\prompt :x y")
    terminal.wait(lambda text: text.count("\\u202eevil") == 2)
    assert "\u202e".encode() not in terminal.written
    assert b"38;2;255;0;0" in terminal.written
    terminal.close()


@pytest.mark.parametrize("multiline", ["on", "off"])
def test_help_in_a_statement_that_cannot_be_edited_is_explained(terminal: Terminal, multiline: str) -> None:
    for line in (f"\\pset multiline {multiline}", "\\if true", "select 42 \\echo said"):
        terminal.enter(line)
    terminal.wait("said\n       ->")
    terminal.enter("help")
    terminal.wait("Use \\? for help, or Ctrl-C to clear the input.")


def test_ctrl_c_behind_an_empty_line_ends_conditions_and_nothing_later(terminal: Terminal) -> None:
    terminal.enter("\\if false")
    terminal.prompt()
    terminal.type("\r\x03")
    terminal.prompt()
    terminal.enter("select 41 + 1 as n;")
    terminal.wait("42 │")


@pytest.mark.slow("a terminal")
def test_escape_closes_the_menu_and_a_search_says_that_it_finds_nothing(terminal: Terminal) -> None:
    terminal.enter("select 'needle' as haystack;")
    terminal.prompt()
    terminal.type("\\form")
    terminal.wait("List the output formats")
    terminal.type("\x1b")
    terminal.wait(lambda text: "List the output formats" not in text)
    terminal.type("\x15\x12zzqq")
    terminal.wait("no match in the history")
    terminal.type("\x7f" * 4 + "ndl")
    terminal.wait("accepts")
    terminal.type("\x03")
    terminal.wait(lambda text: "history:" not in text and text.rstrip().splitlines()[-1].endswith("exit"))


def test_an_editor_that_is_missing_is_reported_and_a_pasted_tab_is_blank(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, env={"EDITOR": "/nonexist/ed"})
    try:
        terminal.prompt()
        terminal.type("select 1\x18\x05")
        screen = terminal.wait(lambda text: "VISUAL" in text and "> select 1" in text)
        assert "error: cannot start the editor '/nonexist/ed'" in screen
        terminal.type("\x15\x1b[200~select\t2\x1b[201~")
        assert "^I" not in terminal.wait(lambda text: re.search(r"select +2", text) is not None)
    finally:
        terminal.close()


def test_an_empty_prompt_keeps_no_lines_free_for_the_menu(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "-q", rows=14, env={"PAGER": "cat"})
    terminal.prompt()
    terminal.enter("select * from range(20);")
    lines = terminal.wait(lambda text: " 19 " in text and "20 rows" in text and "? help" in text).splitlines()
    assert " 10 " in lines[0]
    assert lines[-2].endswith("main>")
    terminal.type("\x04")
    assert terminal.end() == 0
