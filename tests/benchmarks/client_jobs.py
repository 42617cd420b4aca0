"""Benchmarks of the client: a bad network, polling, rows compared with another client, and unbounded results."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import multiprocessing
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

from sqlshell.client.http import retries
from sqlshell.client.http.transport import Transport
from sqlshell.client.results.factory import ResultFactory
from sqlshell.client.statements.polling import StatementsClient, Submission
from sqlshell.client.target import parse
from sqlshell.context import SessionContext
from tests.benchmarks.measure import TOKEN, Row, environment, run, service
from tests.faults.scenarios import expected, scenarios, tried

SHELL = [sys.executable, "-m", "sqlshell", "-q"]
DURATIONS = (0.005, 0.05, 0.3, 1.5)
STREAMED = 10_000_000
COLUMNS = [{"name": "i", "type": "BIGINT"}, {"name": "t", "type": "VARCHAR"}, {"name": "n", "type": "INTEGER"}]


def faults() -> Iterator[Row]:
    """Every fault at every exchange of a 20-partition fetch, and kills -9 in mid-fetch."""
    outcomes: Counter[str] = Counter()
    whole = expected()
    retries.FIRST_WAIT = 0.02
    with service("--partition-rows", "1000") as (url, folder):
        for scenario in scenarios(range(21)):
            found = tried(url, TOKEN, scenario, whole)
            outcomes["wrong" if not scenario.reads and found.posts > 1 else found.outcome] += 1
        for wait in (0.3, 0.35, 0.4, 0.5, 0.6):
            outcomes[_killed(url, folder, wait)] += 1
    count = sum(outcomes.values())
    yield Row(
        f"{count} network faults: {outcomes['whole']} whole, {outcomes['failed']} clearly failed",
        f"{outcomes['wrong']} wrong",
        "0 wrong",
        float(outcomes["wrong"]),
        "0",
    )


def _killed(url: str, folder: Any, wait: float) -> str:
    sql = "select range as i, repeat('x', 100) as x from range(500000)"
    argv = [*SHELL, url, "-c", sql, "--format", "csv"]
    with (folder / "part.csv").open("wb") as out:
        process = subprocess.Popen(argv, stdout=out, env=environment(folder), cwd=folder)
        time.sleep(wait)
        process.kill()
        process.wait()
    listed = subprocess.run(
        [*SHELL, url, "-c", "\\jobs 1", "--format", "jsonl"], capture_output=True, env=environment(folder), check=True
    )
    entries = [json.loads(line) for line in listed.stdout.splitlines()]
    if not entries or not entries[0]["statement"].startswith("select range"):
        # Killed before the service had named the statement.
        return "failed"
    fetched = subprocess.run(
        [*SHELL, "fetch", entries[0]["id"], "--format", "csv"],
        capture_output=True,
        env=environment(folder),
        check=False,
    )
    lines = fetched.stdout.count(b"\n")
    return "whole" if fetched.returncode == 0 and lines == 500_001 else "failed" if fetched.returncode else "wrong"


def polling(times: int = 5) -> Iterator[Row]:
    """Time that polling adds to statements of known length, beside deltastream-connector on the same service."""
    with _Timed() as url:
        for seconds in DURATIONS:
            ours = asyncio.run(_ours(url, seconds, times)) - seconds
            theirs = asyncio.run(_connector(url, seconds, 2)) - seconds
            bound = 0.1 * seconds + 0.015
            yield Row(
                f"polling a statement of {seconds * 1000:g} ms",
                f"+ {ours * 1000:.1f} ms",
                f"{bound * 1000:.1f} ms (10 % + 15 ms); deltastream-connector + {theirs * 1000:.0f} ms",
                ours / bound,
                "≤ 1",
            )


async def _ours(url: str, seconds: float, times: int) -> float:
    transport = Transport(parse(url), TOKEN)
    statements = StatementsClient(transport, ResultFactory(transport))
    began = time.perf_counter()
    for _ in range(times):
        async for result in statements.run(Submission(f"{seconds}"), SessionContext()):
            async for batch in result.batches:
                assert batch.rows == [["1"]]
    spent = (time.perf_counter() - began) / times
    await statements.aclose()
    return spent


async def _connector(url: str, seconds: float, times: int) -> float:
    made = _connection(url)
    began = time.perf_counter()
    for _ in range(times):
        rows = await made.query(f"{seconds}")
        assert [row async for row in rows]
    return (time.perf_counter() - began) / times


def _connection(url: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from deltastream.api.conn import APIConnection

    async def give() -> str:
        return TOKEN

    return APIConnection(f"{url}/v2", give, "benchmark", "UTC", None, None, None, None, None)


class _Timed:
    """A service in a process of its own whose statements take the seconds that their text says."""

    def __enter__(self) -> str:
        ours, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("spawn").Process(target=_timed, args=(theirs,), daemon=True)
        self._process.start()
        return f"http://127.0.0.1:{ours.recv()}"

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()


def _timed(told: Any) -> None:
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    due: dict[str, float] = {}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            seconds = float(body.partition(b'"statement"')[2].split(b'"')[1])
            name = f"0f6b3f7e-0000-4000-8000-{len(due):012}"
            due[name] = time.monotonic() + seconds
            self._answer(name)

        def do_GET(self) -> None:
            self._answer(self.path.rpartition("/")[2].partition("?")[0])

        def _answer(self, name: str) -> None:
            done = time.monotonic() >= due[name]
            answer: dict[str, Any] = {"sqlState": "00000" if done else "03000", "statementID": name, "createdOn": 1}
            if done:
                columns = [{"name": "a", "type": "VARCHAR", "nullable": True}]
                parts = [{"rowCount": 1}]
                answer |= {
                    "metadata": {"encoding": "json", "columns": columns, "partitionInfo": parts},
                    "data": [["1"]],
                }
                answer["metadata"]["context"] = {}
            content = json.dumps(answer).encode()
            self.send_response(200 if done else 202)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.send(server.server_address[1])
    server.serve_forever()


def connector(rows: int = 1_000_000, few: int = 20_000) -> Iterator[Row]:
    """Rows a second from the same service, ours from start to exit."""
    from tests.benchmarks.jobs import MIXED

    with service() as (url, folder):
        written = rows / run([*SHELL, url, "-c", MIXED.format(rows=rows), "-o", "ours.csv"], folder)[0]

        async def ours() -> float:
            transport = Transport(parse(url), TOKEN)
            statements = StatementsClient(transport, ResultFactory(transport))
            began, count = time.perf_counter(), 0
            async for result in statements.run(Submission(MIXED.format(rows=rows)), SessionContext()):
                async for batch in result.batches:
                    count += len(batch.rows)
            assert count == rows
            spent = time.perf_counter() - began
            await statements.aclose()
            return rows / spent

        async def read() -> float:
            made = _connection(url)
            began = time.perf_counter()
            found = await made.query(MIXED.format(rows=few))
            assert len([row async for row in found]) == few
            return few / (time.perf_counter() - began)

        theirs, rate = asyncio.run(read()), asyncio.run(ours())
    reference = f"{theirs:,.0f} rows/s (deltastream-connector)"
    yield Row("rows × 8 in Python", f"{rate:,.0f} rows/s", reference, rate / theirs, "≥ 100 × faster")
    yield Row("rows × 8 to CSV, start to exit", f"{written:,.0f} rows/s", reference, written / theirs, "")


def stream(rows: int = STREAMED) -> Iterator[Row]:
    """An endless result to jsonl from a websocket on loopback that sends as fast as it is read."""
    figures = []
    for count in (rows // 10, rows):
        with _Streaming(count) as url, service() as (_, folder):
            seconds, peak = run([*SHELL, url, "-c", "select * from s", "--format", "jsonl", "-o", "s.jsonl"], folder)
            with (folder / "s.jsonl").open("rb") as file:
                written = sum(1 for _ in file)
            assert written == count, f"{written} of {count} rows"
            figures.append((count / seconds, peak / (1 << 20)))
    (_, small), (rate, large) = figures
    yield Row(f"{rows:,} streamed rows to jsonl", f"{rate:,.0f} rows/s", "50,000 rows/s", rate / 50_000, "≥ 1")
    yield Row(
        "10 M streamed rows to jsonl: peak memory of the client",
        f"{large:.0f} MiB",
        f"{small:.0f} MiB (a tenth of it)",
        large / small,
        "≤ 1.1",
    )


class _Streaming:
    """A service in a process of its own whose every statement is a stream of `count` rows."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __enter__(self) -> str:
        ours, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self._process = context.Process(target=_streamed, args=(theirs, self._count), daemon=True)
        self._process.start()
        return f"http://127.0.0.1:{ours.recv()}"

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()


