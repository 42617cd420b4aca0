"""What clients notice when an engine's process exits: those of its organization, and those of others."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.sync.client import connect

from sqlshell.interface.models import Parameters, StatementRequest
from sqlshell.service.catalog import Caller
from sqlshell.service.engines.process.remote import RemoteEngine
from sqlshell.service.settings import Settings
from sqlshell.service.setup import make_statements, open_storage
from sqlshell.service.statements import control
from tests.conftest import Served, serve, stop
from tests.forked import SOURCE
from tests.service.client import Client
from tests.service.test_batches import post
from tests.service.test_processes import LONG
from tests.service.waiting import suspend, until


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service that others do not use, with a second organization."""
    running = serve(tmp_path_factory.mktemp("replaced"), "--data", "data", "--partition-rows", "1000")
    with Client(running) as client:
        client.rows("create organization other")
        client.rows("select 1", organization="other")
    yield running
    stop(running)


def engines(served: Served) -> list[int]:
    """The processes of the engines, the oldest first: those of the organizations in the order of their opening."""
    found = subprocess.run(["ps", "-axo", "ppid=,pid=,comm="], capture_output=True, text=True, check=True).stdout
    running = [line.split(None, 2) for line in found.splitlines()]
    parent = str(served.process.pid)
    return sorted(int(line[1]) for line in running if line[0] == parent and line[2:] != [SOURCE])


@pytest.fixture
def first(place: Served) -> int:
    """The process of the first organization's engine."""
    for pid in engines(place):
        os.kill(pid, signal.SIGKILL)
    until(lambda: not engines(place))
    with Client(place) as client:
        client.rows("select 1")
        alone = engines(place)
        client.rows("select 1", organization="other")
    assert len(alone) == 1
    return alone[0]


def test_one_organization_dies_and_the_others_go_on(place: Served, first: int) -> None:
    with Client(place) as client, Client(place) as other, Client(place) as idle:
        assert idle.state("select 1") == "00000"
        small, large = client.run("select 42"), client.run("from range(100000)")
        other.rows("select 1", organization="other")
        running, beside = client.submit(LONG), other.submit(LONG)
        until(
            lambda: (
                client.http.get(f"/v2/statements/{running['statementID']}").json().get("message")
                != "the statement is queued"
            )
        )
        os.kill(first, signal.SIGKILL)
        ended = client.wait(running)
        assert ended["sqlState"] == "XX000" and "was killed by SIGKILL" in ended["message"]
        assert [client.state("select 1") for _ in range(2)] == ["01000", "00000"]
        warned = idle.run("select 1")
        assert warned["sqlState"] == "01000" and "was restarted" in warned["message"]
        assert idle.state("select 1") == "00000"
        assert client.http.get(f"/v2/statements/{small['statementID']}").json()["data"] == [["42"]]
        page = client.http.get(f"/v2/statements/{large['statementID']}", params={"partitionID": 99}).json()
        assert page["data"][-1] == ["99999"]
        assert client.http.get(f"/v2/statements/{beside['statementID']}").json()["sqlState"] == "03000"
        with Client(place) as killer:
            killer.rows(f"terminate query '{beside['statementID']}'", organization="other")
        assert other.state("select 1") == "00000"


def test_results_are_read_while_processes_die(place: Served) -> None:
    with Client(place) as client:
        answer = client.run("select i, repeat('x', 50) from range(100000) t(i)")
        for number in range(100):
            if number % 25 == 10:
                for pid in engines(place):
                    os.kill(pid, signal.SIGKILL)
            found = client.http.get(f"/v2/statements/{answer['statementID']}", params={"partitionID": number})
            assert found.status_code == 200, found.text
            assert [row[0] for row in found.json()["data"]] == [str(number * 1000 + i) for i in range(1000)]


@pytest.mark.slow("several processes")
def test_a_stream_goes_on_behind_a_kill(place: Served) -> None:
    with Client(place) as client:
        client.rows("create stream s (i int)")
        asked = client.run("select i from s")["metadata"]["dataplaneRequest"]
        with connect(asked["uri"], proxy=None) as socket:
            socket.send(json.dumps({"type": "auth", "accessToken": asked["token"], "sessionId": "one"}))
            assert json.loads(socket.recv(20))["type"] == "metadata"
            for number in range(6):
                if number % 2:
                    for pid in engines(place):
                        os.kill(pid, signal.SIGKILL)
                assert client.state(f"insert into s values ({number})") in {"00000", "01000"}
                assert json.loads(socket.recv(20))["data"] == [str(number)]
        client.run("select 1")
        assert ["s"] in [row[:1] for row in client.rows("list streams")]
        client.rows("drop stream s")


