"""A matrix of endpoints, tokens and states of statements: who may do what."""

from __future__ import annotations

import asyncio
import json
import re
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.routing import Route, WebSocketRoute
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from sqlshell.interface.models import ContextEcho
from sqlshell.service.catalog import ORGANIZATION_ID, Caller, Catalog
from sqlshell.service.engines.duckdb.instance import DuckdbEngine
from sqlshell.service.http.app import Endpoints
from sqlshell.service.http.dataplane import TOKEN_SECONDS, DataPlane
from sqlshell.service.results.results import Spool
from sqlshell.service.settings import Settings
from sqlshell.service.setup import make_statements
from sqlshell.service.statements.statement import Statement
from sqlshell.service.storage.storage import Storage
from tests.conftest import Served, serve, stop
from tests.service.client import Client
from tests.service.waiting import until

MARK = "matrix_marker"
"""Stands in the SQL, the rows and the errors of every statement of the matrix, in the file, and in names."""

ENDLESS = f"select count(*) as {MARK} from range(100000000000) a, range(1000) b"

Tokens = Mapping[str, Sequence[str]]
"""The Authorization headers of each kind of caller."""


class World:
    """A service with statements in every state, and callers of every kind. `sender` is who sent the statements,
    the writer of that name but for those of `secret` (an owner), `elsewhere` and `nowhere` (the operator)."""

    def __init__(self, served: Served, root: Path) -> None:
        self.served = served
        self.root = root
        self.operator = Client(served)
        self.http = httpx.Client(base_url=served.url, timeout=60, trust_env=False, verify=False)
        parts = urlsplit(served.url)
        self.wire = HTTPConnection(parts.hostname or "", parts.port or 0, timeout=60)
        self.operator.rows("create organization other")
        names = {"foreign": ("owner", "other"), "maker": ("owner", "local"), "dropped": ("owner", "local")}
        names |= dict.fromkeys(("writer", "sender"), ("writer", "local"))
        names |= {"owner": ("owner", "local"), "reader": ("reader", "local")}
        self.clients: dict[str, Client] = {"operator": self.operator}
        self.texts: dict[str, str] = {"operator": served.token}
        for name, (role, organization) in names.items():
            # A session of its own: that of the operator stays in the first organization.
            with Client(served) as client:
                sql = f"create api_token {name} with ('role' = '{role}')"
                self.texts[name] = str(client.rows(sql, organization=organization)[0][1])
            self.clients[name] = Client(served, self.texts[name])
        self.ids: dict[str, str] = {"unknown": str(uuid.uuid4())}
        self.planes: dict[str, str] = {}
        self._fill()
        self.clients["maker"].rows("drop api_token dropped")
        bearers = {name: [f"Bearer {text}"] for name, text in self.texts.items()}
        twice = [*bearers["owner"], *bearers["operator"]]
        stray = [f"Bearer {self.planes['stray']}"]
        self.tokens: Tokens = {"none": [], "wrong": ["Bearer wrong"], "twice": twice, "stray": stray, **bearers}

    def close(self) -> None:
        for client in self.clients.values():
            client.http.close()
        self.http.close()
        self.wire.close()

    def ask(self, method: str, path: str, headers: Sequence[tuple[str, str]]) -> tuple[int, str]:
        """Status, and body and headers as text, of a request whose path and headers nobody corrects."""
        self.wire.putrequest(method, path, skip_accept_encoding=True)
        for name, value in headers:
            self.wire.putheader(name, value)
        self.wire.endheaders()
        answer = self.wire.getresponse()
        return answer.status, answer.read().decode("utf-8", "replace") + str(answer.headers)

    def headers(self, who: str, state: str = "") -> list[tuple[str, str]]:
        """`plane` is the data plane's token of the statement in that state, or of another one where it has none."""
        given = [f"Bearer {self.planes.get(state, self.planes['stray'])}"] if who == "plane" else self.tokens[who]
        return [("Authorization", text) for text in given]

    def _fill(self) -> None:
        sender, maker = self.clients["sender"], self.clients["maker"]
        # 9 MiB each, of which the quota lets two stay.
        large = f"select '{MARK}' as v, [hash(i * 60 + j) for j in range(60)] from range(7000) t(i)"
        swept = [sender.run(large)["statementID"] for _ in range(4)]
        self.ids["swept"] = swept[0]
        until(lambda: sender.http.get(f"/v2/statements/{swept[0]}").status_code != 200)
        self.ids["finished"] = sender.run(f"select '{MARK}' as v")["statementID"]
        # Of these, one is text and one a Parquet file, both large enough for the data plane.
        number = "hash(range)::varchar || '-' || range::varchar"
        texts = {
            "large": f"repeat('{MARK}', 200) from range(499)",
            "stray": f"repeat('{MARK}', 200) from range(499)",
            "whole": f"{number} from range(60000)",
        }
        for state, text in texts.items():
            answer = sender.run(f"select '{MARK}' as v, {text}")
            self.ids[state] = answer["statementID"]
            self.planes[state] = answer["metadata"]["dataplaneRequest"]["token"]
        del self.ids["stray"]
        self.ids["failed"] = sender.run(f"select * from {MARK}")["statementID"]
        cancelled = sender.submit(ENDLESS)
        self.ids["cancelled"] = cancelled["statementID"]
        sender.rows_of_nothing(f"terminate query '{cancelled['statementID']}'")
        maker.rows_of_nothing(f"create stream {MARK}_stream (v varchar)")
        streaming = sender.submit(f"select v as {MARK} from {MARK}_stream")
        self.ids["streaming"] = streaming["statementID"]
        place = f"/v2/statements/{streaming['statementID']}"
        metadata = until(lambda: sender.http.get(place).json().get("metadata"))
        self.planes["streaming"] = metadata["dataplaneRequest"]["token"]
        request = {"statements": [f"select '{MARK}' as v", f"select '{MARK}' as w"]}
        self.ids["batch"] = sender.http.post("/v2/statements", json=request).json()["statementID"]
        self.ids["running"] = sender.submit(ENDLESS)["statementID"]
        self.ids["queued"] = sender.submit(f"select '{MARK}'")["statementID"]
        self.ids["secret"] = maker.submit(f"create api_token {MARK}; select 1")["statementIDs"][0]
        moved = self.operator.submit(f"list organizations; use organization other; select '{MARK}' as v")
        self.ids["nowhere"], _, self.ids["elsewhere"] = moved["statementIDs"]
        with Client(self.served) as beside:
            for name in ("secret", "nowhere", "elsewhere"):
                asked = f"describe query state '{self.ids[name]}'"
                until(lambda asked=asked: beside.rows(asked)[0][2] != "03000")  # type: ignore[misc]
        file = [(f"{MARK}.jar", MARK.encode())]
        maker.rows_of_nothing(f"create function_source kept with ('file' = '{MARK}.jar')", file)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("matrix")
    root = folder / "root"
    root.mkdir()
    running = serve(
        folder,
        "--legacy",
        "--store-root",
        str(root),
        "--data",
        "data",
        "--data-plane",
        "large",
        "--quota",
        "0.02",
        "--threads",
        "1",
        "--grace",
        "0",
    )
    made = World(running, root)
    try:
        yield made
    finally:
        made.close()
        stop(running)


