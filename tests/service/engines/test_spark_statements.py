"""Statements and sessions on a Spark Connect server."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from sqlshell.errors import ServiceError
from sqlshell.interface.models import ColumnInfo
from sqlshell.service.engines.engine import CatalogQuery, Listing, RunOptions
from sqlshell.service.failure import Failure
from sqlshell.service.results.results import Discard
from tests.service import spark
from tests.service.spark import Session, needs_sail, needs_spark, statements
from tests.service.waiting import until

pytestmark = needs_spark

LONG = "select count(*) from range(300000000000) where sin(id * 1.0) * cos(id) > 2"


def begun(session: Session) -> bool:
    """Whether the server has responded to the statement that runs."""
    running = session.connection._running
    return running is not None and running.begun


def test_statements_that_return_no_rows_say_what_they_did(session: Session) -> None:
    made = [session.run(sql) for sql in ("create table answered (i int)", "insert into answered values (1), (2)")]
    dropped = session.run("/* a comment */ drop table answered;")
    assert [(item.message.partition(" 2")[0], item.columns) for item in (*made, dropped)] == [
        ("CREATE TABLE", None),
        ("INSERT", None),
        ("DROP TABLE", None),
    ]


def test_a_value_of_a_query_is_no_answer(session: Session) -> None:
    assert session.rows("select true as value") == [["true"]]


def test_the_context_follows_use(session: Session) -> None:
    first = session.connection.database, session.connection.schema
    session.run("create schema if not exists followed")
    session.run("use schema followed")
    assert (session.connection.database, session.connection.schema) == (first[0], "followed")
    session.connection.use("", "")
    assert session.rows("select current_catalog(), current_schema()") == [[*first]]
    session.connection.use(first[0], "followed")
    assert session.rows("select current_schema()") == [["followed"]]


def test_a_missing_place_is_told_and_changes_nothing(session: Session) -> None:
    before = session.connection.database, session.connection.schema
    for database, schema, state in (("nowhere", "", "3D002"), ("", "nowhere", "3D003"), (before[0], "it's", "3D003")):
        with pytest.raises(Failure) as raised:
            session.connection.use(database, schema)
        assert raised.value.sql_state == state
        assert (session.connection.database, session.connection.schema) == before
    assert session.rows("select current_catalog(), current_schema()") == [[*before]]


def test_the_time_zone_is_that_of_the_request(session: Session) -> None:
    sql = "select current_timezone(), cast(timestamp'2024-01-01 00:00:00' as string)"
    for zone in ("Asia/Tokyo", "UTC"):
        assert session.run(sql, RunOptions(timezone=zone)).rows[0][0] == zone
        assert session.connection.timezone == zone
    tokyo = session.run("select timestamp'2024-01-01 09:00:00'", RunOptions(timezone="Asia/Tokyo"))
    assert tokyo.rows == [["2024-01-01 00:00:00Z"]]


def test_sessions_have_their_own_views(spark_engine: Any, session: Session, tmp_path: Path) -> None:
    other = Session(spark_engine, tmp_path)
    session.run("create temp view own_view as select 42 as answer")
    assert session.rows("select * from own_view") == [["42"]]
    assert other.failure("select * from own_view").sql_state == "42P01"
    other.connection.close()


def test_a_row_limit_ends_the_statement(session: Session) -> None:
    outcome = session.run("select * from range(1000000000)", RunOptions(row_limit=70_000))
    assert (len(outcome.rows), outcome.sql_state, outcome.message) == (70_000, "01R01", "stopped after 70,000 rows")
    exact = session.run("select * from range(10)", RunOptions(row_limit=10))
    assert (len(exact.rows), exact.sql_state) == (10, "00000")


def test_too_many_columns_are_refused(session: Session) -> None:
    wide = f"select {', '.join(f'{number} as column{number}' for number in range(20))}"
    assert session.failure(wide, RunOptions(columns=19)).sql_state == "54011"
    assert session.failure(wide, RunOptions(columns_size=100)).sql_state == "54011"
    assert len(session.rows(wide)[0]) == 20


def test_partitions_have_limits_in_rows_and_bytes(session: Session) -> None:
    limits = RunOptions(partition_rows=5_000, partition_bytes=1 << 20)
    spool = session.spool(5_000)
    outcome = session.connection.run("select id, repeat('x', 1000) as x from range(60000) order by id", limits, spool)
    shown = session.shown(outcome, spool)
    assert outcome.filed is not None
    assert max(rows for rows, _ in outcome.filed) < 1100
    assert [row[0] for row in shown.rows] == [str(number) for number in range(60_000)]


@pytest.mark.parametrize("rows", [3, 200_000])
def test_without_a_file_rows_are_text(session: Session, rows: int) -> None:
    class Text(Discard):
        def __init__(self) -> None:
            self.kept: list[str] = []

        def keep(self, rows: Any) -> None:
            self.kept += rows

    sink = Text()
    outcome = session.connection.run(f"select id, 'ä' as t from range({rows}) order by id", RunOptions(), sink)
    assert outcome.filed is None
    assert sink.kept == [f'["{number}","ä"]' for number in range(rows)]


def test_a_running_statement_is_canceled(session: Session) -> None:
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(session.failure, LONG)
        until(lambda: begun(session))
        session.connection.cancel()
        assert running.result().sql_state == "57000"
    assert session.rows("select 1") == [["1"]]


@needs_sail
def test_a_statement_is_canceled_while_its_rows_arrive(session: Session) -> None:
    """A sink that does not return holds up nothing but its own statement. Apache Spark makes all rows before it sends
    the first."""
    entered, go = threading.Event(), threading.Event()
    spool = session.spool()

    class Slow(Discard):
        def keep(self, rows: Any) -> None:
            entered.set()
            assert go.wait(60)

    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(session.connection.run, "select * from range(100000000000)", RunOptions(), Slow())
        assert entered.wait(60)
        assert Session(session.engine, spool._place().parent).rows("select 1") == [["1"]]
        session.connection.cancel()
        go.set()
        with pytest.raises(Failure) as raised:
            running.result()
    assert raised.value.sql_state == "57000"


def test_an_abandoned_statement_ends_with_its_session(session: Session) -> None:
    session.run("create temp view lost_view as select 1")
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(session.failure, LONG)
        until(lambda: begun(session))
        assert session.connection.cancel(force=True)
        assert running.result().sql_state == "57P02"
    assert session.failure("select * from lost_view").sql_state == "42P01"


def test_relations_schemas_and_databases_are_listed(session: Session, spark_engine: Any) -> None:
    statements(
        session,
        (
            "create schema if not exists listed",
            "use schema listed",
            "drop table if exists a_table",
            "drop view if exists a_view",
            "create table a_table (i int, m map<string,decimal(10,2)>)",
            "create view a_view as select 1 as one",
            "create temp view a_temporary_view as select 2 as two",
        ),
    )
    seen, place = session.connection, (session.connection.database, "listed")
    relations = spark_engine.catalog(CatalogQuery("relations", *place), seen)
    assert [row[:4] for row in relations] == [
        ("a_table", "listed", "table", place[0]),
        ("a_view", "listed", "view", place[0]),
    ]
    assert spark_engine.catalog(CatalogQuery("relations", *place, name="A_VIEW"), seen) == relations[1:]
    assert ("listed", place[0]) in spark_engine.catalog(CatalogQuery("schemas", place[0]), seen)
    assert (place[0],) in spark_engine.catalog(CatalogQuery("databases"), seen)
    assert (place[0],) not in spark_engine.catalog(CatalogQuery("databases", hidden={place[0], "system"}))
    assert spark_engine.catalog(CatalogQuery("functions"), seen) == []
    assert spark_engine.catalog(CatalogQuery("relation", *place, "a_table"), seen)
    assert not spark_engine.catalog(CatalogQuery("relation", *place, "it's nothing"), seen)
    assert session.connection.columns((*place, "a_table"), RunOptions()) == [
        ColumnInfo("i", "INTEGER", True),
        ColumnInfo("m", "MAP<VARCHAR, DECIMAL(10,2)>", True),
    ]
    assert [item.name for item in session.connection.columns((*place, "a_temporary_view"), RunOptions())] == ["two"]
    with pytest.raises(Failure) as raised:
        session.connection.columns((*place, "nothing"), RunOptions())
    assert raised.value.sql_state == "42P01"
    statements(session, ("drop table a_table", "drop view a_view"))


def test_functions_are_known(spark_engine: Any) -> None:
    assert spark_engine.catalog(CatalogQuery("function", name="upper"))
    assert not spark_engine.catalog(CatalogQuery("function", name="no_such_function"))
    assert not spark_engine.catalog(CatalogQuery("function", name="it's"))


def test_rows_of_the_service_are_a_relation(session: Session, spark_engine: Any) -> None:
    columns = [("name", "VARCHAR"), ("odd `name`", "BOOLEAN"), ("n", "INTEGER"), ("at", "TIMESTAMP_LTZ(6)")]
    filled = Listing(columns, [['it\'s \\ "ä"', "true", "7", "2024-01-01 00:00:00.5Z"], ["", "false", "8", ""]])
    outcome = session.run(f"select * from ({spark_engine.inline(filled)})")
    assert outcome.rows == [['it\'s \\ "ä"', "true", "7", "2024-01-01 00:00:00.5Z"], ["", "false", "8", None]]
    assert [(item.name, item.type) for item in outcome.columns or ()] == columns
    empty = session.run(spark_engine.inline(Listing(columns, [])))
    assert ([item.type for item in empty.columns or ()], empty.rows) == ([kind for _, kind in columns], [])


@needs_sail
def test_a_restarted_server_gets_the_context_again(tmp_path: Path) -> None:
    from sqlshell.service.engines.spark import plans
    from sqlshell.service.engines.spark.engine import SparkEngine

    with spark.restarted() as sail:
        engine = SparkEngine(sail.url)
        session = Session(engine, tmp_path)
        session.run("use catalog system", RunOptions(timezone="Asia/Tokyo"))
        session.connection.use("system", "session")
        with ThreadPoolExecutor(1) as threads:
            running = threads.submit(session.failure, LONG, RunOptions(timezone="Asia/Tokyo"))
            until(lambda: begun(session))
            sail.kill()
            sail.start()
            assert running.result().sql_state == "57P02"
        sql = "select current_catalog(), current_schema(), current_timezone()"
        again = session.run(sql, RunOptions(timezone="Asia/Tokyo"))
        assert again.rows == [["system", "session", "Asia/Tokyo"]]
        sail.kill()
        sail.start()
        assert session.run(sql, RunOptions(timezone="Asia/Tokyo")).rows == again.rows
        sail.kill()
        sail.start()
        [row] = engine._loop.run(session.connection.rows(plans.statement(sql)))
        assert list(row.values()) == again.rows[0]
        engine.close()


@needs_sail
def test_a_schema_that_the_server_lost_is_left(tmp_path: Path) -> None:
    from sqlshell.service.engines.spark.engine import SparkEngine

    with spark.restarted() as sail:
        engine = SparkEngine(sail.url)
        session = Session(engine, tmp_path)
        statements(session, ("create schema in_memory", "use schema in_memory"))
        sail.kill()
        sail.start()
        failure = session.failure("select current_schema()")
        assert (failure.sql_state, session.connection.schema) == ("57P02", "default")
        assert '"in_memory"' in failure.message
        assert session.rows("select current_schema()") == [["default"]]
        engine.close()


@needs_sail
def test_a_server_that_does_not_answer_is_told(tmp_path: Path) -> None:
    from sqlshell.service.engines.spark.engine import SparkEngine

    with spark.restarted() as sail:
        engine = SparkEngine(sail.url)
        session = Session(engine, tmp_path)
        assert session.rows("select 1") == [["1"]]
        sail.kill()
        failure = session.failure("select 1")
        assert failure.sql_state == "08006"
        assert f"127.0.0.1:{sail.port}: connection refused" in failure.message
        with pytest.raises(ServiceError, match="cannot reach the Spark Connect server"):
            SparkEngine(f"{sail.url};user_id=me")
        sail.start()
        assert session.rows("select 1") == [["1"]]
        engine.close()


def test_a_session_that_the_server_ended_is_made_again(session: Session, spark_engine: Any) -> None:
    session.run("create schema if not exists survives")
    first = session.connection.schema
    connection = session.connection
    session.run("select 1")
    spark_engine._loop.run(connection.client.end(connection.handle))
    failure = session.failure("select 1")
    assert failure.sql_state == "57P02"
    assert session.rows("select current_schema()") == [[first]]


def test_a_request_names_the_session_that_the_server_had(session: Session) -> None:
    """A restarted server refuses it; Sail does not look at the name."""
    from pyspark.sql.connect.proto import ConfigRequest

    from sqlshell.service.engines.spark.client import SparkHandle

    request = session.connection.client.fill(ConfigRequest(), SparkHandle("ours", "theirs"))
    assert (request.session_id, request.client_observed_server_side_session_id) == ("ours", "theirs")


def test_progress_is_between_none_and_all(session: Session, spark_engine: Any) -> None:
    seen: list[float] = []
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(session.run, "select count(*) from range(0, 60000000, 1, 16) where sin(id) > 2")
        while not running.done():
            if (share := session.connection.progress()) is not None:
                seen.append(share)
            time.sleep(0.01)
        running.result()
    assert all(0 <= share <= 1 for share in seen)
    assert spark_engine.capabilities.progress or not seen
