"""`python -m tests.terminal.svg` records README's animation and the pictures of docs/ from the real program."""

from __future__ import annotations

import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from html import escape
from pathlib import Path

from tests.terminal.terminal import Terminal

FOLDER = Path(__file__).parents[2] / "docs" / "screens"
ROWS, COLUMNS = 24, 96
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
    "brightblack": "#8a92a3",
}

NAMES_SECONDS = 10.0
"""How long the shell may take to load the names for completion, which it does in the background."""

ARMS = {
    "─": "lr", "│": "ud", "├": "udr", "┤": "udl", "┬": "lrd", "┴": "lru", "┼": "lrud", "┌": "rd", "┐": "ld",
    "└": "ru", "┘": "lu", "╭": "rd", "╮": "ld", "╰": "ru", "╯": "lu",
}  # fmt: skip
"""The ends of thin box-drawing characters: left, right, up, down."""

Run = tuple[str, str, str, bool]
"""Text, color, background, bold."""


def color(name: str, default: str) -> str:
    if name == "default":
        return default
    named = NAMED.get(name) or NAMED.get(name.removeprefix("bright"))
    return named or (f"#{name}" if re.fullmatch("[0-9a-f]{6}", name) else default)


def runs(terminal: Terminal, row: int, columns: int = COLUMNS) -> Iterator[tuple[int, Run]]:
    """Stretches of one look in a row, each with its column."""
    line = terminal.cells(row)
    start, text, look = 0, "", ("", "", False)
    for column in range(columns):
        cell = line[column]
        front, back = color(cell.fg, TEXT), color(cell.bg, GROUND)
        found = (back, front, cell.bold) if cell.reverse else (front, back, cell.bold)
        if found != look and text:
            yield start, (text, *look)
            start, text = column, ""
        text, look = text + (" " if cell.data in ARMS else cell.data or ""), found
    yield start, (text, *look)


def frames(terminal: Terminal, row: int, columns: int) -> Iterator[str]:
    """The lines of frames in a row, drawn, since the characters of many fonts leave gaps between rows."""
    line, paths = terminal.cells(row), defaultdict[str, list[str]](list)
    column, middle = 0, HEIGHT // 2
    while column < columns:
        cell = line[column]
        arms = ARMS.get(cell.data, "")
        path, left = paths[color(cell.fg, TEXT)], MARGIN + column * WIDTH
        center, right = left + WIDTH / 2, left + WIDTH
        if cell.data in "╭╮╰╯" and arms:
            edge, end = (right if "r" in arms else left), (HEIGHT if "d" in arms else 0)
            path.append(f"M{center:.1f} {end}Q{center:.1f} {middle} {edge:.1f} {middle}")
        elif arms:
            begin, end = (0 if "u" in arms else middle), (HEIGHT if "d" in arms else middle)
            if end > begin:
                path.append(f"M{center:.1f} {begin}V{end}")
            if "l" in arms or "r" in arms:
                begin_at = left if "l" in arms else center
                path.append(f"M{begin_at:.1f} {middle}H{right if 'r' in arms else center:.1f}")
        column += 1
    for stroke, path in paths.items():
        if path:
            yield f'<path d="{_merged(path)}" stroke="{stroke}" fill="none"/>'


def _merged(path: list[str]) -> str:
    """The parts of a path, with horizontal lines that meet as one."""
    level = [part for part in path if "H" in part]
    made: list[str] = []
    for part in level:
        begin, _, end = part[1:].partition(f" {HEIGHT // 2}H")
        if made and made[-1].endswith(f"H{begin}"):
            made[-1] = made[-1].rpartition("H")[0] + f"H{end}"
        else:
            made.append(part)
    return "".join([*made, *(part for part in path if "H" not in part)])


def head(rows: int, columns: int) -> str:
    """The beginning of a picture, up to its rows."""
    width, height = columns * WIDTH + 2 * MARGIN, rows * HEIGHT + 2 * MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}">',
            f'<rect width="100%" height="100%" rx="8" fill="{GROUND}"/>',
            '<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14" style="white-space:pre">',
        ]
    )


