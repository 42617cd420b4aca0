"""Who can see what: secrets, statements of other tokens and organizations, dropped tokens."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from sqlshell.interface.models import ContextEcho, StatementRequest
from sqlshell.service.catalog import Caller
from sqlshell.service.engines.duckdb.instance import DuckdbEngine
from sqlshell.service.failure import Failure
from sqlshell.service.results.results import Spool
from sqlshell.service.settings import Settings
from sqlshell.service.setup import make_statements
from sqlshell.service.statements.runner import Batch, keep_batch
from sqlshell.service.statements.statement import Statement
from sqlshell.service.storage.storage import Storage
from sqlshell.service.stores.stores import StoreFolder
from tests.conftest import Program, Served, serve, stop
from tests.service.client import Client
from tests.service.waiting import until

AUTHORIZATION = "Authorization"
ENDLESS = "select count(*) from range(100000000000) a, range(1000) b"

Make = Callable[..., Client]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("secrecy")


@pytest.fixture(scope="module")
def own(folder: Path) -> Iterator[Served]:
    running = serve(folder, "--legacy", "--data", "data", "--data-plane", "large")
    with Client(running) as client:
        client.rows("create organization other")
    yield running
    stop(running)


@pytest.fixture
def operator(own: Served) -> Iterator[Client]:
    with Client(own) as made:
        yield made


@pytest.fixture
def make(own: Served, operator: Client) -> Iterator[Make]:
    """Make a token of a role in an organization, and its client: `make("reader", "other")`."""
    made: list[Client] = []

    def new(role: str, organization: str = "local") -> Client:
        with Client(own) as client:
            name = f"t{time.monotonic_ns()}"
            sql = f"create api_token {name} with ('role' = '{role}')"
            found = Client(own, str(client.rows(sql, organization=organization)[0][1]))
        found.name = name
        made.append(found)
        return found

    yield new
    for client in made:
        client.http.close()


def ids(client: Client, sql: str, **fields: Any) -> list[str]:
    """Submit several statements; their ids when all have ended. None of them is looked at."""
    answer = client.submit(sql, **fields)
    found = list(answer["statementIDs"])
    until(lambda: not any(client.rows(f"describe query state '{name}'")[0][2] == "03000" for name in found))
    return found


def get(client: Client, statement_id: str, **query: Any) -> httpx.Response:
    return client.http.get(f"/v2/statements/{statement_id}", params=query)


def secret_of(answer: httpx.Response) -> str:
    """The token in an answer's rows, "" for none."""
    body = answer.json()
    items = body.get("statements", [body])
    return "".join(str(row[1]) for item in items for row in item.get("data", ()) if len(row) == 2)


# Secrets of CREATE API_TOKEN


def test_a_secret_waits_for_its_senders_token_alone(own: Served, operator: Client, make: Make) -> None:
    sender, owner, reader = make("owner"), make("owner"), make("reader")
    name = f"several_{time.monotonic_ns()}"
    first, second = ids(sender, f"create api_token {name}; create api_token {name}2 with ('role' = 'owner')")
    for statement_id in (first, second):
        for other in (owner, reader, operator):
            for query in ({}, {"partitionID": 0}, {"batch": 0}):
                seen = get(other, statement_id, **query)
                assert secret_of(seen) == "", (seen.status_code, seen.text)
        # Neither does a HEAD request use it up, nor a wrong partition.
        sender.http.head(f"/v2/statements/{statement_id}")
        assert get(sender, statement_id, partitionID=1).status_code == 400
        secret = secret_of(get(sender, statement_id))
        assert secret
        again = get(sender, statement_id)
        assert (again.json()["sqlState"], secret_of(again)) == ("00000", "")
        with Client(own, secret) as made:
            assert made.state("select 1") == "00000"


def test_a_secret_in_a_batch_is_given_once(own: Served, operator: Client, make: Make) -> None:
    sender, owner = make("owner"), make("owner")
    name = f"batch_{time.monotonic_ns()}"
    # The pause makes the first answer end before the token is there.
    request = {
        "statements": ["select count(*) from range(30000000) t(i) where i % 7 = 3", f"create api_token {name}"],
        "parameters": {"sessionID": sender.session},
    }
    answer = sender.http.post("/v2/statements", json=request)
    statement_id = answer.json()["statementID"]
    secret = secret_of(answer)
    until = time.monotonic() + 60
    while not secret and time.monotonic() < until:
        for other in (owner, operator):
            assert "token" not in secret_of(get(other, statement_id, batch=0))
            assert secret_of(get(other, statement_id, batch=1)) == ""
        secret = secret_of(get(sender, statement_id, batch=1))
    assert secret
    assert secret_of(get(sender, statement_id, batch=1)) == ""
    with Client(own, secret) as made:
        assert made.state("select 1") == "00000"


