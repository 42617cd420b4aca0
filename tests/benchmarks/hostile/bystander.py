"""A client that is not part of an attack: `python -m tests.benchmarks.hostile.bystander URL SECONDS` prints, as JSON,
the seconds that each statement took and each failure. The token is in SQLSHELL_TOKEN.
"""

from __future__ import annotations

import json
import os
import sys
import time
import uuid
from collections.abc import Callable

import httpx

SMALL = (
    "select 1",
    "select count(*) from small where i % 7 = 3",
    "insert into log values (1, 'x')",
    "select * from small limit 50",
    "select sum(i), t from small group by t",
)
PARTS = "select i, 'value ' || i as t from small"
"""A result of some partitions."""

RECONNECTS = 20
"""Statements over one connection; the next one opens another."""


class Bystander:
    """A client with a session of its own."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"}
        self._session = str(uuid.uuid4())
        self.taken: list[float] = []
        self.failures: list[str] = []

    def prepare(self) -> None:
        with self._client() as wire:
            self._run(
                wire, "create table if not exists small as select range as i, 't' || range % 5 as t from range(25000)"
            )
            self._run(wire, "create table if not exists log (i int, t varchar)")

    def work(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        turn = 0
        while time.monotonic() < until:
            with self._client() as wire:
                for _ in range(RECONNECTS):
                    if time.monotonic() >= until:
                        break
                    turn += 1
                    if turn % 10:
                        self._timed(self._run, wire, SMALL[turn % len(SMALL)])
                    else:
                        self._timed(self._read, wire, PARTS)

    def _client(self) -> httpx.Client:
        return httpx.Client(base_url=self._url, headers=self._headers, timeout=30, trust_env=False)

    def _timed(self, work: Callable[[httpx.Client, str], object], wire: httpx.Client, sql: str) -> None:
        began = time.perf_counter()
        try:
            work(wire, sql)
        except (httpx.HTTPError, ValueError, KeyError, RuntimeError) as error:
            self.failures.append(f"{type(error).__name__}: {error}"[:200])
        self.taken.append(time.perf_counter() - began)

    def _run(self, wire: httpx.Client, sql: str) -> str:
        body = {"statement": sql, "parameters": {"sessionID": self._session}}
        answer = wire.post("/v2/statements", json=body)
        while answer.status_code == 202:
            time.sleep(0.01)
            answer = wire.get(f"/v2/statements/{answer.json()['statementID']}")
        if answer.status_code != 200 or answer.json()["sqlState"] != "00000":
            raise RuntimeError(answer.text[:200])
        return str(answer.json()["statementID"])

    def _read(self, wire: httpx.Client, sql: str) -> None:
        found = self._run(wire, sql)
        for number in (1, 2):
            answer = wire.get(f"/v2/statements/{found}", params={"partitionID": number})
            if answer.status_code != 200 or len(answer.json()["data"]) == 0:
                raise RuntimeError(answer.text[:200])


def main() -> None:
    url, seconds = sys.argv[1:]
    bystander = Bystander(url, os.environ["SQLSHELL_TOKEN"])
    if float(seconds):
        bystander.work(float(seconds))
    else:
        bystander.prepare()
    sys.stdout.write(json.dumps({"taken": bystander.taken, "failures": bystander.failures}))


if __name__ == "__main__":
    main()
