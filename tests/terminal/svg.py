"""`python -m tests.terminal.svg` draws README's screenshots anew: real screens of the program, in docs/screens."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path

from tests.terminal.terminal import Terminal

FOLDER = Path(__file__).parents[2] / "docs" / "screens"
ROWS, COLUMNS = 22, 92
WIDTH, HEIGHT, MARGIN = 8.4, 18, 14
GROUND, TEXT = "#16181d", "#e6e9ef"
NAMED = {
    "black": "#16181d",
    "red": "#ff8a8a",
    "green": "#a8d97f",
    "brown": "#e6c07b",
    "blue": "#7cb7ff",
    "magenta": "#d7b3ff",
    "cyan": "#5fd7c5",
    "white": "#e6e9ef",
}

Run = tuple[str, str, str, bool]
"""Text, color, background, bold."""


def color(name: str, default: str) -> str:
    if name == "default":
        return default
    return NAMED.get(name.removeprefix("bright"), f"#{name}" if re.fullmatch("[0-9a-f]{6}", name) else default)


def runs(terminal: Terminal, row: int) -> Iterator[tuple[int, Run]]:
    """Stretches of one look in a row, each with its column."""
    line = terminal.cells(row)
    start, text, look = 0, "", ("", "", False)
    for column in range(COLUMNS):
        cell = line[column]
        front, back = color(cell.fg, TEXT), color(cell.bg, GROUND)
        found = (back, front, cell.bold) if cell.reverse else (front, back, cell.bold)
        if found != look and text:
            yield start, (text, *look)
            start, text = column, ""
        text, look = text + (cell.data or ""), found
    yield start, (text, *look)


def svg(terminal: Terminal) -> str:
    width, height = COLUMNS * WIDTH + 2 * MARGIN, ROWS * HEIGHT + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}">',
        f'<rect width="100%" height="100%" rx="8" fill="{GROUND}"/>',
        '<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14" xml:space="preserve">',
    ]
    for row in range(ROWS):
        top = MARGIN + row * HEIGHT
        for column, (text, front, back, bold) in runs(terminal, row):
            left = MARGIN + column * WIDTH
            if back != GROUND:
                parts.append(
                    f'<rect x="{left:.1f}" y="{top}" width="{len(text) * WIDTH:.1f}" height="{HEIGHT}" fill="{back}"/>'
                )
            text = text.rstrip()
            if text:
                weight = ' font-weight="bold"' if bold else ""
                length = f'textLength="{len(text) * WIDTH:.1f}" lengthAdjust="spacingAndGlyphs"'
                place = f'x="{left:.1f}" y="{top + 13}"'
                parts.append(f'<text {place} fill="{front}"{weight} {length}>{escape(text)}</text>')
    return "\n".join([*parts, "</g>", "</svg>", ""])


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        env = {"COLORTERM": "truecolor"}
        terminal = Terminal(Path(name), "-q", "shop.duckdb", env=env, rows=ROWS, columns=COLUMNS)
        terminal.prompt()
        for text in (
            "create table orders as select range as id, range % 9 as customer, (range * 37 % 1000) / 10.0 as total"
            " from range(100);",
            "select customer, count(*) as n, sum(total) as spent from orders\ngroup by customer order by spent desc"
            " limit 4;",
            "select totl from orders;",
        ):
            terminal.type(text + "\r")
            terminal.screen_after(1.2)
        (FOLDER / "results.svg").write_text(svg(terminal))
        terminal.type("\x0c")
        terminal.screen_after(0.3)
        terminal.type("select * from orders o where o.")
        terminal.wait("column")
        terminal.screen_after(0.5)
        (FOLDER / "completion.svg").write_text(svg(terminal))
        terminal.close()


if __name__ == "__main__":
    main()
