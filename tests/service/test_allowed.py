"""The functions that each role may call: a new function of DuckDB is refused until it is listed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from sqlshell.interface import sqlstate
from sqlshell.service.engines.duckdb.connection import DuckdbConnection
from sqlshell.service.engines.duckdb.failures import failure
from sqlshell.service.engines.duckdb.instance import DuckdbEngine
from sqlshell.service.engines.duckdb.rights import functions
from sqlshell.service.engines.duckdb.rights.binding import Binder
from sqlshell.service.engines.duckdb.rights.statement_checker import PLANNED
from sqlshell.service.engines.engine import Limits, RunOptions
from sqlshell.service.failure import Failure
from sqlshell.service.results.results import Discard, Spool
from sqlshell.service.rights import Rights

ALLOWED = {
    "scalar": functions.OPERATORS | functions.VALUES | functions.SESSION | functions.SEQUENCES,
    "macro": functions.VALUES | functions.SESSION,
    "aggregate": functions.AGGREGATES,
    "window": functions.WINDOWS,
    "table": functions.TABLES | functions.CATALOG,
    "table_macro": functions.TABLES,
    "pragma": frozenset[str](),
}
"""For each kind of function, those that may be called. Pragmas cannot be: PRAGMA is refused as a statement."""

REACHING = """
    add_parquet_key arrow_scan arrow_scan_dumb checkpoint copy_database create_external_resource current_query
    current_setting deregister_external_resource destroy_external_resource disable_logging duckdb_extensions
    duckdb_external_file_cache duckdb_logs duckdb_prepared_statements duckdb_secrets duckdb_settings
    duckdb_temporary_files enable_logging enable_profiling force_checkpoint glob import_database index_key
    json_execute_serialized_sql json_serialize_plan pandas_scan parquet_metadata parquet_scan pragma_database_size
    pragma_storage_info python_arrow_scan python_map_function query query_table read_blob read_csv read_csv_auto
    read_duckdb read_json read_json_objects read_ndjson read_parquet read_text register_external_resource
    reservoir_quantile seq_scan sniff_csv to_aggregate_state truncate_duckdb_logs which_secret write_log
