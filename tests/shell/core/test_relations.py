"""What \\d, \\d+, \\dt and \\schema print of relations, as a whole, in each way that a service describes them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping

import pytest

from sqlshell.context import SessionContext
from sqlshell.origin import Own
from sqlshell.result import Rows
from sqlshell.shell.commands import relations
from tests.shell.core.scripted import Core
from tests.shell.core.test_catalog_contents import Service, Table

LISTED: Table = (
    ["Database_Name", "Schema_Name", "Name", "Type"],
    [
        ["d", "s", "orders", "TABLE"],
        ["d", "s", "big", "VIEW"],
        ["d", "other", "far", "table"],
        ["e", "s", "away", "table"],
        ["d", "temp", "t1", "temporary_table"],
        ["d", "s", "Feed", "stream"],
        ["d", "s", "numbers", "sequence"],
    ],
)


def run(script: str, tables: Mapping[str, Table], form: str = "csv") -> Core:
    async def work() -> Core:
        core = Core(Service({"LIST RELATIONS": LISTED, **tables}), context=SessionContext(database="d", schema="s"))
        core.session.connection.service.transport.extensions = frozenset({"batch"})
        core.session.options.format, core.session.options.table_style = form, "simple"
        core.session.options.on_error = "continue"
        await core.shell.run_script([Own(f"{script}\n")], "")
        await core.shell.aclose()
        return core

    return asyncio.run(work())


def told(*rows: tuple[str, Mapping[str, object]]) -> Table:
    found: Rows = [[what, json.dumps(row)] for what, row in rows]
    return ["what", "told"], found


ORDERS = told(
    ("column", {"column_index": 2, "column_name": "city", "data_type": "VARCHAR", "column_default": "'x'"}),
    (
        "column",
        {"column_index": 1, "column_name": "id", "data_type": "INTEGER", "is_nullable": False, "comment": "the key"},
    ),
    (
        "column",
        {
            "column_index": 3,
            "column_name": "Twice",
            "data_type": "BIGINT",
            "is_generated": True,
            "generation_expression": "id * 2",
        },
    ),
    (
        "constraint",
        {
            "constraint_type": "FOREIGN KEY",
            "constraint_name": "fk",
            "constraint_text": "FOREIGN KEY (city) REFERENCES cities(name)",
            "constraint_column_names": ["city"],
            "referenced_table": "cities",
            "referenced_column_names": ["name"],
        },
    ),
    ("constraint", {"constraint_type": "CHECK", "constraint_name": "c", "constraint_text": "CHECK (id > 0)"}),
    (
        "constraint",
        {
            "constraint_type": "PRIMARY KEY",
            "constraint_text": "PRIMARY KEY (id)",
            "constraint_column_names": ["id"],
        },
    ),
    ("constraint", {"constraint_type": "NOT NULL", "constraint_text": "NOT NULL"}),
    ("index", {"index_name": "by city", "sql": 'CREATE UNIQUE INDEX "by city" ON s.orders(city);'}),
    ("referenced", {"table_name": "items", "constraint_text": "FOREIGN KEY (o) REFERENCES orders(id)"}),
    (
        "made",
        {
            "table_name": "orders",
            "sql": "CREATE TABLE s.orders(id INTEGER);",
            "comment": "all 'orders'",
            "estimated_size": 1234567,
            "table_oid": 5,
        },
    ),
)
BIG = told(
    ("column", {"column_index": 1, "column_name": "a", "data_type": "INTEGER"}),
    ("made", {"view_name": "big", "sql": "CREATE VIEW s.big AS\nSELECT 1 AS a;", "view_oid": 3}),
)
NUMBERS = told(
    (
        "sequence",
        {
            "sequence_name": "numbers",
            "start_value": 1,
            "min_value": 1,
            "max_value": 9,
            "increment_by": 2,
            "cycle": False,
            "last_value": None,
            "sql": "CREATE SEQUENCE numbers;",
        },
    )
)
CATALOG: dict[str, Table] = {
    "pragma_storage_info": (["bytes"], [["2621440"]]),
    "table_name = 'orders'": ORDERS,
    "table_name = 'big'": BIG,
    "sequence_name = 'numbers'": NUMBERS,
}

FEED = told(
    ("column", {"column_index": 1, "column_name": "k", "data_type": "VARCHAR"}),
    ("made", {"table_name": "Feed", "sql": "CREATE TABLE s.Feed(k VARCHAR)", "table_oid": 9}),
)
WHOLE: dict[str, Table] = {
    **CATALOG,
    "table_name = 'Feed'": FEED,
    "table_name = 't1'": told(
        ("column", {"column_index": 1, "column_name": "a", "data_type": "INTEGER", "comment": "it's"}),
        ("made", {"table_name": "t1", "sql": "CREATE TEMP TABLE t1(a INTEGER);", "table_oid": 2}),
    ),
}
STANDARD: dict[str, Table] = {
    "FROM information_schema.columns": (
        ["column_name", "data_type", "is_nullable", "column_default"],
        [["id", "integer", "NO", None], ["city", "text", "YES", "'x'"], ["short"]],
    ),
    "c.constraint_type, k.column_name": (
        ["name", "type", "column"],
        [["pk", "PRIMARY KEY", "id"], ["pk", "PRIMARY KEY", "city"], ["fk", "FOREIGN KEY", "city"]],
    ),
    "t.table_name, t.column_name": (["name", "table", "column"], [["fk", "Cities", "name"], ["fk", "Cities", "name"]]),
    "check_clause": (["name", "clause"], [["c1", "id > 0"], ["c2", "CHECK (id < 9)"], ["c3", "id IS NOT NULL"]]),
    "view_definition": (["definition"], []),
    "pg_indexes": (["name", "definition"], [["i", "CREATE INDEX i ON s.orders USING btree (city)"]]),
}
DESCRIBED: dict[str, Table] = {
    "DESCRIBE RELATION COLUMNS": (["name", "type", "nullable"], [["id", "INTEGER", "FALSE"], ["city", "VARCHAR"]]),
}


def cut(text: str) -> str:
    """A text without the blanks at the ends of its lines, which no source file keeps."""
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


@pytest.mark.parametrize(
    ("tables", "script", "form", "out", "err"),
    [
        pytest.param(
            WHOLE,
            "\\d orders",
            "csv",
            """\