def table(text: str) -> dict[tuple[str, str], str]:
    """The cells of a table by their row and column."""
    head, *rows = (line.split() for line in text.strip().splitlines())
    return {(row[0], column): cell for row in rows for column, cell in zip(head[1:], row[1:], strict=True)}


LOOK_UP = table("""
    state     none wrong dropped twice plane stray foreign reader writer sender owner operator
    unknown    401   401     401   401   401   401     404    404    404    404   404      404
    queued     401   401     401   401   401   401     404    404    404    202   202      202
    running    401   401     401   401   401   401     404    404    404    202   202      202
    finished   401   401     401   401   401   401     404    404    404    200   200      200
    large      401   401     401   401   200   401     404    404    404    200   200      200
    whole      401   401     401   401   200   401     404    404    404    200   200      200
    failed     401   401     401   401   401   401     404    404    404    200   200      200
    cancelled  401   401     401   401   401   401     404    404    404    200   200      200
    streaming  401   401     401   401   200   401     404    404    404    200   200      200
    swept      401   401     401   401   401   401     404    404    404    404   404      404
    batch      401   401     401   401   401   401     404    404    404    200   200      200
    secret     401   401     401   401   401   401     404    404    404    404   200      200
    elsewhere  401   401     401   401   401   401     200    404    404    404   404      200
    nowhere    401   401     401   401   401   401     404    404    404    404   404      200
""")
"""GET and HEAD of /v2/statements/{statementID}, whatever is asked for. `plane` is the data plane's token of the
statement, where it has one."""

