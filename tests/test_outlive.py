"""Statements that keep running after the shell exits; uploads and downloads; in every way of running."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import signal
import sqlite3
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from tests.client.test_statements import ID, RUNNING, done, scripted
from tests.conftest import Program, Served, clean_environment, serve, start, stop

LONG = "select count(*) from range(100000000000) a, range(1000) b"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with a folder, the legacy interface, and everything on the data plane."""
    folder = tmp_path_factory.mktemp("kept")
    options = ("--data", str(folder / "data"), "--legacy", "--data-plane", "always", "--partition-rows", "1000")
    running = serve(folder, *options)
    yield running
    stop(running)


def jobs(program: Program, env: Mapping[str, str], *more: str) -> list[dict[str, Any]]:
    found = program("-c", "\\jobs 1000", "--format", "jsonl", *more, env=env)
    assert found.code == 0, found.err
    return [json.loads(line) for line in found.out.splitlines()]


@pytest.mark.slow("starts a service, runs the program eight times")
def test_a_result_is_fetched_by_another_shell(program: Program, kept: Served, tmp_path: Path) -> None:
    ran = program("-v", "-c", "select range as i from range(3000)", "--format", "csv", env=kept.environment)
    assert ran.code == 0
    entry = jobs(program, kept.environment)[0]
    assert (entry["state"], entry["rows"]) == ("finished", 3000)
    for argv in (
        ["fetch", entry["id"]],
        ["fetch", entry["id"][:8]],
        ["-c", f"\\fetch {entry['id']}"],
        ["-c", "\\fetch"],
    ):
        again = program(*argv, "--format", "csv", env=kept.environment)
        assert (again.code, again.out) == (0, ran.out), argv
    # Without a URL the journal knows where it ran, and the profile has the token.
    (tmp_path / "config.toml").write_text(f'[profiles.default]\nurl = "{kept.url}"\ntoken = "{kept.token}"\n')
    again = program("fetch", entry["id"], "--format", "csv", env={"SQLSHELL_CONFIG_DIR": str(tmp_path)})
    assert again.out == ran.out
    written = program("fetch", entry["id"], "-o", "rows.jsonl", env=kept.environment)
    assert written.code == 0


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["fetch"], 2, "ID"),
        (["fetch", "nonsense"], 2, "no statement ID begins with"),
        (["fetch", "00000000-0000-4000-8000-000000000009"], 3, "does not know statement"),
        (["-c", "\\attach"], 0, "no file is attached"),
        (["download", "function_source", "nothing"], 3, "no such resource"),
        (["download", "../x", "nothing"], 2, "unknown resource type"),
        (["download", "foo", "bar"], 2, "unknown resource type"),
        (["download", "function_source", ".."], 2, "is not a file name"),
        (["-c", "select 1", "--attach", "nowhere.jar"], 2, "cannot read nowhere.jar: no such file or directory"),
        (
            ["-c", "update store s with ('tls.ca_file' = '@no.pem')"],
            2,
            "'tls.ca_file': cannot read no.pem: no such file or directory",
        ),
        (
            ["-c", "create store s with ('sasl.password' = '@no.pem')"],
            2,
            "to write a value that begins with @, double it: '@@…'",
        ),
        (["-c", "create store s with ('tls.ca_file' = '@/dev/zero')"], 2, "is not a regular file"),
        (["-c", "create store s with ('tls.ca_file' = '@.')"], 2, "is a directory"),
        (["-c", "select 1", "--max-rows", "x"], 2, "expected an integer"),
        (["-c", "select 1", "--duration", "soon"], 2, "not a duration"),
        (["-c", "select 1", "--retries", "-1"], 2, "expected an integer, 0 or greater"),
        (["version", "x"], 2, "--server"),
    ],
)
def test_bad_input(program: Program, kept: Served, argv: list[str], code: int, message: str) -> None:
    found = program(*argv, env=kept.environment)
    assert found.code == code, found.err
    assert message in found.err
    assert len(found.err.strip().splitlines()) <= 3
    assert "sasl.password" not in str(argv) or "no.pem" not in found.err


