"""The legacy endpoints, on the same state as /v2."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.conftest import Served
from tests.service.client import Client
from tests.service.tested_engines import OnEngine


@pytest.fixture(scope="module")
def old(engine: OnEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with engine.serve(tmp_path_factory.mktemp("legacy"), "--legacy", "--partition-rows", "1000") as running:
        yield running


def test_it_is_off_unless_asked_for(served: Served) -> None:
    with Client(served) as client:
        for method, path in (("POST", "/run-statement"), ("GET", "/version"), ("GET", "/copy/function_source/x/y")):
            assert client.http.request(method, path).status_code == 404


def test_statements(old: Served, engine: OnEngine) -> None:
    with Client(old) as client:
        sql = "create table t (a int); select a, a as a, null as n from (select 1 as a) as s; "
        sql += "create api_token z with ('role' = 'owner')"
        answer = client.http.post("/run-statement", data={"statement": sql}, files={"attachment": ("x", b"y")})
        first, second, third = answer.json()
        assert (first["action"], first["target"], first["data"]) == ("create", "table", [])
        assert (second["action"], second["data"]) == ("select", [{"a": "1", "a_2": "1", "n": None}])
        assert (third["action"], third["target"]) == ("create", "api_token")
        with Client(old, third["secret"]) as reader:
            assert reader.rows("select 1") == [["1"]]
        assert third["secret"] not in client.http.get(f"/v2/statements/{third['id']}").text
        large = client.http.post(
            "/run-statement", data={"statement": f"select i from {engine.series(61234)} order by i"}, files={"x": b""}
        )
        assert [row["i"] for row in large.json()[0]["data"]] == [str(number) for number in range(61234)]


def test_context_and_resources(old: Served, engine: OnEngine) -> None:
    with Client(old) as client:
        schema = engine.sql.schema
        answer = client.http.post(
            "/run-statement",
            data={"statement": "select current_schema() as s", "databaseName": client.home(), "schemaName": schema},
            files={"x": b""},
        )
        assert answer.json()[0]["data"] == [{"s": schema}]
        made = {"statement": "create function_source f with ('file' = 'f.jar')"}
        assert client.http.post("/run-statement", data=made, files={"attachment": ("f.jar", b"123")}).status_code == 200
        organization = client.rows("list organizations")[0][1]
        assert client.http.get(f"/copy/function_source/{organization}/f").content == b"123"
        assert client.http.get("/version").json() == client.http.get("/v2/version").json()


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({}, "statement"),
        ({"statement": " "}, "statement"),
        ({"statement": "select 1 +"}, "42601"),
        ({"statement": "select 1", "orgID": "x"}, "orgID"),
        ({"statement": "select 1", "databaseName": "nowhere"}, "3D002"),
    ],
)
def test_errors(old: Served, fields: dict[str, str], part: str) -> None:
    with Client(old) as client:
        answer = client.http.post("/run-statement", data=fields, files={"x": b""})
        assert (answer.status_code, part in answer.json()["message"]) == (400, True), answer.text


def test_strangers(old: Served, engine: OnEngine, tmp_path: Path) -> None:
    fields = {"statement": "select 1 as a"}
    assert httpx.post(f"{old.url}/run-statement", data=fields, files={"x": b""}, timeout=60).status_code == 401
    assert httpx.get(f"{old.url}/version", timeout=60).status_code == 401
    with engine.serve(tmp_path, "--legacy", "--legacy-anonymous") as open_to_all:
        answer = httpx.post(f"{open_to_all.url}/run-statement", data=fields, files={"x": b""}, timeout=60)
        assert answer.json()[0]["data"] == [{"a": "1"}]
        assert httpx.get(f"{open_to_all.url}/version", timeout=60).status_code == 200
        for path in ("/v2/version", "/v2/statements/00000000-0000-4000-8000-000000000000"):
            assert httpx.get(f"{open_to_all.url}{path}", timeout=60).status_code == 401
        wrong = {"Authorization": "Bearer wrong"}
        assert httpx.get(f"{open_to_all.url}/version", headers=wrong, timeout=60).status_code == 401
