"""The command line as data, and completion scripts: all say what --help says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sqlshell.config.settings import SETTINGS
from sqlshell.launch.options import SUBCOMMANDS
from sqlshell.shell.commands import BUILTIN
from tests.conftest import Program


@pytest.fixture
def spec(program: Program) -> dict[str, Any]:
    done = program("--spec")
    assert (done.code, done.err) == (0, "")
    return json.loads(done.out)  # type: ignore[no-any-return]


def test_the_spec_has_every_option_and_command(spec: dict[str, Any], program: Program) -> None:
    names = {name for option in spec["options"] for name in option["names"]}
    assert {flag for setting in SETTINGS for flag in setting.flags} < names
    assert {"-c", "--file", "-h", "--spec"} < names
    assert [item["name"] for item in spec["commands"]] == [item.name for item in BUILTIN]
    assert [item["name"] for item in spec["subcommands"]] == list(SUBCOMMANDS)
    shown = program("--help", "all").out
    assert all(name in shown for name in names)
    assert max(map(len, shown.splitlines())) <= 80
    serve = next(item for item in spec["subcommands"] if item["name"] == "serve")
    role = next(option for option in serve["options"] if "--role" in option["names"])
    assert role["choices"] == ["reader", "writer", "owner"]
    of_format = next(option for option in spec["options"] if "--format" in option["names"])
    assert {"csv", "html"} <= set(of_format["choices"])
    assert of_format["environment"] == "SQLSHELL_FORMAT"


def completed(words: list[str], folder: Path) -> set[str]:
    """What bash offers for the last of the words; `compopt -o default` stands for its own completion of files."""
    line = " ".join(f"'{word}'" for word in words)
    text = (
        'eval "$(sqlshell completion bash)"; compopt() { echo compopt "$@"; }; '
        f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _sqlshell_completion sqlshell; "
        "printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = os.environ | {"PATH": path, "SQLSHELL_CONFIG_DIR": str(folder)}
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, cwd=folder, check=True, env=env)
    assert done.stderr == ""
    return set(done.stdout.split("\n")) - {""}


def test_bash(tmp_path: Path) -> None:
    assert completed(["sqlshell", "--format", "js"], tmp_path) == {"json", "jsonl"}
    assert completed(["sqlshell", "-f", "da"], tmp_path) == {"compopt -o default"}
    assert completed(["sqlshell", "serve", "--ro"], tmp_path) == {"--role"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_read_their_script(program: Program, tmp_path: Path, shell: str) -> None:
    done = program("completion", shell)
    assert done.code == 0
    assert "_SQLSHELL_COMPLETE" in done.out
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    path = tmp_path / "script"
    path.write_text(done.out)
    checked = subprocess.run([found, "-n", str(path)], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


ZSH = r"""
zmodload zsh/zpty
zpty shell 'zsh -f -i'
zpty -w shell 'autoload -Uz compinit; compinit -u -D; source script'
zpty -w shell 'sqlshell() { print -r -- "com""pleted:$*:" }'
zpty -w -n shell "$1"$'\t\r'
zpty -r -m shell out '*completed:*:*'
print -r -- "$out"
"""


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
@pytest.mark.parametrize(
    ("typed", "words"),
    [("sqlshell im", "import"), ("sqlshell --dry", "--dry-run"), ("sqlshell serve --rol", "serve --role")],
)
def test_zsh_completes(program: Program, tmp_path: Path, typed: str, words: str) -> None:
    tmp_path.joinpath("script").write_text(program("completion", "zsh").out)
    asked = ["zsh", "-f", "-c", ZSH, "zsh", typed]
    done = subprocess.run(asked, capture_output=True, text=True, check=True, cwd=tmp_path, timeout=60)
    assert f"completed:{words}:" in done.stdout
    assert "bad option" not in done.stdout and "unmatched" not in done.stdout


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "script"
    path.write_text(program("completion", "fish").out)
    for line, expected in (
        ("sqlshell --form", "--format"),
        ("sqlshell --format js", "jsonl"),
        ("sqlshell doc", "doctor"),
        ("sqlshell serve --rol", "--role"),
    ):
        asked = f"source {path}; complete -C '{line}'"
        done = subprocess.run(["fish", "-N", "-c", asked], capture_output=True, text=True, check=True)
        assert expected in {row.split("\t")[0] for row in done.stdout.splitlines()}, line


def test_an_unknown_shell(program: Program) -> None:
    done = program("completion", "tcsh")
    assert (done.code, done.out) == (2, "")
    assert done.err == "error: unknown shell 'tcsh'\nhelp: expected bash, zsh or fish\n"
