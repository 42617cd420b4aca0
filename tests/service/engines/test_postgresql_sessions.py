"""Sessions on PostgreSQL: transactions, the place that statements run in, lost connections, the catalog, loading."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

from sqlshell.errors import ServiceError, UsageError
from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.engine import CatalogQuery, Listing, RunOptions
from sqlshell.service.failure import Failure
from tests.service.engines.conftest import Connect, Runner

if TYPE_CHECKING:
    from sqlshell.service.engines.postgresql.engine import PostgresqlEngine

pytestmark = pytest.mark.usefixtures("postgresql_server")

ROLLED_BACK = "the transaction had failed and was rolled back; none of its changes were committed"


def test_transactions(runner: Runner) -> None:
    session = runner.session
    runner.run("create table t (a int)")
    assert runner.run("begin").message == "BEGIN" and session.transaction == "open"
    runner.run("insert into t values (1)")
    assert runner.fails("select 1/0")[0] == "22012" and session.transaction == "failed"
    assert runner.fails("select 1")[0] == "25P02"
    told = runner.run("commit")
    assert (told.state, told.message, session.transaction) == ("01000", ROLLED_BACK, "")
    assert runner.value("select count(*) from t") == "0"
    runner.run("begin")
    runner.run("savepoint s")
    runner.fails("select 1/0")
    runner.run("rollback to s")
    assert session.transaction == "open"
    runner.run("insert into t values (2)")
    assert runner.run("commit").message == "COMMIT"
    assert runner.value("select count(*) from t") == "1"


def test_a_transaction_can_be_set_until_its_first_query(runner: Runner) -> None:
    runner.run("begin")
    runner.run("set transaction read only")
    runner.run("set transaction isolation level serializable", timezone="Asia/Tokyo")
    assert runner.value("show transaction_isolation") == "serializable"
    runner.run("rollback")


def test_the_time_zone_is_the_requests_until_the_session_sets_another(runner: Runner) -> None:
    instant = "select '2024-07-01 00:00:00+00'::timestamptz"
    own = runner.value("show timezone", timezone="")
    assert runner.session.timezone == own
    assert runner.value(instant, timezone="Asia/Tokyo") == "2024-07-01 09:00:00+09"
    runner.run("set timezone = 'Europe/Berlin'", timezone="Asia/Tokyo")
    assert runner.session.timezone == "Europe/Berlin"
    assert runner.value(instant, timezone="Asia/Tokyo") == "2024-07-01 02:00:00+02"
    assert runner.value(instant, timezone="UTC") == "2024-07-01 00:00:00+00"
    assert runner.fails(instant, timezone="Mars/Olympus")[0] == "22023"


def test_the_schema_is_the_first_of_the_search_path(runner: Runner) -> None:
    session = runner.session
    assert session.schema == "public"
    runner.run('create schema "a b"')
    runner.run('set search_path = "a b", public')
    assert session.schema == "a b"
    runner.run("begin")
    runner.run("set local search_path = public")
    assert session.schema == "public"
    runner.run("rollback")
    assert session.schema == "a b"
    session.use("", "public")
    assert (session.schema, runner.value("show search_path")) == ("public", '"public"')
    session.use("", "a b")
    assert (session.schema, runner.value("show search_path")) == ("a b", '"a b", "public"')
    session.use("", "")
    assert runner.value("show search_path") == '"$user", public'
    runner.run("select set_config('search_path', '\"a b\"', false)")
    runner.run('drop schema "a b"')
    assert session.schema == ""
    with pytest.raises(Failure) as caught:
        session.use("", "nowhere")
    assert caught.value.sql_state == "3D003"


def test_another_database_needs_another_connection(runner: Runner) -> None:
    session, first = runner.session, runner.session.database
    runner.run("create temp table mine as select 1 as a")
    session.use("postgres", "pg_catalog")
    assert (session.database, session.schema, runner.value("select current_database()")) == (
        "postgres",
        "pg_catalog",
        "postgres",
    )
    with pytest.raises(Failure) as caught:
        session.use("nowhere", "")
    assert (caught.value.sql_state, session.database) == ("3D002", "postgres")
    runner.run("begin")
    with pytest.raises(Failure) as caught:
        session.use(first, "")
    assert caught.value.sql_state == "25001"
    runner.run("rollback")
    session.use(first, "")
    assert (session.database, session.schema) == (first, "public")
    assert runner.fails("table mine")[0] == "42P01"


def _end(runner: Runner, connect: Connect) -> None:
    """Have the server end the connection of a session."""
    number = runner.value("select pg_backend_pid()")
    other = connect()
    other.run(f"select pg_terminate_backend({number}, 5000)")


def test_a_lost_connection_is_made_again_where_it_was(runner: Runner, connect: Connect) -> None:
    runner.options = RunOptions(timezone="Asia/Tokyo")
    runner.run("create schema if not exists place")
    runner.run("set search_path = place")
    runner.run("set timezone = 'Europe/Berlin'")
    runner.run("set default_transaction_read_only = on")
    _end(runner, connect)
    state, message = runner.fails("drop schema place")
    assert state == "57P02" and "while the session was idle" in message and "was not run" in message
    told = runner.run("select current_schema(), current_setting('timezone')")
    assert (told.rows, told.state) == ([["place", "Europe/Berlin"]], "00000")


def test_a_statement_whose_connection_is_lost_fails(runner: Runner) -> None:
    state, message = runner.fails("select pg_terminate_backend(pg_backend_pid(), 5000)")
    assert state == "57P02"
    assert message == (
        "the connection to the PostgreSQL server was lost: terminating connection due to administrator command; "
        "it is unknown whether the statement took effect"
    )
    assert runner.run("select 1").rows == [["1"]]


@pytest.mark.parametrize("idle", [True, False])
def test_a_transaction_is_lost_with_its_connection(runner: Runner, connect: Connect, idle: bool) -> None:
    runner.run("create table if not exists lost (a int)")
    runner.run("begin")
    runner.run("insert into lost values (1)")
    if idle:
        _end(runner, connect)
    state, message = runner.fails("select pg_terminate_backend(pg_backend_pid(), 5000)")
    assert state == "57P02" and "the open transaction was lost, and none" in message
    assert runner.session.transaction == "failed"
    assert runner.fails("insert into lost values (2)")[0] == "25P02"
    told = runner.run("commit")
    assert (told.state, told.message, runner.session.transaction) == ("01000", ROLLED_BACK, "")
    assert runner.value("select count(*) from lost") == "0"


def test_an_abandoned_statement_fails_at_once(runner: Runner) -> None:
    import threading

    timer = threading.Timer(0.3, runner.session.cancel, kwargs={"force": True})
    timer.start()
    state, message = runner.fails("select pg_sleep(60)")
    assert state == "57P02" and message.endswith("it is unknown whether the statement took effect")
    timer.join()
    assert runner.run("select 1").rows == [["1"]]


def test_the_catalog(postgresql: PostgresqlEngine, runner: Runner) -> None:
    for sql in (
        "create schema shop",
        "create table shop.parts (a int, b int, c text, primary key (b, a)) partition by range (b)",
        "create table shop.small partition of shop.parts for values from (0) to (10)",
        "comment on table shop.parts is 'what we sell'",
        "create view shop.seen as select 1 as x",
        "create materialized view shop.kept as select 1 as x",
        "create sequence shop.numbers",
        "create index on shop.parts (c)",
        "create function shop.twice(n int) returns int language sql as 'select 2 * n'",
        "create temp table passing (a int)",
    ):
        runner.run(sql)
    here = runner.session.database
    assert postgresql.catalog(CatalogQuery("relations", here, "shop")) == [
        ("kept", "shop", "materialized_view", here, "", ""),
        ("parts", "shop", "table", here, "b, a", "what we sell"),
        ("seen", "shop", "view", here, "", ""),
        ("small", "shop", "table", here, "b, a", ""),
    ]
    assert [row[0] for row in postgresql.catalog(CatalogQuery("relations", name="seen"))] == ["seen"]
    assert ("shop", here) in postgresql.catalog(CatalogQuery("schemas"))
    assert ("twice", "twice(n integer)", "function", here, "shop") in postgresql.catalog(CatalogQuery("functions"))
    assert {(here,), ("postgres",)} <= set(postgresql.catalog(CatalogQuery("databases")))
    assert ("postgres",) not in postgresql.catalog(CatalogQuery("databases", hidden={"postgres"}))
    assert postgresql.catalog(CatalogQuery("relations", "postgres", "shop")) == []
    assert postgresql.catalog(CatalogQuery("function", name="LOWER")) and not postgresql.catalog(
        CatalogQuery("function", name="no_such_function")
    )
    assert postgresql.catalog(CatalogQuery("relation", here, "shop", "parts")) == [("",)]
    assert postgresql.catalog(CatalogQuery("relation", here, "shop", "none")) == []
    assert postgresql.traits.hidden_databases == ("template0", "template1")
    assert postgresql.version.startswith("PostgreSQL ")


def test_relations_are_found_as_postgresql_finds_them(postgresql: PostgresqlEngine, runner: Runner) -> None:
    runner.run("create table twofold (a int not null)")
    runner.run("create temp table twofold (b text)")
    here = runner.session.database
    found = runner.session.resolve(("twofold",))
    assert found[1].startswith("pg_temp_") and postgresql.catalog(CatalogQuery("relation", *found))
    assert runner.session.columns(found, runner.options) == [ColumnInfo("b", "VARCHAR", True)]
    assert runner.session.resolve(("public", "twofold")) == (here, "public", "twofold")
    assert runner.session.columns((here, "public", "twofold"), runner.options) == [ColumnInfo("a", "INTEGER", False)]
    assert runner.session.resolve(("pg_class",)) == (here, "pg_catalog", "pg_class")
    assert runner.session.resolve(("nowhere",)) == (here, "public", "nowhere")


def test_the_services_rows_as_a_relation(postgresql: PostgresqlEngine, runner: Runner) -> None:
    columns = [("Na me", "VARCHAR"), ("on", "BOOLEAN"), ("n", "INTEGER"), ("at", "TIMESTAMP_LTZ(6)")]
    rows = [['it\'s \\ "x"', "true", "1", "2024-01-01 00:00:00Z"], ["", "false", "2", ""]]
    told = runner.run(postgresql.inline(Listing(columns, rows)))
    assert told.names == [name for name, _ in columns] and told.types == [kind for _, kind in columns]
    assert told.rows == [['it\'s \\ "x"', "true", "1", "2024-01-01 00:00:00+00"], ["", "false", "2", None]]
    assert runner.run(postgresql.inline(Listing(columns, []))).rows == []


def test_rows_of_a_file_are_loaded_all_or_none(runner: Runner, tmp_path: Path) -> None:
    runner.run('create table "L oad" (a int, b text, c bytea, d timestamptz, e int[], f bool, g jsonb, h date)')
    place = tmp_path / "rows.parquet"
    values = (
        "(1, E'a\\tb\\n\\\\N\\r', '\\x00\\xFF'::blob, timestamptz '2024-01-01 00:00:00+00', [1, NULL], true, "
        "{'x': 1.5}, date '0044-03-15 (BC)'), (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL), "
        "(3, '', ''::blob, 'infinity', [], false, NULL, 'infinity')"
    )
    duckdb.sql(f"copy (from (values {values})) to '{place}'")
    told = runner.session.load(("L oad",), (), place, runner.options)
    assert told.message == "COPY 3"
    assert runner.run('select * from "L oad" order by a').rows == [
        ["1", "a\tb\n\\N\r", "AP8=", "2024-01-01 00:00:00+00", "{1,NULL}", "true", '{"x": 1.5}', "0044-03-15 BC"],
        ["2", None, None, None, None, None, None, None],
        ["3", "", "", "infinity", "{}", "false", None, "infinity"],
    ]
    duckdb.sql(f"copy (select 'b' as b, 7 as a from range(200000) union all select 'x', NULL) to '{place}'")
    assert runner.session.load(("public", "L oad"), ("b", "a"), place, runner.options).message == "COPY 200001"
    runner.run('alter table "L oad" add check (a is not null) not valid')
    with pytest.raises(Failure) as caught:
        runner.session.load(("L oad",), ("b", "a"), place, runner.options)
    assert caught.value.sql_state == "23514" and "line 200001" in caught.value.message
    assert runner.value('select count(*) from "L oad"') == "200004"
    place.write_bytes(b"no Parquet")
    with pytest.raises(Failure, match="the attachment"):
        runner.session.load(("L oad",), (), place, runner.options)
    with pytest.raises(Failure, match="does not exist"):
        duckdb.sql(f"copy (select 1 as a) to '{place}'")
        runner.session.load(("none",), (), place, runner.options)
    assert runner.run("select 1").rows == [["1"]]


def test_lists_of_texts_are_loaded_as_arrays(runner: Runner, tmp_path: Path) -> None:
    runner.run("create table arrays (a text[], b int[])")
    place = tmp_path / "rows.parquet"
    duckdb.sql(
        f"copy (select ['a \"b\"', NULL, 'NULL', '', 'x\\y', E'a\\nb'] as a, [[1, 2], [3, 4]] as b) to '{place}'"
    )
    runner.session.load(("arrays",), (), place, runner.options)
    assert runner.run("select a[1], a[2], a[3], a[4], a[5], a[6], b from arrays").rows == [
        ['a "b"', None, "NULL", "", "x\\y", "a\nb", "{{1,2},{3,4}}"]
    ]


@pytest.mark.parametrize(
    "url", ["postgresql://u:se%zzcret@localhost/d", "postgresql://u:secret@localhost/d?wrong", "postgresql://[u:secret"]
)
def test_a_malformed_url_is_not_quoted(url: str) -> None:
    from sqlshell.service.engines.postgresql.engine import PostgresqlEngine

    with pytest.raises(UsageError) as caught:
        PostgresqlEngine(url)
    assert "malformed" in caught.value.message and "cret" not in caught.value.message + caught.value.hint


def test_a_server_that_does_not_answer(tmp_path: Path) -> None:
    from sqlshell.service.engines.postgresql.engine import PostgresqlEngine

    with pytest.raises(ServiceError) as caught:
        PostgresqlEngine(f"postgresql://u:secret@/d?host={tmp_path}")
    told = caught.value.message
    assert told.startswith("connection to server on socket") and told.count("failed") == 1 and "secret" not in told


def test_each_of_several_hosts_that_do_not_answer_is_told_once(tmp_path: Path) -> None:
    from sqlshell.service.engines.postgresql.engine import PostgresqlEngine

    with pytest.raises(ServiceError) as caught:
        PostgresqlEngine(f"postgresql://u@/d?host={tmp_path}/a,{tmp_path}/b")
    causes = caught.value.message.split("; ")
    assert [cause.partition(" failed: ")[0] for cause in causes] == [
        f'connection to server on socket "{tmp_path}/{name}/.s.PGSQL.5432"' for name in "ab"
    ]


def test_a_server_that_is_restarted(postgresql_url: str, connect: Connect, postgresql: PostgresqlEngine) -> None:
    # The service's own connection is made again too.
    one = connect()
    here = "datname = current_database() and pid <> pg_backend_pid()"
    one.run(f"select count(pg_terminate_backend(pid, 5000)) from pg_stat_activity where {here}")
    assert postgresql.catalog(CatalogQuery("function", name="lower"))
    with contextlib.suppress(Failure):
        one.run("select pg_terminate_backend(pg_backend_pid(), 5000)")
    assert one.run("select 1").rows == [["1"]]


def test_without_a_requested_time_zone_the_servers_applies(runner: Runner, connect: Connect) -> None:
    """A client adopts the time zone of a response, and requests it for the next statement."""
    name = runner.session.database
    runner.run(f"alter role postgres in database \"{name}\" set timezone = 'Asia/Tokyo'")
    try:
        adopting = connect()
        adopting.options = RunOptions(timezone="")
        assert adopting.value("show timezone") == adopting.session.timezone == "Asia/Tokyo"
        adopting.options = RunOptions(timezone="Asia/Tokyo")
        adopting.run("begin")
        adopting.run("set local timezone = 'Europe/Berlin'")
        assert adopting.value("show timezone", timezone="Europe/Berlin") == "Europe/Berlin"
        adopting.run("commit", timezone="Europe/Berlin")
        assert adopting.value("show timezone", timezone=adopting.session.timezone) == "Asia/Tokyo"
    finally:
        runner.run(f'alter role postgres in database "{name}" reset timezone')


def test_another_database_has_its_own_time_zone_unless_one_was_requested(runner: Runner, connect: Connect) -> None:
    first = runner.session.database
    runner.run(f"alter database \"{first}\" set timezone = 'Asia/Tokyo'")
    try:
        for asked, expected in ((None, "Asia/Tokyo"), ("Europe/Berlin", "Europe/Berlin")):
            moving = connect()
            moving.session.use("postgres", "")
            moving.options = RunOptions(timezone=asked or "")
            moving.run("select 1")
            moving.session.use(first, "")
            assert moving.value("show timezone") == moving.session.timezone == expected
    finally:
        runner.run(f'alter database "{first}" reset timezone')
