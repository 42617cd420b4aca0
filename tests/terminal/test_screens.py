"""Whole screens compared with files as text: SQLSHELL_GOLDEN=write writes the files, for review."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.terminal.terminal import Terminal

pytestmark = pytest.mark.slow("a terminal")

FOLDER = Path(__file__).parents[1] / "golden" / "screens"
SIZES = {"80x24": (24, 80), "200x60": (60, 200)}
KINDS: dict[str, dict[str, str]] = {
    "256 colors": {"TERM": "xterm-256color"},
    "16 colors": {"TERM": "xterm"},
    "dumb": {"TERM": "dumb"},
    "no color": {"TERM": "xterm-256color", "NO_COLOR": "1"},
}
COLOR = re.compile(rb"\x1b\[(?:[0-9]+;)*(?:3[0-8]|9[0-7])[;m]")
STEPS = (
    "\\timing off",
    "select 42 as answer, 'é日本' as text, null as nothing;",
    "select 1 as a, 'two\nlines' as b \\gx",
    "select nonsense\nfrom range(3);",
    "\\x sideways",
)


def masked(screen: str) -> str:
    text = re.sub(r"\d+ ms", "N ms", re.sub(r"in \d+\.\d+ s", "in T", screen))
    text = re.sub(r"(rows?), [\d.]+ (?:bytes|kB)", r"\1, N bytes", text)
    text = re.sub(r"\d+\.\d+\.\d+", "V", text)
    text = re.sub(r"session [0-9a-f]{8}", "session S", text)
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}", "ID", text)
    return "\n".join(line.rstrip() for line in text.rstrip().split("\n")) + "\n"


def compare(name: str, terminal: Terminal) -> None:
    """Wait until the screen is that of the file, or write the file."""
    path = FOLDER / f"{name}.txt"
    if os.environ.get("SQLSHELL_GOLDEN") == "write":
        path.write_text(masked(terminal.screen_after(1.0)))
    expected = path.read_text()
    terminal.wait(lambda screen: masked(screen) == expected)


def opened(folder: Path, size: str, env: Mapping[str, str]) -> Terminal:
    rows, columns = SIZES[size]
    fixed = {**env, "PROMPT_TOOLKIT_NO_CPR": "1"}
    return Terminal(folder, "work.duckdb", env=fixed, rows=rows, columns=columns)


@pytest.mark.parametrize(("size", "kind"), [*(("80x24", kind) for kind in KINDS), ("200x60", "256 colors")])
def test_statements_and_errors(tmp_path: Path, size: str, kind: str) -> None:
    terminal = opened(tmp_path, size, KINDS[kind])
    terminal.prompt()
    # Without its menu the prompt needs the same lines whenever it is drawn.
    terminal.type("\x1bOQ")
    for step in STEPS:
        terminal.enter(step)
        terminal.wait(step.rpartition("\n")[2])
        terminal.prompt()
    compare(f"statements {size} {kind}", terminal)
    colored = COLOR.search(terminal.written) is not None
    assert colored == (kind in {"256 colors", "16 colors"})
    terminal.close()


@pytest.mark.parametrize("size", SIZES)
def test_the_menu(tmp_path: Path, size: str) -> None:
    terminal = opened(tmp_path, size, KINDS["256 colors"])
    terminal.prompt()
    terminal.type("create st")
    terminal.wait("stream")
    compare(f"menu {size}", terminal)
    terminal.close()


NOTES = """select i + 1000 as id, ['Ada', 'Grace', 'Barbara'][i + 1] as customer, now()::date - now()::date as days,
'customer' || i || '@example.org' as email, timestamp '2026-01-02 03:04:05.5' as placed,
if(i = 1, 'a note that somebody has written about this order, which is much longer than the other notes are', 'paid')
as note from range(3) t(i)"""


def test_long_texts_a_plan_and_an_open_parenthesis(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "work.duckdb", env=KINDS["256 colors"], rows=50, columns=100)
    terminal.prompt()
    terminal.type("\x1bOQ")
    for ending, footer in ((";", "3 rows"), (" limit 2 offset 1 \\gx", "2 rows")):
        terminal.enter(NOTES.replace("\n", " ") + ending)
        terminal.wait(footer)
        terminal.prompt()
    terminal.enter("explain select 1 as one where false;")
    terminal.prompt()
    terminal.enter("create table notes (")
    terminal.enter("id integer;")
    terminal.wait("( open since line 1")
    compare("reading 100x50", terminal)
    terminal.close()


def test_a_window_that_changes_its_size(tmp_path: Path) -> None:
    terminal = opened(tmp_path, "200x60", KINDS["256 colors"])
    terminal.prompt()
    terminal.type("select 'a long text that will not fit into the next width of this window' as first, 2 as second")
    terminal.wait("as second")
    for rows, columns in ((10, 40), (50, 150), (5, 20), (24, 80)):
        terminal.resize(rows, columns)
        terminal.screen_after(0.1)
    terminal.type(";\r")
    shown = terminal.wait("1 row")
    assert "Traceback" not in shown
    terminal.prompt()
    terminal.close()
