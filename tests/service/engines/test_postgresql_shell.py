"""The shell on PostgreSQL: the program, the service in it, and a real server."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.conftest import Program

pytestmark = pytest.mark.usefixtures("postgresql_server")

BOTH = "select 1 as a, true as b, array[1, 2] as c;\ninsert into nowhere values (1);\n"
ROWS = 'a,b,c\n1,true,"{1,2}"\n'


def test_rows_and_errors_are_the_same_all_four_ways(program: Program, postgresql_database: str, tmp_path: Path) -> None:
    (tmp_path / "s.sql").write_text(BOTH)
    one, other = BOTH.splitlines()
    ways = [
        program(postgresql_database, "--format", "csv", "-c", one, "-c", other),
        program(postgresql_database, "--format", "csv", "-f", "s.sql"),
        program(postgresql_database, "--format", "csv", stdin=BOTH),
    ]
    for done in ways:
        assert done.out == ROWS and done.code == 1
        assert 'error[42P01]: relation "nowhere" does not exist\n' in done.err
        assert re.search(r"\n \d \| insert into nowhere values \(1\)\n   \| +\^+\n", done.err), done.err


def test_an_error_in_a_pipe_has_its_detail_and_hint_on_lines_of_their_own(
    program: Program, postgresql_database: str
) -> None:
    raising = "do $$ begin raise exception 'boom' using detail = 'det', hint = 'hin', errcode = 'P0042'; end $$"
    done = program(postgresql_database, "-c", raising)
    assert done.err == "<command>:1: error[P0042]: boom\ndetail: det\nhelp: hin\n"
    whole = program(postgresql_database, "-v", "-c", raising)
    assert "\nDETAIL: det\nCONTEXT: PL/pgSQL function inline_code_block" in whole.err and "\nhelp: hin\n" in whole.err
    other = program(postgresql_database, "-c", "select abs(1, 2, 3)")
    first, hint = other.err.splitlines()
    assert first.endswith("does not exist") and hint.startswith("help: No function matches"), other.err


def test_describing_a_table_does_not_end_the_transaction(program: Program, postgresql_database: str) -> None:
    script = (
        "create table t (a int primary key, n numeric(12,2), l int[]);\nbegin;\ninsert into t values (7);\n"
        "\\d t\n\\d+ t\n\\dt\n\\di\n\\dT\n\\df pg_sleep\n\\schema t\ncommit;\nselect a from t;\n"
    )
    done = program(postgresql_database, "-q", "--format", "csv", stdin=script)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("name,type,nullable,default,collation\na,integer,false,,\n")
    assert done.out.endswith("a\n7\n")


def test_a_temporary_table_is_described(program: Program, postgresql_database: str) -> None:
    script = "create temp table passing (a int not null);\ndescribe relation columns passing;\n"
    assert program(postgresql_database, "-q", "--format", "csv", stdin=script).out.endswith("\na,INTEGER,false\n")


def test_gdesc_names_types_as_the_server_and_runs_nothing(program: Program, postgresql_database: str) -> None:
    selected = "select nextval('counter') as n, 1.5 as d, now() as t, 'x'::name as s, '{}'::date[] as l, pg_sleep(3600)"
    writes = "insert into kept values (1.5) returning a as r"
    explained = "explain analyze select pg_sleep(3600)"
    done = program(
        postgresql_database, "-q", "--format", "csv",
        "-c", "create sequence counter", "-c", "create table kept (a float8)",
        "-c", f"{selected} \\gdesc", "-c", f"{writes} \\gdesc", "-c", f"{explained} \\gdesc",
        "-c", "select nextval('counter') as next, count(*) from kept",
    )  # fmt: skip
    header = "name,type,nullable\n"
    assert done.out == (
        f"{header}n,bigint,\nd,numeric,\nt,timestamp with time zone,\ns,name,\nl,date[],\npg_sleep,void,\n"
        f"{header}r,double precision,\n{header}QUERY PLAN,text,\nnext,count\n1,0\n"
    ), done
    refused = program(postgresql_database, "-c", "create table other (a int) \\gdesc", "-c", "table other")
    assert "\\gdesc has to run the statement, but CREATE TABLE may write" in refused.err


def test_headers_name_types_as_the_server(program: Program, postgresql_database: str) -> None:
    sql = "select 1::float8 as a, now() as b, '{}'::varchar(3)[] as c, null::oid as d"
    page = program(postgresql_database, "--format", "html", "-c", sql).out
    types = ["double precision", "timestamp with time zone", "character varying(3)[]", "oid"]
    assert re.findall('"type":"([^"]*)"', page) == types


def test_help_says_where_the_syntax_of_the_server_is_documented(program: Program, postgresql_database: str) -> None:
    documented = "PostgreSQL documents its statements: https://www.postgresql.org/docs/"
    for words in ("create table", "grant", "vacuum", "frobnicate"):
        assert program(postgresql_database, "-c", f"\\h {words}").err.startswith(documented), words
    own = program(postgresql_database, "-c", "\\h list").err
    assert own.startswith("LIST\n  LIST {API_TOKENS") and documented not in own
    assert documented in program(postgresql_database, "-c", "\\h").err


CREATED = (
    "name,type,nullable,default,collation\na,bigint,true,,\nb,double precision,true,,\nc,text,true,,\n"
    "d,timestamp with time zone,true,,\n{}"
)


def test_a_table_that_a_load_creates_has_the_types_of_the_server(
    program: Program, postgresql_database: str, tmp_path: Path
) -> None:
    import duckdb

    (tmp_path / "t.csv").write_text("a,b,c,d\n1,2.5,x,2024-01-01 10:00:00+02\n")
    more = "{'x': [1, NULL]} AS s, [[1], [2]] AS l, 'b'::BLOB AS y, 1.50::DECIMAL(9, 2) AS n, 1::TINYINT AS i"
    duckdb.sql(f"COPY (SELECT *, {more} FROM read_csv('{tmp_path}/t.csv')) TO '{tmp_path}/t.parquet'")
    argv = "-q", "--format", "csv", "-c"
    for made, option in (("one", "csv"), ("two", "parquet")):
        load = f"\\copy {made} from 't.{option}' (create)"
        done = program(postgresql_database, *argv, load, "-c", f"\\d {made}", "-c", f"select * from {made}")
        nested = 's,jsonb,true,,\nl,integer[],true,,\ny,bytea,true,,\nn,"numeric(9,2)",true,,\ni,smallint,true,,\n'
        assert done.code == 0 and done.out.startswith(CREATED.format(nested if made == "two" else "")), done
    assert done.out.endswith('1,2.5,x,2024-01-01 08:00:00+00,"{""x"": [1, null]}","{{1},{2}}",\\x62,1.50,1\n')
    imported = program("import", "t.csv", postgresql_database, "--table", "three", "--create", "--dry-run")
    assert "-> b double precision" in imported.err


def test_copy_takes_its_rows_from_the_script(program: Program, postgresql_database: str) -> None:
    script = (
        "create table t (a int, n numeric, l int[], b bytea, s text);\ncopy t from stdin;\n"
        "1\t0.00000000000000000001\t{1,NULL}\t\\\\x6162\ta\\tb\n2\t\\N\t\\N\t\\N\t\\N\n\\.\n"
        "select * from t order by a;\n"
    )
    done = program(postgresql_database, "-q", "--format", "csv", stdin=script)
    assert done.out == 'a,n,l,b,s\n1,0.00000000000000000001,"{1,NULL}",\\x6162,a\tb\n2,,,,\n', done


@pytest.mark.skipif(not shutil.which("psql"), reason="needs psql")
def test_a_large_result_is_what_psql_writes(program: Program, postgresql_database: str, tmp_path: Path) -> None:
    sql = (
        "select n, n / 7.0 as d, (n / 7.0)::float8 as f, 'name \"' || n || E'\\\\,\\n' as s, nullif(n % 3, 0) as z, "
        "timestamp '2024-01-01' + n * interval '1 second' as t from generate_series(1, 60000) n"
    )
    assert program(postgresql_database, "--format", "csv", "-o", "ours.csv", "-c", sql).code == 0
    subprocess.run(["psql", "-X", "--csv", "-o", tmp_path / "psqls.csv", "-c", sql, postgresql_database], check=True)
    assert (tmp_path / "ours.csv").read_bytes() == (tmp_path / "psqls.csv").read_bytes()


def test_a_large_result_has_its_types_in_parquet(program: Program, postgresql_database: str, tmp_path: Path) -> None:
    import duckdb

    sql = "select n, n::numeric(12,2) as d, n::float8 as f, true as b, date '2024-01-01' + n as t, '\\x00'::bytea as y "
    sql += "from generate_series(1, 60000) n"
    assert program(postgresql_database, "--format", "parquet", "-o", "rows.parquet", "-c", sql).code == 0
    made = duckdb.read_parquet(str(tmp_path / "rows.parquet"))
    assert [str(item) for item in made.types] == ["INTEGER", "DECIMAL(12,2)", "DOUBLE", "BOOLEAN", "DATE", "BLOB"]
    assert made.aggregate("count(*), sum(n), sum(d)").fetchall()[0][:2] == (60000, 60000 * 60001 // 2)


def test_the_password_is_not_shown(program: Program, postgresql_database: str) -> None:
    url = postgresql_database.replace("postgres@", "postgres:sesame@")
    done = program(url, "-c", "\\conninfo+", "-c", "list engines", "-c", "select nothing")
    assert "PostgreSQL" in done.out + done.err and "sesame" not in done.out + done.err
    unreachable = program("postgresql://postgres:sesame@127.0.0.1:1/d", "-c", "select 1")
    assert unreachable.code != 0 and "sesame" not in unreachable.out + unreachable.err


def test_the_number_of_changed_rows_is_told_after_notices(postgresql_database: str) -> None:
    from sqlshell import dbapi

    with dbapi.connect(postgresql_database) as connection:
        cursor = connection.cursor()
        cursor.execute("create table told (a int)")
        body = "begin raise notice 'one'; return null; end"
        cursor.execute(f"create function tell() returns trigger language plpgsql as $$ {body} $$")
        cursor.execute("create trigger t after insert on told for each statement execute function tell()")
        cursor.execute("insert into told values (1), (2)")
        assert cursor.rowcount == 2


def test_notices_are_printed_with_their_severity_once(program: Program, postgresql_database: str) -> None:
    script = "drop table if exists never;\ndo $$ begin raise warning 'w'; raise info 'i'; end $$;\nselect 1 as a;\n"
    done = program(postgresql_database, "-q", "--format", "csv", stdin=script)
    notices = 'NOTICE: table "never" does not exist, skipping', "WARNING: w"
    assert done.err == f"<stdin>:1: {notices[0]}\n<stdin>:2: {notices[1]}\nINFO: i\n"
    assert (done.code, done.out) == (0, "a\n1\n")


def test_conninfo_before_any_statement_shows_where_the_session_is(program: Program, postgresql_database: str) -> None:
    done = program(postgresql_database, "-c", "\\conninfo+")
    name = postgresql_database.partition("?")[0].rpartition("/")[2]
    assert re.search(rf"^  engine +PostgreSQL 1\d[^\n]*\n(?s:.*)^  database +{name} ", done.err, re.M), done.err


def test_the_servers_time_zone_applies_unless_the_user_sets_one(program: Program, postgresql_database: str) -> None:
    name = postgresql_database.partition("?")[0].rpartition("/")[2]
    prepared = f"alter database \"{name}\" set timezone = 'Asia/Tokyo'; create table t (a timestamptz);"
    assert program(postgresql_database, "-c", prepared).code == 0
    stored = (
        "-c", "insert into t values ('2024-07-01 12:00')", "-c",
        "delete from t returning a at time zone 'UTC'", "-c", "\\context",
    )  # fmt: skip
    cases: list[tuple[tuple[str, ...], dict[str, str], str, str, str]] = [
        ((), {"TZ": "America/New_York"}, "03:00", "Asia/Tokyo", "(service|server)"),
        ((), {"TZ": "America/New_York", "PGTZ": "UTC"}, "12:00", "UTC", "(service|server)"),
        (("--timezone", "Europe/Berlin"), {}, "10:00", "Europe/Berlin", "flag"),
        ((), {"SQLSHELL_TIMEZONE": "Europe/Berlin", "PGTZ": "UTC"}, "10:00", "Europe/Berlin", "environment"),
    ]
    for flags, environ, hour, zone, source in cases:
        done = program(postgresql_database, "--format", "csv", *flags, *stored, env=environ)
        assert f"2024-07-01 {hour}:00" in done.out, done
        assert re.search(rf"^  timezone +{zone} +\(?{source}", done.err, re.M), done.err


def test_a_program_has_the_servers_time_zone(postgresql_database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlshell import dbapi

    monkeypatch.setenv("TZ", "America/New_York")
    monkeypatch.setenv("PGTZ", "Asia/Tokyo")
    sql = "select '2024-07-01 12:00'::timestamptz at time zone 'UTC'"
    for zone, expected, hour in ((None, "Asia/Tokyo", 3), ("Europe/Berlin", "Europe/Berlin", 10)):
        with dbapi.connect(postgresql_database, timezone=zone) as connection:
            ((found,),) = connection.execute(sql).fetchall()
            assert (found.hour, connection.timezone) == (hour, expected)


def test_insert_statements_have_bytes_as_postgresql_reads_them(program: Program, postgresql_database: str) -> None:
    values = "select 1 as a, '\\x0001ff27'::bytea as b, array['\\xaa'::bytea, null] as c"
    made = program(postgresql_database, "--format", "insert", "--insert-table", "kept", "-c", values)
    assert made.err == ""
    script = f"create temp table kept (a int, b bytea, c bytea[]);\n{made.out}select a, b::text, c::text from kept;\n"
    done = program(postgresql_database, "-q", "--format", "csv", stdin=script)
    assert (done.code, done.err) == (0, "")
    assert done.out == 'a,b,c\n1,\\x0001ff27,"{""\\\\xaa"",NULL}"\n'


def test_the_connection_to_the_server_is_shown(program: Program, postgresql_database: str) -> None:
    done = program(postgresql_database, "-c", "\\conninfo+", "-c", "select pg_backend_pid() as p")
    found = dict(re.findall(r"^  (\w[\w ]*?)  +(\S.*)$", done.out + done.err, re.M))
    assert found["server user"] == "postgres"
    assert found["server"].endswith("/.s.PGSQL.5432")
    assert (found["TLS"], found["server process"]) == ("false", re.findall(r"\d+", done.out)[0])
    said = program(postgresql_database, "-c", "\\conninfo").err
    assert said.startswith("You are connected to ") and said.endswith('schema "public", as user "postgres".\n')


def test_another_database_of_the_server_is_connected_to_by_its_name(program: Program, postgresql_database: str) -> None:
    name = postgresql_database.partition("?")[0].rpartition("/")[2]
    script = (
        f"\\c postgres\nselect current_database();\n\\c {name}\nselect current_database();\n"
        "\\c nowhere_at_all\nselect 'never';\n"
    )
    done = program(postgresql_database, "-q", "--format", "csv", "--on-error", "continue", stdin=script)
    assert done.out == f"current_database\npostgres\ncurrent_database\n{name}\n"
    assert 'database "nowhere_at_all" does not exist; still connected to' in done.err
    assert done.code != 0


@pytest.mark.skipif(not shutil.which("psql"), reason="needs psql")
def test_variables_about_the_connection_have_psqls_values(program: Program, postgresql_database: str) -> None:
    script = (
        "\\echo :DBNAME :USER :HOST :PORT :SERVER_VERSION_NUM :SERVER_VERSION_NAME :ENCODING\n"
        "\\c template1\n\\echo :DBNAME\nselect 1 as \"select\" where :'USER' = current_user;\n"
    )
    done = program(postgresql_database, "-q", "--format", "csv", stdin=script)
    psql = subprocess.run(
        ["psql", "-Xq", "--csv", postgresql_database], input=script, capture_output=True, text=True, check=True
    )
    assert (done.code, done.out) == (0, psql.stdout)


def test_the_verbosity_of_errors_is_that_of_psql(program: Program, postgresql_database: str) -> None:
    raising = "do $$ begin raise notice 'n'; raise exception 'boom' using detail = 'det', hint = 'hin'; end $$;\n"
    script = raising + "".join(f"\\set VERBOSITY {kind}\n{raising}" for kind in ("terse", "sqlstate", "verbose"))
    done = program(postgresql_database, "--on-error", "continue", stdin=script)
    _, default, terse, code, verbose = re.split(r"<stdin>:\d: NOTICE: n\n", done.err)
    assert default == "<stdin>:1: error[P0001]: boom\ndetail: det\nhelp: hin\n"
    assert terse == "<stdin>:3: error[P0001]: boom\n"
    assert code == "<stdin>:5: error[P0001]\n"
    assert "\nDETAIL: det\nCONTEXT: PL/pgSQL function" in verbose and "\nhelp: hin" in verbose


def test_settings_of_a_psqlrc_do_not_break_a_script(program: Program, postgresql_database: str, tmp_path: Path) -> None:
    lines = [
        "set QUIET 1", "pset null '-'", "set PROMPT1 '%n@%m %# '", "set HISTFILE ~/.hist-:DBNAME", "set HISTSIZE 2000",
        "set HISTSIZE 3000",
        "set COMP_KEYWORD_CASE upper", "set VERBOSITY terse", "timing off", "x auto", "unset QUIET",
    ]  # fmt: skip
    (tmp_path / ".psqlrc").write_text("".join(f"\\{line}\n" for line in lines))
    done = program(postgresql_database, "-q", "--format", "csv", stdin="\\i .psqlrc\nselect 1 as a;\n")
    assert (done.code, done.out) == (0, "a\n1\n")
    warned = re.findall(r"^\.psqlrc:(\d): warning: psql's (\w+) has no effect: ", done.err, re.M)
    assert warned == [("3", "PROMPT1"), ("4", "HISTFILE"), ("5", "HISTSIZE"), ("7", "COMP_KEYWORD_CASE")]


def test_the_list_of_commands_tells_what_they_do_here(program: Program, postgresql_database: str) -> None:
    done = program(postgresql_database, "-c", "\\? all")
    listed = " ".join(done.out.split())
    assert "\\ds [PATTERN] List stores, or sequences on PostgreSQL" in listed
    assert "\\dp [PATTERN] List compute pools, or privileges on PostgreSQL" in listed


def test_the_name_of_a_database_is_data(program: Program, postgresql_database: str) -> None:
    made = postgresql_database.partition("?")[0].rpartition("/")[2]
    name = f"{made}'; drop table t; --"
    assert program(postgresql_database, "-c", f'create database "{name}"').code == 0
    url = postgresql_database.replace(f"/{made}", f"/{quote(name)}")
    script = "select :'DBNAME' = current_database() as same;\ncreate table t (a int);\n\\o :DBNAME\n"
    done = program(url, "-q", "--format", "csv", stdin=script)
    assert (done.code, done.out) == (2, "same\ntrue\n")
    assert ":DBNAME" in done.err


@pytest.mark.skipif(not shutil.which("psql"), reason="needs psql")
def test_the_user_host_and_port_of_a_connection_can_be_given(program: Program, postgresql_database: str) -> None:
    folder = postgresql_database.partition("?host=")[2]
    where = "select current_user, current_database();\n"
    script = (
        f"\\c - somebody\n{where}\\c template1\n{where}\\c postgres postgres {folder} 5432\n{where}"
        f"\\c - - - 5432\n{where}\\c -\n{where}\\echo :USER :HOST :PORT\n"
    )
    made = "do $$ begin create role somebody login; exception when duplicate_object then null; end $$"
    assert program(postgresql_database, "-c", made).code == 0
    done = program(postgresql_database, "-q", "--format", "csv", stdin=script)
    psql = ["psql", "-Xq", "--csv", postgresql_database]
    assert done.out == subprocess.run(psql, input=script, capture_output=True, text=True, check=True).stdout
    assert done.code == 0
    wrong = program(postgresql_database, "-c", "\\c - - - 54x", "-c", "select 1")
    assert (wrong.code, wrong.out) == (2, "") and "\\c: invalid port '54x'; still connected to" in wrong.err
    alone = program("-c", "\\c shop somebody")
    assert alone.code == 2 and "only when the shell is connected to PostgreSQL" in alone.err
    assert "\nhelp: give a URL, such as \\c postgresql://user@host:port/database" in alone.err


def test_the_notices_of_a_statement_that_fails_are_shown_with_it(program: Program, postgresql_database: str) -> None:
    raising = "do $$ begin raise notice 'customer 17'; raise exception 'boom' using detail = 'det'; end $$"
    done = program(postgresql_database, "--on-error", "continue", "-c", raising, "-c", "select 1")
    assert done.err.startswith("<command>:1: NOTICE: customer 17\n<command>:1: error[P0001]: boom\ndetail: det\n"), (
        done.err
    )
    assert done.err.count("NOTICE") == 1


def test_an_error_in_the_data_of_a_copy_names_the_line(program: Program, postgresql_database: str) -> None:
    script = "create temp table t (a int unique);\ncopy t from stdin;\n1\nbad\n\\.\n"
    done = program(postgresql_database, "-q", stdin=script)
    assert 'detail: COPY t, line 2, column a: "bad"\n' in done.err
    script = "create temp table t (a int unique);\ncopy t from stdin;\n1\n1\n\\.\n"
    done = program(postgresql_database, "-q", stdin=script)
    assert "detail: Key (a)=(1) already exists.; COPY t, line 2\n" in done.err


def test_what_psql_has_and_the_shell_has_not_is_refused(program: Program) -> None:
    refused = {
        ("-c", "\\set ON_ERROR_ROLLBACK on"): "ON_ERROR_ROLLBACK is not supported",
        ("host=/tmp dbname=x password=sesame",): "write it as a URL: postgresql://",
        ("-U", "ann"): "use a URL: sqlshell postgresql://",
    }
    for argv, said in refused.items():
        done = program(*argv)
        assert said in done.err and "sesame" not in done.err and done.code == 2