def test_nobody_overtakes_the_sender_of_a_secret(own: Served, operator: Client, make: Make) -> None:
    """Others ask for the result of each statement that they see as fast as they can, while secrets are made."""
    sender, others = make("owner"), [make("reader"), make("owner"), make("owner", "other")]
    done = threading.Event()
    caught: list[str] = []

    def spy(client: Client) -> None:
        while not done.is_set():
            for row in client.rows("list queries")[:6]:
                for query in ({}, {"batch": 0}):
                    caught.append(secret_of(get(client, str(row[0]), **query)))
                seen = client.run(f"describe query '{row[0]}'")
                caught.extend(str(value) for values in seen.get("data", ()) for value in values)

    with ThreadPoolExecutor(len(others)) as pool:
        spies = [pool.submit(spy, client) for client in others]
        try:
            mine = []
            for number in range(6):
                made = ids(sender, f"select {number}; create api_token race_{number}_{time.monotonic_ns()}")
                time.sleep(0.02)
                mine.append(secret_of(get(sender, made[1])))
        finally:
            done.set()
        for future in spies:
            future.result()
    assert all(mine)
    assert caught
    assert not set(mine) & set(caught)


def test_a_secret_by_the_legacy_interface(own: Served, operator: Client, make: Make) -> None:
    sender, owner = make("owner"), make("owner")
    sql = f"create api_token legacy_{time.monotonic_ns()}"
    answer = sender.http.post("/run-statement", data={"statement": sql}, files={"x": b""}).json()
    assert answer[0]["secret"]
    for client in (sender, owner, operator):
        assert secret_of(get(client, answer[0]["id"])) == ""


WITH_SECRETS = (
    "create secret s with ('type' = generic_string, 'secret_string' = '{}');",
    "update store s with ('kafka.sasl.username' = '{}', 'kafka.sasl.password' = '{}');",
    "create store s with ('type' = KINESIS, 'access_key_id' = '{}', 'secret_access_key' = \"{}\");",
    "create schema_registry r with ('type' = CONFLUENT, 'basic_auth.password' = {});",
    "create store s with ('type' = 'files', 'sasl.password' = '{}' 'mistake');",
    "create store s with ('type' = 'files', 'uri' = 'https://u:{}@host/');",
    "-- make it\ncreate secret s (type s3, secret '{}');",
    "describe create store s with ('type' = KAFKA, 'password' = '{}');",
    "explain create secret s (type s3, secret '{}');",
    "create secret s (type s3, secret '{}', 'x' ",
)


