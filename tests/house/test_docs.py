"""What README, --help and the tables of the code say is the same."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

from sqlshell import __version__
from sqlshell.config.settings import GROUPS, SETTINGS
from sqlshell.errors import Exit
from sqlshell.output.writers.formats import FORMATS
from sqlshell.shell.commands import BUILTIN
from tests.house import manual

ROOT = Path(__file__).parents[2]
README = ROOT.joinpath("README.md").read_text()


def test_readme_has_every_command_format_and_exit_code() -> None:
    for command in BUILTIN:
        assert f"`\\{command.name}" in README, command.name
        assert command.help
    for item in FORMATS:
        assert f"`{item.name}`" in README, item.name
    for code in Exit:
        assert f"| {code.value} |" in README, code


def test_readme_and_manual_are_made_from_the_registry() -> None:
    assert manual.README.read_text() == manual.readme(README), "python -m tests.house.manual writes it"
    assert manual.MANUAL.read_text() == manual.manual(), "python -m tests.house.manual writes it"


def test_help_has_every_flag_by_group() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sqlshell", "--help"], capture_output=True, text=True, timeout=60, check=True
    )
    for setting in SETTINGS:
        for flag in setting.flags:
            assert flag in done.stdout, flag
    for group in GROUPS:
        assert f"{group}:" in done.stdout
    assert "Examples:" in done.stdout


def test_the_page_for_contributors_names_files_that_there_are() -> None:
    text = (ROOT / ".github" / "CONTRIBUTING.md").read_text()
    assert ".github/CONTRIBUTING.md" in README
    named = set(re.findall(r"(?<![\w/])(?:sqlshell|tests|docs|\.ci)/[\w/.-]*\w", text))
    assert len(named) > 10
    assert not [name for name in named if not (ROOT / name).exists()]
    for command in re.findall(r"python -m (tests[\w.]+)", text):
        assert importlib.util.find_spec(command) is not None, command


def test_the_changelog_has_dated_releases() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    releases = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", text, re.M)
    assert releases[0] == ("Unreleased", "")
    assert releases[1][0] == __version__
    dates = [date for _, date in releases[1:]]
    assert all(dates)
    assert dates == sorted(dates, reverse=True)
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.+)$", text, re.M)) <= kinds