def row_markup(terminal: Terminal, row: int, columns: int) -> str:
    """A row as SVG, with its top at 0; "" if it is empty."""
    parts = []
    for column, (text, front, back, bold) in runs(terminal, row, columns):
        left = MARGIN + column * WIDTH
        if back != GROUND:
            parts.append(f'<rect x="{left:.1f}" width="{len(text) * WIDTH:.1f}" height="{HEIGHT}" fill="{back}"/>')
        weight = ' font-weight="bold"' if bold else ""
        # Spaces next to each other would be drawn as one.
        for words in re.finditer(r"\S+(?: \S+)*", text):
            place, length = left + words.start() * WIDTH, len(words[0]) * WIDTH
            parts.append(
                f'<text x="{place:.1f}" y="13" fill="{front}"{weight} textLength="{length:.1f}" '
                f'lengthAdjust="spacingAndGlyphs">{escape(words[0])}</text>'
            )
    return "".join([*parts, *frames(terminal, row, columns)])


def svg(terminal: Terminal, rows: int = ROWS, columns: int = COLUMNS) -> str:
    parts = [head(rows, columns)]
    for row in range(rows):
        if markup := row_markup(terminal, row, columns):
            parts.append(f'<g transform="translate(0 {MARGIN + row * HEIGHT})">{markup}</g>')
    return "\n".join([*parts, "</g>", "</svg>", ""])


REVENUE = (
    "select p.category, count(*) as items, sum(i.quantity * i.price) as revenue\n",
    "from shop.order_items i join shop.products p on p.id = i.product_id\n",
    "group by all order by revenue desc",
)
"""A statement on the sample data."""


def pictures(folder: Path, env: dict[str, str]) -> None:
    """Single screens: a result and an error, and completion."""
    terminal = Terminal(folder, "-q", "work.duckdb", env=env, rows=ROWS, columns=COLUMNS)
    terminal.prompt()
    for text in ("\\demo", f"{''.join(REVENUE)} limit 4;", "select stauts from shop.orders;"):
        terminal.enter(text)
        terminal.prompt()
    terminal.wait("42703")
    terminal.prompt()
    (FOLDER / "results.svg").write_text(svg(terminal))
    terminal.clear()
    terminal.screen_after(NAMES_SECONDS)
    terminal.type("select o.id, c.name from shop.orders o join shop.customers c on o")
    terminal.wait("foreign key")
    terminal.type("\t")
    terminal.wait("o.customer_id = c.id\n")
    terminal.screen_after(0.5)
    (FOLDER / "completion.svg").write_text(svg(terminal))
    terminal.close()


def tour(folder: Path, env: dict[str, str]) -> None:
    """The animation of README: the start, sample data, a statement with completion, an error, the explorer.

    The first result is there within five seconds.
    """
    from tests.terminal.recording import Recording

    terminal, film = Terminal(folder, env=env, rows=ROWS, columns=COLUMNS), Recording(ROWS, COLUMNS)
    terminal.prompt()
    film.add(terminal, 0.6)
    film.type(terminal, "\\demo")
    terminal.enter("")
    terminal.wait("\\demo off")
    terminal.prompt()
    film.add(terminal, 0.8)
    film.type(terminal, "select * from shop.products limit 3;", pace=0.05)
    terminal.enter("")
    terminal.wait("3 rows")
    terminal.prompt()
    film.add(terminal, 2.5)
    terminal.screen_after(NAMES_SECONDS)
    for line in REVENUE[:-1]:
        film.type(terminal, line.rstrip("\n"))
        terminal.type("\r")
        film.add(terminal, 0.4)
    film.type(terminal, f"{REVENUE[-1]};")
    terminal.enter("")
    terminal.wait("outdoors")
    terminal.prompt()
    film.add(terminal, 3.5, poster=True)
    film.type(terminal, "select stauts from shop.orders;")
    terminal.enter("")
    terminal.wait("42703")
    terminal.prompt()
    film.add(terminal, 3.5)
    film.type(terminal, "select * from shop.orders \\browse")
    terminal.enter("")
    terminal.wait("? for help")
    film.add(terminal, 1.5)
    for key in "jjjlll":
        terminal.type(key)
        film.add(terminal, 0.3)
    film.add(terminal, 2.5)
    terminal.type("q")
    terminal.prompt()
    film.add(terminal, 1.0)
    terminal.close()
    (FOLDER / "tour.svg").write_text(film.svg())


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    env = {"COLORTERM": "truecolor", "LANG": "C.UTF-8", "PROMPT_TOOLKIT_NO_CPR": "1"}
    for make in (pictures, tour):
        with tempfile.TemporaryDirectory() as name:
            make(Path(name), env)


if __name__ == "__main__":
    main()
