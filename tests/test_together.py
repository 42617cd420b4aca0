"""Scripts whose statements are sent in batches: the same output with fewer requests."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE

import pytest

from tests.conftest import Done, Program, Served, serve, start, stop
from tests.faults.proxy import Exchange, Proxy


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    running = serve(tmp_path_factory.mktemp("together"))
    yield running
    stop(running)


def to(service: Served, url: str = "") -> dict[str, str]:
    return {"SQLSHELL_URL": url or service.url, "SQLSHELL_TOKEN": service.token}


def rows(program: Program, service: Served, sql: str) -> list[str]:
    return program("-c", sql, "--format", "csv", env=to(service)).out.split()[1:]


def posts(done: Done) -> int:
    return len(re.findall(r"^#\d+ POST ", done.err, re.M))


@pytest.mark.slow("starts a service, runs the program")
@pytest.mark.parametrize("embedded", [True, False])
def test_many_statements_in_few_requests(program: Program, service: Served, tmp_path: Path, embedded: bool) -> None:
    table = "few_here" if embedded else "few_there"
    script = [f"create table {table} (a int);"]
    script += [f"insert into {table} values ({number}); select {number} as n;" for number in range(200)]
    script += [f"select sum(a) as total from {table};"]
    done = program("-o", "out.csv", "-v", stdin="\n".join(script), env={} if embedded else to(service))
    assert done.code == 0
    shown = [word for number in range(200) for word in ("n", str(number))]
    assert (tmp_path / "out.csv").read_text().split() == [*shown, "total", "19900"]
    assert posts(done) < 8
    assert done.err.count("INSERT 1, statement ") == 200


def test_nothing_behind_a_failure_has_run(program: Program, service: Served, tmp_path: Path) -> None:
    (tmp_path / "s.sql").write_text(
        "create table stopped (a int);\ninsert into stopped values (1);\ninsert into stopped values (2);\n"
        "insert into\nnowhere values (3);\n" + "insert into stopped values (4);\n" * 3
    )
    done = program("-f", "s.sql", env=to(service))
    assert done.code == 1
    assert done.err.startswith("s.sql:5:1: error[3D020]")
    assert "3 statements were not run" in done.err
    assert rows(program, service, "select a from stopped order by a") == ["1", "2"]


@pytest.mark.parametrize("on_error", ["stop", "continue"])
def test_a_file_is_loaded_between_the_statements_around_it(
    program: Program, service: Served, tmp_path: Path, on_error: str
) -> None:
    (tmp_path / "g.csv").write_text("a,b\n7,q\n8,r\n")
    table = f"loaded_{on_error}"
    (tmp_path / "s.sql").write_text(
        f"create or replace table {table} (a int, b varchar);\nselect 1 as before;\n"
        f"copy {table} from 'g.csv' (format csv, header);\n"
        f"create or replace table {table}_audit as select count(*) as n from {table};\n"
        f"delete from {table} where a = 7;\n"
        f"select n from {table}_audit;\nselect a from {table};\n"
    )
    done = program("-f", "s.sql", "--on-error", on_error, "--format", "csv", env=to(service))
    assert (done.code, done.out.split()) == (0, ["before", "1", "n", "2", "a", "8"])
    assert "error" not in done.err and "warning" not in done.err


def test_failures_are_passed_over_where_that_is_asked_for(program: Program, service: Served, tmp_path: Path) -> None:
    (tmp_path / "s.sql").write_text("select 1 as a;\nselect 2 as b;\nselct;\nselect 3 as c;\nselct;\nselect 4 as d;\n")
    done = program("-f", "s.sql", "--on-error", "continue", "--format", "csv", env=to(service))
    assert done.code == 1
    assert done.out.split() == ["a", "1", "b", "2", "c", "3", "d", "4"]
    assert re.findall(r"^s\.sql:(\d):", done.err, re.M) == ["3", "5"]


def test_the_context_after_each_statement_is_the_services(program: Program, service: Served) -> None:
    script = (
        "create schema other;\nselect 1 as one;\nuse schema other;\ncreate table here (a int);\n"
        "select current_schema() as s;\n\\context\n"
    )
    done = program("--format", "csv", stdin=script, env=to(service))
    assert done.code == 0, done.err
    assert done.out.split()[2:4] == ["s", "other"]
    assert re.search(r"schema\s+\S*other", done.out + done.err)


def test_a_value_that_a_statement_leaves_behind_is_its_own(program: Program) -> None:
    script = (
        "create table t as select * from range(7);\nselect 1 as a;\nupdate t set range = 0;\nselect :ROW_COUNT as n;\n"
        "select * from t limit 3;\nselect :ROW_COUNT as m;\n\\echo :ROW_COUNT\n"
    )
    done = program("--format", "csv", stdin=script)
    words = done.out.split()
    assert words[words.index("n") + 1] == "7"
    assert words[words.index("m") + 1] == "3"
    assert words[-1] == "1"


def test_each_statement_is_asked_for_before_it_is_sent(program: Program, service: Served, tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "sqlshell"
    folder.mkdir(parents=True)
    profile = f'[profiles.p]\nurl = "{service.url}"\ntoken = "{service.token}"\nconfirm = ["DROP"]\n'
    (folder / "config.toml").write_text(profile)
    (folder / "config.toml").chmod(0o600)
    (tmp_path / "s.sql").write_text(
        "create table asked (a int);\ninsert into asked values (1);\nselect 5 as x;\ndrop table asked;\n"
        "insert into asked values (2);\n"
    )
    done = program("p", "-f", "s.sql", "--format", "csv")
    assert done.code == 2
    assert done.out.split() == ["x", "5"]
    assert re.search(r"^s\.sql:4: error: DROP", done.err, re.M)
    assert rows(program, service, "select a from asked") == ["1"]


@pytest.mark.slow("runs the program")
def test_a_large_result_is_read_before_what_follows_is_sent(program: Program, service: Served) -> None:
    script = "select 1 as a;\nselect 2 as b;\nselect * from range(300000);\nselect 3 as c;\nselect 4 as d;\n"
    done = program("--format", "csv", "-v", stdin=script, env=to(service))
    assert done.code == 0
    assert [line for line in done.out.split() if line.isalpha()] == ["a", "b", "range", "c", "d"]
    asked = re.findall(r"^#\d+ (POST|GET)", done.err, re.M)
    assert asked.count("POST") == 4, "the last one ends the session"
    assert asked[2] == "GET"


@pytest.mark.parametrize("fault", ["cut before the request is passed on", "cut after the request is passed on"])
def test_a_lost_connection_repeats_no_write(program: Program, service: Served, fault: str) -> None:
    table = f"lost_{len(fault)}"
    seen: list[str] = []

    def choose(exchange: Exchange) -> str:
        seen.append(exchange.method)
        return fault if seen.count("POST") == 2 and exchange.method == "POST" else ""

    proxy = Proxy(service.url, choose)
    try:
        script = f"create table {table} (a int);\n" + f"insert into {table} values (1);\n" * 30
        done = program(stdin=script, env=to(service, proxy.url))
    finally:
        proxy.close()
    assert done.code == 3
    assert "<stdin>:2: error" in done.err
    assert "the statement and the 29 sent after it may have run" in done.err
    until = time.monotonic() + 20
    while (found := len(rows(program, service, f"select a from {table}"))) not in {0, 30} and time.monotonic() < until:
        time.sleep(0.1)
    assert found == (0 if "before" in fault else 30)


@pytest.mark.slow("runs the program twice")
def test_ctrl_c_ends_the_run_and_says_what_ran(service: Served, program: Program, tmp_path: Path) -> None:
    slow = "select count(*) from range(10000000000) a, range(1000) b;\n"
    script = f"create table ended (a int);\ninsert into ended values (1);\n{slow}insert into ended values (2);\n"
    (tmp_path / "s.sql").write_text(script)
    process = start(
        tmp_path, "-v", "-f", "s.sql", "--on-error", "continue", env=to(service), stdout=PIPE, stderr=PIPE, text=True
    )
    assert process.stderr is not None
    message = ""
    while "INSERT 1" not in message:
        line = process.stderr.readline()
        assert line, message
        message += line
    while "range(10000000000)" not in program("-c", "list queries", "--format", "csv", env=to(service)).out:
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 130, message + rest
    assert "s.sql:3: error[57000]" in rest
    assert rows(program, service, "select a from ended") == ["1"]


def test_a_pipe_that_trickles_is_answered_at_once(service: Served, tmp_path: Path) -> None:
    process = start(tmp_path, "--format", "csv", env=to(service), stdin=PIPE, stdout=PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    for number in range(3):
        process.stdin.write(f"select {number} as a; select {number} as b; select {number} as c;\n")
        process.stdin.flush()
        assert [process.stdout.readline().strip() for _ in range(6)] == [
            "a",
            str(number),
            "b",
            str(number),
            "c",
            str(number),
        ]
    process.communicate()
    assert process.returncode == 0


def test_a_transaction_that_is_lost_with_its_session_is_not_committed_in_part(
    program: Program, service: Served, tmp_path: Path
) -> None:
    argv = ["--format", "csv", "--on-error", "continue", "--session-id", "lost with its transaction"]
    process = start(tmp_path, *argv, env=to(service), stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("create table parted (a int); begin; insert into parted values (1);\n\\echo ready\n")
    process.stdin.flush()
    assert "ready\n" in iter(process.stdout.readline, "")
    assert program("-c", "terminate session 'lost with its transaction'", env=to(service)).code == 0
    message = process.communicate("insert into parted values (2); insert into parted values (3); commit;", 60)[1]
    assert "error[40000]: the transaction was lost with its session" in message
    assert "error[25P02]" in message
    assert rows(program, service, "select count(*) as a from parted") == ["0"]


def test_all_are_in_the_journal(program: Program, service: Served) -> None:
    script = "".join(f"select {number} as journalled;\n" for number in range(20))
    program(stdin=script, env=to(service))
    done = program("-c", "\\jobs", "--format", "csv", env=to(service))
    assert [f"finished,1,.*select {number} as journalled" for number in range(19, 9, -1)] == [
        re.sub(r".*finished,1,.*select", "finished,1,.*select", line) for line in done.out.splitlines()[1:]
    ]