STREAM = table("""
    state     none wrong dropped plane stray foreign reader writer sender owner operator
    unknown   4401  4401    4401  4401  4401    4401   4401   4401   4401  4401     4401
    running   4401  4401    4401  4401  4401    4401   4401   4401   4401  4401     4401
    finished  4401  4401    4401  4401  4401    4401   4401   4401   4401  4401     4401
    large     4401  4401    4401 error  4401    4401   4401   4401   4401  4401     4401
    streaming 4401  4401    4401  rows  4401    4401   4401   4401   4401  4401     4401
    elsewhere 4401  4401    4401  4401  4401    4401   4401   4401   4401  4401     4401
""")
"""The websocket /v2/streams/{statementID}: the code of its close, or what the first frame is."""

DESCRIBE = table("""
    state     foreign reader writer sender owner operator
    unknown     3D019  3D019  3D019  3D019 3D019    3D019
    queued      3D019  42501  42501  00000 00000    00000
    running     3D019  42501  42501  00000 00000    00000
    finished    3D019  42501  42501  00000 00000    00000
    large       3D019  42501  42501  00000 00000    00000
    whole       3D019  42501  42501  00000 00000    00000
    failed      3D019  42501  42501  00000 00000    00000
    cancelled   3D019  42501  42501  00000 00000    00000
    streaming   3D019  42501  42501  00000 00000    00000
    swept       3D019  3D019  3D019  3D019 3D019    3D019
    batch       3D019  42501  42501  00000 00000    00000
    secret      3D019  42501  42501  42501 00000    00000
    elsewhere   00000  3D019  3D019  3D019 3D019    00000
    nowhere     3D019  3D019  3D019  3D019 3D019    00000
""")
"""DESCRIBE QUERY, by SQL: its sqlState."""

TERMINATE = table("""
    state     foreign reader
    unknown     3D019  3D019
    queued      3D019  42501
    running     3D019  42501
    finished    3D019  42501
    large       3D019  42501
    whole       3D019  42501
    failed      3D019  42501
    cancelled   3D019  42501
    streaming   3D019  42501
    swept       3D019  3D019
    batch       3D019  42501
    secret      3D019  42501
    elsewhere   00000  3D019
    nowhere     3D019  3D019
""")
"""TERMINATE QUERY of those who may not end other tokens' statements, by SQL: its sqlState."""

CHANGE = table("""
    statement       reader writer foreign owner
    store-test       00000  00000   3D006 00000
    store-update     42501  42501   3D006 00000
    entity-create    42501  42501   3D006 00000
    entity-insert    42501  00000   3D006 00000
    entity-update    42501  42501   3D006 00000
    entity-drop      42501  42501   3D006 00000
    pool-update      42501  42501   3D023 00000
    truncate         42501  00000   3D020 00000
    alter            42501  42501   3D020 00000
    restart          42501  42501   3D019 00000
    function-create  42501  42501   3D018 00000
    function-drop    42501  42501   3D017 00000
    secret-create    42501  42501   00000 42P014
    secret-drop      42501  42501   00000 2BP01
    registry-create  42501  42501   3D016 42P018
    registry-test    42501  42501   3D009 57015
    registry-drop    42501  42501   3D009 00000
    schema-create    42501  42501   00000 00000
    schema-drop      42501  42501   00000 00000
    list-where       00000  00000   00000 00000
    can-create       42501  42501   00000 00000
    can-query        42501  00000   00000 00000
""")
"""Statements that change and test objects of the first organization, one caller after another: their sqlStates."""

CHANGES = {
    "store-test": "test store {m}_store",
    "store-update": "update store {m}_store with ('writable' = TRUE)",
    "entity-create": "create entity {m}_new in store {m}_store",
    "entity-insert": """insert into entity {m}_entity in store {m}_store value('{{"a": 1}}')""",
    "entity-update": "update entity {m}_entity in store {m}_store",
    "entity-drop": "drop entity {m}_entity in store {m}_store",
    "pool-update": "update compute_pool {m}_pool with ('compute_pool.size' = 'small')",
    "truncate": "truncate relation local.main.{m}_table",
    "alter": "alter relation local.main.{m}_table set description = 'x'",
    "restart": "restart query '{finished}'",
    "function-create": "create function {m}_f (x BIGINT) returns BIGINT language JAVA "
    "with ('source.name' = 'kept', 'class.name' = 'x')",
    "function-drop": "drop function {m}_f (x BIGINT)",
    "secret-create": "create secret {m}_secret with ('type' = generic_string, 'secret_string' = 'x')",
    "secret-drop": "drop secret {m}_secret",
    "registry-create": "create schema_registry {m}_registry with "
    "('type' = CONFLUENT, 'uris' = 'http://127.0.0.1:1', 'secret' = '{m}_secret')",
    "registry-test": "test schema_registry {m}_registry",
    "registry-drop": "drop schema_registry {m}_registry",
    "schema-create": "create schema {m}_schema in database local",
    "schema-drop": "drop schema {m}_schema in database local",
    "list-where": "list relations where name = '{m}_table'",
    "can-create": "can i create_store",
    "can-query": "can i create_query",
}

