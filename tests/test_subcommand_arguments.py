"""Arguments of subcommands reach their commands as they were given: nothing in them is parsed again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sqlshell.origin import Trusted
from sqlshell.shell.commands import BUILTIN, table
from sqlshell.shell.commands.command import quoted_text
from sqlshell.sql.script.items import BackslashCommand
from sqlshell.sql.script.splitting import split

NAMES = ('it\'s "y".csv', "a b\\n;.csv", "x|y :x :'x'.csv", "`echo no`.csv", "two\nlines.csv", "semi.csv;")


@pytest.mark.parametrize("word", [*NAMES, '"x"', "", "\0\r\f\x85\u2028", "\\", "-- x", "$1 \\. ;;"])
def test_any_text_in_quotes_is_one_argument(word: str) -> None:
    (item,) = split(f"\\fetch {quoted_text(word)}")
    assert isinstance(item, BackslashCommand)
    assert table(BUILTIN)["fetch"].parsed({}, Trusted(item.args)) == [word]


def sqlshell(*args: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sqlshell", *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder, check=False)


@pytest.mark.slow("runs the program")
@pytest.mark.parametrize("name", NAMES)
def test_export_writes_to_any_name(name: str, tmp_path: Path) -> None:
    query = "select :x as a -- the last"
    done = sqlshell("export", "--query", query, "-o", name, "--format", "csv", "--set", "x=1", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {name: "a\n1\n"}


@pytest.mark.slow("runs the program")
def test_replay_opens_any_name(tmp_path: Path) -> None:
    done = sqlshell("replay", 'it\'s\n`echo no` "y" :x', folder=tmp_path)
    assert done.returncode == 2
    assert "echo no" in done.stderr and ":x" in done.stderr and "line break" not in done.stderr


@pytest.mark.parametrize(
    ("args", "option"),
    [
        (["-c", "select 1", "-o", ""], "--output"),
        (["-f", ""], "--file"),
        (["-c", "select 1", "--token-file="], "--token-file"),
        (["-c", "select 1", "--attach", ""], "--attach"),
        (["-c", "select 1", "--checkpoint", ""], "--checkpoint"),
        (["export", "--query", "select 1", "-o", ""], "--output"),
        (["import", "--table", "t", ""], "FILE"),
        (["import", "--table", "t", "a.csv", "--rejects", ""], "--rejects"),
        (["replay", ""], "FILE"),
        (["serve", "--uds", ""], "--uds"),
    ],
)
def test_an_empty_file_name_is_refused(args: list[str], option: str, tmp_path: Path) -> None:
    done = sqlshell(*args, folder=tmp_path)
    name = "sqlshell" if args[0].startswith("-") else f"sqlshell {args[0]}"
    message = f"error: {option}: the file name is empty\nhelp: pass a file name; see {name} --help\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


def test_an_empty_directory_name_is_refused(tmp_path: Path) -> None:
    done = sqlshell("serve", "--data", "", folder=tmp_path)
    assert done.returncode == 2 and "--data: the directory name is empty" in done.stderr


@pytest.mark.parametrize("args", [[""], ["", "-c", "select 1"], ["a.csv", ""], ["doctor", ""]])
def test_an_empty_target_is_refused(args: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    done = sqlshell(*args, folder=tmp_path)
    name = f"sqlshell {args[0]}" if args[0] == "doctor" else "sqlshell"
    message = f"error: TARGET is empty\nhelp: pass a URL, a profile or a file, or omit it; see {name} --help\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)
