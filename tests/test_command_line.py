"""Each command line is one invocation: what is asked of the shell, with which settings."""

from __future__ import annotations

import errno
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete

from sqlshell.config.peers import OPTIONS, REFUSED_OPTIONS, option_remedy
from sqlshell.errors import Exit, UsageError
from sqlshell.launch import cli
from sqlshell.launch.commands import COMPLETE, shell_command
from sqlshell.launch.configure import TEMPLATE, configure
from sqlshell.launch.invocation import Invocation
from sqlshell.runtime.streams import Streams
from sqlshell.version import __version__


@pytest.fixture
def invoked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Invocation]:
    made: list[Invocation] = []

    def run(invocation: Invocation) -> int:
        made.append(invocation)
        return 7

    monkeypatch.setattr("sqlshell.launch.invocation.run", run)
    monkeypatch.setenv("SQLSHELL_CONFIG_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("x\n")
    (tmp_path / "a.data").write_text("x\n")
    return made


COPY = "\\copy t FROM 'a.csv'"


@pytest.mark.parametrize(
    ("argv", "target", "scripts", "output", "more"),
    [
        ([], "", [], "", {}),
        (["work"], "work", [], "", {}),
        (["-c", "a", "-f", "b", "-c", "d"], "", [("command", "a"), ("file", "b"), ("command", "d")], "", {}),
        (["-f", "b", "x", "-c", "a"], "x", [("file", "b"), ("command", "a")], "", {}),
        (["-o", "o.csv"], "", [], "o.csv", {}),
        (["-o", "-"], "", [], "", {}),
        (["-l", "work"], "work", [("command", "\\l")], "", {}),
        (["-l", "-o", "f", "-c", "x"], "", [("command", "\\l")], "f", {}),
        (["a.csv", "b.csv"], "", [], "", {"data": ["a.csv", "b.csv"]}),
        (["--", "--help", "all"], "", [], "", {"data": ["--help", "all"]}),
        (["-"], "", [], "", {"data": ["-"]}),
        (["-", "--input-format", "csv"], "", [], "", {"data": ["-"], "input_format": "csv"}),
        (["fetch", "ID"], "", [("command", "\\fetch 'ID'")], "", {"statement_id": "ID"}),
        (["fetch", "ID", "work", "-o", "f"], "work", [("command", "\\fetch 'ID'")], "f", {"statement_id": "ID"}),
        (["replay", "it's"], "", [("command", "\\replay 'it''s'")], "", {}),
        (["replay", "f", "t", "-o", "o"], "t", [("command", "\\replay 'f'")], "o", {}),
        (["download", "function_source", "n"], "", [("command", "\\download 'function_source' 'n'")], "", {}),
        (["download", "k", "n", "t", "-o", "o", "--force"], "t",
         [("command", "\\download 'k' 'n' 'o' '--force'")], "", {}),
        (["version", "--server", "work"], "work", [("command", "\\version")], "", {}),
        (["import", "a.csv", "--table", "t"], "", [("command", COPY)], "", {"writes": True}),
        (["import", "a.csv", "w", "--table", "t", "--dry-run"], "w", [("command", f"{COPY} WITH (DRY_RUN)")], "", {}),
        (["import", "a.data", "--table", "t"], "", [("command", "\\copy t FROM 'a.data' WITH (FORMAT auto)")], "",
         {"writes": True}),
        (["import", "-", "--table", "t", "--input-format", "csv"], "",
         [("command", "\\copy t FROM PSTDIN WITH (FORMAT auto, SNIFF, FORMAT 'csv')")], "", {"writes": True}),
        (["import", "~/x.csv", "--table", "t"], "", [("command", "\\copy t FROM '~/x.csv'")], "", {"writes": True}),
        (["import", "a.csv", "--table", "t", "--create", "--resume", "--if-unknown", "skip", "--max-errors", "3",
          "--rejects", "it's", "--with", "HEADER"], "",
         [("command", f"{COPY} WITH (HEADER, CREATE, RESUME, MAX_ERRORS '3', REJECTS 'it''s', IF_UNKNOWN 'skip')")], "",
         {"writes": True}),
        (["export", "--table", "t", "-o", "f"], "", [("command", "SELECT * FROM t\n\\export 'f'")], "", {}),
        (["export", "w", "--query", "select 1; ", "-o", "f"], "w",
         [("command", "select 1\n\\export 'f'")], "", {}),
    ],
)  # fmt: skip
def test_invocations(
    invoked: list[Invocation],
    argv: list[str],
    target: str,
    scripts: list[tuple[str, str]],
    output: str,
    more: Mapping[str, Any],
) -> None:
    assert cli.run(argv) == 7
    [made] = invoked
    assert (made.target, list(made.scripts), made.output) == (target, scripts, output)
    others = {"data": [], "input_format": "", "statement_id": "", "writes": False} | dict(more)
    assert {name: getattr(made, name) for name in others} == others
    assert made.flags == {}


@pytest.mark.parametrize(
    ("argv", "flags"),
    [
        (["-A"], {"format": "unaligned"}),
        (["-x"], {"expanded": "on"}),
        (["--format", "csv", "-A"], {"format": "unaligned"}),
        (["-q"], {"quiet": True}),
        (["-vv"], {"verbose": 2}),
        (["--retry-timeout", "5s", "--retries", "0"], {"retry_timeout": "5s", "retries": "0"}),
        (["--attach", "a", "--attach", "b"], {"attach": ("a", "b")}),
        (["-v", "a=b", "-v"], {"set": ("a=b",), "verbose": 1}),
        (["-va=b", "-qv", "c=", "--set", "d=e"], {"set": ("a=b", "c=", "d=e"), "quiet": True}),
        (["--variable=a=b", "--variable", "c=d"], {"set": ("a=b", "c=d")}),
        (["-P", "format=csv", "-Pnull=-", "--pset=x=auto"], {"format": "csv", "null": "-", "expanded": "auto"}),
        (["-P", "border=2"], {}),
        (["-qHtc", "select 1"], {"quiet": True, "format": "html", "tuples_only": True}),
        (["-d", "sales"], {"database": "sales"}),
        (["-d", "https://host/v2"], {}),
        (["-d", "host=x"], {}),
    ],
)
def test_flags(invoked: list[Invocation], argv: list[str], flags: dict[str, Any]) -> None:
    assert cli.run(argv) == 7
    assert invoked[0].flags == flags


PSQL = """
-c --command -d --dbname -f --file -l --list -v --set --variable -V --version -X --no-psqlrc -1 --single-transaction -?
--help --help=commands --help=variables -a --echo-all -b --echo-errors -e --echo-queries -E --echo-hidden -L --log-file
-n --no-readline -o --output -q --quiet -s --single-step -S --single-line -A --no-align --csv -F --field-separator -H
--html -P --pset -R --record-separator -t --tuples-only -T --table-attr -x --expanded -z --field-separator-zero -0
--record-separator-zero -h --host -p --port -U --username -w --no-password -W --password
"""
DUCKDB = """
-ascii -bail -batch -box -column -cmd -csv -c -dark-mode -echo -f -init -header -h -help -html -interactive -json
-jsonlines -light-mode -line -list -markdown -newline -no-init -no-stdin -noheader -nullvalue -quote -readonly -s -safe
-separator -storage-version -table -ui -unredacted -unsigned -version
"""
"""What psql --help and duckdb --help list."""


def test_each_option_of_the_peers_works_or_has_a_remedy() -> None:
    known = {name for item in shell_command().params for name in item.opts} | {"-h", "--help", "--variable"}
    known |= {name for names in (*OPTIONS, *REFUSED_OPTIONS) for name in names.split()}
    assert {name for name in f"{PSQL} {DUCKDB}".split() if name not in known} == set()


@pytest.mark.parametrize("name", [name for names in REFUSED_OPTIONS for name in names.split()])
def test_an_option_that_only_peers_have_names_its_remedy(
    invoked: list[Invocation], capsys: pytest.CaptureFixture[str], name: str
) -> None:
    joined = [f"{name}=x"] if name[:2] == "--" and "=" not in name else [f"{name}x"] if len(name) == 2 else []
    for argv in ([name], [name, "x"], ["-q", name], *([item] for item in joined)):
        assert cli.run(argv) == Exit.USAGE
        told = capsys.readouterr().err
        assert told.endswith(f"help: {option_remedy(name)}\n")
        assert told.startswith(f"error: unknown option {name}\n") or "=" in name
    assert invoked == []


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [
        (name, *taken)
        for names, taken in OPTIONS.items()
        for name in names.split()
        if taken[0] not in {"help", "version"}
    ],
)
def test_an_option_of_the_peers_is_a_setting(invoked: list[Invocation], name: str, setting: str, value: object) -> None:
    assert cli.run([name, *(["x"] if value is None else [])]) == 7
    assert invoked[0].flags == {setting: "x" if value is None else value}


