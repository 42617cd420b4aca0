"""The time zone of a session, and settings that only the service may change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sqlshell.context import SessionContext
from sqlshell.interface.models import ContextEcho
from sqlshell.service.engines.duckdb.instance import DuckdbEngine
from sqlshell.service.engines.engine import RunOptions
from sqlshell.service.failure import Failure
from tests.conftest import Program, Served
from tests.service.client import Client
from tests.service.test_rendering import Kept, Session

NOON = "SELECT TIMESTAMPTZ '2024-01-01 12:00:00+00' AS t, [TIMESTAMPTZ '2024-01-01 12:00:00+00'] AS l"
TOKYO = [["2024-01-01 21:00:00+09:00", '["2024-01-01 21:00:00+09:00"]']]
BERLIN = [["2024-01-01 13:00:00+01:00", '["2024-01-01 13:00:00+01:00"]']]
UTC = [["2024-01-01 12:00:00Z", '["2024-01-01 12:00:00Z"]']]


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    made = Session(tmp_path)
    yield made
    made.close()


def test_set_timezone_holds_until_another_zone_is_asked_for(served: Served) -> None:
    with Client(served) as client:
        asks_utc: dict[str, Any] = {"parameters": {"sessionID": client.session, "timezone": "UTC"}}
        asks_berlin: dict[str, Any] = {"parameters": {"sessionID": client.session, "timezone": "Europe/Berlin"}}
        assert client.rows(NOON, **asks_utc) == UTC
        assert client.run("SET TimeZone = 'Asia/Tokyo'", **asks_utc)["metadata"]["context"]["timezone"] == "Asia/Tokyo"
        answer = client.run(NOON, **asks_utc)
        assert (answer["metadata"]["context"]["timezone"], answer["data"]) == ("Asia/Tokyo", TOKYO)
        assert client.rows("SELECT TIMESTAMPTZ '2024-01-01 12:00:00+00'::VARCHAR", **asks_utc) == [
            ["2024-01-01 21:00:00+09"]
        ]
        path = f"/v2/statements/{answer['statementID']}"
        assert client.http.get(path).json()["data"] == TOKYO
        assert client.http.get(path, params={"timezone": "UTC"}).json()["data"] == TOKYO
        assert client.http.get(path, params={"timezone": "Europe/Berlin"}).json()["data"] == BERLIN
        assert client.rows(NOON, **asks_berlin) == BERLIN
        client.run("SET TimeZone = 'Asia/Tokyo'", **asks_berlin)
        assert client.rows(NOON, **asks_berlin) == TOKYO
        client.run("RESET TimeZone", **asks_berlin)
        assert client.rows(NOON, **asks_berlin) == UTC


def test_a_request_without_a_zone_leaves_that_of_the_session(served: Served) -> None:
    with Client(served) as client:
        assert client.rows(NOON) == UTC
        assert client.rows(NOON, parameters={"sessionID": client.session, "timezone": "Asia/Tokyo"}) == TOKYO
        answer = client.run(NOON)
        assert (answer["metadata"]["context"]["timezone"], answer["data"]) == ("Asia/Tokyo", TOKYO)
        client.run("SET TimeZone = 'Europe/Berlin'")
        assert client.rows(NOON) == BERLIN
        # The same zone as before is no other one.
        assert client.rows(NOON, parameters={"sessionID": client.session, "timezone": "Asia/Tokyo"}) == BERLIN


def test_a_session_that_another_zone_is_asked_of_tells_it(served: Served) -> None:
    with Client(served) as client:
        answer = client.run("USE DATABASE local", parameters={"sessionID": client.session, "timezone": "Asia/Tokyo"})
        assert "timezone" not in answer["metadata"]["context"]


@pytest.mark.parametrize(
    "sql",
    [
        "SET TimeZone = 'Asia/Tokyo'",
        "set time zone 'Asia/Tokyo'",
        "SET /* a comment */ \"TimeZone\" TO 'Asia/Tokyo'",
        "PRAGMA TimeZone = 'Asia/Tokyo'",
    ],
)
def test_each_way_to_set_the_zone(session: Session, sql: str) -> None:
    session.run("SELECT 1", RunOptions(timezone="Europe/Berlin"))
    session.run(sql, RunOptions(timezone="Europe/Berlin"))
    assert session.connection.timezone == "Asia/Tokyo"
    session.run("SELECT 1", RunOptions(timezone="Europe/Berlin"))
    assert session.rows("SELECT current_setting('TimeZone')", RunOptions(timezone="Europe/Berlin")) == [["Asia/Tokyo"]]


@pytest.mark.parametrize("sql", ["RESET TimeZone", "SET TimeZone = DEFAULT"])
def test_each_way_back(session: Session, sql: str) -> None:
    berlin = RunOptions(timezone="Europe/Berlin")
    session.run("SET TimeZone = 'Asia/Tokyo'", berlin)
    session.run(sql, berlin)
    assert session.rows("SELECT current_setting('TimeZone')", berlin) == [["Europe/Berlin"]]


@pytest.mark.parametrize("zone", ["ACT", "GMT+5"])
def test_a_zone_without_rules_is_refused_and_not_taken(session: Session, zone: str) -> None:
    session.run("SELECT 1", RunOptions(timezone="Europe/Berlin"))
    with pytest.raises(Failure, match="unknown time zone"):
        session.run(f"SET TimeZone = '{zone}'", RunOptions(timezone="Europe/Berlin"))
    assert session.rows("SELECT current_setting('TimeZone')", RunOptions(timezone="Europe/Berlin")) == [
        ["Europe/Berlin"]
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "SET GLOBAL TimeZone = 'Asia/Tokyo'",
        "SET enable_progress_bar_print = true",
        "PRAGMA enable_print_progress_bar",
        "PRAGMA enable_profiling",
        "SET enable_profiling = 'json'",
        "CALL enable_profiling()",
        "CALL enable_logging(storage = 'stdout')",
        "SET logging_storage = 'stdout'",
    ],
)
def test_what_would_have_no_effect_or_print_is_refused(session: Session, sql: str) -> None:
    with pytest.raises(Failure) as caught:
        session.run(sql)
    assert caught.value.sql_state == "0A000"


@pytest.mark.parametrize(
    "sql", ["SET enable_progress_bar_print = false", "SET enable_profiling = 'no_output'", "RESET enable_profiling"]
)
def test_what_prints_nothing_is_taken(session: Session, sql: str, capfd: pytest.CaptureFixture[str]) -> None:
    session.run(sql)
    assert session.rows("SELECT sum(range) FROM range(5)") == [["10"]]
    assert capfd.readouterr().out == ""


def test_a_profile_may_go_to_a_file(session: Session, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    session.run(f"SET profiling_output = '{tmp_path}/profile.txt'")
    session.run("PRAGMA enable_profiling")
    assert session.rows("SELECT sum(range) FROM range(5)") == [["10"]]
    session.run("PRAGMA disable_profiling")
    assert (tmp_path / "profile.txt").stat().st_size
    assert capfd.readouterr().out == ""


def test_a_locked_configuration_leaves_sessions_usable(tmp_path: Path) -> None:
    engine = DuckdbEngine()
    first = engine.connect()
    sink = Kept(tmp_path / "result")
    first.run("CREATE SCHEMA s", RunOptions(), sink)
    first.run("SET lock_configuration = true", RunOptions(timezone="UTC"), sink)
    with pytest.raises(Failure, match="locked"):
        first.run("SET threads = 1", RunOptions(timezone="UTC"), sink)
    second = engine.connect()
    for connection in (first, second):
        connection.run("SELECT sum(range) FROM range(5)", RunOptions(timezone="Asia/Tokyo"), sink)
        connection.use("memory", "s")
        assert (connection.timezone, connection.schema) == ("Asia/Tokyo", "s")
        connection.close()
    engine.close()


def test_large_results_without_access_to_files(session: Session) -> None:
    session.run("SET enable_external_access = false")
    outcome, body = session.run("SELECT range AS n, 'x' || range AS t FROM range(60000)")
    assert outcome.filed is None
    assert body.count(b"[") == 60_000


def test_the_shell_follows_the_zone_of_the_session(program: Program) -> None:
    script = f"set timezone = 'Asia/Tokyo';\n{NOON};\n\\context\nreset timezone;\n{NOON};"
    done = program("--no-rc", "--timezone", "Europe/Berlin", "--format", "csv", stdin=script)
    assert "Asia/Tokyo" in done.err
    found = [line for line in done.out.splitlines() if line.startswith("2024")]
    assert [line[:25] for line in found] == [TOKYO[0][0], BERLIN[0][0]]


@pytest.mark.parametrize("hostile", ["../../etc/passwd", "\x1b[31m", "No/Where", "x" * 5000])
def test_an_echoed_zone_that_is_none_is_not_taken(hostile: str) -> None:
    context = SessionContext(timezone="Europe/Berlin")
    assert context.adopt(ContextEcho(timezone=hostile)).timezone == "Europe/Berlin"
    assert context.adopt(ContextEcho(timezone="Asia/Tokyo")).timezone == "Asia/Tokyo"


def test_a_write_conflict_of_two_sessions_can_be_recognized(served: Served) -> None:
    with Client(served) as first, Client(served) as second:
        first.rows_of_nothing("create table conflicts (a integer)")
        first.rows("insert into conflicts values (1)")
        first.rows_of_nothing("begin")
        first.rows("update conflicts set a = 2")
        assert second.state("update conflicts set a = 3") == "40001"
        first.rows_of_nothing("create table made_twice (a integer)")
        refused = second.run("create table made_twice (a integer)")
        assert (refused["sqlState"], 'with "made_twice"' in refused["message"]) == ("40001", True)
        assert refused["message"].endswith("HINT: another transaction has changed the same; run yours again")
        first.rows_of_nothing("rollback")
        assert second.state("update conflicts set a = 3") == "00000"
        first.rows_of_nothing("drop table conflicts")


def test_words_in_names_decide_no_state(served: Served) -> None:
    with Client(served) as client:
        assert client.state('select "constraint violation" from range(1)') == "42703"
        assert client.state('insert into "Transaction conflict" values (1)') == "3D020"
        assert client.state('drop table "write-write conflict"') == "3D020"