""".split()  # noqa: SIM905
"""Functions that read files or settings, run SQL from a string, take pointers or names of aggregates, or write outside
the databases."""

STATEMENTS = {
    "ALTER": ("alter table t add column z int", "OBJECTS"),
    "ANALYZE": ("", "never"),
    "ATTACH": ("attach ':memory:' as x", "never"),
    "CALL": ("call range(1)", "never"),
    "COPY": ("copy t to 'x.csv'", "never"),
    "COPY_DATABASE": ("", "never"),
    "CREATE": ("create table made (i int)", "OBJECTS"),
    "CREATE_FUNC": ("", "never"),
    "DELETE": ("delete from t", "DATA"),
    "DETACH": ("detach local", "never"),
    "DROP": ("drop table if exists made", "OBJECTS"),
    "EXECUTE": ("execute x", "never"),
    "EXPLAIN": ("explain select 1", "READ"),
    "EXPORT": ("export database 'x'", "never"),
    "EXTENSION": ("", "never"),
    "INSERT": ("insert into t values (1, 'x')", "DATA"),
    "INVALID": ("", "never"),
    "LOAD": ("load json", "never"),
    "LOGICAL_PLAN": ("", "never"),
    "MERGE_INTO": ("merge into t using t u on t.a = u.a when matched then delete", "DATA"),
    "MULTI": ("pivot t on b using sum(a)", "READ"),
    "PRAGMA": ("pragma version", "never"),
    "PREPARE": ("prepare x as select 1", "never"),
    "RELATION": ("", "never"),
    "SELECT": ("from t", "READ"),
    "SET": ("set timezone = 'UTC'", "READ"),
    "TRANSACTION": ("begin", "READ"),
    "UPDATE": ("update t set a = 2", "DATA"),
    "VACUUM": ("vacuum", "OBJECTS"),
    "VARIABLE_SET": ("", "never"),
}
"""Each type of statement: one of that type, "" where no SQL gives it, and the least rights for it."""

KINDS = sorted(name for name in vars(duckdb.StatementType) if name.isupper())
FUNCTIONS = duckdb.execute(
    "SELECT DISTINCT function_type, lower(function_name) FROM duckdb_functions() WHERE internal ORDER BY ALL"
).fetchall()


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckdbEngine]:
    folder = tmp_path_factory.mktemp("allowed")
    made = DuckdbEngine(temporary=folder)
    made.lock(folder, {"local": folder / "local.data"}, Limits(threads=1))
    run(made.connect(), "create table t as select 1 as a, 'x' as b")
    yield made
    made.close()


def run(connection: DuckdbConnection, sql: str, rights: Rights = Rights.OBJECTS) -> str:
    try:
        connection.run(sql, RunOptions(rights=rights), Discard())
    except Failure as failure:
        return f"{failure.sql_state} {failure.message}"
    return "00000"


def test_every_function_is_allowed_or_refused_for_a_reason() -> None:
    names = {name for kind, name in FUNCTIONS if not name.startswith(functions.COLLATIONS)}
    for kind, name in FUNCTIONS:
        assert kind in ALLOWED, f"a kind of function that nobody knows: {kind} {name}"
    told = frozenset().union(*ALLOWED.values())
    assert not told & set(REACHING)
    assert set(REACHING) <= names, sorted(set(REACHING) - names)
    assert told - names <= {"row"}, "no longer there, or never was"


def test_a_function_that_is_not_known_is_refused_by_its_name(engine: DuckdbEngine) -> None:
    connection = engine.connect()
    for kind, name in FUNCTIONS:
        known = name in ALLOWED[kind] or name.startswith(functions.COLLATIONS)
        if known or kind == "pragma" or any(name in names for names in ALLOWED.values()):
            continue
        quoted = f'"{name}"'
        sql = f"select * from {quoted}()" if kind.startswith("table") else f"select {quoted}()"
        for rights in (Rights.READ, Rights.OBJECTS):
            assert run(connection, sql, rights) == f"42501 function {name} is not allowed on this service", sql


@pytest.mark.parametrize("kind", KINDS)
def test_every_type_of_statement_has_its_least_rights(engine: DuckdbEngine, kind: str) -> None:
    assert kind in STATEMENTS, "DuckDB has a new type of statement: it is refused until somebody looks at it"
    sql, least = STATEMENTS[kind]
    assert (kind in PLANNED or kind in {"EXPLAIN", "MULTI"}) or least == "never"
    if not sql:
        return
    for rights in Rights:
        connection = engine.connect()
        run(connection, "begin")
        found = [item.type.name for item in connection._connection.extract_statements(sql)]
        assert found == [kind]
        answer = run(connection, sql, rights) if kind != "TRANSACTION" else run(engine.connect(), sql, rights)
        run(connection, "rollback")
        connection.close()
        allowed = least != "never" and rights >= Rights[least]
        assert answer == "00000" if allowed else answer.startswith("42501"), (kind, rights, answer)


def test_what_duckdb_takes_for_blanks_hides_nothing(engine: DuckdbEngine) -> None:
    connection = engine.connect()
    blanks = {chr(number) for number in range(0x10000) if chr(number).isspace()}
    for sign in blanks | set("\0\u180e\u200b\u200c\u200d\u200e\u2060\u2063\ufeff"):
        for sql in (
            f"{sign}delete{sign}from{sign}t",
            f"with x as (delete{sign}from t returning 1) select 1",
            f"explain{sign}analyze{sign}delete{sign}from t",
            f"select * from query{sign}('from t')",
            f"with x as (copy{sign}(select 1) to 'x') select 1",
        ):
            state = run(connection, sql, Rights.READ)[:5]
            assert state in {"42501", "42601", "42883"}, (sign, sql, state)
    assert connection._connection.execute("select count(*) from t").fetchone() == (1,)


def test_binding_for_a_reader_advances_no_sequence(engine: DuckdbEngine) -> None:
    owner, reader = engine.connect(), engine.connect()
    run(owner, "create or replace sequence s")
    run(owner, "create or replace macro plus(x) as x + 1")
    run(owner, "create or replace macro series(x) as table from range(x)")
    run(owner, "create or replace macro counted(x) as (select count(*) from range(x))")
    for sql in (
        "select nextval('s')",
        "from range(nextval('s'))",
        "select plus(nextval('s'))",
        "from series(nextval('s'))",
        "select counted(nextval('s'))",
        "select * from t limit (select nextval('s'))",
        "describe select * from range(nextval('s'))",
        "explain from range(nextval('s'))",
        "pivot range(nextval('s')) on range using count(*)",
        "select setval('s', 9)",
        "set variable x = (select nextval('s'))",
        "set variable x = (from range(nextval('s')))",
        "from query('from range(nextval(''s''))')",
        "select json_serialize_plan('from range(nextval(''s''))')",
        "with x as (from range(nextval('s'))) select 1",
        "merge into t using range(nextval('s')) on false when matched then delete",
        "create table made as from range(nextval('s'))",
        "create temp table made as from range(nextval('s'))",
        "create type made as enum (select range::varchar from range(nextval('s')))",
        "create table made (i int default (select count(*) from range(nextval('s'))))",
        "alter table t alter a type int using (select count(*) from range(nextval('s')))",
        "create macro made() as table from range(nextval('s'))",
    ):
        assert run(reader, sql, Rights.READ).startswith("42501"), sql
        assert run(reader, "begin", Rights.READ) == "00000"
        assert run(reader, sql, Rights.READ).startswith("42501"), sql
        assert run(reader, "commit", Rights.READ) == "00000"
    found = owner._connection.execute("select last_value from duckdb_sequences() where sequence_name = 's'").fetchone()
    assert found == (None,)
    for sql in (
        "create view held as from range(nextval('s'))",
        "create view held as select nextval('s')",
        "create macro held() as nextval('s')",
        "create macro held() as table from range(nextval('s'))",
    ):
        assert run(owner, sql).startswith("42501"), sql


@pytest.mark.parametrize("name", ["json_serialize_plan", "JSON_Serialize_SQL", "current_setting", "concat", "read_csv"])
@pytest.mark.parametrize("made", ["macro", "temp macro", "or replace function"])
def test_no_macro_takes_the_place_of_a_function(engine: DuckdbEngine, name: str, made: str) -> None:
    for rights in (Rights.DATA, Rights.OBJECTS):
        assert run(engine.connect(), f"create {made} {name}(x, optimize := false) as 'x'", rights).startswith("42501")


@pytest.mark.parametrize(
    "sql",
    [
        "create type json as integer",
        "create temp type Json as integer",
        "create table duckdb_columns (i int)",
        "create temp table duckdb_tables as select 1 as i",
        "create or replace view Sqlite_Master as select 1 as i",
        "alter table plain rename to duckdb_columns",
        "alter view seen rename to duckdb_schemas",
    ],
)
def test_nothing_takes_the_place_of_what_the_service_asks(engine: DuckdbEngine, sql: str) -> None:
    connection = engine.connect()
    run(connection, "create or replace table plain (i int)")
    run(connection, "create or replace view seen as select 1 as i")
    answer = run(connection, sql)
    assert answer.startswith("42501") and "DuckDB's own" in answer
    assert run(connection, "select [1.5::double]") == "00000"
    assert engine.exists(("local", "main", "plain"))


def test_a_database_opens_again_behind_a_changed_type(tmp_path: Path) -> None:
    made = DuckdbEngine(temporary=tmp_path)
    made.lock(tmp_path, {"local": tmp_path / "local.data", "e": tmp_path / "e.data"}, Limits(threads=1))
    owner = made.connect()
    for sql in (
        "use e",
        "create schema z",
        "create type en as enum ('a')",
        "create type z.en as enum ('a')",
        "create macro plus(x) as x",
        "create sequence sq",
        "create table kept (i varchar, j varchar, k varchar, l varchar)",
        "insert into kept values ('a', 'a', '1', '1')",
    ):
        assert run(owner, sql) == "00000"
    for sql in (
        "alter table kept alter i type en using i::en",
        "alter table kept alter i type en[] using [i::main.en]",
        "alter table kept alter i type z.en using try_cast(i as z.en)",
        "alter table kept alter i type varchar using plus(i)",
        "alter table kept alter i type varchar using main.plus(i)",
        "alter table kept alter i type bigint using nextval('sq')",
        "alter table kept alter i type double using i::double + random()",
        "alter table kept alter i type timestamp using current_timestamp",
        "alter table kept add column if not exists m double default random()",
        "alter table kept add column if not exists m timestamp default current_timestamp",
        "alter table kept add if not exists m varchar default upper(current_database())",
        "alter table kept add column if not exists m bigint default nextval('sq')",
        "alter table kept add column if not exists m int default e.main.plus(1)",
        "alter table kept alter i type bigint using 1 + nextval('e.main.sq')",
    ):
        assert run(owner, sql).startswith("0A000"), sql
    for sql in (
        "alter table kept add column m double default random()",
        "alter table kept add column if not exists n int[] default [abs(1), 2]",
        "alter table kept drop m",
        "alter table kept drop n",
        "alter table kept alter i type en",
        "alter table kept alter j type e.main.en using j::e.main.en",
        "alter table kept alter k type int using e.main.plus(k)::int + 1",
        "alter table kept alter l type struct(a int[]) using {'a': [abs(l::int)]}",
    ):
        assert run(owner, sql) == "00000", sql
    # What a process that is killed leaves.
    for file in ("e.data", "e.data.wal"):
        (tmp_path / f"copy-{file}").write_bytes((tmp_path / file).read_bytes())
    made.close()
    again = DuckdbEngine(temporary=tmp_path)
    again.lock(tmp_path, {"e": tmp_path / "copy-e.data"}, Limits(threads=1))
    assert again.broken == {}
    assert again.read_listing("select * from e.kept") == [("a", "a", "2", "{'a': [1]}")]
    again.close()


@pytest.mark.parametrize(
    "pivoted",
    [
        "t on b using sum(a)",
        "t on b || a using sum(a)",
        "t on (b, a) using sum(a)",
        "t on upper(b), case when a in (1) then 'one' end using count(*) group by a order by a limit 1",
        "t on b in (select 'y' union all select 'x') using sum(a)",
        "t on a > 0, b in (values ('x')) using count(*)",
        "t on /* in */ b -- and\n || 'z' using count(*);",
    ],
)
def test_a_pivot_gives_a_reader_what_duckdb_gives(engine: DuckdbEngine, pivoted: str) -> None:
    connection, rows = engine.connect(), Spool(Path, 1000)
    outcome = connection.run(f"pivot {pivoted}", RunOptions(rights=Rights.READ), rows)
    rows.finish()
    with duckdb.connect() as plain:
        plain.execute("create table t as select 1 as a, 'x' as b")
        wanted = plain.execute(f"pivot {pivoted}")
        assert [item.name for item in outcome.columns or ()] == [item[0] for item in wanted.description or ()]
        assert len(wanted.fetchall()) == rows.layout.rows
    assert engine.read_listing("select 1 from duckdb_types() where type_name like '__pivoted%'") == []


def test_the_values_of_a_pivot_are_checked(engine: DuckdbEngine) -> None:
    for values in (
        "select nextval('s')::varchar",
        "from read_text('/etc/hosts')",
        "select current_setting('memory_limit')",
    ):
        answer = run(engine.connect(), f"pivot t on b in ({values}) using sum(a)", Rights.READ)
        assert answer.startswith("42501"), answer


def test_memory_that_could_not_be_had_is_a_limit() -> None:
    error = duckdb.InternalException("INTERNAL Error: Memory allocation failure")
    assert failure(error).sql_state == sqlstate.LIMIT
    assert failure(duckdb.InternalException("INTERNAL Error: other")).sql_state == sqlstate.INTERNAL


def test_constants_that_are_not_json_are_checked(engine: DuckdbEngine) -> None:
    connection = engine.connect()
    for sql in (
        "select isnan('nan'::double)",
        "select abs('-inf'::double), 'NaN, \"inf\\' || 'x'",
        "select 'inf'::float * 2",
        "set variable x = 'nan'::double",
        "select bit_count((select '101')::bit)",
    ):
        assert run(connection, sql, Rights.READ) == "00000", sql
    for sql in ("select bit_count('101'::bit)", "select 5::bignum + 1::bignum"):
        assert run(connection, sql, Rights.READ).startswith(
            "0A000 this statement is not allowed because its query plan cannot be checked"
        ), sql
    assert run(connection, "select isnan('nan'::double), current_setting('memory_limit')", Rights.READ).startswith(
        "42501"
    )
    assert run(connection, "create or replace table b (b bit, d double default 'nan')") == "00000"
    assert run(connection, "insert into b values ('101', 'inf'), ('1'::bit, default)") == "00000"


def test_the_instance_outlives_binding_in_a_transaction(engine: DuckdbEngine) -> None:
    owner = engine.connect()
    run(owner, "create or replace sequence s")
    for sql in (
        "from range(nextval('s'))",
        "select 1 from range(nextval('s')), read_csv('x')",
        "select * from t at (version => nextval('s'))",
        "merge into t using range(nextval('s')) on false when matched then delete",
        "merge into t using range(nextval('s')), read_csv('x') on false when matched then delete",
        "explain merge into t using range(nextval('s')) on false when matched then delete",
        "create type made as enum (select range::varchar from range(nextval('s')))",
        "create table made (i int default (select count(*) from range(nextval('s'))))",
        "create index made on t ((select count(*) from range(nextval('s'))))",
        "alter table t alter a type int using (select count(*) from range(nextval('s')))",
        "set variable x = (from range(nextval('s')))",
    ):
        assert run(owner, "begin") == "00000"
        run(owner, sql)
        assert run(owner, "commit") == "00000"
        assert run(owner, "select 1") == "00000"


CHANGES = [
    ("create or replace view changing as select 1 as a", "drop view changing", "select a from changing"),
    ("create table changing (a int)", "drop table changing", "update changing set a = 1"),
    ("create table changing (a int)", "drop table changing", "insert into changing values (1)"),
    ("create table changing (a int)", "drop table changing", "delete from changing where a = 1"),
    ('create table "changing.csv" (a int)', 'drop table "changing.csv"', 'select a from "changing.csv"'),
]


@pytest.mark.parametrize(("make", "drop", "sql"), CHANGES)
def test_a_check_is_valid_until_an_object_changes(engine: DuckdbEngine, make: str, drop: str, sql: str) -> None:
    one, other = engine.connect(), engine.connect()
    run(other, make)
    assert [run(one, sql), run(one, sql)] == ["00000"] * 2
    run(other, drop)
    assert run(one, sql)[:5] == ("42501" if ".csv" in sql else "3D020")
    for statement in ("begin", make, "commit"):
        assert run(other, statement) == "00000"
    assert run(one, sql) == "00000"
    for statement in ("begin", drop, "commit"):
        assert run(other, statement) == "00000"
    assert run(one, sql) != "00000"


def test_a_check_is_valid_only_for_its_rights_and_options(engine: DuckdbEngine) -> None:
    connection = engine.connect()
    sql = "update t set a = 1"
    assert run(connection, sql) == "00000"
    assert run(connection, sql, Rights.READ)[:5] == "42501"
    assert run(connection, "insert into t select * from t limit 0") == "00000"
    stream = ("local", "main", "t")
    for asked in (sql, "insert into t select * from t limit 0"):
        with pytest.raises(Failure, match="stream"):
            connection.run(asked, RunOptions(streams=(stream,)), Discard())
    assert run(connection, sql) == "00000"


def test_a_check_is_valid_only_in_its_database_and_schema(engine: DuckdbEngine) -> None:
    connection = engine.connect()
    run(connection, "create schema if not exists elsewhere")
    run(connection, "create table if not exists placed (a int)")
    run(connection, "create or replace view elsewhere.placed as select 1 as a")
    sql = "delete from placed where a = 7"
    for _ in range(2):
        assert run(connection, sql) == "00000"
        connection.use("local", "elsewhere")
        assert run(connection, sql)[:5] != "00000"
        run(connection, "use local.main")
        assert run(connection, sql) == "00000"
        run(connection, "set schema = 'elsewhere'")
        assert run(connection, sql)[:5] != "00000"
        connection.use("local", "main")
    for _ in range(2):
        assert run(connection, "create temp view placed as select 1 as a") == "00000"
        assert run(connection, sql)[:5] != "00000"
        assert run(connection, "begin") == run(connection, "drop view temp.placed") == "00000"
        assert run(connection, sql) == "00000"
        assert run(connection, "rollback") == "00000"
        assert run(connection, sql)[:5] != "00000"
        assert run(connection, "drop view temp.placed") == "00000"
        assert run(connection, sql) == "00000"


def test_explained_ddl_changes_objects_too(engine: DuckdbEngine) -> None:
    one, other = engine.connect(), engine.connect()
    assert run(one, "create table local.main.made as select 1 as a") == "00000"
    assert run(one, "insert into made values (1)") == "00000"
    assert run(other, "drop table made") == "00000"
    assert run(one, "explain analyze create table made as select 1 as b, 2 as c") == "00000"
    assert run(one, "insert into made values (1)")[:5] != "00000"
    assert run(other, "drop table if exists made") == "00000"


def test_a_default_may_be_an_expression(engine: DuckdbEngine) -> None:
    connection = engine.connect()
    run(connection, "create or replace table grown as select range as i from range(2)")
    for name, definition in {
        "a": "int[] default [1, 2]",
        "b": "double default 1.5 + 2",
        "c": "varchar default 'a' || 'b'",
        "d": "date default current_date",
        "e": "double default random()",
    }.items():
        assert run(connection, f"alter table grown add column {name} {definition}") == "00000", name
        assert run(connection, f"alter table grown add {name}_2 {definition}") == "00000", name
        assert run(connection, f"alter table grown add column {name} {definition}") != "00000", name
    run(connection, "insert into grown (i) values (2)")
    kept = "count(*) = 3 and count(distinct (a, b, c, d)) = 1 and count(distinct e) = 3 and any_value(c) = 'ab'"
    assert run(connection, f"select if({kept}, 1, error('not kept')) from grown") == "00000"
    assert run(connection, f"select if({kept}, error('kept'), 1) from grown") != "00000"


def test_what_is_no_default_is_refused_with_a_way_out(engine: DuckdbEngine) -> None:
    connection = engine.connect()
    run(connection, "create or replace table grown as select range as i from range(2)")
    for definition in ("int default 1 + 1 not null", "int not null default 1 + 1"):
        message = run(connection, f"alter table grown add column n {definition}")
        assert message.startswith("0A000 ADD COLUMN with an expression"), message
    for definition in (
        "current_setting('memory_limit')",
        "current_setting('threads') || ''",
        "(select content from read_text('x'))",
    ):
        message = run(connection, f"alter table grown add column n varchar default {definition}")
        assert message != "00000", definition
    assert run(connection, "alter table grown add column n int default 1 + 1", Rights.DATA).startswith("42501")
    assert run(connection, "select n from grown") != "00000"


def test_what_describe_gives_is_kept_in_a_table(engine: DuckdbEngine) -> None:
    connection = engine.connect()
    run(connection, "create or replace table grown as select range as i from range(2)")
    assert run(connection, "create or replace table told as describe grown") == "00000"
    assert run(connection, "create or replace table told as select * from (describe grown)") == "00000"
    assert run(connection, "create view shown as describe grown").startswith("42501")
    assert run(connection, "create view shown as select * from (describe grown)").startswith("42501")


def test_show_schemas_shows_what_duckdb_shows(engine: DuckdbEngine) -> None:
    connection, rows = engine.connect(), Spool(Path, 1000)
    outcome = connection.run("SHOW  schemas;", RunOptions(rights=Rights.READ), rows)
    rows.finish()
    with duckdb.connect() as plain:
        wanted = plain.execute("show schemas")
        assert [item.name for item in outcome.columns or ()] == [item[0] for item in wanted.description or ()]
    assert rows.layout.rows == len(engine.read_listing("show schemas"))
    assert run(connection, "select path from duckdb_databases()", Rights.READ).startswith("42501")
    message = run(connection, "select * from duckdb_databases()", Rights.READ)
    refused, _, shown = message.partition("; select only columns of ")
    assert refused == "42501 reading options, path of duckdb_databases is not allowed on this service"
    assert run(connection, f"select {shown} from duckdb_databases()", Rights.READ) == "00000"


def test_a_refusal_names_the_statement_as_it_is_written(engine: DuckdbEngine) -> None:
    connection = engine.connect()
    for word, sql in {
        "COPY, except COPY … TO STDOUT,": "copy t to 'x.csv'",
        "CHECKPOINT": "checkpoint",
        "CALL": "call range(1)",
        "PRAGMA": "pragma version",
        "LOAD": "load json",
        "INSTALL": "/* why */ install json",
    }.items():
        assert run(connection, sql) == f"42501 {word} is not allowed on this service"
    for word, sql in {
        "ANALYZE": "analyze t",
        "VACUUM": "vacuum",
        "DEALLOCATE": "deallocate x",
        "DROP": "drop table t",
    }.items():
        message = f"42501 permission denied: role 'reader' cannot run {word}, which changes objects"
        assert run(connection, sql, Rights.READ) == message


LITERALS = [
    'insert into "rows" ("a", "b") values {}',
    "insert into rows values {}",
]
ROWS = [
    ("({0}, 'it''s {0}')", 0),
    ("(-{0}e-3, null)", 0),
    ("((-{0}), CAST('2020-01-01' AS TIMESTAMP)),\n(null, null)", 0),
    ("({0}, TIMESTAMP '2020-01-01 00:00:{0:02}')", 0),
    ("(CAST('{0}.25' AS DECIMAL(10,2)), ('{0}')::varchar::json)", 0),
    # Macros may have these names.
    ("({0}, from_base64('eA=='))", 1),
    ("({0}, json('{0}'))", 1),
    ("({0}, ARRAY['{0}', NULL]::INTEGER[])", 1),
    ("({0}, (select 'x'))", 1),
    ("({0}, upper('x'))", 1),
]


@pytest.mark.parametrize("head", LITERALS)
@pytest.mark.parametrize(("row", "grows"), ROWS)
def test_of_rows_of_literals_only_a_few_are_checked(
    engine: DuckdbEngine, monkeypatch: pytest.MonkeyPatch, head: str, row: str, grows: int
) -> None:
    """The text that is judged does not grow with their number; that of other rows does."""
    connection = engine.connect()
    assert run(connection, "create or replace table rows (a double, b varchar)") == "00000"
    judged: list[int] = []
    asked = Binder._asked

    def counting(binder: Binder, function: str, sql: str) -> Any:
        judged.append(len(sql))
        return asked(binder, function, sql)

    monkeypatch.setattr(Binder, "_asked", counting)
    sizes = []
    for many in (10, 50):
        # An object changes: the statement is judged again.
        assert run(connection, "create or replace table other (i int)") == "00000"
        judged.clear()
        rows = ", ".join(row.format(number) for number in range(10, 10 + many))
        assert run(connection, head.format(rows)) == "00000"
        assert len(judged) == 2
        sizes.append(max(judged))
    assert (sizes[0] < sizes[1]) == bool(grows)
    assert sizes[1] < 300 or grows


@pytest.mark.parametrize(
    "rows",
    [
        "(1, 'x'), (1, (select * from read_text('/etc/passwd')))",
        "(1, current_setting('threads')), (1, 'x')",
        "(1, date '2020-01-01'), (1, 'x'::text || current_setting('threads'))",
        "(1, 'x'), (1, \"current_setting\"('threads'))",
        "(1, from_base64('eA==')), (1, E'\\'' || current_setting('threads'))",
        "(1, 'x'), (1, /* ) */ current_setting('threads'))",
        "(1, 'x'), (1, $$'$$ || current_setting('threads') || $$'$$)",
    ],
)
def test_nothing_hides_behind_literals(engine: DuckdbEngine, rows: str) -> None:
    connection = engine.connect()
    assert run(connection, "create table if not exists hides (a double, b varchar)") == "00000"
    for _ in range(2):
        assert run(connection, "insert into hides values (1, 'x')", Rights.DATA) == "00000"
        assert run(connection, "insert into hides values (1, date '2020-01-01')", Rights.DATA) == "00000"
        assert run(connection, f"insert into hides values {rows}")[:5] == "42501"


def test_every_row_of_literals_is_inserted(engine: DuckdbEngine) -> None:
    connection = engine.connect()
    assert run(connection, "create or replace table every (a double, b varchar)") == "00000"
    rows = ["(1, TIMESTAMP '2020-01-01')", "(2, ')')", "(3, '''(')", "((-4), NULL)", "(CAST('5' AS DOUBLE), 'NULL')"]
    assert run(connection, f"insert into every values {', '.join(rows)}") == "00000"
    found = connection._connection.execute("select a, b from every order by abs(a)").fetchall()
    assert found == [(1, "2020-01-01 00:00:00"), (2, ")"), (3, "'("), (-4, None), (5, "NULL")]
    for wrong in ("(1, 2, 3)", "('x', NULL)", "(DATE 'x', NULL)"):
        assert run(connection, f"insert into every values {rows[0]}, {wrong}")[:5] not in {"00000", "42501"}
    assert connection._connection.execute("select count(*) from every").fetchall() == [(5,)]
