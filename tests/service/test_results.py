"""Results on every engine: partitions, limits, types, whole results and the data plane."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pytest

from sqlshell.interface.models import PARQUET
from tests.conftest import Program, Served
from tests.service.client import Answer, Client
from tests.service.tested_engines import OnEngine


@pytest.fixture(scope="module", params=["", "large"], ids=["answers", "data plane"])
def service(
    request: pytest.FixtureRequest, engine: OnEngine, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    plane = ["--data-plane", request.param] if request.param else []
    with engine.serve(tmp_path_factory.mktemp("results"), "--partition-rows", "1000", *plane) as running:
        yield running


@pytest.fixture
def client(service: Served) -> Iterator[Client]:
    with Client(service) as made:
        yield made


def path_of(answer: Answer) -> str:
    return f"/v2/statements/{answer['statementID']}"


def lent(answer: Answer) -> dict[str, str]:
    """The header with the token of the data plane, if the result goes through it."""
    plane = answer["metadata"].get("dataplaneRequest")
    return {"Authorization": f"Bearer {plane['token']}"} if plane else {}


def all_rows(client: Client, answer: Answer) -> list[list[str | None]]:
    """The rows of all partitions."""
    found: list[list[str | None]] = []
    for number, part in enumerate(answer["metadata"]["partitionInfo"]):
        page = client.http.get(path_of(answer), params={"partitionID": number}, headers=lent(answer)).json()
        assert len(page["data"]) == part["rowCount"]
        found += page["data"]
    return found


def some_types(engine: OnEngine, rows: int) -> str:
    return (
        "select i, i as again, cast(i as decimal(12, 2)) / 4 as q, cast(i as double precision) * 1.5 as f, "
        "case when mod(i, 3) > 0 then concat('é \"text\" ', cast(i as varchar(9))) end as t, mod(i, 2) = 0 as even, "
        f"date '2024-02-29' as d, {engine.sql.instant} as z from {engine.series(rows)} order by i"
    ).replace("double precision", "double" if not engine.capabilities.attachments else "double precision")


def test_partitions_are_read_in_any_order(client: Client, engine: OnEngine) -> None:
    answer = client.run(f"select i from {engine.series(4500)} order by i")
    assert [part["rowCount"] for part in answer["metadata"]["partitionInfo"]] == [1000] * 4 + [500]
    for number in (4, 0, 2):
        page = client.http.get(path_of(answer), params={"partitionID": number}, headers=lent(answer)).json()
        assert page["data"][0] == [str(1000 * number)]
    beyond = client.http.get(path_of(answer), params={"partitionID": 5}, headers=lent(answer))
    assert beyond.status_code == 400


@pytest.mark.parametrize("rows", [1, 999, 1000, 1001, 70_500])
def test_small_and_large_results_have_the_same_rows(client: Client, engine: OnEngine, rows: int) -> None:
    answer = client.run(some_types(engine, rows))
    names = [column["name"] for column in answer["metadata"]["columns"]]
    assert names == ["i", "again", "q", "f", "t", "even", "d", "z"]
    assert answer["metadata"]["columns"][0]["type"] == "BIGINT"
    found = all_rows(client, answer)
    assert [row[0] for row in found] == [str(number) for number in range(rows)]
    assert [row[4] for row in found] == [f'é "text" {number}' if number % 3 else None for number in range(rows)]
    assert {str(row[5]) for row in found[:2]} <= {"true", "false"}
    assert {row[6] for row in found} == {"2024-02-29"}
    again = client.run(some_types(engine, rows))
    assert all_rows(client, again) == found
    assert again["metadata"]["columns"] == answer["metadata"]["columns"]


def test_wide_rows_end_a_partition_by_their_bytes(client: Client, engine: OnEngine) -> None:
    answer = client.run(f"select i, repeat('é', 20000) as w from {engine.series(700)} order by i")
    counts = [part["rowCount"] for part in answer["metadata"]["partitionInfo"]]
    assert (sum(counts), len(counts) > 2) == (700, True)
    rows = all_rows(client, answer)
    assert [row[0] for row in rows] == [str(number) for number in range(700)]
    assert {row[1] for row in rows} == {"é" * 20_000}


def test_a_result_without_rows_has_columns(client: Client, engine: OnEngine) -> None:
    answer = client.run(f"select i, 'x' as t from {engine.series(10)} where i < 0")
    assert [column["name"] for column in answer["metadata"]["columns"]] == ["i", "t"]
    assert all_rows(client, answer) == []


def test_several_readers_get_the_same_rows(client: Client, service: Served, engine: OnEngine) -> None:
    answer = client.run(f"select i from {engine.series(70_500)} order by i")
    if plane := lent(answer):
        headers = plane
    else:
        headers = {"Authorization": str(client.http.headers["authorization"])}

    def read(number: int) -> Any:
        with Client(service) as reader:
            return reader.http.get(path_of(answer), params={"partitionID": number}, headers=headers).json()["data"]

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(read, [*range(0, 70, 7), *range(0, 70, 7)]))
    half = len(found) // 2
    assert found[:half] == found[half:]
    assert [rows[0][0] for rows in found[:half]] == [str(1000 * number) for number in range(0, 70, 7)]


@pytest.mark.needs("typed_results")
@pytest.mark.parametrize("rows", [2, 1500, 70_500])
def test_a_whole_result_is_a_parquet_file_with_its_types(
    client: Client, engine: OnEngine, tmp_path: Path, rows: int
) -> None:
    answer = client.run(some_types(engine, rows))
    headers = {"Accept": PARQUET} | lent(answer)
    got = client.http.get(path_of(answer), headers=headers)
    assert (got.status_code, got.headers["content-type"]) == (200, PARQUET), got.text[:200]
    file = tmp_path / "result.parquet"
    file.write_bytes(got.content)
    with duckdb.connect() as reader:
        reader.execute("SET TimeZone = 'UTC'")
        found = reader.execute(f"SELECT value FROM parquet_kv_metadata('{file}') WHERE key = 'columns'").fetchone()
        assert found is not None
        assert [column["name"] for column in json.loads(found[0])] == [
            column["name"] for column in answer["metadata"]["columns"]
        ]
        kinds = [item[1] for item in reader.execute(f"DESCRIBE FROM '{file}'").fetchall()]
        assert (kinds[0], kinds[4], kinds[6]) == ("BIGINT", "VARCHAR", "DATE")
        ends = reader.execute(f"SELECT count(*), min(c0), max(c0), sum(c3::DOUBLE) FROM '{file}'").fetchone()
    assert ends == (rows, 0, rows - 1, 1.5 * (rows - 1) * rows / 2)
    part = client.http.get(path_of(answer), headers=headers | {"Range": "bytes=-4"})
    assert (part.status_code, part.content) == (206, b"PAR1")


def test_the_data_plane_lends_a_token_for_one_result(client: Client, service: Served, engine: OnEngine) -> None:
    small = client.run("select 1 as a")
    assert "dataplaneRequest" not in small["metadata"]
    answer = client.run(f"select i, repeat('x', 1000) as x from {engine.series(3000)} order by i")
    if not (plane := lent(answer)):
        assert answer["data"][0][0] == "0"
        return
    assert "data" not in answer
    page = client.http.get(path_of(answer), params={"partitionID": 2}, headers=plane)
    assert page.json()["data"][0][0] == "2000"
    assert client.http.get(path_of(small), headers=plane).status_code == 401
    assert client.http.post("/v2/statements", headers=plane, json={"statement": "select 1"}).status_code == 401


def test_the_program_reads_every_row(program: Program, service: Served, engine: OnEngine) -> None:
    sql = f"select i, repeat('x', 100) as x from {engine.series(30_000)} order by i"
    done = program(service.url, "--format", "csv", "-c", sql, env={"SQLSHELL_TOKEN": service.token})
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert (lines[0], len(lines), lines[-1]) == ("i,x", 30_001, "29999," + "x" * 100)


def test_a_failure_after_some_rows_keeps_none(client: Client, engine: OnEngine) -> None:
    rows = f"select case when i = 69999 then 'x' else '1' end as t from {engine.series(70_000)}"
    answer = client.run(f"select cast(t as int) as n from ({rows}) as s")
    assert answer["sqlState"][:2] == "22", answer
    assert not answer.get("data")
    assert client.rows("select 1") == [["1"]]