name,type,nullable,default
id,INTEGER,false,
city,VARCHAR,true,'x'
Twice,BIGINT,true,generated always as (id * 2)
""",
            "",
            id="whole d orders csv",
        ),
        pytest.param(
            WHOLE,
            "\\d orders",
            "table",
            """\
Table s.orders
name    type     nullable    default
------  -------  ----------  ----------------------------
id      integer  not null
city    varchar              'x'
Twice   bigint               generated always as (id * 2)
Keys:
    PRIMARY KEY (id)
Check constraints:
    c CHECK (id > 0)
Foreign keys:
    fk FOREIGN KEY (city) REFERENCES cities(name)
Indexes:
    "by city" UNIQUE (city)
Referenced by:
    items FOREIGN KEY (o) REFERENCES orders(id)
""",
            "",
            id="whole d orders table",
        ),
        pytest.param(
            WHOLE,
            "\\d+ orders",
            "csv",
            """\
name,type,nullable,default,key,comment
id,INTEGER,false,,primary key,the key
city,VARCHAR,true,'x',references cities(name),
Twice,BIGINT,true,generated always as (id * 2),,
what,name,definition
Keys,"",PRIMARY KEY (id)
Check constraints,c,CHECK (id > 0)
Foreign keys,fk,FOREIGN KEY (city) REFERENCES cities(name)
Indexes,by city,"CREATE UNIQUE INDEX ""by city"" ON s.orders(city);"
Referenced by,items,FOREIGN KEY (o) REFERENCES orders(id)
Comment,"",all 'orders'
Rows,"","about 1,234,567"
Size,"",about 2.6 MB
""",
            "",
            id="whole d+ orders csv",
        ),
        pytest.param(
            WHOLE,
            "\\d+ orders",
            "table",
            """\
Table s.orders
name    type     nullable    default                       key                      comment
------  -------  ----------  ----------------------------  -----------------------  ---------
id      integer  not null                                  primary key              the key
city    varchar              'x'                           references cities(name)
Twice   bigint               generated always as (id * 2)
Keys:
    PRIMARY KEY (id)
Check constraints:
    c CHECK (id > 0)
Foreign keys:
    fk FOREIGN KEY (city) REFERENCES cities(name)
Indexes:
    "by city" UNIQUE (city)
Referenced by:
    items FOREIGN KEY (o) REFERENCES orders(id)
Comment: all 'orders'
Rows: about 1,234,567
Size: about 2.6 MB
""",
            "",
            id="whole d+ orders table",
        ),
        pytest.param(
            WHOLE,
            "\\d numbers",
            "csv",
            """\