def test_a_secret_is_stored_nowhere(tmp_path: Path, program: Program) -> None:
    """Not in the service's files, its log and its statements, nor by the shell that shows it; a restart forgets it."""
    message = tmp_path / "stderr"
    typed = "hunter2_4711"
    running = serve(tmp_path, "--data", "data", stderr=message)
    try:
        with Client(running) as client:
            secret = client.rows("create api_token first with ('role' = 'owner')")[0][1] or ""
            waiting = ids(client, "create api_token second; select 1")[0]
            for sql in ("list queries", "list api_tokens", 'select * from deltastream.sys."queries"'):
                assert secret not in json.dumps(client.run(sql))
            for part in ("", "history", "state", "metrics", "events"):
                assert secret not in json.dumps(client.run(f"describe query {part} '{waiting}'"))
            for sql in WITH_SECRETS:
                answer = client.run(sql.format(typed, typed))
                assert typed not in json.dumps(answer)
                assert typed not in json.dumps(client.run(f"describe query '{answer['statementID']}'"))
            together = {"statements": [sql.format(typed, typed) for sql in WITH_SECRETS], "onError": "continue"}
            assert typed not in client.http.post("/v2/statements", json=together).text
            assert typed not in json.dumps(client.run('select * from deltastream.sys."queries"'))
            for sql in ("list stores", "list secrets", 'select * from deltastream.sys."secrets"'):
                assert typed not in json.dumps(client.run(sql))
            listed = json.dumps(client.run("list queries"))
            assert "'type' = KINESIS, 'access_key_id' = '***', 'secret_access_key' = " in listed
            assert typed not in listed
        env = {"SQLSHELL_URL": running.url, "SQLSHELL_TOKEN": running.token}
        shown = program(
            "-vv", "--format", "csv", "-c", "\\transcript t.sql", "-c", "create api_token third", env=env,
        )  # fmt: skip
        script = "\n".join(WITH_SECRETS[:-1]).replace("{}", typed)
        hidden = program("--on-error", "continue", "-c", script, "-c", WITH_SECRETS[-1].format(typed), env=env)
        assert hidden.code == 1
        assert typed not in hidden.out + hidden.err
        assert "'***'" in hidden.err
        assert shown.code == 0, shown.err
        third = shown.out.splitlines()[1].removeprefix("third,")
        with Client(running, third) as made:
            assert made.state("select 1") == "00000"
    finally:
        stop(running)
    kept = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert any(path.name == "service.sqlite" for path in kept)
    assert any(path.name == "t.sql" for path in kept)
    assert any(path.name == "journal.db" for path in kept)
    for path, content in kept.items():
        assert secret.encode() not in content, path
        assert third.encode() not in content, path
        assert typed.encode() not in content, path
    assert third not in shown.err
    again = serve(tmp_path, "--data", "data")
    try:
        with Client(again) as client:
            lost = get(client, waiting)
            assert (lost.json()["sqlState"], secret_of(lost)) == ("00000", "")
            # The token is there, and made anew.
            client.rows("drop api_token second")
            assert client.rows("create api_token second")[0][1]
    finally:
        stop(again)


def test_a_statement_is_kept_as_it_was_typed(own: Served, make: Make) -> None:
    sender = make("owner")
    alone = sender.run("select 11 ;")
    several = sender.submit("select 21; select 22\n;select 23")
    batch = {
        "statements": ["select 31;", "select 32", "select 33 -- a\n;"],
        "parameters": {"sessionID": sender.session},
    }
    together = sender.wait(sender.http.post("/v2/statements", json=batch).json(), batch=0)
    assert [item["data"] for item in together["statements"]] == [[["31"]], [["32"]], [["33"]]]
    assert alone["data"] == [["11"]]
    listed = {row[0]: row[5] for row in sender.rows("list queries;")}
    kept = [listed[key] for key in (alone["statementID"], *several["statementIDs"])]
    assert kept == ["select 11 ;", "select 21;", "select 22\n;", "select 23"]
    kept = [listed[item["statementID"]] for item in together["statements"]]
    assert kept == ["select 31;", "select 32", "select 33 -- a\n;"]
    assert ["query", "select 11 ;"] in sender.rows(f"describe query '{alone['statementID']}'")


SECRET = "Zx9S047QVAL"
OPTION = f"'kafka.sasl.password' = '{SECRET}'"
LONG = "'pxxxx' = 'y', " * 5000


@pytest.mark.parametrize(
    "sql",
    [
        f"create stream kept_s (a int) with ('topic' = 'x', {OPTION})",
        f"create changelog kept_c (a int, primary key (a)) with ('topic' = 'x', {OPTION})",
        f"create or replace table kept_t with ({OPTION}) as select 1 a",
        f"describe create table kept_d with ({OPTION}) as select 1 a",
        f"describe create stream kept_d (a int) with ('topic' = 'x', {OPTION})",
        f"describe create materialized view kept_d with ({OPTION}) as select 1 a",
        f"insert into kept select a from kept with ({OPTION})",
        f"insert into kept with ({OPTION}) select 1",
        f"with c as (select 1 a) insert into kept select a from c with /* */ ({OPTION})",
        f"select a from kept with ({OPTION})",
        *(f"{verb} with ({OPTION})" for verb in ("start query x", "test store x", "truncate kept", "use kept")),
        *(f"{verb} with ({OPTION})" for verb in ("generate x", "invite user x")),
        f"create store x with ('kafka.sasl''.password' = '{SECRET}')",
        f"create table kept_l with ({LONG}{OPTION}) as select 1 a",
        f"create secret q with ({LONG}\n'secret_string' '{SECRET}' x )",
        f"insert into kept select a from kept with ({LONG}{OPTION})",
        f"select '{'a' * 66000}; create secret q with ('secret_string'='{SECRET}','type'=generic_string)",
    ],
)
def test_a_secret_among_options_is_kept_nowhere(sql: str, own: Served, folder: Path, make: Make) -> None:
    owner = make("owner")
    owner.rows("create or replace table kept (a int)")
    answer = owner.run(sql)
    assert SECRET not in json.dumps(answer)
    names = ("queries", "streams", "relations")
    for look in (*(f"list {name}" for name in names), *(f'select * from deltastream.sys."{name}"' for name in names)):
        assert SECRET not in json.dumps(owner.run(look)), look
    assert SECRET not in json.dumps(owner.run(f"describe query '{answer['statementID']}'"))
    for relation in ("kept_s", "kept_c"):
        assert SECRET not in json.dumps(owner.run(f"describe relation {relation}"))
    for file in folder.rglob("service.sqlite*"):
        assert SECRET.encode() not in file.read_bytes(), file


