"""The service with a third-party client: PyPI `deltastream-connector`, its APIConnection.

The client's own bugs are named where the tests work around them, and in clients.md by ROWS.
"""

from __future__ import annotations

import asyncio
import datetime
import warnings
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from deltastream.api import dpconn
    from deltastream.api.blob import Blob
    from deltastream.api.conn import APIConnection
    from deltastream.api.controlplane.openapi_client.api import DeltastreamApi
    from deltastream.api.controlplane.openapi_client.api_client import ApiClient
    from deltastream.api.controlplane.openapi_client.configuration import Configuration
    from deltastream.api.error import AuthenticationError, InterfaceError, SQLError

from tests.conformance.outcomes import Row, fault, works
from tests.conftest import Served, serve, stop
from tests.service.client import Client

pytestmark = pytest.mark.filterwarnings("ignore")

PLANE = (
    "api/dpconn.py:27 omits the port of the data plane's address, :36 passes a Configuration instead of a client to "
    "the generated API, :49 reads missing members of its response; api/conn.py:325 confuses the models of the two "
    "planes"
)
ROWS = [
    Row("exec", works()),
    Row("query", works()),
    Row("query, several partitions", works()),
    Row("query, a slow statement", works()),
    Row("query, a stream", works(note="with --stream-scheme ws, which is the default")),
    Row(
        "query, a stream that ends with an error",
        fault("api/streaming_rows.py:122 does not read the member sqlCode, so the reader waits forever"),
    ),
    Row("query, results by the data plane (serve --data-plane)", fault(PLANE)),
    Row("exec_with_files, attachments", works()),
    Row("version", works()),
    Row("errors: sqlStates, a wrong token, no statement", works()),
    Row("APIConnection.from_dsn", fault("api/conn.py:89 omits the port")),
]


@pytest.fixture(scope="module")
def partitioned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    running = serve(tmp_path_factory.mktemp("connector"), "--partition-rows", "100")
    yield running
    stop(running)


def connection(served: Served, token: str = "", session: str = "connector") -> Any:
    async def give() -> str:
        return token or served.token

    return APIConnection(f"{served.url}/v2", give, session, "UTC", None, None, None, None, None)


async def rows_of(made: Any, sql: str) -> tuple[Any, list[Any]]:
    found = await made.query(sql)
    return found, [row async for row in found]


def test_exec_and_query_and_context(partitioned: Served) -> None:
    async def check() -> None:
        made = connection(partitioned)
        await made.exec("create schema if not exists sales")
        await made.exec("use schema sales")
        assert made.rsctx.schema_name == "sales"
        assert str(made.rsctx.organization_id)
        await made.exec("create table t (i integer, t varchar)")
        await made.exec("insert into t values (1, 'one'), (2, 'two')")
        _, rows = await rows_of(made, "select cast(null as integer), t, null, i from t order by i")
        assert [[row[1], row[3]] for row in rows if row[0] is None and row[2] is None] == [["one", 1], ["two", 2]]
        _, rows = await rows_of(made, "select * from t order by i")
        assert rows == [[1, "one"], [2, "two"]]
        assert set(await made.version()) == {"major", "minor", "patch"}

    asyncio.run(check())


def test_every_type_that_it_knows(partitioned: Served) -> None:
    sql = (
        "select true as b, 1::tinyint as t, 2::smallint as s, 3 as i, 9223372036854775807 as big, 1.5::float as f, "
        "2.5::double as d, 3.25::decimal(8,2) as dec, date '2023-12-30' as day, time '03:37:45' as clock, "
        "timestamp '2023-12-30 03:37:45.123' as ts, timestamptz '2023-12-30 03:37:45+00' as ltz, 'ab'::blob as bin, "
        "[1, 2] as l, {'a': 1} as st, map {'k': 1} as m, 'text' as v"
    )

    async def check() -> None:
        found, rows = await rows_of(connection(partitioned), sql)
        values = dict(zip([column.name for column in found.columns()], rows[0], strict=True))
        assert values["b"] is True
        assert (values["t"], values["s"], values["i"], values["big"]) == (1, 2, 3, Decimal(9223372036854775807))
        assert (values["f"], values["d"], values["dec"]) == (1.5, 2.5, 3.25)
        assert values["day"] == datetime.datetime(2023, 12, 30)
        assert values["ts"] == datetime.datetime(2023, 12, 30, 3, 37, 45, 123000)
        assert values["ltz"] == datetime.datetime(2023, 12, 30, 3, 37, 45, tzinfo=datetime.UTC)
        assert (values["bin"], values["l"], values["st"], values["v"]) == ("YWI=", "[1,2]", '{"a":1}', "text")

    asyncio.run(check())