PLAIN = table("""
    endpoint           none wrong dropped twice plane stray foreign reader writer sender owner operator
    /openapi.json       200   200     200   200   200   200     200    200    200    200   200      200
    /v2/version         401   401     401   401   401   401     200    200    200    200   200      200
    /version            401   401     401   401   401   401     200    200    200    200   200      200
    json                401   401     401   401   401   401     200    200    200    200   200      200
    form                401   401     401   401   401   401     200    200    200    200   200      200
    legacy              401   401     401   401   401   401     200    200    200    200   200      200
    download            401   401     401   401   401   401     404    200    200    200   200      200
    download-etag       401   401     401   401   401   401     404    304    304    304   304      304
    download-range      401   401     401   401   401   401     404    206    206    206   206      206
    copy                401   401     401   401   401   401     404    200    200    200   200      200
    anything-else       401   401     401   401   401   401     404    404    404    404   404      404
""")
"""What is about no statement. The resource belongs to the first organization."""

COVERED = {
    ("post", "/v2/statements"),
    ("get", "/v2/statements/{statementID}"),
    ("get", "/v2/version"),
    ("get", "/v2/download/{resourceType}/{organizationID}/{resourceName}"),
    ("get", "/openapi.json"),
    ("get", "/v2/streams/{statementID}"),
    ("post", "/run-statement"),
    ("get", "/copy/{resource_type}/{org_id}/{resource_name}"),
    ("get", "/version"),
}


def cells(cells: Mapping[tuple[str, str], str]) -> Iterator[tuple[str, str, str]]:
    for (row, column), expected in cells.items():
        yield row, column, expected


def test_the_tables_have_every_endpoint_and_state(world: World) -> None:
    paths = world.http.get("/openapi.json").json()["paths"]
    assert {(method, path) for path, item in paths.items() for method in item} == COVERED
    for known in (LOOK_UP, DESCRIBE, TERMINATE):
        assert {row for row, _ in known} == set(world.ids)


def test_every_route_is_described(world: World, storage: Storage) -> None:
    settings = Settings(legacy=True)
    endpoints = Endpoints(make_statements(storage, settings, None, DuckdbEngine()), settings)
    routes = {
        (method, re.sub(r"{.*?}", "{}", route.path))
        for route in endpoints.routes()
        if isinstance(route, Route | WebSocketRoute)
        for method in (getattr(route, "methods", None) or {"GET"})
    }
    paths = world.http.get("/openapi.json").json()["paths"]
    described = {(method.upper(), re.sub(r"{.*?}", "{}", path)) for path, item in paths.items() for method in item}
    # The document leaves out HEAD, which every GET has.
    assert {(method, path) for method, path in routes if method != "HEAD"} == described


def test_looking_at_statements(world: World) -> None:
    wrong = []
    for state, who, expected in cells(LOOK_UP):
        headers, url = world.headers(who, state), f"/v2/statements/{world.ids[state]}"
        theirs = world.clients["sender"].session
        batch = "&batch=0" if state == "batch" else ""
        for query in ("", f"?partitionID=0&timezone=Asia/Tokyo&sessionID={theirs}{batch}"):
            status, seen = world.ask("GET", url + query, [*headers, ("Prefer", "wait=0")])
            leaks = expected not in {"200", "202"} and MARK in seen
            if str(status) != expected or leaks:
                wrong.append((state, who, query, status, expected, seen[:200]))
            # The secret is its sender's, and a data plane's answer has no token for another hour.
            assert state != "secret" or '"data":[[' not in seen, who
            assert who != "plane" or "dataplaneRequest" not in seen, state
        assert str(world.ask("HEAD", url, headers)[0]) == expected, (state, who)
    assert not wrong


