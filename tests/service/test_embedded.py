"""The service in the shell's process: called without a server, and closed at once whatever is running."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from sqlshell.client.http.in_process import InProcess
from sqlshell.client.http.transport import Transport
from sqlshell.client.results.factory import ResultFactory
from sqlshell.client.results.local_frames import open_local_stream
from sqlshell.client.statements.client import StreamLimits, Submission
from sqlshell.client.statements.polling import StatementsClient
from sqlshell.context import SessionContext
from sqlshell.errors import ConnectionFailed, UsageError
from sqlshell.interface import sqlstate
from sqlshell.launch.embedded import EmbeddedService, start_embedded
from sqlshell.launch.services import EMBEDDED_TARGET
from tests.cases import lines


@pytest.fixture
def embedded() -> Iterator[EmbeddedService]:
    service = start_embedded(partition_rows=100)
    yield service
    service.close()


def ask(service: EmbeddedService, method: str, path: str, body: bytes = b"", token: str = "") -> tuple[int, bytes]:
    """One request, in an event loop of its own."""

    async def work() -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {token or service.token}", "Content-Type": "application/json"}
        async with httpx.AsyncClient(transport=InProcess(service.app), timeout=60) as client:
            answer = await client.request(method, f"http://x{path}", content=body, headers=headers)
        return answer.status_code, answer.content

    return asyncio.run(work())


def run(service: EmbeddedService, sql: str, **parameters: object) -> dict[str, Any]:
    """The response to a statement that has ended."""
    request = {"statement": sql, "parameters": parameters}
    _, body = ask(service, "POST", "/v2/statements", json.dumps(request).encode())
    answer: dict[str, Any]
    while (answer := json.loads(body))["sqlState"] == sqlstate.RUNNING:
        _, body = ask(service, "GET", f"/v2/statements/{answer['statementID']}?partitionID=0")
    return answer


def test_it_answers_the_interface(embedded: EmbeddedService) -> None:
    assert run(embedded, "select 42")["data"] == [["42"]]
    assert ask(embedded, "GET", "/v2/version", token="wrong")[0] == 401


def test_the_row_limit_counts_here(embedded: EmbeddedService) -> None:
    answer = run(embedded, "select range from range(20)", rowLimit=5)
    assert (answer["sqlState"], answer["message"]) == (sqlstate.ROW_LIMIT, "stopped after 5 rows")
    assert len(answer["data"]) == 5


def test_a_store_is_read_into_tables_and_never_changed(embedded: EmbeddedService, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("i\n1\n")
    for sql in (
        f"create store s with ('uri' = '{tmp_path}')",
        # Around the folder that holds what the service itself keeps.
        "create store everything with ('uri' = '/')",
        "create table t (i int)",
        'create table copied as from s."x.csv"',
        'create or replace table copied as select i + 1 as i from s."x.csv"',
        'create view seen as from s."x.csv"',
        'insert into t select i from s."x.csv"',
        'update t set i = 5 from s."x.csv" x where t.i = x.i',
        'delete from t where i not in (from s."x.csv")',
    ):
        assert run(embedded, sql)["sqlState"] == "00000", sql
    for sql in lines("stores", "read-only"):
        assert run(embedded, sql)["sqlState"] == "0A000", sql
    assert run(embedded, "create stream st (i int)")["sqlState"] == "00000"
    assert run(embedded, 'insert into st from s."x.csv"')["sqlState"] == "00000"
    for sql in (
        'create table whole as select st.i from st join s."x.csv" x on x.i = st.i',
        'insert into t select i from s."x.csv" where i in (from st)',
        'delete from st where i in (from s."x.csv")',
        'update st set i = 2 from s."x.csv"',
    ):
        assert run(embedded, sql)["sqlState"] == "0A000", sql
    assert run(embedded, 'insert into t select nowhere from s."x.csv"')["sqlState"] == "42703"


def test_a_stream_is_not_read_as_a_table(embedded: EmbeddedService, tmp_path: Path) -> None:
    def state(sql: str) -> str:
        return str(run(embedded, sql)["sqlState"])

    file = tmp_path / "stream.csv"
    assert state("create stream st (i int)") == state("insert into st values (1)") == "00000"
    for sql in (
        f"copy st to '{file}'",
        f"copy st (i) to '{file}'",
        f"copy (select * from st where i > 0) to '{file}' (format csv)",
        "explain analyze select * from st",
        "explain (analyze, format json) select * from st",
        "prepare p as delete from st where i = ?",
    ):
        assert state(sql) == "0A000", sql
    assert not list(tmp_path.iterdir())
    for sql in (
        "prepare p as insert into st select $1",
        "prepare q as select $one::int + $two",
        "attach ':memory:' as beside",
        # The rows that it has.
        f"export database '{tmp_path / 'all'}'",
        "copy from database memory to beside",
        f"export database beside to '{tmp_path / 'beside'}'",
    ):
        assert state(sql) == "00000", sql
    for sql in ("explain select * from st", "create table t as select 1 as i", f"copy t to '{file}'"):
        assert state(sql) == "00000", sql
    assert state("explain analyze select * from t") == "00000"


@pytest.mark.parametrize("what", ["database memory", "organization local", "compute_pool default"])
def test_what_is_always_there_cannot_be_dropped(embedded: EmbeddedService, what: str) -> None:
    answer = run(embedded, f"drop {what}")
    assert answer["sqlState"] == "2BP01"
    assert "cannot drop" in answer["message"]


def test_a_stream_is_read_while_rows_arrive(embedded: EmbeddedService) -> None:
    run(embedded, "create stream st (i int, s varchar)")
    many = 30_000

    async def work() -> list[str | None]:
        transport = Transport(EMBEDDED_TARGET, embedded.token, open_app=embedded.app)
        factory = ResultFactory(transport, embedded.app, lambda: StreamLimits(max_rows=many))
        statements = StatementsClient(transport, factory)
        found = list[str | None]()
        async for result in statements.run(Submission("select * from st"), SessionContext()):
            insert = f"insert into st select i, repeat('x', 200) from range({many}) t(i)"
            await asyncio.to_thread(run, embedded, insert)
            async for batch in result.batches:
                found += [row[0] for row in batch.rows]
            assert result.endless is not None
            assert result.endless.end_reason == "max_rows"
        await statements.aclose()
        return found

    assert asyncio.run(work()) == [str(number) for number in range(many)]


def test_there_is_no_stream_elsewhere(embedded: EmbeddedService) -> None:
    async def work() -> None:
        with pytest.raises(ConnectionFailed, match="X did not open the stream"):
            async with open_local_stream("ws://x/nowhere", embedded.app, "X"):
                pass

    asyncio.run(work())


def test_closing_ends_what_runs(tmp_path: Path) -> None:
    service = start_embedded(tmp_path / "x.duckdb")
    sql = b'{"statement":"create table t as select count(*) from range(10000000000) a, range(1000) b"}'
    status, _ = ask(service, "POST", "/v2/statements", sql)
    assert status == 202
    service.close()
    service.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "service"]
    again = start_embedded(tmp_path / "x.duckdb")
    again.wait()
    again.close()


def test_many_requests_of_a_new_session_share_it(embedded: EmbeddedService) -> None:
    with ThreadPoolExecutor(8) as threads:
        sql = "create table if not exists t as select 1"
        done = [threads.submit(run, embedded, sql, sessionID="one") for _ in range(8)]
        assert {each.result()["sqlState"] for each in done} == {"00000"}
    assert run(embedded, "from t")["data"] == [["1"]]


def test_what_is_no_database(tmp_path: Path) -> None:
    place = tmp_path / "x.db"
    place.write_text("no database" * 100)
    service = start_embedded(place)
    with pytest.raises(UsageError):
        service.wait()
    with pytest.raises(UsageError):
        service.app()
    service.close()
    views = start_embedded(views={"x": tmp_path / "missing.csv"})
    with pytest.raises(UsageError):
        views.wait()
    views.close()
