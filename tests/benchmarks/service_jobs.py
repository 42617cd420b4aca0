"""Benchmarks of the service under load: bodies, large results, many clients, unbounded SELECTs, kills."""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from websockets.asyncio.client import connect

from tests.benchmarks.measure import TOKEN, Row, peak_of, service

EIGHT = """
select i::integer as id, (i * 7919) % 1000003 as code, 'customer ' || (i % 5000) as name,
       (i % 100000) / 100::decimal(10,2) as amount, i * 0.001::double as score, i % 3 = 0 as active,
       timestamp '2024-01-01' + to_seconds(i) as created,
       case when i % 10 = 0 then null when i % 97 = 0 then 'said "hi", left' else 'note ' || i end as note
from range({rows}) t(i)
"""

BARE = """
import duckdb, sys, time
c = duckdb.connect(); c.execute("set threads = 2"); c.execute("set enable_progress_bar = false")
c.execute("set temp_directory = 'bare'")
t = time.perf_counter(); c.execute("create temp table r as " + sys.argv[1]); print(time.perf_counter() - t)
"""


def client(url: str) -> httpx.Client:
    return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=120, trust_env=False)


def run(wire: httpx.Client, sql: str, session: str = "") -> dict[str, Any]:
    """A statement to its end, asked for often. A failure ends the benchmark."""
    answer = wire.post("/v2/statements", json={"statement": sql, "parameters": {"sessionID": session}})
    while answer.status_code == 202:
        time.sleep(0.01)
        answer = wire.get(f"/v2/statements/{answer.json()['statementID']}")
    found = dict(answer.json())
    if found.get("sqlState") != "00000":
        raise SystemExit(f"{sql[:60]}: {found}")
    return found


def read_all(url: str, statement: str, numbers: list[int]) -> int:
    """The bytes of these partitions' bodies, which are not looked into."""
    with client(url) as wire:
        return sum(
            len(wire.get(f"/v2/statements/{statement}", params={"partitionID": number}).content) for number in numbers
        )


def service_jobs() -> Iterator[Row]:
    yield from bodies()
    yield from large()
    yield from many()
    yield from streaming()


