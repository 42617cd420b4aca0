"""`sqlshell config`, the policy of a profile in scripts, and the parts of the context."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from tests.conftest import Program, Served

CONFIG = """
[profiles.work]
url = "URL"
token = "TOKEN"
schema = "main"

[profiles.careful]
url = "URL"
token = "TOKEN"
confirm = ["DROP", "DELETE WITHOUT WHERE"]

[profiles.production]
url = "URL"
token = "TOKEN"
confirm = "type-name"

[profiles.reading]
url = "URL"
token = "TOKEN"
read_only = true
"""


@pytest.fixture
def env(tmp_path: Path, served: Served) -> dict[str, str]:
    folder = tmp_path / "config"
    folder.mkdir(mode=0o700)
    path = folder / "config.toml"
    path.write_text(CONFIG.replace("URL", served.url).replace("TOKEN", served.token))
    path.chmod(0o600)
    return {"SQLSHELL_CONFIG_DIR": str(folder)}


def test_profiles_are_listed_shown_and_checked(program: Program, env: dict[str, str], served: Served) -> None:
    listed = program("config", "list", env=env)
    assert listed.out.splitlines()[0].startswith("careful\thttp://")
    shown = program("config", "show", "work", env=env | {"SQLSHELL_FORMAT": "csv"})
    assert served.token not in shown.out
    lines = {line.split()[0]: line for line in shown.out.splitlines() if not line.startswith("#")}
    assert "(profile)" in lines["schema"]
    assert "(environment)" in lines["format"]
    assert "(default)" in lines["retries"]
    assert "***" in lines["token"]
    assert program("config", "check", env=env).code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[profiles.a]\nurl = 5", "is not a string"),
        ("[profiles.a]\nretries = 'x'", "expected an integer"),
        ("[profiles.a]\nurl = 'ftp://x'", "http, https, unix"),
        ("[profiles.a]\nurl = 'nonsense'", "neither a URL nor an existing file"),
        ("[profiles.a]\nurl = '/nonexistent/a.duckdb'", "directory /nonexistent does not exist"),
        ("[profiles.a]\ntoken_file = 'nowhere'", "no such file"),
        ("[profiles.a]\nconfirm = [1]", "not a list of strings"),
        ("[profiles.a]\nnonsense = 1", "unknown key"),
        ("[profiles.a", "config.toml"),
        ("[profiles.a]\nfirst_one = 1\nsecond_one = 2", "'second_one'"),
        ("[profiles.a]\nconfirm = 'typename'", 'did you mean "type-name"?'),
        ("[profiles.a]\nconfirm = ['DROP', 'BOGUS']", "'BOGUS' is not a kind of statement"),
        ("[profiles.a]\nconfirm = 'DROP, DELETE'", "'DROP, DELETE' is not a kind of statement"),
        ("[profiles.a]\nformat = 'nope'", "unknown format 'nope'"),
        ("[profiles.a]\ntheme = 'nope'", "unknown theme 'nope'"),
        ("[profiles.a]\ntable_style = 'nope'", "unknown table style 'nope'"),
        ("[profiles.a]\ntimezone = 'Mars'", "unknown time zone 'Mars'"),
        ("[profiles.a]\nprompt_color = 'zz'", "'zz' is not a valid color"),
        ("[profiles.a]\ncolor = '#ff5f5f'", "color: invalid value '#ff5f5f'"),
        ("[profiles.a]\ntoolbar = '{nope}'", "toolbar: unknown field {nope}"),
        ("[profiles.a]\nsecret_names = ['(']", "secret_names"),
        ("[profiles.a]\nurl = 'http://:hidden@host/v2'", "other users can read"),
    ],
)
def test_what_is_wrong_is_named(program: Program, tmp_path: Path, text: str, message: str) -> None:
    folder = tmp_path / "bad"
    folder.mkdir()
    (folder / "config.toml").write_text(text)
    found = program("config", "check", env={"SQLSHELL_CONFIG_DIR": str(folder)})
    assert found.code == 2
    assert message in found.err


def test_a_file_to_begin_with(program: Program, tmp_path: Path) -> None:
    env = {"SQLSHELL_CONFIG_DIR": str(tmp_path / "new"), "EDITOR": "cat"}
    assert program("config", "init", env=env).code == 0
    assert (tmp_path / "new" / "config.toml").stat().st_mode & 0o77 == 0
    assert program("config", "init", env=env).code == 2
    assert program("config", "check", env=env).code == 0
    assert "[profiles.work]" in program("config", "edit", env=env).out
    assert program("config", "edit", env=env | {"EDITOR": "/nowhere/editor"}).code == 2
    assert program("config", "nonsense", env=env).code == 2
    assert program("config", env=env).code == 2


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["reading", "-c", "select 1"], 0),
        (["reading", "-c", "create table x (a int)"], 2),
        (["reading", "--yes", "-c", "create table x (a int)"], 2),
        (["reading", "-c", "create table x (a int);&"], 2),
        (["reading", "-c", "select 1 \\g", "-c", "delete from t \\gx"], 2),
        (["careful", "-c", "drop table if exists nowhere"], 2),
        (["careful", "--yes", "-c", "drop table if exists nowhere"], 0),
        (["careful", "-c", "create temp table policy_t (a int)"], 0),
        (["careful", "-c", "create or replace temp table policy_t (a int)"], 2),
        (["production", "-c", "create temp table policy_u (a int)"], 2),
        (["production", "-c", "select 1"], 0),
    ],
)
def test_a_policy_in_scripts(program: Program, env: dict[str, str], argv: list[str], code: int) -> None:
    found = program(*argv, env=env)
    assert found.code == code, found.err
    stdin = program(argv[0], *(item for item in argv if item == "--yes"), stdin=f"{argv[-1]}\n", env=env)
    assert stdin.code == code


def test_the_context_and_where_it_came_from(program: Program, env: dict[str, str]) -> None:
    script = "select 1 as a;\n\\context\n\\context set store kafka\n\\context reset store\n\\context\n"
    found = program("work", "--timezone", "Asia/Tokyo", "--format", "csv", stdin=script, env=env)
    assert found.code == 0, found.err
    lines = [line.split() for line in found.err.splitlines()]
    assert ["timezone", "Asia/Tokyo", "flag"] in lines
    assert ["schema", "main", "profile", "work"] in lines
    assert ["database", "local", "service"] in lines
    assert ["store", "kafka", "\\context", "set"] in lines
    for wrong in ("\\context set", "\\context set nonsense x", "\\context reset a b", "\\context frobnicate"):
        assert program("work", "-c", wrong, env=env).code == 2


@pytest.mark.slow("runs the program twice")
def test_another_target_in_mid_script(program: Program, env: dict[str, str], served: Served, tmp_path: Path) -> None:
    script = "\n".join(
        [
            "create table here (a int);",
            "\\c other.duckdb",
            "create table there as select 7 as b;",
            "\\c work",
            "select 1 as remote;",
            "\\c other.duckdb",
            "from there;",
            "\\c nowhere",
            "from there;",
        ]
    )
    found = program("--format", "csv", "--on-error", "continue", stdin=script, env=env)
    assert found.code == 2
    # What follows a \c that failed was not written for the former target.
    assert found.out == "remote\n1\nb\n7\n"
    assert "not a URL" in found.err
    assert f"connected to work ({served.url})" in found.err
    refused = program("--format", "csv", stdin="\\c reading\ncreate table x (a int);\n", env=env)
    assert refused.code == 2
    assert "allows only statements that read" in refused.err


@pytest.mark.slow("runs the program three times")
@pytest.mark.parametrize(
    ("start", "target"),
    [
        (("reading",), "other.duckdb"),
        (("reading",), "DSN"),
        (("--read-only", "same.duckdb"), "same.duckdb"),
        (("careful",), "other.duckdb"),
    ],
)
def test_a_policy_moves_along_to_what_is_no_profile(
    program: Program, env: dict[str, str], served: Served, start: tuple[str, ...], target: str
) -> None:
    place = target.replace("DSN", served.url.replace("://", f"://:{served.token}@"))
    for path in ("same.duckdb", "other.duckdb"):
        assert program(path, "-c", "create table kept_t as select 1 as a").code == 0
    script = f"\\c {place}\ndelete from kept_t;\ndrop table kept_t;\nselect 1 as a;\n"
    found = program(*start, "--format", "csv", "--on-error", "continue", stdin=script, env=env)
    assert found.code == 2, found.err
    assert found.err.count("use --yes" if start == ("careful",) else "cannot run ") == 2
    assert found.out == "a\n1\n"


def test_a_profile_brings_its_own_policy_and_a_flag_holds_everywhere(program: Program, env: dict[str, str]) -> None:
    script = "\\c work\ncreate temp table policy_v (a int);\ndrop table policy_v;\n"
    assert program("reading", stdin=script, env=env).code == 0
    assert program("careful", stdin=script, env=env).code == 0
    refused = program("reading", "--read-only", stdin=script, env=env)
    assert refused.code == 2
    assert "--read-only" in refused.err


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("http://127.0.0.1:1", "127.0.0.1:1"),
        ("bad-token", "token"),
        ("nowhere", "not a URL"),
        ("'/nonexistent folder/x.duckdb'", "folder"),
        ("broken.duckdb", "broken.duckdb"),
        ("locked.duckdb", "locked.duckdb"),
        ("bad-zone", "time zone"),
        ("bad-pattern", "pattern"),
        ("bad-key", "unknown key"),
    ],
)
def test_a_connection_is_kept_until_the_next_one_answers(
    program: Program, env: dict[str, str], served: Served, tmp_path: Path, target: str, message: str
) -> None:
    (tmp_path / "broken.duckdb").write_text("this is no database" * 1000)
    config = tmp_path / "config" / "config.toml"
    with config.open("a") as more:
        more.write(f'[profiles.bad-token]\nurl = "{served.url}"\ntoken = "wrong"\n')
        more.write(f'[profiles.bad-zone]\nurl = "{served.url}"\ntoken = "{served.token}"\ntimezone = "Mars/Olympus"\n')
        more.write(f'[profiles.bad-pattern]\nurl = "{served.url}"\ntoken = "{served.token}"\nsecret_names = ["("]\n')
        more.write("[profiles.bad-key]\nnonsense = 1\n")
    (tmp_path / "moving.sql").write_text(f"\\c {target}\n")
    script = "create temp table mine as select 7 as a;\nbegin;\n\\i moving.sql\nfrom mine;\n\\context\n"
    with duckdb.connect(tmp_path / "locked.duckdb"):
        found = program("work", "--format", "csv", "--retries", "0", "--on-error", "continue", stdin=script, env=env)
    assert message in found.err
    assert f"still connected to work ({served.url})" in found.err
    assert "now on" not in found.err
    assert found.out == "a\n7\n", found.err


@pytest.mark.slow("runs the program three times")
@pytest.mark.parametrize(
    ("part", "state", "back"),
    [("database", "3D002", "local"), ("schema", "3D003", "main"), ("role", "3D001", "owner"), ("store", "3D006", "")],
)
def test_a_part_that_is_not_there_does_not_become_another(
    program: Program, env: dict[str, str], part: str, state: str, back: str
) -> None:
    script = "select 1 as a;\n\\dt no_such_*\nselect 2 as b;\ncreate table wrong_place (x int);\n\\context\n"
    script += f"use {part} {back};\nselect 3 as c;\n" if back else f"\\context set {part} ''\nselect 3 as c;\n"
    by_flag = program("work", f"--{part}", "nope", "--on-error", "continue", "--format", "csv", stdin=script, env=env)
    asked = f"select 0 as a;\n\\context set {part} nope\n" + script
    by_command = program("work", "--on-error", "continue", "--format", "csv", stdin=asked, env=env)
    for found, message, source in ((by_flag, "c\n3\n", "flag"), (by_command, "a\n0\nc\n3\n", "\\context set")):
        listed = "schema,name,type\n" if part == "store" else ""
        assert (found.code, found.out.replace(listed, "")) == (1, message), found.err
        # Relations are listed without a store.
        assert found.err.count(state) == (3 if part == "store" else 4), found.err
        assert f"\\context set {part} NAME" in found.err
        assert [part, "nope", *source.split()] in [line.split() for line in found.err.splitlines()]
    looked = program("work", "-c", "\\dt wrong_place", env=env)
    assert "wrong_place" not in looked.out


@pytest.mark.slow("runs the program five times")
def test_a_profile_names_a_file(program: Program, env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text("a,b\n1,2\n")
    with (tmp_path / "config" / "config.toml").open("a") as more:
        more.write('[profiles.file]\nurl = "~/own.duckdb"\n[profiles.data]\nurl = "sales.csv"\nread_only = true\n')
        more.write('[profiles.bare]\nformat = "csv"\n[profiles.wrong]\nurl = "nonsense"\n')
    assert program("file", "-c", "create table t as select 7 as a", env=env).code == 0
    assert (tmp_path / "own.duckdb").is_file()
    script = "\\c file\nfrom t;\n\\c data\nfrom sales;\ncreate table u (a int);\n"
    found = program("--format", "csv", stdin=script, env=env)
    assert found.out == "a\n7\na,b\n1,2\n"
    assert "connected to file (" in found.err
    assert "cannot run CREATE TABLE: profile 'data' allows only statements that read" in found.err
    named = program("-c", "from t", "--format", "csv", env=env | {"SQLSHELL_URL": str(tmp_path / "own.duckdb")})
    assert named.out == "a\n7\n"
    bare = program("bare", "-c", "select 1 as a", env=env)
    assert (bare.code, bare.out) == (0, "a\n1\n")
    assert "profile 'bare' has no url" in bare.err
    wrong = program("wrong", "-c", "select 1", env=env)
    assert (wrong.code, wrong.out) == (2, "")
    assert "profile 'wrong': 'nonsense' is neither a URL nor an existing file" in wrong.err


@pytest.mark.parametrize("confirm", ["'typename'", "['BOGUS']", "['DROP', 'INSERT INTO']", "''"])
def test_a_mistyped_policy_lets_nothing_run(program: Program, tmp_path: Path, confirm: str) -> None:
    (tmp_path / "config.toml").write_text(f"[profiles.p]\nconfirm = {confirm}\n[profiles.q]\n")
    env = {"SQLSHELL_CONFIG_DIR": str(tmp_path)}
    found = program("--profile", "p", "-c", "create table t (i int)", "-c", "select 1 as a", env=env)
    assert (found.code, found.out) == (2, "")
    assert "profile 'p', confirm: " in found.err
    moved = program("--profile", "q", "--on-error", "continue", stdin="\\c p\nselect 1 as a;\n", env=env)
    assert moved.code == 2
    assert "profile 'p', confirm: " in moved.err


@pytest.mark.parametrize("url", ["http://:hid/den@127.0.0.1:1/v2?databaseName=x", "htps:/:hid/den@127.0.0.1"])
def test_the_token_of_a_dsn_is_never_printed(program: Program, tmp_path: Path, url: str) -> None:
    (tmp_path / "config.toml").write_text(f"[profiles.d]\nurl = '{url}'\n")
    for argv in (("config", "list"), ("config", "show", "d"), ("config", "check"), ("doctor", "d")):
        found = program(*argv, env={"SQLSHELL_CONFIG_DIR": str(tmp_path)})
        assert "hid" not in found.out + found.err
        assert "den" not in found.out + found.err


def test_the_settings_of_a_profile_are_listed(program: Program) -> None:
    listed = program("config", "settings").out
    for name in ("confirm", "prompt_color", "prompt", "toolbar", "notify", "answer_limit", "private_data_plane"):
        assert f"\n{name} " in listed
    assert "\nattach " not in listed
    for name in ("secret_names", "tuples_only", "token_command"):
        assert f"\n{name} " in listed


def test_a_refusal_names_what_made_it_read_only(program: Program, env: dict[str, str]) -> None:
    flag = program("--read-only", "-c", "create table a (x int)")
    assert flag.code == 2
    assert "cannot run CREATE TABLE: --read-only allows only" in flag.err
    assert "start without --read-only" in flag.err
    assert "profile" not in flag.err
    variable = program("-c", "create table a (x int)", env={"SQLSHELL_READ_ONLY": "1"})
    assert "start without SQLSHELL_READ_ONLY" in variable.err
    profile = program("reading", "-c", "create table a (x int)", env=env)
    assert "profile 'reading' allows only statements that read" in profile.err
    assert "--read-only" not in profile.err
