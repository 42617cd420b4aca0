"""Each command line is one invocation: what is asked of the shell, with which settings."""

from __future__ import annotations

import errno
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sqlshell.errors import Exit, UsageError
from sqlshell.launch import cli
from sqlshell.launch.configure import TEMPLATE, configure
from sqlshell.launch.invocation import Invocation
from sqlshell.launch.reference.completion import bash, fish, zsh
from sqlshell.runtime.streams import Streams


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
        (["-"], "", [], "", {"data": ["-"]}),
        (["-", "--input-format", "csv"], "", [], "", {"data": ["-"], "input_format": "csv"}),
        (["fetch", "ID"], "", [("command", "\\fetch")], "", {"statement_id": "ID", "words": ("ID",)}),
        (["fetch", "ID", "work", "-o", "f"], "work", [("command", "\\fetch")], "f",
         {"statement_id": "ID", "words": ("ID",)}),
        (["replay", "it's"], "", [("command", "\\replay")], "", {"words": ("it's",)}),
        (["replay", "f", "t", "-o", "o"], "t", [("command", "\\replay")], "o", {"words": ("f",)}),
        (["download", "function_source", "n"], "", [("command", "\\download")], "",
         {"words": ("function_source", "n")}),
        (["download", "k", "n", "t", "-o", "o", "--force"], "t",
         [("command", "\\download")], "", {"words": ("k", "n", "o", "--force")}),
        (["version", "--server", "work"], "work", [("command", "\\version")], "", {}),
        (["import", "a.csv", "--table", "t"], "", [("command", COPY)], "", {"writes": True}),
        (["import", "a.csv", "w", "--table", "t", "--dry-run"], "w", [("command", f"{COPY} WITH (DRY_RUN)")], "", {}),
        (["import", "a.data", "--table", "t"], "", [("command", "\\copy t FROM 'a.data' WITH (FORMAT auto)")], "",
         {"writes": True}),
        (["import", "-", "--table", "t", "--input-format", "csv"], "",
         [("command", "\\copy t FROM PSTDIN WITH (FORMAT auto, SNIFF, FORMAT 'csv')")], "", {"writes": True}),
        (["import", "~/x.csv", "--table", "t"], "", [("command", "\\copy t FROM '~/x.csv'")], "", {"writes": True}),
        (["import", "a.csv", "--table", "t", "--create", "--resume", "--unknown", "skip", "--max-errors", "3",
          "--rejects", "it's", "--with", "HEADER"], "",
         [("command", f"{COPY} WITH (HEADER, CREATE, RESUME, MAX_ERRORS '3', REJECTS 'it''s', UNKNOWN 'skip')")], "",
         {"writes": True}),
        (["export", "--table", "t", "-o", "f"], "", [("command", "SELECT * FROM t\n\\export")], "", {"words": ("f",)}),
        (["export", "w", "--query", "select 1; ", "-o", "f", "--resume"], "w",
         [("command", "select 1\n\\export")], "", {"words": ("f", "resume")}),
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
        (["--timeout", "5s", "--retries", "0"], {"timeout": "5s", "retries": "0"}),
        (["--attach", "a", "--attach", "b"], {"attach": ("a", "b")}),
    ],
)
def test_flags(invoked: list[Invocation], argv: list[str], flags: dict[str, Any]) -> None:
    assert cli.run(argv) == 7
    assert invoked[0].flags == flags


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--input-format", "csv", "a.csv"], "--input-format requires the TARGET -"),
        (["-", "-"], "TARGET - may be given only once"),
        (["-q", "doctor"], "the subcommand doctor must come first: sqlshell doctor …"),
        (["-v", "a=b"], "-v prints more messages and takes no value\nhelp: to set a variable: --set a=b"),
        (["--formt", "csv"], "unknown option --formt\nhelp: did you mean --format?"),
        (["--qqqqqqqq"], "unknown option --qqqqqqqq\nhelp: sqlshell --help lists the options"),
        (["fetch", "ID", "--attach", "x"], "--attach does not apply to sqlshell fetch\nhelp: sqlshell fetch --help"),
        (["version", "--dry-run"], "--dry-run does not apply to sqlshell version\nhelp: sqlshell version --help"),
        (["doctor", "-1"], "-1 does not apply to sqlshell doctor\nhelp: sqlshell doctor --help"),
        (["replay", "t", "--dry-run"], "--dry-run does not apply to sqlshell replay\nhelp: sqlshell replay --help"),
        (["replay", "t", "--format", "csv"], "--format does not apply to sqlshell replay"),
        (["config", "check", "work"], "sqlshell config check takes no profile"),
        (["fetch"], "error: missing argument 'ID'\nhelp: sqlshell fetch --help lists the options"),
        (["completion", "tcsh"], "no completion for tcsh\nhelp: shells: bash, zsh, fish"),
        (["config", "burn"], "unknown action 'burn'"),
        (["version", "work"], "TARGET requires --server"),
        (["import", "none.csv", "--table", "t"], "no such file: none.csv"),
        (["import", "a.csv", "--table", "t", "--rejects", "a\nb"], "contains a line break"),
        (["export", "-o", "f"], "export requires either --query or --table"),
        (["export", "-o", "f", "--table", "t", "--query", "select 1"], "export requires either --query or --table"),
        (["export", "-o", "f", "--query", "select 1; select 2"], "export requires exactly one statement"),
        (["export", "-o", "f", "--query", "\\d"], "export requires exactly one statement"),
        (["export", "-o", "f", "--query", "delete from t where x"], "DELETE is not a query"),
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
        (OSError(errno.ENOSPC, "No space left on device"), Exit.STATEMENT, "cannot write to stdout: No space left"),
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
    code, out, err = written("check", tmp_path)
    assert (code, out) == (2, "")
    assert [line.partition(": ")[2] for line in err.splitlines()][:2] == [
        "[profiles.b] ca_file: no such file: none.pem",
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


def option(*names: str, **given: Any) -> dict[str, Any]:
    return {"names": list(names), "metavar": "", "choices": [], "repeatable": False, "help": "it's [a] $x"} | given


SPEC: dict[str, Any] = {
    "version": "1.2",
    "help": "First.\n.second",
    "epilog": "\nexample -x\n",
    "arguments": [{"name": "TARGET", "required": False}],
    "options": [
        option("-f", "--format", metavar="NAME", choices=["csv", "json"], group="Output", environment="SQLSHELL_F"),
        option("--profile", metavar="NAME", group="Output"),
        option("--ca-file", metavar="FILE", repeatable=True),
        option("--wait", metavar="TIME"),
        option("-q"),
    ],
    "subcommands": [
        {
            "name": "config",
            "summary": "manage: profiles",
            "help": "Manage.",
            "arguments": [{"name": "list|show", "required": True}, {"name": "profile", "required": False}],
            "options": [option("-q"), option("--own")],
        },
        {"name": "fetch", "summary": "fetch", "help": "Fetch.", "arguments": [], "options": []},
    ],
    "commands": [
        {"name": "a", "usage": "X", "group": "One", "help": "first\n\nsecond"},
        {"name": "b", "usage": "", "group": "One", "help": "é"},
        {"name": "c", "usage": '"', "group": "Two", "help": "c"},
    ],
    "formats": [
        {"name": "csv", "extensions": [".csv"], "help": "values"},
        {"name": "table", "extensions": [], "help": "rows"},
    ],
}  # fmt: skip


def test_completion_of_zsh() -> None:
    text = zsh(SPEC)
    assert [line.strip().removesuffix(" \\") for line in text.splitlines() if "'" in line or '"' in line] == [
        '# Completion of sqlshell for zsh: eval "$(sqlshell completion zsh)", after compinit',
        "'(-f --format)'{-f,--format}'[it'\\''s \\[a\\] \\$x]:NAME:(csv json)'",
        "--profile'[it'\\''s \\[a\\] \\$x]:NAME:($(sqlshell config list 2>/dev/null | awk '\\''{print $1}'\\''))'",
        "'*'--ca-file'[it'\\''s \\[a\\] \\$x]:FILE:_files'",
        "--wait'[it'\\''s \\[a\\] \\$x]:TIME: '",
        "-q'[it'\\''s \\[a\\] \\$x]'",
        "'1: :_sqlshell_first'",
        "-q'[it'\\''s \\[a\\] \\$x]'",
        "--own'[it'\\''s \\[a\\] \\$x]'",
        "'1:word:(list show)'",
        "'*:file:_files'",
        "local -a names=('config:manage\\: profiles' 'fetch:fetch')",
    ]
    assert "_sqlshell_config() {" in text
    assert "== (config|fetch) ]]" in text


def test_completion_of_fish() -> None:
    seen, first = "__fish_seen_subcommand_from", "complete -c sqlshell -n __fish_is_first_arg -a"
    help_text = "-d 'it\\'s [a] $x'"
    main, of_config = f"complete -c sqlshell -n 'not {seen} config fetch'", f"complete -c sqlshell -n '{seen} config'"
    assert fish(SPEC).splitlines() == [
        "# Completion of sqlshell for fish: sqlshell completion fish | source",
        f"{main} -s f -l format -xa 'csv json' {help_text}",
        f"{main} -l profile -xa \"(sqlshell config list 2>/dev/null | awk '{{print \\$1}}')\" {help_text}",
        f"{main} -l ca-file -rF {help_text}",
        f"{main} -l wait -x {help_text}",
        f"{main} -s q {help_text}",
        f"{of_config} -xa 'list show'",
        f"{of_config} -s q {help_text}",
        f"{of_config} -l own {help_text}",
        f"{first} config -d 'manage: profiles'",
        f"{first} fetch -d 'fetch'",
    ]


def test_completion_of_bash() -> None:
    text = bash(SPEC)
    cases = [line.strip() for line in text.splitlines() if line.strip().endswith("return ;;")]
    assert cases == [
        '-f|--format) COMPREPLY=($(compgen -W "csv json" -- "$current")); return ;;',
        "--profile) COMPREPLY=($(compgen -W "
        "\"$(sqlshell config list 2>/dev/null | awk '{print $1}')\" -- \"$current\")); return ;;",
        "--ca-file) _sqlshell_files; return ;;",
        "--wait) :; return ;;",
    ]  # fmt: skip
    words = [line.strip() for line in text.splitlines() if line.strip().startswith(("options=", "first="))]
    assert words == [
        *('options="-q --own"', 'first="list show"', 'options=""', 'first=""'),
        *('options="-f --format --profile --ca-file --wait -q"', 'first="config fetch"'),
    ]
