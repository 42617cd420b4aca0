"""The explorer in a real pty: scrolling, searching, sorting, filtering, values, files, exiting."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.terminal.terminal import Terminal

ROWS = 25_000
MAKE = (
    "select i as id, 'name ' || i as name, (i * 37) % 1000 as price, {'a': i, 'b': [1, 2, 3, 4, 5, 6, 7, 8, 9]} as doc,"
    f" case when i % 2 = 0 then null else 'x' end as half from range({ROWS}) t(i) \\browse"
)


@pytest.fixture
def explorer(tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmp_path, "-q", "work.duckdb", rows=20, columns=100)
    opened.prompt()
    opened.enter(MAKE)
    opened.wait("row 1 of 25,000")
    yield opened
    opened.close()


@pytest.mark.slow("a terminal")
def test_searching_over_partitions(explorer: Terminal) -> None:
    explorer.type("/name 19\\d{3}$\r")
    explorer.wait("row 19,001 of")
    explorer.type("n")
    explorer.wait("row 19,002 of")
    explorer.type("N")
    explorer.wait("row 19,001 of")
    explorer.type("/nowhere at all\r")
    explorer.wait("no match for 'nowhere at all' below")
    explorer.type("/(\r")
    explorer.wait("no match for '(' below")
    explorer.type("&nowhere at all\r")
    explorer.wait("no rows │")
    assert "Warning" not in explorer.screen()


@pytest.mark.slow("a terminal")
def test_all_rows_of_a_large_result_are_sorted_and_filtered(tmp_path: Path) -> None:
    opened = Terminal(tmp_path, "-q", rows=20, columns=100)
    opened.prompt()
    opened.enter("select i as id, 'name ' || i as name from range(60000) t(i) \\browse")
    opened.wait("row 1 of 60,000")
    opened.type("]")
    opened.wait("name 59999")
    opened.wait("sorted by id desc │")
    opened.type("cname\r&9$\r")
    opened.wait("row 1 of 6,000")
    opened.type("G")
    opened.wait("name 9 ")
    opened.type("s")
    opened.wait("distinct  60,000")
    opened.type("q=")
    opened.wait("row 10 of 60,000")
    opened.close()


@pytest.mark.slow("a terminal")
def test_what_leaves_it(explorer: Terminal, tmp_path: Path) -> None:
    explorer.type("lvjy")
    explorer.wait("copied 2 rows of 1 column")
    sent = explorer.written.split(b"\x1b]52;c;")[1].split(b"\x07")[0]
    assert base64.b64decode(sent).decode() == "name 0\nname 1\n"
    explorer.type("wrows.jsonl\r")
    explorer.wait("wrote 25,000 rows to ")
    lines = (tmp_path / "rows.jsonl").read_text().splitlines()
    assert len(lines) == ROWS
    assert json.loads(lines[-1])["name"] == "name 24999"
    explorer.type("wrows.nonsense\r")
    explorer.wait("unknown file extension")
    explorer.type("q")
    explorer.prompt()
    explorer.enter("select 1 as a \\g browse")
    explorer.wait("row 1 of 1 ")
    explorer.type("\x1b")
    explorer.prompt()


@pytest.mark.slow("a terminal")
def test_from_the_pager_by_a_key_and_back(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "-q", "work.duckdb", rows=12)
    terminal.prompt()
    terminal.enter("select i as id from range(100) t(i);")
    at_less = "q quits, B explores"
    terminal.wait(lambda text: text.rstrip().endswith(at_less))
    assert terminal.screen().rstrip().splitlines()[-1].startswith("100 rows, lines 1-")
    terminal.type("30g")
    before = terminal.wait(lambda text: "26 │" in text and text.rstrip().endswith(at_less))
    for _ in range(2):
        terminal.type("B")
        terminal.wait("row 1 of 100")
        terminal.type("q")
        terminal.wait(lambda text: text == before)
    terminal.type("q")
    terminal.prompt()
    terminal.enter("select 5 as five;")
    terminal.wait(" 5 │")
    terminal.close()


@pytest.mark.slow("a terminal")
def test_the_key_of_the_pager_while_rows_arrive(tmp_path: Path) -> None:
    """The rest of a large result waits for the pager; the explorer requests the rows itself."""
    terminal = Terminal(tmp_path, "-q", "work.duckdb", rows=12, env={"SQLSHELL_ROWLIMIT": "0"})
    terminal.prompt()
    terminal.enter("select i as id, 'name ' || i as name from range(2000000) t(i);")
    terminal.wait(lambda text: text.rstrip().endswith("q quits, B explores"))
    terminal.type("B")
    terminal.wait("row 1 of 2,000,000")
    terminal.type("G")
    terminal.wait("name 1999999")
    terminal.type("q")
    terminal.wait(lambda text: "name 5 " in text and text.rstrip().endswith("q quits, B explores"))
    terminal.type("q")
    terminal.prompt()
    terminal.close()


@pytest.mark.slow("a terminal")
def test_a_key_at_the_prompt_opens_the_last_result_and_leaves_what_is_typed(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "-q", "work.duckdb", rows=20, columns=60)
    terminal.prompt()
    terminal.type("\x1b[15~")
    terminal.wait("no statement has returned rows yet")
    terminal.enter("select i as id, 'n' || i as name, repeat('x', 25) as a, repeat('y', 25) as b from range(3) t(i);")
    terminal.wait("yyy")
    terminal.prompt()
    terminal.type("select half of it")
    terminal.wait("half of it")
    terminal.type("\x1b[15~")
    terminal.wait("row 1 of 3")
    terminal.type("jjlll")
    # The first column stays when the last one is reached.
    shown = terminal.wait("row 3 of 3 │")
    assert shown.split("\n")[0].split("│")[0].strip() == "id"
    terminal.type("q")
    terminal.wait("> select half of it")
    terminal.type("\x1b[15~")
    terminal.wait("row 3 of 3 │")
    terminal.type("q")
    terminal.wait("> select half of it")
    terminal.type("\x15select 40 + 2 as answer;\r")
    terminal.wait("42")
    terminal.close()


def test_the_mouse(explorer: Terminal) -> None:
    explorer.type("\x1b[<65;10;5M")
    explorer.wait("row 4 of")
    explorer.type("\x1b[<0;12;10M\x1b[<0;12;10m")
    explorer.wait("row 8 of")
    assert b"\x1b[?1000h" in explorer.written
    explorer.type("q")
    explorer.prompt()
    assert b"\x1b[?1000l" in explorer.written


@pytest.mark.slow("a terminal")
def test_watch_redraws_and_marks(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "-q", "work.duckdb")
    terminal.prompt()
    terminal.enter("select nextval('s') as n \\watch 0.2")
    terminal.prompt()
    terminal.enter("create sequence s;")
    terminal.wait("CREATE")
    terminal.enter("select nextval('s') as n, 'same' as t \\watch 0.2")
    terminal.wait("Ctrl-C stops")
    terminal.wait(" 4 │")
    terminal.type("\x03")
    terminal.prompt()
    assert re.search(rb"\x1b\[7m *3\x1b\[0m ", terminal.written)
    assert b"\x1b[7msame" not in terminal.written
    assert terminal.screen().count("Ctrl-C stops") == 1
    terminal.close()


@pytest.mark.slow("a terminal")
def test_what_is_typed_during_watch_is_not_drawn_and_comes_to_the_prompt(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "-q")
    terminal.prompt()
    terminal.enter("create sequence s; select nextval('s') as n \\watch 0.2")
    terminal.wait(" 2 │")
    terminal.type("\r\rselect 'ty' || 'ped' as t;\r\rselect 7")
    shown = terminal.wait(" 6 │")
    assert "select" not in shown.partition("Ctrl-C stops")[2]
    assert shown.count("Ctrl-C stops") == 1
    terminal.type("\x03")
    terminal.wait("│ typed ")
    terminal.wait("> select 7\n")
    terminal.close()


def test_watch_shows_a_wide_table_as_records(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "-q", env={"TERM": "xterm-256color"}, rows=24, columns=80)
    terminal.prompt()
    terminal.enter(
        "select 1 as a, repeat('x', 66) as t, 123456789012 as n, 'seen' as m, repeat('y', 99) as u \\watch 30"
    )
    assert "│ 123456789012\n" in terminal.wait(f"│ {'y' * 76}\n  │ {'y' * 23}\n")
    terminal.type("\x03")
    terminal.prompt()
    terminal.close()


@pytest.mark.slow("a terminal")
def test_ctrl_c_leaves_watch_quietly_while_its_statement_runs(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "-q", "work.duckdb")
    terminal.prompt()
    terminal.enter("select count(*) from range(100000000000) t(i) where i % 7 = 3 \\watch 1")
    terminal.wait("^C cancels")
    terminal.type("\x03")
    shown = terminal.prompt()
    assert "error" not in shown, shown
    assert "asking" not in shown, shown
    terminal.enter("select 'plain' || ' prompt';")
    terminal.wait("plain prompt")
    terminal.close()


def test_files_follow_the_options_of_files(tmp_path: Path) -> None:
    opened = Terminal(tmp_path, "-q", rows=20, columns=100)
    opened.prompt()
    opened.enter("\\pset csv_safe on")
    opened.prompt()
    opened.enter("\\pset insert_table made")
    opened.prompt()
    opened.enter("select '=1+1' as a \\browse")
    opened.wait("row 1 of 1")
    opened.type("wout.csv\r")
    opened.wait("wrote 1 row to out.csv")
    opened.type("wout.sql\r")
    opened.wait("wrote 1 row to out.sql")
    opened.close()
    assert (tmp_path / "out.csv").read_text() == "a\n'=1+1\n"
    assert (tmp_path / "out.sql").read_text().startswith("INSERT INTO made ")
