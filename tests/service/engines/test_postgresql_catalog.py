"""The catalog commands of the shell on PostgreSQL: what psql and pg_dump tell of the same objects."""

from __future__ import annotations

import asyncio
import subprocess

import pytest

from tests.cases import texts
from tests.conftest import Program
from tests.service.postgresql import database
from tests.service.postgresql import program as server_program

pytestmark = pytest.mark.usefixtures("postgresql_server")

TYPES = (
    "create type mood as enum ('sad', 'o''k'); create domain positive as int not null default 1 check (value > 0); "
    'create type pair as (a int, "B c" text); create schema app; '
    "create function fire() returns trigger language plpgsql as $$ begin return new; end $$;\n"
)
TABLES = r"""
create table parent (id int generated always as identity (start 10) primary key,
  name varchar(20) not null default 'x' collate "C", total numeric(12,2),
  doubled numeric generated always as (total * 2) stored,
  m mood default 'sad', p positive, tags text[] default '{}', constraint more check (total > 0),
  unique (name, total)) with (fillfactor=70);
create table child (id serial primary key, parent_id int not null references parent(id) on delete cascade on update
  set null deferrable initially deferred, j jsonb);
create index child_j on child using gin (j);
create unique index child_low on child (lower(j::text)) where parent_id > 3;
create table app.part (d date not null, v int check (v > 0), primary key (d, v)) partition by range (d);
create table app.part_2024 partition of app.part for values from ('2024-01-01') to ('2025-01-01') partition by hash (v);
create table app.part_2024_0 partition of app.part_2024 for values with (modulus 2, remainder 0);
create index part_v on app.part (v);
alter table app.part add foreign key (v) references parent(id) on delete cascade;
alter table app.part_2024 add foreign key (v) references child(id);
alter table app.part add constraint few check (v < 100) not valid;
create view v as select id, name from parent where total > 1;
create view app.barred with (security_barrier) as select 1 as one, 'x'::text as "Two";
create materialized view mv as select name, count(*) as n from parent group by name with no data;
create unique index on mv (name);
create sequence sq as smallint start 5 increment 2 maxvalue 99 cycle;
create trigger fires before update of name on parent for each row when (new.total > 0) execute function fire();
alter table parent disable trigger fires;
alter table parent cluster on parent_pkey;
alter table child enable row level security;
create policy pol on child for select using (parent_id > 0);
create rule keeps as on delete to child do instead nothing;
create statistics st on name, total from parent;
create unlogged table base (a int);
create table derived (extra int) inherits (base);
alter table derived alter a set default 3;
alter table base add constraint small check (a < 9) not valid;
alter table derived add constraint big check (a > 1 and extra > 1) not valid;
comment on constraint big on derived is 'later';
alter table child alter column j set storage external, alter column j set statistics 200;
create table a1 (id int primary key, b int);
create table b1 (id int primary key, a int references a1);
alter table a1 add constraint fk_b foreign key (b) references b1(id) match full on delete set null not valid;
alter table a1 replica identity full;
create table of_pair of pair (a with options default 5 not null, primary key (a));
create table "we""ird.n" ("x.y" int default 1, "a""b" text check ("a""b" <> ';'));
comment on table parent is 'It''s the parent';
comment on column parent.name is 'the name';
comment on index child_j is 'gin';
comment on constraint more on parent is 'positive';
comment on trigger fires on parent is 'fires';
comment on view app.barred is E'two\nlines \\ x';
comment on sequence sq is 'seq';
comment on materialized view mv is 'm';
"""


def dumped(url: str) -> list[str]:
    argv = [server_program("pg_dump"), "-s", "-O", "-x", "-t", "public.*", "-t", "app.*", url]
    text = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    # A word that differs each time.
    return [line for line in text.splitlines() if "restrict" not in line]


def test_schema_creates_the_same_relations_as_the_script_of_pg_dump(
    program: Program, postgresql_server: str, postgresql_database: str
) -> None:
    assert program(postgresql_database, "-q", stdin=TYPES + TABLES).code == 0
    made = program(postgresql_database, "-q", "-c", "\\schema *.*")
    assert (made.code, made.err) == (0, "")
    with database(postgresql_server) as other:
        assert program(other, "-q", stdin=TYPES).code == 0
        done = program(other, "-q", stdin=made.out)
        assert (done.code, done.err) == (0, "")
        assert dumped(other) == dumped(postgresql_database)


