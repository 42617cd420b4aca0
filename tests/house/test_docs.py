"""README, --help and the tables of the code agree."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

from sqlshell.config.settings import GROUPS, SETTINGS
from sqlshell.errors import Exit
from sqlshell.launch.serve import SERVE
from sqlshell.output.writers.formats import FORMATS
from sqlshell.shell.commands import BUILTIN
from sqlshell.version import __version__
from tests.house import manual

ROOT = Path(__file__).parents[2]
README = ROOT.joinpath("README.md").read_text()


def docs(name: str) -> str:
    return ROOT.joinpath("docs", name).read_text()


def test_the_pages_have_every_command_format_and_exit_code() -> None:
    commands, output, scripts = (docs(name) for name in ("commands.md", "output.md", "scripts.md"))
    for command in BUILTIN:
        assert f"`\\{command.name}" in commands.partition("In the headings")[0], command.name
        assert command.help
    for item in FORMATS:
        assert f"`{item.name}`" in output, item.name
    for code in Exit:
        assert f"| {code.value} |" in scripts, code


def test_the_reference_is_made_from_the_code() -> None:
    assert docs("commands.md") == manual.manual(), "python -m tests.house.manual writes it"
    for name in manual.TABLES:
        assert docs(name) == manual.page(name), "python -m tests.house.manual writes it"


def test_the_reference_has_every_setting_and_default() -> None:
    """The tables are generated; this checks that the generator leaves out none, and reads the defaults correctly."""
    text = docs("settings.md")
    rows = [[cell.strip() for cell in line.split(" | ")] for line in text.splitlines() if line.startswith("| ")]
    for setting in SETTINGS:
        names = {f"`{setting.name}`", *(f"`{flag}`" for flag in setting.flags)}
        row = next(row for row in rows if names & {*row[0].split(), *row[1].split(", ")})
        assert all(f"`{flag}`" in row[1] for flag in setting.flags)
        assert setting.variable == f"SQLSHELL_{setting.name.upper()}"
        if setting.profile:
            assert ("(no variable)" not in row[0]) == setting.environment
        else:
            assert (f"`{setting.variable}`" in row[0]) == setting.environment
        if isinstance(setting.default, int | float) and setting.default and not isinstance(setting.default, bool):
            assert f"{setting.default:g}" in row[2], setting.name
    assert "| `expanded` |  | auto at the prompt, off in scripts |" in text
    for flag, kind, default, _ in SERVE:
        row = next(row for row in rows if row[0] == f"| `{flag}`")
        if kind is not bool and isinstance(default, int | float):
            assert row[1] == f"{default:g}"


def test_every_page_is_in_the_index_and_every_link_leads_somewhere() -> None:
    pages = sorted(path.name for path in (ROOT / "docs").glob("*.md"))
    index = docs("index.md")
    assert [name for name in pages if name != "index.md" and f"({name})" not in index] == []
    for path in (
        ROOT / "README.md",
        ROOT / "SECURITY.md",
        ROOT / "CHANGELOG.md",
        ROOT / ".github" / "CONTRIBUTING.md",
        *(ROOT / "docs").glob("*.md"),
    ):
        for target, _, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(#([^)]+))?\)", path.read_text()):
            page = (path.parent / target).resolve() if target else path
            assert page.exists(), (path.name, target)
            if anchor:
                titles = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
                assert anchor in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_each_page_says_first_for_whom_it_is() -> None:
    pages = [path for path in (ROOT / "docs").glob("*.md") if path.stem not in {"index", "design", "engines", "speed"}]
    assert [path.name for path in pages if not path.read_text().split("\n\n")[1].startswith("For ")] == []


def test_readme_is_short() -> None:
    lines = README.splitlines()
    assert len(lines) <= 120
    assert [line for line in lines if len(line) > 132 and not line.startswith(("|", "python3 "))] == []


def test_help_all_has_every_flag_by_group() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sqlshell", "--help", "all"], capture_output=True, text=True, timeout=60, check=True
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


def test_the_changelog_begins_with_the_version_of_the_code() -> None:
    """Releases have dates; the newest may be unreleased. What a user need not know stands in the commits."""
    text = (ROOT / "CHANGELOG.md").read_text()
    assert max(len(section.splitlines()) for section in text.split("\n## ")) <= 100
    releases = re.findall(r"^## \[(.+?)\] - (unreleased|\d{4}-\d\d-\d\d)$", text, re.M)
    assert len(releases) == len(re.findall("^## ", text, re.M))
    assert releases[0][0] == __version__
    dates = [date for _, date in releases]
    assert dates == sorted(dates, reverse=True)
    assert "unreleased" not in dates[1:]
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.+)$", text, re.M)) <= kinds


def test_the_messages_that_the_page_for_trouble_quotes_are_those_of_the_program() -> None:
    """The words between what differs from case to case: names in quotes, files and variables."""
    package = "\n".join(path.read_text() for path in sorted(ROOT.joinpath("sqlshell").rglob("*.py")))
    shown = [row.split(" | ")[0] for row in docs("trouble.md").splitlines() if row.startswith("| ")]
    quoted = [span for cell in shown for span in re.findall(r"`([^`]+ [^`]+)`", cell)]
    assert len(quoted) >= 5
    for message in quoted:
        words = max(re.split(r"'\w+'|\S+\.duckdb|[A-Z]+_[A-Z]+|…", message), key=len)
        assert words.strip() in package, message
