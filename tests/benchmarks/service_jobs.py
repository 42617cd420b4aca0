"""Benchmarks of the service under load: many clients, kills."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from tests.benchmarks.measure import TOKEN, Row, service

EIGHT = """
select i::integer as id, (i * 7919) % 1000003 as code, 'customer ' || (i % 5000) as name,
       (i % 100000) / 100::decimal(10,2) as amount, i * 0.001::double as score, i % 3 = 0 as active,
       timestamp '2024-01-01' + to_seconds(i) as created,
       case when i % 10 = 0 then null when i % 97 = 0 then 'said "hi", left' else 'note ' || i end as note
from range({rows}) t(i)
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


def kills(count: int = 200) -> Iterator[Row]:
    from tests.service.kills import rounds

    with TemporaryDirectory(prefix="sqlshell-kills-") as folder:
        lost, damaged = rounds(Path(folder), count, random.Random(1))
    yield Row(f"{count} kills -9 under load", f"{lost} lost, {damaged} damaged", "0", lost + damaged, "0")
