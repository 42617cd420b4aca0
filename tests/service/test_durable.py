"""Everything that a service with --data has reported as finished exists after kill -9."""

from __future__ import annotations

import contextlib
import random
import signal
import sqlite3
import threading
import time
from pathlib import Path

import httpx
import pytest

from tests.conftest import Done, Program, Served, serve, stop
from tests.service.client import Client
from tests.service.tested_engines import OnEngine
from tests.service.waiting import until

pytestmark = pytest.mark.slow("starts services again")


def kill(served: Served) -> None:
    served.process.send_signal(signal.SIGKILL)
    served.process.wait(10)
    assert served.process.stdout is not None
    served.process.stdout.close()


def test_databases_streams_and_what_ran_are_found_after_a_kill(tmp_path: Path) -> None:
    running = serve(tmp_path, "--data", "data", "--partition-rows", "1000")
    with Client(running) as client:
        client.rows("create table t as select range as i from range(10)")
        client.rows("create database second")
        client.rows("create table second.main.u as select 7 as i")
        client.rows("create stream s (i int)")
        client.rows("insert into s values (1), (2)")
        endless = client.submit("select * from s")
        lost = client.submit("select count(*) from range(100000000000) a, range(1000) b")
        client.wait_until_it_runs(lost)
    kill(running)
    again = serve(tmp_path, "--data", "data", "--partition-rows", "500")
    try:
        with Client(again) as client:
            for gone in (lost, endless):
                answer = client.http.get(f"/v2/statements/{gone['statementID']}").json()
                assert answer["sqlState"] == "XX000"
                assert "may have taken effect" in answer["message"]
            assert client.rows("select count(*) from t") == [["10"]]
            assert client.rows("select * from second.main.u") == [["7"]]
            streams = client.listed("list streams")
            assert [(row["Name"], row["Schema"], row["Database"]) for row in streams] == [("s", "main", "local")]
            assert client.run("select * from s")["metadata"]["dataplaneRequest"]["requestType"] == "streaming"
    finally:
        assert stop(again) == 0


def test_a_statement_that_was_only_queued_has_not_run_after_a_kill(tmp_path: Path) -> None:
    running = serve(tmp_path, "--data", "data")
    with Client(running) as client, Client(running) as other:
        client.rows("create compute_pool p with ('concurrency' = 1)")
        client.rows("create table t (i int)")
        for each in (client, other):
            each.run("use compute_pool p")
        client.rows("select 1")
        begun = client.submit("select count(*) from range(100000000000) a, range(1000) b")
        until(lambda: client.http.get(f"/v2/statements/{begun['statementID']}").json().get("message") is None)
        of_session, of_pool = client.submit("insert into t values (1)"), other.submit("insert into t values (2)")
    kill(running)
    again = serve(tmp_path, "--data", "data")
    try:
        with Client(again) as client:
            ends = [
                client.http.get(f"/v2/statements/{each['statementID']}").json() for each in (begun, of_session, of_pool)
            ]
            assert [answer["sqlState"] for answer in ends] == ["XX000", "57000", "57000"]
            assert ["not run" in answer["message"] for answer in ends] == [False, True, True]
            assert client.rows("select count(*) from t") == [["0"]]
    finally:
        assert stop(again) == 0


def test_records_and_results_of_each_engine_are_found_after_a_kill(engine: OnEngine, tmp_path: Path) -> None:
    with engine.place() as place:
        running = serve(tmp_path, "--data", "data", "--partition-rows", "1000", *place)
        with Client(running) as client:
            client.rows("create compute_pool p with ('concurrency' = 3)")
            client.rows("create function_source f with ('file' = 'f.jar')", files=[("f.jar", b"bytes")])
            token = str(client.rows("create api_token kept with ('role' = 'owner')")[0][1])
            small = client.run("select 1 as a, null as b", timezone="UTC")
            text = client.run(f"select i, repeat('é', 300) as t from {engine.series(4500)} order by i")
            large = client.run(f"select i, {engine.sql.instant} as z from {engine.series(70_500)} order by i")
            failed = client.run("select * from none")
        kill(running)
        again = serve(tmp_path, "--data", "data", "--partition-rows", "500", *place)
        with Client(again) as client:
            for before in (small, text, large, failed):
                assert client.http.get(f"/v2/statements/{before['statementID']}").json() == before
            for before, last in ((text, 4), (large, 70)):
                for number in (1, last):
                    page = client.http.get(f"/v2/statements/{before['statementID']}", params={"partitionID": number})
                    assert page.json()["data"][0][0] == str(1000 * number)
            assert client.names("list compute_pools") == ["default", "p"]
            organization = client.rows("list organizations")[0][1]
            assert client.http.get(f"/v2/download/function_source/{organization}/f").content == b"bytes"
        with Client(again, token) as owner:
            assert owner.rows("select 1") == [["1"]]
        assert stop(again) == 0


def test_killed_at_random_moments_under_load(tmp_path: Path) -> None:
    """A few rounds of what `python -m tests.benchmarks kills` does 200 times."""
    from tests.service.kills import rounds

    assert rounds(tmp_path, 3, random.Random(5)) == (0, 0)


def test_a_second_service_is_refused(program: Program, tmp_path: Path) -> None:
    running = serve(tmp_path, "--data", "data")
    done = program("serve", "--port", "0", "--token-file", "token", "--data", "data")
    assert done.code == 3
    assert f"in use by another service (process {running.process.pid})" in done.err
    with Client(running) as client:
        assert client.rows("select 1") == [["1"]]
    assert stop(running) == 0


