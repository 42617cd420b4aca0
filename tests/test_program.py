"""The program in scripts: argv and pipes in, stdout, stderr and an exit code out."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import signal
import socket
import sqlite3
import sys
import time
from pathlib import Path
from subprocess import PIPE, Popen

import pytest
from backports.zstd import decompress

from tests.conftest import Program, Served, clean_environment, start


def test_one_command_on_the_local_service(program: Program) -> None:
    done = program("-c", "select 42 as answer", "--format", "csv")
    assert (done.code, done.out) == (0, "answer\n42\n")
    assert done.err == ""


def test_a_script_on_stdin(program: Program) -> None:
    done = program("--format", "csv", stdin="create table t as select * from range(5);\nselect sum(range) as s from t;")
    assert (done.code, done.out) == (0, "s\n10\n")


def test_a_syntax_error(program: Program) -> None:
    done = program("-c", "select 1/")
    assert (done.code, done.out) == (1, "")
    assert "42601" in done.err


@pytest.mark.parametrize("command", ["copy nosuch from stdin;", "\\copy nosuch from stdin"])
def test_an_error_of_copy_has_the_line_of_its_statement(program: Program, tmp_path: Path, command: str) -> None:
    (tmp_path / "s.sql").write_text(f"select 1;\n{command}\n1\n2\n\\.\n")
    assert program("-f", "s.sql").err.startswith("s.sql:2: error[3D020]")


def test_a_command_in_backticks_that_was_interrupted(program: Program) -> None:
    done = program("-c", "\\set x `kill -INT $$`")
    assert (done.code, done.err.splitlines()[0]) == (130, "error: interrupted")


def test_what_a_script_does_not_run_after_it_is_counted(program: Program) -> None:
    """Ctrl-C is for the command and for the shell, which waits for it."""
    done = program("-c", "\\set x `kill -INT $PPID; kill -INT $$`\nselect 1;\n\\echo x")
    assert (done.code, done.out) == (130, "")
    assert done.err == "error: interrupted\nwarning: 1 statement and 1 command were not run\n"


def test_the_same_on_a_remote_service(program: Program, served: Served) -> None:
    done = program("-c", "select 42 as answer", "--format", "csv", env=served.environment)
    assert (done.code, done.out, done.err) == (0, "answer\n42\n", "")


def test_commands_and_files_run_in_the_order_given(program: Program, tmp_path: Path) -> None:
    tmp_path.joinpath("a.sql").write_text("select 2 as b;")
    done = program("-q", "--format", "csv", "-c", "select 1 as a", "-f", "a.sql", "-c", "select 3 as c")
    assert (done.code, done.out) == (0, "a\n1\nb\n2\nc\n3\n")


def test_minus_is_stdin(program: Program) -> None:
    done = program(
        "-q", "--format=csv", "-c", "create table t (i int)", "-f", "-", stdin="insert into t values (7); from t"
    )
    assert (done.code, done.out) == (0, "i\n7\n")


def test_scripts_stop_at_the_first_failure(program: Program) -> None:
    script = "select 1 as a;\nselect nope;\nselect 2 as b;"
    stopped = program("-q", "--format", "csv", stdin=script)
    going = program("-q", "--format", "csv", "--on-error", "continue", stdin=script)
    assert (stopped.code, stopped.out) == (1, "a\n1\n")
    assert (going.code, going.out) == (1, "a\n1\nb\n2\n")
    assert "<stdin>:2:8: error[42703]: " in stopped.err


def test_errors_name_file_and_line(program: Program, tmp_path: Path) -> None:
    tmp_path.joinpath("s.sql").write_text("-- one\nselect 1;\n\n  select\n nope;\n")
    done = program("-q", "-f", "s.sql")
    assert done.code == 1
    assert "s.sql:5:2: error[42703]: " in done.err


def test_an_included_script_names_itself(program: Program, tmp_path: Path) -> None:
    tmp_path.joinpath("inner.sql").write_text("\nselect nope;")
    tmp_path.joinpath("outer.sql").write_text("\\i inner.sql\nselect 1;")
    done = program("-q", "-f", "outer.sql")
    assert (done.code, done.out) == (1, "")
    assert "inner.sql:2:8: error[42703]: " in done.err
    assert done.err.count(": error[") == 1


def test_a_script_that_includes_itself_ends(program: Program, tmp_path: Path) -> None:
    tmp_path.joinpath("s.sql").write_text("\\i s.sql\n")
    done = program("-q", "-f", "s.sql")
    assert done.code == 2
    assert "include" in done.err


def test_backslash_commands_in_scripts(program: Program) -> None:
    done = program("-q", stdin="\\format csv\nselect 1 as a \\gx\nselect 2 as b\\g\n\\q\nselect 3;")
    assert done.code == 0
    assert "3" not in done.out
    assert "b" in done.out


def test_vertical_by_gx(program: Program) -> None:
    done = program("-q", "-c", "select 1 as a, 'x' as b \\gx")
    assert done.code == 0
    assert re.search(r"RECORD 1", done.out)


def test_an_unknown_command_is_told_with_the_nearest(program: Program) -> None:
    done = program("-q", "-c", "\\tming")
    assert done.code == 2
    assert "\\timing" in done.err


def test_output_to_a_file_by_its_ending(program: Program, tmp_path: Path) -> None:
    done = program("-q", "-c", "select 1 as a", "-o", "x.jsonl")
    assert (done.code, done.out) == (0, "")
    assert tmp_path.joinpath("x.jsonl").read_text() == '{"a":1}\n'


def test_a_failed_script_leaves_the_old_output(program: Program, tmp_path: Path) -> None:
    tmp_path.joinpath("x.csv").write_text("old\n")
    done = program("-q", "-c", "select 1 as a; select nope", "-o", "x.csv")
    assert done.code == 1
    assert tmp_path.joinpath("x.csv").read_text() == "old\n"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith((".", "x"))] == ["x.csv"]


def test_redirection_in_a_script(program: Program, tmp_path: Path) -> None:
    done = program("-q", "--format", "csv", stdin="\\o a.csv\nselect 1 as a;\n\\o\nselect 2 as b;\n")
    assert (done.code, done.out) == (0, "b\n2\n")
    assert tmp_path.joinpath("a.csv").read_text() == "a\n1\n"


@pytest.mark.slow("runs the program four times")
@pytest.mark.parametrize("way", ["-o", "\\g", "\\gx", "\\o", "\\once", "\\tee"])
def test_an_ending_that_is_no_formats(program: Program, tmp_path: Path, way: str) -> None:
    """Nothing runs and nothing is written; a format that was chosen writes any file."""
    sql = "insert into t values (1) returning a"
    made = ["t.db", "-q", "-c", "create or replace table t (a int)"]
    script = f"{sql} {way} x.docx" if way in {"\\g", "\\gx"} else f"{way} x.docx\n{sql};"
    argv = ["-o", "x.docx", "-c", sql] if way == "-o" else ["-c", script]
    done = program(*made, *argv)
    assert done.code == 2, done.err
    assert "x.docx: unknown file extension .docx" in done.err
    assert ".jsonl" in done.err
    assert not (tmp_path / "x.docx").exists()
    # -o is looked at before anything runs.
    assert program("t.db", "-q", "-c", "from t", "--format", "csv").out == ("" if way == "-o" else "a\n")
    for more in (["--format", "csv"], [] if way == "-o" else ["-c", "\\format csv"]):
        if more:
            assert program(*made, *more, *argv).code == 0
            assert (tmp_path / "x.docx").read_text() == ("a,1\n" if way == "\\gx" else "a\n1\n")
            (tmp_path / "x.docx").unlink()


@pytest.mark.parametrize("name", ["x", ".x", "x.txt", "/dev/null"])
def test_files_that_hold_a_table(program: Program, tmp_path: Path, name: str) -> None:
    assert program("-q", "-c", f"select 1 as a \\g {name}").code == 0
    assert name == "/dev/null" or "| a |" in (tmp_path / name).read_text().replace("  ", "")


@pytest.mark.parametrize("argv", [["-o", "no/where.csv"], ["-o", "."]])
def test_output_that_cannot_be_written(program: Program, argv: list[str]) -> None:
    done = program("-q", "-c", "select 1", *argv)
    assert done.code == 1
    assert len(done.err.strip().splitlines()) <= 2


def test_every_row_of_many_partitions(program: Program, served: Served) -> None:
    done = program("-c", "select range as i from range(12345)", "--format", "csv", env=served.environment)
    assert done.code == 0
    assert done.out == "i\n" + "".join(f"{number}\n" for number in range(12345))


def test_the_context_follows_the_service(program: Program, served: Served) -> None:
    script = "create schema ctx; use schema ctx; create table only_here as select 5 as five; from only_here; \\context"
    done = program("--format", "csv", stdin=script, env=served.environment)
    assert (done.code, done.out) == (0, "five\n5\n")
    assert re.search(r"schema +ctx", done.err)


def test_a_session_is_a_session(program: Program, served: Served) -> None:
    script = "begin; create temp table tt as select 1 as a; from tt; rollback; from tt;"
    done = program("--format", "csv", stdin=script, env=served.environment)
    assert (done.code, done.out) == (1, "a\n1\n")
    assert "3D020" in done.err


def test_several_statements_one_after_another(program: Program, served: Served) -> None:
    done = program("--format", "csv", "-c", "select 1 as a; select 2 as b;", env=served.environment)
    assert (done.code, done.out) == (0, "a\n1\nb\n2\n")


def test_the_time_zone_is_the_clients_own(program: Program, served: Served) -> None:
    sql = "select timestamptz '2024-01-01 00:00:00+00' as t"
    paris = program("--format", "csv", "--timezone", "Europe/Paris", "-c", sql, env=served.environment)
    utc = program("--format", "csv", "--timezone", "UTC", "-c", sql, env=served.environment)
    assert "2024-01-01 01:00:00+01:00" in paris.out
    assert "2024-01-01 00:00:00" in utc.out


@pytest.mark.parametrize("sql", ["", " ", ";", ";;", "-- nothing", "/* nothing */"])
def test_empty_input_does_nothing(program: Program, sql: str) -> None:
    for done in (program("-q", "-c", sql), program("-q", stdin=sql)):
        assert (done.code, done.out, done.err) == (0, "", "")


def test_a_binary_file_is_no_script(program: Program, tmp_path: Path) -> None:
    tmp_path.joinpath("b.sql").write_bytes(b"\x7fELF\0\1\2")
    tmp_path.joinpath("l.sql").write_bytes(b"select 1;\nselect '\xe9';")
    binary, latin = program("-q", "-f", "b.sql"), program("-q", "-f", "l.sql", "--format", "csv")
    assert binary.code == 2
    assert "binary" in binary.err
    assert latin.code == 2
    assert "l.sql:2" in latin.err


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (["--nope"], 2, "--nope"),
        (["--format", "word", "-c", "select 1"], 2, "word"),
        (["--on-error", "maybe", "-c", "select 1"], 2, "maybe"),
        (["ftp://host", "-c", "select 1"], 2, "ftp"),
        (["https://", "-c", "select 1"], 2, "host"),
        (["nothing", "-c", "select 1"], 2, "is not a URL"),
        (["nothing.csv", "-c", "select 1"], 2, "nothing.csv"),
        (["-f", "missing.sql"], 2, "missing.sql"),
        (["--token-file", "missing", "http://127.0.0.1:9", "-c", "select 1"], 2, "missing"),
        (["--profile", "missing", "-c", "select 1"], 2, "missing"),
        (["-q", "serve"], 2, "serve"),
        (["serve", "--port", "x"], 2, "port"),
        (["http://127.0.0.1:9", "-c", "select 1"], 3, "connection refused"),
        (["http://no-such-host.invalid", "-c", "select 1"], 3, "no-such-host.invalid"),
    ],
)
def test_bad_input_is_one_clear_line(program: Program, argv: list[str], code: int, words: str) -> None:
    done = program(*argv)
    assert (done.code, done.out) == (code, "")
    assert words in done.err
    assert len(done.err.strip().splitlines()) <= 2


def test_a_wrong_token(program: Program, served: Served) -> None:
    for env in ({"SQLSHELL_TOKEN": "wrong"}, {}):
        done = program(served.url, "-c", "select 1", env=env)
        assert (done.code, done.out) == (3, "")
        assert "token" in done.err
        assert len(done.err.strip().splitlines()) <= 2


def test_a_url_that_is_no_service(program: Program, served: Served) -> None:
    done = program(served.url + "/elsewhere", "-c", "select 1", env={"SQLSHELL_TOKEN": served.token})
    assert done.code == 3
    assert "path" in done.err


@pytest.mark.slow("runs the program")
def test_a_port_that_does_not_speak_http(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        process = start(tmp_path, url, "-c", "select 1", stderr=PIPE)
        for _ in range(3):
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"SSH-2.0-OpenSSH_9\r\n")
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(1 << 16):
                    continue
        _, err = process.communicate(timeout=30)
    assert process.returncode == 3
    assert b"it may not be an HTTP server" in err


@pytest.mark.slow("runs the program twice")
def test_a_wait_that_runs_out(program: Program, served: Served) -> None:
    sql = "select count(*) from range(10000000000) a, range(1000) b"
    done = program("--timeout", "0.3", "-c", sql, env=served.environment)
    assert done.code == 4
    statement = re.search(r"[0-9a-f-]{36}", done.err)
    assert statement is not None
    ended = program("-c", f"terminate query '{statement[0]}'", env=served.environment)
    assert ended.code == 0


def test_ctrl_c_ends_the_statement_and_the_script(tmp_path: Path, served: Served) -> None:
    sql = "select count(*) from range(10000000000) a, range(1000) b; select 2"
    process = start(tmp_path, "-v", "-c", sql, env=served.environment, stdout=PIPE, stderr=PIPE, text=True)
    assert process.stderr is not None
    assert "/v2/statements 202" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert "57000" in err


@pytest.mark.slow("runs the program")
def test_ctrl_c_while_stdin_is_waited_for(tmp_path: Path, served: Served) -> None:
    process = start(
        tmp_path, "--format", "csv", env=served.environment, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("select 1 as a;\n\\echo stdin is next\n")
    process.stdin.flush()
    # The rows are there before the statement is through; what a command says is there at its end.
    assert [process.stdout.readline() for _ in range(3)] == ["a\n", "1\n", "stdin is next\n"]
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    assert "Traceback" not in process.communicate()[1]


@pytest.mark.slow("a process that runs a while")
@pytest.mark.parametrize("waits", (True, False))
def test_a_script_that_was_started_with_sigint_ignored_ignores_it(tmp_path: Path, served: Served, waits: bool) -> None:
    argv = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "-m", "sqlshell", "--format=csv"]
    environment = clean_environment(tmp_path, served.environment)
    process = Popen(argv, env=environment, stdin=PIPE, stdout=PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(
        "select 1 as a;\n" + "select count(*) as b from range(20000) r(i), range(10000);\n" * (not waits)
    )
    process.stdin.flush()
    assert (process.stdout.readline(), process.stdout.readline()) == ("a\n", "1\n")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate("select 2 as c;", timeout=60)
    assert (process.returncode, out) == (0, "b\n200000000\n" * (not waits) + "c\n2\n")


def test_a_reader_that_leaves_is_told_by_the_exit_code_alone(tmp_path: Path, served: Served) -> None:
    process = start(
        tmp_path,
        "--format",
        "csv",
        "-c",
        "select range from range(5000000)",
        env=served.environment,
        stdout=PIPE,
        stderr=PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"range\n"
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(60) == 141


@pytest.mark.slow("runs the program three times")
def test_a_database_file_keeps_and_a_data_file_is_a_view(program: Program, tmp_path: Path) -> None:
    made = program("work.duckdb", "-q", "-c", "create table t as select 5 as a")
    again = program("work.duckdb", "-q", "--format", "csv", "-c", "from t")
    assert (made.code, again.code, again.out) == (0, 0, "a\n5\n")
    tmp_path.joinpath("my data.csv").write_text("x,y\n1,2\n")
    viewed = program("my data.csv", "-q", "--format", "csv", "-c", 'select x + y as z from "my data"')
    assert (viewed.code, viewed.out) == (0, "z\n3\n")


def test_a_file_that_is_no_database(program: Program, tmp_path: Path) -> None:
    tmp_path.joinpath("not.db").write_text("hello" * 1000)
    done = program("not.db", "-q", "-c", "select 1")
    assert done.code in {2, 3}
    assert "not.db" in done.err
    assert len(done.err.strip().splitlines()) <= 2


def test_the_local_service_opens_no_port(tmp_path: Path) -> None:
    process = start(tmp_path, "-q", "--format", "csv", stdin=PIPE, stdout=PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("select 1 as a;\n")
    process.stdin.flush()
    assert process.stdout.readline() == "a\n"
    sockets = {path.readlink().name for path in Path(f"/proc/{process.pid}/fd").iterdir() if path.is_symlink()}
    inodes = {name.removeprefix("socket:[").rstrip("]") for name in sockets if name.startswith("socket:[")}
    tcp = [line.split() for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()[1:]]
    assert inodes
    assert not [line for line in tcp if line[9] in inodes]
    process.communicate("", timeout=30)
    assert process.returncode == 0


@pytest.mark.slow("runs the program four times")
def test_a_token_never_shows(program: Program, served: Served, tmp_path: Path) -> None:
    secret = served.token
    for argv in (["-vvv", "-c", "select 1"], ["-vvv", "-c", "\\context"], ["-vvv", "-c", "select nope"]):
        done = program(*argv, env=served.environment)
        assert secret not in done.out + done.err
    done = program(f"http://:{secret}@127.0.0.1:9", "-c", "select 1")
    assert secret not in done.out + done.err
    assert "warning" in done.err


@pytest.mark.slow("starts a service, runs the program")
def test_serve_makes_a_token_and_says_so(tmp_path: Path, program: Program) -> None:
    process = start(tmp_path, "serve", "--port", "0", stdout=PIPE, stderr=PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    url = process.stdout.readline().removeprefix("listening on ").strip()
    told = iter(process.stderr.readline, "")
    token = next(filter(None, (re.search(r"token: (\S+)", line) for line in told)))
    done = program(url, "--format", "csv", "-c", "select 1 as a", env={"SQLSHELL_TOKEN": token[1]})
    assert (done.code, done.out) == (0, "a\n1\n")
    process.terminate()
    assert process.wait(30) == 0
    process.communicate()


def test_a_token_outlives_the_service(tmp_path: Path, program: Program) -> None:
    """With --data it is in a file that others cannot read, and in nothing that is printed."""
    message, tokens = [], []
    for _ in range(2):
        process = start(
            tmp_path, "serve", "--port", "0", "--data", str(tmp_path / "data"), stdout=PIPE, stderr=PIPE, text=True
        )
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("listening on ").strip()
        file = tmp_path / "data" / "token"
        tokens.append(file.read_text().strip())
        assert file.stat().st_mode & 0o777 == 0o600
        done = program(url, "--token-file", str(file), "-c", "select 1 as a", "--format", "csv")
        assert (done.code, done.out) == (0, "a\n1\n"), done.err
        process.send_signal(signal.SIGTERM)
        message.append(process.communicate(timeout=30)[1])
    assert tokens[0] == tokens[1]
    assert len(tokens[0]) > 40
    assert not any(tokens[0] in text for text in message)
    assert all(f"sqlshell {url.rpartition(':')[0]}" in text and "--token-file" in text for text in message)
    assert [path.name for path in (tmp_path / "data").iterdir() if path.name.startswith(".token")] == []


def test_serve_on_a_storage_that_it_cannot_write(tmp_path: Path, program: Program) -> None:
    argv = ("serve", "--port", "0", "--data", str(tmp_path / "data"))
    process = start(tmp_path, *argv, stdout=PIPE, stderr=PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("listening on ")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    with contextlib.closing(sqlite3.connect(tmp_path / "data" / "service.sqlite", isolation_level=None)) as storage:
        # A write fails, as on a full disk.
        storage.execute("CREATE TRIGGER full BEFORE UPDATE ON statements BEGIN SELECT no_such_function(); END")
        storage.execute(
            "INSERT INTO statements (id, organization, owner, sql, created, finished, state, message, context, bytes) "
            "VALUES ('a', '', '', '', 0, 0, '03000', '', '{}', 0)"
        )
    done = program(*argv)
    assert done.code == 2
    assert done.err.startswith(f"error: cannot write to {tmp_path / 'data'}: ")
    assert "bug" not in done.err


@pytest.mark.slow("starts a service, runs the program three times")
def test_serve_on_a_unix_socket(tmp_path: Path, program: Program) -> None:
    token_file = tmp_path / "t"
    token_file.write_text("t0ken")
    token_file.chmod(0o600)
    path = tmp_path / "a socket"
    process = start(tmp_path, "serve", "--uds", path.name, "--token-file", str(token_file), stdout=PIPE, text=True)
    assert process.stdout is not None
    address = process.stdout.readline().removeprefix("listening on ").strip()
    assert address.startswith("unix:///")
    assert path.stat().st_mode & 0o077 == 0
    for url in (address, f"unix://{path}"):
        done = program(url, "--format", "csv", "-c", "select 1 as a", "--token-file", str(token_file))
        assert (done.code, done.out) == (0, "a\n1\n")
    wrong = program(address, "-c", "select 1", env={"SQLSHELL_URL": address, "SQLSHELL_TOKEN": "wrong"})
    assert (wrong.code, f"unix://{path} rejected the token" in wrong.err) == (3, True), wrong.err
    process.terminate()
    assert process.wait(30) == 0
    process.stdout.close()


@pytest.mark.parametrize(
    ("url", "code", "message"),
    [
        ("unix://u.sock", 2, "requires an absolute path\nhelp: write it as unix:///path/to/socket"),
        (
            "unix:///nope/u.sock",
            3,
            "cannot connect to unix:///nope/u.sock: no such socket\nhelp: check that the service is running",
        ),
        ("ftp://host", 2, "unsupported URL scheme 'ftp'"),
    ],
)
def test_a_socket_that_cannot_be_reached_is_named(program: Program, url: str, code: int, message: str) -> None:
    done = program(url, "-c", "select 1")
    assert (done.code, message in done.err) == (code, True), done.err


def test_a_database_that_another_process_holds(program: Program, tmp_path: Path) -> None:
    holder = start(tmp_path, "held.db", "-q", "--format", "csv", stdin=PIPE, stdout=PIPE, text=True)
    assert holder.stdin is not None
    assert holder.stdout is not None
    holder.stdin.write("select 1 as a;\n")
    holder.stdin.flush()
    assert holder.stdout.readline() == "a\n"
    done = program("held.db", "-q", "-c", "select 1")
    holder.communicate("", timeout=30)
    assert done.code == 3
    assert "in use" in done.err
    assert len(done.err.strip().splitlines()) <= 2


def test_a_port_that_is_taken(program: Program, served: Served) -> None:
    done = program("serve", "--port", served.url.rpartition(":")[2])
    assert done.code == 2
    assert "cannot listen on" in done.err
    assert "use --port 0 to choose any free port" in done.err


def test_echo_and_verbose(program: Program) -> None:
    done = program("-q", "-e", "-vv", "-c", "select 1 as a", "--format", "csv")
    assert done.out == "a\n1\n"
    assert "select 1 as a" in done.err
    assert "statementID" in done.err


@pytest.mark.parametrize("argv", [["--format", "csv", "-c", "version"], ["--bogus"], ["here", "config"]])
def test_other_words_are_no_subcommands(program: Program, argv: list[str]) -> None:
    found = program(*argv)
    assert found.code
    assert "comes first" not in found.err


@pytest.mark.slow("runs the program seven times")
def test_a_transaction_that_a_script_leaves_open(program: Program, served: Served, tmp_path: Path) -> None:
    tmp_path.joinpath("t.sql").write_text("select 1 as a;\n\nbegin;\ncreate table left_open (a int);\n")
    lost = "warning: the open transaction was not committed and is rolled back\n"
    for env in ({}, served.environment):
        done = program("-q", "-f", "t.sql", "-c", "from left_open", env=env)
        assert (done.code, done.err) == (0, f"t.sql:3: {lost}")
    assert program("-q", stdin="\\i t.sql\nselect 2;").err == f"t.sql:3: {lost}"
    assert program("-q", "-c", "begin").err == lost
    assert program("-q", stdin="begin;\n\\c other.duckdb\n").err == f"<stdin>:1: {lost}connected to other.duckdb\n"
    assert program("-q", "-f", "t.sql", "-c", "commit").err == ""
    joined = program("-q", "--session-id", "kept", "-c", "begin", env=served.environment)
    assert "it stays open in the joined session" in joined.err


@pytest.mark.slow("runs the program twice")
def test_warnings_have_their_place_as_errors_do(program: Program) -> None:
    script = "begin;\nselect 1 / 'x';\ncommit;\n\nselect 1 as a, 2 as a;\nselect 3 as a;"
    done = program("-q", "--format", "json", "--on-error", "continue", stdin=script)
    told = [line for line in done.err.splitlines() if "warning" in line]
    assert [line.partition(" ")[0] for line in told] == ["<stdin>:3:", "<stdin>:5:", "<stdin>:6:"]
    assert "warning: the transaction had failed" in told[0]
    alone = program("-q", "--format", "json", "-c", "select 1 as a, 2 as a")
    assert alone.err.startswith("warning: duplicate column names")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--theme", "nope", "-c", "select 1"), "unknown theme 'nope'"),
        (("--max-rows", "-1", "-c", "select 1"), "expected an integer, 0 or greater"),
        (("--set", "5", "-c", "select 1"), "'5' is not a valid variable name"),
        (("--no-commands", "-c", ".tables"), "error: .tables: backslash commands are disabled"),
        (("--no-commands", "-c", "\\dt"), "error: \\dt: backslash commands are disabled"),
        (("-P", "null"), "-P null requires a value"),
        (("serve", "--nope"), "sqlshell serve --help all lists"),
        (("config", "list", "a", "b"), "sqlshell config --help lists"),
    ],
)
def test_a_bad_command_line_is_told_with_its_remedy(program: Program, argv: tuple[str, ...], message: str) -> None:
    done = program(*argv)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


@pytest.mark.slow("runs the program three times")
@pytest.mark.parametrize("way", ["-c", "-f", "stdin"])
@pytest.mark.parametrize("fails", [False, True])
def test_one_transaction_for_all_scripts(program: Program, tmp_path: Path, way: str, fails: bool) -> None:
    program("t.duckdb", "-c", "create table t (i int)")
    script = f"insert into t values (1);\ninsert into t values ({'nope' if fails else 2});\n"
    (tmp_path / "s.sql").write_text(script)
    given = {"-c": ["-c", script], "-f": ["-f", "s.sql"], "stdin": []}[way]
    done = program("t.duckdb", "-1", *given, stdin=script if way == "stdin" else None)
    assert done.code == (1 if fails else 0)
    assert ("warning: the transaction of all scripts was rolled back" in done.err) == fails
    assert program("t.duckdb", "-At", "-c", "select count(*) from t").out == ("0\n" if fails else "2\n")


@pytest.mark.slow("runs the program seven times")
def test_the_letters_of_psql(program: Program) -> None:
    sql = "select 1 as a, null as b"
    assert program("-A", "-c", sql).out == "a|b\n1|\n(1 row)\n"
    assert program("-At", "-F", "\\t", "-c", sql).out == "1\t\n"
    assert program("-A", "-R", ";", "-F", ",", "-X", "-c", sql).out == "a,b;1,;(1 row)\n"
    assert program("-x", "-c", sql).out == "-[ RECORD 1 ]+----------\na | 1\nb | NULL\n"
    assert "memory" in program("-l").out
    assert program("-d", "memory", "-At", "-c", "select current_database()").out == "memory\n"
    assert program("-Atv", "a=b c", "-c", "select :'a'").out == "b c\n"


@pytest.mark.slow("runs the program four times")
def test_records_as_csv(program: Program, tmp_path: Path) -> None:
    """As `psql -x --csv` writes them."""
    sql = "select 1 as a, 'x,y' as \"b,\", null as c union all select 2, '', ''"
    expected = 'a,1\n"b,","x,y"\nc,\na,2\n"b,",""\nc,""\n'
    assert program("-x", "--format", "csv", "-c", sql).out == expected
    assert program("-q", "--format", "csv", stdin=f"{sql} \\gx\n").out == expected
    assert (
        program("-x", "--null", "-", "--csv-safe", "--format", "csv", "-c", "select '=1' as a, null b").out
        == "a,'=1\nb,-\n"
    )
    program("-x", "-q", stdin="\\copy (select 1 as a) to 'rows.csv'\n")
    assert (tmp_path / "rows.csv").read_text() == "a\n1\n"


@pytest.mark.slow("runs the program ten times")
def test_a_second_result_does_not_spoil_a_file(program: Program, tmp_path: Path) -> None:
    for name in ("x.html", "x.xlsx", "x.parquet", "x.arrow", "x.arrows"):
        done = program("-o", name, "-c", "select 1", "-c", "select 2")
        assert done.code == 1
        assert "several results cannot share one" in done.err
        assert not (tmp_path / name).exists()
        assert program("-o", name, "-c", "select 1").code == 0
        assert (tmp_path / name).stat().st_size > 200


@pytest.mark.slow("runs the program four times")
def test_compressed_output(program: Program, tmp_path: Path) -> None:
    for name, read in (("x.csv.gz", gzip.decompress), ("x.csv.zst", decompress)):
        assert program("-o", name, "-c", "select 1 as a").code == 0
        assert read((tmp_path / name).read_bytes()) == b"a\n1\n"
        assert program("-q", name, "-At", "-c", "from x").out == "1\n"


@pytest.mark.slow("runs the program five times")
def test_typed_files_are_refused_where_they_make_no_sense(program: Program, tmp_path: Path) -> None:
    for name in ("x.parquet.gz", "x.arrow.zst"):
        done = program("-o", name, "-c", "select 1 as a")
        assert done.code == 2
        assert (
            f"error: {name}: the {name.split('.')[1]} format cannot be compressed as a whole\nhelp: write x."
            in done.err
        )
    done = program("--format", "parquet", "-o", "x.gz", "-c", "select 1 as a")
    assert (done.code, "write x\n" in done.err) == (2, True)
    done = program("-o", "x.parqet", "-c", "select 1 as a")
    assert done.code == 2
    assert "x.parqet: unknown file extension .parqet" in done.err
    assert ".parquet" in done.err
    assert list(tmp_path.glob("x*")) == []
    (tmp_path / "x.parquet").write_text("kept")
    done = program("-o", "x.parquet", "-c", "select array_value(1)", "-c", "select nope")
    assert (done.code, (tmp_path / "x.parquet").read_text()) == (1, "kept")


@pytest.mark.slow("runs the program three times")
def test_typed_files_by_every_way(program: Program, tmp_path: Path) -> None:
    script = (
        "\\pset format parquet\nselect 1 as a \\g 1\n\\format table\nselect 2 as a \\g 2.parquet\n"
        "\\o 3.parquet\nselect 3 as a;\n\\o\n"
    )
    assert program("-q", stdin=script).code == 0
    assert program("--format", "parquet", "-o", "4", "-c", "select 4 as a").code == 0
    assert (
        program("-q", "-At", "-c", "select * from read_parquet(['1', '2.parquet', '3.parquet', '4'])").out
        == "1\n2\n3\n4\n"
    )


@pytest.mark.slow("runs the program five times")
def test_a_transaction_that_a_script_ended_is_not_said_to_be_rolled_back(program: Program) -> None:
    for ends in ("commit", "\\c other.duckdb"):
        program("t.duckdb", "-c", "create or replace table t (i int)")
        insert = "create table if not exists t (i int); insert into t values (1)"
        done = program("t.duckdb", "-q", "-1", "-c", insert, "-c", ends, "-c", insert, "-c", "select nope")
        assert done.code == 1
        assert "a script ended the transaction of --single-transaction" in done.err
        assert "rolled back\n" not in done.err.replace("was not committed and is rolled back\n", "")
    assert program("other.duckdb", "-At", "-c", "from t").out == "1\n"


def test_a_dash_as_output_is_stdout(program: Program, tmp_path: Path) -> None:
    assert program("-o", "-", "-At", "-c", "select 5").out == "5\n"
    assert not (tmp_path / "-").exists()


def test_a_command_that_fails_does_not_blame_the_last_statement(program: Program) -> None:
    script = "create schema s2; create table s2.foo (i int);\ndrop table s2.foo;\n\\d s2.foo\n"
    done = program("-q", stdin=script)
    assert 'no relation matches "s2.foo"' in done.err
    assert "^" not in done.err and "drop table" not in done.err


def test_a_quoted_semicolon_is_a_value(program: Program) -> None:
    assert program("-q", "-A", stdin="\\f ';'\n\\pset footer off;\nselect 1 as a, 2 as b;\n").out == "a;b\n1;2\n"


def test_statistics_of_statements_on_a_service(program: Program, served: Served, tmp_path: Path) -> None:
    done = program(
        *("-q", "--format", "csv", "--on-error", "continue", "--stats", "stats"),
        *("-c", "select 1 as a", "-c", "select nope"),
        env=served.environment,
    )
    assert (done.code, done.out) == (1, "a\n1\n")
    found = [json.loads(line) for line in tmp_path.joinpath("stats").read_text().splitlines()]
    assert [(item["script"], item["sqlState"], item["rows"]) for item in found] == [
        ("<command>", "00000", 1),
        ("<command>", "42703", None),
    ]
    assert all(item["queued"] + item["running"] <= item["total"] for item in found)
    assert all(len(item["statementID"]) == 36 for item in found)


def test_a_dry_run_opens_nothing(program: Program, tmp_path: Path) -> None:
    tmp_path.joinpath("x.sql").write_text("\\set n 3\ninsert into t values (:n);\n")
    done = program("new.duckdb", "-1", "--dry-run", "--stats", "stats", "-f", "x.sql", "-c", "select :'n'")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "-- <command>:1\nBEGIN;\n-- x.sql:2\ninsert into t values (3);\n"
        "-- <command>:1\nselect '3';\n-- <command>:1\nCOMMIT;\n"
    )
    assert [path.name for path in tmp_path.iterdir() if path.suffix in {".duckdb", ""}] == []
    unreachable = program("http://127.0.0.1:1/v2", "--dry-run", stdin="select 1;\ncopy t from 'f';")
    assert (unreachable.code, unreachable.out) == (0, "-- <stdin>:1\nselect 1;\n-- <stdin>:2\ncopy t from 'f';\n")
    prompt = program("--read-only", "--dry-run", "-c", "drop table t")
    assert (prompt.code, prompt.out) == (2, "")


@pytest.mark.slow("runs the program five times")
def test_a_killed_run_is_resumed(program: Program, tmp_path: Path) -> None:
    script = "create table t (a int);\ninsert into t values (1);\n\\! touch ready; exec sleep 20\n"
    script += "insert into t values (2);\nselect count(*) as n from t;\n"
    tmp_path.joinpath("x.sql").write_text(script)
    options = ("--format", "csv", "--checkpoint", "run", "-f", "x.sql")
    running = start(tmp_path, "x.duckdb", *options)
    while not tmp_path.joinpath("ready").exists():
        assert running.poll() is None
        time.sleep(0.01)
    refused = program("y.duckdb", *options, "--resume")
    assert (refused.code, "in use by another run" in refused.err) == (2, True)
    running.kill()
    running.wait()
    unknown = program("x.duckdb", *options, "--resume")
    assert (unknown.code, unknown.out) == (2, "")
    assert "x.sql:3: error: the outcome of the statement is unknown" in unknown.err
    done = program("x.duckdb", *options, "--resume", "--if-unknown", "skip")
    assert (done.code, done.out) == (0, "n\n2\n")
    other = program("y.duckdb", *options, "--resume")
    assert (other.code, "is a checkpoint of" in other.err) == (2, True)


@pytest.mark.slow("runs the program three times")
def test_a_statement_that_outlives_a_killed_run_is_not_sent_again(
    program: Program, served: Served, tmp_path: Path
) -> None:
    env = served.environment
    slow = "(select count(*) from range(60000000) t(i) where i % 7 = hash(i) % 11)"
    script = "create table outlived (a int);\n"
    script += f"insert into outlived select 1 from {slow};\ninsert into outlived values (2);\n"
    tmp_path.joinpath("x.sql").write_text(script)
    options = (served.url, "--checkpoint", "run", "-f", "x.sql")
    running = start(tmp_path, *options, env=env)
    while '{"n":2,"id":' not in (tmp_path.joinpath("run").read_text() if tmp_path.joinpath("run").exists() else ""):
        assert running.poll() is None
        time.sleep(0.01)
    running.kill()
    running.wait()
    done = program(*options, "--resume", "--if-unknown", "send", env=env)
    assert done.code == 0
    assert "x.sql:2: the service reports that the statement completed" in done.err
    found = program("--format", "csv", "-c", "select a from outlived order by a", env=env)
    assert found.out == "a\n1\n2\n"


def test_what_does_not_go_with_a_checkpoint_makes_no_file(program: Program, tmp_path: Path) -> None:
    done = program("x.duckdb", "--checkpoint", "c", "-1", "-c", "select 1")
    assert (done.code, done.out) == (2, "")
    assert "cannot be used with --single-transaction" in done.err
    assert not tmp_path.joinpath("c").exists()


def test_an_error_in_the_text_of_a_command_has_its_place(program: Program) -> None:
    done = program("-q", "-1", "--on-error", "continue", "-c", "select nope;\nselect 2 as b", "-c", "select 3")
    assert [line.partition(" ")[0] for line in done.err.splitlines() if "error[" in line] == [
        "<command>:1:8:",
        "<command>:2:",
        "<command>:1:",
    ]


def test_a_single_transaction_leaves_no_database_behind(program: Program) -> None:
    done = program("-q", "-1", "-c", "create database keepme")
    assert (done.code, "25001" in done.err, "was rolled back" in done.err) == (1, True, True)
    script = "begin;\ncreate database keepme;\nrollback;\nlist databases;\n"
    done = program("-q", "--on-error", "continue", "-f", "-", stdin=script)
    assert ("25001" in done.err, "memory" in done.out, "keepme" in done.out) == (True, True, False)