def test_looking_at_a_whole_result(world: World) -> None:
    wrong = []
    for state, who, expected in cells(LOOK_UP):
        if state not in {"whole", "large", "swept", "running", "failed"}:
            continue
        headers = [*world.headers(who, state), ("Accept", "application/vnd.apache.parquet, application/json;q=0.5")]
        status, seen = world.ask("GET", f"/v2/statements/{world.ids[state]}", headers)
        # The others are shown where the rows are: on the data plane.
        file = seen.startswith("PAR1")
        if str(status) != expected or file != (state == "whole" and who == "plane") or (MARK in seen and status > 299):
            wrong.append((state, who, status, expected, seen[:200]))
    assert not wrong


def test_reading_streams(world: World) -> None:
    async def opened(state: str, who: str) -> str:
        url = world.served.url.replace("http", "ws", 1) + f"/v2/streams/{world.ids[state]}"
        token = "".join(text.removeprefix("Bearer ") for _, text in world.headers(who, state))
        async with connect(url, proxy=None) as socket, asyncio.timeout(20):
            message = json.dumps({"type": "auth", "accessToken": token, "sessionId": ""}) if token else "{}"
            await socket.send(message)
            try:
                first = json.loads(await socket.recv())
            except ConnectionClosed as closed:
                assert closed.rcvd is not None
                assert MARK not in closed.rcvd.reason
                return str(closed.rcvd.code)
            return "rows" if first["type"] == "metadata" else str(first["type"])

    async def all_of_them() -> list[object]:
        return [
            (state, who, found, expected)
            for state, who, expected in cells(STREAM)
            if (found := await opened(state, who)) != expected
        ]

    assert asyncio.run(all_of_them()) == []


def test_frames_that_open_no_stream(world: World) -> None:
    good = world.planes["streaming"]
    frames = [
        "[" * 4_000,
        json.dumps({"type": "auth", "accessToken": [good]}),
        json.dumps({"type": "data", "accessToken": good}),
        json.dumps({"type": "auth", "accessToken": "9" * 5000 + "." + good}),
        json.dumps({"type": "auth", "accessToken": f"{good}\ud800"}),
        json.dumps(good),
    ]

    async def close_code(frame: str) -> int | None:
        url = world.served.url.replace("http", "ws", 1) + f"/v2/streams/{world.ids['streaming']}"
        async with connect(url, proxy=None) as socket, asyncio.timeout(20):
            await socket.send(frame)
            try:
                return len(await socket.recv())
            except ConnectionClosed as closed:
                return closed.rcvd.code if closed.rcvd else None

    async def all_of_them() -> list[int | None]:
        return [await close_code(frame) for frame in frames]

    assert asyncio.run(all_of_them()) == [4401] * len(frames)


@pytest.mark.parametrize("verb", ["describe query", "terminate query"])
def test_statements_about_statements(world: World, verb: str) -> None:
    wrong = []
    for state, who, expected in cells(DESCRIBE if verb.startswith("d") else TERMINATE):
        for part in ("", "history") if expected == "00000" and verb.startswith("d") else ("",):
            answer = world.clients[who].run(f"{verb} {part} '{world.ids[state]}'", parameters={})
            leaks = expected != "00000" and MARK in json.dumps(answer)
            if answer["sqlState"] != expected or leaks:
                wrong.append((state, who, part, answer, expected))
    assert not wrong
    running = world.http.get(f"/v2/statements/{world.ids['running']}", headers=world.headers("sender"))
    assert running.status_code == 202


@pytest.mark.parametrize("sql", ["list queries", "list sessions", 'select * from deltastream.sys."queries"'])
def test_lists_of_statements(world: World, sql: str) -> None:
    there = {name for name in world.ids if name not in {"unknown", "swept", "elsewhere", "nowhere"}}
    for who, client in world.clients.items():
        if who == "dropped":
            continue
        answer = client.run(sql, parameters={})
        text, listed = json.dumps(answer), {row[0] for row in answer["data"]}
        shown = {name for name, statement_id in world.ids.items() if statement_id in listed}
        if "list sessions" not in sql:
            expected = {"foreign": {"elsewhere"}, "operator": there | {"nowhere"}}.get(who, there)
            assert shown == (expected - {"nowhere"} if "sys" in sql else expected), who
        if who in {"reader", "writer"}:
            assert MARK not in text.replace(sql, ""), who


