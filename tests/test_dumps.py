"""Data in scripts: COPY … FROM STDIN, and dumps of DuckDB."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from tests.conftest import Program, Served, serve, stop

SCRIPT = """create or replace table t (a int, b varchar);
copy t from stdin; select 'first' as x;
1\tselect 1;
2\t\\N
\\.
COPY t (b, a) FROM STDIN WITH (FORMAT csv, HEADER);
b,a
"three
3",3
\\.
\\copy t from stdin
4\ta\\tb\\\\c\\q
\\.
\\if false
copy t from stdin;
5\tfalse
\\.
\\endif
select * from t order by a;
"""
ROWS = 'x\nfirst\na,b\n1,select 1;\n2,\n3,"three\n3"\n4,a\tb\\cq\n'


@pytest.mark.slow("runs the program")
@pytest.mark.parametrize("way", ["-f", "-c", "stdin"])
def test_data_in_a_script_are_loaded(program: Program, tmp_path: Path, way: str) -> None:
    (tmp_path / "s.sql").write_text(SCRIPT)
    given = {"-f": ("-f", "s.sql"), "-c": ("-c", SCRIPT), "stdin": ()}[way]
    done = program("-q", "--format", "csv", *given, stdin=SCRIPT if way == "stdin" else None)
    assert (done.code, done.out, done.err) == (0, ROWS, "")


@pytest.mark.slow("runs the program")
def test_data_go_to_a_served_table(program: Program, served: Served) -> None:
    env = served.environment
    done = program("-q", "--format", "csv", "-c", SCRIPT, "-c", "drop table t", env=env)
    assert (done.code, done.out, done.err) == (0, ROWS, "")


@pytest.mark.slow("runs the program")
@pytest.mark.parametrize("ending", ["", "\n", "\n\\.", "\n\\.\n"])
@pytest.mark.parametrize("line", ["\n", "\r\n"])
def test_the_end_of_the_data(program: Program, ending: str, line: str) -> None:
    script = "create table t (a int, b varchar);\ncopy t from stdin;\n1\tx\n2\ty" + ending
    script = script.replace("\n", line)
    done = program("-q", "--format", "csv", "-f", "-", "-c", "select count(*) as n from t", stdin=script)
    assert (done.code, done.out, done.err) == (0, "n\n2\n", "")


@pytest.mark.slow("runs the program five times")
def test_stdin_is_read_for_the_last_line_of_a_command(program: Program) -> None:
    made, shown = ("-c", "create table t (a int)"), ("-c", "select sum(a) as s from t")
    for copy in ("copy t from stdin", "copy t from stdin; select 1", "\\copy t from stdin", "\\copy t from pstdin"):
        done = program("-q", "--format", "csv", *made, "-c", copy, *shown, stdin="1\n2\n")
        assert done.code == 0 and done.out.endswith("s\n3\n"), (copy, done)
    done = program("-q", stdin="create table t (a int);\n\\copy t from pstdin\n")
    assert done.code == 2 and "the script itself is on stdin" in done.err


@pytest.mark.slow("runs the program twice")
def test_a_copy_that_fails_discards_its_data(program: Program) -> None:
    script = "copy nothing from stdin;\nselect 1 as ran;\n\\.\ncopy t from stdin (nope 1);\nselect 2 as ran;\n\\.\n"
    script += "select 3 as ran;\n"
    done = program("-q", "--format", "csv", "--on-error", "continue", stdin=script)
    assert (done.code, done.out) == (1, "ran\n3\n")
    assert "<stdin>:3: error[42P01]" in done.err or "nothing" in done.err
    done = program("-q", "--format", "csv", stdin=script)
    assert done.out == "" and "were not run" in done.err


def test_restricted_scripts_have_no_commands(program: Program) -> None:
    script = "\\restrict k\n\\echo no\n\\unrestrict x\n\\unrestrict k\n\\echo yes\n"
    done = program("-q", "--on-error", "continue", stdin=script)
    assert (done.code, done.out) == (2, "yes\n")
    assert "disabled by \\restrict" in done.err and "not the key" in done.err


@pytest.mark.slow("runs the program twice")
def test_a_dump_of_duckdb(program: Program, served: Served, tmp_path: Path) -> None:
    with duckdb.connect() as made:
        made.execute("create table exported (i int, b blob, t varchar, l int[], d decimal(10,2))")
        made.execute(
            "insert into exported values (1, '\\x01ab'::blob, 'x\"y', [1, 2], 1.10), (2, null, '', null, null)"
        )
        made.execute(f"export database '{tmp_path}/out'")
    shown = "select * from exported order by i"
    expected = 'i,b,t,l,d\n1,\\x016162,"x""y","[1,2]",1.10\n2,,"",,\n'
    env = served.environment
    for target in ({}, env):
        args = ("-f", "out/schema.sql", "-f", "out/load.sql", "-c", shown, "-c", "drop table exported")
        done = program("-q", "--format", "csv", *args, env=target)
        assert (done.code, done.out, done.err) == (0, expected, ""), done


EXPORTED = """
create sequence numbers start 5;
create type mood as enum ('a', 'b''c');
create table parent (id integer primary key, a varchar not null, f struct(x int, y varchar), g map(varchar, int),
    l varchar[], p mood, b decimal(10, 2) default 1.5, unique (a), check (b > 0));