def test_what_is_no_secret_is_kept(operator: Client, make: Make) -> None:
    owner = make("owner")
    for sql in (
        "select 1 where 'name' = 'x' -- with a comment",
        "select * from nothing_there with ('topic' = 'x') where name = 'x'",
        "create api_token kept_one with ('role' = 'nobody')",
    ):
        answer = owner.run(sql)
        assert ["query", sql] in owner.rows(f"describe query '{answer['statementID']}'")
    assert '"nobody"' in owner.run("create api_token kept_one with ('role' = 'nobody')")["message"]


# A statement belongs to the organization in which it ran


FOREIGN = "foreign_marker"
"""Stands in everything of the other organization."""


def looks(client: Client, statement_id: str, plane: str = "") -> str:
    """All that a client gets to see of a statement, by every endpoint."""
    seen = [
        get(client, statement_id).text,
        get(client, statement_id, partitionID=0, timezone="Asia/Tokyo").text,
        get(client, statement_id, batch=0).text,
        json.dumps(client.run("list queries")),
        json.dumps(client.run("list sessions")),
        json.dumps(client.run('select * from deltastream.sys."queries"')),
        json.dumps(client.run(f"terminate query '{statement_id}'")),
    ]
    for part in ("", "history"):
        seen.append(json.dumps(client.run(f"describe query {part} '{statement_id}'")))
    return "\n".join(seen)


def test_a_record_belongs_to_where_it_ran(folder: Path, operator: Client, make: Make) -> None:
    here, there = make("owner"), make("owner", "other")
    there.rows(f"create table {FOREIGN} as select '{FOREIGN}' as v")
    there.rows(f"create schema {FOREIGN}_schema")
    sql = f"""
        select 'mine'; use organization other; select v, 1 from {FOREIGN};
        select v, repeat('x', 400) as "{FOREIGN}", range from {FOREIGN}, range(2000); use schema {FOREIGN}_schema;
        select * from {FOREIGN}_nothing; select '{FOREIGN}'
    """
    first, used, small, large, schema, failed, not_run = ids(operator, sql)
    assert get(here, first).json()["data"] == [["mine"]]
    assert get(there, first).status_code == 404
    assert get(there, small).json()["data"] == [[FOREIGN, "1"]]
    assert get(there, large).json()["metadata"]["partitionInfo"] == [{"rowCount": 2000}]
    assert FOREIGN in get(there, failed).text
    for statement_id in (used, not_run):
        # Nobody who is bound to one organization sees what leads from one to another, or never ran in one.
        assert get(here, statement_id).status_code == get(there, statement_id).status_code == 404
        assert get(operator, statement_id).status_code == 200
    for statement_id in (used, small, large, schema, failed, not_run):
        assert FOREIGN not in looks(here, statement_id).replace(f"'{FOREIGN}'", "")
        assert get(here, statement_id).status_code == 404
    other = there.run("select 1")["metadata"]["context"]["organizationID"]
    local = here.run("select 1")["metadata"]["context"]["organizationID"]
    for statement_id in (used, small, large):
        assert other not in looks(here, statement_id)
    organizations = folder / "data" / "organizations"
    assert (organizations / other / "results" / large).exists()
    assert not (organizations / local / "results" / large).exists()