def test_what_is_about_no_statement(world: World) -> None:
    source = f"function_source/{ORGANIZATION_ID}/kept"
    tag = world.http.get(f"/v2/download/{source}", headers=world.headers("owner")).headers["etag"]
    wrong = []
    for endpoint, who, expected in cells(PLAIN):
        headers = world.headers(who)
        match endpoint:
            case "json":
                answer = world.http.post("/v2/statements", json={"statement": "select 1"}, headers=headers)
            case "form":
                parts = {"request": (None, '{"statement": "select 1"}', "application/json")}
                answer = world.http.post("/v2/statements", files=parts, headers=headers)
            case "legacy":
                answer = world.http.post(
                    "/run-statement", data={"statement": "select 1"}, files={"x": b""}, headers=headers
                )
            case "download":
                answer = world.http.get(f"/v2/download/{source}", headers=headers)
            case "download-etag":
                answer = world.http.get(f"/v2/download/{source}", headers=[*headers, ("If-None-Match", tag)])
            case "download-range":
                answer = world.http.get(f"/v2/download/{source}", headers=[*headers, ("Range", "bytes=0-3")])
            case "copy":
                answer = world.http.get(f"/copy/{source}", headers=headers)
            case "anything-else":
                answer = world.http.get("/v2/tokens", headers=headers)
            case _:
                answer = world.http.get(endpoint, headers=headers)
        leaks = expected in {"401", "404"} and (MARK in answer.text or "etag" in answer.headers)
        # A busy service may say first that the statement runs.
        status = 200 if answer.status_code == 202 else answer.status_code
        if str(status) != expected or leaks:
            wrong.append((endpoint, who, answer.status_code, expected, answer.text[:200]))
    assert not wrong


def test_paths_lead_around_nothing(world: World) -> None:
    found = world.ids["finished"]
    paths = [
        f"/v2//statements/{found}",
        f"//v2/statements/{found}",
        f"/v2/statements/{found}/",
        f"/v2/statements/./{found}",
        f"/v2/statements/..%2fstatements%2f{found}",
        f"/v2/version/../statements/{found}",
        f"/v2/version%2f..%2fstatements/{found}",
        f"/openapi.json/../v2/statements/{found}",
        f"/openapi.json%00/../v2/statements/{found}",
        f"/openapi.json?/v2/statements/{found}",
        f"/v2/streams/../statements/{found}",
        f"/v2/streams/%2e%2e/statements/{found}",
        f"/v2/streams//v2/statements/{found}",
        f"/v2/streams/{found}",
        f"/v2/statements/{found}%00",
        f"/v2/statements/{found}?access_token={world.texts['owner']}",
        f"/v2/statements/{found}?token={world.texts['owner']}&authorization=Bearer%20{world.texts['owner']}",
        f"/v2/statements/{found}?sessionID={world.clients['sender'].session}",
        f"/v2/statements/{found}?partitionID=0&partitionID=1",
        f"/v2/statements/{found}?batch=0&batch=1",
        f"/v2/statements/{found.upper()}",
        f"/v2/statements/%7b{found}%7d",
        f"/v2/statements/urn:uuid:{found}",
        f"/v2/statements/{found.replace('-', '')}",
        f"/v2/statements/{world.ids['large']}/../{found}",
        f"/v2/statements/{world.ids['large']}%2f..%2f{found}",
        f"/run-statement/../v2/statements/{found}",
        f"/copy/../v2/statements/{found}",
        f"/copy/function_source/{ORGANIZATION_ID}/..%2fkept",
        f"/v2/download/function_source/{ORGANIZATION_ID.upper()}/..%2f..%2fresults%2f{found}",
        f"/v2/download/function_source/{ORGANIZATION_ID}/%2e%2e/results/{found}",
        f"/v2/download/results/{ORGANIZATION_ID}/{found}",
        f"/v2/download/function_source/%2a/{found}",
    ]
    for who in ("none", "reader", "foreign", "stray"):
        for path in paths:
            status, seen = world.ask("GET", path, world.headers(who))
            assert status in {200, 307, 400, 401, 404, 405}, (who, path, status)
            assert MARK not in seen, (who, path)
            assert status != 200 or path.startswith("/openapi.json"), (who, path)
    for form in (found.upper(), f"%7b{found}%7d", found.replace("-", "")):
        assert world.ask("GET", f"/v2/statements/{form}", world.headers("sender"))[0] == 200


