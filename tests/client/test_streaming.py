"""Unbounded results: ends and errors, gaps, limits, and that nothing is truncated silently."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sqlshell.client.http import retries
from sqlshell.client.http.options import NetworkOptions
from sqlshell.client.http.transport import Transport
from sqlshell.client.results.factory import ResultFactory
from sqlshell.client.results.frames import open_stream
from sqlshell.client.statements.client import Observer, StreamLimits
from sqlshell.client.statements.polling import StatementsClient, Submission
from sqlshell.client.target import parse
from sqlshell.context import SessionContext
from sqlshell.errors import (
    Busy,
    Exit,
    NotAuthenticated,
    ProtocolError,
    ServiceError,
    ShellError,
    StatementError,
)
from tests.client.streams import METADATA, Act, Plane, plane, rows, sends, stays
from tests.client.test_statements import ID, done, scripted

QUERY = "7b0f7a3d-4d00-4eb0-b076-eab202984e2a"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.01)


@dataclass
class Seen:
    rows: list[str | None] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    """Their numbers."""
    columns: list[tuple[str, str]] = field(default_factory=list)
    error: ShellError | None = None
    message: list[str] = field(default_factory=list)
    ended: str = ""
    gaps: int = 0
    plane: Plane | None = None
    asked: list[bytes] = field(default_factory=list)
    queries: list[str] = field(default_factory=list)
    """The IDs of queries that were reported."""


def read(
    *acts: Act,
    limits: StreamLimits | None = None,
    stop_after: int = 0,
    history: Any = None,
    tls: ssl.SSLContext | None = None,
    network: NetworkOptions | None = None,
    refuse: int = 0,
    retry_after: str = "",
    dies: bool = False,
    query: str | None = QUERY,
) -> Seen:
    seen = Seen()

    async def work(url: str) -> None:
        transport = Transport(parse(url), "the-api-token", network=network or NetworkOptions(retries=2))
        statements = StatementsClient(transport, ResultFactory(transport, limits=lambda: limits or StreamLimits()))
        context = SessionContext(session_id="s1", timezone="UTC")
        try:
            async for result in statements.run(
                Submission("select * from s", repeatable=True),
                context,
                Observer(say=seen.message.append, query_id=seen.queries.append),
            ):
                assert result.endless is not None
                seen.columns = [(column.name, column.type) for column in result.columns]
                try:
                    async for batch in result.batches:
                        seen.rows += [row[0] for row in batch.rows]
                        seen.batches.append(batch.number)
                        if stop_after and len(seen.rows) >= stop_after:
                            result.endless.stop()
                finally:
                    seen.ended, seen.gaps = result.endless.end_reason, result.endless.gaps
                    await result.batches.aclose()
        except ShellError as error:
            seen.error = error
        finally:
            await statements.aclose()

    with plane(*acts, tls=tls, refuse=refuse, retry_after=retry_after) as there:
        there.dies = dies
        request = {"requestType": "streaming", "uri": there.url, "token": "plane-token", "queryID": query}
        answer = done(data=None, metadata={"columns": None, "partitionInfo": None, "dataplaneRequest": request})
        answers: list[tuple[int, Any]] = [(200, answer)]
        if history is not None:
            answers += [(200, history)]
        with scripted(*answers) as state:
            asyncio.run(work(state.url))
            seen.asked = [item[3] for item in state.asked]
        seen.plane = there
    return seen


def numbers(first: int, last: int) -> list[str]:
    return [str(n) for n in range(first, last + 1)]


def test_the_query_is_known_before_its_stream_is_open() -> None:
    seen = read(sends(), refuse=404)
    assert seen.error is not None
    assert seen.queries == [QUERY]


@pytest.mark.parametrize("code", [1000, 1001])
def test_a_clean_end(code: int) -> None:
    seen = read(sends(METADATA, *rows(1, 500), code=code))
    assert (seen.rows, seen.error, seen.ended, seen.queries) == (numbers(1, 500), None, "service", [QUERY])
    assert seen.batches == list(range(1, len(seen.batches) + 1))
    assert seen.columns == [("a", "INTEGER"), ("p", "DECIMAL(10,2)")]
    assert seen.plane is not None
    assert seen.plane.hellos == [{"type": "auth", "accessToken": "plane-token", "sessionId": "s1"}]
    headers = seen.plane.headers[0]
    assert headers["ds-session-id"] == "s1"
    assert "the-api-token" not in str(headers)


@pytest.mark.parametrize("code", [None, 1002, 1007, 1009, 1011, 1012, 1013, 3000, 4000])
def test_a_fault_keeps_the_rows_and_fails(code: int | None) -> None:
    seen = read(sends(METADATA, *rows(1, 50), code=code, reason="why"))
    assert seen.rows == numbers(1, 50)
    assert seen.error is not None
    assert seen.error.exit == Exit.SERVICE
    assert "50 rows" in seen.error.message
    assert "--allow-gaps" in seen.error.hint
    assert seen.plane is not None
    assert len(seen.plane.hellos) == 1


@pytest.mark.parametrize("code", [1008, 4401, 4403])
def test_not_authorized(code: int) -> None:
    seen = read(sends(METADATA, *rows(1, 3), code=code, reason="who are you"))
    assert seen.rows == numbers(1, 3)
    assert isinstance(seen.error, NotAuthenticated)
    assert "who are you" in seen.error.message


def test_the_first_frame_may_be_refused() -> None:
    seen = read(sends(code=4401))
    assert isinstance(seen.error, NotAuthenticated)


def test_a_gap_is_told_where_it_may_be() -> None:
    seen = read(
        sends(METADATA, *rows(1, 5), code=1012), sends(METADATA, *rows(8, 10)), limits=StreamLimits(reconnect=True)
    )
    assert seen.rows == numbers(1, 5) + numbers(8, 10)
    assert (seen.error, seen.gaps, seen.ended) == (None, 1, "service")
    gap = [line for line in seen.message if "possible gap" in line]
    assert len(gap) == 1
    assert gap[0].count("T") >= 2


@pytest.mark.parametrize("code", [1002, 1007, 1009])
def test_what_would_break_again_is_not_tried_again(code: int) -> None:
    seen = read(sends(METADATA, code=code), limits=StreamLimits(reconnect=True))
    assert seen.error is not None
    assert seen.plane is not None
    assert len(seen.plane.hellos) == 1


def test_other_columns_after_a_gap_are_an_error() -> None:
    other = METADATA | {"columns": [{"name": "z", "type": "VARCHAR"}]}
    seen = read(sends(METADATA, *rows(1, 2), code=1011), sends(other), limits=StreamLimits(reconnect=True))
    assert seen.rows == numbers(1, 2)
    assert isinstance(seen.error, ProtocolError)


@pytest.mark.parametrize(("most", "sent"), [(0, 0), (0, 100), (7, 100)])
def test_most_rows(most: int, sent: int) -> None:
    seen = read(stays(METADATA, *rows(1, sent)), limits=StreamLimits(max_rows=most))
    assert (seen.rows, seen.error, seen.ended) == (numbers(1, most), None, "max_rows")


def test_for_a_time() -> None:
    seen = read(stays(METADATA, *rows(1, 5)), limits=StreamLimits(seconds=0.3))
    assert (seen.rows, seen.error, seen.ended) == (numbers(1, 5), None, "seconds")


def test_stopped_by_its_reader() -> None:
    seen = read(stays(METADATA, *rows(1, 5)), stop_after=5)
    assert (seen.rows, seen.error, seen.ended) == (numbers(1, 5), None, "stopped")


@pytest.mark.parametrize(("query", "asked"), [(QUERY, QUERY), (None, ID)])
def test_an_error_with_its_cause_from_the_history(query: str | None, asked: str) -> None:
    error = {"type": "error", "message": "the query failed", "sqlCode": "XX000", "headers": {}}
    history = {
        "sqlState": "00000",
        "statementID": ID,
        "createdOn": 1,
        "metadata": {"columns": [{"name": "state"}, {"name": "messages"}]},
        "data": [["errored", "division by zero at row 7"]],
    }
    seen = read(sends(METADATA, *rows(1, 3), error), history=history, query=query)
    assert seen.rows == numbers(1, 3)
    assert isinstance(seen.error, StatementError)
    assert "division by zero" in seen.error.hint
    assert f"DESCRIBE QUERY HISTORY {asked}".encode() in seen.asked[-1]


@pytest.mark.parametrize(
    "frame",
    [
        b"\x00\x01",
        "not json",
        "[1,2]",
        '{"type":"data","data":["1"]}',
        '{"type":"data","data":["1","2","3"]}',
        '{"type":"data","data":[1,2]}',
        '{"type":"data"}',
        '{"type":"data","data":' + "[" * 50_000 + "]" * 50_000 + "}",
    ],
)
def test_frames_that_are_none(frame: str | bytes) -> None:
    seen = read(sends(METADATA, *rows(1, 3), frame, *rows(4, 5)))
    assert seen.rows == numbers(1, 3)
    assert isinstance(seen.error, ProtocolError)
    assert "3" in seen.error.message or "4" in seen.error.message


@pytest.mark.parametrize("frames", [[], [*rows(1, 1)], [{"type": "metadata", "columns": []}]])
def test_rows_without_columns(frames: list[Any]) -> None:
    assert isinstance(read(sends(*frames)).error, ProtocolError)


def test_frames_of_unknown_types_mean_nothing() -> None:
    seen = read(sends(METADATA, {"type": "heartbeat"}, *rows(1, 2)))
    assert (seen.rows, seen.error) == (numbers(1, 2), None)


@pytest.mark.slow("a frame of many megabytes")
def test_a_frame_too_large() -> None:
    seen = read(sends(METADATA, *rows(1, 2), "x" * (17 << 20), wait=1))
    assert seen.rows == numbers(1, 2)
    assert seen.error is not None
    assert "1009" in seen.error.message


def test_a_frame_with_too_many_values() -> None:
    frame = '{"type":"data","data":[' + "1," * (2 << 20) + "1]}"
    seen = read(sends(METADATA, *rows(1, 2), frame, *rows(3, 4)))
    assert seen.rows == numbers(1, 2)
    assert isinstance(seen.error, ProtocolError)
    assert seen.error.message == "a stream frame after row 2 contains more than 2,097,152 values"


@pytest.mark.slow("many rows")
def test_many_rows_in_order() -> None:
    seen = read(sends(METADATA, *rows(1, 60_000)))
    assert seen.rows == numbers(1, 60_000)


def test_by_tls_with_the_same_authorities(authority: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "server.pem", authority / "server.key")
    known = NetworkOptions(ca_file=str(authority / "ca.pem"), retries=0)
    seen = read(sends(METADATA, *rows(1, 2)), tls=context, network=known)
    assert (seen.rows, seen.error) == (numbers(1, 2), None)
    seen = read(sends(METADATA, *rows(1, 2)), tls=context, network=NetworkOptions(retries=0))
    assert seen.rows == []
    assert seen.error is not None
    assert "cannot verify the certificate" in seen.error.message


def test_by_a_unix_socket(tmp_path: Path) -> None:
    path = str(tmp_path / "plane")

    async def work(uri: str) -> list[bytes]:
        async with open_stream(uri, parse(f"unix://{path}"), NetworkOptions()) as connection:
            await connection.send_first("{}")
            return await connection.frames(10)

    with plane(sends(METADATA), uds=path) as there:
        assert [json.loads(frame) for frame in asyncio.run(work(there.url))] == [METADATA]


@pytest.mark.parametrize(
    ("status", "tries", "message", "kind"),
    [
        *((status, 1, str(status), NotAuthenticated) for status in (401, 403)),
        *((status, 1, str(status), ServiceError) for status in (400, 404, 501)),
        *((status, 1, "redirects", ServiceError) for status in (300, 307)),
        (500, 2, "500", Busy),
        *((status, 3, str(status), Busy) for status in (408, 429, 502, 503, 504)),
    ],
)
def test_a_websocket_that_is_not_opened(status: int, tries: int, message: str, kind: type[ShellError]) -> None:
    seen = read(sends(METADATA), refuse=status)
    assert seen.error is not None
    assert type(seen.error) is kind
    assert seen.error.exit == Exit.SERVICE
    assert message in seen.error.message + seen.error.hint
    assert seen.plane is not None
    assert len(seen.plane.headers) == tries


def test_a_stream_is_not_asked_for_again_before_retry_after() -> None:
    seen = read(sends(METADATA), refuse=503, retry_after="3600")
    assert isinstance(seen.error, Busy)
    assert seen.plane is not None
    assert len(seen.plane.headers) == 1


def test_a_reader_that_has_enough_does_not_wait_for_a_reconnect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_WAIT", 30.0)
    monkeypatch.setattr(retries, "LONGEST_WAIT", 30.0)
    seen = read(sends(METADATA, *rows(1, 3), code=1012), limits=StreamLimits(reconnect=True, seconds=0.5), dies=True)
    assert (seen.rows, seen.error, seen.ended) == (numbers(1, 3), None, "seconds")


@pytest.mark.parametrize("secret", ["the-api-token", "plane-token"])
def test_a_stream_that_gives_our_tokens_back_does_not_get_them_shown(secret: str) -> None:
    message = f"{secret}, {base64.b64encode(f'Bearer {secret}'.encode()).decode()}"
    named = METADATA | {"columns": [{"name": secret, "type": "VARCHAR"}, {"name": "p", "type": "VARCHAR"}]}
    row = {"type": "data", "headers": {}, "data": [message, "kept"]}
    for acts in (
        sends(named, row),
        sends(METADATA, row, code=4401, reason=message),
        sends(METADATA, row, {"type": "error", "message": message, "sqlCode": "XX000"}),
        sends(METADATA, f"{{{message}"),
    ):
        seen = read(acts, limits=StreamLimits(reconnect=False))
        shown = "\n".join(
            [str(seen.rows), str(seen.columns), str(seen.message)]
            + ([seen.error.message, seen.error.hint] if seen.error is not None else [])
        )
        assert secret not in shown
        assert base64.b64encode(secret.encode()).decode()[:-4] not in shown
        assert seen.plane is not None
        assert seen.plane.hellos[0]["accessToken"] == "plane-token"


@pytest.mark.parametrize(
    ("given", "message", "state"),
    [
        ({"message": "no room", "sqlCode": "53000"}, "no room", "53000"),
        ({"message": "no room", "sqlCode": "53000 and more"}, "no room", "53000"),
        ({"message": {"why": "no room"}, "sqlCode": 5}, '{"why": "no room"}', "XX000"),
        ({"message": "", "sqlCode": ""}, "the query failed", "XX000"),
        ({}, "the query failed", "XX000"),
        ({"message": "a" * 3_000}, "a" * 2_000, "XX000"),
    ],
)
def test_a_failure_of_any_shape(given: dict[str, Any], message: str, state: str) -> None:
    seen = read(sends(METADATA, *rows(1, 2), {"type": "error", "headers": {}, **given}))
    assert seen.rows == ["1", "2"]
    assert isinstance(seen.error, StatementError)
    assert (seen.error.message, seen.error.where.sql_state, seen.error.where.statement_id) == (message, state, ID)


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (
            [
                {"name": "a", "type": "NUMERIC", "precision": 9},
                {"name": "b", "type": "decimal", "precision": 9, "scale": 1},
            ],
            [("a", "NUMERIC(9,0)"), ("b", "decimal(9,1)")],
        ),
        ([{"name": 1, "type": 2}, {"type": ""}], [("column1", "VARCHAR"), ("column2", "VARCHAR")]),
        (
            [{"name": "a", "type": "DECIMAL"}, {"name": "b", "type": "INTEGER", "precision": 9}],
            [("a", "DECIMAL"), ("b", "INTEGER")],
        ),
        ([{"name": "a", "type": "DECIMAL", "precision": "x"}], [("a", "DECIMAL")]),
    ],
)
def test_columns_of_any_shape(columns: list[dict[str, Any]], expected: list[tuple[str, str]]) -> None:
    seen = read(sends(METADATA | {"columns": columns}))
    assert (seen.columns, seen.error) == (expected, None)
