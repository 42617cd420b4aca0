"""A window that becomes narrower: no row of the former prompt stays on the screen, in tmux either."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sqlshell.shell.interactive.editing.screen_rows import added_rows, breaks_rows
from tests.conftest import clean_environment

LINE = "select 'a long text that will not fit into the next width of this window' as first, 2 as second"


@pytest.mark.parametrize(
    ("widths", "cursor", "columns", "added"),
    [
        ([], 10, 60, 0),
        ([], 94, 60, 1),
        ([], 60, 60, 1),
        ([60, 61, 120, 121], 5, 60, 4),
        ([0, 0], 0, 1, 0),
    ],
)
def test_the_rows_that_a_narrower_window_adds(widths: list[int], cursor: int, columns: int, added: int) -> None:
    assert added_rows(widths, cursor, columns) == added


def test_a_terminal_that_breaks_rows_is_known_by_its_variable() -> None:
    assert breaks_rows({"TMUX": "/tmp/tmux-0/default,1,0"})
    assert not breaks_rows({"TERM": "xterm-256color"})


@pytest.mark.slow("a terminal")
@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_a_narrower_window_of_tmux(tmp_path: Path) -> None:
    env = clean_environment(tmp_path, {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"})
    socket = str(tmp_path / "tmux")

    def tmux(*words: str) -> str:
        told = subprocess.run(
            ["tmux", "-f", os.devnull, "-S", socket, *words], env=env, cwd=tmp_path, check=True, capture_output=True
        )
        return told.stdout.decode()

    def seen(holds: Callable[[list[str]], bool]) -> None:
        for _ in range(400):
            lines = [line.rstrip() for line in tmux("capture-pane", "-p").split("\n") if line.strip()]
            if holds(lines):
                return
            time.sleep(0.1)
        raise AssertionError("\n".join(lines))

    tmux("new-session", "-d", "-x", "120", "-y", "24", sys.executable, "-m", "sqlshell", "-q", "work.duckdb")
    try:
        seen(lambda lines: "Tab complete" in lines[-1] if lines else False)
        tmux("send-keys", LINE)
        seen(lambda lines: "as second" in "".join(lines) and "Enter new line" in lines[-1])
        tmux("resize-window", "-x", "60", "-y", "24")
        drawn = [
            "work.main> select 'a long text that will not fit into the ne",
            "           xt width of this window' as first, 2 as second",
            " Enter new line │ Alt-Enter sends │ ^C discards",
        ]
        seen(lambda lines: lines == drawn)
    finally:
        tmux("kill-server")
