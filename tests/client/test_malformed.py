"""Responses that violate the interface: one clear error each, exit code 3, never a wrong or truncated result."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sqlshell.client.http import retries
from sqlshell.errors import Exit, ProtocolError, ShellError
from sqlshell.result import Rows
from tests.client.test_statements import ID, OTHER, RUNNING, Scripted, done, run, scripted

SUITE = Path(__file__).parents[1] / "data" / "json" / "JSONTestSuite.jsonl.gz"
READ = "select 1"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.01)


def failure(*answers: tuple[int, Any], sql: str = READ) -> ShellError:
    with scripted(*answers) as state, pytest.raises(ShellError) as caught:
        run(state, sql=sql)
    assert caught.value.exit == Exit.SERVICE
    return caught.value


def parts(*counts: int, **fields: Any) -> dict[str, Any]:
    return done(metadata={"partitionInfo": [{"rowCount": count} for count in counts]}, **fields)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "invalid JSON"),
        (b"not json", "invalid JSON"),
        (b"<html><title>Welcome</title></html>", "HTML"),
        (b"[" * 100_000, "JSON"),
        (b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "too deeply"),
        (b'{"sqlState": 5}', "sqlState"),
        (b'{"sqlState": "00000", "metadata": 7}', "metadata"),
        (b'{"sqlState": "00000", "metadata": {"columns": "a"}}', "columns"),
        (b'{"sqlState": "00000", "metadata": {"partitionInfo": [{"rowCount": "x"}]}}', "rowCount"),
        (b'{"sqlState": "00000", "statementIDs": 3}', "statementIDs"),
        (b"{}", "has no sqlState"),
        (b"[]", "unexpected JSON"),
        (b"null", "unexpected JSON"),
    ],
)
def test_bodies_that_are_no_statement(body: bytes, message: str) -> None:
    assert message in failure((200, body)).message


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (done(data=[["1", "2"]]), "1 values"),
        (done(data=[["1"], []]), "1 values"),
        (done(data=[[1]]), "cannot decode the rows"),
        (done(data=[{"a": "1"}]), "cannot decode the rows"),
        (done(data="1"), "cannot decode the rows"),
        (done(data=[["1"]], metadata={"encoding": "arrow"}), "unknown encoding 'arrow'"),
        (parts(-1, data=[]), "negative row count"),
    ],
)
def test_rows_that_are_none(answer: dict[str, Any], message: str) -> None:
    assert message in failure((200, answer)).message


def test_other_rows_than_announced_are_fetched_once_more() -> None:
    short, whole = parts(2, data=[["1"]]), parts(2, data=[["1"], ["2"]])
    with scripted((200, short), (200, whole)) as state:
        assert run(state) == [[["1"], ["2"]]]
    assert "expected 2" in failure((200, short), (200, short), (200, short)).message


@pytest.mark.parametrize(
    "second",
    [
        {"data": [["2"]]},
        {"data": [["2"], ["3"], ["4"]]},
        {"data": None},
        {},
        b"",
        b'{"data":[["2"],["3"]',
        {"data": [["2"], ["3"]], "statementID": OTHER},
    ],
)
def test_a_partition_that_is_not_whole(second: Any) -> None:
    first = parts(1, 2, data=[["1"]])
    good = {"sqlState": "00000", "statementID": ID, "data": [["2"], ["3"]]}
    with scripted((200, first), (200, second), (200, good)) as state:
        assert run(state) == [[["1"], ["2"], ["3"]]]
    assert isinstance(failure((200, first), (200, second), (200, second)), ProtocolError)


def test_a_partition_that_is_missing() -> None:
    error = failure((200, parts(1, 2, data=[["1"]])), (404, {"message": "gone"}))
    assert "partition 1" in error.message
    assert "gone" in error.message


def test_a_look_up_about_another_statement() -> None:
    assert "but the response is for" in failure((202, RUNNING), (200, done(OTHER, data=[["1"]]))).message


def test_a_body_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlshell.client.http import decompress

    monkeypatch.setattr(decompress, "UNANNOUNCED_BYTES", 10_000)
    assert "sent a response larger than" in failure((200, done(data=[["x" * 100_000]]))).message


def outcome(state: Scripted, body: bytes) -> Rows | None:
    """The rows of an answer; None for an error, which names what was wrong."""
    state.answers[:] = [(200, body)]
    try:
        (rows,) = run(state, sql="insert")
    except ShellError as error:
        assert error.exit == Exit.SERVICE, error
        assert error.message
        return None
    return rows


@pytest.fixture
def service() -> Iterator[Scripted]:
    with scripted((200, b"")) as state:
        yield state


@pytest.mark.slow("hundreds of files")
def test_json_that_others_found_hard(service: Scripted) -> None:
    head = json.dumps({"sqlState": "00000", "statementID": ID, "createdOn": 1})[:-1].encode()
    accepted = 0
    for line in gzip.decompress(SUITE.read_bytes()).splitlines():
        case = json.loads(line)
        text = base64.b64decode(case["base64"])
        assert outcome(service, text) is None, case["name"]
        columns = b', "metadata": {"columns": [{"name": "a"}]}, "data": '
        rows = outcome(service, head + columns + text + b"}")
        if rows is not None and rows != []:
            assert case["expect"] != "reject", case["name"]
            assert rows == json.loads(text), case["name"]
            accepted += 1
        rows = outcome(service, head + b', "data": [], "metadata": ' + text + b"}")
        assert rows in (None, []), case["name"]
        if rows == []:
            assert case["expect"] != "reject", case["name"]
    assert accepted <= 5


def test_a_partition_that_is_prepared_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    from sqlshell.client.results import partitions

    monkeypatch.setattr(partitions, "PREPARING_SECONDS", 0.1)
    preparing = {"sqlState": "03000", "statementID": ID, "createdOn": 1}
    for status in (200, 202):
        error = failure((200, parts(1, 1, data=[["1"]])), (status, preparing))
        assert "still preparing partition 1" in error.message