@pytest.mark.slow("runs the program three times")
def test_a_shell_that_was_killed_in_mid_fetch(program: Program, kept: Served, tmp_path: Path) -> None:
    sql = "select range as i, repeat('x', 200) as x from range(400000)"
    process = start(tmp_path, "-c", sql, "--format", "csv", env=kept.environment, stdout=PIPE)
    assert process.stdout is not None
    process.stdout.read(100_000)
    process.kill()
    process.communicate()
    entry = jobs(program, kept.environment)[0]
    assert entry["statement"].startswith("select range")
    whole = program("fetch", entry["id"], "--format", "csv", env=kept.environment)
    rows = list(csv.reader(io.StringIO(whole.out)))
    assert (whole.code, len(rows), rows[-1][0]) == (0, 400_001, "399999")


@pytest.mark.slow("runs the program six times")
def test_a_shell_that_was_killed_while_its_statement_ran(program: Program, kept: Served, tmp_path: Path) -> None:
    process = start(tmp_path, "-v", "-c", LONG, env=kept.environment, stderr=PIPE)
    assert process.stderr is not None
    process.stderr.readline()
    process.stderr.readline()
    process.kill()
    process.communicate()
    entry = jobs(program, kept.environment)[0]
    assert (entry["state"], entry["statement"]) == ("running", LONG)
    assert "was canceled" in program("-c", f"\\cancel {entry['id'][:10]}", env=kept.environment).err
    assert jobs(program, kept.environment)[0]["state"] == "canceled"
    fetched = program("fetch", entry["id"], env=kept.environment)
    assert fetched.code == 1
    assert "57000" in fetched.err
    waited = program("-c", f"\\wait {entry['id']}", env=kept.environment)
    assert waited.code == 1


def test_the_background(program: Program, kept: Served) -> None:
    script = "select 41 + 1 as a;&\nselect 1 as b \\bg\n\\wait\nselect 2 as c;\n\\jobs\n"
    found = program("--format", "csv", stdin=script, env=kept.environment)
    assert found.code == 0, found.err
    assert found.out.startswith("c\n2\n")
    assert found.err.count("finished (1 row,") == 2
    entry = next(item for item in jobs(program, kept.environment) if item["statement"] == "select 41 + 1 as a")
    assert program("fetch", entry["id"], "--format", "csv", env=kept.environment).out == "a\n42\n"


@pytest.mark.slow("runs the program three times")
def test_a_result_is_offered_only_where_it_can_be_had(program: Program, kept: Served) -> None:
    """The embedded service ends with its script, and so does what runs there."""
    there = program("-c", LONG, "--timeout", "0.3", env=kept.environment)
    assert there.code == 4
    offered = re.search(
        r"is still running; sqlshell fetch ([0-9a-f-]{36}) http://\S+ shows its result, sqlshell http://\S+ -c",
        there.err,
    )
    assert offered is not None, there.err
    assert program("-c", f"\\cancel {offered[1]}", env=kept.environment).code == 0
    here = program("-c", LONG, "--timeout", "0.3")
    assert (here.code, "fetch" in here.err) == (4, False), here.err
    assert here.err == "error[57000]: canceled after 0.3 s (--timeout)\n"


def test_a_statement_that_is_too_slow_ends_before_the_next_one(program: Program) -> None:
    slow = f"insert into t {LONG}"
    script = ("-c", "create table t (i bigint)", "-c", slow, "-c", "insert into t values (3)", "-c", "from t")
    found = program(*script, "--timeout", "0.5", "--on-error", "continue", "--format", "csv")
    assert (found.code, found.out) == (4, "i\n3\n")
    assert found.err == "error[57000]: canceled after 0.5 s (--timeout)\n"


def test_a_background_statement_that_is_fetched_too_early_goes_on(program: Program) -> None:
    found = program(
        "--timeout", "0.5", "--on-error", "continue", "--format", "csv", stdin=f"{LONG};&\n\\fetch 1\n\\jobs\n"
    )
    assert found.code == 4 and ",running," in found.out, found
    assert "error[03000]: the statement has not ended after 0." in found.err


