"""Every reader of a stream gets every committed row once, in order: compared with a model."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from websockets.sync.client import ClientConnection, connect

from sqlshell.service.engines.engine import Relation, StreamQuery
from sqlshell.service.failure import Failure
from sqlshell.service.organizations.streams import Streams
from tests.conftest import Served, serve, stop
from tests.service.client import Answer, Client


class House:
    """A service that keeps its data, and can be started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.made = 0
        self.served = self._start()

    def restart(self, *, killed: bool) -> None:
        self.end(killed=killed)
        self.served = self._start()

    def end(self, *, killed: bool = False) -> None:
        if killed:
            self.served.process.kill()
            self.served.process.wait()
            assert self.served.process.stdout is not None
            self.served.process.stdout.close()
        else:
            stop(self.served)

    def _start(self) -> Served:
        return serve(self._folder, "--data", str(self._folder / "data"), "--grace", "0")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    made = House(tmp_path_factory.mktemp("streams"))
    yield made
    made.end()


class Reader:
    """A query over the stream, and what the model says that comes next; `session` lets it connect again."""

    def __init__(self, answer: Answer, expected: list[int], session: str) -> None:
        self.query_id = answer["statementID"]
        self._asked = answer["metadata"]["dataplaneRequest"]
        self._session = session
        self.expected = list(expected)
        self._open = contextlib.ExitStack()
        self._socket = self._opened()

    def _opened(self) -> ClientConnection:
        socket = self._open.enter_context(connect(self._asked["uri"], proxy=None, max_size=None))
        socket.send(json.dumps({"type": "auth", "accessToken": self._asked["token"], "sessionId": self._session}))
        assert json.loads(socket.recv(20))["type"] == "metadata"
        return socket

    def check(self) -> None:
        """Take what must come."""
        for value in self.expected:
            frame = json.loads(self._socket.recv(20))
            assert frame["type"] == "data", frame
            assert frame["data"] == [str(value)]
        self.expected = []

    def again(self) -> None:
        self.check()
        self.close()
        self._socket = self._opened()

    def ended(self) -> None:
        """The stream was dropped, and the reader is told."""
        assert json.loads(self._socket.recv(20))["type"] == "error"
        self.close()

    def close(self) -> None:
        self._open.close()


STEPS = st.one_of(
    st.tuples(st.sampled_from(["begin", "commit", "rollback"]), st.integers(0, 1)),
    st.tuples(st.just("insert"), st.integers(0, 1), st.sampled_from([1, 2, 2500])),
    st.tuples(st.sampled_from(["print", "print from beginning"])),
    st.tuples(st.sampled_from(["again", "check", "drop", "end"])),
    st.tuples(st.just("restart"), st.booleans()),
)


@pytest.mark.slow("starts ten services, many generated cases")
@settings(
    max_examples=10,
    deadline=None,
    # Shrinking would start the service hundreds of times: the steps that failed are short enough to read.
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(STEPS, min_size=3, max_size=12))
def test_every_row_once_and_in_order(house: House, steps: list[tuple[object, ...]]) -> None:
    house.made += 1
    name, made = f"s{house.made}", 0
    committed: list[int] = []
    pending: dict[int, list[int] | None] = {0: None, 1: None}
    readers: list[Reader] = []
    clients = [Client(house.served) for _ in range(3)]

    def commit(values: list[int]) -> None:
        committed.extend(values)
        for reader in readers:
            reader.expected.extend(values)

    def read(sql: str, expected: list[int]) -> None:
        readers.append(Reader(clients[2].run(sql), expected, f"r{len(readers)}"))

    clients[2].rows(f"create stream {name} (i int)")
    try:
        # The end of every story: a row that all who read are sent, and then a new reader, which is sent all.
        for step in [*steps, ("commit", 0), ("commit", 1), ("insert", 0, 1), ("check",), ("print from beginning",)]:
            match step:
                case ("begin", int(who)) if pending[who] is None:
                    clients[who].rows("begin")
                    pending[who] = []
                case ("commit" | "rollback" as how, int(who)) if pending[who] is not None:
                    clients[who].rows(how)
                    if how == "commit":
                        commit(pending[who] or [])
                    pending[who] = None
                case ("insert", int(who), int(count)):
                    values = list(range(made, made + count))
                    made += count
                    clients[who].rows(f"insert into {name} select range from range({values[0]}, {made})")
                    held = pending[who]
                    if held is None:
                        commit(values)
                    else:
                        held += values
                case ("print",):
                    read(f"print entity {name}", [])
                case ("print from beginning",):
                    read(f"print entity {name} from beginning", committed)
                case ("again",):
                    for reader in readers:
                        reader.again()
                case ("check",):
                    for reader in readers:
                        reader.check()
                case ("end",) if readers:
                    over = readers.pop(0)
                    over.close()
                    clients[2].rows(f"terminate query '{over.query_id}'")
                case ("drop",) if pending == {0: None, 1: None}:
                    for reader in readers:
                        reader.check()
                    clients[0].rows(f"drop stream {name}")
                    for reader in readers:
                        reader.ended()
                    readers.clear()
                    committed.clear()
                    clients[0].rows(f"create stream {name} (i int)")
                case ("restart", bool(killed)):
                    for reader in readers:
                        reader.check()
                        reader.close()
                    for client in clients:
                        client.http.close()
                    readers.clear()
                    pending = {0: None, 1: None}
                    house.restart(killed=killed)
                    clients = [Client(house.served) for _ in range(3)]
        for reader in readers:
            reader.check()
    finally:
        for reader in readers:
            reader.close()
            clients[2].run(f"terminate query '{reader.query_id}'")
        for client in clients:
            client.http.close()


