"""Several processes of one service: small statements of 64 clients with 1, 2 and 4 processes, lookups, kills.

The processes, PostgreSQL and the clients share the machine, so that more processes than cores add little: the ratios
say what a process costs and gains beside one that shares nothing.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx

from tests.benchmarks.measure import Row
from tests.conftest import Served, serve, stop
from tests.service.cluster import killed_under_load, on_postgresql, processes
from tests.service.postgresql import database, running

CLIENTS = 64
SECONDS = 10.0


async def _one(wire: httpx.AsyncClient, session: str) -> float:
    """Milliseconds of a small statement, from its submission to its rows."""
    began = time.perf_counter()
    answer = await wire.post("/v2/statements", json={"statement": "select 1", "parameters": {"sessionID": session}})
    while answer.status_code == 202:
        await asyncio.sleep(0.005)
        answer = await wire.get(f"/v2/statements/{answer.json()['statementID']}")
    found = answer.json()
    if found.get("sqlState") != "00000":
        raise SystemExit(f"select 1: {found}")
    return (time.perf_counter() - began) * 1e3


async def _client(urls: Sequence[str], token: str, until: float, took: list[float], *, strays: bool) -> None:
    """One client in one session; with `strays` it asks any process, as behind a load balancer."""
    session, chance = str(uuid.uuid4()), random.Random()
    headers = {"Authorization": f"Bearer {token}"}
    async with _wires(urls, headers) as wires:
        own = chance.choice(wires)
        while time.perf_counter() < until:
            took.append(await _one(chance.choice(wires) if strays else own, session))


@asynccontextmanager
async def _wires(urls: Sequence[str], headers: dict[str, str]) -> AsyncIterator[list[httpx.AsyncClient]]:
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                httpx.AsyncClient(base_url=url, headers=headers, timeout=60, trust_env=False)
            )
            for url in urls
        ]


def _load(served: Sequence[Served], *, strays: bool) -> tuple[float, float]:
    """Statements per second, and the median of their milliseconds."""
    took: list[float] = []
    urls = [item.url for item in served]

    async def all_clients() -> None:
        until = time.perf_counter() + SECONDS
        await asyncio.gather(*(_client(urls, served[0].token, until, took, strays=strays) for _ in range(CLIENTS)))

    asyncio.run(all_clients())
    return len(took) / SECONDS, statistics.median(took)


def cluster(kills: int = 20) -> Iterator[Row]:
    with TemporaryDirectory() as name, running("max_connections=400") as server:
        folder = Path(name)
        with database(server) as engine_url:
            alone = serve(folder, "--engine", "postgresql", "--engine-url", engine_url)
            single, single_ms = _load([alone], strays=False)
            stop(alone)
        for count in (1, 2, 4):
            with (
                database(server) as engine_url,
                database(server) as state_url,
                processes(folder, on_postgresql(engine_url), state_url, count) as made,
            ):
                rate, median = _load(made.served, strays=True)
                yield Row(
                    f"{CLIENTS} clients, small statements, {count} processes that share their records",
                    f"{rate:.0f}/s, {median:.0f} ms",
                    f"{single:.0f}/s, {single_ms:.0f} ms (one process, records of its own)",
                    rate / single,
                    "reported",
                )
        with (
            database(server) as engine_url,
            database(server) as state_url,
            processes(folder, on_postgresql(engine_url), state_url, 3) as made,
        ):
            found = killed_under_load(made, kills, random.Random(1))
            yield Row(
                f"{kills} × kill -9 of one of 3 processes, {found.statements} statements",
                f"{found.lost} lost, {found.twice} twice, {found.endless} endless",
                "0",
                float(found.wrong),
                "0",
            )
