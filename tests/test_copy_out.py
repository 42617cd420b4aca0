"""\\copy … TO and \\copy … PROGRAM, in the program."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.conftest import Program, Served

TABLE = "create table t (i int, s text); insert into t values (1, 'a,b'), (2, null);\n"


@pytest.mark.slow("runs the program twice")
def test_rows_go_where_copy_says(program: Program, served: Served, tmp_path: Path) -> None:
    script = (
        f"drop table if exists t; {TABLE}"
        "\\copy t to 'a.csv'\n"
        "\\copy t (s) to a.txt\n"
        "\\copy (select i, ';' as s from t order by i) to 'q.gz' with (format csv, delimiter ';')\n"
        "\\copy t to program 'cat >p; echo told'\n"
        "\\copy t to stdout csv\n"
        "\\o o.csv\n"
        "\\copy (select 7) to stdout\n"
        "\\copy (select 8) to pstdout\n"
        "select i from t order by i limit 1;\n"
        "\\o\n"
        "\\copy t from program 'printf ''3,x\\n''' csv\n"
        "select count(*) as n from t;\n"
        "drop table t;\n"
    )
    for env in ({}, served.environment):
        done = program("--format", "csv", stdin=script, env=env)
        assert (done.code, done.out) == (0, 'told\n1,"a,b"\n2,\n8\nn\n3\n'), done.err
        places = ("a.csv", "a.txt", "q.gz", "|cat >p; echo told")
        assert done.err == "".join(f"2 rows written to {place}\n" for place in places) + "1 row loaded into t\n"
        assert tmp_path.joinpath("a.csv").read_text() == 'i,s\n1,"a,b"\n2,\n'
        assert tmp_path.joinpath("a.txt").read_text() == "a,b\n\\N\n"
        assert tmp_path.joinpath("o.csv").read_text() == "7\ni\n1\n"
        assert tmp_path.joinpath("p").read_text() == "1\ta,b\n2\t\\N\n"
        assert gzip.decompress(tmp_path.joinpath("q.gz").read_bytes()) == b'1;";"\n2;";"\n'


def test_the_statement_before_copy_is_sent_again(program: Program) -> None:
    done = program("-q", "--format", "csv", "-t", stdin="select 1;\n\\copy (select 2) to stdout\n\\g\n\\p\n")
    assert (done.code, done.out) == (0, "1\n2\n1\nselect 1\n"), done.err
    done = program("-q", "--format", "csv", "-t", stdin="\\copy (select 2) to stdout\n\\g\n")
    assert (done.code, done.out) == (2, "2\n")
    assert "there is no statement to send" in done.err


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("\\copy t to 'missing/a.csv'", "cannot write to missing/a.csv"),
        ("\\copy t to stdin", "expected STDOUT, PSTDOUT, PROGRAM or a file"),
        ("\\copy t to 'a.csv' (create)", "the option CREATE applies only to COPY FROM"),
        ("\\copy t from 'a.csv' (force_quote *)", "the option FORCE_QUOTE applies only to COPY TO"),
        ("\\copy (select error('boom')) to 'a.csv'", "boom"),
        ("\\copy (insert into t values (3)) to 'a.csv'", "\\copy: INSERT returns no rows"),
        ("\\copy t to program 'exit 3'", "the command 'exit 3' failed with exit code 3"),
        ("\\copy t from program 'echo 4; exit 3'", "the command 'echo 4; exit 3' failed with exit code 3"),
        ("\\copy t to program cat", "expected a command in single quotes"),
        ("copy t to program 'cat'", "error"),
        ("\\restrict k\n\\copy t to program 'touch ran'", "disabled by \\restrict"),
    ],
)
def test_what_fails_leaves_no_file(program: Program, tmp_path: Path, command: str, said: str) -> None:
    tmp_path.joinpath("a.csv").write_text("kept")
    done = program("-q", stdin=f"create table t (i int);\n{command}\n;")
    assert done.code in {1, 2, 3}, done
    assert said in done.err, done.err
    assert {item.name for item in tmp_path.iterdir()} - {".cache", ".config", ".local"} == {"a.csv"}
    assert tmp_path.joinpath("a.csv").read_text() == "kept"


def test_no_commands_means_no_programs(program: Program, tmp_path: Path) -> None:
    done = program("--no-commands", stdin="\\copy (select 1) to program 'touch ran'\n")
    assert done.code == 2
    assert not tmp_path.joinpath("ran").exists()


def test_the_statement_before_a_copy_that_failed_is_sent_again(program: Program) -> None:
    done = program(
        "-q",
        "--on-error",
        "continue",
        "--format",
        "csv",
        "-t",
        stdin="select 1;\n\\copy (select bad) to stdout\n\\g\n\\p\n",
    )
    assert done.out == "1\n1\nselect 1\n", done
    assert '"bad"' in done.err and "select bad" in done.err
