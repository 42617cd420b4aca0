"""Lists and descriptions of objects, by patterns, on the embedded service and on `serve`."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest

from sqlshell.service.setup import open_storage
from sqlshell.sql.identifiers import Pattern
from tests.commands.few_words import Answers, few_words
from tests.conftest import Program, Served, serve, stop

MAKE = """
create table "My Table" (id integer not null, name varchar);
create view seen as select 1 as x;
create schema other;
create table other.orders (id integer, total decimal(9,2));
"""


@pytest.fixture
def look(program: Program, tmp_path: Path) -> object:
    assert program("-q", "work.duckdb", "-c", MAKE).code == 0

    def run(*commands: str) -> list[list[list[str]]]:
        found = []
        for command in commands:
            done = program("-q", "work.duckdb", "--format", "csv", "-c", command)
            assert done.code == 0, done.err
            found.append(list(csv.reader(io.StringIO(done.out)))[1:])
        return found

    return run


@pytest.mark.slow("runs the program seven times")
def test_relations(look: object) -> None:
    tables, everywhere, views, all_here, exact, prefix = look(  # type: ignore[operator]
        "\\dt", "\\dt *.*", "\\dv", "\\d", '\\dt "My Table"', "\\dt my*"
    )
    assert tables == [["main", "My Table", "table"]]
    assert everywhere == [["main", "My Table", "table"], ["other", "orders", "table"]]
    assert views == [["main", "seen", "view"]]
    assert all_here == [["main", "My Table", "table"], ["main", "seen", "view"]]
    assert exact == prefix == tables


@pytest.mark.slow("runs the program four times")
def test_a_relation(look: object) -> None:
    columns, other, more = look('\\d "My Table"', "\\d other.o*", "\\d+ seen")  # type: ignore[operator]
    assert columns == [["id", "INTEGER", "false", ""], ["name", "VARCHAR", "true", ""]]
    assert other == [["id", "INTEGER", "true", ""], ["total", "DECIMAL(9,2)", "true", ""]]
    assert more[0][:2] == ["x", "INTEGER"]


@pytest.mark.slow("runs the program eight times")
def test_everything_else(look: object) -> None:
    databases, schemas, functions, pools, roles, stores, streams = look(  # type: ignore[operator]
        "\\l", "\\dn", "\\df abs", "\\dp", "\\dr", "\\ds", "\\dm"
    )
    assert ["work", "database", "*"] in databases
    assert ["local", "organization", "*"] in databases
    assert {row[0] for row in schemas} >= {"main", "other"}
    assert {tuple(row[:2]) for row in functions} == {("main", "abs")}
    assert [row[0] for row in pools] == ["default"]
    assert [row[0] for row in roles] == ["owner", "writer", "reader", "sysadmin"]
    assert stores == streams == []


KEYED = """
create sequence numbers start 5;
create type mood as enum ('sad', 'ok');
create table customer (id integer primary key, name varchar not null default 'nobody', email varchar unique);
comment on table customer is 'who buys';
comment on column customer.name is 'in full';
create table bought (
  a integer, b integer, buyer integer references customer(id), total decimal(9,2) check (total > 0), m mood,
  twice integer generated always as (a * 2), primary key (a, b)
);
create index by_total on bought(total);
create unique index once on bought(buyer, a);
create view rich as select id, name from customer where id > 1;
create macro added(x, y) as x + y;
create macro numbered(n) as table select * from range(n);
create schema s2; create table s2."Mixed Case" ("A b" integer);
create database other; create table other.main.far (z integer);
create temp table mine (x integer); create temp view passing as select 1 as y;
"""
LOOKED = {
    "\\d": ("main,bought,table", "main,mine,temporary table", "main,passing,temporary view", "main,numbers,sequence"),
    "\\d mine": ("x,INTEGER,true",),
    "\\d passing": ("y,INTEGER,true",),
    "\\d numbers": ("5,1,9223372036854775807,1,false",),
    "\\d other.far": ("z,INTEGER,true",),
    "\\d other.main.far": ("z,INTEGER,true",),
    '\\d s2."Mixed Case"': ("A b,INTEGER,true",),
    "\\d s2.mixed*": ("A b,INTEGER,true",),
    "\\d cust?mer": ("id,INTEGER,false", "name,VARCHAR,false,'nobody'"),
    "\\d CUSTOMER": ("id,INTEGER,false",),
    "\\d+ customer": ("id,INTEGER,false,,primary key,", "name,VARCHAR,false,'nobody',,in full", "Comment,"),
    "\\d+ bought": (
        "buyer,INTEGER,true,,references customer(id),",
        "twice,INTEGER,true,generated always as (CAST((a * 2) AS INTEGER)),,",
        '"PRIMARY KEY(a, b)"',
        "CHECK((total > 0))",
        "FOREIGN KEY (buyer) REFERENCES customer(id)",
        "CREATE INDEX by_total ON bought(total)",
        "CREATE UNIQUE INDEX once",
    ),
    "\\d+ rich": ("View definition", "WHERE (id > 1)"),
    "\\dt+ cust*": ("database,schema,name,type,rows,comment", "main,customer,table,0,who buys"),
    "\\dv+ r*": ("main,rich,view",),
    "\\dn": ("name,is_default,owner", "main,true,"),
    "\\di": ("main,by_total,bought", "main,once,bought"),
    "\\di+ once": ("CREATE UNIQUE INDEX once ON bought(buyer, a)",),
    "\\dT": ("main,mood,\"ENUM('sad', 'ok')\"",),
    "\\df": ('main,added,,"x, y",macro', "main,numbered,,n,table macro"),
    "\\df abs": ("main,abs,BIGINT,x BIGINT,scalar",),
    "\\df+ numbered": ("range",),
    "\\sf added": ("CREATE OR REPLACE MACRO main.added(x, y) AS (x + y);",),
    "\\sf main.numbered": ("CREATE OR REPLACE MACRO main.numbered(n) AS TABLE SELECT",),
    ".schema bought": ("CREATE TABLE bought(a INTEGER", "CREATE INDEX by_total ON bought(total);"),
    "\\sv rich": ("CREATE VIEW rich AS SELECT",),
}
"""Commands, and what their output has; all of it is asked in one session, after KEYED."""


def _looked(out: str) -> dict[str, str]:
    return dict(zip(LOOKED, out.split("==\n")[1:], strict=True))


@pytest.mark.slow("runs the program twice")
@pytest.mark.parametrize("where", ["embedded", "served"])
def test_a_session_of_looking(program: Program, served: Served, where: str) -> None:
    env = served.environment if where == "served" else {}
    script = KEYED + "\n".join(f"\\echo ==\n{command}" for command in LOOKED) + "\n"
    done = program("-q", "--format", "csv", "--on-error", "continue", stdin=script, env=env)
    assert "error" not in done.err
    found = _looked(done.out)
    for command, wanted in LOOKED.items():
        for text in wanted:
            assert text in found[command], (command, text, found[command])
    if where == "served":
        clean = "drop view rich; drop table bought; drop table customer; drop sequence numbers; drop type mood;"
        clean += "drop macro added; drop macro table numbered; drop schema s2 cascade; drop database other;"
        assert program("-q", stdin=clean, env=env).code == 0


def test_people_see_what_stands_below_a_table(program: Program, tmp_path: Path) -> None:
    script = KEYED + "\\d bought\n\\d+ rich\n\\d+ customer\n"
    done = program("-q", stdin=script)
    assert "Table main.bought\n+-" in done.out
    for text in (
        "Keys:\n    PRIMARY KEY (a, b)\n",
        "Indexes:\n    by_total (total)\n    once UNIQUE (buyer, a)\n",
        "View definition:\n    CREATE VIEW rich AS SELECT",
        "Referenced by:\n    bought FOREIGN KEY (buyer) REFERENCES customer(id)\n",
        "Comment: who buys\n",
    ):
        assert text in done.out, (text, done.out)
    assert "View definition" not in done.out.partition("View main.rich")[0]


@pytest.mark.slow("runs the program twice")
def test_the_sql_of_a_schema_makes_it_again(program: Program) -> None:
    script = KEYED.partition("create schema")[0] + ".schema\n"
    made = program("-q", stdin=script)
    assert made.code == 0, made.err
    again = program("-q", "--format", "csv", stdin=made.out + "\\d+ bought\n\\d+ customer\n\\d rich\n")
    assert again.code == 0, again.err
    for text in ("by_total", "in full", "references customer(id)", "who buys"):
        assert text in again.out


@pytest.mark.slow("starts three services, runs the program three times")
def test_readers_and_writers_may_look(program: Program, tmp_path: Path) -> None:
    open_storage(tmp_path / "data").close()

    def made(role: str) -> str:
        done = program("serve", "--new-token", "--data", "data", "--role", role)
        assert done.code == 0, done.err
        return done.out.strip()

    tokens = [made(role) for role in ("reader", "writer")]
    service = serve(tmp_path, "--data", str(tmp_path / "data"))
    try:
        owner = {"SQLSHELL_URL": service.url, "SQLSHELL_TOKEN": service.token}
        assert program("-q", stdin=KEYED.partition("create database")[0], env=owner).code == 0
        commands = (
            "\\d",
            "\\d+ bought",
            "\\df",
            "\\df abs",
            "\\sf added",
            ".schema",
            "\\di+",
            "\\dT",
            "\\dt+",
            "\\l+",
            "\\dq+",
        )
        for token in tokens:
            env = owner | {"SQLSHELL_TOKEN": token}
            done = program("-q", "--format", "csv", "--on-error", "continue", stdin="\n".join(commands), env=env)
            assert done.code == 0, done.err
            assert "PRIMARY KEY(a, b)" in done.out
            assert "CREATE OR REPLACE MACRO" in done.out
    finally:
        stop(service)


OLD: Answers = {
    "list relations": (("name", "type"), [["orders", "table"], ["Big", "view"]]),
    "describe relation columns .*orders.*": (
        ("name", "type", "nullable"),
        [["id", "BIGINT", "false"], ["note", "VARCHAR", "true"]],
    ),
    "list functions": (("Name", "Signature"), [["twice", "twice(x BIGINT)"]]),
    "list queries": (
        ("Id", "Name", "CurrentState", "Owner", "CreatedOn"),
        [["q1", "first", "running", "ann", "2026-01-01"], ["q2", "second", "terminated", "bob", "2026-01-01"]],
    ),
}
"""What a service knows that has LIST and DESCRIBE alone."""


def test_a_service_that_knows_list_and_describe(program: Program) -> None:
    with few_words(OLD) as state:
        env = {"SQLSHELL_URL": state.url, "SQLSHELL_TOKEN": "t"}
        script = "\\dt\n\\d+ orders\n.schema orders\n\\df\n\\dq\n\\dq+\n"
        done = program("-q", "--format", "csv", stdin=script, env=env)
        assert done.code == 0, done.err
        assert "public,orders,table" in done.out
        assert "id,BIGINT,false\nnote,VARCHAR,true" in done.out
        assert "CREATE TABLE public.orders (\n  id BIGINT NOT NULL,\n  note VARCHAR\n);" in done.out
        assert "twice(x BIGINT)" in done.out
        assert "id,state,statement,owner,since\nq1,running,first,ann,2026-01-01\nId,Name" in done.out
        done = program("-q", "-c", "\\d ordrs", env=env)
        assert (done.code, 'did you mean "orders"?' in done.err) == (1, True)


def test_queries_that_run(program: Program, served: Served) -> None:
    env = served.environment
    slow = "select count(*) from range(100000) a, range(1000000) b"
    assert program("-q", "-c", f"{slow};&", env=env).code == 0
    done = program("-q", "--format", "csv", stdin="\\dq\n\\dq+\n\\cancel\n", env=env)
    now, _, all_ = done.out.partition("ID,Name,Version")
    lines = now.strip().split("\n")
    assert lines[0] == "id,state,statement,owner,since"
    assert sum(slow in line and ",operator," in line for line in lines[1:]) == 1, done.out
    assert not any("LIST QUERIES" in line for line in lines)
    assert "completed" in all_


def test_letters_stand_together(program: Program) -> None:
    made = "create table a as select 1 as i; create view b as from a; create sequence c;\n"
    script = made + "\\dtv\n\\dsvt\n\\dts b*\n\\a\n\\t\n\\dtvs c\n\\a\n\\pset format\n"
    done = program("-q", "--format", "csv", stdin=script)
    a, b, c = "main,a,table\n", "main,b,view\n", "main,c,sequence\n"
    head = "schema,name,type\n"
    unaligned = c.replace(",", "|")
    assert done.out == f"{head}{a}{b}{head}{a}{b}{c}{head}{unaligned}"
    assert done.err == "Format is table.\n"


def test_quoted_names_are_meant_exactly(program: Program) -> None:
    script = """create schema s2; create table s2."Mixed Case"(a int); create table "a.b"(x int);