@pytest.mark.parametrize(
    ("subcommand", "common", "rare"),
    [([], "--read-only", "--ca-file"), (["import"], "--create", "--ca-file"), (["serve"], "--data", "--max-running")],
)
def test_the_help_is_one_screen(
    capsys: pytest.CaptureFixture[str], subcommand: list[str], common: str, rare: str
) -> None:
    assert cli.run([*subcommand, "--help"]) == 0
    screen = capsys.readouterr().out
    assert common in screen and rare not in screen and "--help all lists all options" in screen
    assert len(screen.splitlines()) < 66
    for words in (["--help", "all"], ["--help=all"], ["-h", "all"]):
        assert cli.run([*subcommand, *words]) == 0
        assert rare in capsys.readouterr().out


@pytest.mark.parametrize("name", ["-?", "-help", "-h", "--help", "-V", "-version", "--version"])
def test_help_and_version_by_any_name(invoked: list[Invocation], capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert cli.run([name]) == Exit.DONE
    assert capsys.readouterr().out.startswith(("Usage: sqlshell [OPTIONS] [TARGET]", f"sqlshell {__version__}\n"))
    assert invoked == []


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--input-format", "csv", "a.csv"], "--input-format requires the TARGET -"),
        (["-", "-"], "TARGET - may be given only once"),
        (["-q", "doctor"], "the subcommand doctor must come first: sqlshell doctor …"),
        (["--format", "csv", "serve", "--data", "folder"], "the subcommand serve must come first: sqlshell serve …"),
        (["-c", "select 1", "version"], "the subcommand version must come first: sqlshell version …"),
        (["--quiet", "--", "doctor"], "the subcommand doctor must come first: sqlshell doctor …"),
        (["-h", "localhost"], "-h prints the help and takes no value\nhelp: use a URL: sqlshell postgresql://"),
        (["-hlocalhost"], "-h prints the help and takes no value\nhelp: use a URL: sqlshell postgresql://"),
        (["-d", "https://host/v2", "work"], "--database with a URL cannot be used with TARGET"),
        (["-P", "footer"], "-P footer requires a value\nhelp: write it as -P footer=VALUE"),
        (["-P", "nonsense=1"], "unknown option 'nonsense'"),
        (["--formt", "csv"], "unknown option --formt\nhelp: did you mean --format?"),
        (["--qqqqqqqq"], "unknown option --qqqqqqqq\nhelp: sqlshell --help all lists the options"),
        (["fetch", "ID", "--attach", "x"], "--attach does not apply to sqlshell fetch\nhelp: sqlshell fetch --help"),
        (["version", "--dry-run"], "--dry-run does not apply to sqlshell version\nhelp: sqlshell version --help"),
        (["doctor", "-1"], "-1 does not apply to sqlshell doctor\nhelp: sqlshell doctor --help"),
        (["replay", "t", "--dry-run"], "--dry-run does not apply to sqlshell replay\nhelp: sqlshell replay --help"),
        (["replay", "t", "--format", "csv"], "--format does not apply to sqlshell replay"),
        (["import", "a.csv", "--table", "t", "--format", "csv"], "--format does not apply to sqlshell import"),
        (["doctor", "--database", "d"], "--database does not apply to sqlshell doctor"),
        (["version", "--retries", "1"], "--retries requires --server"),
        (["export", "--port", "1"], "unknown option --port\nhelp: use a URL: sqlshell postgresql://"),
        (["config", "check", "work"], "sqlshell config check takes no profile"),
        (["fetch"], "error: missing argument ID\nhelp: sqlshell fetch --help lists the options"),
        (["completion"], "error: missing argument bash|zsh|fish\nhelp: sqlshell completion --help lists the options"),
        (["completion", "tcsh"], "unknown shell 'tcsh'\nhelp: expected bash, zsh or fish"),
        (["config", "burn"], "unknown action 'burn'"),
        (["version", "work"], "TARGET requires --server"),
        (["import", "none.csv", "--table", "t"], "cannot read none.csv: no such file or directory"),
        (["import", "a.csv", "--table", "t", "--rejects", "a\nb"], "contains a line break"),
        (["export", "-o", "f"], "export requires either --query or --table"),
        (["export", "-o", "f", "--table", "t", "--query", "select 1"], "export requires either --query or --table"),
        (["export", "-o", "f", "--query", "select 1; select 2"], "export requires exactly one statement"),
        (["export", "-o", "f", "--query", "\\d"], "export requires exactly one statement"),
        (["export", "-o", "f", "--query", "delete from t where x"], "DELETE returns no rows"),
    ],
)
def test_command_lines_that_are_wrong(
    invoked: list[Invocation], capsys: pytest.CaptureFixture[str], argv: list[str], words: str
) -> None:
    assert cli.run(argv) == Exit.USAGE
    assert words in capsys.readouterr().err
    assert invoked == []


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt(), Exit.INTERRUPTED, ""),
        (OSError(errno.ENOSPC, "No space left on device"), Exit.STATEMENT, "cannot write to stdout: no space left"),
        (OSError(errno.EBADF, "Bad file descriptor"), Exit.STATEMENT, "cannot write to stdout: it is closed"),
        (OSError(errno.ENOENT, "no such"), Exit.STATEMENT, "bug in sqlshell"),
        (ValueError("odd"), Exit.STATEMENT, "bug in sqlshell"),
        (UsageError("wrong"), Exit.USAGE, "error: wrong"),
    ],
)
def test_errors_are_reported_once(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
    words: str,
) -> None:
    def run(invocation: Invocation) -> int:
        raise error

    monkeypatch.setattr("sqlshell.launch.invocation.run", run)
    assert cli.run(["-q"]) == (code if not words.startswith("bug") else cli.run(["-q"]))
    told = capsys.readouterr().err
    assert words in told
    assert (told.strip() == "") is (words == "")