@pytest.fixture
def client(house: House) -> Iterator[Client]:
    with Client(house.served) as made:
        yield made


def test_rows_that_came_while_nobody_read(house: House) -> None:
    house.restart(killed=False)
    client = Client(house.served)
    client.rows("create stream quiet (i int)")
    for number in range(1, 4):
        client.rows(f"insert into quiet values ({number})")
        answer = client.run("print entity quiet from beginning")
        reader = Reader(answer, list(range(1, number + 1)), "")
        reader.check()
        reader.close()
        client.rows(f"terminate query '{answer['statementID']}'")
    client.http.close()


def test_clients_that_create_and_drop_streams_at_once_do_not_disturb_each_other(house: House) -> None:
    failed: list[Answer] = []

    def work(name: str) -> None:
        with Client(house.served) as client:
            for sql in [f"create stream {name} (k int)", f"drop stream {name}"] * 8 + [f"create stream {name} (k int)"]:
                answer = client.run(sql)
                if answer["sqlState"] != "00000":
                    failed.append(answer)

    names = [f"at_once_{number}" for number in range(6)]
    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    house.restart(killed=False)
    with Client(house.served) as client:
        assert [client.described(f"describe relation {name}")["Type"] for name in names] == ["stream"] * len(names)


@pytest.mark.parametrize(
    "way", ["drop stream {0}", "begin; drop schema {1} cascade; commit", "drop schema {1} cascade"]
)
def test_a_stream_that_is_made_again_is_another(client: Client, way: str) -> None:
    client.rows("create schema if not exists anew")
    name = "anew.again"
    client.rows(f"create stream {name} (i int)")
    client.rows(f"insert into {name} select range from range(10)")
    old = Reader(client.run(f"print entity {name} from beginning"), list(range(10)), "")
    old.check()
    for sql in way.format(name, "anew").split("; "):
        client.rows(sql)
    old.ended()
    client.rows("create schema if not exists anew")
    client.rows(f"create stream {name} (i int)")
    client.rows(f"insert into {name} values (77)")
    new = Reader(client.run(f"print entity {name} from beginning"), [77], "")
    new.check()
    new.close()
    client.rows(f"drop stream {name}")


def test_a_reader_that_comes_again_goes_on_behind_the_last_row(client: Client) -> None:
    """Within a stretch that the service reads at once, too."""
    client.rows("create stream cut (i int, t varchar)")
    answer = client.run("print entity cut from beginning")
    client.rows("insert into cut select range, repeat('x', 1000) from range(1900)")
    asked = answer["metadata"]["dataplaneRequest"]
    seen: list[int] = []
    for last in (5, 1900):
        with connect(asked["uri"], proxy=None, max_size=None, close_timeout=0.1) as socket:
            socket.send(json.dumps({"type": "auth", "accessToken": asked["token"], "sessionId": "me"}))
            socket.recv(20)
            while not seen or seen[-1] < last:
                seen.append(int(json.loads(socket.recv(20))["data"][0]))
        if last == 5:
            client.rows("insert into cut values (1900, '')")
    # What was under way when the first connection broke is not sent again: nothing comes twice.
    assert seen == sorted(set(seen))