def test_sigterm_drains(engine: OnEngine, tmp_path: Path) -> None:
    with engine.place() as place:
        running = serve(tmp_path, "--data", "data", "--grace", "20", *place)
        with Client(running) as client:
            short = client.submit(engine.sql.long)
            running.process.send_signal(signal.SIGTERM)
            for _ in range(50):
                try:
                    answer = client.http.post("/v2/statements", json={"statement": "select 1"})
                except httpx.TransportError:
                    break
                if answer.status_code == 503:
                    break
                time.sleep(0.01)
        assert running.process.wait(30) == 0
        assert running.process.stdout is not None
        running.process.stdout.close()
        again = serve(tmp_path, "--data", "data", *place)
        with Client(again) as client:
            assert client.http.get(f"/v2/statements/{short['statementID']}").json()["sqlState"] == "00000"
        assert stop(again) == 0


@pytest.mark.needs("cancel")
def test_a_grace_that_runs_out_ends_what_runs(engine: OnEngine, tmp_path: Path) -> None:
    with engine.place() as place:
        running = serve(tmp_path, "--data", "data", "--grace", "0.2", *place)
        with Client(running) as client:
            endless = client.submit(engine.sql.endless)
            client.wait_until_it_runs(endless)
        assert stop(running) == 0
        again = serve(tmp_path, "--data", "data", *place)
        with Client(again) as client:
            assert client.http.get(f"/v2/statements/{endless['statementID']}").json()["sqlState"] == "XX000"
        assert stop(again) == 0


def test_retention_and_quota(engine: OnEngine, tmp_path: Path) -> None:
    with engine.place() as place:
        check_retention_and_quota(engine, tmp_path, place)


def check_retention_and_quota(engine: OnEngine, tmp_path: Path, place: tuple[str, ...]) -> None:
    # 0.02 GiB: two results of 10 MB fit.
    running = serve(tmp_path, "--data", "data", "--quota", "0.02", *place)
    with Client(running) as client:
        hashes = "md5(cast(i as varchar(20))) as a, md5(cast(i + 1 as varchar(20))) as b"
        sql = f"select {hashes} from {engine.series(160_000)}"
        made = [client.run(sql)["statementID"] for _ in range(5)]

        def statuses() -> list[int]:
            return [client.http.get(f"/v2/statements/{name}").status_code for name in made]

        # The service looks after a large result for what is too much.
        until(lambda: statuses()[0] == 404)

        def settled() -> list[int] | None:
            files, found = list((tmp_path / "data").rglob("results/*")), statuses()
            return found if len(files) == found.count(200) else None

        # The file goes before the statement.
        found = until(settled)
    assert stop(running) == 0
    assert found[0] == 404
    assert found[-1] == 200
    brief = serve(tmp_path, "--data", "data", "--retention", "0", *place)
    with Client(brief) as client:
        until(lambda: client.http.get(f"/v2/statements/{made[-1]}").status_code != 200)
        assert client.http.get(f"/v2/statements/{made[-1]}").status_code == 404
    assert stop(brief) == 0
    assert not list((tmp_path / "data").rglob("results/*"))


def test_half_written_uploads_and_lost_results_go(tmp_path: Path) -> None:
    running = serve(tmp_path, "--data", "data")
    with Client(running) as client:
        client.state("create function_source f with ('file' = 'f.jar')", [("f.jar", b"x")])
    results = next((tmp_path / "data").glob("organizations/*")) / "results"
    kill(running)
    results.mkdir(exist_ok=True)
    (results / "orphan").write_bytes(b"x")
    (tmp_path / "data" / "uploads" / "half").write_bytes(b"x")
    again = serve(tmp_path, "--data", "data")
    assert not (results / "orphan").exists()
    assert not (tmp_path / "data" / "uploads" / "half").exists()
    assert stop(again) == 0


def test_tokens_are_made_beside_a_running_service_and_kept_as_hashes(program: Program, tmp_path: Path) -> None:
    running = serve(tmp_path, "--data", "data")

    def made(*options: str) -> Done:
        return program("serve", "--new-token", "--data", "data", *options)

    token = made("--role", "reader").out.strip()
    assert len(token) > 30
    with Client(running, token) as reader:
        assert reader.rows("select 1") == [["1"]]
        assert reader.state("create table t (i int)") == "42501"
    assert made("--organization", "nowhere").code == 2
    assert made("--role", "king").code == 2
    assert stop(running) == 0
    for file in (tmp_path / "data").rglob("*"):
        assert not file.is_file() or token.encode() not in file.read_bytes()


def test_a_damaged_folder_is_told_in_a_line(program: Program, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "service.sqlite").write_bytes(b"not a database at all" * 100)
    (tmp_path / "token").write_text("token-of-the-test")
    (tmp_path / "token").chmod(0o600)
    done = program("serve", "--port", "0", "--token-file", "token", "--data", "data")
    assert done.code == 2
    assert "cannot use" in done.err


def test_the_record_is_written_before_the_statement_runs(engine: OnEngine, tmp_path: Path) -> None:
    with engine.place() as place:
        running = serve(tmp_path, "--data", "data", *place)
        with Client(running) as client:
            answer = client.submit(engine.sql.endless)
            thread = threading.Event()
            thread.wait(0.1)
            with contextlib.closing(sqlite3.connect(tmp_path / "data" / "service.sqlite")) as base:
                found = base.execute("select state from statements where id = ?", (answer["statementID"],)).fetchall()
            assert found == [("03000",)]
        kill(running)
