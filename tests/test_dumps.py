"""Data in scripts: COPY … FROM STDIN, dumps of PostgreSQL and of DuckDB."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import duckdb
import pytest

from tests.conftest import Program, Served, serve, stop
from tests.terminal.query_buffer import psql_prompt

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

DUMP = """--
-- PostgreSQL database dump
--
\\restrict abcDEF

SET statement_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET default_table_access_method = heap;

CREATE TABLE public.accounts (
    aid integer NOT NULL,
    filler character(84)
)
WITH (fillfactor='100');
ALTER TABLE public.accounts OWNER TO postgres;
CREATE TABLE public.history (
    mtime timestamp without time zone
);
COPY public.accounts (aid, filler) FROM stdin;
1\t\\N
2\tx
\\.
COPY public.history (mtime) FROM stdin;
\\.
ALTER TABLE ONLY public.accounts
    ADD CONSTRAINT accounts_pkey PRIMARY KEY (aid);

\\unrestrict abcDEF
"""


@pytest.mark.slow("runs the program")
@pytest.mark.parametrize("way", ["-f", "-c", "stdin"])
def test_data_in_a_script_are_loaded(program: Program, tmp_path: Path, way: str) -> None:
    (tmp_path / "s.sql").write_text(SCRIPT)
    given = {"-f": ("-f", "s.sql"), "-c": ("-c", SCRIPT), "stdin": ()}[way]
    done = program("-q", "--format", "csv", *given, stdin=SCRIPT if way == "stdin" else None)
    assert (done.code, done.out, done.err) == (0, ROWS, "")


@pytest.mark.slow("runs the program")
def test_data_go_to_a_served_table(program: Program, served: Served) -> None:
    env = {"SQLSHELL_URL": served.url, "SQLSHELL_TOKEN": served.token}
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


@pytest.mark.slow("runs the program three times")
def test_a_dump_of_postgresql(program: Program, served: Served, tmp_path: Path) -> None:
    (tmp_path / "dump.sql").write_text(DUMP)
    shown = "select count(*) as n, count(filler) as f from public.accounts"
    done = program("work.duckdb", "--format", "csv", "-f", "dump.sql", "-c", shown)
    assert (done.code, done.out) == (0, "n,f\n2,1\n"), done
    assert done.err.count("are skipped") == 1
    env = {"SQLSHELL_URL": served.url, "SQLSHELL_TOKEN": served.token}
    drop = "drop table public.accounts; drop table public.history"
    done = program("--format", "csv", "-f", "dump.sql", "-c", shown, "-c", drop, env=env)
    assert (done.code, done.out) == (0, "n,f\n2,1\n"), done
    done = program("work.duckdb", "-c", "insert into public.accounts values (1, null)")
    assert done.code == 1 and "duplicate key" in done.err.lower()


INDEXED = """SELECT pg_catalog.set_config('search_path', '', false);
CREATE TABLE public."a ""b" (
    id integer NOT NULL,
    name text
);
CREATE INDEX "a ""b_id_idx" ON public."a ""b" USING btree (id);
CREATE UNIQUE INDEX names ON public."a ""b" USING btree (lower(name), id);
"""


def test_the_indexes_of_a_dump(program: Program, served: Served, tmp_path: Path) -> None:
    (tmp_path / "dump.sql").write_text(INDEXED)
    env = {"SQLSHELL_URL": served.url, "SQLSHELL_TOKEN": served.token}
    shown = "select count(*) as n from duckdb_indexes() where table_name like 'a %'"
    for target, more in (({}, ()), (env, ("-c", 'drop table public."a ""b"'))):
        done = program("--format", "csv", "-f", "dump.sql", "-c", shown, *more, env=target)
        assert (done.code, done.out) == (0, "n\n2\n"), done


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
    env = {"SQLSHELL_URL": served.url, "SQLSHELL_TOKEN": served.token}
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
    assert "<stdin>:9: error: 1 row of STDIN cannot be loaded: STDIN, line 1, column a: cannot convert ''" in done.err
    assert "<stdin>:12: error: force_not_null: f has no column 'nope'" in done.err


@pytest.mark.slow("runs the program four times")
def test_copy_of_a_file_means_the_same_on_every_service(program: Program, served: Served, tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text('e,f\n"",1\n,2\n')
    made = ("-q", "--format", "csv", "-c", "create table quoted (e varchar, f int)")
    shown = ("-c", "select e is null as n from quoted order by f", "-c", "drop table quoted")
    for env in ({}, {"SQLSHELL_URL": served.url, "SQLSHELL_TOKEN": served.token}):
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
    assert done.code == 1 and "w.csv, line 4, column n: cannot convert '1.5' to INTEGER" in done.err, done
    (tmp_path / "w.csv").write_text('n\n"5"\n""\n"x"\n')
    done = program(*made, "\\copy f from w.csv (force_null (n))")
    assert done.code == 1 and "w.csv, line 4, column n: cannot convert 'x' to INTEGER" in done.err, done
    done = program(*made, "\\copy f from w.csv (force_null (m))")
    assert (done.code, "force_null: f has no column 'm'" in done.err) == (2, True), done


def test_an_unknown_option_of_copy_is_named(program: Program, served: Served, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("1\n")
    env = {"SQLSHELL_URL": served.url, "SQLSHELL_TOKEN": served.token}
    done = program("-q", "-c", "copy t from 't.csv' (format csv, nope 1)", env=env)
    assert (done.code, done.out) == (2, "")
    assert "error: COPY: unknown option 'nope'" in done.err


SERIAL = """SELECT pg_catalog.set_config('search_path', '', false);
CREATE TABLE public.ser (
    id integer NOT NULL,
    x smallint NOT NULL
);
CREATE SEQUENCE public.ser_id_seq
    AS integer
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER TABLE public.ser_id_seq OWNER TO postgres;
ALTER SEQUENCE public.ser_id_seq OWNED BY public.ser.id;
ALTER TABLE ONLY public.ser ALTER COLUMN id SET DEFAULT nextval('public.ser_id_seq'::regclass);
COPY public.ser (id, x) FROM stdin;
1\t1
3\t2
\\.
SELECT pg_catalog.setval('public.ser_id_seq', 3, true);
ALTER TABLE ONLY public.ser
    ADD CONSTRAINT ser_pkey PRIMARY KEY (id);