def written(action: str, folder: Path, name: str = "") -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = configure(action, name, {"SQLSHELL_CONFIG_DIR": str(folder)}, Streams(io.StringIO(), out, err))
    return code, out.getvalue(), err.getvalue()


def test_profiles_are_listed_without_their_secrets(tmp_path: Path) -> None:
    assert written("list", tmp_path) == (0, "", "")
    path = tmp_path / "config.toml"
    path.write_text(
        '[profiles.b]\nurl = "https://_:secret@host/v2"\nca_file = "none.pem"\n[profiles.a]\ntoken = "hidden"\n'
        '[profiles.c]\nurl = "nothing"\n[profiles.d]\nformt = "x"\n'
    )
    path.chmod(0o600)
    code, out, err = written("list", tmp_path)
    assert (code, err) == (0, "")
    assert [line.partition("\t")[0] for line in out.splitlines()] == ["a", "b", "c", "d"]
    assert "host/v2" in out
    assert "secret" not in out
    shown = written("show", tmp_path, "a")[1]
    assert shown.startswith("# profile a\n")
    assert "hidden" not in shown
    assert [line.split()[1:] for line in shown.splitlines() if line.startswith(("token ", "timezone "))] == [
        *(["***", "(profile)"], ["-", "(default)"])
    ]
    assert not written("show", tmp_path)[1].startswith("#")
    words = dict(line.split(maxsplit=1) for line in written("show", tmp_path)[1].splitlines())
    assert {
        name: words[name] for name in ("quiet", "connect_timeout", "timeout", "retries", "browse", "recordsep")
    } == {
        "quiet": "off  (default)",
        "connect_timeout": "10s  (default)",
        "timeout": "no limit  (default)",
        "retries": "5  (default)",
        "browse": "100  (default)",
        "recordsep": "\\n  (default)",
    }
    code, out, err = written("check", tmp_path)
    assert (code, out) == (2, "")
    assert [line.partition(": ")[2] for line in err.splitlines()][:2] == [
        "[profiles.b] ca_file: cannot read none.pem: no such file or directory",
        "[profiles.c] url: 'nothing' is neither a URL nor an existing file",
    ]
    assert len(err.splitlines()) == 3
    path.chmod(0o644)
    assert len(written("check", tmp_path)[2].splitlines()) == 5


