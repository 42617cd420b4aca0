"""The tutorial in a real pty: it waits before each step, and keeps unfinished text."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.terminal.terminal import Terminal

pytestmark = pytest.mark.slow("a terminal")

ASKED = "[q] quit:"


def _asked(number: int, text: str) -> bool:
    return f"{number}/10" in text and text.rstrip().endswith(ASKED)


def test_one_step_at_a_time(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "-q", rows=60, columns=120)
    terminal.prompt()
    terminal.enter("select 41 + 1")
    terminal.enter("\\tutorial")
    shown = terminal.wait(ASKED)
    assert "1/10" in shown
    assert "2/10" not in shown
    terminal.enter("")
    shown = terminal.wait(lambda text: text.count(ASKED) == 2)
    assert "2/10" in shown
    assert "3/10" not in shown
    assert "customer_id" in shown
    terminal.type("s")
    shown = terminal.wait(lambda text: text.count(ASKED) == 3)
    assert "3/10" in shown
    assert "2023-01-01" not in shown
    terminal.enter("")
    terminal.wait(lambda text: text.count(ASKED) == 4 and "RECORD 1" in text)
    terminal.type("q")
    terminal.wait(lambda text: "select 41 + 1" in text.rpartition(ASKED)[2])
    terminal.enter("as kept;")
    terminal.wait(" 42 │")
    terminal.enter("\\tutorial")
    terminal.wait(lambda text: text.count(ASKED) == 5)
    terminal.type("\x03")
    terminal.prompt()
    terminal.close()


def test_the_whole_tour(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "-q", rows=60, columns=120)
    terminal.prompt()
    terminal.enter("\\tutorial")
    for number in range(1, 11):
        terminal.wait(partial(_asked, number))
        terminal.enter("")
    terminal.wait("End of the tour.")
    shown = terminal.prompt()
    assert shown.count("error[42") == 1
    assert 'did you mean "status"?' in shown
    terminal.close()


def test_a_background_statement_that_ends_leaves_the_question_at_its_place(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "-q", rows=40, columns=120)
    terminal.prompt()
    terminal.enter("select count(*) as n from range(3000000) a, range(9) b where (a.range * b.range) % 7 = 3;&")
    terminal.prompt()
    terminal.enter("\\prompt 'your name: ' name")
    shown = terminal.wait(lambda text: "finished" in text and text.rstrip().split("\n")[-1].strip() == "your name:")
    assert "your name: [" not in shown
    terminal.close()
