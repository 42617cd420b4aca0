"""Fetching a result's file: resumed, left for the partitions when it cannot be had, and gone in the end."""

from __future__ import annotations

import asyncio
import io
import json
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from subprocess import PIPE
from typing import TypeVar
from urllib.parse import parse_qs, urlsplit

import duckdb
import msgspec
import pyarrow
import pyarrow.ipc
import pyarrow.parquet
import pytest

from sqlshell.client.http import retries
from sqlshell.client.http.transport import Transport
from sqlshell.client.results import factory, result_file
from sqlshell.client.results import whole as whole_results
from sqlshell.client.results.factory import ResultFactory
from sqlshell.client.statements.client import Submission
from sqlshell.client.statements.polling import StatementsClient
from sqlshell.client.target import parse
from sqlshell.context import SessionContext
from sqlshell.errors import OutputError, ProtocolError
from sqlshell.interface.models import PARQUET, ColumnInfo
from sqlshell.output.copy import copy
from sqlshell.output.sinks.sink import OutputClosed, Sink
from sqlshell.output.writer import Summary, WriterOptions
from sqlshell.output.writers.formats import format_named
from sqlshell.result import Batch, Column, Result
from sqlshell.runtime.scratch import Scratch, scratch
from tests.conftest import Program, Served, start
from tests.http_servers import QuietHandler, listening
from tests.service.client import Client
from tests.service.waiting import until

COLUMNS = [ColumnInfo("n", "BIGINT", True), ColumnInfo("s", "VARCHAR", True)]
PART, PARTS = 500, 40
ID = "00000000-0000-4000-8000-000000000001"
EXPECTED = b"n,s\n" + b"".join(b"%d,row %d\n" % (number, number) for number in range(PART * PARTS))

T = TypeVar("T")
Answer = Callable[["Handler"], None]


class Service:
    """A service with one result, and what it answers to requests for its file, one after another."""

    def __init__(self, file: bytes, answers: Sequence[Answer]) -> None:
        self.file = file
        self.answers = list(answers)
        self.asked: list[str] = []
        self.url = ""
        self.columns = COLUMNS
        self.context: dict[str, str] = {}