def bodies(rows: int = 1_000_000, times: int = 3) -> Iterator[Row]:
    with service("--threads", "2") as (url, _), client(url) as wire:
        rates = []
        for turn in range(times):
            found = run(wire, EIGHT.format(rows=rows + turn))
            numbers = list(range(len(found["metadata"]["partitionInfo"])))
            began = time.perf_counter()
            with ThreadPoolExecutor(2) as readers:
                halves = [numbers[: len(numbers) // 2], numbers[len(numbers) // 2 :]]
                size = sum(readers.map(lambda part, name=found["statementID"]: read_all(url, name, part), halves))
            rates.append(rows / (time.perf_counter() - began))
        rate = statistics.median(rates)
        message = f"{rate / 1e6:.2f} M rows/s ({size / rows:.0f} bytes a row)"
        yield Row(f"bodies of {rows:,} rows × 8, 2 readers", message, "1.0 M rows/s", rate / 1e6, "≥ 1.0")


def large(rows: int = 10_000_000) -> Iterator[Row]:
    with service("--threads", "2", "--memory", "1GB") as (url, folder), client(url) as wire:
        ours, reference = [], []
        for turn in range(3):
            sql = EIGHT.format(rows=rows + turn)
            bare = subprocess.run(
                [sys.executable, "-c", BARE, sql], cwd=folder, capture_output=True, text=True, check=True
            )
            reference.append(float(bare.stdout))
            began = time.perf_counter()
            found = run(wire, sql)
            ours.append(time.perf_counter() - began)
        one, two = statistics.median(ours), statistics.median(reference)
        yield Row(
            f"SELECT of {rows:,} rows × 8 finished",
            f"{one:.2f} s",
            f"{two:.2f} s (CREATE TEMP TABLE AS)",
            one / two,
            "≤ 1.3",
        )
        statement = found["statementID"]
        numbers = list(range(len(found["metadata"]["partitionInfo"])))
        before = peak_of(folder)
        began = time.perf_counter()
        read_all(url, statement, numbers)
        alone = time.perf_counter() - began
        began = time.perf_counter()
        with ThreadPoolExecutor(8) as readers:
            list(readers.map(lambda _: read_all(url, statement, numbers), range(8)))
        together = time.perf_counter() - began
        after = peak_of(folder)
        yield Row(
            f"its {len(numbers):,} partitions read by 8 clients at once",
            f"{8 * rows / together / 1e6:.2f} M rows/s in all",
            f"{rows / alone / 1e6:.2f} M rows/s (1 client)",
            8 * alone / together,
            "≥ 1",
        )
        yield Row(
            "peak memory of the service after that",
            f"{after >> 20} MiB",
            f"{before >> 20} MiB (before the reading; the engine may take 954)",
            after / before,
            "flat",
        )


SMALL = (
    "select 1",
    "select count(*) from small where i % 7 = 3",
    "insert into log values (1, 'x')",
    "select * from small limit 50",
    "select sum(i), t from small group by t",
)


def many(clients: int = 64, each: int = 25) -> Iterator[Row]:
    with service("--threads", "2") as (url, _), client(url) as wire:
        run(wire, "create table small as select range as i, 't' || range % 5 as t from range(10000)")
        run(wire, "create table log (i int, t varchar)")

        def work(number: int) -> list[float]:
            taken = []
            with client(url) as own:
                session = str(uuid.uuid4())
                for turn in range(each):
                    began = time.perf_counter()
                    run(own, SMALL[(number + turn) % len(SMALL)], session)
                    taken.append(time.perf_counter() - began)
            return taken

        work(0)
        alone = sorted(work(0) + work(1) + work(2) + work(3))
        with ThreadPoolExecutor(clients) as pool:
            together = sorted(second for taken in pool.map(work, range(clients)) for second in taken)
        one, all_of_them = (found[int(len(found) * 0.99) - 1] for found in (alone, together))
        yield Row(
            f"{clients} clients at once, {clients * each:,} mixed small statements: p99, no error",
            f"{all_of_them * 1000:.0f} ms",
            f"{one * 1000:.1f} ms (1 client)",
            all_of_them / one,
            "printed",
        )


def streaming(readers: int = 20, per_second: int = 10_000, seconds: int = 10) -> Iterator[Row]:
    """`per_second` rows delivered to all readers together."""
    batch = 10
    inserts = per_second // readers // batch * seconds
    with service() as (url, _), client(url) as wire:
        run(wire, "create stream s (i bigint, sent double)")
        asked = [
            wire.post("/v2/statements", json={"statement": "select i, sent from s"}).json()["metadata"][
                "dataplaneRequest"
            ]
            for _ in range(readers)
        ]
        delays, wrong = asyncio.run(_stream(url, asked, inserts, batch, seconds))
        delays.sort()
        p99 = delays[int(len(delays) * 0.99) - 1]
        yield Row(
            f"{readers} endless SELECTs, {per_second:,} rows/s in all: p99 of delivery, {wrong} lost or repeated",
            f"{p99 * 1000:.0f} ms",
            "50 ms",
            p99 / 0.05,
            "≤ 1",
        )


async def _stream(
    url: str, asked: list[dict[str, str]], inserts: int, batch: int, seconds: int
) -> tuple[list[float], int]:
    delays: list[float] = []
    wrong = 0
    begun = asyncio.Event()
    ready = 0

    async def read(one: dict[str, str]) -> None:
        nonlocal wrong, ready
        async with connect(one["uri"], proxy=None) as socket:
            await socket.send(json.dumps({"type": "auth", "accessToken": one["token"], "sessionId": ""}))
            await socket.recv()
            ready += 1
            if ready == len(asked):
                begun.set()
            for number in range(inserts * batch):
                row = json.loads(await socket.recv())["data"]
                delays.append(time.time() - float(row[1]))
                wrong += int(row[0]) != number

    async def write() -> None:
        await begun.wait()
        async with httpx.AsyncClient(
            base_url=url, headers={"Authorization": f"Bearer {TOKEN}"}, trust_env=False
        ) as wire:
            start = time.perf_counter()
            for number in range(inserts):
                await asyncio.sleep(max(0.0, start + number * seconds / inserts - time.perf_counter()))
                now = time.time()
                values = ", ".join(f"({number * batch + part}, {now!r})" for part in range(batch))
                parameters = {"sessionID": "writer"}
                body = {"statement": f"insert into s values {values}", "parameters": parameters}
                answer = await wire.post("/v2/statements", json=body)
                if answer.json()["sqlState"] not in {"00000", "03000"}:
                    raise SystemExit(answer.text)

    async with asyncio.timeout(seconds * 6):
        await asyncio.gather(write(), *(read(one) for one in asked))
    return delays, wrong


def kills(count: int = 200) -> Iterator[Row]:
    from tests.service.kills import rounds

    with TemporaryDirectory(prefix="sqlshell-kills-") as folder:
        lost, damaged = rounds(Path(folder), count, random.Random(1))
    yield Row(f"{count} kills -9 under load", f"{lost} lost, {damaged} damaged", "0", lost + damaged, "0")