def test_jobs_by_their_numbers(program: Program, kept: Served) -> None:
    script = (
        f"select 'one' as a;&\nselect 'two' as b;&\n{LONG};&\n\\wait 2\n\\wait [1]\n\\fetch 2\n\\fetch 1\n\\cancel 3\n"
        "\\jobs\n\\fetch 43210\n"
    )
    found = program("--format", "csv", stdin=script, env=kept.environment)
    assert found.out.startswith("b\ntwo\na\none\njob,id,state,"), found.out
    assert "was canceled" in found.err
    listed = [line.split(",") for line in found.out.splitlines()[5:8]]
    assert {line[0]: (line[2], line[-1]) for line in listed} == {
        "1": ("finished", "select 'one' as a"),
        "2": ("finished", "select 'two' as b"),
        "3": ("canceled", ' range(1000) b"'),
    }
    assert "no statement ID begins with '43210'" in found.err
    assert program("-c", "\\wait [7]", env=kept.environment).code == 2


@pytest.mark.slow("runs the program five times")
def test_the_last_statement_in_the_background_or_not(program: Program, kept: Served, tmp_path: Path) -> None:
    script = "select 1 as a;\nselect 2 as b;&\n\\fetch\nselect 3 as c;\n\\fetch\n"
    assert program("--format", "csv", stdin=script, env=kept.environment).out == "a\n1\nb\n2\nc\n3\nc\n3\n"
    found = program("-c", f"select 1; {LONG};&", "-c", "\\cancel", env=kept.environment)
    assert (found.code, "was canceled" in found.err) == (0, True), found.err
    failed = program("-c", "select nonsense;&", "-c", "\\fetch", env=kept.environment)
    assert (failed.code, "nonsense" in failed.err) == (1, True)
    # Another shell's last statement, and one of the connection before, are not this connection's.
    assert "has not run a statement yet" in program("-c", "\\cancel", env=kept.environment).err
    moved = program("-c", "select 1;", "-c", f"\\c {tmp_path}/other.duckdb", "-c", "\\fetch", env=kept.environment)
    assert (moved.code, "has not run a statement yet" in moved.err) == (2, True)


def test_the_background_is_left_at_the_end_and_said(program: Program, kept: Served) -> None:
    found = program("-c", f"{LONG};&", env=kept.environment)
    assert found.code == 0
    left = re.search(r"sqlshell fetch ([0-9a-f-]{36})", found.err)
    assert left is not None
    assert program("-c", f"\\cancel {left[1]}", env=kept.environment).code == 0


def test_a_failure_in_the_background_fails_its_wait(program: Program, kept: Served) -> None:
    assert program("-c", "select nonsense;&", "-c", "\\wait", env=kept.environment).code == 1


def test_the_embedded_service_is_waited_for(program: Program) -> None:
    found = program("-c", "create table t as select range from range(1000);&", "-c", "select 1;")
    assert found.code == 0
    assert "finished" in found.err


def test_the_journal_is_private_and_without_secrets(program: Program, kept: Served, tmp_path: Path) -> None:
    program("-c", "select 'x' as \"k\" -- 'password' = 'in-a-comment'", env=kept.environment)
    program("-c", "create store s with ('type' = 'files', 'secret.token' = 'hidden-value')", env=kept.environment)
    program("-c", "create secret x (type s3, key_id hidden-value, secret 'hidden-value')", env=kept.environment)
    paths = list(tmp_path.rglob("journal.db*"))
    assert paths
    for path in paths:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
        assert b"hidden-value" not in path.read_bytes()
        assert b"in-a-comment" not in path.read_bytes()
        assert kept.token.encode() not in path.read_bytes()
    database = sqlite3.connect(next(path for path in paths if path.name == "journal.db"))
    try:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    finally:
        database.close()


