"""Between two attempts, and between two lookups, the client waits as long as it decided to."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from sqlshell.client.http import retries
from sqlshell.client.http.options import NetworkOptions
from sqlshell.client.http.retries import Retries, retry_after
from sqlshell.client.results import partitions
from sqlshell.client.statements import pipeline, polling
from tests.client import test_result_file, test_together
from tests.client.test_resources import Kept, get
from tests.client.test_resources import serving as serving_resource
from tests.client.test_statements import ID, LOST, RUNNING, done, run, scripted
from tests.client.test_together import batch, one, taken
from tests.client.test_transport import get as request
from tests.client.test_whole_fetching import half, rest, serving


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds of each pause, none of which is made."""
    made: list[float] = []
    sleep = asyncio.sleep

    async def short(seconds: float) -> None:
        if seconds:
            made.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", short)
    monkeypatch.setattr(retries, "backoff", lambda attempt: 50.0 + attempt)
    return made


def test_before_a_request_is_sent_again(slept: list[float]) -> None:
    with scripted((503, {}), (0, "break"), (200, {})) as state:
        assert request(state.url).status == 200
    assert slept == [50.0, 51.0]


def test_before_a_download_is_resumed(slept: list[float], tmp_path: Path) -> None:
    with serving_resource(Kept(cuts=(50_000, 70_000))) as url:
        get(url, tmp_path / "f")
    assert slept == [50.0, 51.0]


def test_before_a_result_file_is_resumed(slept: list[float], tmp_path: Path) -> None:
    with serving(test_result_file.CONTENT, half, rest) as service:
        test_result_file.using(service, lambda file: file.fetch(tmp_path / "f"))
    assert slept == [50.0]


def test_before_a_statement_that_is_not_ready_is_submitted_again(
    slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqlshell.client.http.retries.backoff", lambda attempt: 70.0 + attempt)
    with scripted((200, LOST), (200, LOST), (200, done(data=[]))) as state:
        assert run(state) == [[]]
    assert slept == [70.0, 71.0]


def test_before_a_statement_is_looked_up(slept: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polling, "poll_wait", lambda elapsed: 30.0)
    with scripted((202, RUNNING), (202, RUNNING), (200, done(data=[]))) as state:
        assert run(state) == [[]]
    assert slept == [30.0, 30.0]


def test_before_a_partition_that_is_being_prepared_is_requested_again(
    slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitions, "poll_wait", lambda elapsed: 20.0)
    first = done(data=[["1"]], metadata={"partitionInfo": [{"rowCount": 1}] * 2})
    preparing = {"sqlState": "03000", "statementID": ID, "createdOn": 1}
    with scripted((200, first), (202, preparing), (200, preparing), (200, done(data=[["2"]]))) as state:
        assert run(state) == [[["1"], ["2"]]]
    assert slept == [20.0, 20.0]


def test_before_a_batch_is_looked_up(slept: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "LOOK_SECONDS", 40.0)
    answers = [(200, one(1)), batch(one(2, "03000"), state="03000"), batch(one(2), one(3))]
    with scripted(*answers, extensions="batch") as state:
        told, _, _ = asyncio.run(taken(state, ["a", "b", "c"]))
    assert told == [[], [], []]
    assert slept == [40.0]
    assert test_together.asked(state)[-1][0] == "GET"


@pytest.mark.parametrize(
    ("asked", "wait"), [("", 8.0), ("0", 2.0), ("1", 2.0), ("3", 3.0), ("299", 299.0), ("300", 300.0), ("301", None)]
)
def test_a_wait_is_the_services_and_not_much_shorter_than_ours(
    asked: str, wait: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "backoff", lambda attempt: 8.0)
    monkeypatch.setattr(time, "monotonic", lambda: 1000.0)
    tries = Retries(NetworkOptions(timeout=300), idempotent=True, known=True)
    assert tries.after_status(503, {"retry-after": asked}) == wait
    assert tries.attempts == (wait is not None)


def test_a_wait_of_many_digits_is_cut() -> None:
    assert retry_after("1" * 30) == 111_111_111.0


def test_an_attempt_does_not_begin_after_the_time_for_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(retries, "backoff", lambda attempt: 8.0)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    tries = Retries(NetworkOptions(timeout=20), idempotent=True, known=True)
    waits = []
    for _ in range(4):
        waits.append(tries.after_status(503, {}))
        now[0] += 6.0
    assert waits == [8.0, 8.0, 8.0, None]
