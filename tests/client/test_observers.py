"""What an observer is told while a statement runs, and what the client asks the service besides."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from sqlshell.client.http.options import NetworkOptions
from sqlshell.client.http.transport import Transport
from sqlshell.client.http.upload import PIECE, attachment
from sqlshell.client.results.factory import ResultFactory
from sqlshell.client.statements import polling
from sqlshell.client.statements.client import Observer, Submission, Timing
from sqlshell.client.statements.polling import StatementsClient
from sqlshell.client.target import parse
from sqlshell.context import SessionContext
from sqlshell.errors import ShellError, StatementError, UnknownStatement
from sqlshell.origin import Trusted
from tests.client.observed import Observed
from tests.client.test_statements import ID, OTHER, RUNNING, Scripted, done, scripted

Found = TypeVar("Found")


def using(state: Scripted, work: Callable[[StatementsClient], Awaitable[Found]], retries: int = 0) -> Found:
    async def whole() -> Found:
        transport = Transport(parse(state.url), "tok", network=NetworkOptions(retries=retries))
        client = StatementsClient(transport, ResultFactory(transport))
        try:
            return await work(client)
        finally:
            await client.aclose()

    return asyncio.run(whole())


def run(*answers: tuple[int, Any], **headers: str) -> list[Any]:
    told = Observed()

    async def work(client: StatementsClient) -> None:
        async for result in client.run(Submission("select 1"), SessionContext(), told.observer):
            await result.batches.aclose()

    with scripted(*answers, headers=headers) as state:
        try:
            using(state, work)
        except StatementError as error:
            told.all.append(error.where.sql_state)
    return told.all


TIMES = {"Server-Timing": "queue;dur=250, run;dur=1500"}
ECHO = {"metadata": {"context": {"databaseName": "there"}}}


def test_a_statement_is_named_while_it_runs_and_timed_at_its_end() -> None:
    answers = [
        (202, RUNNING | {"message": "half", "progress": 0.5}),
        (202, RUNNING),
        (200, done(data=[["1"]]) | ECHO),
    ]
    assert run(*answers, **TIMES) == [ID, (0.5, "half"), ID, (None, ""), ID, Timing(0.25, 1.5), "there"]
    assert run(answers[-1]) == [ID, "there"]
    assert run((200, done(data=[["1"]]))) == [ID, None]


def test_a_failure_tells_its_context_and_its_time() -> None:
    failed = {"sqlState": "42601", "message": "no", "statementID": ID, "createdOn": 1}
    assert run((200, failed | ECHO), **TIMES) == ["there", Timing(0.25, 1.5), "42601"]
    assert run((202, RUNNING), (200, failed)) == [ID, (None, ""), None, "42601"]


def test_each_of_several_statements_is_named() -> None:
    both = {"sqlState": "00000", "statementID": ID, "statementIDs": [ID, OTHER], "createdOn": 1}
    failed = {"sqlState": "42601", "message": "no", "statementID": OTHER, "createdOn": 1}
    told = run((200, both), (200, done(data=[])), (200, failed))
    assert list(dict.fromkeys(told)) == [ID, None, OTHER, "42601"]


def test_a_statement_that_is_fetched_is_named_before_it_is_found() -> None:
    told = Observed()

    async def work(client: StatementsClient) -> None:
        await anext(client.fetch(ID, SessionContext(), told.observer))

    with scripted((404, {})) as state, pytest.raises(UnknownStatement):
        using(state, work)
    assert told.all == [ID, None]


def test_how_much_of_the_attachments_has_been_sent_is_told(tmp_path: Path) -> None:
    told: list[tuple[float | None, str]] = []
    (tmp_path / "a.bin").write_bytes(bytes((3 << 20) - 1024))

    async def work(client: StatementsClient) -> None:
        files = [attachment(Trusted(str(tmp_path / "a.bin")))]
        observer = Observer(progress=lambda share, text: told.append((share, text)))
        async for result in client.run(Submission("create", files), SessionContext(), observer):
            await result.batches.aclose()

    with scripted((200, done(data=[]))) as state:
        using(state, work)
        (size,) = (int(headers["Content-Length"]) for _, _, headers, _ in state.asked)
    assert told[-1] == (1.0, "sending 2 of 2 MiB")
    assert any(share is not None and 0 < share * size - PIECE < 1024 for share, _ in told)
    assert [share for share, _ in told] == sorted(share for share, _ in told if share is not None)


def ended(*sessions: str, answer: tuple[int, Any] = (200, done(data=[])), extensions: str = "sessions") -> list[bytes]:
    """What the service receives when sessions are ended."""

    async def work(client: StatementsClient) -> None:
        await client.transport.get("/v2/version")
        await client.end_sessions(sessions)

    with scripted((200, {}), answer, extensions=extensions) as state:
        using(state, work)
        return [body for _, _, _, body in state.asked[1:]]


def test_sessions_are_ended_where_the_service_can() -> None:
    sent = ended("one", "t'wo", "three")
    texts = sorted(body.partition(b'"statement":"')[2].partition(b'"')[0] for body in sent)
    assert texts == [b"TERMINATE SESSION 'one' WHEN IDLE", b"TERMINATE SESSION 'three' WHEN IDLE"]
    assert all(body.count(b'"sessionID":"one"') + body.count(b'"sessionID":"three"') == 1 for body in sent)
    assert ended("one", extensions="batch") == []
    assert len(ended("one", answer=(400, {"message": "no"}))) == 1


def silent(seconds: str, work: Callable[[StatementsClient], Awaitable[Found]]) -> Found:
    """What comes of a service that never responds; `seconds` is the name of the time limit."""

    async def never(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    async def whole() -> Found:
        transport = Transport(parse("http://127.0.0.1:1"), "")
        client = StatementsClient(transport, ResultFactory(transport))
        transport.extensions = frozenset({"sessions"})
        transport.call = never  # type: ignore[method-assign, assignment]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(polling, seconds, 0.01)
            try:
                return await asyncio.wait_for(work(client), 60)
            finally:
                await client.aclose()

    return asyncio.run(whole())


def test_a_service_that_does_not_end_sessions_is_not_waited_for() -> None:
    silent("LEAVING_SECONDS", lambda client: client.end_sessions(["one"]))


def history(names: list[str], rows: list[list[str | None]], **more: Any) -> str:
    answer = done(data=rows, metadata={"columns": [{"name": name} for name in names]}) | more

    async def work(client: StatementsClient) -> str:
        return await client._history("q-1", SessionContext())

    with scripted((200, answer)) as state:
        found = using(state, work)
        assert b'"DESCRIBE QUERY HISTORY q-1"' in state.asked[0][3]
    return found


def test_the_history_of_a_query_is_one_line() -> None:
    assert history(["Messages", "x", "STATE"], [["why", "-", "errored"]]) == "errored: why"
    assert history(["state", "message"], [["a", None], [None, None], [None, "b"]]) == "a; b"
    assert history(["state"], [[str(number)] for number in range(5)]) == "2; 3; 4"
    assert history(["other"], [["1"]]) == ""
    assert history(["state"], [["x" * 3_000]]) == "x" * 2_000
    assert history(["state"], [], sqlState="42601", message="no") == ""
    assert history(["state"], [["1"]], statementIDs=[ID, OTHER]) == ""


def test_a_query_that_gives_no_history_is_not_waited_for() -> None:
    assert silent("HISTORY_SECONDS", lambda client: client._history("q-1", SessionContext())) == ""


def test_the_history_of_a_query_has_an_end() -> None:
    endless = {"requestType": "streaming", "uri": "ws://127.0.0.1:1/s"}
    with scripted((200, done(metadata={"dataplaneRequest": endless}))) as state:
        assert using(state, lambda client: client._history("q-1", SessionContext())) == ""
        assert len(state.asked) == 1


def test_a_statement_that_is_not_ready_is_submitted_with_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlshell.client.http.retries.backoff", lambda attempt: 0.001 * (attempt + 1))
    said: list[str] = []
    lost = {"sqlState": "3E001", "message": "warming up", "statementID": ID, "createdOn": 1}

    async def work(client: StatementsClient) -> None:
        async for _ in client.run(Submission("insert"), SessionContext(), Observer(say=said.append)):
            pass

    with scripted((200, lost)) as state, pytest.raises(ShellError):
        using(state, work, retries=2)
    assert said == [
        "warming up (3E001): retrying in 0.0 s (attempt 1 of 2)",
        "warming up (3E001): retrying in 0.0 s (attempt 2 of 2)",
    ]