"""


def test_the_sequences_of_a_dump(program: Program, tmp_path: Path) -> None:
    (tmp_path / "dump.sql").write_text(SERIAL)
    insert, shown = "insert into public.ser (x) values (7)", "select max(id) as m from public.ser"
    done = program("--format", "csv", "work.duckdb", "-f", "dump.sql", "-c", insert, "-c", shown)
    assert done.code == 0 and done.out.endswith("\nm\n4\n"), done


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


@pytest.mark.slow("PostgreSQL and many rows")
@pytest.mark.skipif(not (shutil.which("pg_dump") and shutil.which("initdb")), reason="needs PostgreSQL")
def test_what_pg_dump_writes_of_pgbench(program: Program, tmp_path: Path) -> None:
    with psql_prompt() as (folder, _):
        reach = ("-h", str(folder), "-U", "postgres")
        subprocess.run(["pgbench", *reach, "-i", "-q", "postgres"], check=True, capture_output=True)
        dump = subprocess.run(["pg_dump", *reach, "-t", "pgbench*", "postgres"], check=True, capture_output=True)
    (tmp_path / "dump.sql").write_bytes(dump.stdout)
    shown = "select count(*) as n, count(distinct aid) as d, sum(abalance) as s from public.pgbench_accounts"
    done = program("--format", "csv", "-f", "dump.sql", "-c", shown)
    assert (done.code, done.out) == (0, "n,d,s\n100000,100000,0\n"), done


def test_a_restriction_is_not_replaced_by_another(program: Program) -> None:
    script = "\\restrict k\n\\restrict mine\n\\unrestrict mine\n\\echo no\n\\unrestrict k\n\\echo yes\n"
    done = program("--on-error", "continue", stdin=script)
    assert done.out == "yes\n"
    assert done.err.count("disabled by \\restrict") == 2 and "not the key" in done.err


ARRAYS = """SELECT pg_catalog.set_config('search_path', '', false);
CREATE TABLE public.t (
    id integer,
    l integer[],
    v text[],
    plain text,
    b bytea,
    ba bytea[],
    j jsonb DEFAULT '{"jsonb": 1}'::jsonb,
    n numeric
);
"""
COPIED = (
    "COPY public.t (id, l, v, plain, b, ba, j, n) FROM stdin;\n"
    '1\t{1,NULL}\t{"a b","q\\\\"x","NULL"}\t{1,2}\t\\\\x6162\t{"\\\\\\\\x6162"}\t{"a": 2.50}\t1.5\n'
    "2\t{}\t\\N\t\\\\x6162\t\\\\x\t{}\t{}\t\\N\n\\.\n"
)
INSERTED = (
    """INSERT INTO public.t VALUES (1, '{1,NULL}', '{"a b","q\\"x","NULL"}', '{1,2}', '\\x6162', '{"\\\\x6162"}', """
    """'{"a": 2.50}', 1.5);\n"""
    """INSERT INTO public.t (id, l, v, plain, b, ba, j) VALUES (2, '{}', NULL, '\\x6162', '\\x', '{}', '{}');\n"""
)
TAKEN = (
    "id,l,v,plain,b,ba,j,n\n"
    '1,"[1,null]","[""a b"",""q\\""x"",""NULL""]","{1,2}",\\x6162,"[""YWI=""]","{""a"": 2.50}",1.500\n'
    "2,[],,\\x6162,\\x,[],{},\n"
)


@pytest.mark.parametrize("rows", [COPIED, INSERTED], ids=["copied", "inserted"])
def test_the_arrays_and_bytes_of_a_dump(program: Program, served: Served, tmp_path: Path, rows: str) -> None:
    (tmp_path / "dump.sql").write_text(ARRAYS + rows)
    for env in ({}, {"SQLSHELL_URL": served.url, "SQLSHELL_TOKEN": served.token}):
        shown = ("-c", "select * from public.t order by id", "-c", "drop table public.t")
        done = program("-q", "--format", "csv", "-f", "dump.sql", *shown, env=env)
        assert (done.code, done.out) == (0, TAKEN), done
        assert "dump.sql:2: warning: numeric without a precision" in done.err


def test_values_that_cannot_be_taken_are_refused(program: Program, tmp_path: Path) -> None:
    script = ARRAYS + "".join(
        f"INSERT INTO public.t (l) VALUES ('{text}');\n" for text in ("{1.5}", "{a", "{{1,2}}", "[0:0]={1}", "{1}")
    )
    (tmp_path / "dump.sql").write_text(script)
    shown = ("-c", "select l from public.t")
    done = program("-q", "--format", "csv", "--on-error", "continue", "-f", "dump.sql", *shown)
    assert (done.code, done.out) == (1, "l\n[1]\n"), done
    assert [line for line in range(12, 17) if f"dump.sql:{line}:" in done.err] == [12, 13, 14, 15]


def test_only_dumps_have_the_bytes_of_postgresql(program: Program, tmp_path: Path) -> None:
    (tmp_path / "s.sql").write_text("create table t (b blob);\ninsert into t values ('\\x6162');\n")
    done = program("-q", "--format", "csv", "-f", "s.sql", "-c", "from t")
    assert (done.code, done.out) == (0, "b\n\\x613632\n"), done


EVERYDAY = """\\restrict k
SELECT pg_catalog.set_config('search_path', '', false);
CREATE SCHEMA shop;
CREATE DOMAIN shop.email AS character varying(40)
\tCONSTRAINT email_check CHECK (((VALUE)::text ~~ '%@%'::text));
CREATE TYPE shop.status AS ENUM (
    'new',
    'it''s'
);
CREATE FUNCTION shop.touch() RETURNS trigger
    LANGUAGE plpgsql
    AS $$ begin new.at := now(); return new; end; $$;
