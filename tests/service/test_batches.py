"""Batches over a real socket, with an independent client."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import RFC_4122, UUID

import httpx
import pytest

from sqlshell.service.statements.statement import new_id
from tests.conftest import Served, serve, stop
from tests.service.client import Client
from tests.service.tested_engines import OnEngine

Answer = dict[str, Any]


@pytest.fixture
def client(served_on: Served) -> Iterator[Client]:
    with Client(served_on) as made:
        yield made


def post(client: Client, statements: Sequence[str], **fields: Any) -> httpx.Response:
    request = {"statements": list(statements), "parameters": {"sessionID": client.session}} | fields
    return client.http.post("/v2/statements", json=request)


def run(client: Client, statements: Sequence[str], **fields: Any) -> list[Answer]:
    """What each statement that ran came to."""
    answer = post(client, statements, **fields)
    first, found = answer.json()["statementID"], []
    while True:
        assert answer.status_code in {200, 202}, answer.text
        found += [item for item in answer.json()["statements"] if item["sqlState"] != "03000"]
        if answer.status_code == 200:
            return found
        time.sleep(0.01)
        answer = client.http.get(f"/v2/statements/{first}", params={"batch": len(found)})


def states(found: Sequence[Answer]) -> list[str]:
    return [item["sqlState"] for item in found]


def test_each_answer_announces_it(client: Client) -> None:
    for answer in (
        client.http.get("/v2/version"),
        client.http.post("/v2/statements", json={"statement": "select 1"}),
        client.http.get("/v2/statements/none"),
    ):
        assert "batch" in answer.headers["Sqlshell-Extensions"].split(", ")


def test_each_statement_has_an_answer_of_its_own(client: Client) -> None:
    name = f"b{time.time_ns()}"
    inserted = f"insert into {name} values (1), (2)"
    found = run(client, [f"create table {name} (a int)", inserted, f"select a from {name} order by a"])
    assert states(found) == ["00000"] * 3
    assert [item["data"] for item in found] == [[], [], [["1"], ["2"]]]
    assert found[1]["message"] == "INSERT 2"
    assert found[2]["metadata"]["columns"] == [{"name": "a", "type": "INTEGER", "nullable": True}]
    assert all(item["elapsed"] >= 0 for item in found)
    looked_up = client.http.get(f"/v2/statements/{found[2]['statementID']}").json()
    assert looked_up["data"] == [["1"], ["2"]]


@pytest.mark.parametrize(
    ("on_error", "ran"),
    [("stop", ["00000", "42601"]), ("continue", ["00000", "42601", "00000"]), (None, ["00000", "42601"])],
)
def test_a_failure(client: Client, on_error: str | None, ran: list[str]) -> None:
    found = run(client, ["select 1", "selct", "select 2 as behind_it"], onError=on_error)
    assert states(found) == ran
    listed = client.rows("LIST QUERIES")
    ids = {item["statementID"] for item in found}
    assert len([row for row in listed if row[0] in ids]) == len(found)
    assert not [row for row in listed if row[5] == "select 2 as behind_it" and row[4] == "terminated"]


def test_what_is_not_listed_was_not_run(client: Client) -> None:
    name = f"kept{time.time_ns()}"
    run(client, [f"create table {name} (a int)", "selct", f"insert into {name} values (1)"])
    assert client.rows(f"select count(*) from {name}") == [["0"]]


def test_statements_about_objects_and_the_context_behind_them(client: Client, engine: OnEngine) -> None:
    name = f"s{time.time_ns()}"
    found = run(client, [f"create schema {name}", "select 1", f"use schema {name}", "select current_schema()"])
    assert states(found) == ["00000"] * 4
    assert found[3]["data"] == [[name]]
    echoes = [item["metadata"].get("context") for item in found]
    assert echoes[0]["schemaName"] == engine.sql.schema
    # An answer does not repeat a context; the first statement of another answer has it.
    assert echoes[1] in (None, echoes[0])
    assert echoes[2]["schemaName"] == name
    assert echoes[3] in (None, echoes[2])


def test_statements_about_objects_need_no_place_in_a_pool(client: Client) -> None:
    assert states(run(client, ["create compute_pool resting", "stop compute_pool resting"])) == ["00000"] * 2
    beside = ["list stores", "can i select", "start compute_pool resting", "select 2", "stop compute_pool resting"]
    assert states(run(client, beside, computePool="resting")) == ["00000"] * 5
    found = run(client, ["drop compute_pool resting", "select 3"], computePool="resting")
    assert states(found)[0] == "00000"


def test_a_batch_ends_behind_a_large_result(client: Client, engine: OnEngine) -> None:
    name = f"w{time.time_ns()}"
    large = f"select i from {engine.series(50_000)} order by i"
    found = run(client, [f"create table {name} (a int)", large, f"insert into {name} values (1)"])
    assert states(found) == ["00000", "00000"]
    assert "data" not in found[1]
    assert sum(item["rowCount"] for item in found[1]["metadata"]["partitionInfo"]) == 50_000
    rows = client.http.get(f"/v2/statements/{found[1]['statementID']}", params={"partitionID": 0}).json()["data"]
    assert rows[:2] == [["0"], ["1"]]
    assert client.rows(f"select count(*) from {name}") == [["0"]]


@pytest.mark.slow("starts a service")
def test_a_batch_ends_when_its_results_are_many_bytes(client: Client) -> None:
    found = run(client, ["select repeat('x', 30000) as x"] * 300)
    assert 100 < len(found) < 200
    assert {len(item["data"][0][0]) for item in found} == {30_000}


@pytest.mark.needs("cancel")
def test_a_statement_that_is_ended_ends_its_batch(client: Client, engine: OnEngine) -> None:
    statements = ["select 1", engine.sql.endless, "create table behind (a int)"]
    answer = post(client, statements, onError="continue").json()
    until = time.monotonic() + 60
    while states(answer["statements"]) != ["00000", "03000"]:
        assert answer["sqlState"] == "03000" and time.monotonic() < until, answer
        answer = client.http.get(f"/v2/statements/{answer['statementID']}", params={"batch": 0}).json()
    client.run(f"TERMINATE QUERY {answer['statements'][1]['statementID']}")
    until = time.monotonic() + 30
    while answer["sqlState"] == "03000" and time.monotonic() < until:
        answer = client.http.get(f"/v2/statements/{answer['statementID']}", params={"batch": 0}).json()
    assert states(answer["statements"]) == ["00000", "57000"]
    assert client.state("select * from behind") == engine.sql.no_relation


@pytest.mark.needs("streams")
def test_an_endless_select_ends_its_batch(client: Client) -> None:
    name = f"m{time.time_ns()}"
    found = run(client, [f"create stream {name} (a int)", f"select * from {name}", "select 1"])
    assert states(found) == ["00000", "00000"]
    assert found[1]["metadata"]["dataplaneRequest"]["requestType"] == "streaming"
    client.run(f"TERMINATE QUERY {found[1]['statementID']}")


def test_a_wrong_context_runs_nothing(client: Client, engine: OnEngine) -> None:
    found = run(client, ["create table nowhere (a int)", "select 1"], database="no_such", onError="continue")
    assert states(found) == ["3D002"]
    assert client.state("select * from nowhere") == engine.sql.no_relation


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"statements": []}, "1 to 1000"),
        ({"statements": ["select 1"] * 1001}, "1 to 1000"),
        ({"statements": ["select 1", " "]}, "statements[1] is empty"),
        ({"statements": ["select 1"], "statement": "select 2"}, "cannot be used together"),
        ({"statements": ["select 1"], "onError": "perhaps"}, "stop or continue"),
        ({"statements": "select 1"}, "Expected `array"),
    ],
)
def test_requests_that_are_refused(client: Client, request_: Answer, message: str) -> None:
    answer = client.http.post("/v2/statements", json=request_)
    assert answer.status_code == 400
    assert message in answer.json()["message"]


@pytest.mark.parametrize("start", ["3", "-1", "1e0", "0000000000" + "1" * 5000, "00000000009", "\u0661"])
def test_numbers_that_are_not_in_the_batch_are_refused(client: Client, start: str) -> None:
    first = client.http.post("/v2/statements", json={"statements": ["select 1", "select 2"]}).json()["statementID"]
    answer = client.http.get(f"/v2/statements/{first}", params={"batch": start})
    assert answer.status_code == 400
    assert "expected the number of a statement in the batch" in answer.json()["message"]


def test_several_statements_in_one_of_a_batch(client: Client) -> None:
    found = run(client, ["select 1; select 2", "select 3"])
    assert states(found) == ["42601"]


def run_where_nothing_is_noted(client: Client, file: Path) -> list[Answer]:
    """A batch that makes relations while the service cannot write down when that was, as on a full disk."""
    full = "CREATE TRIGGER full BEFORE INSERT ON objects WHEN NEW.kind = 'noted' BEGIN SELECT RAISE(FAIL, 'full'); END"
    with closing(sqlite3.connect(file)) as catalog:
        catalog.execute(full)
        found = run(client, ["create table n1 (a int)", "create table n2 (a int)", "select 1"], onError="continue")
        catalog.execute("DROP TRIGGER full")
    return found


@pytest.mark.slow("starts two services")
def test_what_was_answered_is_found_after_a_kill(tmp_path: Path) -> None:
    running = serve(tmp_path, "--data", str(tmp_path / "data"))
    try:
        with Client(running) as client:
            found = run(client, ["create table t (a int)", "insert into t values (1)", "select a from t"])
        running.process.kill()
        running.process.wait()
        again = serve(tmp_path, "--data", str(tmp_path / "data"))
        with Client(again) as client:
            told = run_where_nothing_is_noted(client, tmp_path / "data" / "service.sqlite")
            answers = [client.http.get(f"/v2/statements/{item['statementID']}").json() for item in found]
            lost = client.http.get(f"/v2/statements/{found[0]['statementID']}", params={"batch": 0})
            stop(again)
    finally:
        if running.process.stdout is not None:
            running.process.stdout.close()
    assert states(told) == ["00000", "00000", "00000"], told
    assert [(answer["sqlState"], answer["data"]) for answer in answers] == [
        ("00000", []),
        ("00000", []),
        ("00000", [["1"]]),
    ]
    assert (lost.status_code, "no batch that begins with" in lost.json()["message"]) == (404, True)


def test_ids_are_random_uuids() -> None:
    found = {new_id() for _ in range(2_000)}
    assert len(found) == 2_000
    assert all(str(UUID(item)) == item for item in found)
    assert {(UUID(item).version, UUID(item).variant) for item in found} == {(4, RFC_4122)}
    assert len({item[19] for item in found}) == 4
