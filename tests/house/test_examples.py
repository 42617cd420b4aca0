"""The examples in README, docs and --help work, and everything that the documents name exists."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import duckdb
import pytest

from sqlshell.client.http.decompress import MOST_BYTES, UNANNOUNCED_BYTES
from sqlshell.config.peers import OPTIONS
from sqlshell.config.settings import PREFIX, SETTINGS
from sqlshell.config.values import read_config, resolve
from sqlshell.launch.commands import shell_command
from sqlshell.launch.options import SUBCOMMANDS
from sqlshell.launch.serve import SERVE
from sqlshell.launch.subcommands import subcommand
from sqlshell.service.organizations.pools import Size
from sqlshell.service.organizations.sessions import IDLE_SECONDS
from sqlshell.service.settings import Settings
from sqlshell.shell.commands import BUILTIN, table
from sqlshell.shell.commands.command import find
from sqlshell.shell.interactive.look.themes import load, names
from sqlshell.shell.options import DISPLAY, Options
from sqlshell.shell.records.journal import KEPT_DAYS
from tests.conftest import Served, clean_environment, serve, stop

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"((?:<!--[^>]*-->\n)?)```(\w+)\n(.*?)\n```", re.S)

Example = tuple[str, str]
"""A line that a person types, and what it prints ("" where the document does not say)."""


def blocks(language: str, path: Path) -> list[str]:
    return [block[3] for block in BLOCK.finditer(path.read_text()) if block[2] == language]


def every_block(language: str) -> list[str]:
    return [block for path in DOCUMENTS for block in blocks(language, path)]


def typed_in(path: Path) -> list[Example]:
    """What a document has typed, in its order: a later block may need what an earlier one has made."""
    return [
        (command.strip(), printed)
        for block in blocks("console", path)
        for command, _, printed in (part.partition("\n") for part in f"\n{block}".split("\n$ ")[1:])
    ]


def in_help() -> list[str]:
    """The examples of `sqlshell --help`."""
    epilog = shell_command().epilog or ""
    lines = epilog.partition("Examples:\n")[2].partition("\n\n")[0].splitlines()
    return [re.split(r"\s{3,}", line.strip())[0] for line in lines]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Served]]:
    """A folder with all that the examples name, and a service that the profile `work` goes to."""
    folder = tmp_path_factory.mktemp("examples")
    served = serve(folder, "--data", str(folder / "served"))
    secrets = folder / ".secrets"
    secrets.mkdir(mode=0o700)
    for name in ("token", "work-token"):
        (secrets / name).write_text(served.token)
        (secrets / name).chmod(0o600)
    config = folder / ".config" / "sqlshell"
    config.mkdir(parents=True)
    config.joinpath("config.toml").write_text(
        f'[profiles.work]\nurl = "{served.url}"\ntoken_file = "~/.secrets/work-token"\n'
    )
    programs = folder / "bin"
    programs.mkdir()
    for name, text in (
        ("sqlshell", f'exec {sys.executable} -m sqlshell "$@"'),
        ("generate", "echo 'select 1; selct; select 2;'"),
    ):
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    with duckdb.connect() as database:
        for name in ("sales.parquet", "sales.csv"):
            database.execute(f"copy (from range(9) sales(i)) to '{folder}/{name}'")
    (folder / "load.sql").write_text("create or replace table t as select 1 as a;")
    yield folder, served
    stop(served)


def typed(command: str, home: tuple[Path, Served], *, stdin: str = "") -> subprocess.CompletedProcess[str]:
    folder, _ = home
    extra = {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "SQLSHELL_TOKEN": ""}
    done = subprocess.run(
        ["bash", "-c", command], input=stdin, capture_output=True, text=True, cwd=folder, timeout=60,
        env=clean_environment(folder, extra), check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done


@contextlib.contextmanager
def serving(command: str, home: tuple[Path, Served]) -> Iterator[str]:
    """A `sqlshell serve` of an example on a free port: the address that it prints."""
    folder, _ = home
    process = subprocess.Popen(
        ["bash", "-c", f"exec {command} --port 0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        cwd=folder, env=clean_environment(folder, {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}),
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("listening on http://"), line
        yield line.removeprefix("listening on ").strip()
    finally:
        process.terminate()
        assert process.wait(30) == 0
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.slow("starts a service")
@pytest.mark.parametrize("path", [path for path in DOCUMENTS if typed_in(path)], ids=lambda path: str(path.name))
def test_every_console_block_runs(home: tuple[Path, Served], path: Path) -> None:
    with contextlib.ExitStack() as services:
        known: dict[str, str] = {}
        for command, printed in typed_in(path):
            for placeholder, value in known.items():
                command = command.replace(placeholder, value)
            if command.startswith("sqlshell serve"):
                known |= {"http://127.0.0.1:8765": services.enter_context(serving(command, home)), "…": home[1].token}
                continue
            done = typed(command, home, stdin="select 1 as one;")
            assert done.returncode == 0, (command, done.stderr)
            if printed:
                assert printed in {done.stdout.rstrip("\n"), f"{done.stderr}{done.stdout}".rstrip("\n")}
            if ";&" in command:
                listed = typed("sqlshell work -c '\\jobs 1' --format jsonl", home)
                begun = json.loads(listed.stdout)["id"]
                known |= {"3f2a91c0": begun[:8], "77aa": begun[:8]}
            if (output := re.search(r"> (\S+)", command)) is not None:
                assert (home[0] / output[1]).stat().st_size > 0


@pytest.mark.slow("runs each example")
@pytest.mark.parametrize("command", in_help())
def test_every_example_of_the_help_runs(home: tuple[Path, Served], command: str) -> None:
    if command.startswith("sqlshell serve"):
        with serving(command.replace("DIR", "served-too"), home) as url:
            assert url.startswith("http://127.0.0.1:")
        return
    served = home[1]
    command = command.replace(
        "https://host/v2 --database d", f"{served.url} --database local --token-file ~/.secrets/token"
    )
    done = typed(command, home, stdin="select 1 as one;")
    expected = 1 if command.startswith("generate") else 0
    assert done.returncode == expected, (command, done.stderr)
    if "-o t.csv" in command:
        assert (home[0] / "t.csv").read_text() == "a\n1\n"
    else:
        assert done.stdout


@pytest.mark.slow("runs each example")
def test_the_script_runs(home: tuple[Path, Served]) -> None:
    folder, _ = home
    tables = """
        create table orders as select range as i from range(3);
        create table old_tables as select 'gone' as name;
        create table gone (i int);
        create table jobs as select 'done' as state;
    """
    found = every_block("sql")
    assert found
    for block in found:
        (folder / "script.sql").write_text(f"{tables}\n{block.replace('watch 5', 'watch c=1')}")
        done = typed("sqlshell -f script.sql --format csv", home)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("i\n0\n1\n2\n")
        assert "done,1" in done.stdout


@pytest.mark.slow("runs each example")
@pytest.mark.parametrize("number", range(len(every_block("python"))))
def test_every_python_block_runs(home: tuple[Path, Served], number: int) -> None:
    """What a line prints stands behind it as a comment."""
    block = every_block("python")[number]
    done = typed(f"{sys.executable} -W error -", home, stdin=block)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == re.findall(r"^ *print\(.*\)  # (.*)$", block, re.M)


def test_every_toml_block_is_read(tmp_path: Path) -> None:
    for block in every_block("toml"):
        if "profiles" in tomllib.loads(block):
            (tmp_path / "config.toml").write_text(block)
            config = read_config(tmp_path)
            for name in config.profiles:
                assert resolve({}, {}, config, name).profile == name
        else:
            (tmp_path / "mine.toml").write_text(block)
            load("mine", tmp_path)


def options() -> set[str]:
    """Every flag of the program and of its subcommands."""
    every: list[click.Command] = [shell_command(), *(subcommand(name) for name in SUBCOMMANDS)]
    flags = {opt for command in every for item in command.params for opt in (*item.opts, *item.secondary_opts)}
    peers = {name for names in OPTIONS for name in names.split()}
    return flags | peers | {"--help", "-h"}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.name))
def test_what_a_document_names_exists(path: Path) -> None:
    """Backslash commands, flags and variables of the environment, in code spans and blocks."""
    text = path.read_text()
    spans = re.findall(r"```\w*\n.*?```|`[^`\n]+`", text, re.S)
    # What other programs are given is theirs.
    own = [span for span in spans if not re.search(r"curl|pip |pipx |uv tool |dbt |python3? -m|less |openssl", span)]
    commands = table(BUILTIN)
    for span in own:
        # printf has escapes of its own, and \\copy is psql's.
        named = [] if "printf" in span else re.findall(r"(?<![\\\w'\"])\\([a-z]{2,}[+-]?)(?![\w\\])", span)
        for name in [name for name in named if name != "copy"]:
            assert find(commands, name if name in commands else name.rstrip("+-"))
        for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]+", span):
            assert flag in options(), (span, flag)
    variables = {setting.variable for setting in SETTINGS} | {
        PREFIX + name for name in ("CONFIG_DIR", "STATE_DIR", "TRACEBACK")
    }
    variables |= {PREFIX + "SERVE_" + option[0].removeprefix("--").replace("-", "_").upper() for option in SERVE}
    for name in set(re.findall(r"SQLSHELL_[A-Z_]+[A-Z]", text)):
        assert name in variables, name


def test_the_design_names_the_modules_that_there_are() -> None:
    text = (ROOT / "docs" / "design.md").read_text()
    package = ROOT / "sqlshell"
    there = {path.name for path in package.rglob("*.py")}
    assert not {name for name in re.findall(r"(?<![\w/])([a-z_]+\.py)\b", text) if name not in there}


def test_the_light_themes_are_those_of_the_document() -> None:
    text = (ROOT / "docs" / "themes.md").read_text()
    named = re.search(r"((?:`\w+`(?:, | and )?)+) are for light backgrounds", text)
    assert named is not None
    light = {name for name in names() if load(name).background == "light"}
    assert set(re.findall(r"`(\w+)`", named[1])) == light


def test_numbers_in_documents_are_those_of_the_program() -> None:
    operating, service, client, prompt, results = (
        " ".join((ROOT / "docs" / f"{name}.md").read_text().split())
        for name in ("operating", "service", "client", "interactive", "results")
    )
    given = {option[0]: option[2] for option in SERVE}
    assert f"kept for {given['--retention']:g} hours and within {given['--quota']:g} GiB" in operating
    assert f"{given['--max-statement']} million characters of SQL, {Settings().attachments} attachments of" in operating
    assert f"http://127.0.0.1:{given['--port']}" in service
    defaults = {setting.name: setting.default for setting in SETTINGS}
    assert f"`--retries` ({defaults['retries']})" in client
    assert f"`--retry-timeout` ({defaults['retry_timeout']:g} s)" in client
    assert f"{UNANNOUNCED_BYTES >> 20} MiB, and up to {MOST_BYTES >> 20} MiB" in client
    assert f"{int(IDLE_SECONDS / 60)} minutes without a statement" in service
    size = Size()
    assert f"`concurrency` ({size.concurrency}), `queue` ({size.queue})" in service
    assert f"at {Options().rowlimit:,} rows" in prompt
    assert f"default is {DISPLAY['maxwidth'].at_prompt} at the prompt" in results
    assert f"after {KEPT_DAYS} days" in client


def test_the_map_shows_every_folder_as_the_folder_describes_itself() -> None:
    text = (ROOT / "docs" / "design.md").read_text()
    package = ROOT / "sqlshell"
    described = {
        str(path.parent.relative_to(package)): ast.get_docstring(ast.parse(path.read_text()))
        for path in package.rglob("__init__.py")
        if path.parent != package
    }
    assert dict(re.findall(r"^\| `([\w/]+)/` \| (.+) \|$", text, re.M)) == described