insert into parent values (1, 'x', {x: 1, y: 'z'}, map {'k': 1}, ['a b', null, 'NULL'], 'a', 2.5),
    (2, '', null, null, null, null, null), (3, 'NULL', {x: null, y: ''}, map {}, [], 'b''c', 1);
create table child (id integer default nextval('numbers'), parent integer references parent(id), "sel ect" int not null,
    "Odd ""Name" varchar not null);
insert into child (parent, "sel ect", "Odd ""Name") values (1, 3, ''), (2, 4, 'q"');
create view counted as select a, count(*) as n from parent join child on parent = parent.id group by all;
"""


@pytest.mark.slow("starts a service, runs the program four times")
def test_all_that_a_dump_of_duckdb_may_hold(program: Program, tmp_path: Path) -> None:
    with duckdb.connect() as made:
        made.execute(EXPORTED)
        made.execute(f"export database '{tmp_path}/out'")
        rows = made.execute("select f::varchar, g::varchar, l::varchar from parent order by id").fetchall()
    (tmp_path / "data").mkdir()
    own = serve(tmp_path / "data")
    files = ("-f", "out/schema.sql", "-f", "out/load.sql")
    shown = ("-c", "select id, a, p, b from parent order by id", "-c", "from child order by id", "-c", "from counted")
    nested = ("-c", "select f::varchar as f, g::varchar as g, l::varchar as l from parent order by id")
    expected = (
        'id,a,p,b\n1,x,a,2.50\n2,"",,\n3,NULL,b\'c,1.00\nid,parent,sel ect,"Odd ""Name"\n5,1,3,""\n6,2,4,"q"""\na,n\n'
    )
    for target in ({}, {"SQLSHELL_URL": own.url, "SQLSHELL_TOKEN": own.token}):
        done = program("-q", "--format", "csv", *files, *shown, env=target)
        assert (done.code, done.err) == (0, ""), done
        assert done.out.startswith(expected), done.out
        if not target:
            done = program("-q", "--format", "jsonl", *files, *nested, env=target)
        else:
            done = program("-q", "--format", "jsonl", *nested, env=target)
        assert [tuple(json.loads(line).values()) for line in done.out.splitlines()] == rows
    stop(own)


def test_columns_that_are_never_null_in_csv(program: Program) -> None:
    script = """create table f (a int, b varchar, c varchar);
copy f from stdin (format csv, force_not_null (b));
1,,
\\.
copy f from stdin csv force not null b, c;
2,,
\\.
copy f from stdin (format csv, force_not_null *);
,,
\\.
copy f from stdin (format csv, force_not_null (nope));
4,,
\\.
from f;
"""
    done = program("-q", "--format", "csv", "--on-error", "continue", stdin=script)
    assert (done.code, done.out) == (1, 'a,b,c\n1,"",\n2,"",""\n')
    assert 'cannot be loaded: STDIN, line 1, column "a": cannot convert' in done.err
    assert '<stdin>:11: error: COPY: FORCE_NOT_NULL: f has no column "nope"' in done.err


