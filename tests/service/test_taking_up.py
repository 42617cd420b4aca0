"""A statement that an engine goes on with while no process of the service waits for it."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest

from tests.conftest import serve, stop
from tests.service.client import Answer, Client
from tests.service.cluster import LEASE, needs_cluster, processes
from tests.service.postgresql import database, needs_postgresql
from tests.service.tested_engines import OnEngine

pytestmark = [pytest.mark.needs("reattaching"), pytest.mark.slow("kills and restarts services")]

SLOW = "select count(*) as n, max(i) as most from range(600000000) as t(i) where i % 7 = 3"


def looked_up(client: Client, answer: Answer, seconds: float) -> Answer:
    until = time.monotonic() + seconds
    while answer["sqlState"] == "03000" and time.monotonic() < until:
        time.sleep(0.2)
        answer = client.http.get(f"/v2/statements/{answer['statementID']}").json()
    return answer


def test_a_service_that_was_killed_finds_its_statement_finished(engine: OnEngine, tmp_path: Path) -> None:
    with engine.place() as place:
        first = serve(tmp_path, "--data", "data", *place)
        with Client(first) as client:
            expected = client.rows(SLOW)
            answer = client.submit(SLOW)
            assert answer["sqlState"] == "03000"
            client.wait_until_it_runs(answer)
            first.process.send_signal(signal.SIGKILL)
            first.process.wait()
        again = serve(tmp_path, "--data", "data", *place)
        with Client(again) as client:
            found = looked_up(client, answer, 60)
            assert (found["sqlState"], found.get("data")) == ("00000", expected), found.get("message")
        stop(again)


@needs_cluster
@needs_postgresql
def test_another_process_takes_up_the_statement_of_a_killed_one(
    engine: OnEngine, tmp_path: Path, postgresql_server: str
) -> None:
    with (
        engine.place() as place,
        database(postgresql_server) as state_url,
        processes(tmp_path, place, state_url, 2) as cluster,
        Client(cluster.served[0]) as first,
        Client(cluster.served[1]) as second,
    ):
        expected = second.rows(SLOW)
        answer = first.submit(SLOW)
        assert answer["sqlState"] == "03000"
        second.wait_until_it_runs(answer)
        cluster.kill(cluster.served[0])
        found = looked_up(second, answer, 60 + 2 * LEASE)
        assert (found["sqlState"], found.get("data")) == ("00000", expected), found.get("message")