start,minimum,maximum,increment,cycles,last
1,1,9,2,false,""
""",
            "",
            id="whole d numbers csv",
        ),
        pytest.param(
            WHOLE,
            "\\d numbers",
            "table",
            """\
Sequence s.numbers
start    minimum    maximum    increment    cycles    last
-------  ---------  ---------  -----------  --------  ------
1        1          9          2            false
""",
            "",
            id="whole d numbers table",
        ),
        pytest.param(
            WHOLE,
            "\\d big",
            "csv",
            """\
name,type,nullable,default
a,INTEGER,true,
""",
            "",
            id="whole d big csv",
        ),
        pytest.param(
            WHOLE,
            "\\d big",
            "table",
            """\
View s.big
name    type
------  -------
a       integer
""",
            "",
            id="whole d big table",
        ),
        pytest.param(
            WHOLE,
            "\\d+ big",
            "csv",
            """\
name,type,nullable,default,key,comment
a,INTEGER,true,,,
what,name,definition
View definition,"","CREATE VIEW s.big AS
SELECT 1 AS a;"
""",
            "",
            id="whole d+ big csv",
        ),
        pytest.param(
            WHOLE,
            "\\d+ big",
            "table",
            """\
View s.big
name    type
------  -------
a       integer
View definition:
    CREATE VIEW s.big AS
    SELECT 1 AS a;
""",
            "",
            id="whole d+ big table",
        ),
        pytest.param(
            WHOLE,
            "\\d ord*",
            "csv",
            """\
name,type,nullable,default
id,INTEGER,false,
city,VARCHAR,true,'x'
Twice,BIGINT,true,generated always as (id * 2)
""",
            "",
            id="whole d ord* csv",
        ),
        pytest.param(
            WHOLE,
            "\\d ord*",
            "table",
            """\
Table s.orders
name    type     nullable    default
------  -------  ----------  ----------------------------
id      integer  not null
city    varchar              'x'
Twice   bigint               generated always as (id * 2)
Keys:
    PRIMARY KEY (id)
Check constraints:
    c CHECK (id > 0)
Foreign keys:
    fk FOREIGN KEY (city) REFERENCES cities(name)
Indexes:
    "by city" UNIQUE (city)
Referenced by:
    items FOREIGN KEY (o) REFERENCES orders(id)
""",
            "",
            id="whole d ord* table",
        ),
        pytest.param(
            WHOLE,
            "\\d t1",
            "csv",
            """\
name,type,nullable,default
a,INTEGER,true,
""",
            "",
            id="whole d t1 csv",
        ),
        pytest.param(
            WHOLE,
            "\\d t1",
            "table",
            """\
Temporary table t1
name    type
------  -------
a       integer
""",
            "",
            id="whole d t1 table",
        ),
        pytest.param(
            WHOLE,
            "\\d e.s.away",
            "csv",
            "",
            """\
error[42601]: wrong
""",
            id="whole d e.s.away csv",
        ),
        pytest.param(
            WHOLE,
            "\\d e.s.away",
            "table",
            "",
            """\
error[42601]: wrong
""",
            id="whole d e.s.away table",
        ),
        pytest.param(
            WHOLE,
            "\\d",
            "csv",
            """\
schema,name,type
s,Feed,stream
s,big,view
s,numbers,sequence
s,orders,table
temp,t1,temporary table
""",
            "",
            id="whole d csv",
        ),
        pytest.param(
            WHOLE,
            "\\dt",
            "csv",
            """\
schema,name,type
s,orders,table
temp,t1,temporary table
""",
            "",
            id="whole dt csv",
        ),
        pytest.param(
            WHOLE,
            ".tables",
            "csv",
            """\
schema,name,type
s,Feed,stream
s,big,view
s,numbers,sequence
s,orders,table
temp,t1,temporary table
""",
            "",
            id="whole .tables csv",
        ),
        pytest.param(
            WHOLE,
            "\\dt big",
            "csv",
            "schema,name,type\ns,big,view\n",
            "",
            id="dt without a table",
        ),
        pytest.param(
            WHOLE,
            "\\dt+",
            "csv",
            """\
database,schema,name,type
d,s,orders,table
d,temp,t1,temporary table
""",
            "",
            id="whole dt+ csv",
        ),
        pytest.param(
            WHOLE,
            "\\dt *.*",
            "csv",
            """\
