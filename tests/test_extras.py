"""Without the package of an extra, the command that needs it names the package, and everything else works."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import clean_environment

WITHOUT = "import sys; sys.modules |= dict.fromkeys(('keyring', 'plotext', 'sqlglot'))\n"
"""An import of these fails, as it does where the extras are not installed."""

RUN = "from sqlshell.launch.cli import run\nsys.exit(run(sys.argv[1:]))"


def without_extras(home: Path, program: str, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT + program, *argv], capture_output=True, text=True, timeout=60, cwd=home,
        stdin=subprocess.DEVNULL, env=clean_environment(home), check=False,
    )  # fmt: skip


@pytest.mark.slow("starts Python anew")
def test_a_chart_says_what_it_requires(tmp_path: Path) -> None:
    done = without_extras(
        tmp_path, RUN, "-c", "select 1 as a, 2 as b \\chart", "--on-error", "continue", "-c", "select 42"
    )
    assert done.returncode == 2
    assert (
        "\\chart line and scatter require the package plotext (extra: charts)\nhelp: run: pip install 'plotext>=5.3,<6'"
        in done.stderr
    )
    assert "42" in done.stdout


@pytest.mark.slow("starts Python anew")
def test_a_format_says_what_it_requires_before_a_statement_is_sent(tmp_path: Path) -> None:
    program = "sys.modules |= dict.fromkeys(('xlsxwriter', 'pyarrow'))\n" + RUN
    insert = "insert into t values (1) returning i"
    made = without_extras(tmp_path, RUN, "t.db", "-c", "create table t (i int)")
    assert made.returncode == 0, made.stderr
    for arguments in (
        ["t.db", "-o", "x.xlsx", "-c", insert],
        ["t.db", "-c", f"\\copy ({insert}) to 'x.arrow'"],
        ["export", "t.db", "--query", insert, "-o", "x.arrow"],
    ):
        done = without_extras(tmp_path, program, *arguments)
        assert done.returncode == 2, arguments
        assert "the package" in done.stderr
    assert without_extras(tmp_path, RUN, "t.db", "--format", "csv", "-c", "from t").stdout == "i\n"


@pytest.mark.slow("starts Python anew")
def test_heat_maps_require_nothing(tmp_path: Path) -> None:
    chart = "select 'x' as a, 'y' as b, 3 as c \\chart heat"
    done = without_extras(tmp_path, RUN, "-c", chart)
    assert done.returncode == 0, done.stderr
    assert "y │████████│" in done.stdout


def test_a_token_in_the_keyring_says_what_it_requires(tmp_path: Path) -> None:
    config = tmp_path / ".config" / "sqlshell" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[profiles.work]\nurl = "http://127.0.0.1:9/v2"\ntoken_keyring = "sqlshell/me"\n')
    done = without_extras(tmp_path, RUN, "work", "-c", "select 1")
    assert done.returncode == 2
    assert (
        "token_keyring requires the package keyring (extra: keyring)\nhelp: run: pip install keyring (with pipx: "
        in done.stderr
    )


def test_formatting_says_what_it_requires(tmp_path: Path) -> None:
    program = (
        "from sqlshell.shell.interactive.editing.formatter import format_script\nprint(*format_script('select 1'))"
    )
    done = without_extras(tmp_path, program)
    assert done.stdout.startswith(
        "select 1 formatting requires the package sqlglot; run: pip install sqlglot (with pipx: "
    )
