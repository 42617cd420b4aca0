"""The download of a result's file: whole or continued, and refused where it cannot be the file of the result."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from sqlshell.client.http import retries
from sqlshell.client.http.transport import Transport
from sqlshell.client.results import result_file
from sqlshell.client.results.result_file import ResultFile
from sqlshell.client.target import parse
from sqlshell.result import FileUnavailable
from tests.client.test_whole_fetching import (
    FILE,
    Answer,
    Handler,
    Service,
    endless,
    half,
    rest,
    serving,
    status,
    whole,
    wrong_rest,
)

CONTENT = b"PAR1" + bytes(range(200)) + b"PAR1"
HALF = len(CONTENT) // 2

Found = TypeVar("Found")


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.001)


def using(service: Service, work: Callable[[ResultFile], Awaitable[Found]]) -> Found:
    """Run a coroutine function with the file of a result of this service."""

    async def run() -> Found:
        transport = Transport(parse(service.url), "token")
        try:
            return await work(ResultFile(lambda: transport, "/v2/statements/x", "x", [], 1, len(CONTENT), "UTC"))
        finally:
            await transport.aclose()

    return asyncio.run(run())


def half_with_weak_tag(handler: Handler) -> None:
    handler.send(CONTENT[:HALF], 200, FILE | {"ETag": 'W/"one"'}, length=len(CONTENT))
    handler.close_connection = True


def packed(handler: Handler) -> None:
    handler.send(CONTENT, 200, FILE | {"Content-Encoding": "gzip"})


def of_another_type(handler: Handler) -> None:
    handler.send(CONTENT, 200, {"Content-Type": "text/html"})


def not_packed(handler: Handler) -> None:
    handler.send(CONTENT, 200, FILE | {"Content-Encoding": ""})


def later(handler: Handler) -> None:
    handler.send(b"", 503, {"Retry-After": "3600"})


def nothing_there(handler: Handler) -> None:
    handler.send(b"", 416, {"Content-Range": "bytes */0"})


def nothing_missing(handler: Handler) -> None:
    handler.send(b"", 416, {"Content-Range": f"bytes */{len(CONTENT)}"})


def rest_at_no_number(handler: Handler) -> None:
    handler.send(CONTENT[HALF:], 206, FILE | {"Content-Range": f"bytes {'1' * 5000}-9/9"})


@pytest.mark.parametrize(
    ("answers", "asked"),
    [
        ([whole], ["file"]),
        ([half, rest], ["file", f"file bytes={HALF}-"]),
        ([half, whole], ["file", f"file bytes={HALF}-"]),
        ([half, status(503), rest], ["file", f"file bytes={HALF}-", f"file bytes={HALF}-"]),
        # A weak tag does not say that the bytes are the same.
        ([half_with_weak_tag, whole], ["file", "file"]),
        ([not_packed], ["file"]),
        # The file is another one than before.
        ([half, nothing_missing, whole], ["file", f"file bytes={HALF}-", "file"]),
    ],
)
def test_a_download_is_whole(tmp_path: Path, answers: list[Answer], asked: list[str]) -> None:
    place = tmp_path / "result.parquet"
    with serving(CONTENT, *answers) as service:
        using(service, lambda file: file.fetch(place))
    assert (place.read_bytes(), service.asked) == (CONTENT, asked)


@pytest.mark.parametrize(
    "answers",
    [
        [status(404)],
        [status(200)],
        [of_another_type],
        [packed, packed],
        [endless],
        [half, wrong_rest, wrong_rest],
        [half, rest_at_no_number, rest_at_no_number],
        [later],
        [nothing_there],
    ],
)
def test_what_is_not_the_file_is_refused(tmp_path: Path, answers: list[Answer]) -> None:
    with serving(CONTENT, *answers) as service, pytest.raises(FileUnavailable):
        using(service, lambda file: file.fetch(tmp_path / "result.parquet"))
    assert not service.answers


@pytest.mark.parametrize("beyond", [0, 1])
def test_a_file_far_larger_than_its_rows_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beyond: int
) -> None:
    place = tmp_path / "result.parquet"
    monkeypatch.setattr(result_file, "SLACK_BYTES", len(CONTENT))
    with serving(bytes(3 * len(CONTENT) + beyond)) as service:
        if beyond:
            with pytest.raises(FileUnavailable):
                using(service, lambda file: file.fetch(place))
        else:
            using(service, lambda file: file.fetch(place))
            assert place.stat().st_size == 3 * len(CONTENT)


def test_the_disk_has_to_have_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_file, "SLACK_BYTES", 1 << 62)
    with serving(CONTENT, endless) as service, pytest.raises(FileUnavailable):
        using(service, lambda file: file.fetch(tmp_path / "result.parquet"))
    assert service.asked == ["file"]
