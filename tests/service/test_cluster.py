"""Several processes of one service share records, results, sessions and pools, and take over from one another."""

from __future__ import annotations

import random
import signal
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import serve
from tests.service.client import Client
from tests.service.cluster import LEASE, Processes, killed_under_load, needs_cluster, on_postgresql, processes
from tests.service.postgresql import database, needs_postgresql

pytestmark = [needs_postgresql, needs_cluster, pytest.mark.slow]


@pytest.fixture
def cluster(tmp_path: Path, postgresql_server: str) -> Iterator[Processes]:
    with (
        database(postgresql_server) as engine_url,
        database(postgresql_server) as state_url,
        processes(tmp_path, on_postgresql(engine_url), state_url, 2) as made,
    ):
        yield made


def both(cluster: Processes, session: str = "") -> tuple[Client, Client]:
    """Clients of the first two processes, in the same session."""
    name = session or str(uuid.uuid4())
    return Client(cluster.served[0], session=name), Client(cluster.served[1], session=name)


def test_a_session_goes_on_at_every_process(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second:
        first.rows("create temporary table t (i int)")
        second.rows("insert into t values (1)")
        second.rows("begin")
        first.rows("insert into t values (2)")
        assert second.run("select 1")["metadata"]["context"]["transaction"] == "open"
        first.rows("rollback")
        assert second.rows("select i from t") == [["1"]]
        second.rows("create schema s")
        first.rows("use schema s")
        assert second.run("select 1")["metadata"]["context"]["schemaName"] == "s"


def test_a_statement_is_looked_up_paged_and_canceled_at_another_process(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second:
        answer = second.wait(first.submit("select i, repeat('x', 100) from generate_series(1, 20000) i"))
        assert answer["sqlState"] == "00000"
        assert len(answer["metadata"]["partitionInfo"]) == 20
        page = second.http.get(f"/v2/statements/{answer['statementID']}", params={"partitionID": 19}).json()
        assert page["data"][-1][0] == "20000"
        parquet = {"Accept": "application/vnd.apache.parquet"}
        whole = [item.http.get(f"/v2/statements/{answer['statementID']}", headers=parquet) for item in (first, second)]
        assert whole[0].content == whole[1].content
        assert whole[1].content[:4] == b"PAR1"
        slow = first.submit("select pg_sleep(60)")
        with Client(cluster.served[1]) as third:
            assert "57000" in third.run(f"terminate query '{slow['statementID']}'")["message"]
        assert second.wait(slow)["sqlState"] == first.wait(slow)["sqlState"] == "57000"


def test_objects_and_tokens_are_the_same_everywhere(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second:
        made = first.run("create api_token t with ('roles' = 'owner')")
        assert made["sqlState"] == "00000", made
        assert ["t"] in [row[:1] for row in second.rows("list api_tokens")]
        first.rows("create compute_pool p with ('concurrency' = '1')")
        assert "p" in [row[0] for row in second.rows("list compute_pools")]


def test_a_source_is_downloaded_from_every_process(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second:
        made = first.run("create descriptor_source d with ('file' = 'a.desc')", [("a.desc", b"\x00content")])
        assert made["sqlState"] == "00000", made
        place = f"/v2/download/descriptor_source/{made['metadata']['context']['organizationID']}/d"
        assert [item.http.get(place).content for item in (second, first)] == [b"\x00content"] * 2
        second.rows("drop descriptor_source d")
        assert first.http.get(place).status_code == 404


def test_a_pool_holds_in_all_processes_together(cluster: Processes) -> None:
    with Client(cluster.served[0]) as first, Client(cluster.served[1]) as second:
        first.rows("create compute_pool p with ('concurrency' = '1')")
        slow = first.submit("select pg_sleep(60)", computePool="p")
        waiting = second.submit("select 1", computePool="p")
        time.sleep(1.5)
        assert second.http.get(f"/v2/statements/{waiting['statementID']}").json()["sqlState"] == "03000"
        first.run(f"terminate query '{slow['statementID']}'")
        assert second.wait(waiting)["sqlState"] == "00000"


def test_the_statements_of_a_killed_process_are_ended_by_others(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second:
        first.rows("create table t (i int)")
        done = first.run("insert into t values (1)")
        slow = first.submit("insert into t select 2 from pg_sleep(60)")
        cluster.kill(cluster.served[0])
        assert second.wait(done)["sqlState"] == "00000"
        until = time.monotonic() + 3 * LEASE
        while slow["sqlState"] == "03000" and time.monotonic() < until:
            time.sleep(0.2)
            slow = second.http.get(f"/v2/statements/{slow['statementID']}").json()
        assert slow["sqlState"] == "XX000"
        assert "stopped while the statement was running" in slow["message"]
        # Its session is made again here, and says so once.
        assert second.run("select i from t")["sqlState"] == "57P02"
        assert second.rows("select i from t") == [["1"]]


def test_a_process_that_was_suspended_too_long_does_not_contradict_the_others(cluster: Processes) -> None:
    with Client(cluster.served[0]) as first, Client(cluster.served[1]) as second:
        slow = first.submit("select pg_sleep(3)")
        cluster.served[0].process.send_signal(signal.SIGSTOP)
        until = time.monotonic() + 3 * LEASE
        while time.monotonic() < until:
            time.sleep(0.2)
            found = second.http.get(f"/v2/statements/{slow['statementID']}").json()
            if found["sqlState"] != "03000":
                break
        cluster.served[0].process.send_signal(signal.SIGCONT)
        assert found["sqlState"] == "XX000"
        time.sleep(3)
        assert first.http.get(f"/v2/statements/{slow['statementID']}").json()["sqlState"] == "XX000"
        # Its session was not used elsewhere meanwhile, but it could have been.
        assert first.run("select 1")["sqlState"] == "57P02"
        assert first.rows("select 1") == [["1"]]


def test_no_finished_statement_is_lost_or_runs_twice_when_processes_are_killed(cluster: Processes) -> None:
    found = killed_under_load(cluster, 4, random.Random(7))
    assert found.statements > 20
    assert not found.wrong, found


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--state-url", "postgresql://x/y"], "requires --engine postgresql"),
        (["--results-url", "file:///tmp/x"], "--results-url requires --state-url"),
        (["--engine", "postgresql"], "requires --engine-url"),
    ],
)
def test_options_that_cannot_work_together_are_refused(tmp_path: Path, options: list[str], said: str) -> None:
    message = tmp_path / "message"
    with pytest.raises(AssertionError):
        serve(tmp_path, *options, stderr=message)
    assert said in message.read_text()


def test_a_database_that_does_not_respond_is_said_to_be_so(tmp_path: Path, postgresql_database: str) -> None:
    message = tmp_path / "message"
    url = f"postgresql://x@/y?host={tmp_path}"
    more = ("--engine-url", postgresql_database, "--results-url", f"file://{tmp_path}/shared")
    with pytest.raises(AssertionError):
        serve(tmp_path, "--engine", "postgresql", "--state-url", url, *more, stderr=message)
    assert "cannot use the database of --state-url" in message.read_text()


def test_a_header_that_a_client_makes_up_changes_nothing(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second:
        first.rows("create temporary table t (i int)")
        second.http.headers["Sqlshell-Forwarded"] = "x"
        assert second.rows("select * from t") == []


def test_a_lost_transaction_is_not_gone_on_with(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second:
        first.rows("create table t (i int)")
        first.rows("begin")
        first.rows("insert into t values (1)")
        cluster.kill(cluster.served[0])
        time.sleep(LEASE + 2)
        lost = second.run("insert into t values (2)")
        assert (lost["sqlState"], "was not run" in lost["message"]) == ("57P02", True)
        assert second.rows("select i from t") == []


def test_a_session_of_another_token_is_not_terminated_by_its_name(cluster: Processes) -> None:
    with Client(cluster.served[0], session="same") as first:
        first.rows("create temporary table t (i int)")
        made = first.run("create api_token o with ('roles' = 'owner')")
        names = [column["name"].lower() for column in made["metadata"]["columns"]]
        given = str(made["data"][0][names.index("token")])
        with Client(cluster.served[1], token=given, session="same") as other:
            other.rows("select 1")
        with Client(cluster.served[0], token=given) as other:
            assert other.run("terminate session 'same'")["sqlState"] == "0A000"
        assert first.rows("select i from t") == []
