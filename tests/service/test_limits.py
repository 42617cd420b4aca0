"""The limits for one client: exceeding each one gives an error that names its option."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import duckdb
import pytest
from websockets.sync.client import connect

from sqlshell.launch.serve import SERVE, serve_command, settings_of
from sqlshell.service import settings
from sqlshell.service.engines.duckdb.streams import evaluated, make_stream_query
from sqlshell.service.failure import Failure
from sqlshell.service.settings import EMBEDDED, Settings, limit_option
from sqlshell.service.statements.store import MESSAGE
from tests.conftest import Served, serve, stop
from tests.service.client import Client
from tests.service.tested_engines import OnEngine

ENDLESS = "select count(*) from range(100000000000) a, range(1000) b"


@pytest.fixture(scope="module")
def small(engine: OnEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with small bounds."""
    options = ("--max-sessions", "12", "--max-waiting", "10", "--max-objects", "3")
    settings = {
        "statements": 20,
        "name_length": 40,
        "option_length": 50,
        "waiting_size": 1 << 20,
        "resources_size": 0,
        "columns": 100,
        "columns_size": 4 << 10,
    }
    with engine.serve(tmp_path_factory.mktemp("limits"), *options, settings=settings) as running:
        yield running


@pytest.fixture
def client(small: Served) -> Iterator[Client]:
    with Client(small) as made:
        yield made
        made.http.post("/v2/statements", json={"statement": f"terminate session '{made.session}'"})


def refused(client: Client, **request: object) -> tuple[int, str]:
    answer = client.http.post("/v2/statements", json=request)
    return answer.status_code, str(answer.json().get("message", ""))


def test_each_limit_that_a_message_names_is_an_option() -> None:
    flags = {option[0] for option in SERVE}
    service = Path(settings.__file__).parent
    named = {name for file in service.rglob("*.py") for name in re.findall(r"limit_note\([\"'](\w+)", file.read_text())}
    assert len(named) > 5
    assert [name for name in named if limit_option(name) not in flags] == []
    assert EMBEDDED.statements > 10**9


def test_each_number_is_the_setting_that_its_option_gives() -> None:
    context = serve_command().make_context("serve", [])
    assert settings_of(context.params) == Settings()
    given = serve_command().make_context("serve", ["--max-spill-size", "3", "--quota", "0.5", "--max-seconds", "7"])
    changed = settings_of(given.params)
    assert (changed.spill_size, changed.quota, changed.seconds) == (3 << 30, 1 << 29, 7.0)
    assert settings_of(serve_command().make_context("serve", ["--memory", "2GB"]).params).memory == "2GB"


@pytest.mark.parametrize(
    "text",
    ["x;" * 21, "select 1;\n" * 6000, "select 1;\n" * 300_000, "\n".join(["a"] + [";b"] * 100_000)],
    ids=["short", "6000", "long", "blanks"],
)
def test_statements_of_a_submission(client: Client, text: str) -> None:
    status, message = refused(client, statement=text)
    assert (status, "more than 20 statements" in message) == (413, True)
    status, message = refused(client, statements=["select 1"] * 21)
    assert (status, "1 to 20 are allowed" in message) == (400, True)
    assert client.state("select 1") == "00000"


@pytest.mark.parametrize("field", ["organization", "role", "database", "schema", "store", "computePool"])
def test_fields_of_the_context(client: Client, field: str) -> None:
    status, message = refused(client, statement="select 1", **{field: "x" * 41})
    assert (status, f"request.{field} is longer than 40 characters" in message) == (400, True)


def test_the_id_of_a_session(client: Client) -> None:
    status, message = refused(client, statement="select 1", parameters={"sessionID": "x" * 41})
    assert (status, "request.parameters.sessionID" in message) == (400, True)


def test_sessions_of_a_token(client: Client) -> None:
    token = str(client.rows("create api_token many with ('role' = 'owner')")[0][1])
    with Client(client_of(client), token) as own:
        names = [f"s{number}" for number in range(12)]
        for name in names:
            assert own.run("select 1", parameters={"sessionID": name})["sqlState"] == "00000"
        status, message = refused(own, statement="select 1", parameters={"sessionID": "one more"})
        assert (status, "this token has 12" in message, "--max-sessions" in message) == (400, True, True)
        # Who has one goes on, and who needs one for a moment may come again.
        assert own.run("select 1", parameters={"sessionID": "s3"})["sqlState"] == "00000"
        assert refused(own, statement="select 1")[0] == 429
        # What tells of them and ends them is taken.
        alone = own.http.post("/v2/statements", json={"statement": "list sessions"})
        assert (alone.status_code, alone.json().get("sqlState")) == (200, "00000")
        assert client.state("select 1") == "00000"
        assert own.run(f"terminate session '{names.pop()}'", parameters={"sessionID": "s3"})["sqlState"] == "00000"
        assert own.run("select 1", parameters={"sessionID": "one more"})["sqlState"] == "00000"
        for name in ["one more", *names[::-1]]:
            own.run(f"terminate session '{name}'", parameters={"sessionID": "s0"})
    client.rows("drop api_token many")


