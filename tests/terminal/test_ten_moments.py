"""What a person sees at ten moments, compared with files as text and colors: SQLSHELL_GOLDEN=write writes the files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.terminal.terminal import Terminal
from tests.terminal.test_moments import COLORS, DIRECTORY, SIZES, seen, sizes

pytestmark = pytest.mark.slow("a terminal")

SETUP = (
    "create table orders(id integer primary key, total decimal(9,2) not null, note varchar default 'none');"
    "insert into orders select 99990 + i, i * 1.5 - 3, case when i % 3 > 0 then 'note ' || i end from range(5) t(i);"
)
MOMENTS = {
    "a result": ("select o.*, id > 99992 as late, date '2026-01-01' + id % 7 as due from orders o;", "5 rows"),
    "a wide one": (
        f"select {', '.join(f'{at} as a_column_{at}' for at in range(12))} from range(2);",
        "2 rows",
    ),
    "a nested one": (
        "select i, {'street': 'Main St ' || i, 'geo': {'lat': 1.5::double, 'lon': i}, 'tags': ['red', 'green', "
        "'blue'], 'more': {'of': 'the same', 'and': 'so on'}} as address from range(2) t(i);",
        "2 rows",
    ),
    "an empty one": ("select * from orders where id < 0;", "0 rows"),
    "an error": ("select id,\rtotl\rfrom orders;", "help:"),
    "details": ("\\d+ orders", "Rows: about"),
}
LONG = "select count(*) from range(30000000) a, range(30000000) b where a.range * b.range % 7 = 3;"


def screen(terminal: Terminal, rows: int) -> Iterator[str]:
    for line in seen(terminal, rows):
        # These depend on the versions of sqlshell and DuckDB.
        yield re.sub(r"sqlshell \d\S*", "sqlshell V", re.sub(r"\+\d overloads", "+N overloads", line))


def widened(terminal: Terminal, size: str) -> int:
    """Give the window a size, and wait until the line at its bottom is drawn there; its rows."""
    rows, columns = SIZES[size]
    terminal.resize(rows, columns)
    terminal.wait(lambda text: "Tab complete" in text.split("\n")[rows - 1])
    return rows


@pytest.mark.flaky("a busy machine draws the toolbar after the screen was read")
@pytest.mark.parametrize("colors", COLORS)
def test_the_ten_moments(tmp_path: Path, colors: str) -> None:
    """In one process, whose window grows."""
    env = {"TERM": "xterm-256color", "LESS": "", **COLORS[colors]}
    rows, columns = next(iter(SIZES.values()))
    terminal = Terminal(tmp_path, "shop.duckdb", env=env, rows=rows, columns=columns)
    terminal.wait("Tab complete")
    starts = {size: [*screen(terminal, widened(terminal, size))] for size in sizes(colors)}
    terminal.enter(SETUP)
    terminal.wait(lambda text: text.count("main>") > 1)
    terminal.prompt()
    wrong = []
    for size in sizes(colors):
        terminal.clear()
        found = ["the start", *starts[size], *moments(terminal, widened(terminal, size))]
        terminal.type("\x15")
        terminal.prompt()
        path = DIRECTORY / f"ten {size} {colors}.txt"
        text = "\n".join(found) + "\n"
        assert text.isascii() == ("ascii" in colors)
        if os.environ.get("SQLSHELL_GOLDEN") == "write":
            path.write_text(text)
        wrong += [] if text == path.read_text() else [f"{path.name}:\n{text}"]
    terminal.close()
    assert not wrong, "\n".join(wrong)


def moments(terminal: Terminal, rows: int) -> Iterator[str]:
    """The lines of the screen at all moments but the first, each with a title."""
    for name, (text, end) in MOMENTS.items():
        terminal.clear()
        terminal.enter(text)
        terminal.wait(lambda shown, end=end: end in shown and "Tab complete" in shown)  # type: ignore[misc]
        terminal.prompt()
        yield from ("", name, *screen(terminal, rows))
    terminal.clear()
    terminal.enter("select i, i * i as square from range(100) t(i);")
    terminal.wait(lambda text: re.search(r"[│|] +10 [│|]", text) is not None and "select" not in text)
    # The last line is the pager's own.
    yield from ("", "the pager", *screen(terminal, rows - 1))
    terminal.type("q")
    terminal.wait("100 rows")
    terminal.clear()
    terminal.enter(LONG)
    terminal.wait("^C cancels")
    terminal.type("\x03")
    terminal.wait("canceled after ")
    terminal.prompt()
    # The toolbar is drawn some moments later.
    yield from ("", "Ctrl-C", *screen(terminal, rows - 1))
    terminal.clear()
    for _ in range(80):
        # The names are loaded in the background.
        terminal.type("select date_tr")
        if "timestamp" in terminal.screen_after(0.5):
            break
        terminal.type("\x15")
    terminal.wait("Tab next")
    yield from ("", "completion", *screen(terminal, rows))
    terminal.type("unc('day', ")
    terminal.wait(lambda text: "date_trunc(part, timestamp)" in text and "Tab next" not in text)
    yield from ("", "a signature", *screen(terminal, rows))
