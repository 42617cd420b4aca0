"""The functions that each role may call: a new function of DuckDB is refused until it is listed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from sqlshell.interface import sqlstate
from sqlshell.service.engines.duckdb.connection import DuckdbConnection
from sqlshell.service.engines.duckdb.instance import DuckdbEngine
from sqlshell.service.engines.duckdb.rights import functions
from sqlshell.service.engines.duckdb.rights.check import LEAST_RIGHTS
from sqlshell.service.engines.engine import CatalogQuery, Limits, Rights, RunOptions
from sqlshell.service.engines.files.failures import failure
from sqlshell.service.failure import Failure
from sqlshell.service.results.results import Discard, Spool
from tests.cases import lines, texts

REFUSED = """
    add_grammar_extension arrow_scan arrow_scan_dumb checkpoint create_external_resource current_query
    current_setting deregister_external_resource destroy_external_resource disable_logging disable_profiling
    duckdb_approx_database_count duckdb_available_metrics duckdb_connection_count duckdb_dialects
    duckdb_eviction_queues duckdb_extension_repositories duckdb_extensions duckdb_external_file_cache
    duckdb_external_resource_types duckdb_external_resources duckdb_grammar_extensions duckdb_live_query_metrics
    duckdb_log_contexts duckdb_logs duckdb_logs_parsed duckdb_memory duckdb_optimizers duckdb_prepared_statements
    duckdb_profiling_settings duckdb_secret_type_parameters duckdb_secret_types duckdb_secrets duckdb_settings
    duckdb_table_sample duckdb_temporary_files enable_logging enable_profiling force_checkpoint get_block_size glob
    histogram histogram_values index_key json_execute_serialized_sql json_serialize_plan pandas_scan
    parquet_bloom_probe parquet_file_metadata parquet_full_metadata parquet_kv_metadata parquet_metadata
    parquet_page_index parquet_scan parquet_schema parse_duckdb_log_message pragma_database_size
    pragma_metadata_info pragma_platform pragma_storage_info pragma_user_agent python_arrow_scan python_map_function
    query query_table read_blob read_csv read_csv_auto read_duckdb read_json read_json_auto read_json_objects
    read_json_objects_auto read_ndjson read_ndjson_auto read_ndjson_objects read_parquet read_single_csv_file
    read_single_json_file read_single_parquet_file read_text register_external_resource
    register_external_resource_type remove_grammar_extension seq_scan sniff_csv truncate_duckdb_logs which_secret
    write_log
