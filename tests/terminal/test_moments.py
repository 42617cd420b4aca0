"""The prompt and the line of a wait, compared with files as text and colors: SQLSHELL_GOLDEN=write writes the files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.client.test_statements import RUNNING, scripted
from tests.terminal.terminal import Terminal

pytestmark = pytest.mark.slow("a terminal")

DIRECTORY = Path(__file__).parents[1] / "golden" / "moments"
SIZES = {"80x24": (24, 80), "120x36": (36, 120), "200x60": (60, 200)}
COLORS: dict[str, dict[str, str]] = {
    "dark": {"COLORTERM": "truecolor", "COLORFGBG": "15;0"},
    "dark 256": {"COLORFGBG": "15;0"},
    "light": {"COLORTERM": "truecolor", "COLORFGBG": "0;15"},
    "light 256": {"COLORFGBG": "0;15"},
    "none": {"NO_COLOR": "1"},
    "ascii": {"COLORTERM": "truecolor", "COLORFGBG": "15;0", "LC_ALL": "C"},
    "light ascii": {"COLORTERM": "truecolor", "COLORFGBG": "0;15", "LC_ALL": "C"},
}


def sizes(colors: str) -> list[str]:
    """The sizes of the window that are compared: all with and without UTF-8, and one where only the colors differ."""
    return list(SIZES)[: 3 if colors in {"dark", "ascii"} else 1]


def opened(home: Path, colors: Mapping[str, str], *argv: str) -> Terminal:
    rows, columns = next(iter(SIZES.values()))
    env = {"TERM": "xterm-256color", **colors}
    return Terminal(home, "-q", *argv, env=env, rows=rows, columns=columns)


def seen(terminal: Terminal, rows: int) -> Iterator[str]:
    """The lines of the screen, each with its stretches of one look below it."""
    for number, line in enumerate(terminal.screen().split("\n")[:rows]):
        text = re.sub("[\u2800-\u28ff]", "⠋", line)
        text = re.sub(r"^[|/\\-](?= \[[#.])", "|", text)
        text = re.sub(r"\d+\.\d s", "N s", text)
        text = re.sub(r"  about \d+ \w+ left *(?=  )", "", text)
        text = re.sub(r"\d+ ms", "N ms", text)
        if not text:
            continue
        yield f"{number + 1:>2} {text}"
        looks: list[tuple[int, str]] = []
        for column, char in enumerate(line):
            cell = terminal.cells(number)[column]
            ground = f"on {cell.bg}" if cell.bg != "default" else ""
            look = " ".join(filter(None, (cell.fg, ground, "bold" * cell.bold, "reverse" * cell.reverse)))
            if char != " " and (not looks or looks[-1][1] != look):
                looks.append((column + 1, look))
        if any(look != "default" for _, look in looks):
            yield "   " + ", ".join(look for _, look in looks)


def compare(name: str, terminal: Terminal, colors: str) -> None:
    """Compare the screen in a window that grows."""
    for size in sizes(colors):
        rows, columns = SIZES[size]
        terminal.resize(rows, columns)
        path = DIRECTORY / f"{name} {size} {colors}.txt"

        def drawn(rows: int = rows) -> str:
            return "\n".join(seen(terminal, rows)) + "\n"

        if os.environ.get("SQLSHELL_GOLDEN") == "write":
            terminal.screen_after(1.0)
            path.parent.mkdir(exist_ok=True)
            path.write_text(drawn())
        expected = path.read_text()
        terminal.wait(lambda _, drawn=drawn, expected=expected: drawn() == expected)  # type: ignore[misc]
        assert expected.isascii() == ("ascii" in colors)


@pytest.mark.parametrize("colors", COLORS)
def test_a_wait_in_production(tmp_path: Path, colors: str) -> None:
    answer = {key: value for key, value in RUNNING.items() if key != "message"} | {"progress": 0.42}
    with scripted((202, answer)) as state:
        config = tmp_path / ".config" / "sqlshell" / "config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(
            f'[profiles.prod]\nurl = "{state.url}"\nprompt_color = "#ff5f5f"\ndatabase = "sales"\nschema = "public"\n'
            'role = "analyst"\nread_only = true\ntoken_file = "~/token"\n'
        )
        config.chmod(0o600)
        token = tmp_path / "token"
        token.write_text("tok")
        token.chmod(0o600)
        terminal = opened(tmp_path, COLORS[colors], "prod")
        terminal.wait("analyst@prod:sales.public[ro]>")
        terminal.wait("Tab complete")
        terminal.enter("select count(*) from orders;")
        terminal.wait(lambda text: "42%" in text and "exits" not in text)
        compare("wait", terminal, colors)
        terminal.close()


@pytest.mark.parametrize("colors", COLORS)
def test_the_prompt(tmp_path: Path, colors: str) -> None:
    terminal = opened(tmp_path, COLORS[colors], "shop.duckdb")
    terminal.wait("Tab complete")
    terminal.enter("begin;")
    terminal.wait("shop.main*>")
    terminal.enter("\\pset prompt_lines 2")
    terminal.wait("in a transaction")
    terminal.wait("COMMIT or ROLLBACK ends the transaction")
    terminal.type("\x1bOS")
    terminal.wait("INSERT |" if "ascii" in colors else "INSERT │")
    terminal.type("select 1,")
    terminal.wait("Enter new line")
    compare("prompt", terminal, colors)
    terminal.close()


@pytest.mark.parametrize("colors", COLORS)
def test_a_search_of_the_history(tmp_path: Path, colors: str) -> None:
    history = tmp_path / ".local" / "state" / "sqlshell" / "history"
    history.parent.mkdir(parents=True)
    entries = ("select 'needle' as haystack, 1 + 2; -- of a day", f"insert into notes values ({'1, ' * 60}1);")
    text = "".join(f"\n# {1e9 + at:.6f}\n+{entry}\n" for at, entry in enumerate([*entries, "select nedle;"]))
    history.write_text(f"{text}# failed {1e9 + 2:.6f}\n")
    history.chmod(0o600)
    terminal = opened(tmp_path, {"TZ": "UTC", **COLORS[colors]}, "shop.duckdb")
    terminal.wait("Tab complete")
    terminal.type("\x12ne")
    terminal.wait("history: ne")
    compare("history", terminal, colors)
    terminal.close()


def test_a_script_says_which_statement_of_how_many_runs(tmp_path: Path) -> None:
    """On a terminal while it runs; the results stay, and nothing of the line does."""
    script = tmp_path / "load.sql"
    long = "select count(*) as n from range(2000000) a, range({}) b where (a.range * b.range) % 7 = 3;\n"
    script.write_text(
        "create table t as select 1 as one;\n" + long.format(40) + long.format(60) + "select one from t;\n"
    )
    terminal = Terminal(tmp_path, "work.duckdb", "-f", "load.sql", env={"TERM": "xterm-256color"})
    assert terminal.end() == 0
    assert b"load.sql: statement 2 of 4" in terminal.written
    assert b"load.sql: statement 3 of 4" in terminal.written
    assert b"%" in terminal.written
    shown = terminal.screen()
    assert "statement" not in shown
    assert "^C" not in shown
    assert shown.count("one") == 1