def test_a_table_is_described_as_in_psql(program: Program, postgresql_database: str) -> None:
    assert program(postgresql_database, "-q", stdin=TYPES + TABLES).code == 0
    done = program(postgresql_database, "-c", "\\d parent", "-c", "\\d+ app.part", "-c", "\\d app.part_2024_0")
    assert (done.code, done.err) == (0, "")
    for line in (
        "Table public.parent",
        "    parent_pkey PRIMARY KEY, btree (id) CLUSTER",
        "    parent_name_total_key UNIQUE CONSTRAINT, btree (name, total)",
        "    more CHECK (total > 0::numeric)",
        "    TABLE child CONSTRAINT child_parent_id_fkey FOREIGN KEY (parent_id) REFERENCES parent(id) "
        "ON UPDATE SET NULL ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED",
        "Disabled user triggers:",
        "Partitioned table app.part",
        "Partition key: RANGE (d)",
        "    app.part_2024 FOR VALUES FROM ('2024-01-01') TO ('2025-01-01'), PARTITIONED",
        "Partition of: app.part_2024 FOR VALUES WITH (modulus 2, remainder 0)",
    ):
        assert line in done.out.splitlines(), done.out
    assert "generated always as (total * 2::numeric) stored" in done.out


def test_partitions_tell_what_they_inherit(program: Program, postgresql_database: str) -> None:
    script = (
        "create table c (id int primary key);\ncreate schema s;\n"
        "create table s.o (d date primary key, a int references c) partition by range (d);\n"
        "create table s.o1 partition of s.o for values from ('2024-01-01') to ('2025-01-01');\n"
        "alter table s.o1 add foreign key (a) references c;\ncreate table r (d date references s.o);\n"
        "create index oa on s.o (a);\n"
    )
    assert program(postgresql_database, "-q", stdin=script).code == 0
    for described, parts in (
        (
            "\\d s.o1",
            (
                "Foreign-key constraints:\n    o1_a_fkey FOREIGN KEY (a) REFERENCES c(id)\n"
                "    TABLE s.o CONSTRAINT o_a_fkey FOREIGN KEY (a) REFERENCES c(id)\nReferenced by:\n"
                "    TABLE r CONSTRAINT r_d_fkey FOREIGN KEY (d) REFERENCES s.o(d)\n",
            ),
        ),
        ("\\d s.oa", ("Number of partitions: 1 (\\d+ lists them)\n",)),
        ("\\d+ s.oa", ("Partitions:\n    s.o1_a_idx\n",)),
        ("\\d+ s.o1_a_idx", ("\nPartition of: s.oa\nIndex: btree, for table s.o1\n",)),
        ("\\d+ r", ("\n    r_d_fkey FOREIGN KEY (d) REFERENCES s.o(d)\nAccess method",)),
    ):
        done = program(postgresql_database, "-c", described)
        assert [part for part in parts if part not in done.out] == [], done.out
    listed = program(postgresql_database, "--format", "csv", "-c", "\\di s.o*")
    assert listed.out.splitlines()[:4] == [
        "schema,name,type,owner,table",
        "s,o1_a_idx,index,postgres,o1",
        "s,o1_pkey,index,postgres,o1",
        "s,o_pkey,partitioned index,postgres,o",
    ], listed.out


COMMANDS = texts("postgresql", "commands")
"""Commands, each with a part of what it writes."""


def test_commands_tell_what_the_server_has(program: Program, postgresql_catalog: str) -> None:
    script = "".join(f"{command}\n\\echo ----\n" for command, _ in COMMANDS)
    done = program(postgresql_catalog, stdin=script)
    assert (done.code, done.err) == (0, "")
    written = done.out.split("----\n")
    assert [command for (command, told), out in zip(COMMANDS, written, strict=False) if told not in out] == []
    assert len(written) == len(COMMANDS) + 1


def test_the_types_of_arguments_select_a_function(program: Program, postgresql_database: str) -> None:
    made = "".join(
        f"create function {name} returns int language sql as 'select {number}';\n"
        for number, name in enumerate(("f(a int)", "f(a text, b numeric)", '"F g"(a text)'))
    )
    assert program(postgresql_database, stdin=made).code == 0
    cases = {
        "f(int)": ["public.f(a integer)"],
        "public.f( text, numeric(10,2) );": ["public.f(a text, b numeric)"],
        '"F g"(text)': ['public."F g"(a text)'],
        "f": ["public.f(a integer)", "public.f(a text, b numeric)"],
    }
    for given, expected in cases.items():
        done = program(postgresql_database, "-q", "-c", f"\\sf {given}")
        found = [line.removeprefix("CREATE OR REPLACE FUNCTION ") for line in done.out.splitlines() if "CREATE" in line]
        assert (done.code, found) == (0, expected), done
    for given, said in {"f(bool)": "function f(bool) does not exist", "f(int": 'no function matches "f(int'}.items():
        done = program(postgresql_database, "-q", "-c", f"\\sf {given}")
        assert done.code == 1 and said in done.err


