"""Benchmarks of the client: a bad network, and unbounded results."""

from __future__ import annotations

import base64
import hashlib
import json
import multiprocessing
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from sqlshell.client.http import retries
from tests.benchmarks.measure import TOKEN, Row, environment, run, service
from tests.faults.scenarios import expected, scenarios, tried

SHELL = [sys.executable, "-m", "sqlshell", "-q"]
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
