"""Sessions are listed and terminated, a shell that exits ends its own; and tokens and descriptions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sqlshell.service.catalog import Catalog
from sqlshell.service.setup import open_storage
from tests.conftest import Program, Served
from tests.service.client import Client
from tests.service.tested_engines import OnEngine
from tests.service.waiting import until


@pytest.fixture(scope="module")
def kept(engine: OnEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("sessions")
    with engine.serve(folder, "--data", str(folder / "data")) as running:
        yield running


@pytest.fixture
def client(kept: Served) -> Iterator[Client]:
    with Client(kept) as made:
        yield made


def sessions(client: Client) -> dict[str, list[str | None]]:
    return {row[0] or "": row[1:] for row in client.rows("list sessions")}


def test_sessions_are_listed_and_ended(kept: Served, client: Client, engine: OnEngine) -> None:
    with Client(kept) as other:
        other.rows("select 1")
        place = ["idle", "operator", "owner", client.home(), engine.sql.schema, "false"]
        assert sessions(client)[other.session][:6] == place
        client.rows(f"terminate session '{other.session}'")
        assert other.session not in sessions(client)
    assert client.state("terminate session 'nobody'") == "08003"


@pytest.mark.parametrize("name", ["\0", "a\u202eb", "a\nb", " a"])
def test_a_session_has_no_name_that_looks_like_another(client: Client, name: str) -> None:
    asked = {"statement": "select 1", "parameters": {"sessionID": name}}
    refused = client.http.post("/v2/statements", json=asked)
    assert refused.status_code == 400
    assert "request.parameters.sessionID" in refused.json()["message"]


def _fields(client: Client, transaction: str) -> dict[str, Any]:
    return {"parameters": {"sessionID": client.session, "transaction": transaction}}


@pytest.mark.needs("transactions")
@pytest.mark.parametrize("state", ["open", "failed"])
def test_nothing_of_a_transaction_that_was_lost_with_its_session_is_committed(kept: Served, state: str) -> None:
    with Client(kept) as client, Client(kept) as other:
        client.rows("create table if not exists parted (i int)")
        client.rows("begin")
        client.rows("insert into parted values (1)")
        other.rows(f"terminate session '{client.session}'")
        lost = client.run("insert into parted values (2)", **_fields(client, state))
        assert (lost["sqlState"], lost["metadata"]["context"]["transaction"]) == ("40000", "failed")
        assert client.state("insert into parted values (3)", **_fields(client, "failed")) == "25P02"
        client.run("commit", **_fields(client, "failed"))
        assert client.rows("select count(*) from parted") == [["0"]]
        client.rows("drop table parted")


@pytest.mark.needs("transactions")
def test_a_commit_of_a_lost_transaction_fails_and_a_rollback_ends_it(kept: Served) -> None:
    with Client(kept) as client:
        assert client.state("commit", **_fields(client, "open")) == "40000"
        done = client.run("rollback", **_fields(client, "failed"))
        assert (done["sqlState"], done["metadata"]["context"].get("transaction")) == ("00000", None)
        assert client.rows("select 1") == [["1"]]
    with Client(kept) as client:
        assert client.state("rollback", **_fields(client, "open")) == "00000"
        # The session exists now: what a client thought before does not matter.
        assert client.state("select 1", **_fields(client, "open")) == "00000"


@pytest.mark.needs("transactions")
def test_a_batch_of_a_lost_transaction_runs_nothing(kept: Served) -> None:
    with Client(kept) as client:
        client.rows("create table if not exists batched (i int)")
    with Client(kept) as client:
        statements = [f"insert into batched values ({number})" for number in range(3)]
        asked = {"statements": statements, "onError": "continue"} | _fields(client, "open")
        answer = client.wait(client.http.post("/v2/statements", json=asked).json())
        assert [item["sqlState"] for item in answer["statements"]] == ["40000", "25P02", "25P02"]
        client.rows("rollback")
        assert client.rows("select count(*) from batched") == [["0"]]
        client.rows("drop table batched")


def test_a_transaction_is_open_or_failed(client: Client) -> None:
    asked = {"statement": "select 1"} | _fields(client, "begun")
    refused = client.http.post("/v2/statements", json=asked)
    assert refused.status_code == 400
    assert "request.parameters.transaction" in refused.json()["message"]


@pytest.mark.needs("transactions")
def test_a_session_that_is_ended_is_rolled_back(kept: Served, client: Client) -> None:
    with Client(kept) as other:
        other.rows("create table if not exists held (i int)")
        other.rows("begin")
        other.rows("insert into held values (1)")
        assert sessions(client)[other.session][5] == "true"
        client.rows(f"terminate session '{other.session}'")
        assert other.session not in sessions(client)
        # Rolled back; and the name is free for another session.
        assert other.rows("select * from held") == []


@pytest.mark.needs("cancel")
def test_what_runs_in_a_session_is_ended_with_it(kept: Served, client: Client, engine: OnEngine) -> None:
    with Client(kept) as other:
        running, waiting = other.submit(engine.sql.endless), other.submit("select 2")
        assert sessions(client)[other.session][0] == "running"
        client.rows(f"terminate session '{other.session}'")
        assert other.wait(running)["sqlState"] == "57000"
        ended = other.wait(waiting)
    assert (ended["sqlState"], ended["message"]) == ("57000", "the session was terminated")


@pytest.mark.slow("starts a service")
def test_a_session_that_is_left_ends_when_its_statements_have(kept: Served, client: Client, engine: OnEngine) -> None:
    with Client(kept) as other:
        running = other.submit(engine.sql.long)
        client.rows(f"terminate session '{other.session}' when idle")
        assert other.session not in sessions(client)
        assert other.wait(running)["sqlState"] == "00000"


def test_a_session_may_end_itself(client: Client) -> None:
    client.rows(f"terminate session '{client.session}'")
    assert client.rows("select 1") == [["1"]]


@pytest.mark.needs("roles")
def test_whose_session_it_is(kept: Served, client: Client) -> None:
    token = client.rows("create api_token watcher with ('role' = 'reader')")[0][1]
    with Client(kept, token or "") as reader:
        assert reader.state(f"terminate session '{client.session}'") == "42501"
        assert sessions(reader)[reader.session][1] == "watcher"
        reader.rows(f"terminate session '{reader.session}'")


@pytest.mark.needs("databases")
def test_a_database_is_free_when_its_shell_has_left(program: Program, kept: Served, client: Client) -> None:
    env = {"SQLSHELL_URL": kept.url, "SQLSHELL_TOKEN": kept.token}
    before = set(sessions(client))
    assert program("-c", "create database guest; use database guest; create table t (i int)", env=env).code == 0
    background = program("-c", "use database guest", "-c", "select 1;&", "-c", "\\wait", env=env)
    assert background.code == 0, background.err
    assert set(sessions(client)) == before
    # Nobody who looks for queries wants to see who left.
    assert not any("TERMINATE SESSION" in (row[5] or "") for row in client.rows("list queries"))
    joined = program("--session-id", "mine", "-c", "use database guest", env=env)
    assert joined.code == 0
    assert "mine" in sessions(client)
    refused = client.run("drop database guest")
    assert (refused["sqlState"], "'mine'" in refused["message"]) == ("2BP01", True)
    client.rows("terminate session 'mine'")
    client.rows("drop database guest")


@pytest.mark.slow("runs the program")
def test_a_statement_that_is_left_running_goes_on(
    program: Program, kept: Served, client: Client, engine: OnEngine
) -> None:
    env = {"SQLSHELL_URL": kept.url, "SQLSHELL_TOKEN": kept.token}
    slow = f"{engine.sql.long} /* left running */"
    left = program("--timeout", "0.01", "-c", slow, env=env)
    assert left.code == 4, left.err
    until(lambda: not any(row[4] == "running" and row[5] == slow for row in client.rows("list queries")))
    assert [row[4] for row in client.rows("list queries") if row[5] == slow] == ["completed"]


@pytest.mark.parametrize(
    "sql",
    [
        "create api_token if not exists {}",
        "/* a comment */ create api_token {}",
        'CREATE API_TOKEN IF NOT EXISTS "{}"',
        "create  api_token\n{} with ('roles' = 'reader')",
    ],
)
def test_the_token_that_is_shown_has_its_name(client: Client, sql: str) -> None:
    assert client.rows(sql.format("z"))[0][0] == "z"
    assert ["z", "reader"] in client.rows("list api_tokens")
    assert client.state("create api_token if not exists z") == "00000"
    client.rows("drop api_token z")


def test_every_way_of_making_a_token_gives_the_least(
    program: Program, kept: Served, client: Client, tmp_path: Path
) -> None:
    open_storage(tmp_path / "data").close()
    made = program("serve", "--new-token", "--data", "data")
    assert made.code == 0, made.err
    with contextlib.closing(open_storage(tmp_path / "data")) as storage:
        caller = Catalog(storage).caller(made.out.strip())
    assert caller is not None
    assert caller.roles == ("reader",)
    token = client.rows("create api_token least")[0][1]
    owner = client.rows("create api_token boss with ('role' = 'owner')")[0][1]
    with Client(kept, token or "") as reader:
        assert reader.state("create table nothing (i int)") == "42501"
        assert reader.state("create api_token more") == "42501"
    with Client(kept, owner or "") as boss:
        assert boss.rows("create api_token bosss")[0][0] == "bosss"
    assert ["bosss", "reader"] in client.rows("list api_tokens")
    assert client.state("create api_token odd with ('rolle' = 'owner')") == "42601"


def test_the_document_has_the_websocket_and_403(client: Client) -> None:
    paths = client.http.get("/openapi.json").json()["paths"]
    assert "101" in paths["/v2/streams/{statementID}"]["get"]["responses"]
    for path in paths.values():
        for operation in path.values():
            assert "403" in operation["responses"] or operation["operationId"] == "getDocument"
    assert client.http.get("/v2/version", headers={"Origin": "https://evil.example"}).status_code == 403
