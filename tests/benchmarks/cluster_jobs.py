"""Several processes of one service: small statements of 64 clients with 1, 2 and 4 processes, lookups, kills.

The processes, PostgreSQL and the clients share the machine, so that more processes than cores add little: the ratios
say what a process costs and gains beside one that shares nothing.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Load:
    """Small statements per second, the median of their milliseconds, and the milliseconds of CPU that the processes of
    the service took for one.
    """

    rate: float
    median: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.cpu:.2f} ms CPU a statement, {self.rate:.0f}/s, {self.median:.0f} ms"


def _cpu(served: Sequence[Served]) -> float:
    """Seconds of CPU that processes have taken since their starts."""
    ticks = 0
    for item in served:
        # The name of the program, in brackets, may contain blanks.
        fields = Path(f"/proc/{item.process.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _load(served: Sequence[Served], *, strays: bool) -> Load:
    """The load of CLIENTS clients for SECONDS."""
    took: list[float] = []
    urls = [item.url for item in served]

    async def all_clients() -> None:
        until = time.perf_counter() + SECONDS
        await asyncio.gather(*(_client(urls, served[0].token, until, took, strays=strays) for _ in range(CLIENTS)))

    before = _cpu(served)
    asyncio.run(all_clients())
    return Load(len(took) / SECONDS, statistics.median(took), (_cpu(served) - before) / len(took) * 1e3)


def cluster(kills: int = 20) -> Iterator[Row]:
    with TemporaryDirectory() as name, running("max_connections=400") as server:
        folder = Path(name)
        with database(server) as engine_url:
            alone = serve(folder, "--engine", "postgresql", "--engine-url", engine_url)
            single = _load([alone], strays=False)
            stop(alone)
        for count in (1, 2, 4):
            with (
                database(server) as engine_url,
                database(server) as state_url,
                processes(folder, on_postgresql(engine_url), state_url, count) as made,
            ):
                load = _load(made.served, strays=True)
                yield Row(
                    f"{CLIENTS} clients, small statements, {count} processes that share their records",
                    str(load),
                    f"{single} (one process, records of its own; load of the machine {os.getloadavg()[0]:.0f})",
                    load.cpu / single.cpu,
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