create table plain(x int);
\\d s2."Mixed Case"
\\d "a.b"
\\dt "pl*"
\\dt "PLAIN"
\\dt PLAIN
\\set t a.b
\\d :"t"
\\d s2."mixed cases"
"""
    done = program("-q", "--on-error", "continue", stdin=script)
    assert done.out.count('Table main."a.b"') == 2
    assert done.out.count('Table s2."Mixed Case"') == 1
    assert done.out.count("| main     | plain  | table  |") == 1
    assert 'nothing matches "pl*"' in done.err
    assert 'nothing matches "PLAIN"' in done.err
    assert 'did you mean s2."Mixed Case"?' in done.err


@pytest.mark.slow("runs the program")
def test_entities_of_a_store_are_described(program: Program, served: Served, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file.csv").write_text("a,b\n1,x\n")
    env = served.environment
    store = f"create store looked with ('type' = 'files', 'uri' = '{tmp_path / 'folder'}');"
    script = f'{store}\nselect 1 from looked."file.csv";\n\\d looked."file.csv"\ndrop store looked;\n'
    done = program("-q", "--format", "csv", stdin=script, env=env)
    assert done.code == 0, done.err
    assert "name,type,nullable,default\na,BIGINT,true,\nb,VARCHAR,true,\n" in done.out


@pytest.mark.slow("runs the program twelve times")
def test_what_is_not_there(program: Program) -> None:
    done = program("-q", "-c", "create table orders (a int); \\d ordrs")
    assert done.code == 1
    assert "orders" in done.err
    assert "3D020" in done.err
    assert program("-q", "-c", "\\d a b").code == 2
    made = "create schema shop; create table shop.orders (a int); "
    for name in ("orders", "ordrs", "shoop.orders"):
        done = program("-q", "-c", f"{made}\\d {name}")
        assert 'did you mean "shop.orders"?' in done.err, done.err
    done = program("-q", "-c", f"{made}\\d")
    assert 'no relations in schema "main"; \\d shop.* lists the relations of schema "shop"' in done.err, done.err
    done = program("-q", "-c", "create sequence numbers; \\ds")
    assert "no stores; \\d lists sequences" in done.err, done.err
    assert "no indexes\n" in program("-q", "-c", "\\di").err
    assert "did you mean .tables?" in program("-q", "-c", ".tabels").err
    assert "did you mean \\quit?" in program("-q", "-c", "\\quti").err
    done = program("-q", "-c", "create macro twice(x) as x * 2", "-c", "\\sf twise")
    assert (done.code, 'did you mean "twice"' in done.err) == (1, True)
    done = program("-q", "--on-error", "continue", stdin="\\sf abs\n\\d nothing.at.all\n\\d no*\n.schema nope\n")
    assert done.code == 1
    assert "does not report the definition of abs" in done.err
    assert done.err.count("no relation matches") == 3, done.err


@pytest.mark.slow("runs the program ten times")
def test_a_served_service(program: Program, served: Served) -> None:
    env = served.environment
    made = program("-q", "-c", "create or replace table looked_at (a integer)", env=env)
    assert made.code == 0, made.err
    assert ",looked_at,table" in program("-q", "--format", "csv", "-c", "\\dt look*", env=env).out
    assert "a,INTEGER" in program("-q", "--format", "csv", "-c", "\\d looked_at", env=env).out
    for command in ("\\l", "\\dn", "\\ds", "\\df abs", "\\dp", "\\dr", "\\dq"):
        done = program("-q", "-c", command, env=env)
        assert done.code == 0, (command, done.err)


@pytest.mark.parametrize(
    ("pattern", "names", "matches"),
    [
        ("*", ("a",), True),
        ("ab?", ("abc",), True),
        ("ab?", ("ab",), False),
        ("AB*", ("abc",), True),
        ('"AB"', ("ab",), False),
        ('"AB"', ("AB",), True),
        ('"a*"', ("ab",), False),
        ('"a.b"', ("a.b",), True),
        ("s.t", ("d", "s", "t"), True),
        ("s.t", ("d", "x", "t"), False),
        ("*.t", ("d", "x", "t"), True),
        ("d.*.t", ("d", "x", "t"), True),
        ("d.s.t", ("s", "t"), False),
        ("s.", ("d", "s", "anything"), True),
        ("a+b", ("a+b",), True),
        ("a[b]", ("ab",), False),
        ('"it""s"', ('it"s',), True),
    ],
)
def test_patterns(pattern: str, names: tuple[str, ...], matches: bool) -> None:
    assert Pattern(pattern).matches(*names) is matches


def test_what_stands_below_the_columns(program: Program) -> None:
    script = (
        "create table t (a int primary key, b int check (b > 0));\n"
        "create index i on t(b);\ncreate index j on t(a, b);\n"
        "comment on table t is 'several\nlines';\n\\d+ t\n"
    )
    below = program("-q", "--format", "table", stdin=script).out.rpartition("+\n")[2]
    assert below == (
        "Keys:\n    PRIMARY KEY (a)\n"
        "Check constraints:\n    CHECK ((b > 0))\n"
        "Indexes:\n    i (b)\n    j (a, b)\n"
        "Comment: several\nlines\nRows: about 0\n"
    )


@pytest.mark.slow("runs the program twice")
def test_the_size_of_a_stored_table(program: Program, tmp_path: Path) -> None:
    script = "create table t as select i, 'note ' || i as s from range(300000) r(i);\ncheckpoint;\n"
    done = program("-q", "kept.duckdb", stdin=script)
    assert done.code == 0, done.err
    done = program("-q", "kept.duckdb", "-c", "create view v as from t", "-c", "\\d+ t", "-c", "\\d+ v", "-c", "\\d t")
    sizes = re.findall(r"Rows: about 300,000\nSize: about ([\d.]+) MB\n", done.out)
    assert len(sizes) == done.out.count("Size:") == 1
    assert 1 < float(sizes[0]) <= tmp_path.joinpath("kept.duckdb").stat().st_size / 1e6


@pytest.mark.slow("runs the program twice")
def test_people_see_types_as_in_the_header_of_a_table(program: Program) -> None:
    sql = "create table t(i int, d decimal(9, 2), l varchar[], s struct(\"A b\" int), e enum('X'))"
    done = program("-q", "-c", sql, "-c", "\\d t", "-c", "from t \\gdesc")
    types = re.findall(r"^\| [ildse] +\| (.*?) +\|", done.out, re.M)
    described = ["integer", "decimal(9,2)", "varchar[]"]
    assert types[:3] == described
    assert types[5:] == ["integer", "decimal(9,2)", "array<varchar>", 'struct<"A b" integer>', "enum"]
    # Names and values keep their case.
    assert "A b" in types[3]
    assert "'X'" in types[4]
    told = program("-q", "--format", "csv", "-c", sql, "-c", "\\d t", "-c", "from t \\gdesc").out
    assert "i,INTEGER,true,\n" in told
    assert "name,type,nullable\ni,INTEGER,true\n" in told


def test_the_rows_of_tables_are_numbers(program: Program) -> None:
    done = program("-q", "--format", "json", stdin="create table a as select 1 as i;\n\\dt+\n")
    assert '"rows":1,' in done.out
