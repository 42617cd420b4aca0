"""docs/start.md, typed at a terminal as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.terminal.terminal import Terminal

PAGE = Path(__file__).parents[2] / "docs" / "start.md"
PROMPT = "memory.main> "
BLOCK = re.compile(rf"^```text\n({PROMPT}.*?)\n```", re.M | re.S)
TIME = re.compile(r"[\d.]+ m?s$", re.M)


def seen(terminal: Terminal, statement: str, printed: str) -> str:
    """What the terminal shows after a line that is typed, up to the next prompt."""
    terminal.clear()
    terminal.enter(statement)
    if statement.endswith("\\browse"):
        screen = terminal.wait("? for help")
        shown = {line.rstrip() for line in screen.splitlines()}
        terminal.type("q")
        terminal.prompt()
        return "\n".join(line for line in printed.splitlines() if line in shown)
    if printed.startswith("canceled"):
        terminal.wait("^C cancels")
        terminal.type("\x03")
    terminal.wait(lambda screen: screen.count(PROMPT.rstrip()) > 1)
    screen = terminal.prompt()
    return screen.partition("\n")[2].rpartition(f"\n{PROMPT.rstrip()}")[0].rstrip()


@pytest.mark.slow("a terminal")
def test_what_is_typed_shows_what_the_page_says(tmp_path: Path) -> None:
    blocks = BLOCK.findall(PAGE.read_text())
    assert len(blocks) == 7
    terminal = Terminal(tmp_path, "-q", rows=40, columns=100)
    terminal.prompt()
    for block in blocks:
        for part in f"\n{block}".split(f"\n{PROMPT}")[1:]:
            statement, _, printed = part.partition("\n")
            assert TIME.sub("…", seen(terminal, statement, printed)) == TIME.sub("…", printed), statement
    terminal.close()
