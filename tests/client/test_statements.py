"""The client with a scripted server that responds as the local service never does."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sqlshell.client.http.options import NetworkOptions
from sqlshell.client.http.transport import Transport
from sqlshell.client.http.upload import Attachment
from sqlshell.client.results.factory import ResultFactory
from sqlshell.client.service import Service
from sqlshell.client.statements.polling import Observer, StatementsClient, Submission
from sqlshell.client.target import parse
from sqlshell.context import SessionContext
from sqlshell.errors import (
    ProtocolError,
    ServiceError,
    ShellError,
    StatementError,
    UnknownStatement,
    UsageError,
    WaitTimeout,
)
from sqlshell.interface.models import ContextEcho
from sqlshell.result import Rows
from sqlshell.sql.analysis.kinds import is_repeatable
from tests.http_servers import QuietHandler, listening

ID = "0f6b3f7e-0000-4000-8000-000000000001"
OTHER = "0f6b3f7e-0000-4000-8000-000000000002"

Script = list[tuple[int, Any]]


class Scripted:
    """A server that gives its answers in turn and remembers what it was asked; `refusal` answers every TERMINATE."""

    def __init__(self, answers: Script) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []
        self.url = ""
        self.refusal: tuple[int, Any] | None = None


@contextmanager
def scripted(*answers: tuple[int, Any], extensions: str = "", headers: Mapping[str, str] = {}) -> Iterator[Scripted]:
    """`headers` are those of every answer, besides `Sqlshell-Extensions`."""
    state = Scripted(list(answers))
    silent = threading.Event()

    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            state.asked.append((self.command, self.path, dict(self.headers), body))
            if state.refusal is not None and b"TERMINATE" in body:
                status, given = state.refusal
            else:
                status, given = state.answers.pop(0) if len(state.answers) > 1 else state.answers[0]
            if given == "silence":
                silent.wait(10)
                given = "break"
            if given == "break":
                self.close_connection = True
                return
            content = given if isinstance(given, bytes) else json.dumps(given).encode()
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", "http://127.0.0.2:1/stolen")
            if extensions:
                self.send_header("Sqlshell-Extensions", extensions)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = answer

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    with listening(server):
        try:
            yield state
        finally:
            silent.set()


def run(
    state: Scripted,
    observer: Observer | None = None,
    wait: float | None = None,
    sql: str = "insert into t values (1)",
    network: NetworkOptions | None = None,
) -> list[Rows]:
    """The rows of each result of one submission."""

    async def work() -> list[Rows]:
        transport = Transport(parse(state.url), "tok", network=network)
        try:
            found = []
            asked = Submission(sql, repeatable=is_repeatable(sql))
            context = SessionContext(database="d", timezone="UTC", session_id="s 1")
            async for result in StatementsClient(transport, ResultFactory(transport), wait).run(
                asked, context, observer
            ):
                found.append([row async for batch in result.batches for row in batch.rows])
            return found
        finally:
            await transport.aclose()

    return asyncio.run(work())


def done(statement_id: str = ID, **fields: Any) -> dict[str, Any]:
    metadata = {"columns": [{"name": "a", "type": "INTEGER"}], **fields.pop("metadata", {})}
    return {"sqlState": "00000", "statementID": statement_id, "createdOn": 1, "metadata": metadata} | fields


RUNNING = {"sqlState": "03000", "statementID": ID, "createdOn": 1}


def test_polling_sends_the_session_each_time() -> None:
    with scripted((202, RUNNING), (200, RUNNING), (200, done(data=[["1"]]))) as state:
        assert run(state) == [[["1"]]]
    assert [asked[0] for asked in state.asked] == ["POST", "GET", "GET"]
    assert all("sessionID=s+1" in asked[1] or "sessionID=s%201" in asked[1] for asked in state.asked[1:])
    assert all("partitionID=0" in asked[1] for asked in state.asked[1:])
    assert b'"sessionID":"s 1"' in state.asked[0][3]


@pytest.mark.slow("waits between attempts")
def test_not_ready_is_tried_again_and_said() -> None:
    message: list[str] = []
    lost = {"sqlState": "3E001", "message": "warming up", "statementID": ID, "createdOn": 1}
    with scripted((200, lost), (202, RUNNING), (200, lost), (200, done(data=[]))) as state:
        assert run(state, Observer(say=message.append)) == [[]]
    assert [asked[0] for asked in state.asked] == ["POST", "POST", "GET", "POST"]
    assert len(message) == 2
    assert "warming up" in message[0]


def test_partitions_of_a_statement_without_an_id_cannot_be_fetched() -> None:
    parts = {"partitionInfo": [{"rowCount": 1}, {"rowCount": 1}]}
    answer = done("", data=[["1"]], metadata=parts)
    with (
        scripted((200, answer)) as state,
        pytest.raises(ProtocolError, match="announced more partitions but sent no statementID"),
    ):
        run(state)
    assert len(state.asked) == 1


def test_a_version_that_is_not_told() -> None:
    async def work(state: Scripted) -> str:
        transport = Transport(parse(state.url), "tok")
        try:
            return await Service(transport, StatementsClient(transport, ResultFactory(transport))).version()
        finally:
            await transport.aclose()

    with (
        scripted((202, RUNNING)) as state,
        pytest.raises(ServiceError, match=r"127\.0\.0\.1:[0-9]+ responded to /v2/version with 202\Z"),
    ):
        asyncio.run(work(state))


LOST = {"sqlState": "3E004", "message": "the pool is stopped", "statementID": ID, "createdOn": 1}


@pytest.mark.parametrize(
    ("network", "wait", "posts", "error"),
    [
        (NetworkOptions(retries=0), None, 1, StatementError),
        (NetworkOptions(retries=2), None, 3, StatementError),
        (NetworkOptions(retries=9, timeout=5), None, 2, StatementError),
        (NetworkOptions(retries=0), 0.1, 1, StatementError),
    ],
)
def test_what_is_not_ready_is_waited_for_within_the_limits(
    network: NetworkOptions,
    wait: float | None,
    posts: int,
    error: type[ShellError],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if network.retries == 9:
        monkeypatch.setattr("sqlshell.client.http.retries.backoff", lambda attempt: 1000.0 if attempt else 0.01)
    with scripted((200, LOST)) as state, pytest.raises(error, match="the pool is stopped") as caught:
        run(state, wait=wait, network=network)
    assert len(state.asked) == posts
    assert caught.value.where.sql_state == "3E004"


def test_the_whole_time_to_wait_is_waited_for_what_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    sleep = asyncio.sleep

    async def short(seconds: float) -> None:
        slept.append(seconds)
        await sleep(0)

    monkeypatch.setattr("sqlshell.client.http.retries.backoff", lambda attempt: 1e6)
    monkeypatch.setattr(asyncio, "sleep", short)
    with scripted((200, LOST)) as state, pytest.raises(WaitTimeout, match="gave up after 1000 s") as caught:
        run(state, wait=1000, network=NetworkOptions(timeout=1e9))
    assert 0 < slept[-1] <= 1000
    assert caught.value.where.sql_state == "3E004"


@pytest.mark.parametrize("answers", [[(200, "silence")], [(202, RUNNING), (200, "silence")]])
def test_a_silent_service_is_not_waited_for_longer(answers: Script) -> None:
    with scripted(*answers) as state, pytest.raises(WaitTimeout) as caught:
        run(state, wait=0.1)
    assert caught.value.where.statement_id == (ID if len(answers) > 1 else "")


@pytest.mark.parametrize(("sql", "doubt"), [("insert into t values (1)", True), ("select 1", False)])
def test_a_statement_whose_outcome_cannot_be_looked_up_is_named(sql: str, doubt: bool) -> None:
    with scripted((202, RUNNING), (200, "break")) as state, pytest.raises(ServiceError) as caught:
        run(state, sql=sql, network=NetworkOptions(retries=0))
    assert caught.value.where.statement_id == ID
    assert ("the statement may have run" in caught.value.hint) is doubt


def test_the_statements_behind_one_whose_outcome_is_unknown_are_counted() -> None:
    both = {"sqlState": "00000", "statementID": ID, "statementIDs": [ID, OTHER], "createdOn": 1}
    with scripted((200, both), (200, "break")) as state, pytest.raises(ServiceError) as caught:
        run(state, network=NetworkOptions(retries=0))
    assert caught.value.where.statement_id == ID
    assert "the statement and the 1 sent after it may have run" in caught.value.hint


@pytest.mark.slow("waits between attempts")
def test_partitions_are_tried_again_and_keep_their_order() -> None:
    parts = {"partitionInfo": [{"rowCount": 1}, {"rowCount": 1}]}
    first = done(data=[["1"]], metadata=parts)
    with scripted((200, first), (503, b""), (200, "break"), (202, RUNNING), (200, done(data=[["2"]]))) as state:
        assert run(state) == [[["1"], ["2"]]]
    assert all("partitionID=1" in asked[1] for asked in state.asked[1:])


def test_several_statements_are_each_looked_up() -> None:
    both = {"sqlState": "00000", "statementID": ID, "statementIDs": [ID, OTHER], "createdOn": 1}
    answers = [(200, both), (200, done(data=[["1"]])), (202, RUNNING), (200, done(OTHER, data=[["2"]]))]
    with scripted(*answers) as state:
        assert run(state) == [[["1"]], [["2"]]]
    assert ID in state.asked[1][1]
    assert OTHER in state.asked[2][1]


def test_a_result_without_columns_names_them() -> None:
    with scripted((200, {"sqlState": "00000", "statementID": ID, "data": [["1", None]]})) as state:
        assert run(state) == [[["1", None]]]


@pytest.mark.parametrize("rows", [[["1", "2"]], [[1]], "x", [["1"], "x"]])
def test_rows_that_do_not_fit_are_refused(rows: object) -> None:
    with scripted((200, done(data=rows))) as state, pytest.raises(ServiceError):
        run(state)


def test_the_echo_is_adopted_and_what_it_leaves_out_is_kept() -> None:
    context = SessionContext(database="d", schema="s", store="x", timezone="UTC", session_id="i")
    adopted = context.adopt(ContextEcho(schema_name="t", store_name=""))
    assert (adopted.database, adopted.schema, adopted.store, adopted.timezone) == ("d", "t", "", "UTC")
    assert context.adopt(None) == context


def test_redirects_are_not_followed() -> None:
    with scripted((307, b"")) as state, pytest.raises(ServiceError, match="redirects"):
        run(state)
    assert len(state.asked) == 1


def test_a_post_is_never_repeated() -> None:
    for answer in ((503, b""), (200, "break"), (500, b"")):
        with scripted(answer) as state, pytest.raises(ShellError):
            run(state)
        assert len(state.asked) == 1


def test_no_proxy_for_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with scripted((200, done(data=[["1"]]))) as state:
        assert run(state) == [[["1"]]]
    assert state.asked[0][2]["Authorization"] == "Bearer tok"


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ((202, RUNNING | {"message": "half"}), ("03000", "half")),
        ((200, done()), ("00000", "")),
        ((200, done(message="SELECT 1") | {"sqlState": "01000"}), ("01000", "SELECT 1")),
        ((200, {"sqlState": "57014", "message": "late", "statementID": ID}), ("57014", "late")),
        ((200, done(statementIDs=[ID, OTHER])), ("00000", "")),
        ((200, done(metadata={"dataplaneRequest": {"requestType": "streaming", "uri": "ws://h"}})), ("03000", "")),
    ],
)
def test_the_state_of_a_statement(answer: tuple[int, Any], found: tuple[str, str]) -> None:
    async def work(url: str) -> tuple[str, str]:
        transport = Transport(parse(url), "tok")
        try:
            return await StatementsClient(transport, ResultFactory(transport)).state(ID, SessionContext())
        finally:
            await transport.aclose()

    with scripted(answer) as state:
        assert asyncio.run(work(state.url)) == found
    with scripted((404, {})) as state, pytest.raises(UnknownStatement):
        asyncio.run(work(state.url))


def test_what_cannot_be_sent_is_refused_before_it_is_sent() -> None:
    with scripted((200, done(data=[]))) as state, pytest.raises(UsageError, match="not valid Unicode"):
        run(state, sql="select '\ud800'")
    assert state.asked == []
    client = StatementsClient(Transport(parse(state.url), ""), None)  # type: ignore[arg-type]
    files = [Attachment(Path(folder, "a.jar"), "a.jar", 1) for folder in ("x", "y")]
    with pytest.raises(UsageError, match="two attachments have the same file name"):
        client.body(Submission("create function", files), SessionContext(), Observer())


def test_a_statement_cannot_contain_the_boundary_of_its_request() -> None:
    with scripted((200, done(data=[])), (200, done(data=[]))) as state:
        run(state)
        first = state.asked[0][3].partition(b"\r\n")[0].decode()
        assert first.startswith("--sqlshell-")
        run(state, sql=f"select '{first}'")
    text = state.asked[1][3]
    assert text.count(text.partition(b"\r\n")[0]) == 2


def test_a_wait_has_an_end() -> None:
    with scripted((202, RUNNING)) as state, pytest.raises(WaitTimeout, match="has not ended after") as caught:
        run(state, wait=0.05)
    assert caught.value.where.statement_id == ID


def test_a_failed_statement_says_all() -> None:
    failed = {"sqlState": "42601", "message": "no", "statementID": ID, "createdOn": 1}
    with scripted((202, RUNNING), (200, failed)) as state, pytest.raises(StatementError) as caught:
        run(state)
    assert (caught.value.where.sql_state, caught.value.where.statement_id) == ("42601", ID)
