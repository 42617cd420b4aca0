"""What a person sees at ten moments, compared with files as text and colors: SQLSHELL_GOLDEN=write writes the files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.terminal.terminal import Terminal
from tests.terminal.test_moments import DIRECTORY, seen

SIZES = {"80x24": (24, 80), "120x36": (36, 120), "200x60": (60, 200)}
COLORS: dict[str, dict[str, str]] = {
    "dark": {"COLORTERM": "truecolor", "COLORFGBG": "15;0"},
    "dark 256": {"COLORFGBG": "15;0"},
    "light": {"COLORTERM": "truecolor", "COLORFGBG": "0;15"},
    "light 256": {"COLORFGBG": "0;15"},
    "none": {"NO_COLOR": "1"},
    "ascii": {"COLORTERM": "truecolor", "COLORFGBG": "15;0", "LC_ALL": "C"},
}
WIDER = ("dark", "light", "none", "ascii")
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
        yield re.sub(r"sqlshell \d\S*", "sqlshell V", line)


@pytest.mark.parametrize(
    ("size", "colors"),
    # The colors of 256 and of 24 bits differ in nothing that depends on the size.
    [(size, colors) for size in SIZES for colors in COLORS if size == "80x24" or colors in WIDER],
)
def test_the_ten_moments(tmp_path: Path, size: str, colors: str) -> None:
    rows, columns = SIZES[size]
    env = {"TERM": "xterm-256color", "LESS": "", **COLORS[colors]}
    terminal = Terminal(tmp_path, "shop.duckdb", env=env, rows=rows, columns=columns)
    terminal.wait("F4 vi")
    found = ["the start", *screen(terminal, rows)]
    terminal.enter(SETUP)
    terminal.wait(lambda text: text.count("main>") > 1)
    terminal.prompt()
    for name, (text, end) in MOMENTS.items():
        terminal.clear()
        terminal.enter(text)
        terminal.wait(lambda shown, end=end: end in shown and "F4 vi" in shown)  # type: ignore[misc]
        terminal.prompt()
        found += ["", name, *screen(terminal, rows)]
    terminal.clear()
    terminal.enter("select i, i * i as square from range(100) t(i);")
    terminal.wait(lambda text: re.search(r"[│|] +10 [│|]", text) is not None and "select" not in text)
    # The last line is the pager's own.
    found += ["", "the pager", *screen(terminal, rows - 1)]
    terminal.type("q")
    terminal.wait("100 rows")
    terminal.clear()
    terminal.enter(LONG)
    terminal.wait("^C cancels")
    terminal.type("\x03")
    terminal.wait("canceled after ")
    terminal.prompt()
    # The toolbar is drawn some moments later.
    found += ["", "Ctrl-C", *screen(terminal, rows - 1)]
    terminal.clear()
    for _ in range(80):
        # The names are loaded in the background.
        terminal.type("select date_tr")
        if "timestamp" in terminal.screen_after(0.5):
            break
        terminal.type("\x15")
    terminal.wait("Tab next")
    found += ["", "completion", *screen(terminal, rows)]
    terminal.type("unc('day', ")
    terminal.wait(lambda text: "date_trunc(part, timestamp)" in text)
    found += ["", "a signature", *screen(terminal, rows)]
    terminal.close()
    path = DIRECTORY / f"ten {size} {colors}.txt"
    text = "\n".join(found) + "\n"
    assert text.isascii() == (colors == "ascii")
    if os.environ.get("SQLSHELL_GOLDEN") == "write":
        path.write_text(text)
    assert text == path.read_text(), text