class Handler(QuietHandler):
    protocol_version = "HTTP/1.1"
    service: Service

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        info = [{"rowCount": PART}] * PARTS
        columns = msgspec.to_builtins(self.service.columns)
        context = self.service.context
        metadata = {"encoding": "json", "partitionInfo": info, "columns": columns, "context": context}
        self.json({"sqlState": "00000", "statementID": ID, "createdOn": 1, "metadata": metadata, "data": rows(0)})

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        if "partitionID" in query:
            number = int(query["partitionID"][0])
            self.service.asked.append(f"partition {number}")
            self.json({"sqlState": "00000", "statementID": ID, "createdOn": 1, "data": rows(number)})
            return
        self.service.asked.append(f"file {self.headers.get('Range') or ''}".strip())
        assert self.headers["Accept"] == f"{PARQUET}, application/json;q=0.5"
        (self.service.answers.pop(0) if self.service.answers else whole)(self)

    def json(self, answer: object, status: int = 200) -> None:
        self.send(json.dumps(answer).encode(), status, {"Content-Type": "application/json"})

    def send(
        self, body: bytes, status: int = 200, headers: Mapping[str, str] = {}, *, length: int | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("Sqlshell-Extensions", "whole-result")
        for name, value in {"Content-Length": str(len(body) if length is None else length), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def rows(number: int) -> list[list[str]]:
    return [[str(row), f"row {row}"] for row in range(number * PART, (number + 1) * PART)]


FILE = {"Content-Type": PARQUET, "ETag": '"one"'}


def whole(handler: Handler) -> None:
    handler.send(handler.service.file, 200, FILE)


def half(handler: Handler) -> None:
    file = handler.service.file
    handler.send(file[: len(file) // 2], 200, FILE, length=len(file))
    handler.close_connection = True


def rest(handler: Handler) -> None:
    file = handler.service.file
    begin = int(handler.headers["Range"].removeprefix("bytes=").removesuffix("-"))
    assert handler.headers["If-Range"] == '"one"'
    handler.send(file[begin:], 206, FILE | {"Content-Range": f"bytes {begin}-{len(file) - 1}/{len(file)}"})


def wrong_rest(handler: Handler) -> None:
    handler.send(handler.service.file, 206, FILE | {"Content-Range": f"bytes 0-{len(handler.service.file) - 1}/9"})


def status(code: int) -> Answer:
    return lambda handler: handler.json({"message": "no"}, code)


def endless(handler: Handler) -> None:
    handler.send(b"PAR1", 200, FILE | {"Content-Length": str(1 << 50)})
    handler.close_connection = True


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    place = tmp_path_factory.mktemp("file") / "result.parquet"
    columns = msgspec.json.encode(COLUMNS).decode()
    with duckdb.connect() as maker:
        maker.execute(
            f"COPY (SELECT i AS c0, 'row ' || i AS c1 FROM range({PART * PARTS}) t(i)) TO '{place}' "
            f"(FORMAT parquet, ROW_GROUP_SIZE 2048, KV_METADATA {{columns: '{columns}', instants: '[]'}})"
        )
    return place.read_bytes()


@contextmanager
def serving(file: bytes, *answers: Answer) -> Iterator[Service]:
    service = Service(file, answers)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"service": service}))
    service.url = f"http://127.0.0.1:{server.server_address[1]}"
    with listening(server):
        yield service


class Kept(Sink):
    """A sink in memory that fails with `error` after some bytes."""

    blocking = terminal = closed = False

    def __init__(self, error: Exception | None = None) -> None:
        self.data = b""
        self._error = error

    def write(self, data: bytes) -> None:
        self.data += data
        if self._error is not None and len(self.data) > 20_000:
            raise self._error

    def finish(self) -> None: ...

    def close(self) -> None: ...

    def abort(self) -> None: ...


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of temporary files; each test leaves it empty."""
    monkeypatch.setattr(factory, "LARGE_BYTES", 1)
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.01)
    made = scratch().folder("tests")
    monkeypatch.setattr(Scratch, "folder", lambda self, name: _made(made / name))
    yield made
    assert list(made.iterdir()) == []
    made.rmdir()


def _made(path: Path) -> Path:
    path.mkdir(mode=0o700)
    return path


def using(service: Service, use: Callable[[Result], Awaitable[T]], token: str = "tok") -> T:
    """What `use` makes of the result."""

    async def work() -> T:
        transport = Transport(parse(service.url), token)
        try:
            client = StatementsClient(transport, ResultFactory(transport), None)
            async for result in client.run(Submission("select 1", repeatable=True), SessionContext()):
                return await use(result)
            raise AssertionError
        finally:
            await transport.aclose()

    return asyncio.run(work())


def export(service: Service, sink: Kept, name: str = "csv", token: str = "tok") -> int:
    """Write the result; returns the number of rows."""

    async def write(result: Result) -> int:
        return (await copy(result, format_named(name).factory(WriterOptions()), sink)).rows

    return using(service, write, token)


@pytest.mark.parametrize(
    ("answers", "asked"),
    [
        ([whole], ["file"]),
        ([half, rest], ["file", "file bytes="]),
        ([half, half, rest], ["file", "file bytes=", "file bytes="]),
        ([half, whole], ["file", "file bytes="]),
        ([status(503), whole], ["file", "file"]),
    ],
)
def test_the_file_is_used(file: bytes, answers: list[Answer], asked: list[str]) -> None:
    sink = Kept()
    with serving(file, *answers) as service:
        assert export(service, sink) == PART * PARTS
    assert sink.data == EXPECTED
    assert [item if item == "file" else item.rstrip("0123456789-") for item in service.asked] == asked


def test_instants_of_the_file_are_in_the_time_zone_of_the_context(tmp_path: Path) -> None:
    columns = [ColumnInfo("n", "TIMESTAMP_LTZ(6)", True), COLUMNS[1]]
    told = msgspec.json.encode(columns).decode()
    place = tmp_path / "result.parquet"
    with duckdb.connect() as maker:
        maker.execute(
            "COPY (SELECT TIMESTAMPTZ '2026-01-01 00:00:00+00' AS c0, 'row ' || i AS c1 "
            f"FROM range({PART * PARTS}) t(i)) TO '{place}' (FORMAT parquet, KV_METADATA {{columns: '{told}', "
            "instants: '[0]'})"
        )
    sink = Kept()
    with serving(place.read_bytes()) as service:
        service.columns, service.context = columns, {"timezone": "Asia/Tokyo"}
        assert export(service, sink) == PART * PARTS
    assert service.asked == ["file"]
    assert sink.data.endswith(b"2026-01-01 09:00:00+09:00,row 19999\n")


@pytest.mark.parametrize("answer", [status(404), status(406), status(401), status(200), endless])
def test_the_partitions_are_used_if_there_is_no_file(file: bytes, answer: Answer) -> None:
    sink = Kept()
    with serving(file, answer) as service:
        assert export(service, sink) == PART * PARTS
    assert sink.data == EXPECTED
    assert sorted(service.asked) == sorted(["file", *(f"partition {number}" for number in range(1, PARTS))])


def test_the_partitions_are_used_if_the_file_cannot_be_resumed(file: bytes) -> None:
    sink = Kept()
    with serving(file, half, wrong_rest, wrong_rest) as service:
        assert export(service, sink) == PART * PARTS
    assert sink.data == EXPECTED
    assert f"partition {PARTS - 1}" in service.asked


def test_the_partitions_are_used_if_the_disk_is_full(file: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Scratch, name: str) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Scratch, "folder", full)
    sink = Kept()
    with serving(file) as service:
        assert export(service, sink) == PART * PARTS
    assert sink.data == EXPECTED


@pytest.mark.slow("large results")
@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_typed_files_are_made_of_the_file(file: bytes, name: str) -> None:
    sink = Kept()
    with serving(file) as service:
        assert export(service, sink, name) == PART * PARTS
    assert service.asked == ["file"]
    assert [row["s"] for row in table(name, sink.data)] == [f"row {number}" for number in range(PART * PARTS)]
    sink = Kept()
    with serving(file, status(404)) as service:
        assert export(service, sink, name) == PART * PARTS
    assert [row["n"] for row in table(name, sink.data)] == list(range(PART * PARTS))
    with serving(file) as service, pytest.raises(OutputError, match="full"):
        export(service, Kept(OutputError("full")), name)


def table(name: str, data: bytes) -> list[dict[str, object]]:
    if name == "parquet":
        return list(pyarrow.parquet.read_table(io.BytesIO(data)).to_pylist())
    return list(pyarrow.ipc.open_file(io.BytesIO(data)).read_all().to_pylist())


def test_a_secret_in_the_file_is_not_written(file: bytes) -> None:
    sink = Kept()
    with serving(file) as service:
        assert export(service, sink, "parquet", "row 2345") == PART * PARTS
    assert len(service.asked) == PARTS
    assert table("parquet", sink.data)[2345]["s"] == "***"


def test_a_format_for_people_reads_partitions(file: bytes) -> None:
    sink = Kept()
    with serving(file) as service:
        assert export(service, sink, "vertical") == PART * PARTS
    assert "file" not in service.asked


def damaged(file: bytes, group: int, folder: Path) -> bytes:
    """The file with a page that DuckDB cannot read."""
    place = folder / "damaged.parquet"
    place.write_bytes(file)
    with duckdb.connect() as reader:
        query = "SELECT data_page_offset FROM parquet_metadata(?) WHERE row_group_id = ? AND path_in_schema = 'c1'"
        [(start,)] = reader.execute(query, [str(place), group]).fetchall()
    return file[:start] + b"\xff" * 40 + file[start + 40 :]


@pytest.mark.parametrize("group", [0, 9])
@pytest.mark.parametrize("name", ["csv", "tsv", "json", "jsonl", "table", "parquet", "arrow", "arrows"])
def test_the_partitions_are_used_for_the_rows_that_cannot_be_read(
    file: bytes, tmp_path: Path, name: str, group: int
) -> None:
    expected, sink = Kept(), Kept()
    with serving(file, status(404)) as service:
        export(service, expected, name)
    with serving(damaged(file, group, tmp_path)) as service:
        assert export(service, sink, name) == PART * PARTS
    assert [asked for asked in service.asked if asked.startswith("file")] == ["file"]
    assert f"partition {PARTS - 1}" in service.asked
    if name in {"parquet", "arrow"}:
        assert table(name, sink.data) == table(name, expected.data)
    elif name == "arrows":
        found, plain = (pyarrow.ipc.open_stream(io.BytesIO(data)).read_all() for data in (sink.data, expected.data))
        assert found.combine_chunks().equals(plain.combine_chunks())
    else:
        assert sink.data == expected.data


def test_the_partitions_are_used_if_the_rows_require_too_much_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that another service made may repeat a long text in every row of a row group."""
    columns = msgspec.json.encode(COLUMNS).decode()
    place = tmp_path / "result.parquet"
    with duckdb.connect() as maker:
        maker.execute(
            f"COPY (SELECT i AS c0, 'row ' || i || if(i > 15000, repeat('x', 50000), '') AS c1 "
            f"FROM range({PART * PARTS}) t(i)) TO '{place}' "
            f"(FORMAT parquet, ROW_GROUP_SIZE 2048, KV_METADATA {{columns: '{columns}', instants: '[]'}})"
        )
    monkeypatch.setattr(whole_results, "open_table", partial(result_file.open_table, memory="60MB"))
    sink = Kept()
    with serving(place.read_bytes()) as service:
        assert export(service, sink) == PART * PARTS
    assert sink.data.startswith(EXPECTED[:100_000])
    assert "file" in service.asked


def test_a_file_of_another_result_is_an_error(file: bytes) -> None:
    sink = Kept()
    with serving(file[:-8] + bytes(4) + b"PAR1") as service, pytest.raises(ProtocolError, match="cannot be read"):
        export(service, sink)


def test_a_reader_who_leaves_and_a_full_disk(file: bytes) -> None:
    with serving(file) as service:
        export(service, Kept(OutputClosed()))
        with pytest.raises(OutputError, match="full"):
            export(service, Kept(OutputError("full")))


SELECT = (
    "select i as a, 'text, ' || repeat('x', 60) || i as \"b c\", (i / 7)::decimal(12, 3) as d, [i] as l "
    "from range(200000) t(i)"
)


def plain(served: Served, name: str) -> bytes:
    """The result in a format, by way of its partitions."""
    with Client(served) as client:
        answer = client.run(SELECT)
        metadata = answer["metadata"]
        columns = [Column(item["name"], item["type"]) for item in metadata["columns"]]
        writer = format_named(name).factory(WriterOptions())
        made = [*writer.begin(columns)]
        for number in range(len(metadata["partitionInfo"])):
            path = f"/v2/statements/{answer['statementID']}"
            rows = client.http.get(path, params={"partitionID": number}).json()["data"]
            made += writer.write(Batch(len(columns), rows=rows))
        return b"".join([*made, *writer.end(Summary(0, True))])


@pytest.mark.slow("runs the program twice")
def test_the_program_writes_the_same_by_file_and_by_partitions(
    served: Served, program: Program, tmp_path: Path
) -> None:
    env = {"SQLSHELL_TOKEN": served.token}
    for name in ("csv", "json"):
        made = program(served.url, "-vv", "-o", f"out.{name}", "-c", SELECT, env=env)
        assert made.code == 0, made.err
        assert PARQUET in made.err
        assert "partitionID=1" not in made.err
        assert (tmp_path / f"out.{name}").read_bytes() == plain(served, name)


@pytest.mark.slow("runs the program")
def test_an_export_that_is_interrupted_leaves_nothing(served: Served, tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    env = {"SQLSHELL_TOKEN": served.token, "TMPDIR": str(temporary)}
    large = SELECT.replace("200000", "2000000")
    process = start(tmp_path, served.url, "-o", "out.csv", "-c", large, env=env, stdout=PIPE, stderr=PIPE)
    found = until(lambda: list(temporary.glob("sqlshell-*/result-*/result.parquet")))
    assert [path.stat().st_mode & 0o777 for path in found] == [0o600]
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert b"Traceback" not in err
    assert list(temporary.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.endswith("csv")) == []


def test_a_pipe_that_is_closed_early(served: Served, tmp_path: Path) -> None:
    process = start(
        tmp_path, served.url, "--format", "csv", "-c", SELECT, env={"SQLSHELL_TOKEN": served.token}, stdout=PIPE
    )
    assert process.stdout is not None
    assert process.stdout.read(10) == b"a,b c,d,l\n"
    process.stdout.close()
    assert process.wait(60) == 141