CREATE UNLOGGED TABLE shop.customers (
    id bigint NOT NULL,
    mail shop.email,
    state character varying(9) DEFAULT 'ok'::character varying,
    tags text[] DEFAULT '{}'::text[],
    at timestamp with time zone DEFAULT now(),
    "show" text COLLATE pg_catalog."C",
    CONSTRAINT c CHECK (((state)::text = ANY ((ARRAY['ok'::character varying, '[]'::character varying])::text[]))),
    CONSTRAINT d CHECK ((id <> ALL (ARRAY[(0)::bigint, (13)::bigint])))
);
ALTER TABLE shop.customers OWNER TO postgres;
COMMENT ON COLUMN shop.customers.at IS 'at; ''show''';
ALTER TABLE shop.customers ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME shop.customers_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE SEQUENCE shop.numbers
    START WITH 100
    INCREMENT BY 5
    NO MINVALUE
    MAXVALUE 1000
    CACHE 1
    CYCLE;
CREATE TABLE shop.items (
    number integer DEFAULT nextval('shop.numbers'::regclass) NOT NULL,
    customer bigint,
    price numeric(10,2),
    gross numeric(12,2) GENERATED ALWAYS AS ((price * 1.2)) STORED,
    status shop.status DEFAULT 'new'::shop.status
);
CREATE TABLE shop.parts (
    id integer
)
PARTITION BY RANGE (id);
CREATE VIEW shop.totals AS
 SELECT c.mail,
    c.at,
    sum(i.gross) AS total
   FROM (shop.customers c
     JOIN shop.items i ON ((i.customer = c.id)))
  GROUP BY c.mail, c.at;