schema,name,type
other,far,table
s,orders,table
temp,t1,temporary table
s,away,table
""",
            "",
            id="whole dt *.* csv",
        ),
        pytest.param(
            WHOLE,
            "\\dtv",
            "csv",
            """\
schema,name,type
s,big,view
s,orders,table
temp,t1,temporary table
""",
            "",
            id="whole dtv csv",
        ),
        pytest.param(
            WHOLE,
            "\\dm",
            "csv",
            """\
schema,name,type
s,Feed,stream
""",
            "",
            id="whole dm csv",
        ),
        pytest.param(
            WHOLE,
            "\\dseq",
            "csv",
            """\
schema,name,type
s,numbers,sequence
""",
            "",
            id="whole dseq csv",
        ),
        pytest.param(
            WHOLE,
            "\\dv BIG",
            "csv",
            """\
schema,name,type
s,big,view
""",
            "",
            id="whole dv BIG csv",
        ),
        pytest.param(
            WHOLE,
            "\\d *.f*d",
            "csv",
            """\
name,type,nullable,default
k,VARCHAR,true,
""",
            "",
            id="whole d *.f*d csv",
        ),
        pytest.param(
            WHOLE,
            "\\schema",
            "csv",
            """\
CREATE SEQUENCE numbers;
CREATE TEMP TABLE t1(a INTEGER);
COMMENT ON COLUMN temp.t1.a IS 'it''s';
CREATE TABLE s.orders(id INTEGER);
CREATE UNIQUE INDEX "by city" ON s.orders(city);
COMMENT ON TABLE s.orders IS 'all ''orders''';
COMMENT ON COLUMN s.orders.id IS 'the key';
CREATE STREAM s.Feed(k VARCHAR);
CREATE VIEW s.big AS
SELECT 1 AS a;
""",
            "",
            id="whole schema csv",
        ),
        pytest.param(
            WHOLE,
            "\\schema o*",
            "csv",
            """\
CREATE TABLE s.orders(id INTEGER);
CREATE UNIQUE INDEX "by city" ON s.orders(city);
COMMENT ON TABLE s.orders IS 'all ''orders''';
COMMENT ON COLUMN s.orders.id IS 'the key';
""",
            "",
            id="whole schema o* csv",
        ),
        pytest.param(
            WHOLE,
            "\\d zzz",
            "csv",
            "",
            """\
error[3D020]: no relation matches zzz
help: \\d lists the relations of this schema, \\d *.* all
""",
            id="whole d zzz csv",
        ),
        pytest.param(
            WHOLE,
            "\\d fa",
            "csv",
            "",
            """\
error[3D020]: no relation matches fa
help: did you mean other.far?
""",
            id="whole d fa csv",
        ),
        pytest.param(
            WHOLE,
            "\\d z*",
            "csv",
            "",
            """\
error[3D020]: no relation matches z*
help: \\d lists the relations of this schema, \\d *.* all
""",
            id="whole d z* csv",
        ),
        pytest.param(
            WHOLE,
            "\\d order",
            "csv",
            "",
            """\
error[3D020]: no relation matches order
help: did you mean orders?
""",
            id="whole d order csv",
        ),
        pytest.param(
            WHOLE,
            "\\dv x",
            "table",
            "",
            """\
nothing matches x; \\d *.* lists the relations of all schemas
""",
            id="whole dv x table",
        ),
        pytest.param(
            WHOLE,
            "\\dm+ other.*",
            "table",
            "",
            """\
nothing matches other.*; \\d *.* lists the relations of all schemas
""",
            id="whole dm+ other.* table",
        ),
        pytest.param(
            WHOLE,
            "\\d other.*x",
            "table",
            "",
            """\
error[3D020]: no relation matches other.*x
help: \\d lists the relations of this schema, \\d *.* all
""",
            id="whole d other.*x table",
        ),
        pytest.param(
            STANDARD,
            "\\d orders",
            "table",
            """\
Table s.orders
name    type     nullable    default
------  -------  ----------  ---------
id      integer  not null
city    text                 'x'
Keys:
    pk PRIMARY KEY (id, city)
Check constraints:
    c1 CHECK (id > 0)
    c2 CHECK (id < 9)
Foreign keys:
    fk FOREIGN KEY (city) REFERENCES "Cities"(name)
Indexes:
    i USING btree (city)
