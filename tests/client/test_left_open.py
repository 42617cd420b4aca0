"""What a client opens for its results is closed with it, or when there are too many."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import pytest

from sqlshell.client.http.options import NetworkOptions
from sqlshell.client.http.transport import Transport
from sqlshell.client.results import factory, frames
from sqlshell.client.results.factory import ResultFactory
from sqlshell.client.results.result_file import ResultTable
from sqlshell.client.results.stream import ClosedWhileSending
from sqlshell.client.secret_values import Secrets
from sqlshell.client.service import Service
from sqlshell.client.statements.client import Submission
from sqlshell.client.statements.polling import StatementsClient
from sqlshell.client.target import parse
from sqlshell.context import SessionContext
from sqlshell.errors import ConnectionFailed, ProtocolError
from sqlshell.result import Result, StoredColumn
from tests.client.filed import Source
from tests.client.streams import METADATA, plane, rows, sends, stays
from tests.client.test_dataplane import kept_at
from tests.client.test_hostile_service import answering, whole
from tests.client.test_statements import done, scripted
from tests.shell.core.scripted import ScriptedClient

Found = TypeVar("Found")


async def first(client: StatementsClient) -> Result:
    return await anext(client.run(Submission("select 1", repeatable=True), SessionContext()))


def using(url: str, work: Callable[[StatementsClient], Awaitable[Found]], **options: Any) -> Found:
    async def all_of_it() -> Found:
        transport = Transport(parse(url), "tok", network=NetworkOptions(retries=0), **options)
        client = StatementsClient(transport, ResultFactory(transport))
        try:
            return await work(client)
        finally:
            await client.aclose()

    return asyncio.run(all_of_it())


PAGES = done(data=[["1"]], metadata={"partitionInfo": [{"rowCount": 1}] * 9})


def test_a_result_that_was_not_read_to_its_end() -> None:
    async def work(client: StatementsClient) -> None:
        result = await first(client)
        assert (await anext(result.batches)).rows == [["1"]]
        await client.aclose()
        with pytest.raises(StopAsyncIteration):
            await anext(result.batches)

    with scripted((200, PAGES)) as state:
        using(state.url, work)


def test_a_stream_that_was_not_read_to_its_end() -> None:
    async def work(client: StatementsClient) -> None:
        result = await first(client)
        assert result.endless is not None
        assert result.endless.end_reason == ""
        await client.aclose()
        assert result.endless.end_reason == "stopped"

    with plane(stays(METADATA, *rows(1, 2))) as there:
        request = {"requestType": "streaming", "uri": there.url, "token": "t"}
        with scripted((200, done(metadata={"dataplaneRequest": request}))) as state:
            using(state.url, work)


def test_data_planes_beyond_the_maximum_and_all_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factory, "MOST_PLANES", 2)

    async def closed(transport: Transport) -> bool:
        try:
            await transport.get("/")
        except RuntimeError:
            return True
        return False

    async def work(client: StatementsClient) -> None:
        opened: list[Transport] = []
        for _ in range(3):
            await first(client)
            opened += [each for each in client.results._planes if each not in opened]
        assert [await closed(each) for each in opened] == [True, False, False]
        await client.aclose()
        assert [await closed(each) for each in opened] == [True, True, True]
        assert client.results._planes == []

    with scripted((200, {"data": [["0"]]})) as there, scripted((200, kept_at(there.url))) as state:
        using(state.url, work)


@pytest.mark.parametrize("count", [0, 2])
def test_a_number_of_rows_that_is_wrong_and_cannot_be_looked_up(count: int) -> None:
    answer = done("", data=[["1"]], metadata={"partitionInfo": [{"rowCount": count}]})
    with scripted((200, answer)) as state:
        with pytest.raises(ProtocolError, match=f"partition 0 has 1 row; expected {count}"):
            using(state.url, first)
        assert len(state.asked) == 1


def test_a_service_is_asked_for_its_extensions_once() -> None:
    async def asked(client: StatementsClient) -> tuple[frozenset[str], str, bool]:
        service = Service(client.transport, client)
        found = await service.extensions()
        return found, await service.engine(), await service.engine_copies_data()

    version = {"major": 1, "minor": 2, "patch": 3}
    for extensions, engine, copies in (
        ("", "", False),
        ("batch", "", False),
        ("batch, engines", "", False),
        ("engines, engine=spark", "spark", False),
        ("engine=postgresql", "postgresql", True),
    ):
        with scripted((200, version), extensions=extensions) as state:
            found = using(state.url, asked)
            assert found == (frozenset(filter(None, extensions.split(", "))), engine, copies)
            assert [path for _, path, _, _ in state.asked] == ["/v2/version"]


def test_the_result_that_names_the_organization_is_not_read() -> None:
    async def work() -> None:
        client, transport = ScriptedClient(), Transport(parse("http://127.0.0.1:1"), "")
        context = SessionContext(organization="named")
        assert await Service(transport, client)._organization(context, legacy=False) == "named"
        assert [sql for sql, _ in client.ran] == ["LIST ORGANIZATIONS"]
        assert [rows.closed for rows in client.open] == [True]
        await transport.aclose()

    asyncio.run(work())


def test_a_service_that_is_closed() -> None:
    class Statements:
        closed = False

        async def aclose(self) -> None:
            self.closed = True

    async def work() -> None:
        statements, transport = Statements(), Transport(parse("http://127.0.0.1:1"), "")
        await Service(transport, statements).aclose()  # type: ignore[arg-type]
        assert statements.closed
        with pytest.raises(RuntimeError, match="closed"):
            await transport.get("/")

    asyncio.run(work())


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="the system has no such option")
def test_a_stream_whose_service_is_gone_is_noticed_by_the_system() -> None:
    async def work(url: str) -> int:
        target = parse(url.replace("ws:", "http:").removesuffix("/streams/1"))
        async with frames.open_stream(url, target, NetworkOptions()) as connection:
            given = connection._connection.transport.get_extra_info("socket")
            return int(given.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT))

    with plane(stays(METADATA)) as there:
        assert asyncio.run(work(there.url)) == 60_000


def test_a_stream_that_closed_takes_no_frame() -> None:
    async def work(url: str) -> None:
        target = parse(url.replace("ws:", "http:").removesuffix("/streams/1"))
        async with frames.open_stream(url, target, NetworkOptions()) as connection:
            await connection.send_first("{}")
            while not connection.ended:
                await connection.frames(None)
            with pytest.raises(ClosedWhileSending):
                await connection.send_first("{}")

    with plane(sends(METADATA)) as there:
        asyncio.run(work(there.url))


def test_a_stream_by_a_proxy_does_not_show_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = Secrets()

    async def work() -> None:
        target = parse("http://sql.invalid")
        async with frames.open_stream("ws://sql.invalid/s", target, NetworkOptions(), secrets=secrets):
            raise AssertionError("there is no stream")

    for name in ("no_proxy", "NO_PROXY", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with answering(whole(b"", "407 p%40ss-word-1")) as url:
        monkeypatch.setenv("http_proxy", url.replace("://", "://u:p%40ss-word-1@"))
        with pytest.raises(ConnectionFailed) as caught:
            asyncio.run(work())
    assert "did not open the stream" in caught.value.message
    assert "ss-word-1" not in caught.value.message + caught.value.hint
    assert sorted(secrets.own()) == ["p%40ss-word-1", "p@ss-word-1"]


@pytest.mark.parametrize(("failure", "kind"), [(duckdb.Error, ProtocolError), (ZeroDivisionError, ZeroDivisionError)])
def test_a_file_that_is_not_read_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: type[Exception], kind: type[Exception]
) -> None:
    opened: list[ResultTable] = []

    def failing(table: ResultTable, typed: bool) -> list[StoredColumn]:
        opened.append(table)
        raise failure("broken")

    source = Source(tmp_path)
    monkeypatch.setattr("sqlshell.service.engines.duckdb.rows.is_large", lambda rows, kinds: True)
    monkeypatch.setattr(ResultTable, "_checked_columns", failing)
    try:
        columns, _, _ = source.run("SELECT i AS a FROM range(3) t(i)")
        with pytest.raises(kind):
            source.table(columns, 3)
    finally:
        source.close()
    (table,) = opened
    assert not table.place.parent.exists()
    with pytest.raises(duckdb.ConnectionException):
        table.connection.execute("SELECT 1")