COPY shop.customers (id, mail, state, tags, at, "show") FROM stdin;
1\ta@b\tok\t{x,"y z"}\t2024-01-02 03:04:05+00\tone
2\tc@d\t[]\t{}\t2024-01-02 03:04:05+00\t\\N
\\.
COPY shop.items (number, customer, price, status) FROM stdin;
100\t1\t10.00\tit's
\\.
INSERT INTO shop.customers (id, mail, tags, at) OVERRIDING SYSTEM VALUE VALUES (3, 'g@h', '{p,q}', NULL);
SELECT pg_catalog.setval('shop.customers_id_seq', 3, true);
SELECT pg_catalog.setval('shop.numbers', 100, true);
ALTER TABLE ONLY shop.customers
    ADD CONSTRAINT customers_pkey PRIMARY KEY (id);
ALTER TABLE ONLY shop.customers REPLICA IDENTITY FULL;
CREATE INDEX by_time ON shop.customers USING btree (at DESC) INCLUDE (mail);
CREATE INDEX by_state ON shop.customers USING btree (state varchar_pattern_ops);
CREATE INDEX by_mail ON shop.customers USING hash (mail);
CREATE INDEX by_tags ON shop.customers USING gin (tags);
CREATE TRIGGER touch BEFORE UPDATE ON shop.customers FOR EACH ROW EXECUTE FUNCTION shop.touch();
ALTER TABLE ONLY shop.items
    ADD CONSTRAINT items_customer_fkey FOREIGN KEY (customer) REFERENCES shop.customers(id);
ALTER TABLE shop.items ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON TABLE shop.customers TO PUBLIC;
\\unrestrict k
"""


@pytest.mark.slow("starts a service, runs the program twice")
@pytest.mark.parametrize("where", ["embedded", "served"])
def test_a_dump_of_an_everyday_database(program: Program, tmp_path: Path, where: str) -> None:
    (tmp_path / "dump.sql").write_text(EVERYDAY)
    (tmp_path / "data").mkdir()
    own = serve(tmp_path / "data") if where == "served" else None
    env = {"SQLSHELL_URL": own.url, "SQLSHELL_TOKEN": own.token} if own else {}
    target = () if own else ("w.duckdb",)
    done = program("--on-error", "continue", "--format", "csv", *target, "-f", "dump.sql", env=env)
    messages = [line.split(": ", 1)[1] for line in done.err.splitlines() if "error[" in line or "warning:" in line]
    assert messages == [
        "warning: the domain is a plain type here, without its constraints and default",
        "error[0A000]: the local service does not support PostgreSQL's functions",
        "error[0A000]: the local service does not support PostgreSQL's partitioned tables",
        "error[42000]: Unknown index type: gin",
        "error[0A000]: the local service does not support PostgreSQL's triggers",
        "error[0A000]: No support for adding FOREIGN_KEY constraints with ALTER TABLE",
        "error[0A000]: the local service does not support PostgreSQL's row-level security",
    ]
    script = """insert into shop.customers (mail) values ('e@f');
insert into shop.items (customer, price) values (1, 1);
select id, mail, tags from shop.customers order by id;
select * from shop.items order by number;
select total from shop.totals order by total;
insert into shop.customers (state) values ('nope');
insert into shop.customers (id) values (13);
"""
    done = program("-q", "--on-error", "continue", "--format", "csv", *target, stdin=script, env=env)
    assert done.out == (
        'id,mail,tags\n1,a@b,"[""x"",""y z""]"\n2,c@d,[]\n3,g@h,"[""p"",""q""]"\n4,e@f,[]\n'
        "number,customer,price,gross,status\n100,1,10.00,12.00,it's\n105,1,1.00,1.20,new\n"
        "total\n13.20\n"
    ), done.err
    assert done.err.count("error[23") == 2, done.err
    if own:
        stop(own)


def test_scripts_after_a_dump_have_the_keywords_of_duckdb(program: Program, tmp_path: Path) -> None:
    (tmp_path / "dump.sql").write_text("SELECT pg_catalog.set_config('search_path', '', false);\n")
    script = "create table t as select 1 as a;\ncreate table u as select count(*) as n from (describe t);\nfrom u;\n"
    (tmp_path / "own.sql").write_text(script)
    done = program("-q", "--format", "csv", "-f", "dump.sql", "-f", "own.sql")
    assert (done.code, done.out) == (0, "n\n1\n"), done.err


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
    said = "row 2 of the attachment, column i: cannot convert 'never' to INTERVAL; 0 rows of i.csv are in v"
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
