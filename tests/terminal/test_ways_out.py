"""Every way to exit every mode: text typed afterwards is at a plain prompt, and only what was sent has run."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Served
from tests.terminal.terminal import Terminal

pytestmark = pytest.mark.slow("a terminal")

INTERRUPT, END, BELL, ESCAPE = "\x03", "\x04", "\x07", "\x1b"
PASTE = "\x1b[200~drop table t;\x1b[201~"
KEYS = {"Ctrl-C": INTERRUPT, "Ctrl-D": END, "Ctrl-G": BELL, "Escape": ESCAPE, "resize": "", "paste": PASTE}

LONG = "select count(*) from range(100000000000) a, range(1000) b;"
MOMENTS = (0.0, 0.002, 0.004, 0.006, 0.01, 0.02, 0.04)
"""Seconds between Enter and Ctrl-C: while the prompt gives the terminal back, and while what was entered begins."""

SIZES = itertools.cycle([(30, 90), (24, 80)])


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory, served: Served) -> Iterator[Terminal]:
    tmp_path = tmp_path_factory.mktemp("ways-out")
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\necho editing\nread line\nexit 1\n")
    editor.chmod(0o755)
    settings = tmp_path / ".config" / "sqlshell"
    settings.mkdir(parents=True)
    config = settings / "config.toml"
    config.write_text(f'[profiles.asking]\nurl = "{served.url}"\ntoken = "{served.token}"\nconfirm = ["DROP"]\n')
    config.chmod(0o600)
    environment = {"EDITOR": str(editor)}
    opened = Terminal(tmp_path, "-q", "--profile", "asking", env=environment)
    opened.prompt()
    opened.enter("create or replace table t as select range as a from range(100);")
    opened.wait("Continue?")
    opened.enter("y")
    opened.wait("CREATE TABLE ·")
    opened.prompt()
    opened.enter("select 'delete from t;' as bait;")
    opened.wait("1 row")
    opened.prompt()
    yield opened
    opened.close()


def press(terminal: Terminal, key: str) -> None:
    if key == "resize":
        terminal.resize(*next(SIZES))
    else:
        terminal.type(KEYS[key])
    # A key that begins longer ones is one of its own after half a second.
    terminal.screen_after(0.6 if key == "Escape" else 0.1)


def plain(terminal: Terminal, word: str) -> None:
    """A statement that is typed now runs, and nothing that was not sent has run."""
    terminal.prompt()
    terminal.enter(f"select count(*) || ' rows, {word}' as x from t;")
    terminal.wait(f"100 rows, {word}")
    terminal.prompt()


MODES = {
    # What is typed to begin it, what is seen then, the keys that leave it, and what is typed after the others.
    "search": ("\x12bait", "as bait", {*KEYS} - {"resize"}, INTERRUPT),
    "search, a match chosen": ("\x12bait\x1b[B", "as bait", {*KEYS} - {"resize"}, INTERRUPT),
    "completion": ("select * fro\t", "select * fro", {"Ctrl-C"}, INTERRUPT),
    "continuation": ("delete from t\r", "->", {"Ctrl-C"}, INTERRUPT),
    "question": ("drop table t;\r", "Continue?", {"Ctrl-C", "Ctrl-D"}, "\r"),
    "prompt": ("\\prompt 'say: ' word\r", "\nsay:", {"Ctrl-C", "Ctrl-D"}, "\r"),
    # The second one discards what was typed meanwhile.
    "watch": ("select 1 as w \\watch 1\r", "Ctrl-C stops", {"Ctrl-C"}, 2 * INTERRUPT),
    "pager": ("select a, 'page' as p from t;\r", "q quits", set(), "q"),
    "explorer": ("select a from t \\browse\r", "? for help", {"Ctrl-C", "Ctrl-D", "Escape"}, "q"),
    "editor": ("delete from t \\e\r", "editing", set(), f"\r{INTERRUPT}"),
}

OF_LESS = {"Escape": "xq", "paste": f"{INTERRUPT}q"}
"""What leaves less behind a key that begins a command of its own."""


@pytest.mark.parametrize("mode", MODES)
def test_ways_out(terminal: Terminal, mode: str) -> None:
    begin, seen, leaving, leave = MODES[mode]
    for number, key in enumerate(KEYS):
        if (mode, key) == ("continuation", "Ctrl-D"):
            continue  # It ends the shell.
        terminal.clear()
        terminal.type(begin)
        terminal.wait(seen)
        press(terminal, key)
        if key not in leaving or (key == "paste" and mode.startswith("search")):
            for character in OF_LESS.get(key, leave) if mode == "pager" else leave:
                terminal.type(character)
                terminal.screen_after(0.2)
        plain(terminal, f"{mode} {number}")


@pytest.mark.parametrize("moment", MOMENTS)
def test_ctrl_c_behind_enter_ends_what_was_entered(terminal: Terminal, moment: float) -> None:
    terminal.clear()
    terminal.type(LONG)
    terminal.wait("range(1000) b;")
    press_behind_enter(terminal, moment)
    terminal.prompt()
    plain(terminal, f"{moment} s")


@pytest.mark.parametrize("moment", MOMENTS[::2])
def test_ctrl_c_behind_enter_while_the_pager_starts(terminal: Terminal, moment: float) -> None:
    terminal.clear()
    terminal.type("select a, 'page' as p from t;")
    terminal.wait("from t;")
    press_behind_enter(terminal, moment)
    terminal.screen_after(0.5)
    # It leaves less where that has begun, and is typed at the prompt where it has not; Ctrl-C forgets it there.
    terminal.type("q")
    terminal.screen_after(0.2)
    terminal.type(INTERRUPT)
    terminal.prompt()
    plain(terminal, f"{moment} s")


@pytest.mark.parametrize("keys", ("y\r", f"y\r{INTERRUPT}", INTERRUPT))
def test_ctrl_c_ends_what_runs_behind_a_question(terminal: Terminal, keys: str) -> None:
    terminal.clear()
    terminal.type(f"\\prompt 'say: ' word \\\\ {LONG}\r")
    terminal.wait("\nsay:")
    terminal.screen_after(0.2)
    terminal.type(keys)
    if keys == "y\r":
        terminal.wait("^C cancels")
        terminal.type(INTERRUPT)
        terminal.wait("canceled after ")
    terminal.prompt()
    plain(terminal, f"{len(keys)} keys")


def press_behind_enter(terminal: Terminal, moment: float) -> None:
    if not moment:
        terminal.type(f"\r{INTERRUPT}")
        return
    terminal.type("\r")
    # When the key is pressed is what the test varies.
    time.sleep(moment)
    terminal.type(INTERRUPT)


@pytest.mark.parametrize("key", KEYS)
def test_ways_out_of_hidden_input(tmp_path: Path, served: Served, key: str) -> None:
    terminal = Terminal(tmp_path, "-q", served.url, env={"SQLSHELL_TOKEN": "no-such-token"})
    terminal.wait("token for")
    press(terminal, key)
    if key not in {"Ctrl-C", "Ctrl-D"}:
        terminal.type(INTERRUPT)
    terminal.prompt()
    terminal.clear()
    terminal.type("select 'plain' || ' text' as x;\r")
    terminal.wait("token for")
    terminal.screen_after(0.2)
    terminal.type(f"{served.token}\r")
    shown = terminal.wait("plain text")
    assert "drop table" not in shown
    assert served.token not in shown
    terminal.close()


def test_the_end_of_input_discards_what_is_unfinished(tmp_path: Path, served: Served) -> None:
    terminal = Terminal(tmp_path, "-q", served.url, env={"SQLSHELL_TOKEN": served.token})
    terminal.prompt()
    terminal.type("delete from t\r")
    terminal.wait("->")
    terminal.type(END)
    assert terminal.end() == 0
    terminal.close()


@pytest.mark.parametrize("vi", [False, True], ids=["emacs", "vi"])
@pytest.mark.parametrize("pause", [0.2, 0.8])
def test_enter_after_escape_sends_nothing_unfinished(tmp_path: Path, served: Served, vi: bool, pause: float) -> None:
    terminal = Terminal(tmp_path, "-q", served.url, env={"SQLSHELL_TOKEN": served.token})
    terminal.prompt()
    if vi:
        terminal.type("\x1bOS")
    terminal.type("select 1234567 * 3 as sent")
    terminal.wait("as sent")
    terminal.type("\x1b")
    terminal.screen_after(pause)
    # What follows is shown after the result of what was sent.
    terminal.type("\ri-- behind")
    assert "3703701" not in terminal.wait("-- behind")
    terminal.close()


def test_alt_enter_sends_without_a_semicolon(tmp_path: Path, served: Served) -> None:
    terminal = Terminal(tmp_path, "-q", served.url, env={"SQLSHELL_TOKEN": served.token})
    terminal.prompt()
    terminal.type("select 6 * 7 as sent")
    terminal.wait("as sent")
    terminal.type("\x1b\r")
    terminal.wait("42")
    terminal.close()