""",
            "",
            id="standard d orders table",
        ),
        pytest.param(
            STANDARD,
            "\\d+ orders",
            "table",
            """\
Table s.orders
name    type     nullable    default    key
------  -------  ----------  ---------  --------------------------------------
id      integer  not null               primary key
city    text                 'x'        primary key, references "Cities"(name)
Keys:
    pk PRIMARY KEY (id, city)
Check constraints:
    c1 CHECK (id > 0)
    c2 CHECK (id < 9)
Foreign keys:
    fk FOREIGN KEY (city) REFERENCES "Cities"(name)
Indexes:
    i USING btree (city)
""",
            "",
            id="standard d+ orders table",
        ),
        pytest.param(
            STANDARD,
            "\\schema orders",
            "table",
            """\
CREATE TABLE s.orders (
  id integer NOT NULL,
  city text DEFAULT 'x',
  PRIMARY KEY (id, city),
  FOREIGN KEY (city) REFERENCES "Cities"(name),
  CHECK (id > 0),
  CHECK (id < 9)
);
CREATE INDEX i ON s.orders USING btree (city);
""",
            "",
            id="standard schema orders table",
        ),
        pytest.param(
            STANDARD,
            "\\schema big",
            "table",
            """\
CREATE VIEW s.big (
  id integer NOT NULL,
  city text DEFAULT 'x',
  PRIMARY KEY (id, city),
  FOREIGN KEY (city) REFERENCES "Cities"(name),
  CHECK (id > 0),
  CHECK (id < 9)
);
CREATE INDEX i ON s.orders USING btree (city);
""",
            "",
            id="standard schema big table",
        ),
        pytest.param(
            STANDARD,
            "\\d+ orders",
            "csv",
            """\
name,type,nullable,default,key,comment
id,integer,false,,primary key,
city,text,true,'x',"primary key, references ""Cities""(name)",
what,name,definition
Keys,pk,"PRIMARY KEY (id, city)"
Check constraints,c1,CHECK (id > 0)
Check constraints,c2,CHECK (id < 9)
Foreign keys,fk,"FOREIGN KEY (city) REFERENCES ""Cities""(name)"
Indexes,i,CREATE INDEX i ON s.orders USING btree (city)
""",
            "",
            id="standard d+ orders csv",
        ),
        pytest.param(
            DESCRIBED,
            "\\d orders",
            "table",
            """\
Table s.orders
name    type     nullable
------  -------  ----------
id      integer  not null
city    varchar
""",
            "",
            id="described d orders table",
        ),
        pytest.param(
            DESCRIBED,
            "\\d+ orders",
            "table",
            """\
Table s.orders
name    type     nullable
------  -------  ----------
id      integer  not null
city    varchar
""",
            "",
            id="described d+ orders table",
        ),
        pytest.param(
            DESCRIBED,
            "\\schema orders",
            "table",
            """\
CREATE TABLE s.orders (
  id INTEGER NOT NULL,
  city VARCHAR
);
""",
            "",
            id="described schema orders table",
        ),
        pytest.param(
            DESCRIBED,
            "\\schema big",
            "table",
            """\
CREATE VIEW s.big (
  id INTEGER NOT NULL,
  city VARCHAR
);
""",
            "",
            id="described schema big table",
        ),
        pytest.param(
            DESCRIBED,
            "\\d+ orders",
            "csv",
            """\
name,type,nullable
id,INTEGER,false
city,VARCHAR,
""",
            "",
            id="described d+ orders csv",
        ),
    ],
)
def test_what_is_printed(tables: Mapping[str, Table], script: str, form: str, out: str, err: str) -> None:
    core = run(script, tables, form)
    assert (cut(core.out), cut(core.err)) == (out, err)


@pytest.mark.parametrize(("most", "err"), [(3, ""), (2, "error: o* matches 3 relations; \\d describes at most 2")])
def test_few_relations_are_described(monkeypatch: pytest.MonkeyPatch, most: int, err: str) -> None:
    monkeypatch.setattr(relations, "MOST_DESCRIBED", most)
    listed: Table = (["name", "type"], [["o1", "table"], ["o2", "table"], ["o3", "table"], ["x", "table"]])
    core = run("\\d o*", {"LIST RELATIONS": listed, **DESCRIBED})
    assert core.err.partition("\n")[0] == err
    assert core.err.endswith("help: use a narrower pattern\n" if err else "")
    assert core.out.count("name,type,nullable\n") == (0 if err else 3)