def client_of(client: Client) -> Served:
    """What a second client needs of the service of the first."""
    return Served(str(client.http.base_url), "", None)  # type: ignore[arg-type]


@pytest.mark.slow("starts a service")
@pytest.mark.needs("cancel")
def test_statements_that_wait(client: Client, engine: OnEngine) -> None:
    running = client.submit(engine.sql.endless)
    try:
        for _ in range(9):
            assert client.submit("select 1")["sqlState"] == "03000"
        status, message = refused(client, statement="select 1", parameters={"sessionID": client.session})
        assert (status, "this token has 10" in message, "--max-waiting" in message) == (429, True, True)
        # What ends them is always taken.
        answer = client.http.post("/v2/statements", json={"statement": "list queries"})
        assert answer.json()["sqlState"] == "00000"
    finally:
        ended = client.http.post("/v2/statements", json={"statement": f"terminate query '{running['statementID']}'"})
        assert client.wait(ended.json())["sqlState"] == "00000"
    assert client.state("select 1") == "00000"


@pytest.mark.needs("cancel")
def test_requests_that_come_together_keep_the_bound(client: Client, engine: OnEngine) -> None:
    with ThreadPoolExecutor(6) as pool:
        request = {"statements": [engine.sql.endless] + ["select 1"] * 5}
        answers = list(pool.map(lambda _: client.http.post("/v2/statements", json=request), range(6)))
    taken = [answer.json()["statementID"] for answer in answers if answer.status_code == 202]
    for statement_id in taken:
        end(client, statement_id)
    assert sorted(answer.status_code for answer in answers) == [202] + [429] * 5
    assert client.state("select 1") == "00000"


def end(client: Client, statement_id: str) -> None:
    answer = client.http.post("/v2/statements", json={"statement": f"terminate query '{statement_id}'"})
    assert client.wait(answer.json())["sqlState"] == "00000"


@pytest.mark.needs("cancel")
def test_a_large_request_is_refused_before_its_body_is_sent(client: Client, engine: OnEngine) -> None:
    running = client.http.post("/v2/statements", json={"statements": [engine.sql.endless] + ["select 1"] * 9})
    try:
        url = urlsplit(str(client.http.base_url))
        with socket.create_connection((url.hostname or "", url.port or 0), timeout=10) as wire:
            head = f"Host: {url.netloc}\r\nAuthorization: {client.http.headers['authorization']}\r\n"
            kind = "Content-Type: application/json\r\nContent-Length: 1000000\r\n"
            wire.sendall(f"POST /v2/statements HTTP/1.1\r\n{head}{kind}\r\n".encode())
            assert wire.recv(100).split()[1] == b"429"
    finally:
        end(client, running.json()["statementID"])
    assert client.state("select 1") == "00000"


@pytest.mark.slow("large statements")
@pytest.mark.needs("cancel")
def test_the_size_of_statements_that_wait(client: Client, engine: OnEngine) -> None:
    running = client.submit(engine.sql.endless)
    try:
        assert client.submit(f"select '{'x' * 900_000}'")["sqlState"] == "03000"
        body = {"statement": f"select '{'x' * 900_000}'", "parameters": {"sessionID": client.session}}
        status, message = refused(client, **body)
        assert (status, "unfinished statements with" in message) == (429, True)
    finally:
        client.http.post("/v2/statements", json={"statement": f"terminate query '{running['statementID']}'"})
    assert client.run("select 1")["sqlState"] == "00000"


@pytest.mark.parametrize(
    ("create", "drop"),
    [
        ("create compute_pool p{}", "drop compute_pool p{}"),
        ("create api_token t{}", "drop api_token t{}"),
        pytest.param("create stream s{} (i int)", "drop stream s{}", marks=pytest.mark.needs("streams")),
        pytest.param(
            "create changelog c{} (i int, primary key(i))", "drop changelog c{}", marks=pytest.mark.needs("streams")
        ),
        pytest.param("create database d{}", "drop database d{}", marks=pytest.mark.needs("databases")),
        pytest.param("create organization o{}", "drop organization o{}", marks=pytest.mark.needs("databases")),
    ],
)
def test_objects_of_a_kind(client: Client, create: str, drop: str) -> None:
    made = []
    for number in range(4):
        answer = client.run(create.format(number))
        if answer["sqlState"] != "00000":
            break
        made.append(number)
    assert 2 <= len(made) <= 3
    assert (answer["sqlState"], "--max-objects" in answer["message"]) == ("53000", True)
    for number in made:
        assert client.state(drop.format(number)) == "00000"