def test_a_journal_that_cannot_be_written_stops_nothing(program: Program, kept: Served, tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / "journal.db").write_bytes(b"this is no database, " * 100)
    found = program("-c", "select 1 as a", "--format", "csv", env=kept.environment | {"SQLSHELL_STATE_DIR": str(state)})
    assert (found.code, found.out) == (0, "a\n1\n")
    assert found.err.count("the journal") == 1
    off = program(
        "-c", "select 1 as a", env=kept.environment | {"SQLSHELL_JOURNAL": "off", "SQLSHELL_STATE_DIR": str(state)}
    )
    assert "journal" not in off.err


@pytest.mark.slow("runs the program many times")
def test_attachments_and_downloads(program: Program, kept: Served, tmp_path: Path) -> None:
    content = os.urandom(3_000_000)
    (tmp_path / "lib.jar").write_bytes(content)
    (tmp_path / "ca.pem").write_bytes(b"authority")
    store = "create store s with ('tls.ca_cert_file' = '@ca.pem', 'sasl.password' = '@@x', 'user' = '@');"
    sent = program("--offline", "-c", store, env=kept.environment)
    assert "attachments=@" in sent.out
    assert ("@x" in sent.out, "@@x" in sent.out, "@ca.pem" in sent.out) == (True, False, False)
    large = program(
        "--upload-limit", "2", "-c", "create function_source a with ('file' = '@lib.jar')", env=kept.environment
    )
    assert (large.code, "--upload-limit MIB" in large.err) == (2, True)
    named = program("-v", "-c", "create function_source a with ('file' = '@lib.jar')", env=kept.environment)
    assert named.code == 0, named.err
    assert hashlib.sha256(content).hexdigest() in named.err
    attached = program(
        "--attach",
        "lib.jar",
        "-c",
        "select 1;",
        "-c",
        "create function_source b with ('file' = 'lib.jar')",
        env=kept.environment,
    )
    assert attached.code == 0, attached.err
    script = "\\attach lib.jar\n\\attach\ncreate descriptor_source c with ('file' = 'lib.jar');\n\\attach\n"
    inside = program(stdin=script, env=kept.environment)
    assert inside.code == 0, inside.err
    assert inside.err.count("3,000,000 bytes") == 2
    assert "no file is attached" in inside.err
    for kind, name in (("function_source", "a"), ("function_source", "b"), ("descriptor_source", "c")):
        for argv in (["download", kind, name, "-o", f"{name}.out"], ["-c", f"\\download {kind} {name} {name}.two"]):
            got = program(*argv, env=kept.environment)
            assert got.code == 0, got.err
            assert hashlib.sha256(content).hexdigest() in got.err
        assert (tmp_path / f"{name}.out").read_bytes() == content
    large = program("download", "--download-limit", "2", "function_source", "a", "-o", "large", env=kept.environment)
    assert (large.code, "--download-limit MIB" in large.err) == (3, True)
    assert not list(tmp_path.glob("*large*"))
    refused = program("download", "function_source", "a", "-o", "a.out", env=kept.environment)
    assert refused.code == 2
    assert "--force" in refused.err
    assert program("download", "function_source", "a", "-o", "a.out", "--force", env=kept.environment).code == 0
    old = program("--api", "legacy", "download", "function_source", "a", env=kept.environment)
    assert old.code == 2
    (tmp_path / "folder").mkdir()
    assert program("download", "function_source", "a", "-o", "folder", env=kept.environment).code == 0
    assert (tmp_path / "folder" / "a").read_bytes() == content
    assert not list(tmp_path.rglob(".*.part*"))


def test_a_file_that_no_statement_names_is_an_error(program: Program, kept: Served, tmp_path: Path) -> None:
    (tmp_path / "lib.jar").write_bytes(b"x")
    found = program("--attach", "lib.jar", "-c", "select 1 as a", "--format", "csv", env=kept.environment)
    assert (found.code, found.out) == (2, "a\n1\n")
    assert "no statement used it" in found.err