def test_a_new_configuration(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "er"
    path = folder / "config.toml"
    assert written("init", folder) == (0, f"{path}\n", "")
    assert path.read_text() == TEMPLATE
    assert path.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    with pytest.raises(UsageError, match="already exists"):
        written("init", folder)
    assert written("check", folder) == (0, f"{path}: 0 profiles, no errors\n", "")
    path.write_text("[profiles.a]\n")
    assert written("check", folder) == (0, f"{path}: 1 profile, no errors\n", "")
    with pytest.raises(UsageError, match="cannot write"):
        written("init", path)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("--du", ["--duration"]),
        ("--format js", ["json", "jsonl"]),
        ("--format=js", ["json", "jsonl"]),
        ("--on-error c", ["continue"]),
        ("-f ", ["file"]),
        ("d", ["file", "download", "doctor", "develop"]),
        ("-q d", ["file", "develop"]),
        ("--profile ", ["develop", "work"]),
        ("serve --ro", ["--role"]),
        ("serve --role w", ["writer"]),
        ("serve --data ", ["dir"]),
        ("config s", ["show", "settings"]),
        ("completion z", ["zsh"]),
        ("export --csv-", ["--csv-safe"]),
        ("--port", []),
    ],
)
def test_what_a_shell_completes(invoked: list[Invocation], tmp_path: Path, typed: str, offered: list[str]) -> None:
    (tmp_path / "config.toml").write_text("[profiles.develop]\n[profiles.work]\n")
    *before, last = typed.split(" ")
    found = ShellComplete(cli.Program(), {}, "", COMPLETE).get_completions(before, last)
    assert [item.type if item.type != "plain" else item.value for item in found] == offered
