"""Several processes of one service share records, results, sessions and pools, and take over from one another."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
import websockets

from tests.conftest import Program, Served, serve, stop
from tests.service.client import Answer, Client
from tests.service.cluster import LEASE, Processes, killed_under_load, needs_cluster, on_postgresql, processes
from tests.service.postgresql import database, needs_postgresql
from tests.service.slow_database import SlowDatabase
from tests.service.waiting import suspend, until

pytestmark = [needs_postgresql, needs_cluster]


@pytest.fixture
def cluster(tmp_path: Path, postgresql_server: str) -> Iterator[Processes]:
    with (
        database(postgresql_server) as engine_url,
        database(postgresql_server) as state_url,
        processes(tmp_path, on_postgresql(engine_url), state_url, 2) as made,
    ):
        yield made


def both(cluster: Processes, session: str = "") -> tuple[Client, Client]:
    """Clients of the first two processes, in the same session."""
    name = session or str(uuid.uuid4())
    return Client(cluster.served[0], session=name), Client(cluster.served[1], session=name)


def test_a_session_goes_on_at_every_process(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second:
        first.rows("create temporary table t (i int)")
        second.rows("insert into t values (1)")
        second.rows("begin")
        first.rows("insert into t values (2)")
        assert second.run("select 1")["metadata"]["context"]["transaction"] == "open"
        first.rows("rollback")
        assert second.rows("select i from t") == [["1"]]
        second.rows("create schema s")
        first.rows("use schema s")
        assert second.run("select 1")["metadata"]["context"]["schemaName"] == "s"


def test_a_statement_is_looked_up_paged_and_canceled_at_another_process(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second:
        answer = second.wait(first.submit("select i, repeat('x', 100) from generate_series(1, 20000) i"))
        assert answer["sqlState"] == "00000"
        assert len(answer["metadata"]["partitionInfo"]) == 20
        page = second.http.get(f"/v2/statements/{answer['statementID']}", params={"partitionID": 19}).json()
        assert page["data"][-1][0] == "20000"
        parquet = {"Accept": "application/vnd.apache.parquet"}
        whole = [item.http.get(f"/v2/statements/{answer['statementID']}", headers=parquet) for item in (first, second)]
        assert whole[0].content == whole[1].content
        assert whole[1].content[:4] == b"PAR1"
        slow = first.submit("select pg_sleep(60)")
        with Client(cluster.served[1]) as third:
            assert "57000" in third.run(f"terminate query '{slow['statementID']}'")["message"]
        assert second.wait(slow)["sqlState"] == first.wait(slow)["sqlState"] == "57000"


def test_objects_and_tokens_are_the_same_everywhere(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second:
        made = first.run("create api_token t with ('roles' = 'owner')")
        assert made["sqlState"] == "00000", made
        assert ["t"] in [row[:1] for row in second.rows("list api_tokens")]
        first.rows("create compute_pool p with ('concurrency' = '1')")
        assert "p" in [row[0] for row in second.rows("list compute_pools")]


def test_a_new_token_is_shown_once_by_any_process(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second, Client(cluster.served[1]) as other:
        first.submit("select pg_sleep(1)")
        made = first.submit("create api_token t with ('roles' = 'owner')")
        assert made["sqlState"] == "03000"
        until(lambda: other.described(f"describe query '{made['statementID']}'")["state"] == "completed")
        shown = [second.http.get(f"/v2/statements/{made['statementID']}").json() for _ in range(2)]
        assert [len(item.get("data", ())) for item in shown] == [1, 0]
        with Client(cluster.served[1], token=shown[0]["data"][0][1]) as holder:
            assert holder.rows("select 1") == [["1"]]


def test_the_sessions_of_all_processes_are_listed(cluster: Processes) -> None:
    with Client(cluster.served[0], session="here") as first, Client(cluster.served[1], session="there") as second:
        second.rows("select 1")
        found = {row[0]: row[1:3] for row in first.rows("list sessions")}
        assert found["there"] == ["elsewhere", "operator"]
        assert found["here"][0] != "elsewhere"


def test_a_session_of_another_process_is_terminated(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second, Client(cluster.served[1], session="other") as other:
        first.rows("create temporary table t (i int)")
        slow = first.submit("select pg_sleep(60)")
        other.rows(f"terminate session '{first.session}'")
        assert first.wait(slow)["sqlState"] == "57000"
        assert [row[0] for row in other.rows("list sessions")] == ["other"]
        # The next statement begins a session without the temporary table.
        assert second.run("select i from t")["sqlState"] == "42P01"
        assert other.run("terminate session 'nobody'")["sqlState"] == "08003"


def test_a_session_of_another_process_is_terminated_when_it_is_idle(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second, Client(cluster.served[1], session="other") as other:
        first.rows("create temporary table t (i int)")
        slow = first.submit("select pg_sleep(3)")
        other.rows(f"terminate session '{first.session}' when idle")
        # The session of the next statement has the same name, and belongs to the same process as long as it exists.
        second.rows("create temporary table t (j int)")
        assert first.wait(slow)["sqlState"] == "00000"
        assert second.rows("select j from t") == first.rows("select j from t") == []
        assert [row[0] for row in other.rows("list sessions")].count(first.session) == 1


def test_a_reader_terminates_no_session_of_another_token_at_another_process(cluster: Processes) -> None:
    with Client(cluster.served[0], session="theirs") as first:
        first.rows("create temporary table t (i int)")
        made = first.listed("create api_token r with ('roles' = 'reader')")
        given = str(made[0]["token"])
        with Client(cluster.served[1], token=given) as reader:
            assert reader.run("terminate session 'theirs'")["sqlState"] == "42501"
        assert first.rows("select i from t") == []


def test_a_session_of_a_suspended_process_is_lost_while_it_is_terminated(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second, Client(cluster.served[1]) as other:
        first.rows("create temporary table t (i int)")
        suspend(cluster.served[0].process.pid)
        try:
            other.rows(f"terminate session '{first.session}'")
            assert second.run("select i from t")["sqlState"] == "57P02"
        finally:
            cluster.served[0].process.send_signal(signal.SIGCONT)


def test_a_running_statement_of_another_process_is_shown_as_running(cluster: Processes) -> None:
    with Client(cluster.served[0]) as first, Client(cluster.served[1]) as second, Client(cluster.served[0]) as other:
        first.rows("create compute_pool p with ('concurrency' = '1')")
        slow = first.submit("select pg_sleep(60)", computePool="p")
        queued = other.submit("select 1", computePool="p")
        shown = {row["ID"]: row["ActualState"] for row in second.listed("list queries")}
        assert (shown[slow["statementID"]], shown[queued["statementID"]]) == ("running", "queued")
        assert second.described(f"describe query '{slow['statementID']}'")["state"] == "running"
        assert first.described(f"describe query '{queued['statementID']}'")["state"] == "queued"
        first.run(f"terminate query '{slow['statementID']}'")


def test_the_sessions_of_a_token_that_another_process_dropped_end(cluster: Processes) -> None:
    with Client(cluster.served[0]) as first:
        given = str(first.listed("create api_token o with ('roles' = 'owner')")[0]["token"])
        with Client(cluster.served[1], token=given, session="theirs") as other:
            other.rows("select 1")
        first.rows("drop api_token o")
        until(lambda: "theirs" not in [row[0] for row in first.rows("list sessions")])


def test_the_data_plane_gives_rows_at_every_process(tmp_path: Path, postgresql_server: str) -> None:
    with (
        database(postgresql_server) as engine_url,
        database(postgresql_server) as state_url,
        processes(tmp_path, [*on_postgresql(engine_url), "--data-plane", "always"], state_url, 2) as cluster,
    ):
        first, second = both(cluster)
        with first, second:
            first.rows_of_nothing("create temporary table t as select i from generate_series(1, 5) i")
            # The process of the session responds, with the URL that the client used.
            made = second.submit("select i from t")
            made = second.wait(made)
            given = made["metadata"]["dataplaneRequest"]
            assert given["uri"] == f"{cluster.served[1].url}/v2/statements/{made['statementID']}"
            slow = first.submit("select pg_sleep(1), repeat('x', 100000) from generate_series(1, 3)")
            plane = {"Authorization": f"Bearer {given['token']}"}
            for served in cluster.served:
                place = f"{served.url}/v2/statements/{made['statementID']}"
                assert httpx.get(place, headers=plane, trust_env=False).json()["data"] == [
                    [str(i)] for i in range(1, 6)
                ]
                parquet = plane | {"Accept": "application/vnd.apache.parquet", "Range": "bytes=0-3"}
                found = httpx.get(place, headers=parquet, trust_env=False)
                assert (found.status_code, found.content) == (206, b"PAR1")
                # The token is that of one statement.
                other = f"{served.url}/v2/statements/{slow['statementID']}"
                assert httpx.get(other, headers=plane, trust_env=False).status_code == 401
            done = second.wait(slow)["metadata"]["dataplaneRequest"]
            assert done["uri"].startswith(cluster.served[1].url)


def test_a_large_response_is_passed_on_as_it_is(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second:
        first.rows_of_nothing("create table t as select i, repeat('é', 1000) from generate_series(1, 900) i")
        made = first.submit("select * from t where (select pg_sleep(1)) is not null")
        # It finishes while the request waits at the process that runs it.
        while (found := second.http.get(f"/v2/statements/{made['statementID']}?partitionID=0")).status_code == 202:
            pass
        assert found.json()["sqlState"] == "00000"
        assert len(found.json()["data"]) == 900
        assert int(found.headers["content-length"]) == len(found.content) > 1_800_000
        same = first.http.get(f"/v2/statements/{made['statementID']}", params={"partitionID": 0})
        assert found.content == same.content


def test_a_stream_is_refused_alike_by_every_process(cluster: Processes) -> None:
    # No engine of several processes has streams.
    with Client(cluster.served[0]) as client:
        assert client.state("create stream s (i int)") == "0A000"
        made = client.run("select 1")
    said = [
        asyncio.run(_first_frame(f"ws{served.url[4:]}/v2/streams/{made['statementID']}")) for served in cluster.served
    ]
    assert said == [4401, 4401]


async def _first_frame(url: str) -> int:
    """The code with which a websocket is closed after an auth frame with a wrong token."""
    async with websockets.connect(url, proxy=None) as socket:
        await socket.send(json.dumps({"type": "auth", "accessToken": "x"}))
        await socket.wait_closed()
        return socket.close_code or 0


def test_an_attachment_reaches_the_process_of_the_session(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second:
        first.rows_of_nothing("create temporary table t (i int)")
        content = b"".join(b"%d\n" % i for i in range(1_000_000))
        second.rows_of_nothing("copy t from stdin", [("stdin", content)])
        assert first.rows("select count(*) from t") == [["1000000"]]


def test_a_source_is_downloaded_from_every_process(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second:
        made = first.run("create descriptor_source d with ('file' = 'a.desc')", [("a.desc", b"\x00content")])
        assert made["sqlState"] == "00000", made
        place = f"/v2/download/descriptor_source/{made['metadata']['context']['organizationID']}/d"
        assert [item.http.get(place).content for item in (second, first)] == [b"\x00content"] * 2
        second.rows("drop descriptor_source d")
        assert first.http.get(place).status_code == 404


def test_each_process_has_the_slots_of_a_pool_for_itself(cluster: Processes) -> None:
    with Client(cluster.served[0]) as first, Client(cluster.served[1]) as second:
        first.rows("create compute_pool p with ('concurrency' = '1')")
        slow = first.submit("select pg_sleep(60)", computePool="p")
        assert second.wait(second.submit("select 1", computePool="p"))["sqlState"] == "00000"
        first.run(f"terminate query '{slow['statementID']}'")


def test_a_change_of_a_pool_reaches_statements_that_wait_for_it(cluster: Processes) -> None:
    with contextlib.ExitStack() as stack:
        first, *others = (stack.enter_context(Client(cluster.served[0])) for _ in range(3))
        first.rows("create compute_pool p with ('concurrency' = '1')")
        slow = first.submit("select pg_sleep(60)", computePool="p")
        waiting = [client.submit("select 1", computePool="p") for client in others]
        with Client(cluster.served[1]) as operator:
            operator.rows("update compute_pool p with ('concurrency' = '5')")
        for client, made in zip(others, waiting, strict=True):
            assert client.wait(made)["sqlState"] == "00000"
        assert first.http.get(f"/v2/statements/{slow['statementID']}").json()["sqlState"] == "03000"
        first.run(f"terminate query '{slow['statementID']}'")


def test_the_statements_of_a_killed_process_are_ended_by_others(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second:
        first.rows("create table t (i int)")
        done = first.run("insert into t values (1)")
        slow = first.submit("insert into t select 2 from pg_sleep(60)")
        cluster.kill(cluster.served[0])
        assert second.wait(done)["sqlState"] == "00000"
        slow = second.wait(slow)
        assert slow["sqlState"] == "XX000"
        assert "stopped while the statement was running" in slow["message"]
        dead, there = first.http.base_url, cluster.logs[cluster.served[0].url]
        said = f"no report for 10 s from: {str(dead).rstrip('/')}"
        assert said in there.read_text()
        # Its session is made again here, and says so once.
        assert second.run("select i from t")["sqlState"] == "57P02"
        assert second.rows("select i from t") == [["1"]]


def _states_after_a_kill(cluster: Processes, client: Client, ids: Sequence[str]) -> list[tuple[str, str]]:
    """Kill the first process; the sqlStates and messages of statements once another process has ended them."""
    cluster.kill(cluster.served[0])
    found = []
    for statement_id in ids:
        answer = client.wait({"sqlState": "03000", "statementID": statement_id})
        found.append((str(answer["sqlState"]), str(answer["message"])))
    return found


def _is_asleep(client: Client, seconds: int = 60) -> bool:
    """Whether the server runs a statement that sleeps so long."""
    running = f"query like '%pg_sleep({seconds})%' and state = 'active' and pid <> pg_backend_pid()"
    return client.rows(f"select count(*) from pg_stat_activity where {running}") != [["0"]]


def test_statements_behind_the_one_that_ran_when_their_process_was_killed_did_not_run(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second, Client(cluster.served[1]) as other:
        first.rows("create table t (i int)")
        sent = first.submit("insert into t values (1); select pg_sleep(60); insert into t values (3); select 4")
        until(lambda: _is_asleep(other))
        found = _states_after_a_kill(cluster, second, sent["statementIDs"])
        assert [state for state, _ in found] == ["00000", "XX000", "57000", "57000"]
        assert "may have taken effect" in found[1][1]
        assert all(message.startswith("not run: ") for _, message in found[2:])
        assert other.rows("select i from t") == [["1"]]


def test_a_batch_is_gone_with_its_process(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second, Client(cluster.served[1]) as other:
        first.rows("create table t (i int)")
        statements = ["insert into t values (1)", "select pg_sleep(60)", "insert into t values (3)"]
        asked = {"statements": statements, "parameters": {"sessionID": first.session}}
        batch = first.http.post("/v2/statements", json=asked).json()["statementID"]
        until(lambda: _is_asleep(other))
        path = f"/v2/statements/{batch}?batch=0"
        assert [item["sqlState"] for item in second.http.get(path).json()["statements"]] == ["00000", "03000"]
        cluster.kill(cluster.served[0])
        silent = second.http.get(path)
        assert (silent.status_code, silent.headers.get("retry-after")) == (503, "2")
        until(lambda: second.http.get(path).status_code != 503)
        lost = second.http.get(path)
        assert (lost.status_code, "no batch that begins with" in lost.json()["message"]) == (404, True)


def test_a_process_that_is_not_reached_is_logged_once(cluster: Processes) -> None:
    # Nothing listens on port 1.
    address = "http://127.0.0.1:1"
    cluster.start("--peer-url", address)
    second, third = cluster.served[1:]
    session = str(uuid.uuid4())
    with Client(third, session=session) as client:
        slow = client.submit("select pg_sleep(2)")
    with Client(second, session=session) as client:
        for _ in range(3):
            assert client.http.get(f"/v2/statements/{slow['statementID']}").json()["sqlState"] == "03000"
        asked = {"statement": "select 1", "parameters": {"sessionID": session}}
        refused = client.http.post("/v2/statements", json=asked)
        assert (refused.status_code, refused.headers.get("sqlshell-not-run")) == (503, "true")
    said = f"the process with --peer-url {address} does not respond: ConnectError"
    assert cluster.logs[second.url].read_text().count(said) == 1


def test_another_token_of_the_operator_is_logged(cluster: Processes, tmp_path: Path) -> None:
    first = cluster.served[0]
    token = tmp_path / "token"
    token.write_text("another-token-of-the-operator")
    token.chmod(0o600)
    third = cluster.start("--token-file", str(token))
    with Client(third) as client:
        assert client.http.get("/v2/version").status_code == 401
    said = cluster.logs[third.url].read_text()
    differs = "the token in --token-file differs from that of the process at"
    assert any(f"{differs} {served.url}, which rejects it with 401" in said for served in cluster.served[:2])
    assert first.token not in said


def test_a_process_that_was_suspended_too_long_does_not_contradict_the_others(cluster: Processes) -> None:
    with Client(cluster.served[0]) as first, Client(cluster.served[1]) as second:
        slow = first.submit("select pg_sleep(3)")
        suspend(cluster.served[0].process.pid)
        found = second.wait(slow)
        cluster.served[0].process.send_signal(signal.SIGCONT)
        assert found["sqlState"] == "XX000"
        until(lambda: not _is_asleep(second, 3))
        assert first.wait(slow)["sqlState"] == "XX000"
        # Its session was not used elsewhere meanwhile, but it could have been.
        assert first.run("select 1")["sqlState"] == "57P02"
        assert first.rows("select 1") == [["1"]]


def test_no_finished_statement_is_lost_or_runs_twice_when_processes_are_killed(cluster: Processes) -> None:
    found = killed_under_load(cluster, 4, random.Random(7))
    assert found.statements > 20
    assert not found.wrong, found


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--state-url", "postgresql://x/y"], "requires --engine postgresql"),
        (["--results-url", "file:///tmp/x"], "--results-url requires --state-url"),
        (["--engine", "postgresql"], "requires --engine-url"),
    ],
)
def test_options_that_cannot_work_together_are_refused(tmp_path: Path, options: list[str], said: str) -> None:
    message = tmp_path / "message"
    with pytest.raises(AssertionError):
        serve(tmp_path, *options, stderr=message)
    assert said in message.read_text()


def test_a_process_with_another_engine_is_refused(tmp_path: Path, postgresql_server: str) -> None:
    from sqlshell.service.cluster.cluster import Cluster
    from sqlshell.service.storage.postgresql import PostgresqlStorage

    message = tmp_path / "message"
    with database(postgresql_server) as state_url, database(postgresql_server) as engine_url:
        # A process on Spark was the first.
        storage = PostgresqlStorage(state_url)
        member = Cluster(storage, "http://there")
        member.shared_value("engine", b"spark")
        member.leave()
        storage.close()
        more = ("--state-url", state_url, "--results-url", f"file://{tmp_path}/shared")
        with pytest.raises(AssertionError):
            serve(tmp_path, *on_postgresql(engine_url), *more, stderr=message)
    assert "the other processes of --state-url use the engine spark, not postgresql" in message.read_text()


def refusal(program: Program, folder: Path, *options: str, **environment: str) -> str:
    """What `serve` writes when it refuses these options."""
    token = folder / "token"
    token.write_text("test-token-0123456789")
    token.chmod(0o600)
    done = program("serve", "--port", "0", "--token-file", str(token), *options, env=environment)
    assert done.code
    assert done.out == ""
    return done.err


def test_a_process_on_another_database_is_refused(
    cluster: Processes, program: Program, tmp_path: Path, postgresql_server: str
) -> None:
    common = ("--state-url", cluster.state_url, "--results-url", f"file://{tmp_path}/shared")
    with database(postgresql_server) as other:
        said = refusal(program, tmp_path, *on_postgresql(other), *common)
    there = [
        f"a different server or database from the one used by the process at {served.url}\n"
        for served in cluster.served
    ]
    assert any(f"--engine-url refers to {text}" in said for text in there)
    # Another URL of the same database.
    cluster.start("--engine-url", cluster.engine[-1] + "&application_name=x")


def test_the_database_of_the_records_is_not_that_of_the_users(
    program: Program, tmp_path: Path, postgresql_database: str
) -> None:
    url = postgresql_database
    more = ("--state-url", url + "&application_name=x", "--results-url", f"file://{tmp_path}/shared")
    assert "--engine-url and --state-url refer to the same database" in refusal(
        program, tmp_path, *on_postgresql(url), *more
    )


def test_a_process_with_another_storage_of_results_is_refused(
    cluster: Processes, program: Program, tmp_path: Path
) -> None:
    more = (*cluster.engine, "--state-url", cluster.state_url)
    said = refusal(program, tmp_path, *more, "--results-url", f"file://{tmp_path}/elsewhere")
    there = [f"a different storage from the one used by the process at {served.url}\n" for served in cluster.served]
    assert any(f"--results-url refers to {text}" in said for text in there)
    # The same one by another path.
    (tmp_path / "link").symlink_to(tmp_path / "shared")
    cluster.start("--results-url", f"file://{tmp_path}/link")


def test_a_server_that_hides_its_identity_is_known_by_its_address(postgresql_database: str) -> None:
    import psycopg

    from sqlshell.service.storage.postgresql import PostgresqlStorage

    name = f"r{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgresql_database, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN SUPERUSER; ALTER ROLE {name} NOSUPERUSER".encode())
        connection.execute(f"GRANT ALL ON SCHEMA public TO {name}".encode())
        connection.execute(b"REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
        try:
            url = postgresql_database.replace("postgres@", f"{name}@")
            with contextlib.closing(PostgresqlStorage(url)) as storage:
                assert storage.server().startswith("local:5432/")
        finally:
            connection.execute(f"DROP OWNED BY {name}; DROP ROLE {name}".encode())
            connection.execute(b"GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC")


@pytest.mark.parametrize(
    "password",
    ["Se%cret", "wrong pw%zz", "Se#cr@et", "Se/cret", "12/34", "Se@cr/et"],
)
def test_no_part_of_a_password_is_shown(
    program: Program, tmp_path: Path, postgresql_database: str, password: str
) -> None:
    more = ("--results-url", f"file://{tmp_path}/shared")
    url = f"postgresql://user:{password}@127.0.0.1:1/st"
    for flag, options in (
        ("STATE", on_postgresql(postgresql_database)),
        ("ENGINE", ("--engine", "postgresql", "--state-url", postgresql_database)),
    ):
        said = refusal(program, tmp_path, *options, *more, **{f"SQLSHELL_SERVE_{flag}_URL": url})
        assert "malformed" in said
        assert not [part for part in ("Se", "cr", "et", "pw", "zz", "12", "34") if part in said.partition("help:")[0]]


@pytest.mark.parametrize("flag", ["--peer-url", "--public-url"])
def test_a_url_that_others_see_contains_no_password(program: Program, tmp_path: Path, flag: str) -> None:
    said = refusal(program, tmp_path, flag, "http://user:S3cret@there/")
    assert f"{flag} cannot contain a user or a password" in said
    assert "S3cret" not in said


def _once_its_lease_has_ended(client: Client, sql: str) -> Answer:
    """The answer to a statement in a session of a killed process: until its lease ends, submissions get 503."""
    asked = {"statement": sql, "parameters": {"sessionID": client.session}}

    def accepted() -> Answer | None:
        found = client.http.post("/v2/statements", json=asked)
        assert found.status_code != 503 or found.headers["sqlshell-not-run"] == "true"
        return found.json() if found.status_code != 503 else None

    return client.wait(until(accepted, 3 * LEASE))


def test_a_process_that_is_started_again_has_the_sessions_of_the_killed_one(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second:
        first.rows("select 1")
        slow = first.submit("select pg_sleep(60)")
        cluster.kill(cluster.served[0])
        cluster.start()
        assert _once_its_lease_has_ended(second, "select 2")["sqlState"] == "57P02"
        assert second.rows("select 3") == [["3"]]
        assert second.wait(slow)["sqlState"] == "XX000"


def test_a_database_that_does_not_respond_is_said_to_be_so(tmp_path: Path, postgresql_database: str) -> None:
    message = tmp_path / "message"
    url = f"postgresql://x@/y?host={tmp_path}"
    more = ("--engine-url", postgresql_database, "--results-url", f"file://{tmp_path}/shared")
    with pytest.raises(AssertionError):
        serve(tmp_path, "--engine", "postgresql", "--state-url", url, *more, stderr=message)
    assert "cannot use the database of --state-url" in message.read_text()


def test_a_header_that_a_client_makes_up_changes_nothing(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second:
        first.rows("create temporary table t (i int)")
        second.http.headers["Sqlshell-Forwarded"] = "x"
        assert second.rows("select * from t") == []


def test_a_lost_transaction_is_not_gone_on_with(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second:
        first.rows("create table t (i int)")
        first.rows("begin")
        first.rows("insert into t values (1)")
        cluster.kill(cluster.served[0])
        lost = _once_its_lease_has_ended(second, "insert into t values (2)")
        assert (lost["sqlState"], "was not run" in lost["message"]) == ("40000", True)
        assert [second.run(sql)["sqlState"] for sql in ("insert into t values (3)", "commit")] == ["25P02", "01000"]
        assert second.rows("select i from t") == []


def test_a_transaction_that_has_ended_is_not_lost(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second:
        for sql in ("create table t (i int)", "begin", "insert into t values (1)", "commit", "begin", "rollback"):
            first.run(sql)
        cluster.kill(cluster.served[0])
        assert _once_its_lease_has_ended(second, "insert into t values (2)")["sqlState"] == "57P02"
        assert second.rows("insert into t values (3) returning i") == [["3"]]
        assert second.rows("select i from t") == [["1"], ["3"]]


def test_a_transaction_is_lost_with_a_process_that_stops(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second:
        first.run("create table t (i int)")
        second.run("begin")
        second.run("insert into t values (1)")
        stop(cluster.served.pop(0))
        assert second.run("rollback")["sqlState"] == "00000"
        # The session was lost too.
        assert second.run("insert into t values (2)")["sqlState"] == "57P02"
        assert second.rows("select i from t") == []


def test_a_transaction_is_lost_once(cluster: Processes) -> None:
    name = str(uuid.uuid4())
    with Client(cluster.served[0], session=name) as client:
        client.run("begin")
    stop(cluster.served.pop(0))
    with Client(cluster.served[0], session=name) as client:
        assert [client.run(sql)["sqlState"] for sql in ("rollback", "select 1")] == ["00000", "57P02"]
    third = cluster.start()
    stop(cluster.served.pop(0))
    with Client(third, session=name) as client:
        assert client.run("select 1")["sqlState"] == "57P02"


def test_a_process_that_is_started_again_at_once_does_not_go_on_with_a_transaction(cluster: Processes) -> None:
    session = str(uuid.uuid4())
    with Client(cluster.served[0], session=session) as first:
        first.rows("create table t (i int)")
        first.rows("begin")
        first.rows("insert into t values (1)")
    restarted = cluster.served[0]
    cluster.kill(restarted)
    cluster.start("--port", str(urlsplit(restarted.url).port))
    with Client(cluster.served[0], session=session) as client:
        lost = _once_its_lease_has_ended(client, "insert into t values (2)")
        assert lost["sqlState"] == "40000"
        assert "was not run" in lost["message"]
        client.rows("rollback")
        assert client.rows("select i from t") == []


def test_a_session_that_begins_at_several_processes_is_one(cluster: Processes) -> None:
    for _ in range(5):
        name = str(uuid.uuid4())

        def seen(served: Served, name: str = name) -> str:
            with Client(served, session=name) as client:
                return str(client.rows("select pg_backend_pid()"))

        with ThreadPoolExecutor(8) as pool:
            found = {*pool.map(seen, cluster.served * 4)}
        assert len(found | {seen(served) for served in cluster.served}) == 1


def test_a_session_of_another_token_is_not_terminated_by_its_name(cluster: Processes) -> None:
    with Client(cluster.served[0], session="same") as first:
        first.rows("create temporary table t (i int)")
        made = first.run("create api_token o with ('roles' = 'owner')")
        names = [column["name"].lower() for column in made["metadata"]["columns"]]
        given = str(made["data"][0][names.index("token")])
        with Client(cluster.served[1], token=given, session="same") as other:
            other.rows("select 1")
        with Client(cluster.served[0], token=given) as other:
            # Its own session of this name, which the other process has.
            other.rows("terminate session 'same'")
            assert [row[1:3] for row in other.rows("list sessions") if row[0] == "same"] == [["idle", "operator"]]
        assert first.rows("select i from t") == []


def test_a_submission_to_a_suspended_process_is_answered_when_its_lease_ends(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second:
        first.rows("create table t (i int)")
        suspend(cluster.served[0].process.pid)
        try:
            asked = {"statement": "insert into t values (1)", "parameters": {"sessionID": second.session}}
            # Before that, the client would give up: a request that is passed on may take 60 seconds.
            found = second.http.post("/v2/statements", json=asked, timeout=4 * LEASE)
            assert found.status_code == 503
            assert "stopped responding" in found.json()["message"]
            assert "sqlshell-not-run" not in found.headers
            assert found.headers["retry-after"] == "2"
            # The session is lost, so a client that tries again does not run the statement twice.
            assert second.run("insert into t values (1)")["sqlState"] == "57P02"
        finally:
            cluster.served[0].process.send_signal(signal.SIGCONT)
        assert second.rows("select i from t") == []


def test_terminate_ends_a_statement_of_a_dead_process(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second:
        slow = first.submit("select pg_sleep(60)")
        cluster.kill(cluster.served[0])
        with Client(cluster.served[0]) as third:
            assert "has state XX000" in third.run(f"terminate query '{slow['statementID']}'")["message"]


def test_a_process_that_stops_says_so_of_its_statements_and_leaves_its_idle_sessions(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second, Client(cluster.served[0]) as busy:
        first.rows("create temporary table t (i int)")
        slow = busy.submit("select pg_sleep(60)")
        queued = busy.submit("select 1")
        stopping = cluster.served[0]
        stopping.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(httpx.TransportError):
            while (refused := first.http.post("/v2/statements", json={"statement": "select 1"})).status_code != 503:
                pass
            assert refused.headers["retry-after"] == "2"
        assert second.run("select * from t")["sqlState"] == "57P02"
        stopping.process.wait()
        ends = [second.wait(item) for item in (slow, queued)]
        assert [item["sqlState"] for item in ends] == ["XX000", "57000"]
        assert "the service stopped while the statement was running" in ends[0]["message"]
        assert "before the statement" in ends[1]["message"]


def test_copies_of_results_are_removed_at_the_start(cluster: Processes, tmp_path: Path) -> None:
    data = tmp_path / "data"
    third = cluster.start("--data", str(data))
    with Client(third) as client:
        made = client.run("select i, repeat('x', 100) from generate_series(1, 20000) i")
    assert len(list(data.glob("organizations/*/results/*"))) == 1
    cluster.kill(third)
    third = cluster.start("--data", str(data))
    assert list(data.glob("organizations/*/results/*")) == []
    with Client(third) as client:
        page = client.http.get(f"/v2/statements/{made['statementID']}", params={"partitionID": 19}).json()
        assert page["data"][-1][0] == "20000"


def test_a_result_whose_shared_file_was_removed_says_so(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second:
        made = first.run("select i, repeat('x', 100) from generate_series(1, 20000) i")
        (file,) = (path for path in (cluster.folder / "shared/results").glob("*/*") if path.is_file())
        file.unlink()
        found = second.http.get(f"/v2/statements/{made['statementID']}", params={"partitionID": 1})
        assert found.status_code == 404
        assert "the result's file was removed from the storage of results" in found.json()["message"]


def test_lists_of_the_service_are_shown_while_results_cannot_be_stored(cluster: Processes) -> None:
    with Client(cluster.served[0]) as client:
        for number in range(60):
            client.rows(f"select {number} -- {'x' * 1000}")
        client.run("do $$ begin for i in 1..500 loop execute 'create table table_' || i || ' ()'; end loop; end $$")
        shared = cluster.folder / "shared"
        shared.rename(cluster.folder / "moved")
        shared.touch()
        failed = client.run("select i, repeat('x', 100) from generate_series(1, 20000) i")
        assert failed["sqlState"] == "53000"
        assert "cannot write to the storage of --results-url: not a directory" in failed["message"]
        listed = client.run("list queries")
        assert (listed["sqlState"], len(listed["data"])) == ("00000", 62)
        place = f"/v2/statements/{listed['statementID']}"
        assert client.http.get(place).json()["data"] == listed["data"]
        assert len(client.rows("list relations")) == 500
    shared.unlink()
    (cluster.folder / "moved").rename(shared)


@pytest.mark.parametrize("change", [lambda content: b"", lambda content: content[:-1] + b"x"])
def test_a_result_whose_shared_file_was_changed_is_not_shown(
    cluster: Processes, change: Callable[[bytes], bytes]
) -> None:
    first, second = both(cluster)
    with first, second:
        made = first.run("select i, repeat('x', 100) from generate_series(1, 20000) i")
        (file,) = (path for path in (cluster.folder / "shared/results").glob("*/*") if path.is_file())
        content = file.read_bytes()
        file.write_bytes(change(content))
        place = f"/v2/statements/{made['statementID']}"
        parquet = {"Accept": "application/vnd.apache.parquet"}
        for found in (second.http.get(place, params={"partitionID": 1}), second.http.get(place, headers=parquet)):
            assert found.status_code == 500
            assert "the result's file in the shared storage was changed" in found.json()["message"]
        file.write_bytes(content)
        assert second.http.get(place, params={"partitionID": 1}).status_code == 200


@pytest.fixture
def slow_cluster(tmp_path: Path, postgresql_server: str) -> Iterator[tuple[Processes, SlowDatabase]]:
    """A process whose database of the records can be made slow."""
    with (
        tempfile.TemporaryDirectory(prefix="pg", dir="/tmp") as folder,
        database(postgresql_server) as engine_url,
        database(postgresql_server) as state_url,
        SlowDatabase(Path(folder), postgresql_server).running() as slow,
        processes(tmp_path, on_postgresql(engine_url), state_url.replace(postgresql_server, folder), 1) as made,
    ):
        yield made, slow


def test_health_is_told_while_the_database_of_the_records_does_not_respond(
    slow_cluster: tuple[Processes, SlowDatabase],
) -> None:
    cluster, slow = slow_cluster
    with Client(cluster.served[0]) as client:
        client.rows("select 1")
        slow.stop()
        refused = client.http.post("/v2/statements", json={"statement": "select 1"})
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
        assert [client.http.get("/v2/version", timeout=5).status_code for _ in range(20)] == [200] * 20
        slow.go_on()
        until(lambda: client.http.post("/v2/statements", json={"statement": "select 1"}).status_code != 503)
        assert client.rows("select 1") == [["1"]]


def test_a_database_that_does_not_respond_and_responds_again_is_logged(
    slow_cluster: tuple[Processes, SlowDatabase],
) -> None:
    cluster, slow = slow_cluster
    log = cluster.logs[cluster.served[0].url]
    place = f"the database of --state-url at {slow.folder}/.s.PGSQL.5432"
    slow.stop()
    until(lambda: f"Z warning: sqlshell.service: {place} does not respond: the database did not" in log.read_text())
    slow.go_on()
    until(lambda: f"{place} responds again" in log.read_text())


def test_what_needs_no_record_does_not_wait_for_a_slow_database(slow_cluster: tuple[Processes, SlowDatabase]) -> None:
    cluster, slow = slow_cluster
    with Client(cluster.served[0]) as client, Client(cluster.served[0]) as other, ThreadPoolExecutor(1) as pool:
        client.rows("select 1")
        slow.seconds = 1.0
        ran = pool.submit(client.rows, "select 2")
        answered = 0
        while not ran.done():
            answered += other.http.get("/v2/version").status_code == 200
        # The statement waits for the database several times. Once would hold up all that came before this.
        assert answered > 20
        assert ran.result() == [["2"]]


def test_a_statement_that_ends_while_the_database_does_not_respond_is_recorded_later(
    slow_cluster: tuple[Processes, SlowDatabase],
) -> None:
    import psycopg

    cluster, slow = slow_cluster
    with Client(cluster.served[0]) as client, psycopg.connect(cluster.engine[-1], autocommit=True) as engine:
        client.rows_of_nothing("create table t (i int)")
        made = client.submit("insert into t select 1 from pg_sleep(1)")
        slow.stop()
        until(lambda: engine.execute("select i from t").fetchall() == [(1,)])
        assert client.http.get(f"/v2/statements/{made['statementID']}").json()["sqlState"] == "03000"
        slow.go_on()
        assert client.wait(made)["sqlState"] == "00000"
        assert client.rows("select i from t") == [["1"]]


@pytest.mark.parametrize("shift", [-3600.0, 3600.0])
def test_the_clock_of_a_process_decides_no_lease(
    postgresql_database: str, monkeypatch: pytest.MonkeyPatch, shift: float
) -> None:
    from sqlshell.service.cluster.cluster import Cluster
    from sqlshell.service.storage.postgresql import PostgresqlStorage

    with contextlib.closing(PostgresqlStorage(postgresql_database)) as storage:
        here = Cluster(storage, "http://here")
        assert here.place_of_session("token", "session") is None
        now = time.time
        monkeypatch.setattr(time, "time", lambda: now() + shift)
        there = Cluster(storage, "http://there")
        assert there.renew()
        # The lease of each is alive for the other, whose clock is an hour off.
        found = there.place_of_session("token", "session")
        assert found is not None
        assert found.process == here.id
        monkeypatch.undo()
        assert here.peer(there.id) is not None
        assert there.peer(here.id) is not None
        there.tidy()
        assert there.sessions_elsewhere() == [("token", "session")]


def test_a_result_that_was_stored_but_not_recorded_is_removed(
    slow_cluster: tuple[Processes, SlowDatabase],
) -> None:
    cluster, slow = slow_cluster
    first, second = cluster.served[0], cluster.start()
    with Client(first) as client, Client(second) as other:
        other.rows("select 1")
        made = client.submit("select i, repeat('x', 100) from pg_sleep(2), generate_series(1, 20000) i")
        slow.stop()

        def stored() -> list[Path]:
            return [*(cluster.folder / "shared/results").glob(f"*/{made['statementID']}")]

        until(stored)
        cluster.kill(first)
        slow.go_on()
        until(lambda: other.http.get(f"/v2/statements/{made['statementID']}").json().get("sqlState") == "XX000")
        until(lambda: not stored())


def test_a_storage_that_hangs_fails_its_readers(cluster: Processes) -> None:
    first, second = both(cluster)
    with first, second:
        made = first.run("select i, repeat('x', 100) from generate_series(1, 20000) i")
        (file,) = (path for path in (cluster.folder / "shared/results").glob("*/*") if path.is_file())
        content = file.read_bytes()
        file.unlink()
        os.mkfifo(file)
        place = f"/v2/statements/{made['statementID']}?partitionID=1"
        for _ in range(3):
            found = second.http.get(place, timeout=60)
            assert (found.status_code, found.headers["retry-after"]) == (503, "2")
            assert "the storage of --results-url does not respond" in found.json()["message"]
        # What cannot be stored fails, and what needs no storage goes on.
        with Client(cluster.served[1]) as other:
            failed = other.run("select i, repeat('x', 100) from generate_series(1, 20000) i")
            assert (failed["sqlState"], "does not respond" in failed["message"]) == ("53000", True)
            assert other.rows("select 1") == [["1"]]
        file.open("wb").close()
        file.unlink()
        file.write_bytes(content)
        until(lambda: second.http.get(place).status_code == 200)