def test_the_legacy_interface(program: Program, kept: Served) -> None:
    found = program("--api", "legacy", "-c", "select 1 as a; select 'x' as b", "--format", "csv", env=kept.environment)
    assert (found.code, found.out) == (0, "a\n1\nb\nx\n")
    failed = program("--api", "legacy", "-c", "selec", env=kept.environment)
    assert failed.code == 1
    assert "42601" in failed.err
    auto = program("--api", "auto", "-c", "select 1 as a", "--format", "csv", env=kept.environment)
    assert auto.out == "a\n1\n"
    assert program("version", "--server", "--api", "legacy", env=kept.environment).code == 0


def test_what_would_be_sent_runs_as_it_is(program: Program, kept: Served, tmp_path: Path) -> None:
    (tmp_path / "it's.jar").write_bytes(b"content")
    statements = [
        "select 'it''s \"q\"; $x `y` \\ @z' as a",
        "create function_source off with ('file' = '@it''s.jar')",
    ]
    for sql in statements:
        shown = program("--offline", "-c", sql, env=kept.environment)
        assert shown.code == 0, shown.err
        assert kept.token not in shown.out
        ran = subprocess.run(
            ["bash", "-c", shown.out],
            capture_output=True,
            cwd=tmp_path,
            env=clean_environment(tmp_path, {"SQLSHELL_TOKEN": kept.token}),
            check=True,
        )
        assert json.loads(ran.stdout)["sqlState"] in {"00000", "03000"}, ran.stdout
    old = program("--offline", "--api", "legacy", "-c", "select ';type=x' as a", env=kept.environment)
    ran = subprocess.run(
        ["bash", "-c", old.out], capture_output=True, env=clean_environment(tmp_path, kept.environment), check=True
    )
    assert json.loads(ran.stdout)[0]["data"] == [{"a": ";type=x"}]
    assert program("--offline", "-c", "select 1").code == 2


@pytest.mark.parametrize(
    "command",
    ["\\dt", "\\d t", "\\version", "\\download function_source x", "\\cancel 00000000-0000-4000-8000-000000000000"],
)
def test_a_command_sends_nothing_offline(program: Program, command: str) -> None:
    done = program("http://127.0.0.1:1", "--offline", "-c", command, env={"SQLSHELL_TOKEN": "tok"})
    assert (done.code, done.out) == (2, "")
    assert "error: --offline sends nothing\n" in done.err


def wait_for_reader(program: Program, kept: Served, stream: str) -> None:
    """Wait until a SELECT from a stream runs: it does not see what is inserted before."""
    until = time.monotonic() + 60
    while f"from {stream}" not in program("-c", "list queries", "--format", "csv", env=kept.environment).out:
        assert time.monotonic() < until


@pytest.mark.slow("runs the program six times")
def test_a_stream_as_lines(program: Program, kept: Served, tmp_path: Path) -> None:
    assert program("-c", "create stream s1 (a integer, b varchar)", env=kept.environment).code == 0
    process = start(
        tmp_path,
        "-c",
        "select * from s1",
        "--format",
        "jsonl",
        "--max-rows",
        "3",
        env=kept.environment,
        stdout=PIPE,
        stderr=PIPE,
        text=True,
    )
    assert process.stdout is not None
    wait_for_reader(program, kept, "s1")
    lines = []
    for number in range(3):
        program("-c", f"insert into s1 values ({number}, 'x')", env=kept.environment)
        lines.append(json.loads(process.stdout.readline()))
    assert lines == [{"a": number, "b": "x"} for number in range(3)]
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, "")


