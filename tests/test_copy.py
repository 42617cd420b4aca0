"""COPY in scripts: data lines are loaded and never run, and rows are returned in order."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from sqlshell.runtime.files import Descriptor, descriptor
from tests.conftest import Program, Served, start

DUMP = """create table t (i int, s text);
insert into t values (7, 'kept');
copy t (i, s) from stdin;
1\tx;delete from t;
2\t\\q
\\.
select count(*) as n from t;
"""


@pytest.mark.slow("runs the program")
@pytest.mark.parametrize("options", ((), ("--no-commands",)))
def test_data_lines_are_never_run(program: Program, options: tuple[str, ...]) -> None:
    done = program("-q", "--format", "csv", "--on-error", "continue", *options, stdin=DUMP)
    assert (done.code, done.out, done.err) == (0, "n\n3\n", "")


@pytest.mark.slow("runs the program")
def test_a_file_and_a_command_load_alike(program: Program, served: Served) -> None:
    done = program(
        *(
            "-q",
            "--format",
            "csv",
            "--on-error",
            "continue",
            "-c",
            "drop table if exists t",
            "-c",
            DUMP,
            "-c",
            "drop table t",
        ),
        env=served.environment,
    )
    assert (done.code, done.out, done.err) == (0, "n\n3\n", "")


def test_data_behind_a_variable_are_not_guessed_at(program: Program) -> None:
    script = "create table t (i int);\n\\set from 'from stdin'\ncopy t :from;\n1;drop table t;\n\\.\n"
    done = program("-q", "--on-error", "continue", "-f", "-", "-c", "from t", stdin=script)
    assert done.code == 2
    assert done.err.count("error") == 1
    assert "<stdin>:3: error: COPY … FROM STDIN comes from a variable" in done.err


@pytest.mark.parametrize(
    "reading",
    [
        "copy t from '/dev/stdin'",
        "COPY t (i) /* from */ FROM 'link'",
        "insert into t from read_csv('/proc/self/fd/0', header = false)",
        "insert into t select * from read_text(['/dev/../dev/fd/0'])",
        'insert into t from "/dev/stdin"',
    ],
)
def test_data_of_a_script_on_stdin_are_not_guessed_at(program: Program, tmp_path: Path, reading: str) -> None:
    tmp_path.joinpath("link").symlink_to("/dev/stdin")
    script = f"create table t (i int);\ninsert into t values (7);\n{reading};\n1;drop table t;\n\\.\nselect 'ran';\n"
    options = ("-q", "--format", "csv", "--on-error", "continue")
    done = program(*options, "-f", "-", "-c", "from t", stdin=script)
    assert (done.code, done.out) == (2, "i\n7\n")
    assert done.err.count("error") == 1
    assert "<stdin>:3: error[0A000]: the statement reads stdin" in done.err
    assert "not run" not in done.err


def test_a_path_of_stdin_is_a_value_like_others(program: Program) -> None:
    script = "create table t (s text); insert into t values ('/dev/stdin'); select count(*) as n from t;"
    done = program("-q", "--format", "csv", stdin=script)
    assert (done.code, done.out) == (0, "n\n1\n")


@pytest.mark.slow("runs the program")
def test_data_of_a_command_do_not_run(program: Program) -> None:
    script = "create table t (i int);\n\\copy t from stdin\n1;drop table t;\n\\.\nfrom t;"
    done = program("-q", "--format", "csv", "--on-error", "continue", stdin=script)
    assert (done.code, done.out) == (1, "i\n")
    assert '<stdin>:2: error: 1 row of STDIN cannot be loaded: STDIN, line 1, column "i": cannot convert' in done.err


def test_copy_to_stdout_is_rows_in_their_order(program: Program, tmp_path: Path) -> None:
    tmp_path.joinpath("link").symlink_to("/dev/stdout")
    targets = ("stdout", "'/dev/stdout'", "'/dev/fd/1'", "'/proc/self/fd/1'", "'link'", '"link"')
    script = "".join(f"select {number} as a; copy (select 'x;y' as b) to {to};" for number, to in enumerate(targets))
    done = program("-q", "--format", "csv", stdin=script)
    expected = "".join(f"a\n{number}\nb\nx;y\n" for number in range(len(targets)))
    assert (done.code, done.out, done.err) == (0, expected, "")


def test_a_table_and_its_columns(program: Program) -> None:
    script = (
        'create table t (a int, "b)" int); insert into t values (1, 2); copy t to stdout; copy main.t ("b)") to stdout'
    )
    done = program("-q", "--format", "csv", stdin=script)
    assert (done.code, done.out, done.err) == (0, "a,b)\n1,2\nb)\n2\n", "")


@pytest.mark.slow("runs the program twice")
def test_copy_to_stdout_is_written_as_it_says(program: Program, served: Served) -> None:
    script = (
        "copy (select 1 as a, null as b) to stdout;\n"
        "copy (select 'x;y' as a) to stdout with (format csv, header, delimiter ';');\n"
        "\\set n 2\n"
        "copy (select :n as a) to stdout (format jsonl)\\g\n"
        "copy (select 1 as a) to stdout (format cvs);\n"
    )
    expected = '1\t\\N\na\n"x;y"\n{"a":2}\n'
    for env in ({}, served.environment):
        done = program("-q", stdin=script, env=env)
        assert (done.code, done.out) == (2, expected)
        assert "<stdin>:5: error: unknown format 'cvs'" in done.err
        assert "warning" not in done.err


def test_rows_of_others_services(program: Program, served: Served) -> None:
    done = program(
        *("-q", "--format", "csv", "-c", "copy (select 1 as a) to stdout"),
        env=served.environment,
    )
    assert (done.code, done.out, done.err) == (0, "a\n1\n", "")


OUTPUTS = (
    "copy (select 'rows' as r) to '/dev/stdout'",
    "copy (select 'rows' as r) to '/dev/fd/2'",
    "copy (select 'rows' as r) to '{link}' (format csv)",
    "copy (select 'rows' as r) to '{other}'",
    "explain analyze copy (select 'rows' as r) to stdout",
    "set profiling_output = '/dev/stderr'",
)


@pytest.mark.parametrize("mode", ("w", "a"))
def test_redirected_files_are_never_truncated(tmp_path: Path, mode: str) -> None:
    link, other = tmp_path / "link", tmp_path / "other"
    link.symlink_to("/dev/stdout")
    other.symlink_to("/proc/self/fd/2")
    statements = [text.format(link=link, other=other) for text in OUTPUTS]
    script = "".join(f"select {number} as a; {text};\n" for number, text in enumerate(statements))
    log = tmp_path / "log"
    log.write_text("older\n")
    with log.open(mode) as file:
        argv = ("-q", "--format", "csv", "--on-error", "continue", "-c", script)
        start(tmp_path, *argv, stdout=file, stderr=file).wait(60)
    told = log.read_text()
    assert told.startswith("older\na\n0\n" if mode == "a" else "a\n0\n")
    lines = [re.sub(r"^<command>:\d+(:\d+)?: ", "", line) for line in told.splitlines()]
    rows = [line for line in lines if line.isdigit() or line == "rows" or line.startswith("error[0A000]")]
    assert [line[:5] for line in rows] == [
        *"0",
        "rows",
        *"1",
        "error",
        *"2",
        "rows",
        "3",
        "error",
        "4",
        "error",
        "5",
        "error",
    ]


READING = (
    "from read_csv('/dev/stdin')",
    "from read_csv(['/dev/fd/0', '/dev/fd/0'])",
    "create table y as from 'link.csv'",
    "copy x from '/dev/stdin'",
    "prepare p as copy (select 1) to '/dev/stdout'",
    "attach '/proc/self/fd/0' as x",
    "from read_text('li*.csv')",
)


def test_nothing_reads_the_descriptors(program: Program, tmp_path: Path) -> None:
    tmp_path.joinpath("link.csv").symlink_to("/dev/stdin")
    script = f"create table x (a int); {';'.join(READING)}; select 2 as b;"
    done = program("-q", "--format", "csv", "--on-error", "continue", "-c", script, stdin="")
    assert (done.code, done.out) == (1, "b\n2\n")
    assert done.err.count("error[0A000]") == len(READING)


def test_strings_are_only_strings(program: Program) -> None:
    script = "create table t as select '/dev/stdin' as a; insert into t values ('/dev/stdout'); from t;"
    done = program("-q", "--format", "csv", "-c", script)
    assert (done.code, done.out) == (0, "a\n/dev/stdin\n/dev/stdout\n")


def test_a_link_to_stdout_is_no_file_to_replace(tmp_path: Path) -> None:
    link, out = tmp_path / "link", tmp_path / "out"
    link.symlink_to("/dev/stdout")
    with out.open("w") as file:
        argv = ("-q", "--format", "csv", "-o", str(link), "-c", "select 1 as a; \\echo b")
        assert start(tmp_path, *argv, stdout=file).wait(60) == 0
        file.write("last\n")
    assert out.read_text() == "a\n1\nb\nlast\n"


def test_the_way_of_a_path(tmp_path: Path) -> None:
    tmp_path.joinpath("circle").symlink_to("circle")
    tmp_path.joinpath("process").symlink_to("/proc/self")
    tmp_path.joinpath("far").symlink_to("process/fd/7")
    found = {path: descriptor(path) for path in ("/dev/stdin", f"{tmp_path}/far", f"/proc/{os.getpid()}/fd/3")}
    assert found == {
        "/dev/stdin": Descriptor(0, True),
        f"{tmp_path}/far": Descriptor(7, True),
        f"/proc/{os.getpid()}/fd/3": Descriptor(3, True),
    }
    assert descriptor("/proc/1/fd/3") == Descriptor(3, False)
    for path in (f"{tmp_path}/circle", f"{tmp_path}/process", "/dev/null", "/dev/fd", "", "a", "/dev/stdout/x", "a\0b"):
        assert descriptor(path) is None


PRINTING = (
    "set enable_profiling = 'json'",
    "pragma enable_profiling",
    "call enable_profiling()",
    "set profiling_mode = 'detailed'",
    "set logging_storage = 'stdout'",
    "call enable_logging('QueryLog', storage = 'stdout')",
)


def test_the_engine_prints_nothing_itself(program: Program) -> None:
    done = program("-q", "--format", "csv", "--on-error", "continue", stdin=f"{';'.join(PRINTING)};\nselect 1 as a;")
    assert (done.code, done.out) == (1, "a\n1\n")
    assert done.err.count("error[0A000]") == len(PRINTING)
    assert len(done.err.splitlines()) <= 2 * len(PRINTING)


def test_profiles_go_to_a_file(program: Program, tmp_path: Path) -> None:
    script = "set profiling_output = 'profile.txt'; set enable_profiling = 'json'; select 1 as a;"
    done = program("-q", "--format", "csv", stdin=script)
    assert (done.code, done.out, done.err) == (0, "a\n1\n", "")
    assert tmp_path.joinpath("profile.txt").exists()