def test_what_tells_of_organizations_is_for_those_who_see_them(operator: Client, make: Make) -> None:
    here = make("owner")
    known = ids(operator, "list organizations; describe organization other; create organization if not exists other")
    alone = operator.run("list organizations")["statementID"]
    looked = operator.run(f"describe query '{known[0]}'")["statementID"]
    listed = operator.run("list queries")["statementID"]
    for statement_id in (*known, alone, looked, listed):
        assert get(here, statement_id).status_code == 404
        assert get(operator, statement_id).status_code == 200
    assert any("create organization" in (row[5] or "") for row in operator.rows("list queries"))
    assert not any("organization" in (row[5] or "") for row in here.rows("list queries"))


def test_large_lists_of_the_operator_are_kept_apart(folder: Path, operator: Client, make: Make) -> None:
    here = make("owner")
    long = [f"select '{number}' as {'a' * 900}" for number in range(60)]
    answer = here.http.post("/v2/statements", json={"statements": long})
    assert answer.status_code in {200, 202}
    until(lambda: get(here, answer.json()["statementID"], batch=0).status_code != 202)
    listed = operator.run("list queries", parameters={})
    assert len(listed["data"]) >= 60
    kept = list((folder / "data").rglob(f"results/{listed['statementID']}"))
    assert kept == [folder / "data" / "results" / listed["statementID"]]
    assert kept[0].stat().st_mode & 0o777 == 0o600
    assert kept[0].parent.stat().st_mode & 0o777 == 0o700
    assert get(here, listed["statementID"]).status_code == 404
    assert get(operator, listed["statementID"]).json()["data"] == listed["data"]


def test_what_waits_to_run_elsewhere_is_seen_by_nobody_here(own: Served, operator: Client, make: Make) -> None:
    here = make("owner")
    begun = operator.submit(f"{ENDLESS}; use organization other; select '{FOREIGN}_waits'")
    running, _, waiting = begun["statementIDs"]
    batch = operator.http.post(
        "/v2/statements",
        json={"statements": [f"select '{FOREIGN}_waits'"], "parameters": {"sessionID": operator.session}},
    ).json()
    try:
        assert get(here, running).status_code == 202
        for statement_id in (waiting, batch["statementID"]):
            assert get(operator, statement_id).status_code == 202
            assert get(here, statement_id).status_code == 404
            assert get(here, statement_id, batch=0).status_code == 404
            assert f"{FOREIGN}_waits" not in looks(here, statement_id)
        with Client(own) as beside:
            assert any(f"{FOREIGN}_waits" in (row[5] or "") for row in beside.rows("list queries"))
    finally:
        operator.run(f"terminate query '{running}'")


def test_a_batch_shows_no_statement_of_another_organization(operator: Client, make: Make) -> None:
    here = make("owner")
    request = {
        "statements": ["select 'mine'", "use organization other", f"select '{FOREIGN}' as v"],
        "parameters": {"sessionID": operator.session},
    }
    answer = operator.http.post("/v2/statements", json=request).json()
    until(lambda: get(operator, answer["statementID"], batch=0).status_code != 202)
    assert len(get(operator, answer["statementID"], batch=0).json()["statements"]) == 3
    for number in range(3):
        seen = get(here, answer["statementID"], batch=number)
        assert seen.status_code == 404
        assert FOREIGN not in seen.text
    seen = get(here, answer["statementID"])
    assert seen.json()["data"] == [["mine"]]
    assert "statements" not in seen.json()
    assert FOREIGN not in seen.text


# Within an organization


def test_batches_of_one_token_push_out_none_of_anothers(tmp_path: Path) -> None:
    batches: dict[str, Batch] = {}

    def kept(owner: str, number: int) -> str:
        spool = Spool(lambda: tmp_path / "unused", 10)
        batch = Batch([Statement("select 1", "", owner, spool, ContextEcho()) for _ in range(number)], stops=True)
        batch.finished.set()
        keep_batch(batches, batch)
        return batch.statements[0].statement_id

    mine = kept("quiet", 2)
    theirs = [kept("loud", 700) for _ in range(4)]
    assert [key in batches for key in (mine, theirs[0], theirs[-1])] == [True, False, True]