def test_the_options_of_a_foreign_table_are_those_that_psql_shows(program: Program, postgresql_database: str) -> None:
    script = (
        "create foreign data wrapper w;\ncreate server s foreign data wrapper w;\n"
        "create foreign table ft (a int options (column_name 'A''x', \"Key\" 'v'), b int) server s options (t 'x');\n"
        "\\d ft\n\\d+ ft\n"
    )
    done = program(postgresql_database, "-q", "--format", "csv", stdin=script)
    assert (done.code, done.err) == (0, "")
    short, details = done.out.split("name,type,")[1:]
    assert short.startswith("nullable,default,collation,FDW options\na,integer,true,,,")
    assert details.startswith("nullable,default,collation,FDW options,key,storage,")
    for each in (short, details):
        assert """,,,"(column_name 'A''x', ""Key"" 'v')\"""" in each and "\nb,integer,true,,," in each
    people = program(postgresql_database, "-q", "-c", "\\d ft").out
    assert "Server: s\nFDW options: (t 'x')\n" in people


def test_policies_are_those_that_psql_shows(program: Program, postgresql_database: str) -> None:
    script = (
        "create table t (a int, b text);\ncreate policy p1 on t as restrictive for update to pg_monitor, postgres "
        "using (a > 1) with check (b <> 'x');\ncreate policy p2 on t for insert with check (a > 2);\n"
        "create policy p3 on t using (true);\n"
    )
    assert program(postgresql_database, "-q", stdin=script).code == 0
    done = program(postgresql_database, "--format", "unaligned", "-t", "-c", "\\dp t")
    argv = [server_program("psql"), "-X", "-A", "-t", "-c", "\\dp t", postgresql_database]
    shown = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    assert "p1 (RESTRICTIVE) (w):\n  (u): (a > 1)\n" in shown
    assert done.out == shown


@pytest.fixture(scope="module")
def postgresql_catalog(postgresql_server: str) -> object:
    """The URL of a database with all these objects, which tests only read."""
    with database(postgresql_server) as url:
        argv = ["psql", "-q", "-X", "-v", "ON_ERROR_STOP=1", url]
        subprocess.run([server_program("psql") or argv[0], *argv[1:]], input=TYPES + TABLES, check=True, text=True)
        yield url


def test_a_pattern_may_begin_with_the_database(program: Program, postgresql_catalog: str) -> None:
    database_name = postgresql_catalog.partition("?")[0].rpartition("/")[2]
    done = program(postgresql_catalog, "--format", "csv", "-c", f"\\dt {database_name}.app.part*")
    assert done.out.splitlines()[1:] and all(line.startswith("app,part") for line in done.out.splitlines()[1:]), done
    assert len(program(postgresql_catalog, "--format", "csv", "-c", "\\dt other.app.*").out.splitlines()) == 1


def test_what_a_transaction_has_created_is_described(program: Program, postgresql_database: str) -> None:
    script = (
        "begin;\ncreate temp table passing (a int not null);\ncreate table made (b text);\n\\d passing\n\\d made\n"
        "\\schema passing\n\\d nowhere\ncommit;\nselect 'committed' as done;\n"
    )
    done = program(postgresql_database, "-q", "--format", "csv", "--on-error", "continue", stdin=script)
    assert "a,integer,false,," in done.out and "b,text,true,," in done.out
    assert "CREATE TEMPORARY TABLE passing (\n    a integer NOT NULL\n);" in done.out
    assert 'no relation matches "nowhere"' in done.err and done.out.endswith("done\ncommitted\n")


def test_sample_data_is_refused(program: Program, postgresql_database: str) -> None:
    done = program(postgresql_database, "-c", "\\demo")
    assert done.code != 0 and "this is PostgreSQL" in done.err


def test_completion_knows_what_the_server_has(postgresql_catalog: str) -> None:
    from sqlshell.context import SessionContext
    from sqlshell.dbapi import connect
    from sqlshell.shell.metadata.catalog_loader import CatalogLoader
    from sqlshell.sql.completion.catalog import Catalog
    from sqlshell.sql.completion.suggestions import Place, suggestions

    async def load() -> Catalog:
        loaded = asyncio.Event()
        client = connection._session._client
        loader = CatalogLoader(client, SessionContext, "", None, changed=loaded.set, engine=lambda: "postgresql")
        loader.begin()
        await loaded.wait()
        await loader.aclose()
        return loader.catalog

    with connect(postgresql_catalog) as connection:
        catalog = connection._loop.run(load())
    contents = catalog.contents
    assert [(column.name, column.type) for column in catalog.columns(["mv"], "", "public")] == [
        ("name", "character varying(20)"),
        ("n", "bigint"),
    ]
    functions = {item.name: item.signature for item in contents.functions}
    assert functions["pg_sleep"] == "(double precision) -> void" and "fire" in functions
    assert "sq" in contents.names["sequence"] and "child_low" in contents.names["index"]
    types = {item.text for item in suggestions("create table t (a t", 19, Place(catalog, "", "public"))[1]}
    assert {"timestamp with time zone", "text"} <= types and not types & {"tinyint", "timestamp_ltz"}
    assert "date_format" not in catalog.signatures()
    assert {"mood", "pair"} <= {*contents.names["user type"]} and "app" in contents.names["schema"]
    assert any(item.columns == ["parent_id"] and item.target_columns == ["id"] for item in contents.keys)
    assert not catalog.relation(["sq"], "", "public")
