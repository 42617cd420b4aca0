"""Organizations, databases, pools, resources and applications, made and dropped by SQL."""

from __future__ import annotations

import hashlib
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Served, serve, stop
from tests.service.client import Client
from tests.service.tested_engines import OnEngine
from tests.service.waiting import until


@pytest.fixture(scope="module")
def own(engine: OnEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service that these tests change."""
    with engine.serve(tmp_path_factory.mktemp("objects")) as running:
        yield running


@pytest.fixture
def client(own: Served) -> Iterator[Client]:
    with Client(own) as made:
        yield made


@pytest.mark.slow("starts a service")
@pytest.mark.needs("databases")
def test_organizations_share_nothing(own: Served, client: Client) -> None:
    assert client.state("create organization apart") == "00000"
    assert client.state("create organization apart") == "42710"
    assert client.state("create organization if not exists apart") == "00000"
    client.rows("create table only_here as select 1 as a")
    named = {str(row[0]): str(row[1]) for row in client.rows("list organizations")}
    answer = client.run("use organization apart")
    assert answer["metadata"]["context"]["organizationID"] == named["apart"]
    assert client.rows("list relations") == []
    assert client.state("select * from local.main.only_here") == "3D020"
    token = str(client.rows("create api_token t with ('role' = 'owner')")[0][1])
    statement = client.run("select 1")["statementID"]
    with Client(own, token) as bound:
        assert bound.rows("list organizations") == [["apart", named["apart"]]]
        assert bound.state("use organization local") == "3D004"
        assert bound.state("select 1", organization=named["local"]) == "3D004"
        assert bound.state("create organization more") == "42501"
        assert bound.http.get(f"/v2/statements/{statement}").status_code == 200
        with Client(own) as other:
            outside = other.run("select 1")["statementID"]
        assert bound.http.get(f"/v2/statements/{outside}").status_code == 404
        assert bound.state(f"describe query '{outside}'") == "3D019"
    assert client.state("drop organization apart") == "2BP01"
    assert client.state("use organization local") == "00000"
    assert client.state("drop organization apart") in {"00000", "2BP01"}
    assert client.state("use organization nowhere") == "3D004"
    assert client.state(f'use organization "{uuid.uuid4()}"') == "3D004"


@pytest.mark.needs("databases")
def test_databases_and_schemas(own: Served, client: Client) -> None:
    assert client.state("create database sales") == "00000"
    assert client.state("create database sales") == "42P04"
    assert client.state("create database if not exists sales") == "00000"
    assert "sales" in client.names("list databases")
    assert client.state("use database sales") == "00000"
    client.rows("create schema raw")
    assert client.state("use schema raw") == "00000"
    client.rows("create table t (i int)")
    echo = client.run("select 1")["metadata"]["context"]
    assert (echo["databaseName"], echo["schemaName"]) == ("sales", "raw")
    listed = client.listed("list relations in database sales")
    assert [(row["Name"], row["Type"], row["Database"], row["Schema"]) for row in listed] == [
        ("t", "table", "sales", "raw")
    ]
    assert client.rows(
        "select database_name, schema_name, type from deltastream.sys.\"relations\" where name = 't'"
    ) == [["sales", "raw", "table"]]
    with Client(own) as other:
        assert other.state("drop database sales") == "2BP01"
        assert other.rows("select count(*) from sales.raw.t") == [["0"]]
    assert client.state("drop database sales") == "2BP01"
    assert client.state("use database local") == "00000"
    assert client.state("drop database sales") == "00000"
    assert client.state("drop database sales") == "3D002"
    assert client.state("drop database if exists sales") == "00000"
    for used in ("use database sales2", "use database local"):
        client.rows("create database if not exists sales2")
        client.rows(used)
        answer = client.run("drop database local")
        assert (answer["sqlState"], answer["message"]) == (
            "2BP01",
            'cannot drop database "local": it is the default database',
        )
    assert client.state('create database "Odd ""name"" é"') == "00000"
    assert 'Odd "name" é' in client.names("list databases")
    assert client.state('drop database "Odd ""name"" é"') == "00000"
    assert client.state("create database deltastream") == "42P04"


@pytest.mark.needs("cancel")
def test_a_pool_admits(own: Served, client: Client, engine: OnEngine) -> None:
    made = "create compute_pool small with ('concurrency' = 1, 'queue' = 1, 'timeout' = '1h')"
    assert client.state(made) == "00000"
    assert client.state(made) == "42P019"
    names = [Client(own) for _ in range(3)]
    try:
        running = names[0].submit(engine.sql.endless, computePool="small")
        waiting = names[1].submit("select 2", computePool="small")
        place = f"/v2/statements/{waiting['statementID']}"
        until(lambda: "position 1" in str(client.http.get(place).json().get("message")))
        assert names[2].state("select 3", computePool="small") == "53000"
        assert client.http.get(place).status_code == 202
        assert client.state(f"terminate query '{running['statementID']}'") == "00000"
        assert names[0].wait(running)["sqlState"] == "57000"
        assert names[1].wait(waiting)["data"] == [["2"]]
    finally:
        for item in names:
            item.http.close()
    assert client.state("stop compute_pool small") == "00000"
    assert client.state("use compute_pool small") == "00000"
    assert client.state("select 1") == "3E004"
    small = client.described("describe compute_pool small")
    told = ("Name", "ActualState", "Concurrency", "Queue", "StatementTimeout")
    assert [small[name] for name in told] == ["small", "stopped", "1", "1", "3600s"]
    default = next(row for row in client.listed("list compute_pools") if row["Name"] == "default")
    assert [default[name] for name in told] == ["default", "running", "16", "1000", "none"]
    assert client.state("start compute_pool small") == "00000"
    assert client.state("select 1") == "00000"
    assert client.state("drop compute_pool small") == "00000"
    assert client.state("use compute_pool small") == "3D023"
    for options in ("'concurrency' = 0", "'timeout' = 'soon'", "'size' = 3", "'queue' = -1"):
        assert client.state(f"create compute_pool bad with ({options})") == "22023", options


def test_the_default_pool_is_always_there(client: Client) -> None:
    client.rows("create compute_pool another")
    names = [("another", "running"), ("default", "running")]
    listed = [(row["Name"], row["ActualState"]) for row in client.listed("list compute_pools")]
    assert [row for row in listed if row[0] in {"another", "default"}] == names
    client.rows("drop compute_pool another")
    for sql in ("drop compute_pool default", "stop compute_pool default", "drop compute_pool if exists default"):
        answer = client.run(sql)
        if sql.startswith("drop"):
            assert (answer["sqlState"], answer["message"]) == (
                "2BP01",
                'cannot drop compute pool "default": it is predefined',
            )
    client.rows("start compute_pool default")


def test_a_source_that_exists_needs_no_file(client: Client) -> None:
    client.rows("create function_source if not exists there with ('file' = 'f.jar')", files=[("f.jar", b"x")])
    assert client.state("create function_source if not exists there with ('file' = 'f.jar')") == "00000"
    client.rows("drop function_source there")


@pytest.mark.needs("store_entities")
def test_a_store_that_exists_needs_no_directory(client: Client) -> None:
    client.rows("create store if not exists there with ('type' = 'files', 'uri' = '/usr')")
    assert client.state("create store if not exists there with ('type' = 'files', 'uri' = '/nowhere')") == "00000"
    client.rows("drop store there")


def test_a_backslash_command_is_a_statement_that_fails(client: Client) -> None:
    for sql, name in (("\\! echo x", "!"), ("select 1; \\q", "q"), ("\\d", "d"), (".tables", "tables")):
        answer = client.run(sql)
        assert answer["sqlState"] == "42601"
        assert f"{name}' is a backslash command of sqlshell" in answer["message"].replace('"', "'"), answer["message"]


@pytest.mark.parametrize(
    "sql",
    [
        "select st_point(1, 2)",
        "from sqlite_scan('a', 'b')",
        "select list_transform([1], x -> x + 1)",
        f"select {'1+' * 1200}1",
    ],
)
def test_no_advice_that_nobody_can_follow(served: Served, sql: str) -> None:
    with Client(served) as client:
        answer = client.run(sql)
    assert answer["sqlState"] != "00000"
    assert not {"INSTALL", "LOAD", "SET"} & set(answer["message"].replace('"', " ").split())


@pytest.mark.needs("cancel")
def test_a_pools_timeout_ends_a_statement(client: Client, engine: OnEngine) -> None:
    client.rows("create compute_pool brief with ('timeout' = '300ms')")
    answer = client.run(engine.sql.endless, computePool="brief")
    assert answer["sqlState"] == "57014"
    assert client.state("select 1") == "00000"


@pytest.mark.needs("cancel")
def test_ending_what_runs_and_what_waits(own: Served, client: Client, engine: OnEngine) -> None:
    running = client.submit(engine.sql.endless)
    waiting = client.submit("select 1")
    with Client(own) as other:
        assert other.run(f"terminate query '{waiting['statementID']}'")["message"].endswith("57000 (canceled)")
        assert client.wait(waiting)["sqlState"] == "57000"
        rows = {row["ID"]: row["ActualState"] for row in other.listed("list queries")}
        assert rows[running["statementID"]] == "running"
        assert rows[waiting["statementID"]] == "terminated"
        assert other.rows(f"describe query state '{running['statementID']}'")[0][1:] == ["running", "03000"]
        message = other.run(f"TERMINATE QUERY {running['statementID']};")
        assert message["message"] == f"query {running['statementID']} has state 57000 (canceled)"
        history = other.rows(f"describe query history '{running['statementID']}'")
        assert [row[0] for row in history] == ["submitted", "terminated"]
    assert client.wait(running)["sqlState"] == "57000"
    assert client.rows("select 3") == [["3"]]
    assert client.state("terminate query 'nothing'") == "3D019"


def test_resources_come_back_as_they_were(own: Served, client: Client) -> None:
    content = bytes(range(256)) * 5000
    files = [("../../etc/f.jar", content), ("C:\\x\\g.proto", b"")]
    assert client.state("create function_source f with ('file' = 'f.jar')", files) == "00000"
    assert client.state("create descriptor_source d with ('file' = '@/home/me/g.proto')", files) == "00000"
    assert client.state("create function_source f with ('file' = 'f.jar')", files) == "42P016"
    missing = client.run("create function_source g with ('file' = 'other.jar')", files)
    assert "'other.jar'" in missing["message"]
    assert "f.jar" in missing["message"]
    assert client.state("create function_source g", files) == "42601"
    organization = str(client.rows("list organizations")[0][1])
    base = f"/v2/download/function_source/{organization}/f"
    whole = client.http.get(base)
    assert (whole.status_code, whole.content) == (200, content)
    assert whole.headers["content-length"] == str(len(content))
    assert whole.headers["etag"] == f'"{hashlib.sha256(content).hexdigest()}"'
    assert client.http.get(f"/v2/download/descriptor_source/{organization}/d").content == b""
    for asked, expected in (
        ("bytes=0-0", content[:1]),
        ("bytes=1000-1999", content[1000:2000]),
        ("bytes=1279990-", content[1279990:]),
        ("bytes=-5", content[-5:]),
        ("bytes=5-99999999", content[5:]),
    ):
        part = client.http.get(base, headers={"Range": asked})
        assert (part.status_code, part.content) == (206, expected), asked
        assert part.headers["content-range"].endswith(f"/{len(content)}")
    assert client.http.get(base, headers={"Range": "bytes=1280000-"}).status_code == 416
    assert client.http.get(base, headers={"Range": "bytes=9-3"}).status_code == 200
    assert client.http.get(base, headers={"Range": "bytes=0-1", "If-Range": '"old"'}).status_code == 200
    assert client.http.get(base, headers={"If-None-Match": whole.headers["etag"]}).status_code == 304
    for path in (f"/v2/download/function_source/{organization}/none", f"/v2/download/function_source/{uuid.uuid4()}/f"):
        assert client.http.get(path).status_code == 404
    assert client.http.get(f"/v2/download/table/{organization}/f").status_code == 400
    assert client.http.get("/v2/download/function_source/x/f").status_code == 400
    listed = client.listed("list function_sources")[0]
    assert [listed[name] for name in ("Name", "File", "Size", "Language")] == ["f", "f.jar", "1280000", "JAVA"]
    assert client.state("drop function_source f") == "00000"
    assert client.http.get(base).status_code == 404
    assert client.state("drop function_source f") == "3D018"


@pytest.mark.needs("applications")
def test_applications_are_one_unit(client: Client, engine: OnEngine) -> None:
    client.rows("create table kept (i int)")
    good = "BEGIN APPLICATION good insert into kept values (1); create table made (i int); END APPLICATION;"
    assert client.state(good) == "00000"
    assert client.rows("select count(*) from made") == [["0"]]
    bad = "begin application bad insert into kept values (2); create table gone (i int); "
    bad += "insert into none values (1); end application"
    assert client.state("begin application x end end end application") in {"42601", "0A000"}
    assert client.state(bad) == engine.sql.no_relation
    assert client.rows("select i from kept") == [["1"]]
    assert client.state("select * from gone") == engine.sql.no_relation
    for inside in ("create database third", f"use database {client.home()}", "list relations", "begin"):
        answer = client.run(f"begin application x insert into kept values (3); {inside}; end application")
        # A statement that is the engine's own, as PostgreSQL's CREATE DATABASE is, is refused by the engine.
        assert answer["sqlState"] in {"0A000", "25001"}, inside
    assert client.rows("select i from kept") == [["1"]]


@pytest.mark.needs("applications", "databases")
def test_an_application_stays_in_its_database(client: Client) -> None:
    client.rows("create table stays (i int)")
    client.rows("create database second")
    client.rows("create table second.main.held (i int)")
    for inside in (
        "use database second",
        "use second",
        "create table second.main.x (i int)",
        'insert into "second".main.held values (1)',
    ):
        answer = client.run(f"begin application x insert into stays values (3); {inside}; end application")
        assert answer["sqlState"] == "0A000", inside
    assert client.rows("select i from stays") == []


@pytest.mark.needs("transactions")
def test_nothing_can_be_rolled_back_outside_a_transaction(client: Client) -> None:
    assert client.state("rollback") in {"25P01", "01N01"}


def test_a_request_beats_the_session_and_the_echo_tells(client: Client) -> None:
    client.rows("create schema if not exists one")
    client.rows("create schema if not exists two")
    assert client.state("use schema one") == "00000"
    answer = client.run("select current_schema()", schema="two")
    assert (answer["data"], answer["metadata"]["context"]["schemaName"]) == ([["two"]], "two")
    assert client.state("select 1", schema="three") == "3D003"
    assert client.state("select 1", database="three") == "3D002"
    assert client.state("select 1", store="three") == "3D006"
    assert client.state("select 1", role="three") == "3D001"


def test_an_owner_makes_tokens_of_every_role(own: Served, client: Client) -> None:
    token = client.rows("create api_token chief with ('role' = 'owner')")[0][1] or ""
    with Client(own, token) as owner:
        made = {
            "reader": owner.rows("create api_token unnamed")[0][1] or "",
            "writer": owner.rows("create api_token loading with ('role' = 'writer')")[0][1] or "",
        }
        assert owner.rows("create api_token looking with ('roles' = 'writer, reader')")
        listed = {(row[0], row[1]) for row in owner.rows("list api_tokens")}
        assert {("unnamed", "reader"), ("loading", "writer"), ("looking", "writer,reader")} <= listed
        for role, text in made.items():
            with Client(own, text) as less:
                assert less.run("list stores")["metadata"]["context"]["roleName"] == role
                assert less.state("create api_token more with ('role' = 'reader')") == "42501"
                assert less.state("list stores", role="owner") == "42501"
        for name in ("unnamed", "loading", "looking"):
            owner.rows(f"drop api_token {name}")
    client.rows("drop api_token chief")


@pytest.mark.needs("databases")
def test_sysadmin_is_another_name_of_the_owner(own: Served, client: Client) -> None:
    """Clients send it unless told otherwise, and expect it as the owner of what they have made."""
    made = {
        role: client.rows(f"create api_token as_{role} with ('role' = '{role}')")[0][1] or ""
        for role in ("owner", "sysadmin", "writer")
    }
    with Client(own, made["owner"]) as owner:
        answer = owner.run("create database of_sysadmin", role="sysadmin")
        assert (answer["sqlState"], answer["metadata"]["context"]["roleName"]) == ("00000", "sysadmin")
        looked = 'select "owner" from deltastream.sys."databases" where name = \'of_sysadmin\''
        assert owner.rows(looked, role="sysadmin") == [["sysadmin"]]
        assert owner.rows(looked, role="owner") == [["owner"]]
        listed = "list databases where name = 'of_sysadmin'"
        assert [owner.listed(listed, role=role)[0]["Owner"] for role in ("sysadmin", "owner")] == ["sysadmin", "owner"]
        assert ("sysadmin", "true") in {(row[0], row[2]) for row in owner.rows("list roles")}
        query = owner.run("select 1", role="sysadmin")["statementID"]
        queries = f'select "owner" from deltastream.sys."queries" where id = \'{query}\''
        assert owner.rows(queries, role="owner") == [["sysadmin"]]
        owner.rows("drop database of_sysadmin")
    with Client(own, made["sysadmin"]) as owner:
        assert owner.state("select 1", role="owner") == "00000"
    with Client(own, made["writer"]) as writer:
        assert writer.state("select 1", role="sysadmin") == "42501"
        assert ("sysadmin", "false") in {(row[0], row[2]) for row in writer.rows("list roles")}
        query = writer.run("select 1")["statementID"]
    assert client.rows(f'select "owner" from deltastream.sys."queries" where id = \'{query}\'') == [["writer"]]
    for role in made:
        client.rows(f"drop api_token as_{role}")


@pytest.mark.slow("many clients")
def test_many_clients_at_once(own: Served) -> None:
    wrong: list[object] = []

    def work(number: int) -> None:
        with Client(own) as client:
            for turn in range(5):
                rows = client.rows(f"select {number}, {turn}")
                if rows != [[str(number), str(turn)]]:
                    wrong.append(rows)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_folder_is_private(tmp_path: Path) -> None:
    running = serve(tmp_path, "--data", str(tmp_path / "data"))
    with Client(running) as client:
        client.rows("create table t as select range as i from range(100000)")
        client.run("select * from t")
        client.state("create function_source f with ('file' = 'f.jar')", [("f.jar", b"x")])
        found = list((tmp_path / "data").rglob("*"))
    modes = {path: oct(path.stat().st_mode & 0o777) for path in found}
    assert stop(running) == 0
    wrong = {str(path): mode for path, mode in modes.items() if mode != ("0o700" if path.is_dir() else "0o600")}
    assert found
    assert wrong == {}