def test_partitions(partitioned: Served) -> None:
    async def check() -> None:
        _, rows = await rows_of(connection(partitioned), "select range as i, 'r' || range from range(1050)")
        assert [int(row[0]) for row in rows] == list(range(1050))
        assert rows[-1][1] == "r1049"

    asyncio.run(check())


@pytest.mark.conformance
def test_it_polls_what_runs(partitioned: Served) -> None:
    async def check() -> None:
        sql = "select count(*) as n from range(40000) a, range(20000) b where a.range * b.range % 7 = 1"
        _, rows = await rows_of(connection(partitioned), sql)
        assert int(rows[0][0]) > 0

    asyncio.run(check())


def test_errors(partitioned: Served) -> None:
    async def check() -> None:
        with pytest.raises(SQLError) as failed:
            await connection(partitioned).query("select * from none")
        assert "3D020" in repr(vars(failed.value))
        with pytest.raises(AuthenticationError):
            await connection(partitioned, token="wrong").exec("select 1")
        with pytest.raises(InterfaceError):
            await connection(partitioned).exec("-- nothing")

    asyncio.run(check())


def test_a_dsn_loses_its_port(partitioned: Served) -> None:
    url = partitioned.url.replace("http://", "http://:token@")
    assert APIConnection.from_dsn(f"{url}/v2").server_url == "http://127.0.0.1/v2"


def test_attachments(partitioned: Served, tmp_path: Path) -> None:
    file = tmp_path / "f.jar"
    file.write_bytes(b"\x00bytes\r\n--")

    async def check() -> None:
        made = connection(partitioned)
        await made.exec_with_files("create function_source \"f\" with ('file' = 'f.jar')", [str(file)])
        blob = Blob.from_bytes(b"proto", name="g.proto")
        await made.exec("create descriptor_source g with ('file' = 'g.proto')", [blob])
        found, rows = await rows_of(made, "list function_sources")
        listed = dict(zip((column.name for column in found.columns()), rows[0], strict=True))
        assert [listed[name] for name in ("Name", "File", "Size", "State")] == ["f", "f.jar", "10", "ready"]
        organization = str(made.rsctx.organization_id)
        got = made.statement_handler.api.download_resource_without_preload_content(
            resource_type="function_source", organization_id=organization, resource_name="f"
        )
        assert got.data == b"\x00bytes\r\n--" or got.read() == b"\x00bytes\r\n--"

    asyncio.run(check())


class _Repaired(dpconn.DPAPIConnection):  # type: ignore[misc]
    """Its data plane connection with the address whole, and its generated API of the control plane, whose models its
    rows are made of."""

    def __init__(self, dsn: str, *given: Any) -> None:
        super().__init__(dsn, *given)
        client = ApiClient(Configuration(host=dsn))
        client.default_headers["Authorization"] = f"Bearer {self.token}"
        self._repaired = DeltastreamApi(client)

    def _get_statement_status_api(self, statement_id: Any, partition_id: int) -> Any:
        found = self._repaired.get_statement_status(statement_id=statement_id, partition_id=partition_id)
        return SimpleNamespace(status=200, body=found)


@pytest.mark.conformance
def test_the_data_plane(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams come as they are, and results once the connection is repaired."""
    running = serve(tmp_path_factory.mktemp("plane"), "--data-plane", "always", "--partition-rows", "100")

    async def check() -> None:
        made = connection(running)
        with pytest.raises(RuntimeError):
            await made.query("select 1")
        await made.exec("create stream orders (id integer, what varchar)")
        found = await made.query("select id, what from orders where id > 1")
        with Client(running) as writer:
            for number in range(5):
                await asyncio.to_thread(writer.rows, f"insert into orders values ({number}, 'w{number}')")
        got = []
        async with asyncio.timeout(20):
            async for row in found:
                got.append(row)
                if len(got) == 3:
                    break
        assert got == [[2, "w2"], [3, "w3"], [4, "w4"]]
        await found.close()
        monkeypatch.setattr("deltastream.api.conn.DPAPIConnection", _Repaired)
        _, rows = await rows_of(made, "select range as i from range(250)")
        assert [int(row[0]) for row in rows] == list(range(250))

    try:
        asyncio.run(check())
    finally:
        stop(running)
