"""The service over a real socket, with an independent client."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from tests.conftest import Served
from tests.service.client import Client
from tests.service.tested_engines import OnEngine


@pytest.fixture
def client(served_on: Served) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {served_on.token}"}
    with httpx.Client(base_url=served_on.url, headers=headers, timeout=60, trust_env=False, verify=False) as made:
        yield made


def post(client: httpx.Client, sql: str, session: str = "", **parts: object) -> dict[str, Any]:
    parameters = {"sessionID": session} if session else {}
    request = {"statement": sql, "parameters": parameters | dict(parts.pop("parameters", {}))} | parts  # type: ignore[call-overload]
    answer = client.post("/v2/statements", files={"request": (None, json.dumps(request), "application/json")})
    assert answer.status_code in {200, 202}, answer.text
    return dict(answer.json())


def done(client: httpx.Client, answer: dict[str, Any], **query: object) -> dict[str, Any]:
    until = time.monotonic() + 60
    while answer["sqlState"] == "03000" and time.monotonic() < until:
        time.sleep(0.02)
        answer = client.get(f"/v2/statements/{answer['statementID']}", params=query).json()  # type: ignore[arg-type]
    return answer


def home(client: httpx.Client) -> str:
    """The database in which sessions begin."""
    answer = done(client, post(client, "list databases"))
    return next(str(row[0]) for row in answer["data"] if row[1] == "true")


def test_a_finished_statement(client: httpx.Client) -> None:
    answer = done(client, post(client, "select 1 as a, null as b"))
    assert answer["sqlState"] == "00000"
    assert answer["data"] == [["1", None]]
    assert [column["name"] for column in answer["metadata"]["columns"]] == ["a", "b"]
    assert answer["metadata"]["partitionInfo"] == [{"rowCount": 1}]
    assert answer["metadata"]["context"]["databaseName"] == home(client)
    assert abs(answer["createdOn"] - time.time()) < 60
    assert uuid.UUID(answer["statementID"])


def test_an_id_in_the_digits_of_another_script_is_invalid(client: httpx.Client) -> None:
    found = done(client, post(client, "select 1"))["statementID"]
    foreign = found.translate({ord("0") + number: 0x660 + number for number in range(10)})
    answer = client.get(f"/v2/statements/{foreign}")
    assert answer.status_code == 400
    assert "is not a valid UUID" in answer.json()["message"]


def test_bare_json_and_parts_with_file_names(client: httpx.Client) -> None:
    bare = client.post("/v2/statements", json={"statement": "select 1"})
    named = client.post("/v2/statements", files={"request": ("r.json", b'{"statement":"select 2"}')})
    attached = client.post(
        "/v2/statements",
        files=[("request", (None, b'{"statement":"select 3"}')), ("attachments", ("a.jar", b"\r\n--x"))],
    )
    answers = [done(client, answer.json()) for answer in (bare, named, attached)]
    assert [answer["data"] for answer in answers] == [[["1"]], [["2"]], [["3"]]]


@pytest.mark.parametrize(
    ("content", "kind", "status", "words"),
    [
        (b"{", "application/json", 400, "request"),
        (b"[]", "application/json", 400, "request"),
        (b'{"statement":5}', "application/json", 400, "statement"),
        (b'{"statement":" "}', "application/json", 400, "statement"),
        (b"{}", "application/json", 400, "statement"),
        (b'{"statement":"x","parameters":{"timezone":"No/Where"}}', "application/json", 400, "timezone"),
        (b'{"statement":"x","parameters":{"timezone":"../../etc/passwd"}}', "application/json", 400, "timezone"),
        (b'{"statement":"x","parameters":{"timezone":"localtime"}}', "application/json", 400, "timezone"),
        (b'{"statement":"select \'\\ud800\'"}', "application/json", 400, "surrogate"),
        (b'{"statement":"-- nothing"}', "application/json", 400, "statement"),
        (b"x", "text/plain", 415, "Content-Type"),
        (b"x", "multipart/form-data", 400, "boundary"),
        (b"--b--\r\n", "multipart/form-data; boundary=b", 400, "request"),
        (b"garbage", "multipart/form-data; boundary=b", 400, "form"),
        (
            b'--b\r\nContent-Disposition: form-data; name="request"\r\n\r\n{"statement":"select 1"}\r\n--b\r\n',
            "multipart/form-data; boundary=b",
            400,
            "boundary",
        ),
    ],
)
def test_malformed_requests(client: httpx.Client, content: bytes, kind: str, status: int, words: str) -> None:
    answer = client.post("/v2/statements", content=content, headers={"Content-Type": kind})
    assert answer.status_code == status
    assert words in answer.json()["message"]


def test_lookups_that_cannot_be(client: httpx.Client) -> None:
    known = done(client, post(client, "select 1"))["statementID"]
    for path, status in (
        ("/v2/statements/nonsense", 400),
        (f"/v2/statements/{uuid.uuid4()}", 404),
        (f"/v2/statements/{known}?partitionID=1", 400),
        (f"/v2/statements/{known}?partitionID=-1", 400),
        (f"/v2/statements/{known}?timezone=No/Where", 400),
        ("/v2/nowhere", 404),
    ):
        answer = client.get(path)
        assert answer.status_code == status, path
        assert answer.json()["message"]
    assert client.put("/v2/statements").status_code == 405


def test_version(client: httpx.Client) -> None:
    assert set(client.get("/v2/version").json()) == {"major", "minor", "patch"}


@pytest.mark.needs("transactions", "temporary_tables")
def test_sessions_are_sessions(client: httpx.Client, engine: OnEngine) -> None:
    one, two = str(uuid.uuid4()), str(uuid.uuid4())
    for sql in ("begin", "create temp table mine as select 1 as a"):
        assert done(client, post(client, sql, one))["sqlState"] == "00000", sql
    mine, missing = "select * from mine", engine.sql.no_relation
    assert done(client, post(client, mine, one))["data"] == [["1"]]
    assert done(client, post(client, mine, two))["sqlState"] == missing
    assert done(client, post(client, "select cast('x' as int)", one))["sqlState"].startswith("22")
    assert done(client, post(client, mine, one))["sqlState"] == "25P02"
    assert done(client, post(client, "rollback", one))["sqlState"] == "00000"
    assert done(client, post(client, mine, one))["sqlState"] == missing


def test_several_statements(client: httpx.Client) -> None:
    answer = post(client, "select 1 as a; select nope; select 3")
    states = [done(client, client.get(f"/v2/statements/{each}").json()) for each in answer["statementIDs"]]
    assert [state["sqlState"] for state in states] == ["00000", "42703", "57000"]
    assert "42703: " in states[2]["message"]
    whole = post(client, "select 1; select 2")
    assert whole["statementID"] == whole["statementIDs"][1]


def test_the_answer_to_several_statements_is_the_one_that_failed(served: Served) -> None:
    with Client(served) as client:
        # On a busy machine the response may come before the end.
        answers = (client.submit("select 1 as a; select nope; select 3") for _ in range(50))
        answer = next(item for item in answers if item["sqlState"] != "03000")
    assert (answer["statementID"], answer["sqlState"]) == (answer["statementIDs"][1], "42703")


@pytest.mark.slow("statements that take long")
def test_several_statements_that_take_long_are_followed_to_their_end(client: httpx.Client, engine: OnEngine) -> None:
    answer = post(client, f"{engine.sql.long}; selec; select 3")
    assert (answer["sqlState"], answer["statementID"]) == ("03000", answer["statementIDs"][2])
    ended = done(client, client.get(f"/v2/statements/{answer['statementID']}").json())
    assert (ended["sqlState"], "42601: " in ended["message"]) == ("57000", True)
    assert client.get(f"/v2/statements/{answer['statementIDs'][0]}").json()["sqlState"] == "00000"
    assert "statementIDs" not in post(client, "select 1;")


CONTEXT = [
    ("use database nope", "3D002"),
    ("use schema nope", "3D003"),
    ("use role nope", "3D001"),
    ("use store nope", "3D006"),
    ("use organization nope", "3D004"),
    ("use compute_pool nope", "3D023"),
    ("use role owner", "00000"),
    ("USE DATABASE {home}", "00000"),
]


@pytest.mark.parametrize(("sql", "state"), CONTEXT)
def test_use(client: httpx.Client, sql: str, state: str) -> None:
    assert done(client, post(client, sql.format(home=home(client))))["sqlState"] == state


def test_the_echo_follows_and_the_request_decides(client: httpx.Client, engine: OnEngine) -> None:
    session = str(uuid.uuid4())
    done(client, post(client, "create schema other_place", session))
    used = done(client, post(client, 'use schema "other_place"', session))
    assert used["metadata"]["context"]["schemaName"] == "other_place"
    back = done(client, post(client, "select current_schema()", session, schema=engine.sql.schema))
    assert back["data"] == [[engine.sql.schema]]
    own = done(client, post(client, f'use schema "{home(client)}".other_place', session))
    assert own["metadata"]["context"]["schemaName"] == "other_place"
    done(client, post(client, f"use schema {engine.sql.schema}; drop schema other_place", session))
    assert done(client, post(client, "select 1", session, database="nope"))["sqlState"] == "3D002"


ERRORS = [
    ("select 1 +", "42601"),
    ("select * from nope", "no_relation"),
    ("select nope", "42703"),
    ("select nope(1)", "42883"),
    ("create table nope.t (i int)", "no_schema"),
    ("create schema {schema}", "42P06"),
    ("select cast('x' as int)", "22"),
    ("drop schema nope", "no_schema"),
    ("select \\ 1", "42601"),
]


@pytest.mark.parametrize(("sql", "state"), ERRORS)
def test_errors(client: httpx.Client, engine: OnEngine, sql: str, state: str) -> None:
    answer = done(client, post(client, sql.format(schema=engine.sql.schema)))
    assert answer["sqlState"].startswith(getattr(engine.sql, state, state)), answer
    assert answer["message"]


def test_an_error_marks_its_position(client: httpx.Client) -> None:
    lines = done(client, post(client, "select 'é' as a,\n  'é' as selec selec selec"))["message"].splitlines()
    at = lines.index("LINE 2:   'é' as selec selec selec")
    assert lines[at][lines[at + 1].index("^") :].startswith("selec")


@pytest.mark.needs("transactions")
def test_nothing_can_be_committed_outside_a_transaction(client: httpx.Client) -> None:
    assert done(client, post(client, "commit"))["sqlState"] in {"25000", "25P01", "01N01"}


def test_a_missing_column_has_one_code(client: httpx.Client) -> None:
    session = str(uuid.uuid4())
    done(client, post(client, "create table based (i int)", session))
    for sql in ("select zz from based", "select i from based where zz = 1", "select based.zz from based"):
        assert done(client, post(client, sql, session))["sqlState"] == "42703", sql
    done(client, post(client, "drop table based", session))


@pytest.mark.needs("transactions")
def test_a_missing_column_has_one_code_in_statements_that_write(client: httpx.Client) -> None:
    done(client, post(client, "create table written (i int)"))
    for sql in (
        "insert into written(zz) values (1)",
        "update written set zz = 1",
        "delete from written where zz = 1",
        "alter table written drop column zz",
        "alter table written rename column zz to y",
        "comment on column written.zz is 'x'",
        "create index x on written(zz)",
    ):
        assert done(client, post(client, sql))["sqlState"] == "42703", sql
    done(client, post(client, "drop table written"))


@pytest.mark.needs("transactions")
def test_results_inside_a_transaction_outlive_it(client: httpx.Client, engine: OnEngine) -> None:
    session = str(uuid.uuid4())
    done(client, post(client, "begin", session))
    answer = done(client, post(client, f"select 1 as a from {engine.series(1500)}", session))
    done(client, post(client, "rollback", session))
    again = client.get(f"/v2/statements/{answer['statementID']}?partitionID=1").json()
    assert len(again["data"]) == 500


def test_duplicate_names(client: httpx.Client, engine: OnEngine) -> None:
    answer = done(client, post(client, f"select 1 as a, 2 as a from {engine.series(1500)}"))
    assert [column["name"] for column in answer["metadata"]["columns"]] == ["a", "a"]
    again = client.get(f"/v2/statements/{answer['statementID']}?partitionID=1").json()
    assert len(again["data"]) == 500


def test_instants_are_shown_in_the_zone_of_the_request(client: httpx.Client, engine: OnEngine) -> None:
    asked = post(client, f"select {engine.sql.instant} as t, '1Z' as z", parameters={"timezone": "Asia/Kolkata"})
    answer = done(client, asked, timezone="Asia/Kolkata")
    assert answer["data"] == [["2024-07-01 17:30:00.5+05:30", "1Z"]]
    utc = done(client, post(client, f"select {engine.sql.instant} as t"))
    for zone in ("UTC", "Asia/Tokyo"):
        ((text,),) = client.get(f"/v2/statements/{utc['statementID']}", params={"timezone": zone}).json()["data"]
        assert datetime.fromisoformat(text) == datetime(2024, 7, 1, 12, 0, 0, 500_000, UTC)


def test_another_time_zone_at_lookup(served: Served) -> None:
    with Client(served) as client:
        answer = client.run("select timestamptz '2024-07-01 12:00:00.5+00' as t, '1Z' as z")
        assert answer["data"] == [["2024-07-01 12:00:00.5Z", "1Z"]]
        path = f"/v2/statements/{answer['statementID']}"
        there = client.http.get(path, params={"timezone": "Asia/Kolkata"}).json()["data"]
        assert there == [["2024-07-01 17:30:00.5+05:30", "1Z"]]


@pytest.mark.slow("megabytes of SQL")
def test_five_megabytes_of_sql(client: httpx.Client) -> None:
    text = "é" * 2_500_000
    assert done(client, post(client, f"select length('{text}')"))["data"] == [["2500000"]]


def test_the_row_limit_is_not_for_others(client: httpx.Client, engine: OnEngine) -> None:
    answer = done(client, post(client, f"select i from {engine.series(20)}", parameters={"rowLimit": 5}))
    assert len(answer["data"]) == 20


def test_a_select_for_no_rows_is_described_and_does_not_run(client: httpx.Client, engine: OnEngine) -> None:
    answer = done(client, post(client, engine.sql.endless, parameters={"rowLimit": 0}))
    assert ([column["name"] for column in answer["metadata"]["columns"]], answer["data"]) == (["n"], [])


@pytest.mark.needs("cancel")
def test_a_look_up_for_a_partition_waits_for_it(client: httpx.Client, engine: OnEngine) -> None:
    """Some clients ask again without a pause, and the one for TypeScript fails at a second 202."""
    statement = post(client, engine.sql.endless)["statementID"]
    path = f"/v2/statements/{statement}"
    for headers, query in (
        ({"Prefer": "wait=0"}, "?partitionID=0"),
        ({"Prefer": 'x="y", Wait = 0; z'}, "?partitionID=0"),
        ({}, ""),
    ):
        answer = client.get(path + query, headers=headers)
        assert (answer.status_code, answer.json()["sqlState"]) == (202, "03000")
    with ThreadPoolExecutor() as beside:
        asked = beside.submit(client.get, f"{path}?partitionID=0")
        done(client, post(client, f"terminate query {statement}"))
        assert (asked.result().status_code, asked.result().json()["sqlState"]) == (200, "57000")
