"""Kill -9 at random moments while clients write, read and define: whatever was reported as finished must exist."""

from __future__ import annotations

import random
import signal
import threading
import time
from pathlib import Path

import httpx

from tests.conftest import serve, stop
from tests.service.client import Client


class Load:
    """Clients that note what they were told."""

    def __init__(self) -> None:
        self.inserted: set[int] = set()
        self.submitted: dict[str, int] = {}
        """The inserts of a round by their IDs."""
        self.results: dict[str, int] = {}
        self.number = 0
        self._lock = threading.Lock()
        self.stopped = threading.Event()

    def work(self, client: Client) -> None:
        while not self.stopped.is_set():
            with self._lock:
                self.number += 1
                number = self.number
            try:
                self._one(client, number)
            except (httpx.TransportError, AssertionError, ValueError):
                return

    def _one(self, client: Client, number: int) -> None:
        match number % 5:
            case 0 | 1:
                answer = client.submit(f"insert into t values ({number})")
                self.submitted[answer["statementID"]] = number
                if client.wait(answer)["sqlState"] == "00000":
                    self.inserted.add(number)
            case 2:
                answer = client.run(f"select range, repeat('x', 50) from range({number * 7 % 3000})")
                if answer["sqlState"] == "00000":
                    self.results[answer["statementID"]] = number * 7 % 3000
            case 3:
                answer = client.run(f"select range from range({60_000 + number})")
                if answer["sqlState"] == "00000":
                    self.results[answer["statementID"]] = 60_000 + number
            case _:
                client.run(f"create or replace table d{number % 4} as select range from range({number % 1000})")


def rounds(folder: Path, count: int, chance: random.Random) -> tuple[int, int]:
    """How many finished statements were lost, or had taken effect although they are said not to have run, and how many
    databases were damaged in `count` kills."""
    load = Load()
    lost = damaged = 0
    served = serve(folder, "--data", "data", "--partition-rows", "1000")
    with Client(served) as client:
        client.rows("create table t (i int)")
    for _ in range(count):
        clients = [Client(served) for _ in range(4)]
        load.stopped.clear()
        threads = [threading.Thread(target=load.work, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        time.sleep(chance.uniform(0.05, 0.6))
        served.process.send_signal(signal.SIGKILL)
        served.process.wait(10)
        load.stopped.set()
        for thread in threads:
            thread.join()
        for client in clients:
            client.http.close()
        assert served.process.stdout is not None
        served.process.stdout.close()
        served = serve(folder, "--data", "data", "--partition-rows", "1000")
        with Client(served) as client:
            try:
                there = {int(str(row[0])) for row in _all(client, "select i from t")}
                lost += len(load.inserted - there)
                for statement, number in load.submitted.items():
                    found = client.http.get(f"/v2/statements/{statement}")
                    lost += number in there and found.status_code == 200 and found.json()["sqlState"] == "57000"
            except AssertionError:
                damaged += 1
            for statement, expected in load.results.items():
                found = client.http.get(f"/v2/statements/{statement}")
                counts = found.json().get("metadata", {}).get("partitionInfo", []) if found.status_code == 200 else []
                last = max(len(counts) - 1, 0)
                page = client.http.get(f"/v2/statements/{statement}", params={"partitionID": last})
                whole = sum(part["rowCount"] for part in counts) == expected
                lost += not (whole and len(page.json().get("data", ())) == (counts[last]["rowCount"] if counts else -1))
        load.results.clear()
        load.submitted.clear()
    stop(served)
    return lost, damaged


def _all(client: Client, sql: str) -> list[list[str | None]]:
    answer = client.run(sql)
    assert answer["sqlState"] == "00000", answer
    rows: list[list[str | None]] = list(answer["data"])
    for number in range(1, len(answer["metadata"]["partitionInfo"])):
        page = client.http.get(f"/v2/statements/{answer['statementID']}", params={"partitionID": number})
        rows += page.json()["data"]
    return rows