@pytest.mark.parametrize(("on_error", "ran"), [("stop", ["00000", "XX000"]), ("continue", ["00000", "XX000", "01000"])])
def test_a_batch_tells_which_statement_was_lost(place: Served, on_error: str, ran: list[str]) -> None:
    with Client(place) as client:
        client.run("create or replace table b (i int)")
        answer = post(client, ["insert into b values (1)", LONG, "insert into b values (2)"], onError=on_error)
        first = answer.json()["statementID"]

        def found() -> list[str]:
            listed = client.http.get(f"/v2/statements/{first}", params={"batch": 0}).json()["statements"]
            return [item["sqlState"] for item in listed]

        until(lambda: found() == ["00000", "03000"])
        for pid in engines(place):
            os.kill(pid, signal.SIGKILL)
        until(lambda: found() == ran)
        assert client.run("select count(*) from b")["data"] == [[str(len(ran) - 1)]]


def test_a_database_that_is_broken_behind_a_kill_says_so(
    place: Served, tmp_path_factory: pytest.TempPathFactory
) -> None:
    databases = tmp_path_factory.getbasetemp() / "replaced0" / "data" / "organizations"
    with Client(place) as client:
        before = set(databases.glob("*/databases/*"))
        client.rows("create database hurt")
        (made,) = (path for path in set(databases.glob("*/databases/*")) - before if path.suffix == ".data")
        for pid in engines(place):
            os.kill(pid, signal.SIGKILL)
        until(lambda: not engines(place))
        made.write_bytes(b"no database" * 1000)
        answer = client.run("select 1", database="hurt", parameters={"sessionID": "hurt"})
        assert answer["sqlState"] == "58030" and "cannot open" in answer["message"]
        client.rows("drop database hurt")


def test_a_batch_ends_where_its_session_was_lost(place: Served) -> None:
    with Client(place) as client:
        client.run("create or replace table pay as select 1 as i", parameters={"sessionID": "one"})
        client.run("create temp table pay as select 1 as i", parameters={"sessionID": "one"})
        for pid in engines(place):
            os.kill(pid, signal.SIGKILL)
        until(lambda: not engines(place))
        answer = post(client, ["delete from pay"] * 3, onError="continue", parameters={"sessionID": "one"})
        first = answer.json()["statementID"]
        assert client.wait(answer.json())["sqlState"] == "57P02"
        listed = client.http.get(f"/v2/statements/{first}", params={"batch": 0}).json()["statements"]
        assert [item["sqlState"] for item in listed] == ["57P02"]
        assert client.rows("select count(*) from local.main.pay") == [["1"]]


@pytest.mark.slow("several processes")
def test_a_statement_that_does_not_end_in_its_time_costs_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "ABANDON_SECONDS", 0.1)

    async def work() -> list[str]:
        statements = make_statements(storage, Settings(), tmp_path)
        caller = Caller("operator")

        async def run(sql: str, pool: str = "") -> str:
            request = StatementRequest(sql, compute_pool=pool or None, parameters=Parameters(session_id="one"))
            record = (await statements.submit(request, caller))[0]
            if sql == LONG:
                await asyncio.to_thread(until, lambda: record.connection)
                engine = statements.organizations.first_usable().engine
                assert isinstance(engine, RemoteEngine)
                child = engine.process()._child
                assert child is not None
                suspend(child.pid)
            await record.ready.wait()
            return record.sql_state

        try:
            found = [await run("create compute_pool short with ('timeout' = '500ms')")]
            found.append(await run(LONG, "short"))
            found.append(await run("select 1", "default"))
            found.append(await run("select 1", "default"))
            return found
        finally:
            await statements.close()

    storage = open_storage(tmp_path)
    try:
        assert asyncio.run(work()) == ["00000", "XX000", "01000", "00000"]
    finally:
        storage.close()


def test_statements_that_wait_for_one_process_hold_up_no_other(place: Served, first: int) -> None:
    with Client(place) as client, Client(place) as other:
        other.rows("select 1", organization="other")
        suspend(first)
        try:
            waiting = [client.submit("select 1", parameters={"sessionID": f"s{number}"}) for number in range(40)]
            assert all(other.state("select 1") == "00000" for _ in range(5))
        finally:
            os.kill(first, signal.SIGCONT)
        assert {client.wait(answer)["sqlState"] for answer in waiting} == {"00000"}