def test_statements_are_for_their_own_token_and_for_owners(operator: Client, make: Make) -> None:
    owner, writer, reader, second = make("owner"), make("writer"), make("reader"), make("reader")
    for sender in (owner, writer, reader):
        sql = f"select 'private {sender.name}' as p"
        statement_id = sender.run(sql)["statementID"]
        sent = sender.http.post("/v2/statements", json={"statements": [sql]}).json()
        batch = sender.wait(sent, batch=0)["statementID"]
        for client in (owner, writer, reader, second):
            may = client in (sender, owner)
            assert get(client, statement_id).status_code == (200 if may else 404)
            assert get(client, batch, batch=0).status_code == (200 if may else 404)
            assert client.state(f"describe query '{statement_id}'") == ("00000" if may else "42501")
            shown = {row[0]: row for row in client.rows("list queries")}[statement_id]
            assert shown[5] == (sql if may else "<insufficient privilege>")
            assert shown[6] == sender.name
            if client is second:
                assert f"private {sender.name}" not in looks(client, statement_id)
    last = writer.run("select 1")["statementID"]
    assert operator.run(f"describe query '{last}'", role="reader")["sqlState"] == "42501"
    listed = {row[0]: row[5] for row in operator.rows("list queries", role="reader")}
    assert listed[last] == "<insufficient privilege>"


def test_a_session_belongs_to_its_token(make: Make) -> None:
    mine, other = make("owner"), make("owner")
    mine.rows("create temp table t as select 'private' as v")
    assert other.state("select * from t", parameters={"sessionID": mine.session}) == "3D020"
    mine.rows("begin")
    assert other.state("commit", parameters={"sessionID": mine.session}) != "00000"
    assert mine.run("rollback")["sqlState"] == "00000"


# Tokens that were dropped


def frame(asked: Any, session: str = "") -> str:
    return json.dumps({"type": "auth", "accessToken": asked["token"], "sessionId": session})


def test_a_dropped_token_opens_nothing(own: Served, operator: Client, make: Make) -> None:
    gone, owner = make("owner"), make("owner")
    large = gone.run("select repeat('x', 1000) from range(3000)")
    finished = gone.run("select 'kept'")["statementID"]
    asked = large["metadata"]["dataplaneRequest"]
    running = gone.submit(ENDLESS)
    waiting = gone.submit("select 1")
    alone = gone.http.post("/v2/statements", json={"statement": f"{ENDLESS}; select 2"}).json()["statementIDs"]
    batch = gone.http.post("/v2/statements", json={"statements": [ENDLESS, "select 3"]}).json()["statementID"]
    plane = {"Authorization": f"Bearer {asked['token']}"}
    assert gone.http.get(asked["uri"], headers=plane).status_code == 200
    by_owner = get(owner, large["statementID"]).json()["metadata"]["dataplaneRequest"]
    owner.rows(f"drop api_token {gone.name}")
    assert gone.http.get(asked["uri"], headers=plane).status_code == 401
    for method, path in (("GET", "/v2/version"), ("GET", f"/v2/statements/{finished}"), ("POST", "/v2/statements")):
        assert gone.http.request(method, path).status_code == 401
    for statement_id in (running["statementID"], waiting["statementID"], *alone, batch):
        assert owner.wait({"sqlState": "03000", "statementID": statement_id})["sqlState"] == "57000"
    assert gone.session not in [row[0] for row in owner.rows("list sessions")]
    # What it made is there for those who may read it, with tokens of theirs.
    assert get(owner, finished).json()["data"] == [["kept"]]
    bearer = {"Authorization": f"Bearer {by_owner['token']}"}
    assert owner.http.get(by_owner["uri"], headers=bearer).status_code == 200


async def ends_with(socket: Any) -> int | None:
    async with asyncio.timeout(20):
        try:
            while True:
                await socket.recv()
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else None


def test_a_long_statement_with_a_secret_says_that_it_succeeded(operator: Client) -> None:
    sql = f"create secret long_one with ('type' = generic_string,{' ' * 17_000}'secret_string' = '{SECRET}')"
    answer = operator.run(sql)
    assert (answer["sqlState"], answer["message"]) == ("00000", "CREATE SECRET")


