"""COPY … FROM on PostgreSQL: the server reads the data, as it does for psql."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Program
from tests.terminal.terminal import Terminal

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
    assert refused.code != 0 and f'column "d": {text} is read as 2024-06-05, but may be 2024-05-06' in refused.err
    assert "WITH (FORMAT csv, HEADER)" in refused.err
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


WRITTEN = """create temp table t (a int, b bool, c text, d bytea, g int generated always as (a * 2) stored);
insert into t values (1, true, E'x\\ty\\\\z\\nnew é', '\\x6162'), (2, false, null, null), (3, null, '', '');
copy t to stdout;
copy t (c, b) to stdout with (format csv, header, force_quote *);
copy (select a, b from t order by a desc) to stdout (delimiter '|', null 'NIL');
COPY t TO STDOUT WITH CSV HEADER QUOTE '''' FORCE QUOTE c;
copy (select '' as x) to stdout;
copy (select where false) to stdout;
copy (select E'a\\r\\nb', '\\.') to stdout csv;
copy (delete from t where a = 3 returning a, b) to stdout;
\\set name t
copy (select b from :name) to stdout \\g
\\copy t to stdout
\\copy t (c, b) to stdout with (format csv, header, force_quote (b))
\\copy (select a, b from t order by a desc) to stdout (delimiter '|', null 'NIL')
\\copy t to program 'cat' csv header
\\copy (select b from t) to pstdout
copy (select n, n % 2 = 0, md5(n::text) from generate_series(1, 250000) n) to stdout with (format csv);
"""


@pytest.mark.skipif(not shutil.which("psql"), reason="needs psql")
def test_the_server_writes_the_rows(program: Program, postgresql_database: str, tmp_path: Path) -> None:
    (tmp_path / "s.sql").write_text(WRITTEN)
    psql = ["psql", "-X", "-q", postgresql_database, "-f", str(tmp_path / "s.sql")]
    expected = subprocess.run(psql, check=True, capture_output=True).stdout.decode()
    done = program(postgresql_database, "-q", "--format", "json", stdin=WRITTEN)
    assert (done.code, done.out == expected, done.err) == (0, True, "")
    done = program(postgresql_database, "-q", "-f", "s.sql", "-o", "rows.csv")
    assert done.code == 0
    # What a command of the system prints, and PSTDOUT, are not among the results.
    assert len((tmp_path / "rows.csv").read_bytes().decode()) + len(done.out) == len(expected)


def test_files_of_rows_that_the_server_writes(program: Program, postgresql_database: str, tmp_path: Path) -> None:
    rows = "(select E'1\\n2' as x from generate_series(1, 3))"
    done = program(
        postgresql_database,
        *("-c", f"copy {rows} to stdout csv header \\g made.csv", "-c", "\\echo :ROW_COUNT"),
        *("-c", f"\\copy {rows} to 'copied.txt' csv header", "-c", "\\copy (select 1 where false) to 'none.txt'"),
    )
    assert (done.code, done.out, done.err) == (0, "3\n", "3 rows written to copied.txt\n0 rows written to none.txt\n")
    assert (tmp_path / "made.csv").read_text() == "x\n" + '"1\n2"\n' * 3
    assert (tmp_path / "copied.txt").read_text() == "x\n" + '"1\n2"\n' * 3
    assert (tmp_path / "none.txt").read_text() == ""


@pytest.mark.parametrize(
    ("copy", "said"),
    [
        (
            "copy nowhere to stdout",
            ':6: error[42P01]: relation "nowhere" does not exist\n 1 | copy nowhere to stdout\n',
        ),
        ("copy (select 1) to stdout (bad 1)", ':28: error[42601]: option "bad" not recognized\n'),
        ("copy (select 1) to stdout binary", ": error[0A000]: the binary format of COPY … TO STDOUT is not supported"),
        ("\\copy nowhere to stdout", 'relation "nowhere" does not exist\n 1 | COPY nowhere TO STDOUT\n'),
        ("\\copy nowhere to 'x.json'", "1 | \\copy nowhere to 'x.json'\n   |       ^^^^^^^\n"),
        ("\\copy nowhere from 'x.dat'", "1 | \\copy nowhere from 'x.dat'\n   |       ^^^^^^^\n"),
        ("\\copy nowhere from 'x.csv'", "1 | \\copy nowhere from 'x.csv'\n   |       ^^^^^^^\n"),
    ],
)
def test_an_error_of_copy_shows_what_was_written(
    program: Program, postgresql_database: str, tmp_path: Path, copy: str, said: str
) -> None:
    for name in ("x.dat", "x.csv"):
        (tmp_path / name).write_text("a\n1\n")
    done = program(postgresql_database, "-c", copy)
    assert done.code == 1 and said in done.err and "SELECT" not in done.err, done.err


def test_copying_out_at_the_prompt_can_be_interrupted(postgresql_database: str, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "-q", postgresql_database)
    terminal.prompt()
    terminal.enter("copy (values ('a', true), ('b', null)) to stdout csv;")
    terminal.wait("a,t")
    terminal.prompt()
    terminal.enter("copy (select pg_sleep(600)) to stdout;")
    terminal.wait("cancel")
    terminal.type("\x03")
    terminal.wait("canceled after")
    terminal.prompt()
    terminal.enter("copy (select 'still' || ' here') to stdout;")
    terminal.wait("still here")
    terminal.close()