@pytest.mark.parametrize(
    "sql",
    [
        "with x as (select 1) update fixed set i = 2",
        "/* why */ with x as (select 1) delete from fixed",
        "insert into fixed values (1) on conflict do update set i = 5",
        "create or replace table fixed (i int)",
        'delete from "Fixed"',
        "explain analyze update fixed set i = 2",
        "/* why */ explain (analyze, format json) delete from fixed",
        "explain analyze create or replace table fixed as select 1 as i",
        "explain analyze create table other as select * from fixed",
    ],
)
def test_nothing_changes_a_row_of_a_stream(client: Client, sql: str) -> None:
    client.rows("create stream if not exists fixed (i int primary key)")
    assert client.state(sql) == "0A000"


@pytest.mark.parametrize(
    "sql",
    [
        "drop table fixed",
        "drop table if exists fixed",
        "drop table Fixed cascade",
        "-- why\ndrop /* so */ table main.fixed",
        "begin application a drop table fixed; end application",
    ],
)
def test_a_stream_is_dropped_as_a_stream(client: Client, sql: str) -> None:
    client.rows("create stream if not exists fixed (i int primary key)")
    answer = client.run(sql)
    assert answer["sqlState"] == "0A000"
    assert "is a stream; use DROP STREAM" in answer["message"]
    assert ["fixed"] in [row[:1] for row in client.rows("list streams")]


def test_a_table_beside_a_stream_of_its_name_is_dropped(client: Client) -> None:
    client.rows("create stream if not exists fixed (i int primary key)")
    client.rows("create schema if not exists beside")
    client.rows("create table beside.fixed (i int)")
    client.rows("drop table beside.fixed")
    assert client.state("select * from beside.fixed") == "3D020"
    assert "fixed" in client.names("list streams")


def test_explain_of_what_reads_a_stream_explains(client: Client) -> None:
    client.rows("create stream if not exists fixed (i int primary key)")
    assert client.rows("explain select * from fixed")


@pytest.mark.parametrize("verb", ["print", "describe"])
def test_an_entity_that_is_not_there(client: Client, verb: str) -> None:
    for name in ("nowhere", "a.b", "a.b.c"):
        answer = client.run(f"{verb} entity {name}")
        assert answer["sqlState"] == {"print": "3D020", "describe": "3D008"}[verb]
        assert f'"{name}"' in answer["message"]


def test_a_stream_is_described_as_an_entity_too(client: Client) -> None:
    client.rows("create stream if not exists fixed (i int primary key)")
    assert client.rows("describe entity fixed") == client.rows("describe stream fixed")


def test_words_in_strings_change_nothing(client: Client) -> None:
    client.rows("create stream if not exists said (t varchar)")
    assert client.state("insert into said values ('delete from said')") == "00000"