def test_readers_of_a_dropped_token_are_cut_off(make: Make) -> None:
    owner, gone, sender = make("owner"), make("owner"), make("writer")
    name = f"s_{time.monotonic_ns()}"
    owner.rows(f"create stream {name} (v varchar)")
    begun = sender.submit(f"select * from {name}")
    theirs = gone.submit(f"select v from {name}")
    statement_id = begun["statementID"]

    async def read() -> None:
        asked = [get(client, statement_id).json()["metadata"]["dataplaneRequest"] for client in (gone, owner)]
        async with connect(asked[0]["uri"], proxy=None) as cut, connect(asked[1]["uri"], proxy=None) as stays:
            for socket, plane in zip((cut, stays), asked, strict=True):
                # Both say the same session: each has a place of its own.
                await socket.send(frame(plane, "same"))
                assert json.loads(await socket.recv())["type"] == "metadata"
            await asyncio.to_thread(owner.rows, f"insert into {name} values ('one')")
            for socket in (cut, stays):
                assert json.loads(await socket.recv())["data"] == ["one"]
            await asyncio.to_thread(owner.rows, f"drop api_token {gone.name}")
            assert await ends_with(cut) == 4401
            await asyncio.to_thread(owner.rows, f"insert into {name} values ('two')")
            async with asyncio.timeout(20):
                assert json.loads(await stays.recv())["data"] == ["two"]
            async with connect(asked[0]["uri"], proxy=None) as again:
                await again.send(frame(asked[0]))
                assert await ends_with(again) == 4401

    asyncio.run(read())
    assert get(owner, theirs["statementID"]).json()["sqlState"] == "57000"
    owner.rows(f"drop stream {name}")


def cut_off(owner: Client, gone: Client, url: str, headers: dict[str, str], size: int) -> None:
    """Drop the token of a client that reads: the response ends before all has arrived."""
    got = 0
    with gone.http.stream("GET", url, headers=headers) as answer:
        assert answer.status_code == 200
        with pytest.raises(httpx.RemoteProtocolError):
            for number, chunk in enumerate(answer.iter_bytes(65536)):
                got += len(chunk)
                if number == 0:
                    owner.rows(f"drop api_token {gone.name}")
    assert 0 < got < size


def test_a_download_ends_with_its_token(own: Served, make: Make) -> None:
    owner, gone = make("owner"), make("reader")
    name, size = f"f_{time.monotonic_ns()}", 24 << 20
    owner.rows(f"create function_source {name} with ('file' = 'f.jar')", files=[("f.jar", bytes(size))])
    organization = owner.run("select 1")["metadata"]["context"]["organizationID"]
    cut_off(owner, gone, f"/v2/download/function_source/{organization}/{name}", {}, size)
    owner.rows(f"drop function_source {name}")


def test_a_token_that_is_dropped_while_it_sends_runs_nothing(own: Served, make: Make) -> None:
    owner, gone = make("owner"), make("owner")
    table = f"t_{time.monotonic_ns()}"
    body = json.dumps({"statement": f"create table {table} (i int)"}).encode()
    head = f"POST /v2/statements HTTP/1.1\r\nHost: {urlsplit(own.url).netloc}\r\nContent-Type: application/json\r\n"
    head += f"{AUTHORIZATION}: {gone.http.headers[AUTHORIZATION]}\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection((urlsplit(own.url).hostname, urlsplit(own.url).port), timeout=20) as wire:
        wire.sendall(head.encode() + body[:10])
        # The head was read when another connection has its answer.
        owner.rows("select 1")
        owner.rows(f"drop api_token {gone.name}")
        wire.sendall(body[10:])
        assert wire.recv(1000).startswith(b"HTTP/1.1 401")
    assert owner.state(f"select * from {table}") == "3D020"


def test_a_query_that_begins_while_it_is_ended_ends(storage: Storage) -> None:
    """An endless SELECT has its answer when it begins: who waits for its end must not wait for that."""

    async def race() -> tuple[str, bool]:
        statements = make_statements(storage, Settings(), engine=DuckdbEngine(), embedded=True)
        operator = Caller("operator")
        try:
            [made] = await statements.submit(StatementRequest("create stream s (v varchar)"), operator)
            await made.ready.wait()
            [query] = await statements.submit(StatementRequest("select * from s"), operator)
            await query.ready.wait()
            assert query.running
            async with asyncio.timeout(20):
                await statements.control.cancel(query)
            return query.sql_state, statements.organizations.opened()[0].streams.find(query.statement_id) is None
        finally:
            await statements.close()

    assert asyncio.run(race()) == ("57000", True)


