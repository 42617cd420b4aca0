"""Clients that are in no registry, by their known behavior.

Node, with its own fetch and every check of the published API document, represents the generated TypeScript client; the
Go client has its own way to the data plane.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx
import pytest
from websockets.sync.client import connect

from tests.conformance.outcomes import Row, works
from tests.conftest import Served, serve, stop
from tests.service.client import Client

pytestmark = pytest.mark.conformance

Outcomes = dict[str, dict[str, Any]]

ROWS = [
    Row("generated TypeScript client (Node): submit, poll, read, attach", works()),
    Row("generated TypeScript client (Node): a large form with a wrong token", works(note="it gets 401")),
    Row("Go driver: results by the data plane", works(note="with serve --data-plane")),
    Row("Go driver: a stream", works(note="with serve --stream-scheme http")),
]


@pytest.fixture(scope="module")
def planes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """All results by the data plane, and its streams by uris that begin with http."""
    options = ("--data-plane", "always", "--stream-scheme", "http", "--partition-rows", "100")
    running = serve(tmp_path_factory.mktemp("go"), *options)
    yield running
    stop(running)


@pytest.fixture(scope="module")
def of_node(tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no Node")
    running = serve(tmp_path_factory.mktemp("node"))
    given = json.dumps({"url": running.url, "token": running.token})
    try:
        done = subprocess.run(
            [node, Path(__file__).with_name("drive_node.mjs")],
            input=given,
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
    finally:
        stop(running)
    return dict(json.loads(done.stdout))


STATES = {
    "quick": "00000",
    "slow": "00000",
    "ddl": "00000",
    "several": "00000",
    "failed": "3D020",
    "empty": "00000",
    "listed": "00000",
    "stream": "00000",
    "streaming": "00000",
    "attached": "00000",
}


def test_node_takes_every_answer(of_node: Outcomes) -> None:
    """One test, so that processes that share the tests do not run Node twice."""
    for name, state in STATES.items():
        outcome = of_node[name]
        assert "error" not in outcome, (name, outcome)
        assert outcome["state"] == state, (name, outcome)
    assert of_node["slow"]["statuses"][0] == 202, of_node["slow"]
    assert of_node["quick"]["data"] == [["1", None]]
    assert of_node["streaming"]["metadata"]["dataplaneRequest"]["uri"].startswith("ws://")
    assert of_node["unauthorized"].get("statuses") == [401], of_node["unauthorized"]
    assert of_node["unauthorized"]["message"]


def test_go_reads_results_at_the_root_of_the_data_plane(planes: Served) -> None:
    """It takes the uri's host alone, and asks for the statement under /v2 there."""
    with Client(planes) as client:
        wanted = client.run("select range as i from range(250)")["metadata"]["dataplaneRequest"]
    base = urlunsplit(urlsplit(wanted["uri"])._replace(path="/v2"))
    rows: list[list[str]] = []
    with httpx.Client(headers={"Authorization": f"Bearer {wanted['token']}"}, trust_env=False) as plane:
        for number in range(3):
            query: dict[str, str | int] = {"partitionID": number, "sessionID": "go", "timezone": "UTC"}
            answer = plane.get(f"{base}/statements/{wanted['statementID']}", params=query).json()
            assert answer["sqlState"] == "00000", answer
            assert [item["rowCount"] for item in answer["metadata"]["partitionInfo"]] == [100, 100, 50]
            assert [item["name"] for item in answer["metadata"]["columns"]] == ["i"]
            rows += answer["data"]
    assert [int(row[0]) for row in rows] == list(range(250))


def test_go_reads_a_stream_whose_uri_is_http(planes: Served) -> None:
    with Client(planes) as client:
        client.rows_of_nothing("create stream clicks (id integer, what varchar)")
        wanted = client.run("select id, what from clicks")["metadata"]["dataplaneRequest"]
        assert (wanted["requestType"], urlsplit(wanted["uri"]).scheme) == ("streaming", "http")
        place = wanted["uri"].replace("http", "ws", 1)
        with connect(place, additional_headers={"ds-session-id": "go"}, proxy=None) as socket:
            socket.send(json.dumps({"type": "auth", "accessToken": wanted["token"], "sessionId": "go"}))
            head = json.loads(socket.recv(timeout=20))
            assert (head["type"], head["headers"]) == ("metadata", {})
            assert [(item["name"], item["type"]) for item in head["columns"]] == [
                ("id", "INTEGER"),
                ("what", "VARCHAR"),
            ]
            client.rows_of_nothing("insert into clicks values (1, 'a'), (2, null)")
            frames = [json.loads(socket.recv(timeout=20)) for _ in range(2)]
            assert frames == [{"type": "data", "headers": {}, "data": row} for row in (["1", "a"], ["2", None])]
        client.rows_of_nothing(f"terminate query {wanted['statementID']}")
