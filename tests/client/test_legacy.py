"""The legacy interface: elements of any shape as results, and secrets that are shown once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from sqlshell.client.http.options import NetworkOptions
from sqlshell.client.http.transport import Transport
from sqlshell.client.legacy import LegacyClient
from sqlshell.client.results.factory import ResultFactory
from sqlshell.client.service import Service
from sqlshell.client.statements.polling import StatementsClient, Submission
from sqlshell.client.target import parse
from sqlshell.context import SessionContext
from sqlshell.errors import Exit, ProtocolError, ServiceError, ShellError, StatementError, UsageError, WaitTimeout
from sqlshell.result import Result, Rows
from tests.client.test_statements import ID, Scripted, done, scripted

T = TypeVar("T")

CONTEXT = SessionContext(organization="org", database="d", schema="s", store="st", role="r", timezone="UTC")


def run(state: Scripted, sql: str = "insert into t values (1)") -> list[tuple[Result, Rows]]:
    async def work() -> list[tuple[Result, Rows]]:
        legacy = LegacyClient(Transport(parse(state.url), "tok", network=NetworkOptions(retries=0)))
        try:
            found = []
            async for result in legacy.run(Submission(sql), CONTEXT):
                found.append((result, [row async for batch in result.batches for row in batch.rows]))
            return found
        finally:
            await legacy.aclose()

    return asyncio.run(work())


def test_the_form_has_what_the_interface_names() -> None:
    with scripted((200, [])) as state:
        assert run(state, "select 'ü'") == []
    method, path, _, body = state.asked[0]
    assert (method, path) == ("POST", "/run-statement")
    for name, value in (("orgID", "org"), ("databaseName", "d"), ("schemaName", "s"), ("storeName", "st")):
        assert f'name="{name}"\r\n\r\n{value}\r\n'.encode() in body
    assert "name=\"statement\"\r\n\r\nselect 'ü'\r\n".encode() in body
    assert b"role" not in body


@pytest.mark.parametrize(
    ("data", "names", "rows"),
    [
        (None, [], []),
        ([], [], []),
        ([{"a": "x", "b": None}], ["a", "b"], [["x", None]]),
        ([{"a": "1"}, {"b": "2"}], ["a", "b"], [["1", None], [None, "2"]]),
        ([{"n": True, "l": [1, "a"], "o": {"k": 1.50}}], ["n", "l", "o"], [["true", '[1, "a"]', '{"k": 1.5}']]),
        ({"a": "x"}, ["a"], [["x"]]),
        ("text", ["value"], [["text"]]),
        (5, ["value"], [["5"]]),
        ([1, "a", None, [2]], ["value"], [["1"], ["a"], [None], ["[2]"]]),
    ],
)
def test_data_of_any_shape(data: Any, names: list[str], rows: Rows) -> None:
    with scripted((200, [{"id": "i", "action": "x", "target": "y", "data": data}])) as state:
        ((result, found),) = run(state)
    assert [column.name for column in result.columns] == names
    assert found == rows
    assert (result.statement_id, result.label) == ("i", "x y")


def test_numbers_keep_every_digit() -> None:
    body = b'[{"data": [{"a": 12345678901234567890.123456789, "b": 1e400}]}]'
    with scripted((200, body)) as state:
        ((_, found),) = run(state)
    assert found == [["12345678901234567890.123456789", "1e400"]]


def test_unknown_actions_and_targets() -> None:
    with scripted((200, [{"action": {"new": 1}, "target": 7}, {}])) as state:
        first, second = run(state)
    assert first[0].label == '{"new":1} 7'
    assert (second[0].label, second[0].columns) == ("", [])


def test_a_secret_alone_is_the_result_and_beside_rows_is_told() -> None:
    elements = [
        {"action": "create", "target": "api_token", "secret": "s3cr3t"},
        {"secret": "other", "data": [{"a": "1"}]},
    ]
    with scripted((200, elements)) as state:
        first, second = run(state)
    assert first[1] == [["s3cr3t"]]
    assert first[0].secret == ""
    assert second[0].secret == "other"
    assert "other" not in repr(second[0])


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        ((400, {"message": "42601: syntax error at x"}), Exit.STATEMENT, "syntax error at x"),
        ((400, {"message": "no such table"}), Exit.STATEMENT, "no such table"),
        ((401, {}), Exit.SERVICE, "token"),
        ((404, {}), Exit.SERVICE, "no legacy interface"),
        ((408, {"message": "waited"}), Exit.TIMEOUT, "waited"),
        ((500, {"message": "boom"}), Exit.SERVICE, "boom"),
        ((200, b"{}"), Exit.SERVICE, "/run-statement"),
        ((200, b"["), Exit.SERVICE, "invalid JSON"),
        (
            (200, b'[{"data": [' + b",".join(b'{"c%d":1}' % at for at in range(4000)) + b"]}]"),
            Exit.SERVICE,
            "10,000,000 values",
        ),
        ((200, b'[{"data": ' + b"[" * 100_000 + b"]" * 100_000 + b"}]"), Exit.SERVICE, "deep"),
        ((200, b"[3]"), Exit.SERVICE, "/run-statement"),
    ],
)
def test_failures(answer: tuple[int, Any], code: Exit, message: str) -> None:
    with scripted(answer) as state, pytest.raises(ShellError) as caught:
        run(state)
    assert caught.value.exit == code
    assert message in caught.value.message
    if isinstance(caught.value, StatementError) and "42601" in str(answer):
        assert caught.value.where.sql_state == "42601"


@pytest.mark.parametrize("reads", [False, True])
@pytest.mark.parametrize("answer", [(500, {}), (200, "break")])
def test_a_statement_that_may_have_run_is_named_so_unless_it_only_reads(answer: tuple[int, Any], reads: bool) -> None:
    async def work(url: str) -> None:
        legacy = LegacyClient(Transport(parse(url), "tok", network=NetworkOptions(retries=0)))
        try:
            async for _ in legacy.run(Submission("x", repeatable=reads), CONTEXT):
                pass
        finally:
            await legacy.aclose()

    with scripted(answer) as state, pytest.raises(ServiceError) as caught:
        asyncio.run(work(state.url))
    assert ("may have run" in str(caught.value.hint)) is not reads


def test_a_wait_has_an_end() -> None:
    async def work(url: str) -> None:
        legacy = LegacyClient(Transport(parse(url), "tok"), wait_limit=0.05)
        try:
            async for _ in legacy.run(Submission("x"), CONTEXT):
                pass
        finally:
            await legacy.aclose()

    with scripted((200, "silence")) as state, pytest.raises(WaitTimeout, match=r"no response within 0\.05 s") as caught:
        asyncio.run(work(state.url))
    assert "may still be running" in caught.value.hint


def test_what_cannot_be_sent_is_refused_before_it_is_sent() -> None:
    with scripted((200, [])) as state, pytest.raises(UsageError, match="not valid Unicode"):
        run(state, "select '\ud800'")
    assert state.asked == []


def test_a_status_without_a_meaning_is_reported() -> None:
    match = "responded to /run-statement with 202"
    with scripted((202, {"sqlState": "03000", "statementID": ID})) as state, pytest.raises(ProtocolError, match=match):
        run(state)


def auto(state: Scripted) -> tuple[str, list[Rows]]:
    async def work(service: Service) -> tuple[str, list[Rows]]:
        rows = []
        async for result in service.statements.run(Submission("select 1"), CONTEXT):
            rows.append([row async for batch in result.batches for row in batch.rows])
        return await service.version(), rows

    return using(state, work)[0]


def test_the_interface_is_found_out() -> None:
    number = {"major": 1, "minor": 2, "patch": 3}
    with scripted((200, number), (200, done(data=[["1"]])), (200, number)) as state:
        assert auto(state) == ("1.2.3", [[["1"]]])
    assert [item[1].partition("?")[0] for item in state.asked] == ["/v2/version", "/v2/statements", "/v2/version"]
    with scripted((404, {}), (200, number), (200, [{"data": [{"a": "1"}]}]), (200, number)) as state:
        assert auto(state) == ("1.2.3", [[["1"]]])
    assert [item[1] for item in state.asked] == ["/v2/version", "/version", "/run-statement", "/version"]
    with scripted((404, {})) as state, pytest.raises(ServiceError, match="neither"):
        auto(state)


def using(state: Scripted, use: Callable[[Service], Awaitable[T]]) -> tuple[T, list[str]]:
    """What `use` makes of a service whose interface has been found out, and what a person is told."""
    told: list[str] = []

    async def work() -> T:
        transport = Transport(parse(state.url), "tok", network=NetworkOptions(retries=0))
        statements = StatementsClient(transport, ResultFactory(transport))
        service = Service(transport, statements, LegacyClient(transport), told.append)
        try:
            await service.choose()
            return await use(service)
        finally:
            await service.aclose()

    return asyncio.run(work()), told


def test_a_legacy_service_is_told_of_once_and_keeps_nothing() -> None:
    async def use(service: Service) -> None:
        client = service.statements
        await service.choose()
        with pytest.raises(UsageError, match="cannot look up statements"):
            await client.state(ID, CONTEXT)
        with pytest.raises(UsageError, match="cannot look up statements"):
            await anext(client.fetch(ID, CONTEXT))
        assert (client.supports_batches, client.can_refetch, client.can_cancel) == (False, False, False)
        assert client.begin_batch([Submission("select 1"), Submission("select 2")], stop=True) is None
        assert client.is_legacy
        await client.end_sessions(["s-1"])
        await client.terminate("it's", CONTEXT)
        assert b"TERMINATE QUERY 'it''s'" in state.asked[-1][3]

    with scripted((404, {}), (200, {}), (200, [])) as state:
        _, told = using(state, use)
    assert len(told) == 1
    assert "legacy interface" in told[0]
    asked = [(method, path) for method, path, _, _ in state.asked]
    assert asked == [("GET", "/v2/version"), ("GET", "/version"), ("POST", "/run-statement")]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((500, {"message": "boom"}), "boom"),
        ((404, {}), "no statement-execution service"),
        ((200, [1]), "/version"),
        ((200, b'{"major": 1, "minor": "2", "patch": 3}'), "/version"),
    ],
)
@pytest.mark.parametrize("legacy", [True, False])
def test_no_version(answer: tuple[int, Any], words: str, legacy: bool) -> None:
    async def work() -> str:
        transport = Transport(parse(state.url), "tok", network=NetworkOptions(retries=0))
        try:
            v2 = StatementsClient(transport, ResultFactory(transport))
            return await Service(transport, LegacyClient(transport) if legacy else v2).version()
        finally:
            await transport.aclose()

    with scripted(answer) as state, pytest.raises(ServiceError, match=words):
        asyncio.run(work())
    assert [item[1] for item in state.asked] == ["/version" if legacy else "/v2/version"]


def test_a_version_that_is_none() -> None:
    with scripted((200, b"<html>")) as state, pytest.raises(ProtocolError):
        auto(state)
