"""The look of results in the real program: at a terminal, without colors, without UTF-8, and in files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import Program
from tests.terminal.terminal import Terminal

SQL = "select 1234567 as id, 'a' as name, null as none, -1.5::double as n"
FILE = (
    "+---------+--------+--------+------+\n|      id | name   | none   |    n |\n"
    "|---------+--------+--------+------|\n| 1234567 | a      | NULL   | -1.5 |\n+---------+--------+--------+------+\n"
)
ROUNDED = (
    "╭─────────┬─────────┬─────────┬────────╮\n│      id │ name    │ none    │      n │\n"
    "│ integer │ varchar │ varchar │ double │\n├─────────┼─────────┼─────────┼────────┤\n"
    "│ 1234567 │ a       │ NULL    │   -1.5 │\n╰─────────┴─────────┴─────────┴────────╯"
)
CODE = re.compile(r"\x1b\[[0-9;]*m")
COLOR = re.compile(rb"\x1b\[(?:[0-9]+;)*(?:3[0-8]|9[0-7])[;m]")


@pytest.mark.slow("a terminal")
@pytest.mark.parametrize(
    ("argv", "env", "colored"),
    [
        ([], {"TERM": "xterm-256color"}, True),
        (["--color", "never"], {"TERM": "xterm-256color"}, False),
        ([], {"TERM": "xterm-256color", "NO_COLOR": "1"}, False),
    ],
)
def test_a_script_at_a_terminal(tmp_path: Path, argv: list[str], env: dict[str, str], *, colored: bool) -> None:
    terminal = Terminal(tmp_path, *argv, "-c", SQL, env=env)
    shown = terminal.wait("╰")
    assert terminal.end() == 0
    assert ROUNDED in shown
    assert (COLOR.search(terminal.written) is not None) == colored


@pytest.mark.slow("runs the program eleven times")
def test_colors_in_a_pipe_and_a_file(tmp_path: Path, program: Program) -> None:
    plain = program("-c", SQL, "-c", "select x")
    for argv, env in (
        (["--color", "always"], {"TERM": "xterm-256color"}),
        (["--color", "always"], {"NO_COLOR": "1", "TERM": "dumb"}),
        ([], {"SQLSHELL_COLOR": "always"}),
        (["--color", "always"], {"SQLSHELL_COLOR": "never"}),
    ):
        done = program(*argv, "-c", SQL, "-c", "select x", env=env)
        for text, uncolored in ((done.out, plain.out), (done.err, plain.err)):
            assert COLOR.search(text.encode())
            # The words, the frame and the widths are those of a pipe.
            assert CODE.sub("", text) == uncolored
    for argv in (["--color", "auto"], ["--color", "never"]):
        assert program(*argv, "-c", SQL, env={"SQLSHELL_COLOR": "always"}).out == plain.out
    program("--color", "always", "-o", "out.txt", "-c", SQL)
    assert CODE.sub("", tmp_path.joinpath("out.txt").read_text()) == FILE != tmp_path.joinpath("out.txt").read_text()
    csv = program("--color", "always", "--format", "csv", "-c", SQL)
    assert csv.out == "id,name,none,n\n1234567,a,,-1.5\n"
    command = program("--color", "always", "-c", f"{SQL} \\g |cat >piped.txt")
    assert command.code == 0
    assert COLOR.search(tmp_path.joinpath("piped.txt").read_bytes())
    assert COLOR.search(program("--list-themes", "--color", "always").out.encode())


def test_no_colors_from_the_first_line_of_a_prompt(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "--color", "never", env={"TERM": "xterm-256color"})
    terminal.prompt()
    assert COLOR.search(terminal.written) is None
    terminal.close()


@pytest.mark.slow("a terminal")
def test_a_terminal_without_utf8(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "-c", SQL, env={"TERM": "xterm", "LC_ALL": "C"})
    shown = terminal.wait("-1.5 |")
    assert terminal.end() == 0
    assert "| integer | varchar | varchar | double |" in shown
    assert shown.isascii()


def test_a_dumb_terminal_has_the_table_of_a_terminal_without_colors(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "-c", SQL, env={"TERM": "dumb"})
    assert terminal.end() == 0
    assert ROUNDED in terminal.screen()
    assert b"\x1b" not in terminal.written


@pytest.mark.slow("a terminal, runs the program twice")
def test_a_pipe_and_files_keep_their_bytes(tmp_path: Path, program: Program) -> None:
    for env in ({}, {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8"}):
        assert program("-c", SQL, env=env).out == FILE
    terminal = Terminal(tmp_path, "-o", "out.txt", "-c", SQL, env={"TERM": "xterm-256color"})
    assert terminal.end() == 0
    assert tmp_path.joinpath("out.txt").read_text() == FILE


@pytest.mark.slow("a terminal")
def test_types_a_style_and_the_explorer_at_the_prompt(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "-q", env={"TERM": "xterm-256color"})
    terminal.prompt()
    terminal.enter("\\pset types off")
    terminal.prompt()
    terminal.enter(f"{SQL};")
    assert "integer" not in terminal.wait("1 row · ")
    terminal.prompt()
    terminal.enter("\\pset table_style psql")
    terminal.prompt()
    terminal.enter("select 'framed' as x;")
    terminal.wait("| framed |")
    terminal.prompt()
    terminal.enter("\\pset browse 3")
    terminal.prompt()
    terminal.enter("select 1 as a, 2 as b, 3 as c;")
    terminal.wait("q to quit")
    terminal.type("q")
    terminal.prompt()
    terminal.enter("select 'two' as columns, 2 as n;")
    terminal.wait("| two")
    terminal.close()


def test_a_note_has_its_label_at_a_terminal_only(tmp_path: Path, program: Program) -> None:
    said = "resuming at s.sql:2 (1 done)"
    run = ("w.duckdb", "--checkpoint", "c", "--resume", "-f", "s.sql")
    (tmp_path / "s.sql").write_text("create table t (i int);\nselect x;\n")
    program(*run)
    assert program(*run).err.startswith(f"{said}\n")
    (tmp_path / "s.sql").write_text("create table t (i int);\nselect 2;\n")
    terminal = Terminal(tmp_path, *run, env={"TERM": "xterm-256color", "COLORTERM": "truecolor"})
    shown = terminal.wait(f"note: {said}")
    row = shown.split("\n").index(f"note: {said}")
    label, text = (terminal.cells(row)[column].fg for column in (0, 6))
    assert label != text == "default"
    assert terminal.end() == 0


@pytest.mark.slow("a terminal")
def test_a_description_is_wrapped_on_a_narrow_screen(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "-q", env={"TERM": "xterm-256color"}, columns=44)
    terminal.prompt()
    terminal.enter(
        "create table prices(id integer primary key, net decimal(9, 2), gross decimal(9, 2),"
        " check(gross >= net and gross < net * 2 and net > 0));"
    )
    terminal.prompt()
    terminal.clear()
    terminal.enter("\\d prices")
    shown = terminal.wait("Check constraints:")
    terminal.prompt()
    lines = terminal.screen().split("\n")
    assert max(map(len, lines)) <= 44
    start = lines.index("Check constraints:") + 1
    below = [line for line in lines[start:] if line.startswith("    ")]
    assert len(below) > 1, shown
    # Whole words, below the first one.
    assert all(line[4] != " " for line in below)
    words = " ".join(line.strip() for line in below).split()
    assert {"gross", "net", "CHECK"} <= set(re.findall(r"\w+", " ".join(words)))
    terminal.close()


def test_the_help_for_a_statement_has_no_line_that_is_broken_twice(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "-c", "\\h select", env={"TERM": "xterm"}, rows=30)
    assert terminal.end() == 0
    assert "HAVING, window functions, QUALIFY, SELECT," in terminal.screen()


def test_the_pager_says_that_a_result_is_not_whole(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "-q", env={"TERM": "xterm", "SQLSHELL_ROWLIMIT": "50"})
    terminal.prompt()
    terminal.enter("from range(100);")
    terminal.wait("first 50 rows, lines 1-23, q quits, B explores")
    terminal.type("q")
    terminal.prompt()
    terminal.close()