@pytest.mark.parametrize(
    "sql",
    [
        "with hidden as (select 7 as i) select i from hidden",
        "with recursive hidden(i) as (select 1 union all select 7 from hidden where i < 7) select max(i) from hidden",
        "with a as (with HIDDEN as (select 7 as i) from hidden) from a",
        "select (select i from (select 7 as i) hidden)",
        'create temp table hidden as select 7 as i; select i from "hidden"; drop table temp.hidden',
    ],
)
def test_what_has_the_name_of_a_stream_is_not_the_stream(client: Client, sql: str) -> None:
    client.rows("create stream if not exists hidden (i int)")
    parts = sql.split("; ")
    found = [client.run(part) for part in parts]
    assert [answer["sqlState"] for answer in found] == ["00000"] * len(parts), found
    assert found[len(parts) // 2]["data"] == [["7"]]


@pytest.mark.parametrize(
    "sql",
    [
        "with hidden as (select * from hidden) select count(*) from hidden",
        "with a as (from hidden), hidden as (select 7 as i) select count(*) from a",
        "with hidden as (select 7 as i) select i from main.hidden",
        "select * from over_hidden()",
    ],
)
def test_the_stream_behind_a_name_is_read_as_one(client: Client, sql: str) -> None:
    client.rows("create stream if not exists hidden (i int)")
    client.rows("create or replace macro over_hidden() as table select * from main.hidden")
    assert client.state(sql) == "0A000"


@pytest.mark.parametrize("sql", ["describe told", "describe select s from told", "select * from (describe told)"])
def test_a_stream_is_described(client: Client, sql: str) -> None:
    client.rows("create stream if not exists told (i int, s varchar)")
    assert ["s", "VARCHAR"] in [row[:2] for row in client.rows(sql)]


@pytest.mark.parametrize(
    "sql",
    [
        "pivot told on i using count(*)",
        "pivot told on i in (1, 2) using count(*)",
        "copy told to stdout",
        "copy (select * from told) to stdout",
        "set variable x = (select count(*) from told)",
        "explain analyze select * from told",
        "summarize told",
        "create table finite as select * from told",
        "create temp table finite as from told",
        "create view finite as select * from told",
        "insert into hidden select i from told",
    ],
)
def test_nothing_finite_is_made_of_a_stream(client: Client, sql: str) -> None:
    client.rows("create stream if not exists told (i int, s varchar)")
    client.rows("create stream if not exists hidden (i int)")
    assert client.state(sql) == "0A000"


def test_a_stream_that_fails_shows_nothing_that_nobody_typed(client: Client) -> None:
    client.rows("create stream failing (v varchar)")
    asked = client.run("select v::date as d from failing")["metadata"]["dataplaneRequest"]
    client.rows("insert into failing values ('no date')")
    with connect(asked["uri"], proxy=None) as socket:
        socket.send(json.dumps({"type": "auth", "accessToken": asked["token"]}))
        frames = [json.loads(socket.recv(20)) for _ in range(2)]
    assert (frames[1]["type"], "no date" in frames[1]["message"]) == ("error", True), frames
    assert "LINE" not in frames[1]["message"]


class Slow:
    """An engine, and its only session, whose rows take until they are canceled."""

    def __init__(self, lost: int = 0) -> None:
        """Create it; so many cancellations are lost, as one is that comes between two steps of DuckDB."""
        self.lost = lost
        self.begun, self.left, self.closed = (threading.Event() for _ in range(3))

    def head(self, stream: Relation, least: int = 0) -> int:
        return 1

    def connect(self) -> Slow:
        return self

    def rows(self, feed: StreamQuery, start: int, end: int) -> list[str]:
        self.begun.set()
        assert self.left.wait(30)
        raise Failure("57000", "the statement was canceled")

    def cancel(self) -> None:
        self.lost -= 1
        if self.lost < 0:
            self.left.set()

    def close(self) -> None:
        self.closed.set()


FEED = StreamQuery(("d", "s", "t"), [], "select")


def test_rows_are_not_evaluated_for_a_query_that_has_ended() -> None:
    async def work() -> None:
        engine = Slow()
        streams = Streams(cast(Any, engine), (), asyncio.to_thread, 0.0)
        query = streams.begin("q", FEED, 0)
        reading = asyncio.ensure_future(streams.next(query, 0))
        await asyncio.to_thread(engine.begun.wait, 30)
        streams.end("q", "57014", "terminated")
        assert await reading is None
        assert engine.left.is_set()
        assert engine.closed.is_set()

    asyncio.run(work())


def test_rows_that_take_too_long_are_an_error() -> None:
    async def work() -> None:
        engine = Slow()
        streams = Streams(cast(Any, engine), (), asyncio.to_thread, 0.001)
        with pytest.raises(Failure, match=r"1 row of the stream took longer .*--max-seconds") as late:
            await streams.next(streams.begin("q", FEED, 0), 0)
        assert late.value.sql_state == "57014"

    asyncio.run(work())


@pytest.mark.parametrize("lost", [0, 3])
def test_rows_that_nobody_reads_are_canceled(lost: int) -> None:
    async def work() -> None:
        engine = Slow(lost)
        streams = Streams(cast(Any, engine), (), asyncio.to_thread, 0.0)
        reading = asyncio.ensure_future(streams.next(streams.begin("q", FEED, 0), 0))
        await asyncio.to_thread(engine.begun.wait, 30)
        reading.cancel()
        assert await asyncio.to_thread(engine.closed.wait, 30)

    asyncio.run(work())