def test_names_and_values_of_objects(client: Client) -> None:
    answer = client.run(f"create compute_pool {'p' * 41}")
    assert (answer["sqlState"], "longer than 40 characters" in answer["message"]) == ("42622", True)
    answer = client.run("create function_source f with ('file' = 'f')", files=[("f", b"x")])
    assert (answer["sqlState"], "sources" in answer["message"]) == ("53000", True)


@pytest.mark.needs("store_entities")
def test_options_of_stores(client: Client) -> None:
    answer = client.run(f"create store s with ('type' = 'files', 'uri' = 'file:///{'x' * 51}')")
    assert (answer["sqlState"], "longer than 50 characters" in answer["message"]) == ("53000", True)


def test_a_long_message_is_cut(client: Client) -> None:
    answer = client.run(f"select cast('{'x' * 900_000}' as int)")
    assert answer["sqlState"] not in {"00000", "03000"}
    assert len(json.dumps(answer)) < MESSAGE + 2000


def test_lists_have_the_start_of_a_long_statement(client: Client) -> None:
    sent = client.run(f"select length('{'x' * 100_000}')")["statementID"]
    found = [row for row in client.rows("list queries") if row[0] == sent]
    assert len(str(found[0][5])) == 1000


@pytest.fixture(scope="module")
def tight(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service whose statements may take little."""
    options = ("--quota", "0.02", "--max-running", "2", "--max-spill-size", "0", "--memory", "400MB", "--threads", "2")
    # The allocators read how to behave in a bounded memory when a process begins.
    running = serve(tmp_path_factory.mktemp("tight"), *options, python=())
    yield running
    stop(running)


@pytest.mark.slow("starts a service")
@pytest.mark.needs("cancel")
def test_the_time_of_a_statement(engine: OnEngine, tmp_path: Path) -> None:
    with engine.serve(tmp_path, "--max-seconds", "0.5") as running, Client(running) as client:
        answer = client.run(engine.sql.endless)
        assert (answer["sqlState"], "--max-seconds" in answer["message"]) == ("57014", True)
        sent = client.http.post(
            "/v2/statements", json={"statements": [engine.sql.endless, "select 1"], "onError": "stop"}
        ).json()
        while sent["sqlState"] == "03000":
            sent = client.http.get(f"/v2/statements/{sent['statementID']}", params={"batch": 0}).json()
        assert [item["sqlState"] for item in sent["statements"]] == ["57014"]


@pytest.mark.slow("starts a service")
def test_another_token_has_its_turn(tight: Served) -> None:
    with Client(tight) as client:
        token = str(client.rows("create api_token other with ('role' = 'owner')")[0][1])
        sent = [
            client.http.post("/v2/statements", json={"statement": ENDLESS}).json()["statementID"] for _ in range(10)
        ]
        with Client(tight, token) as other:
            asked = other.submit("select 1")
            for statement in sent[:2]:
                client.http.post("/v2/statements", json={"statement": f"terminate query '{statement}'"})
            assert other.wait(asked)["data"] == [["1"]]
        states = {row[0]: row[4] for row in client.rows("list queries")}
        assert [states[statement] for statement in sent].count("queued") >= 4
        for statement in sent:
            client.http.post("/v2/statements", json={"statement": f"terminate query '{statement}'"})


@pytest.mark.parametrize(
    "sql",
    [
        f"select {', '.join(f'i * {number}' for number in range(1_000_000, 1_000_100))} from range(49000) t(i)",
        "select md5(range::varchar) || repeat('x', 1000) as a, random() as b from range(10000000)",
        "select repeat('é', 30000000)",
        "insert into grown select array_to_string([hash(i * 100 + j) for j in range(100)], '') "
        "from range(30000) t(i) returning *",
    ],
    ids=["text", "file", "value", "returned"],
)
def test_a_result_is_within_the_quota_while_it_grows(tight: Served, sql: str) -> None:
    with Client(tight) as client:
        client.rows("create or replace table grown (t varchar)")
        answer = client.run(sql)
        assert (answer["sqlState"], "--quota" in answer.get("message", "")) == ("53000", True), str(answer)[:500]
        assert client.rows("select count(*) from grown") == [["0"]]
        assert len(client.rows("select repeat('x', 1000) from range(1000)")) == 1000


@pytest.mark.slow("starts a service")
def test_a_large_result_of_each_engine_is_within_the_quota(engine: OnEngine, tmp_path: Path) -> None:
    with engine.serve(tmp_path, "--quota", "0.005") as running, Client(running) as client:
        many = f"select i, md5(concat('x', cast(i as varchar(20)))) as t from {engine.series(1_000_000)}"
        answer = client.run(many)
        assert (answer["sqlState"], "--quota" in answer["message"]) == ("53000", True), answer["message"]
        assert not [file for file in tmp_path.rglob("results/*") if file.is_file()]
        few = client.run(many.replace("1000000", "60000"))
        assert (few["sqlState"], len(few.get("data", []))) == ("00000", 10_000), few["message"]


@pytest.mark.slow("a large result")
def test_what_a_statement_writes_while_it_runs_is_bounded(tight: Served) -> None:
    with Client(tight) as client:
        answer = client.run("select md5(range::varchar) as a, range from range(20000000) order by a")
        assert answer["sqlState"] == "53000", answer
        assert answer["message"].endswith("(limit set by sqlshell serve --max-spill-size)"), answer


def test_columns_of_a_result(client: Client, engine: OnEngine) -> None:
    listed = ", ".join(f"{number} as c{number}" for number in range(101))
    for sql in (
        f"select {listed}",
        f"select {listed} from {engine.series(3)}",
        f"select * from (select {listed}) as a union all select * from (select {listed}) as b",
    ):
        answer = client.run(sql)
        assert (answer["sqlState"], "the maximum is 100" in answer["message"]) == ("54011", True), answer


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A session on DuckDB, whose results have columns of 4 KiB at most."""
    running = serve(tmp_path_factory.mktemp("columns"), settings={"columns_size": 4 << 10})
    with Client(running) as made:
        yield made
    stop(running)


@pytest.mark.parametrize(
    "sql",
    [
        "select columns(*) as 'LONG' from (select 1 as a, 2 as b) limit 0",
        "select columns(*) as 'LONG' from range(3) t(a)",
        "select 1 as 'LONG'",
        "select 1::struct(WIDE) as a",
        "insert into narrow values (1) returning a as 'LONG'",
        "insert into narrow values (1) returning [a] as 'LONG'",
        "from long_view",
        "from long_stream",
        "describe relation columns long_view",
        "describe create table made as select 1 as 'LONG'",
    ],
)
def test_the_size_of_the_columns_of_a_result(bounded: Client, sql: str) -> None:
    long, wide = "\\0" * 400 + "x" * 5000, ", ".join(f"field_{number} integer" for number in range(500))

    def made(text: str) -> str:
        return text.replace("LONG", long).replace("WIDE", wide)

    client = bounded
    client.rows("create or replace table narrow (a integer)")
    client.rows(made("create or replace view long_view as select 1 as 'LONG'"))
    client.run("drop stream if exists long_stream")
    client.run(made('create stream long_stream ("LONG" integer)'))
    answer = client.run(made(sql))
    told = answer["message"]
    assert (answer["sqlState"], "more than 4,096 bytes" in told) == ("54011", True), told[:300]
    assert client.rows("select count(*) from narrow") == [["0"]]


def test_the_size_of_rows_of_a_stream() -> None:
    connection = duckdb.connect()
    connection.execute("create table s as select range as i from range(1000)")
    relation = (str(connection.execute("select current_database()").fetchall()[0][0]), "main", "s")
    wide = make_stream_query(connection, "select repeat('x', 30000) as a from s", [relation])
    short = make_stream_query(connection, "select list_sum(range(1000 + i % 7)) as a from s", [relation])
    assert wide is not None
    assert short is not None
    with pytest.raises(Failure, match="more than 16,777,216 characters in 1,000 rows") as large:
        evaluated(connection.cursor(), wide, 0, 1000)
    assert large.value.sql_state == "54000"
    assert evaluated(connection.cursor(), short, 7, 8) == ['["499500"]']
    connection.close()


@pytest.mark.slow("wide rows")
def test_wide_rows_of_a_stream_are_read_in_smaller_parts(tight: Served) -> None:
    with Client(tight) as client:
        client.rows("create stream wide (i int)")
        query = client.run("select i, repeat('x', 1000000) as x from wide")["metadata"]["dataplaneRequest"]
        client.rows("insert into wide select range from range(40)")
        found = []
        with connect(query["uri"], proxy=None, max_size=1 << 22) as socket:
            socket.send(json.dumps({"type": "auth", "accessToken": query["token"]}))
            for text in socket:
                frame = json.loads(text)
                found += [frame["data"][0]] if frame["type"] == "data" else []
                if len(found) == 40:
                    break
        assert found == [str(number) for number in range(40)]
        client.rows("drop stream wide")
