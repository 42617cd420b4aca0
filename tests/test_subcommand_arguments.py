"""Arguments of subcommands reach their commands as they were given: nothing in them is parsed again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

NAMES = ('it\'s "y".csv', "a b\\n;.csv", "x|y :x :'x'.csv", "`echo no`.csv", "two\nlines.csv", "semi.csv;")


def sqlshell(*args: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sqlshell", *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder, check=False)


@pytest.mark.parametrize("name", NAMES)
def test_export_writes_to_any_name(name: str, tmp_path: Path) -> None:
    query = "select :x as a -- the last"
    done = sqlshell("export", "--query", query, "-o", name, "--format", "csv", "--set", "x=1", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {name: "a\n1\n"}


def test_replay_opens_any_name(tmp_path: Path) -> None:
    done = sqlshell("replay", 'it\'s\n`echo no` "y" :x', folder=tmp_path)
    assert done.returncode == 2
    assert "echo no" in done.stderr and ":x" in done.stderr and "line break" not in done.stderr