def _streamed(told: Any, count: int) -> None:
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            uri = f"ws://127.0.0.1:{server.server_address[1]}/stream"
            request = {"requestType": "streaming", "uri": uri, "token": "t", "queryID": "q"}
            answer = {"sqlState": "00000", "statementID": "0f6b3f7e-0000-4000-8000-000000000001", "createdOn": 1}
            content = json.dumps(answer | {"metadata": {"dataplaneRequest": request}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self) -> None:
            key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
            self.wfile.write(
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                + f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode()
            )
            self.wfile.write(_frame({"type": "metadata", "headers": {}, "columns": COLUMNS}))
            block = 10_000
            data = b"".join(
                _frame(
                    {"type": "data", "headers": {}, "data": [str(i), f"value {i}", None if i % 7 == 3 else str(i % 7)]}
                )
                for i in range(block)
            )
            for _ in range(count // block):
                self.wfile.write(data)
            self.wfile.write(b"\x88\x02\x03\xe8")
            self.rfile.read(1)
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.send(server.server_address[1])
    server.serve_forever()


def _frame(value: Any) -> bytes:
    content = json.dumps(value).encode()
    size = bytes([len(content)]) if len(content) < 126 else b"\x7e" + len(content).to_bytes(2, "big")
    return b"\x81" + size + content
