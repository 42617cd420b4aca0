"""Several processes of one service: they are started, killed and asked in turn.

`python -m tests.service.cluster [--kills N] [--processes N]` kills random processes under load, and counts finished
statements that were lost or ran twice.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import random
import signal
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.conftest import Served, serve, stop
from tests.service.client import Answer, Client
from tests.service.postgresql import database, running
from tests.service.required import required

needs_cluster = pytest.mark.requires(
    "needs fsspec: pip install fsspec" if not required("cluster") and importlib.util.find_spec("fsspec") is None else ""
)

LEASE = 10.0
"""Seconds after which the statements of a dead process are ended by others."""


@dataclass
class Processes:
    """Processes that share a database for their records, a folder for results, and an engine."""

    folder: Path
    engine: Sequence[str]
    """The options of `serve` for the engine."""
    state_url: str
    served: list[Served] = field(default_factory=list)
    logs: dict[str, Path] = field(default_factory=dict)
    """What each has written on stderr, by its URL."""

    def start(self, *options: str) -> Served:
        home = self.folder / f"home{uuid.uuid4()}"
        home.mkdir()
        made = serve(
            home,
            *(*self.engine, "--state-url", self.state_url),
            *("--results-url", f"file://{self.folder}/shared", "--partition-rows", "1000"),
            *options,
            stderr=home / "log",
        )
        self.served.append(made)
        self.logs[made.url] = home / "log"
        return made

    def kill(self, served: Served) -> None:
        self.served.remove(served)
        served.process.send_signal(signal.SIGKILL)
        served.process.wait()
        assert served.process.stdout is not None
        served.process.stdout.close()


@contextlib.contextmanager
def processes(folder: Path, engine: Sequence[str], state_url: str, count: int) -> Iterator[Processes]:
    made = Processes(folder, engine, state_url)
    try:
        for _ in range(count):
            made.start()
        yield made
    finally:
        for served in list(made.served):
            stop(served)


def on_postgresql(url: str) -> Sequence[str]:
    return "--engine", "postgresql", "--engine-url", url


class Load:
    """Clients that insert rows through any process, and note what they were told."""

    def __init__(self, cluster: Processes) -> None:
        self._cluster = cluster
        self.told: dict[str, tuple[int, str]] = {}
        """The number and the sqlState of each statement that a client saw finished."""
        self.begun: dict[str, int] = {}
        self.large: dict[str, int] = {}
        """The number of rows of each statement with a result in the storage of results."""
        self._number = 0
        self._lock = threading.Lock()
        self.stopped = threading.Event()

    def work(self, seed: int) -> None:
        chance = random.Random(seed)
        session = str(uuid.uuid4())
        while not self.stopped.is_set():
            with self._lock:
                self._number += 1
                number = self._number
            with contextlib.suppress(httpx.TransportError, ValueError, AssertionError):
                self._one(number, chance, session)

    def _client(self, chance: random.Random, session: str) -> Client:
        return Client(chance.choice(self._cluster.served), session=session)

    def _one(self, number: int, chance: random.Random, session: str) -> None:
        pause = "" if number % 3 else f" from pg_sleep({chance.random() * 0.2:.3f})"
        sql = f"insert into log select {number}{pause}"
        if number % 4 == 0:
            count = chance.randrange(2000, 40_000)
            sql = (
                f"with i as (insert into log values ({number}) returning 1) "
                f"select n, repeat('x', 50) from generate_series(1, {count}) n, i"
            )
        with self._client(chance, session) as client:
            answer = client.submit(sql)
        self.begun[answer["statementID"]] = number
        if number % 4 == 0:
            self.large[answer["statementID"]] = count
        until = time.monotonic() + 4 * LEASE
        while answer["sqlState"] == "03000" and time.monotonic() < until:
            time.sleep(0.02)
            with contextlib.suppress(httpx.TransportError, IndexError), self._client(chance, session) as client:
                found = client.http.get(f"/v2/statements/{answer['statementID']}")
                if found.status_code in {200, 202}:
                    answer = found.json()
        if answer["sqlState"] != "03000":
            self.told[answer["statementID"]] = number, answer["sqlState"]


@dataclass(frozen=True)
class Findings:
    """What was wrong after the kills: statements that were lost, ran twice, contradicted themselves or never ended."""

    kills: int
    statements: int
    lost: int
    twice: int
    contradicted: int
    endless: int
    left: int
    """Files in the storage of results that no statement needs."""

    @property
    def wrong(self) -> int:
        return self.lost + self.twice + self.contradicted + self.endless + self.left


def killed_under_load(cluster: Processes, kills: int, chance: random.Random, clients: int = 8) -> Findings:
    """Kill random processes while clients insert rows, start others, and look what became of the statements."""
    with Client(cluster.served[0]) as client:
        assert client.run("create table log (number int)")["sqlState"] == "00000"
    load = Load(cluster)
    workers = [threading.Thread(target=load.work, args=(chance.random(),)) for _ in range(clients)]
    for worker in workers:
        worker.start()
    for _ in range(kills):
        time.sleep(chance.uniform(0.1, 1.5))
        victim = chance.choice(cluster.served)
        cluster.start()
        cluster.kill(victim)
    load.stopped.set()
    for worker in workers:
        worker.join()
    with Client(cluster.served[0]) as client:
        until = time.monotonic() + 4 * LEASE
        while time.monotonic() < until and (_left(cluster, client) or not _have_ended(client, load.begun)):
            time.sleep(1)
        rows = Counter(int(row[0] or 0) for row in _all_rows(client, "select number from log"))
        ends = {name: client.http.get(f"/v2/statements/{name}").json().get("sqlState", "") for name in load.begun}
        cut = {
            name for name, count in load.large.items() if ends[name] == "00000" and not _is_whole(client, name, count)
        }
        left = _left(cluster, client)
    done = {name: number for name, (number, state) in load.told.items() if state == "00000"}
    return Findings(
        kills,
        len(load.begun),
        sum(1 for name, number in done.items() if not rows[number] or ends[name] != "00000" or name in cut),
        sum(1 for count in rows.values() if count > 1),
        sum(1 for name, (_, state) in load.told.items() if ends[name] != state),
        sum(1 for state in ends.values() if state == "03000"),
        len(left),
    )


def _have_ended(client: Client, statements: Iterable[str]) -> bool:
    return all(client.http.get(f"/v2/statements/{name}").status_code != 202 for name in statements)


def _left(cluster: Processes, client: Client) -> list[str]:
    """The files in the storage of results that are those of no finished statement."""
    files = [path.name for path in (cluster.folder / "shared/results").glob("*/*")]
    found = {}
    for name in files:
        answer = client.http.get(f"/v2/statements/{name.partition('.')[0]}")
        found[name] = answer.json().get("sqlState") if answer.status_code == 200 else ""
    return [name for name, state in found.items() if state != "00000" or name.endswith(".part")]


def _is_whole(client: Client, statement: str, count: int) -> bool:
    """Whether all rows of a large result are there, which are those of its last partition."""
    parts = client.http.get(f"/v2/statements/{statement}").json()["metadata"]["partitionInfo"]
    page = client.http.get(f"/v2/statements/{statement}", params={"partitionID": len(parts) - 1}).json()
    return bool(sum(part["rowCount"] for part in parts) == count and page["data"][-1][0] == str(count))


def _all_rows(client: Client, sql: str) -> list[list[str | None]]:
    answer: Answer = client.run(sql)
    found: list[Any] = list(answer["data"])
    for number in range(1, len(answer["metadata"]["partitionInfo"])):
        found += client.http.get(f"/v2/statements/{answer['statementID']}?partitionID={number}").json()["data"]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.service.cluster", description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        running("max_connections=400") as server,
        database(server) as engine_url,
        database(server) as state_url,
        processes(Path(name), on_postgresql(engine_url), state_url, asked.processes) as cluster,
    ):
        found = killed_under_load(cluster, asked.kills, random.Random(asked.seed))
    sys.stdout.write(f"{found}\n")
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
