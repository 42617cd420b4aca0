"""COPY … FROM on PostgreSQL: the server reads the data, as it does for psql."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Program

pytestmark = pytest.mark.usefixtures("postgresql_server")

SCRIPT = """create table t (a int, d date, s text);
set datestyle = 'sql, mdy';
copy t from stdin where a > 1;
1\t12/31/2024\tx
2\t12/31/2024\t\\x31\\101\\n
\\.
\\copy t from stdin with (format csv, header, null 'NIL')
b,d,s
3,01/02/2025,"q,""x"
4,NIL,NIL
\\.
COPY t (a, s) FROM stdin CSV;
5,z
\\.
copy t from stdin;
\\.
select * from t order by a;
"""
ROWS = 'a,d,s\n2,12/31/2024,"1A\n"\n3,01/02/2025,"q,""x"\n4,,\n5,,z\n'


@pytest.mark.skipif(not shutil.which("psql"), reason="needs psql")
def test_the_server_reads_the_rows_of_a_script(program: Program, postgresql_database: str, tmp_path: Path) -> None:
    (tmp_path / "s.sql").write_text(SCRIPT)
    psql = ["psql", "-X", "-q", "--csv", postgresql_database, "-f", str(tmp_path / "s.sql")]
    assert subprocess.run(psql, check=True, capture_output=True, text=True).stdout == ROWS
    for options in ({"stdin": SCRIPT}, {}):
        given = () if options else ("-f", "s.sql")
        again = program(postgresql_database, "-q", "-c", "drop table t")
        assert again.code == 0, again
        done = program(postgresql_database, "-q", "--format", "csv", *given, **options)
        assert (done.code, done.out, done.err) == (0, ROWS, "")


def test_files_commands_and_stdin(program: Program, postgresql_database: str, tmp_path: Path) -> None:
    (tmp_path / "x.dat").write_text("b,a\nx,7\n")
    done = program(
        postgresql_database,
        *("-c", "create table t (b text, a int)"),
        # As in psql, the header of a file is skipped, and columns are not matched by name.
        *("-c", "\\copy t from 'x.dat' with (format csv, header) where a > 1"),
        *("-c", "\\copy t(a) from program 'echo 8'"),
        *("-c", "\\copy t from pstdin", "-c", "select * from t"),
        *("--format", "csv"),
        stdin="y\\\\\t9\n",
    )
    assert (done.code, done.out) == (0, "b,a\nx,7\n,8\ny\\,9\n")


@pytest.mark.parametrize(
    ("copy", "message"),
    [
        ("copy t from stdin", 'invalid input syntax for type integer: "x"'),
        ("copy t from stdin (format csv, bogus 1)", 'option "bogus" not recognized'),
        ("\\copy nowhere from stdin", 'relation "nowhere" does not exist'),
    ],
)
def test_the_server_tells_what_is_wrong(program: Program, postgresql_database: str, copy: str, message: str) -> None:
    semicolon = "" if copy[0] == "\\" else ";"
    script = f"create table t (a int);\n{copy}{semicolon}\nx\n\\.\nselect 'more';\n"
    done = program(postgresql_database, stdin=script)
    assert done.code == 1 and message in done.err and "more" not in done.out


def test_options_of_the_shell_are_still_its_own(program: Program, postgresql_database: str, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,x\nbad,y\n")
    done = program(
        postgresql_database,
        *("-c", "create table t (b text, a int)", "-c", "\\copy t from 'x.csv' with (max_errors 1)"),
        *("-c", "select a, b from t", "--format", "csv"),
    )
    assert (done.code, done.out) == (0, "a,b\n1,x\n")
    assert "1 row of x.csv skipped" in done.err


@pytest.mark.parametrize(
    ("type_name", "text"),
    [("date", "05/06/2024"), ("timestamp", "05/06/2024 12:00:00"), ("timestamptz", "05/06/2024 12:00:00")],
)
def test_dates_whose_order_is_not_certain_are_read_only_by_the_server(
    program: Program, postgresql_database: str, tmp_path: Path, type_name: str, text: str
) -> None:
    (tmp_path / "f.csv").write_text(f"a,d\n1,{text}\n")
    assert program(postgresql_database, "-c", f"create table t (a int, d {type_name})").code == 0
    refused = program(postgresql_database, "-c", "\\copy t from 'f.csv'")
    assert refused.code != 0 and "column d: the dates are not in the form YYYY-MM-DD" in refused.err, refused
    assert "csv header" in refused.err
    done = program(
        postgresql_database, "--format", "csv", "-c", "\\copy t from 'f.csv' csv header", "-c", "select d::date from t"
    )
    assert done.out == "d\n2024-05-06\n", done
    (tmp_path / "iso.csv").write_text("a,d\n2,2024-06-07\n")
    assert program(postgresql_database, "-c", "\\copy t from 'iso.csv'").code == 0
    assert program(postgresql_database, "-c", "create table s (a int, d text)", "-c", "\\copy s from 'f.csv'").code == 0
    kept = program(postgresql_database, "--format", "csv", "-c", "select d from s")
    assert kept.out == f"d\n{text}\n", kept


def test_a_time_in_a_file_is_in_the_servers_time_zone(
    program: Program, postgresql_database: str, tmp_path: Path
) -> None:
    (tmp_path / "f.csv").write_text("a\n2024-07-01 12:00:00\n")
    assert program(postgresql_database, "-c", "create table t (a timestamptz)").code == 0
    environ = {"TZ": "America/New_York", "PGTZ": "Asia/Tokyo"}
    assert program(postgresql_database, "-c", "\\copy t from 'f.csv'", env=environ).code == 0
    done = program(postgresql_database, "--format", "csv", "-c", "select a at time zone 'UTC' as a from t")
    assert done.out == "a\n2024-07-01 03:00:00\n", done