def test_a_partition_ends_with_its_token(make: Make) -> None:
    """By the data plane, whose token is another one. The row is larger than what a connection holds on its way."""
    owner, gone = make("owner"), make("writer")
    size = 24 << 20
    asked = gone.run(f"select repeat('x', {size}) as v")["metadata"]["dataplaneRequest"]
    cut_off(owner, gone, asked["uri"], {"Authorization": f"Bearer {asked['token']}"}, size)


def test_a_token_that_drops_itself_hears_of_it(make: Make) -> None:
    gone = make("owner")
    request = {"statement": f"drop api_token {gone.name}; select 1", "parameters": {"sessionID": gone.session}}
    answer = gone.http.post("/v2/statements", json=request)
    assert answer.json()["sqlState"] in {"00000", "03000", "57000"}
    assert gone.http.get("/v2/version").status_code == 401


def test_a_dropped_organization_leaves_nothing_to_read(operator: Client, make: Make) -> None:
    name = f"brief_{time.monotonic_ns()}"
    operator.rows(f"create organization {name}")
    bound = make("owner", name)
    statement_id = bound.run(f"select '{FOREIGN}'")["statementID"]
    with_rows = bound.run("select repeat('x', 1000) from range(3000)")["metadata"]["dataplaneRequest"]
    assert operator.state(f"drop organization {name}") == "00000"
    assert bound.http.get("/v2/version").status_code == 401
    bearer = {"Authorization": f"Bearer {with_rows['token']}"}
    assert bound.http.get(with_rows["uri"], headers=bearer).status_code == 401
    assert get(operator, statement_id).status_code == 404


def test_an_organization_is_not_dropped_under_what_runs(operator: Client, make: Make) -> None:
    name = f"busy_{time.monotonic_ns()}"
    operator.rows(f"create organization {name}")
    bound = make("owner", name)
    bound.rows("create stream s (v varchar)")
    begun = bound.wait(bound.submit("select * from s", parameters={}))
    asked = begun["metadata"]["dataplaneRequest"]
    # Both have no session that goes on: nobody finds them by a name.
    running = bound.submit(ENDLESS, parameters={})["statementID"]
    assert operator.state(f"drop organization {name}") == "2BP01"
    assert bound.http.get("/v2/version").status_code == 200
    assert get(bound, running).status_code == 202
    operator.run(f"terminate query '{running}'")

    async def read() -> None:
        async with connect(asked["uri"], proxy=None) as socket:
            await socket.send(frame(asked))
            assert json.loads(await socket.recv())["type"] == "metadata"
            assert await asyncio.to_thread(operator.state, f"drop organization {name}") == "00000"
            # The stream failed first, or its token was found dropped.
            assert await ends_with(socket) in {1000, 4401}

    asyncio.run(read())


def test_names_of_the_services_own_tokens_are_reserved(operator: Client) -> None:
    for name in ("operator", '"Operator"', "anonymous"):
        assert operator.state(f"create api_token {name}") == "42710"


# What looks has the rights of what it looks at


@pytest.mark.parametrize(
    ("sql", "state"),
    [
        ("describe create organization hidden_one", "42501"),
        ("describe create store absent with ('type' = 'files', 'uri' = '/nowhere/at/all')", "22023"),
        ("can i create_store on organization other", "3D004"),
        ("can i create_store on organization nowhere", "3D004"),
        ("can i create_store on organization local", "00000"),
        ("can i create_store", "00000"),
        ("list streams where true) union all select name from listed where (true", "42601"),
        ("list streams where name = ')' or (name = 'x') -- )", "00000"),
    ],
)
def test_nothing_tells_or_takes_more_than_it_says(sql: str, state: str, make: Make) -> None:
    assert make("owner").state(sql) == state


def test_a_folder_that_fails_while_it_is_walked_is_of_a_broken_store(tmp_path: Path) -> None:
    with pytest.raises(Failure, match="cannot read ") as caught:
        StoreFolder(cast(Any, None), "s", tmp_path, -1, frozenset()).entities()
    assert caught.value.sql_state == "3E001"


def test_a_database_of_the_engines_own_is_not_there(make: Make) -> None:
    owner = make("owner")
    request = {"database": "temp", "parameters": {}}
    for sql, state in (("list stores", "00000"), ("create table t (a int)", "3D002")):
        answer = owner.http.post("/v2/statements", json={"statement": sql, **request}).json()
        assert answer["sqlState"] == state, answer