@pytest.mark.slow("runs the program four times")
def test_copy_of_a_file_means_the_same_on_every_service(program: Program, served: Served, tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text('e,f\n"",1\n,2\n')
    made = ("-q", "--format", "csv", "-c", "create table quoted (e varchar, f int)")
    shown = ("-c", "select e is null as n from quoted order by f", "-c", "drop table quoted")
    for env in ({}, served.environment):
        for options, first in (("(header)", "true"), ("(header, allow_quoted_nulls false)", "false")):
            done = program(*made, "-c", f"copy quoted from 'q.csv' {options}", *shown, env=env)
            assert (done.code, done.out) == (0, f"n\n{first}\ntrue\n"), done


@pytest.mark.slow("runs the program eleven times")
def test_nulls_within_quotes(program: Program, tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text('"id","n","d","s"\n"1","5","31/12/2025","x"\n"2","","",""\n')
    load = ("import", "q.csv", "w.duckdb", "--table", "t", "--create")
    done = program(*load)
    assert (done.code, "use --with 'FORCE_NULL *'" in done.err) == (1, True), done
    for options, text in (("FORCE_NULL *", ""), ("allow_quoted_nulls", ""), ("FORCE_NULL (n, D)", '""')):
        done = program(*load, "--with", options)
        assert done.code == 0, done
        done = program("-q", "--format", "csv", "w.duckdb", "-c", "from t", "-c", "drop table t")
        assert done.out == f"id,n,d,s\n1,5,2025-12-31,x\n2,,,{text}\n", options
    script = "create table f (a int, b varchar, c varchar);\ncopy f from stdin csv force null a, b;\n"
    script += '"","",""\n\\.\nfrom f;\n'
    done = program("-q", "--format", "csv", stdin=script)
    assert (done.code, done.out) == (0, 'a,b,c\n,,""\n'), done
    (tmp_path / "w.csv").write_text('n\n"5"\n"x"\n"1.5"\n')
    made = ("-q", "-c", "create table f (n int)", "-c")
    done = program(*made, "\\copy f from w.csv (force_null (n))")
    assert done.code == 1 and "w.csv, line 4, column \"n\": cannot convert '1.5' to INTEGER" in done.err, done
    (tmp_path / "w.csv").write_text('n\n"5"\n""\n"x"\n')
    done = program(*made, "\\copy f from w.csv (force_null (n))")
    assert done.code == 1 and "w.csv, line 4, column \"n\": cannot convert 'x' to INTEGER" in done.err, done
    done = program(*made, "\\copy f from w.csv (force_null (m))")
    assert (done.code, 'COPY: FORCE_NULL: f has no column "m"' in done.err) == (2, True), done


def test_an_unknown_option_of_copy_is_named(program: Program, served: Served, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("1\n")
    env = served.environment
    done = program("-q", "-c", "copy t from 't.csv' (format csv, nope 1)", env=env)
    assert (done.code, done.out) == (2, "")
    assert "error: COPY: unknown option 'nope'" in done.err


@pytest.mark.slow("runs the program six times")
def test_a_line_of_backslash_and_period_ends_data(program: Program, tmp_path: Path) -> None:
    (tmp_path / "dot.txt").write_text("a\n\\.\nb\n")
    made, shown = ("-c", "create table v (s varchar)"), ("-c", "select string_agg(s, '+') as s from v")
    for copy in ("copy v from stdin", "\\copy v from pstdin", "\\copy v from 'dot.txt'", "copy v from stdin csv"):
        done = program("-q", "--format", "csv", *made, "-c", copy, *shown, stdin="a\n\\.\nb\n")
        assert (done.code, done.out) == (0, "s\na\n"), (copy, done)
    rows = 'x,1\n"y\n\\.\n",2\n\\.\nno row\n'
    made, shown = ("-c", "create table w (s varchar, n int)"), ("-c", "select s, n from w order by n")
    done = program("-q", "--format", "csv", *made, "-c", "copy w from stdin csv", *shown, stdin=rows)
    assert (done.code, done.out) == (0, 's,n\nx,1\n"y\n\\.\n",2\n'), done
    # In a file of CSV it is a value, as in PostgreSQL from version 18 on.
    (tmp_path / "dot.csv").write_text("a\n\\.\nb\n")
    loaded = ("-c", "create table v (s varchar)", "-c", "\\copy v from 'dot.csv' csv")
    done = program("-q", "--format", "csv", *loaded, "-c", "select count(*) as n from v")
    assert (done.code, done.out) == (0, "n\n3\n"), done


def test_a_restriction_is_not_replaced_by_another(program: Program) -> None:
    script = "\\restrict k\n\\restrict mine\n\\unrestrict mine\n\\echo no\n\\unrestrict k\n\\echo yes\n"
    done = program("--on-error", "continue", stdin=script)
    assert done.out == "yes\n"
    assert done.err.count("disabled by \\restrict") == 2 and "not the key" in done.err


COPIED = """create table t (id integer, l integer[], v text[], plain text, b blob, ba blob[], j json);
COPY t (id, l, v, plain, b, ba, j) FROM stdin;
1\t{1,NULL}\t{"a b","q\\\\"x","NULL"}\t{1,2}\t\\\\x6162\t{"\\\\\\\\x6162"}\t{"a": 2.50}
2\t{}\t\\N\t\\\\x6162\t\\\\x\t{}\t{}
\\.
select * from t order by id;
drop table t;
"""
TAKEN = (
    "id,l,v,plain,b,ba,j\n"
    '1,"[1,null]","[""a b"",""q\\""x"",""NULL""]","{1,2}",\\x6162,"[""YWI=""]","{""a"": 2.50}"\n'
    "2,[],,\\x6162,\\x,[],{}\n"
)


def test_arrays_and_bytes_as_postgresql_writes_them(program: Program, served: Served) -> None:
    for env in ({}, served.environment):
        done = program("-q", "--format", "csv", stdin=COPIED, env=env)
        assert (done.code, done.out) == (0, TAKEN), done


@pytest.mark.slow("runs the program three times")
def test_intervals_as_postgresql_writes_them(program: Program, tmp_path: Path) -> None:
    (tmp_path / "i.csv").write_text("i\n-3 days +04:05:06\n-1 years +2 mons 04:05:06\n1 day\n")
    made = ("-q", "--format", "csv", "-c", "create table v (i interval, j int)", "-c")
    done = program(*made, "\\copy v (i) from i.csv", "-c", "select i from v")
    assert (done.code, done.out) == (0, "i\n-3 days 04:05:06\n-10 months 04:05:06\n1 day\n"), done
    script = "create table v (i interval);\ncopy v from stdin;\n-3 days +04:05:06\n\\.\nfrom v;"
    done = program("-q", "--format", "csv", stdin=script)
    assert (done.code, done.out) == (0, "i\n-3 days 04:05:06\n"), done
    (tmp_path / "i.csv").write_text("i\n1 day\nnever\n")
    done = program(*made, "\\copy v (i) from i.csv")
    assert (done.code, done.out) == (1, ""), done
    said = "row 2 of the attachment, column \"i\": cannot convert 'never' to INTERVAL; 0 rows of i.csv are in v"
    assert said in done.err, done


@pytest.mark.slow("runs the program")
@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_a_null_union_is_null_when_it_is_loaded_again(program: Program, ending: str) -> None:
    made = "create table u (k int, u union(num int, str varchar)); create table v as from u; "
    done = program(
        *("-q", "--format", "csv", "-c", made + "insert into u values (1, 5), (2, null)"),
        *("-c", f"\\copy u to 'u.{ending}'", "-c", f"\\copy v from 'u.{ending}'"),
        *("-c", "select u is null as n from v order by k"),
    )
    assert (done.code, done.out) == (0, "n\nfalse\ntrue\n"), done