""".split()  # noqa: SIM905
"""Functions that read files or settings, run SQL from a string, take pointers, or write outside the databases; those
that begin with __ are refused too."""

SINCE_2_0_1 = frozenset(
    [
        "add_grammar_extension",
        "duckdb_live_query_metrics",
        "map_type_id_to_pg_oid",
        "parquet_page_index",
        "remove_grammar_extension",
    ]
)
"""Functions that DuckDB 2.0.0 does not have."""

STATEMENTS = {kind: (sql, rights) for kind, sql, rights in texts("allowed", "statements")}
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
    names = {name for kind, name in FUNCTIONS if kind != "pragma" and name.isidentifier()}
    names = {name for name in names if not name.startswith((*functions.COLLATIONS, "__"))}
    unknown = names - functions.ALLOWED - set(REFUSED)
    assert not unknown, f"DuckDB has new functions: they are refused until somebody looks at them: {sorted(unknown)}"
    assert not functions.ALLOWED & set(REFUSED)
    gone = (functions.ALLOWED | set(REFUSED)) - names
    assert gone in (frozenset(), SINCE_2_0_1), sorted(gone)


def test_a_function_that_is_not_known_is_refused_by_its_name(engine: DuckdbEngine) -> None:
    connection = engine.connect()
    for kind, name in FUNCTIONS:
        if kind == "pragma" or not functions.is_refused(name):
            continue
        quoted = f'"{name.upper()}"'
        sql = f"select * from {quoted}()" if kind.startswith("table") else f"select {quoted} /* why */ ()"
        for rights in (Rights.READ, Rights.OBJECTS):
            for asked in (sql, f"create or replace temp view v as {sql}", f"explain (format json) {sql}"):
                assert run(connection, asked, rights) == f"42501 function {name} is not allowed on this service", asked


def test_a_table_may_have_the_name_of_a_function(engine: DuckdbEngine) -> None:
    connection = engine.connect()
    for sql in (
        'create or replace table "query" as select 1 as checkpoint, 2 as "copy"',
        'insert into query ("checkpoint", "copy") values (3, 4)',
        'insert into main."query" ("copy") select "copy" from query',
        'select query.checkpoint from query where "checkpoint" in (1, 3) group by all',
        "drop table query",
    ):
        assert run(connection, sql) == "00000", sql
    assert run(connection, "select copy from t").startswith("42501 COPY within a statement is not allowed")


@pytest.mark.parametrize("kind", KINDS)
def test_every_type_of_statement_has_its_least_rights(engine: DuckdbEngine, kind: str) -> None:
    assert kind in STATEMENTS, "DuckDB has a new type of statement: it is refused until somebody looks at it"
    sql, least = STATEMENTS[kind]
    assert kind in LEAST_RIGHTS or kind == "MULTI" or least == "never"
    if not sql:
        return
    for rights in Rights:
        connection = engine.connect()
        run(connection, "begin", rights)
        found = [item.type.name for item in connection._connection.extract_statements(sql)]
        assert found == [kind]
        answer = run(connection, sql, rights) if kind != "TRANSACTION" else run(engine.connect(), sql, rights)
        run(connection, "rollback", rights)
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
            assert state in {"42000", "42501", "42601", "42883"}, (sign, sql, state)
    assert connection._connection.execute("select count(*) from t").fetchone() == (1,)


def test_binding_for_a_reader_advances_no_sequence(engine: DuckdbEngine) -> None:
    owner, reader = engine.connect(), engine.connect()
    run(owner, "create or replace sequence s")
    run(owner, "create or replace macro plus(x) as x + 1")
    run(owner, "create or replace macro series(x) as table from range(x)")
    run(owner, "create or replace macro counted(x) as (select count(*) from range(x))")
    for sql in lines("allowed", "sequences"):
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


@pytest.mark.parametrize(
    "sql",
    [
        "create macro {}duckdb_databases() as table select 'x' as database_name",
        "create macro {}current_database() as 'x'",
        "create macro {}lower(x) as 'x'",
        "create macro {}max(x) as 7",
        "create type {}json as integer",
        "create table {}duckdb_columns (i int)",
        "create view {}duckdb_tables as select 1 as i",
    ],
)
def test_nothing_takes_the_place_of_what_the_service_asks(engine: DuckdbEngine, sql: str) -> None:
    connection = engine.connect()
    run(connection, "create table if not exists plain (i int)")
    for schema in ("main.", "temp."):
        made = sql.format(schema)
        assert run(connection, made if schema == "main." else made.replace("create ", "create temp ", 1)) == "00000"
        assert (
            engine.catalog(CatalogQuery("relation", "local", "main", "plain"))
            and engine.head(("local", "main", "plain")) == 0
        )
        assert ("local",) in engine.catalog(CatalogQuery("databases"))
        assert engine.connect().database == "local"
        name = re.split(r"[( ]", made.partition(schema)[2])[0]
        kind = re.sub("macro", "macro table" if " as table" in sql else "macro", sql.split()[1])
        assert run(connection, f"drop {kind} {schema}{'' if schema == 'main.' else 'main.'}{name}") == "00000"


def test_no_macro_of_a_database_takes_a_function_from_the_list_of_refused_ones(tmp_path: Path) -> None:
    databases = {"local": tmp_path / "local.data"}
    for names in ("duckdb_functions() as table select 'x' as function_name, true as internal, '' as function_type", ""):
        opened = DuckdbEngine(temporary=tmp_path)
        opened.lock(tmp_path, databases, Limits(threads=1))
        try:
            owner = opened.connect()
            if names:
                assert run(owner, f"create macro {names}") == "00000"
                assert run(owner, "create macro lower(x) as 'x'") == "00000"
            assert run(owner, "from enable_logging()").startswith("42501 function")
        finally:
            opened.close()


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
        'alter table kept alter i type varchar using main."Plus"(i)',
        "alter table kept alter i type bigint using nextval('sq')",
        "alter table kept alter j type e.main.en using j::e.main.en",
    ):
        assert run(owner, sql).startswith("0A000"), sql
    for sql in (
        "alter table kept add column m double default random()",
        "alter table kept add column if not exists n int[] default [abs(1), 2]",
        "alter table kept add column if not exists o int default e.main.plus(1)",
        "alter table kept drop m",
        "alter table kept drop n",
        "alter table kept drop o",
        "alter table kept alter i type en",
        "alter table kept alter k type int using k::int + 1",
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
        assert run(connection, sql, Rights.READ) == "00000", sql
    assert run(connection, "select isnan('nan'::double), current_setting('memory_limit')", Rights.READ).startswith(
        "42501"
    )
    assert run(connection, "create or replace table b (b bit, d double default 'nan')") == "00000"
    assert run(connection, "insert into b values ('101', 'inf'), ('1'::bit, default)") == "00000"


def test_the_instance_outlives_binding_in_a_transaction(engine: DuckdbEngine) -> None:
    owner = engine.connect()
    run(owner, "create or replace sequence s")
    for sql in lines("allowed", "binding"):
        assert run(owner, "begin") == "00000"
        run(owner, sql)
        assert run(owner, "commit") == "00000"
        assert run(owner, "select 1") == "00000"


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


def test_a_default_is_checked(engine: DuckdbEngine) -> None:
    connection = engine.connect()
    run(connection, "create or replace table grown as select range as i from range(2)")
    for definition in (
        "current_setting('memory_limit')",
        "current_setting('threads') || ''",
        "(select content from read_text('x'))",
    ):
        message = run(connection, f"alter table grown add column n varchar default {definition}")
        assert message != "00000", definition
    assert run(connection, "alter table grown add column n int default 1 + 1", Rights.DATA).startswith("42501")
    assert run(connection, "select n from grown") != "00000"


def test_a_refusal_names_the_statement_as_it_is_written(engine: DuckdbEngine) -> None:
    connection = engine.connect()
    for word, sql in {
        "COPY, except COPY … TO STDOUT,": "copy t to 'x.csv'",
        "CHECKPOINT": "checkpoint",
        "CALL": "call range(1)",
        "PRAGMA": "pragma version",
        "LOAD": "load json",
        "INSTALL": "/* why */ install json",
        "DEALLOCATE": "deallocate x",
        "CREATE SECRET": "create or replace secret x (type s3)",
        "CREATE TRIGGER": "create trigger x after insert on t for each statement insert into t values (1, 'x')",
        "ALTER DATABASE": "alter database local set alias to x",
    }.items():
        assert run(connection, sql) == f"42501 {word} is not allowed on this service"
    for word, sql in {
        "ANALYZE": "analyze t",
        "VACUUM": "vacuum",
        "DROP": "drop table t",
    }.items():
        message = f'42501 permission denied: role "reader" cannot run {word}, which changes objects'
        assert run(connection, sql, Rights.READ) == message


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
