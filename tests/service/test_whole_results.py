"""A finished result as a Parquet file: who may download it, its content, and the requests for it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from sqlshell.interface.models import PARQUET
from sqlshell.service.engines.files.result_files import ResultFiles
from tests.conftest import Served, serve, stop
from tests.service.client import Answer, Client

SELECT = (
    "select range as id, range as id, (range / 4)::decimal(12, 2) as d, 170::hugeint as h, [range] as l, "
    "case when range % 3 > 0 then 'text ' || range end as \"it's\", timestamptz '2024-01-01' as t from range(60000)"
)
ACCEPT = {"Accept": f"{PARQUET}, application/json;q=0.5"}


@pytest.fixture(scope="module", params=["", "large"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    plane = ["--data-plane", request.param] if request.param else []
    running = serve(tmp_path_factory.mktemp("service"), *plane)
    yield running
    stop(running)


@pytest.fixture
def client(service: Served) -> Iterator[Client]:
    with Client(service) as made:
        yield made


def path_of(answer: Answer) -> str:
    return f"/v2/statements/{answer['statementID']}"


def columns_in(told: bytes) -> list[dict[str, Any]]:
    """The columns in the metadata of a file, without what an answer says only if it is asked for."""
    return [{name: item for name, item in column.items() if name != "engineType"} for column in json.loads(told)]


def test_the_file_has_the_rows_and_the_columns_of_the_result(client: Client, tmp_path: Path) -> None:
    answer = client.run(SELECT)
    plane = answer["metadata"].get("dataplaneRequest")
    headers = ACCEPT | ({"Authorization": f"Bearer {plane['token']}"} if plane else {})
    got = client.http.get(path_of(answer), headers=headers)
    assert (got.status_code, got.headers["content-type"]) == (200, PARQUET)
    assert "whole-result" in got.headers["Sqlshell-Extensions"].split(", ")
    assert got.headers["vary"] == "Accept, Prefer"
    assert int(got.headers["content-length"]) == len(got.content)
    file = tmp_path / "result.parquet"
    file.write_bytes(got.content)
    with duckdb.connect() as reader:
        reader.execute("SET TimeZone = 'UTC'")
        found = reader.execute(f"SELECT value FROM parquet_kv_metadata('{file}') WHERE key = 'columns'").fetchone()
        assert found is not None
        assert columns_in(found[0]) == answer["metadata"]["columns"]
        described = reader.execute(f"DESCRIBE FROM '{file}'").fetchall()
        kinds = ["BIGINT", "BIGINT", "DECIMAL(12,2)", "VARCHAR", "VARCHAR", "VARCHAR", "TIMESTAMP WITH TIME ZONE"]
        assert [item[:2] for item in described[: len(kinds)]] == [(f"c{at}", kind) for at, kind in enumerate(kinds)]
        rows = reader.execute(f"SELECT COLUMNS('c[0-9]+')::VARCHAR FROM '{file}' LIMIT 3").fetchall()
        assert [list(row[:6]) for row in rows] == [
            ["0", "0", "0.00", "170", "[0]", None],
            ["1", "1", "0.25", "170", "[1]", "text 1"],
            ["2", "2", "0.50", "170", "[2]", "text 2"],
        ]


def test_first_rows_are_left_out_for_a_client_that_reads_the_file(client: Client) -> None:
    minimal = {"Prefer": "wait=0, return=minimal"}

    def submit(sql: str) -> Any:
        got = client.http.post("/v2/statements", json={"statement": sql}, headers=minimal)
        while got.status_code == 202:
            got = client.http.get(path_of(got.json()), headers=minimal)
        return got

    usual = client.run(SELECT)
    got = submit(SELECT)
    answer = got.json()
    assert got.headers["Preference-Applied"] == "return=minimal"
    assert "data" not in answer
    assert answer["metadata"]["partitionInfo"] == usual["metadata"]["partitionInfo"]
    assert answer["metadata"]["columns"] == usual["metadata"]["columns"]
    got = submit("select 1 as x")
    assert "Preference-Applied" not in got.headers
    assert got.json()["metadata"].get("dataplaneRequest") or got.json()["data"] == [["1"]]


def whole(client: Client) -> tuple[str, bytes, dict[str, str]]:
    """The path of a result, its file, and headers that ask for it."""
    answer = client.run(SELECT)
    plane = answer["metadata"].get("dataplaneRequest")
    headers = ACCEPT | ({"Authorization": f"Bearer {plane['token']}"} if plane else {})
    return path_of(answer), client.http.get(path_of(answer), headers=headers).content, headers


def test_a_range_a_condition_and_head(client: Client) -> None:
    path, content, headers = whole(client)
    assert content.startswith(b"PAR1")

    def ask(**more: str) -> Any:
        return client.http.get(path, headers=headers | {name.replace("_", "-"): text for name, text in more.items()})

    size, tag = len(content), ask().headers["etag"]
    for span, expected in {
        "bytes=0-3": content[:4],
        "bytes=-8": content[-8:],
        f"bytes={size - 1}-": content[-1:],
        f"bytes=5-{size * 2}": content[5:],
    }.items():
        got = ask(Range=span)
        assert (got.status_code, got.content) == (206, expected), span
        assert got.headers["content-range"].endswith(f"/{size}")
        assert got.headers["vary"] == "Accept, Prefer"
    beyond = ask(Range=f"bytes={size}-")
    assert (beyond.status_code, beyond.headers["content-range"]) == (416, f"bytes */{size}")
    assert ask(Range="bytes=0-1,4-5").content == content
    assert ask(Range="bytes=0-3", If_Range=tag).status_code == 206
    assert ask(Range="bytes=0-3", If_Range='"other"').content == content
    for known in (tag, "*", f'"x", W/{tag}'):
        got = ask(If_None_Match=known)
        assert (got.status_code, got.content, got.headers["etag"]) == (304, b"", tag), known
    assert ask(If_None_Match='"x"').status_code == 200
    assert [ask(If_Match=known).status_code for known in (tag, "*", '"x"', f"W/{tag}")] == [200, 200, 412, 412]
    head = client.http.head(path, headers=headers)
    assert (head.status_code, head.content) == (200, b"")
    assert (head.headers["content-length"], head.headers["etag"]) == (str(size), tag)


def test_a_client_that_does_not_ask_gets_json(client: Client) -> None:
    answer = client.run(SELECT)
    path = path_of(answer)
    for accept in ("*/*", "application/json", f"application/json, {PARQUET};q=0.5", f"{PARQUET};q=0", ""):
        got = client.http.get(path, headers={"Accept": accept})
        assert got.headers["content-type"] == "application/json", accept
        assert {**got.json(), "metadata": {}} == {**answer, "metadata": {}}, accept
        assert got.headers["vary"] == "Accept, Prefer"
    numbered = client.http.get(path, params={"partitionID": 1}, headers={"Accept": PARQUET})
    assert numbered.headers["content-type"] == "application/json"


def test_what_has_no_file_is_answered_with_json(client: Client) -> None:
    small, nothing = client.run("select 1 as a"), client.run("create table if not exists t (i int)")
    failed = client.run("select * from nowhere")
    running = client.submit("select count(*) from range(100000000000) a, range(100000000000) b")
    for answer in (small, nothing, failed, running):
        got = client.http.get(path_of(answer), headers=ACCEPT)
        assert got.headers["content-type"] == "application/json"
        assert got.json()["sqlState"] == answer["sqlState"]
    with Client(Served(str(client.http.base_url), "test-token-0123456789", None)) as other:  # type: ignore[arg-type]
        other.rows_of_nothing(f"terminate query '{running['statementID']}'")
    assert client.http.get(path_of(failed), headers={"Accept": PARQUET}).json()["sqlState"] == failed["sqlState"]


@pytest.mark.parametrize("source", ["range(2)", "(select unnest(range(30000)) as range)", "range(2) where false"])
def test_a_file_is_made_of_a_result_that_is_kept_as_json(client: Client, tmp_path: Path, source: str) -> None:
    answer = client.run(
        "select range as a, (range / 4)::decimal(12, 2) as d, 170::hugeint as h, [range] as l, "
        "'it''s \"text\", ' || range as t, '],[' as b, 'ab'::blob as bl, timestamptz '2024-01-01 00:00:00.5' as z, "
        f"(range * 1.5)::double as f, time '12:00:00' as c, null::json as j from {source}"
    )
    plane = answer["metadata"].get("dataplaneRequest")
    lent = {"Authorization": f"Bearer {plane['token']}"} if plane else {}
    headers = {"Accept": PARQUET} | lent
    expected = []
    for number in range(len(answer["metadata"]["partitionInfo"])):
        expected += client.http.get(path_of(answer), params={"partitionID": number}, headers=lent).json()["data"]
    got = client.http.get(path_of(answer), headers=headers)
    assert (got.status_code, got.headers["content-type"]) == (200, PARQUET), got.text[:200]
    file = tmp_path / "made.parquet"
    file.write_bytes(got.content)
    with duckdb.connect() as reader:
        kinds = [item[1] for item in reader.execute(f"DESCRIBE FROM '{file}'").fetchall()]
        found = reader.execute(f"SELECT value FROM parquet_kv_metadata('{file}') WHERE key = 'columns'").fetchone()
        assert found is not None
        assert columns_in(found[0]) == answer["metadata"]["columns"]
    assert kinds[:2] == ["BIGINT", "DECIMAL(12,2)"]
    assert kinds[2:] == ["VARCHAR"] * 4 + ["BLOB", "TIMESTAMP WITH TIME ZONE", "DOUBLE", "VARCHAR", "VARCHAR"]
    made = json.loads(b"[" + b",".join(ResultFiles().read(file, 0, [len(expected)])) + b"]")
    assert made == expected
    again = client.http.get(path_of(answer), headers=headers | {"Range": "bytes=-4"})
    assert (again.status_code, again.content) == (206, b"PAR1")


@pytest.mark.slow("starts a service")
def test_a_result_that_is_dropped_while_it_is_read(tmp_path: Path) -> None:
    """The reader gets all of it, and the next one 404."""
    running = serve(tmp_path, "--quota", "0.02")
    number = "hash(range)::varchar || hash(range + 1)::varchar || hash(range + 2)::varchar"
    wide = f"select range, {number} from range(250000)"
    try:
        with Client(running) as client:
            path = path_of(client.run(wide))
            with client.http.stream("GET", path, headers=ACCEPT) as got:
                size = int(got.headers["content-length"])
                pieces = got.iter_raw()
                first = next(pieces)
                with Client(running) as other:
                    # Results beyond the quota are dropped from time to time.
                    end = time.monotonic() + 60
                    while other.http.get(path).status_code != 404 and time.monotonic() < end:
                        other.run(wide)
                    assert other.http.get(path, headers=ACCEPT).status_code == 404
                content = first + b"".join(pieces)
            assert (len(content), content[-4:]) == (size, b"PAR1")
    finally:
        stop(running)