def test_headers_stand_for_nobody_else(world: World) -> None:
    found = f"/v2/statements/{world.ids['finished']}"
    owner, reader = f"Bearer {world.texts['owner']}", f"Bearer {world.texts['reader']}"
    tricks: list[tuple[int, list[tuple[str, str]]]] = [
        (401, [("Authorization", reader), ("Authorization", owner)]),
        (401, [("Authorization", owner), ("Authorization", reader)]),
        (401, [("Authorization", owner), ("authorization", owner)]),
        (401, [("Authorization", f"{owner}, {owner}")]),
        (401, [("Authorization", f"Basic {world.texts['owner']}")]),
        (401, [("Authorization", world.texts["owner"])]),
        (401, [("Authorization", "Bearer")]),
        (401, [("Authorization", "Bearer  ")]),
        (401, [("Authorization", "Bearer operator")]),
        (401, [("Authorization", f"Bearer {world.texts['owner']}%00")]),
        (401, [("Proxy-Authorization", owner), ("X-Authorization", owner), ("Cookie", f"token={owner}")]),
        (404, [("Authorization", reader), ("X-Original-URL", "/openapi.json"), ("X-Rewrite-URL", "/openapi.json")]),
        (404, [("Authorization", reader), ("X-Forwarded-User", "operator"), ("X-HTTP-Method-Override", "POST")]),
        (404, [("Authorization", reader), ("Range", "bytes=0-"), ("If-None-Match", "*")]),
        (404, [("Authorization", reader), ("ds-session-id", world.clients["sender"].session)]),
        (200, [("Authorization", owner.replace("Bearer", "bEARER"))]),
    ]
    for expected, headers in tricks:
        status, seen = world.ask("GET", found, headers)
        assert status == expected, headers
        assert expected == 200 or MARK not in seen, headers


def test_statements_that_change_objects(world: World) -> None:
    maker = world.clients["maker"]
    for sql in (
        f"create store {MARK}_store with ('uri' = '{world.root}', 'writable' = TRUE)",
        f"create entity {MARK}_entity in store {MARK}_store",
        f"create compute_pool {MARK}_pool",
        f"create table {MARK}_table as select 1 as i",
        CHANGES["secret-create"].format(m=MARK),
        CHANGES["registry-create"].format(m=MARK),
    ):
        maker.rows_of_nothing(sql)
    wrong = []
    for name, sql in CHANGES.items():
        for who in ("reader", "writer", "foreign", "owner"):
            answer = world.clients[who].run(sql.format(m=MARK, finished=world.ids["finished"]), parameters={})
            if answer["sqlState"] != CHANGE[name, who]:
                wrong.append((name, who, answer["sqlState"], CHANGE[name, who], answer.get("message")))
    assert not wrong
    # What another organization named alike was another thing.
    dropped = f"drop secret {MARK}_secret"
    assert [world.clients["foreign"].state(dropped), maker.state(dropped)] == ["3D016", "00000"]


def test_ids_tell_nothing_of_each_other(world: World) -> None:
    seen = [uuid.UUID(world.clients["reader"].run("select 1")["statementID"]) for _ in range(50)]
    assert len(set(seen)) == 50
    assert all(item.version == 4 for item in seen)
    # Of 122 random bits each differs between about half of the ids.
    for bit in set(range(128)) - set(range(76, 80)) - set(range(62, 64)):
        assert 0 < sum(item.int >> bit & 1 for item in seen) < 50


def test_a_data_planes_token_expires(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, storage: Storage) -> None:
    catalog = Catalog(storage)
    plane = DataPlane(catalog, Settings(data_plane="always", public_url="http://127.0.0.1"))
    record = Statement("select 1", ORGANIZATION_ID, "operator", Spool(lambda: tmp_path / "r", 10), ContextEcho())
    caller = Caller("operator")
    token = plane.result_set(record, None, caller).token or ""  # type: ignore[arg-type]
    assert plane.caller(token, record.statement_id) == caller
    until, token_id, mac = token.split(".")
    later = f"{int(until) + 1}.{token_id}.{mac}"
    for wrong in (later, f"1.{token_id}.{mac}", f"{until}.anonymous.{mac}", f"{until}.{mac}", mac, "", "." * 3):
        assert plane.caller(wrong, record.statement_id) is None
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + TOKEN_SECONDS + 1)
    assert plane.caller(token, record.statement_id) is None
