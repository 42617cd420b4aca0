"""LIST ENGINE and DESCRIBE ENGINE on DuckDB, and what the commands of the shell make of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Program, Served
from tests.service.client import Client

MADE = """
create schema s;
create table s.cities (place varchar primary key);
create table s.orders (id integer primary key check (id > 0), city varchar default 'x' references s.cities (place),
    "Twice" bigint generated always as (id * 2));
create table s.items (o integer references s.orders (id));
create unique index "by city" on s.orders (city);
comment on table s.orders is 'all ''orders''';
comment on column s.orders.id is 'the key';
create view s.big as select 1 as a;
create sequence s.numbers maxvalue 9 increment 2;
create macro s.added(a, b) as a + b;
create macro s.counted(n) as table select n as m;
create type s.mood as enum ('sad', 'glad');
create table other (a integer);
use schema s;
create temp table t1 (a integer);
"""
ORDERS = """\
Table s.orders
name    type     null    default
------  -------  ------  ----------------------------------------------
id      integer  no
city    varchar          'x'
Twice   bigint           generated always as (CAST((id * 2) AS BIGINT))
"""
NOTES = """\
Keys:
    PRIMARY KEY (id)
Check constraints:
    CHECK ((id > 0))
Foreign keys:
    FOREIGN KEY (city) REFERENCES s.cities(place)
Indexes:
    "by city" UNIQUE (city)
Referenced by:
    items FOREIGN KEY (o) REFERENCES s.orders(id)
"""
MADE_ORDERS = """\
CREATE TABLE s.orders(id INTEGER PRIMARY KEY, city VARCHAR DEFAULT('x'), Twice BIGINT GENERATED ALWAYS AS((id * 2)), \
CHECK((id > 0)), FOREIGN KEY (city) REFERENCES s.cities(place));
CREATE UNIQUE INDEX "by city" ON s.orders(city);
COMMENT ON TABLE s.orders IS 'all ''orders''';
COMMENT ON COLUMN s.orders.id IS 'the key';
"""
TABLES: dict[str, str] = {
    "\\d orders": ORDERS + NOTES,
    "\\d ORD*": ORDERS + NOTES,
    "\\d s.orders": ORDERS + NOTES,
    "\\d+ orders": """\
Table s.orders
name    type     null    default                                         comment
------  -------  ------  ----------------------------------------------  ---------
id      integer  no                                                      the key
city    varchar          'x'
Twice   bigint           generated always as (CAST((id * 2) AS BIGINT))
"""
    + NOTES
    + "Comment: all 'orders'\nRows: about 0\n",
    "\\d numbers": """\
Sequence s.numbers
start    minimum    maximum    increment    cycles    last
-------  ---------  ---------  -----------  --------  ------
1        1          9          2            false
""",
    "\\d+ big": """\
View s.big
name    type
------  -------
a       integer
View definition:
    CREATE VIEW s.big AS SELECT 1 AS a;
""",
    "\\d t1": "Temporary table t1\nname    type\n------  -------\na       integer\n",
    "\\d memory.other": "Table main.other\nname    type\n------  -------\na       integer\n",
    "\\d": """\
schema    name     type
--------  -------  ---------------
s         big      view
s         cities   table
s         items    table
s         numbers  sequence
s         orders   table
main      t1       temporary table
""",
    "\\dtv main.*": """\
schema    name    type
--------  ------  ---------------
main      other   table
main      t1      temporary table
""",
    "\\di": "schema    name     table\n--------  -------  -------\ns         by city  orders\n",
    "\\dT": "schema    name    type\n--------  ------  -------------------\ns         mood    ENUM('sad', 'glad')\n",
    "\\df": """\
schema    name     result    arguments    type
--------  -------  --------  -----------  -----------
s         added              a, b         macro
s         counted            n            table macro
""",
    "\\sf counted": "CREATE OR REPLACE MACRO s.counted(n) AS TABLE SELECT n AS m;\n",
    "\\schema orders": MADE_ORDERS,
}
ROWS: dict[str, str] = {
    "\\d+ numbers": "start,minimum,maximum,increment,cycles,last\n1,1,9,2,false,\n",
    "\\d+ orders": """\
