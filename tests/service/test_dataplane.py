"""Results through the data plane, and unbounded SELECTs over its websocket, with an independent client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
import websockets.sync.client
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.conftest import Program, Served, serve, stop
from tests.service.client import Answer, Client


@pytest.fixture(scope="module")
def streaming(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    running = serve(tmp_path_factory.mktemp("streaming"))
    yield running
    stop(running)


@pytest.fixture
def client(streaming: Served) -> Iterator[Client]:
    with Client(streaming) as made:
        yield made


async def reader(answer: Answer, session: str = "", token: str = "") -> ClientConnection:
    asked = answer["metadata"]["dataplaneRequest"]
    socket = await connect(asked["uri"], proxy=None)
    await socket.send(json.dumps({"type": "auth", "accessToken": token or asked["token"], "sessionId": session}))
    return socket


async def frames(socket: ClientConnection, count: int) -> list[Any]:
    async with asyncio.timeout(20):
        return [json.loads(await socket.recv()) for _ in range(count)]


async def rows_of(socket: ClientConnection, count: int) -> list[list[str | None]]:
    return [frame["data"] for frame in await frames(socket, count)]


@pytest.mark.slow("starts a service, runs the program")
def test_large_results_by_the_data_plane(tmp_path_factory: pytest.TempPathFactory, program: Program) -> None:
    running = serve(
        tmp_path_factory.mktemp("plane"), "--data-plane", "large", "--partition-rows", "1000", "--stream-scheme", "http"
    )
    try:
        with Client(running) as client:
            small = client.run("select 1")
            assert "dataplaneRequest" not in small["metadata"]
            answer = client.run("select range as i, repeat('x', 1000) from range(3000)")
            asked = answer["metadata"]["dataplaneRequest"]
            assert "data" not in answer
            assert asked["requestType"] == "result-set"
            assert asked["uri"] == f"{running.url}/v2/statements/{answer['statementID']}"
            assert [part["rowCount"] for part in answer["metadata"]["partitionInfo"]] == [1000] * 3
            plane = {"Authorization": f"Bearer {asked['token']}"}
            page = client.http.get(asked["uri"], params={"partitionID": 2}, headers=plane)
            assert page.json()["data"][0][0] == "2000"
            assert "dataplaneRequest" not in page.json()["metadata"]
            other = client.run("select range as i, repeat('x', 1000) from range(3000)")
            assert client.http.get(other["metadata"]["dataplaneRequest"]["uri"], headers=plane).status_code == 401
            until, _, mac = asked["token"].partition(".")
            for wrong in (f"{int(until) + 1}.{mac}", f"1.{mac}", mac, "x"):
                headers = {"Authorization": f"Bearer {wrong}"}
                assert client.http.get(asked["uri"], headers=headers).status_code == 401
            # The same address answers its API token with a new data plane's token, and this one opens nothing else.
            assert "dataplaneRequest" in client.http.get(asked["uri"]).json()["metadata"]
            for method, path in (
                ("POST", asked["uri"]),
                ("DELETE", asked["uri"]),
                ("GET", f"{asked['uri']}/x"),
                ("GET", "/v2/version"),
                ("POST", "/v2/statements"),
                ("GET", f"/v2/streams/{answer['statementID']}"),
            ):
                assert client.http.request(method, path, headers=plane).status_code == 401, path
            client.rows_of_nothing("create stream s (i int)")
            stream = client.run("select i from s")["metadata"]["dataplaneRequest"]
            assert stream["uri"] == f"{running.url}/v2/streams/{stream['statementID']}"
            with websockets.sync.client.connect(stream["uri"].replace("http", "ws", 1), proxy=None) as socket:
                socket.send(json.dumps({"type": "auth", "accessToken": stream["token"]}))
                assert json.loads(socket.recv(10))["columns"][0]["name"] == "i"
            # Our own client reads both.
            client.rows_of_nothing("insert into s values (7), (8)")
            sql = "select range as i, repeat('x', 1000) as x from range(3000); print entity s from beginning"
            argv = ("--format", "csv", "--max-rows", "2", "-c", sql)
            done = program(running.url, *argv, env={"SQLSHELL_TOKEN": running.token})
            assert done.code == 0, done.err
            assert done.out.splitlines()[3000] == "2999," + "x" * 1000
            assert done.out.split()[-3:] == ["i", "7", "8"]
    finally:
        stop(running)


@pytest.mark.slow("starts a service")
def test_rows_reach_every_reader_in_order_and_once(client: Client) -> None:
    client.rows("create stream orders (id int, what varchar, price decimal(8,2))")
    every = client.run("select * from orders")
    some = client.run("select id * 2 as twice, upper(what) as what from orders o where o.id % 2 = 0")
    asked = every["metadata"]["dataplaneRequest"]
    assert every["sqlState"] == "00000"
    assert every["metadata"]["columns"] == []
    assert asked["requestType"] == "streaming"
    assert asked["queryID"] == every["statementID"]

    async def check() -> None:
        sockets = [await reader(every), await reader(every), await reader(some)]
        heads = [(await frames(socket, 1))[0] for socket in sockets]
        assert heads[0]["type"] == "metadata"
        assert [column["name"] for column in heads[2]["columns"]] == ["twice", "what"]
        assert heads[0]["columns"][2] == {
            "name": "price", "type": "DECIMAL(8,2)", "nullable": True, "length": None, "precision": 8, "scale": 2
        }  # fmt: skip
        for number in range(50):
            sql = f"insert into orders values ({2 * number}, 'a', 1.5), ({2 * number + 1}, null, null)"
            assert (await asyncio.to_thread(client.state, sql)) == "00000"
        rows = await rows_of(sockets[0], 100)
        assert rows == await rows_of(sockets[1], 100)
        assert [row[0] for row in rows] == [str(number) for number in range(100)]
        assert rows[1] == ["1", None, None]
        assert await rows_of(sockets[2], 50) == [[str(4 * number), "A"] for number in range(50)]
        for socket in sockets:
            await socket.close()

    asyncio.run(check())


def test_what_is_not_committed_does_not_come(streaming: Served, client: Client) -> None:
    client.rows("create stream sure (i int)")
    query = client.run("select * from sure")

    async def check() -> None:
        socket = await reader(query)
        await frames(socket, 1)
        with Client(streaming) as writer:
            for sql in (
                "begin",
                "insert into sure values (1)",
                "rollback",
                "begin",
                "insert into sure values (2)",
                "commit",
            ):
                assert (await asyncio.to_thread(writer.state, sql)) == "00000"
            assert (await asyncio.to_thread(writer.state, "insert into sure values (3)")) == "00000"
        assert await rows_of(socket, 2) == [["2"], ["3"]]
        await socket.close()

    asyncio.run(check())


def test_print_entity_from_the_beginning_and_again(client: Client) -> None:
    client.rows("create stream old (i int)")
    client.rows("insert into old select range from range(5000)")
    query = client.run("print entity old from beginning")
    late = client.run("print entity old")

    async def check() -> None:
        socket = await reader(query, session="mine")
        await frames(socket, 1)
        assert [row[0] for row in await rows_of(socket, 5000)] == [str(number) for number in range(5000)]
        await socket.close()
        await asyncio.to_thread(client.rows, "insert into old values (5000)")
        again, new = await reader(query, session="mine"), await reader(late)
        assert (await frames(again, 2))[1]["data"] == ["5000"]
        assert (await frames(new, 2))[1]["data"] == ["5000"]
        await again.close()
        await new.close()

    asyncio.run(check())


def test_terminating_ends_it_for_all(client: Client) -> None:
    client.rows("create stream ended (i int)")
    query = client.run("select * from ended")

    async def check() -> None:
        sockets = [await reader(query) for _ in range(3)]
        for socket in sockets:
            await frames(socket, 1)
        message = await asyncio.to_thread(client.run, f"terminate query '{query['statementID']}'")
        assert "57000" in message["message"]
        for socket in sockets:
            frame = (await frames(socket, 1))[0]
            assert (frame["type"], frame["sqlCode"]) == ("error", "57000")
            with pytest.raises(ConnectionClosed):
                await socket.recv()
            assert socket.close_code == 1000
        late = await reader(query)
        assert (await frames(late, 1))[0]["sqlCode"] == "57000"
        await late.close()

    asyncio.run(check())
    assert client.http.get(f"/v2/statements/{query['statementID']}").json()["sqlState"] == "57000"


def test_dropping_the_stream_ends_it(client: Client) -> None:
    client.rows("create stream gone (i int)")
    query = client.run("select * from gone")

    async def check() -> None:
        socket = await reader(query)
        await frames(socket, 1)
        assert (await asyncio.to_thread(client.state, "drop stream gone")) == "00000"
        assert (await frames(socket, 1))[0]["type"] == "error"
        await socket.close()

    asyncio.run(check())
    assert client.state("select * from gone") == "3D020"


@pytest.mark.slow("a slow reader")
def test_a_slow_reader_harms_nobody(client: Client) -> None:
    client.rows("create stream wide (i int, t varchar)")
    query = client.run("select * from wide")

    async def check() -> None:
        slow, quick = await reader(query), await reader(query)
        await frames(quick, 1)
        total = 20_000
        await asyncio.to_thread(client.rows, f"insert into wide select range, repeat('x', 500) from range({total})")
        rows = await rows_of(quick, total)
        assert [row[0] for row in rows] == [str(number) for number in range(total)]
        taken = (await frames(slow, 1 + total))[1:]
        assert [frame["data"][0] for frame in taken] == [str(number) for number in range(total)]
        await slow.close()
        await quick.close()

    asyncio.run(check())


@pytest.mark.parametrize(
    "sql",
    [
        "select count(*) from refused",
        "select i, sum(i) from refused group by i",
        "select distinct i from refused",
        "select * from refused order by i",
        "select * from refused limit 3",
        "select * from refused a join refused b using (i)",
        "select * from refused, range(3)",
        "select row_number() over () from refused",
        "select * from refused where i in (select 1)",
        "select * from (select * from refused)",
        "with x as (select * from refused) select * from x",
        "select * from refused union all select 1",
        "create stream more as select * from refused",
        "create table more as select * from refused",
        "create view more as select * from refused",
        "insert into plain select * from refused",
        "update refused set i = 1",
        "delete from refused",
        "truncate refused",
        "alter table refused add column j int",
    ],
)
def test_what_needs_state_is_refused(client: Client, sql: str) -> None:
    if client.state("select i from plain") != "00000":
        client.rows("create table plain (i int)")
        client.rows("create stream if not exists refused (i int)")
    answer = client.run(sql)
    assert answer["sqlState"] == "0A000", answer
    assert "stream" in answer["message"].lower()


def test_who_may_read(client: Client) -> None:
    client.rows("create stream mine (i int)")
    query, other = client.run("select * from mine"), client.run("select i from mine")

    async def check() -> None:
        uri = query["metadata"]["dataplaneRequest"]["uri"]
        for first in ("", "[]", "{}", '{"type":"auth"}', '{"type":"auth","accessToken":7}', "\x00"):
            socket = await connect(uri, proxy=None)
            await socket.send(first)
            with pytest.raises(ConnectionClosed):
                await socket.recv()
            assert socket.close_code == 4401
            assert "the first frame must be" in str(socket.close_reason)
        wrong = await reader(query, token=other["metadata"]["dataplaneRequest"]["token"])
        with pytest.raises(ConnectionClosed):
            await wrong.recv()
        assert wrong.close_reason == "the token is not valid for this statement"
        headers = {"Authorization": "Bearer wrong"}
        for message, asked, more in (
            ((403, ["message"]), uri, {"origin": "http://evil.example"}),
            ((421, ["message"]), uri, {"additional_headers": {"Host": "evil.example"}}),
            ((401, ["message"]), uri.replace("/v2/streams", "/v2/other"), {"additional_headers": headers}),
        ):
            with pytest.raises(InvalidStatus) as refused:
                await connect(asked, proxy=None, **more)
            found = refused.value.response
            assert (found.status_code, list(json.loads(found.body or b"{}"))) == message

    asyncio.run(check())


def test_each_row_comes_when_it_is_inserted(client: Client) -> None:
    client.rows("create stream soon (i int)")
    query = client.run("select * from soon")

    async def check() -> None:
        socket = await reader(query)
        await frames(socket, 1)
        for number in range(20):
            await asyncio.to_thread(client.rows, f"insert into soon values ({number})")
            assert await rows_of(socket, 1) == [[str(number)]]
        await socket.close()

    asyncio.run(check())