@pytest.mark.slow("runs the program three times")
def test_a_stream_for_a_time_and_interrupted(program: Program, kept: Served, tmp_path: Path) -> None:
    program("-c", "create stream s2 (a integer)", env=kept.environment)
    found = program("-c", "select * from s2", "--duration", "300ms", "--format", "csv", env=kept.environment)
    assert (found.code, found.out) == (0, "a\n")
    process = start(
        tmp_path, "-c", "select * from s2", "--format", "csv", env=kept.environment, stdout=PIPE, stderr=PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "a\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "TERMINATE QUERY" in err


@pytest.mark.slow("runs the program four times")
@pytest.mark.parametrize("argv", [["-o", "rows.csv"], []])
def test_rows_of_a_stream_stay_in_their_file(program: Program, kept: Served, tmp_path: Path, argv: list[str]) -> None:
    stream = "s3" if argv else "s4"
    program("-c", f"create stream {stream} (a integer)", env=kept.environment)
    sql = f"select * from {stream}" if argv else f"select * from {stream} \\g rows.csv"
    process = start(tmp_path, "-v", "-c", sql, *argv, env=kept.environment, stderr=PIPE, text=True)
    assert process.stderr is not None
    process.stderr.readline()
    wait_for_reader(program, kept, stream)
    program("-c", f"insert into {stream} values (7)", env=kept.environment)
    while not any(path.read_bytes().endswith(b"\n7\n") for path in tmp_path.iterdir() if "rows.csv" in path.name):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert (tmp_path / "rows.csv").read_text() == "a\n7\n"


@pytest.mark.slow("runs the program three times")
def test_what_is_not_ready_is_waited_for_as_long_as_was_said(program: Program, kept: Served) -> None:
    made = program("-c", "create compute_pool idle; stop compute_pool idle", env=kept.environment)
    assert made.code == 0, made.err
    for argv, code, message in (
        (["--retries", "1"], 1, "(attempt 1 of 1)"),
        (["--timeout", "1"], 4, "after 1 s"),
    ):
        done = program(*argv, "--compute-pool", "idle", "-c", "select 1", env=kept.environment)
        assert (done.code, done.out) == (code, ""), done.err
        assert message in done.err
        assert "3E004" in done.err


@pytest.mark.slow("runs the program four times")
def test_wait_is_bounded_too(program: Program, kept: Served) -> None:
    slow = "select sum(a.range * b.range) from range(1000000) a, range(1000000) b"
    begun = program("--timeout", "0.2", "-c", slow, env=kept.environment)
    assert begun.code == 4, begun.err
    entry = jobs(program, kept.environment)[0]
    waited = program("--timeout", "0.3", "-c", f"\\wait {entry['id']}", env=kept.environment)
    ended = program("-c", f"\\cancel {entry['id']}", env=kept.environment)
    assert waited.code == 4, waited.err
    assert "still running" in waited.err
    assert ended.code == 0


@pytest.mark.slow("runs the program three times")
def test_a_token_command(program: Program, kept: Served, tmp_path: Path) -> None:
    folder = tmp_path / "config"
    folder.mkdir()
    script = tmp_path / "token.sh"
    second = tmp_path / "second"
    script.write_text(f"[ -e {second} ] && echo {kept.token} || echo old\ntouch {second}\n")
    (folder / "config.toml").write_text(f'[profiles.p]\nurl = "{kept.url}"\ntoken_command = "sh {script}"\n')
    env = {"SQLSHELL_CONFIG_DIR": str(folder)}
    found = program("p", "-c", "select 1 as a;", "-c", "select 2 as b;", "--format", "csv", env=env)
    assert found.code == 3
    assert "rejected the token" in found.err
    found = program("p", "-c", "select 1 as a;", "-c", "select 2 as b;", "--format", "csv", env=env)
    assert (found.code, found.out) == (0, "a\n1\nb\n2\n")
    script.write_text("exit 7")
    failed = program("p", "-c", "select 1", env=env)
    assert failed.code == 2
    assert "exit code 7" in failed.err


def test_insecure_is_warned_of_each_time(program: Program) -> None:
    found = program(
        "https://127.0.0.1:9", "--insecure", "--retries", "0", "-c", "select 1", env={"SQLSHELL_TOKEN": "t"}
    )
    assert found.code == 3
    assert "not verifying" in found.err


def test_a_service_without_a_way_to_end_statements(program: Program, tmp_path: Path) -> None:
    refusal = done(data=None) | {"sqlState": "42601", "message": "TERMINATE is not known"}
    with scripted((202, RUNNING), (200, RUNNING)) as state:
        state.refusal = (200, refusal)
        process = start(
            tmp_path, state.url, "-c", "insert into t values (1)", env={"SQLSHELL_TOKEN": "t"}, stderr=PIPE, text=True
        )
        while len(state.asked) < 2:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert ID in err
    assert "left running" in err