name,type,nullable,default,key,comment
id,INTEGER,false,,primary key,the key
city,VARCHAR,true,'x',references cities(place),
Twice,BIGINT,true,generated always as (CAST((id * 2) AS BIGINT)),,
what,name,definition
Keys,orders_id_pkey,PRIMARY KEY(id)
Check constraints,orders_id_check,CHECK((id > 0))
Foreign keys,orders_city_place_fkey,FOREIGN KEY (city) REFERENCES s.cities(place)
Indexes,"""
    '''"""by city""","CREATE UNIQUE INDEX ""by city"" ON s.orders(city);"
'''
    """Referenced by,items,FOREIGN KEY (o) REFERENCES s.orders(id)
Comment,"",all 'orders'
Rows,"",about 0
""",
    "\\d+ big": """\
name,type,nullable,default,key,comment
a,INTEGER,true,,,
what,name,definition
View definition,"",CREATE VIEW s.big AS SELECT 1 AS a;
""",
    "\\dt+ orders": "database,schema,name,type,rows,comment\nmemory,s,orders,table,0,all 'orders'\n",
    "\\df+ added": ('schema,name,result,arguments,type,description,definition\ns,added,,"a, b",macro,,(a + b)\n'),
}


def cut(text: str) -> str:
    """A text without the blanks at the ends of its lines, which no source file keeps."""
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


@pytest.mark.parametrize(("expected", "form"), [(TABLES, "table"), (ROWS, "csv")], ids=["for people", "for programs"])
def test_what_commands_show_of_relations(program: Program, expected: dict[str, str], form: str) -> None:
    argv = [part for command in expected for part in ("-c", f"\\echo === {len(command)}", "-c", command)]
    done = program(":memory:", "-q", "--format", form, "--table-style", "simple", "-c", MADE, *argv)
    shown = [text.partition("\n")[2] for text in done.out.split("=== ")[1:]]
    assert (done.code, done.err) == (0, "")
    assert dict(zip(expected, map(cut, shown), strict=True)) == expected


def test_a_relation_of_an_open_transaction_is_described(program: Program) -> None:
    made = ("-c", "begin", "-c", "create table inside (a int)", "-c", "\\d inside", "-c", "\\d nope")
    done = program(":memory:", "-q", "--format", "csv", "--on-error", "continue", *made, "-c", "select 1 as still")
    assert done.out == "name,type,nullable,default\na,INTEGER,true,\nstill\n1\n"
    assert 'error[3D020]: no relation matches "nope"' in done.err


def test_the_kind_of_a_relation_is_that_of_the_service(program: Program) -> None:
    done = program(
        *(":memory:", "-q", "--format", "csv", "-c", "create stream clicks (a int)", "-c", "\\dm"),
        *("-c", "\\d+ clicks", "-c", "\\schema clicks"),
    )
    assert done.out.startswith("schema,name,type\nmain,clicks,stream\nname,type")
    assert done.out.endswith("CREATE STREAM clicks(a INTEGER);\n")


def test_the_definition_of_a_table_in_a_file_has_its_size(program: Program, tmp_path: Path) -> None:
    sql = "create table big as select i, repeat('x', 50) as s from range(100_000) r(i); checkpoint"
    done = program(str(tmp_path / "d.db"), "-q", "-c", sql, "-c", "\\d+ big")
    assert done.code == 0
    assert "Rows: about 100,000\nSize: about " in done.out


@pytest.mark.parametrize(
    ("sql", "state"),
    [
        ("DESCRIBE ENGINE RELATION nope", "3D020"),
        ("DESCRIBE ENGINE FUNCTION SQL nope", "42883"),
        ("DESCRIBE ENGINE FUNCTION SQL abs", "42809"),
        ("LIST ENGINE PRIVILEGES", "0A000"),
    ],
)
def test_what_does_not_exist_is_an_error(served: Served, sql: str, state: str) -> None:
    with Client(served) as client:
        assert client.run(sql)["sqlState"] == state


def test_a_reader_lists_and_describes_too(served: Served) -> None:
    with Client(served) as client:
        client.run("CREATE TABLE shown (a INTEGER)")
        assert ["a", "INTEGER", "true", ""] in client.run("DESCRIBE ENGINE RELATION COLUMNS shown", role="reader")[
            "data"
        ]
        listed = client.run("LIST ENGINE RELATIONS", role="reader")["data"]
    assert [row[3] for row in listed if row[2] == "shown"] == ["table"]
